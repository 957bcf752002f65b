"""Checks of a group of torch.distributed, run by every process; see test_distributed.py."""

import datetime
import sys

import numpy as np
import oracle
import pytest
import torch
from ranks_factor import factored, solved as solved_by_factor
from ranks_solve import solved

import pysolvers
from pysolvers.distributed import Group, Slab


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
        lonely = Group(torch.distributed.group.WORLD, timeout=1)
        with pytest.raises(pysolvers.DistributedError, match="no message from ranks 1 and 2"):
            lonely.objects("test", None)
    print(f"rank {rank} of {size}: all checks passed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
