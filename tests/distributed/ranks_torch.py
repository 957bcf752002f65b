"""Checks of a group of torch.distributed, run by every process; see test_distributed.py."""

import datetime
import sys

import numpy as np
import oracle
import pytest
import torch
from ranks_blocks import own_part, random_bands, random_blocks
from ranks_factor import factored, solved as solved_by_factor
from ranks_solve import cut, joined, solved

import pysolvers
from pysolvers.distributed import Group, Slab


def check_steps(group, rng):
    """Steps of tensors of the host, with masks, whose results are tensors."""
    lower, diag, upper, u = oracle.dominant(rng, (5, 23))
    inside = rng.random(u.shape) < 0.8
    T = np.where(inside, u, np.nan)
    parts = [torch.tensor(cut(group, a, u.shape, 1)) for a in (lower, -np.abs(diag), upper, T)]
    where = torch.tensor(cut(group, inside, u.shape, 1))
    split = {"group": group, "split": Slab(1), "where": where}
    options = {"K": 0.3, "dz": 1.0, "dt": 2.0, "axis": 1}
    out = torch.zeros_like(parts[3])
    assert pysolvers.implicit_diffusion(parts[3], **options, **split, out=out) is out
    found = {
        "diffusion": pysolvers.implicit_diffusion(parts[3], **options, **split),
        "out": out,
        "step": pysolvers.theta_step(*parts, dt=0.3, **split),
        "factor": pysolvers.factor_theta(*parts[:3], dt=0.3, **split).step(parts[3]),
    }
    step = pysolvers.theta_step(lower, -np.abs(diag), upper, T, dt=0.3, where=inside)
    diffusion = pysolvers.implicit_diffusion(T, **options, where=inside)
    for name, x in found.items():
        assert isinstance(x, torch.Tensor), name
        truth = diffusion if name in ("diffusion", "out") else step
        np.testing.assert_allclose(joined(group, x.numpy(), 1), truth, rtol=1e-12, atol=1e-12)


def check_recurrences_and_blocks(group, rng):
    """Of tensors of the host, also solves in place; the results are tensors."""
    a, b = rng.uniform(-0.5, 0.5, (2, 5, 23))
    blocks = random_blocks(rng, (5,), 23, 2, float, "dominant")
    bands = random_bands(rng, (5,), 23, float, "dominant")
    rhs = rng.standard_normal((5, 23, 2, 1))
    split = {"group": group, "split": Slab(1)}
    own = [
        [torch.tensor(own_part(group, value, 1)) for value in values]
        for values in ((a, b), (*blocks, rhs), (*bands, rhs[..., 0, 0]))
    ]
    out = torch.zeros_like(own[1][3])
    found = [
        pysolvers.linear_recurrence(*own[0], **split),
        pysolvers.solve_block_tridiagonal(*own[1], out=out, **split),
        pysolvers.solve_pentadiagonal(*own[2], **split),
        pysolvers.factor_block_tridiagonal(*own[1][:3], **split).solve(own[1][3]),
    ]
    expected = [
        pysolvers.linear_recurrence(a, b),
        pysolvers.solve_block_tridiagonal(*blocks, rhs),
        pysolvers.solve_pentadiagonal(*bands, rhs[..., 0, 0]),
        pysolvers.solve_block_tridiagonal(*blocks, rhs),
    ]
    assert found[1] is out
    for x, truth in zip(found, expected, strict=True):
        assert isinstance(x, torch.Tensor)
        np.testing.assert_allclose(joined(group, x.numpy(), 1), truth, rtol=1e-10, atol=1e-12)


def main(rank, size, port):
    address = f"tcp://127.0.0.1:{port}"
    limit = datetime.timedelta(seconds=20)
    torch.distributed.init_process_group("gloo", address, limit, size, rank)
    group = Group(torch.distributed.group.WORLD, timeout=20)
    assert (group.rank, group.size, group.transport) == (rank, size, "torch")
    rng = np.random.default_rng(20240607)
    for make in (oracle.dominant, oracle.general):
        for dtype in oracle.DTYPES:
            operands = make(rng, (5, 23), dtype)
            solved(group, operands, (5, 23), 1, 1)
    check_steps(group, rng)
    check_recurrences_and_blocks(group, rng)
    *matrix, rhs = oracle.dominant(rng, (5, 23))
    solved_by_factor(group, factored(group, matrix, (5, 23), 1, 1), matrix, rhs, 1, 1)
    with pytest.raises(pysolvers.DistributedError, match="periodic must be the same"):
        pysolvers.solve_tridiagonal(
            1.0, 4.0, 1.0, np.ones(9), periodic=rank == 1, group=group, split=Slab(0)
        )
    part = torch.distributed.new_group([size - 2, size - 1])  # numbers of the group, not of all
    if rank >= size - 2:
        operands = oracle.dominant(rng, (5, 23))
        solved(Group(part, timeout=20), operands, (5, 23), 1, 1)
    if rank == 0:  # the others end
        with pytest.raises(pysolvers.DistributedError, match="no message from ranks 1 and 2"):
            Group(torch.distributed.group.WORLD, timeout=1)
    print(f"rank {rank} of {size}: all checks passed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
