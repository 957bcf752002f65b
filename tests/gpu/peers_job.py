"""What each rank of tests/gpu/test_peers.py runs: solves of lines that are cut over devices."""

import os
import sys

import cupy
import numpy as np
import oracle
import pytest
import ranks_repeats
from slabs import anew

from pysolvers import SingularSystemError, solve_tridiagonal
from pysolvers.distributed import Group, Slab

dtype, link = sys.argv[1:]
group = Group(links=(link, "host"))
# Two ranks on one device are on two hosts for NCCL, which refuses them otherwise.
os.environ |= {"NCCL_HOSTID": f"rank {group.rank}", "NCCL_SOCKET_IFNAME": "lo"}
device = group.rank % cupy.cuda.runtime.getDeviceCount()
cupy.cuda.Device(device).use()
rng = np.random.default_rng(7)


def solve(operands, axis, expected=link, in_place=False, group=group, **options):
    split = Slab(axis)
    rows = operands[3].shape[axis]
    here = [slice(None)] * 2
    here[axis] = split.part(rows, group.rank, group.size)
    mine = [cupy.asarray(np.ascontiguousarray(a[tuple(here)])) for a in operands]
    options |= {"out": mine[3]} if in_place else {}
    x, info = solve_tridiagonal(
        *mine, axis=axis, group=group, split=split, return_info=True, **options
    )
    assert isinstance(x, cupy.ndarray)
    assert info.exchange == expected, info.exchange
    return np.concatenate(group.objects("test", x.get()), axis=axis)


def check(operands, x, axis, **options):
    *matrix, rhs, x = (np.moveaxis(a, axis, -1) for a in (*operands, x))
    error = np.max(oracle.backward_errors(*matrix, rhs, x, **options)[0]) / oracle.eps(x.dtype)
    assert error < 30, error


for axis in (0, 1):
    for periodic in (False, True):
        for rows in (2 * group.size + 1, 333, 1500):
            operands = oracle.dominant(rng, (20, rows), dtype)
            if axis == 0:
                operands = [np.ascontiguousarray(a.T) for a in operands]
            for options in ({}, {"pivot": False}, {"on_singular": "ignore", "pivot": False}):
                x = solve(operands, axis, periodic=periodic, **options)
                check(operands, x, axis, periodic=periodic)

# A group that leaves the links between devices out.
operands = oracle.dominant(rng, (20, 333), dtype)
x = solve(operands, 1, expected="ends", group=anew(group, links=("host",)))
check(operands, x, 1)

# Systems that need row exchanges, and singular ones, take the other way.
operands = oracle.general(rng, (20, 333), dtype)
x = solve(operands, 1, expected="lines")
check(operands, x, 1)
# Then a solution that replaces the right-hand sides comes from these.
out = [a.copy() for a in oracle.dominant(rng, (20, 333), dtype)]
for a, b in zip(out, operands, strict=True):
    a[7] = b[7]
x = solve(out, 1, expected="lines", in_place=True)
check(out, x, 1)
operands = oracle.dominant(rng, (20, 333), dtype)
x = solve(operands, 1, in_place=True)
check(operands, x, 1)
lower, diag, upper, rhs = oracle.dominant(rng, (20, 333), dtype)
lower[3, 200] = diag[3, 200] = upper[3, 200] = 0
with pytest.raises(SingularSystemError, match="3"):
    solve((lower, diag, upper, rhs), 1)
# Without row exchanges, singular systems are those that the kernel names.
x = solve((lower, diag, upper, rhs), 1, pivot=False, on_singular="nan")
assert np.isnan(x[3]).all()
keep = np.arange(20) != 3
check([a[keep] for a in (lower, diag, upper, rhs)], x[keep], 1)
with pytest.raises(SingularSystemError) as caught:
    solve((lower, diag, upper, rhs), 1, pivot=False)
assert caught.value.systems.tolist() == [[3]]


class Arrays:
    """Arrays of CuPy for the checks of repeated calls."""

    array = staticmethod(cupy.asarray)


def capture(operands):
    """Replay a graph of a call, with other right-hand sides, between calls of the same kind."""
    stream = cupy.cuda.Stream(non_blocking=True)
    rhs = operands.arrays[3]
    with stream:
        operands.solve(group, **ranks_repeats.FAST)
        operands.solve(group, **ranks_repeats.FAST)
        stream.synchronize()
        stream.begin_capture()
        operands.solve(group, **ranks_repeats.FAST)
        graph = stream.end_capture()
        for _ in range(3):
            rhs *= 2
            operands.whole[3][...] *= 2
            graph.launch(stream)
            stream.synchronize()
            operands.check(group)
            operands.out[...] = 0
            operands.solve(group, **ranks_repeats.FAST)
            stream.synchronize()
            operands.check(group)


def alternate(operands):
    """Make calls that do not wait on two streams in turn: they follow each other."""
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    outs = [cupy.empty_like(operands.out) for _ in range(40)]
    cupy.cuda.Device().synchronize()
    for k, out in enumerate(outs):
        with streams[k % 2]:
            operands.solve(group, **ranks_repeats.FAST | {"out": out})
    cupy.cuda.Device().synchronize()
    for out in outs:
        assert (out == outs[0]).all()


if link == "peers":
    ranks_repeats.agree_once(group, Arrays(), rng)
    ranks_repeats.fail(group, Arrays(), rng, chunk=17)
    operands = ranks_repeats.Operands(
        group, Arrays(), list(oracle.dominant(rng, (300, 640), dtype))
    )
    capture(operands)
    alternate(operands)
    ranks_repeats.differ(group, Arrays(), rng, on_singular="raise")
    ranks_repeats.differ(group, Arrays(), rng, pivot=False, on_singular="ignore")
print("passed", group.rank)
