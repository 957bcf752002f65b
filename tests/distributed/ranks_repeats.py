"""Checks of calls on devices that repeat an earlier kind of call; see test_distributed.py."""

import gc
import time
import weakref
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import oracle
import pytest
import shared_parts
from rank_hooks import agreements, devices_named
from slabs import anew

from pysolvers import DistributedError, SingularSystemError, solve_tridiagonal
from pysolvers.distributed import Slab

FAST = {"pivot": False, "on_singular": "ignore"}


@contextmanager
def devices(group, **options):
    """A new group whose ranks have a device each; yields group, device and library."""
    with shared_parts.in_place_of_cuda() as (device, library):
        again = anew(group, links=("peers", "host"), **options)
        yield again, device, library


class Operands:
    """The parts of systems on the device of a rank."""

    def __init__(self, group, device, whole, sizes=None):
        ends = np.cumsum([0, *(sizes or split_of(group, whole[3].shape[-1]))])
        self.whole, self.here = whole, slice(*ends[group.rank : group.rank + 2])
        self.arrays = [device.array(np.ascontiguousarray(a[..., self.here])) for a in whole]
        self.out = device.array(np.zeros_like(whole[3][..., self.here]))

    def solve(self, group, **options):
        options = {"group": group, "split": Slab(-1), "out": self.out} | options
        return solve_tridiagonal(*self.arrays, **options)

    def check(self, group, **options):
        """Compare the solution of all ranks with the definition."""
        x = np.concatenate(group.objects("test", self.out.get()), axis=-1)
        assert oracle.backward_error(*self.whole, x, **options) < 30 * oracle.eps(x.dtype)


def split_of(group, rows):
    return [len(range(rows)[Slab(0).part(rows, k, group.size)]) for k in range(group.size)]


def check_later_calls_agree_upon_nothing(group, rng):
    if group.size == 1:
        return
    with devices(group) as (group, device, _):
        agree_once(group, device, rng)


def agree_once(group, device, rng):
    """Repeat calls, also with other values, numbers in place of arrays, and other parts."""
    for options in ({}, FAST, {"pivot": False}, {"on_singular": "nan", "pivot": False}):
        first, second = (
            Operands(group, device, oracle.dominant(rng, (3, 40), "float64")) for _ in range(2)
        )
        first.solve(group, **options)
        first.check(group)
        with agreements() as found:
            for operands in (second, first, second):
                operands.solve(group, **options)
            x = solve_tridiagonal(*first.arrays, group=group, split=Slab(-1), **options)
        assert found == []
        first.check(group)
        second.check(group)
        assert (x.get() == first.out.get()).all()
        whole = [np.full((3, 40), value) for value in (-1.0, 3.0, -1.0)]
        other = Operands(group, device, [*whole, rng.standard_normal((3, 40))])
        other.arrays[0], other.arrays[2] = -1.0, -1.0
        sizes = split_of(group, 40)[:-1]
        uneven = Operands(
            group, device, oracle.dominant(rng, (3, 44), "float64"), [*sizes, 44 - sum(sizes)]
        )
        with agreements() as found:
            other.solve(group, **options)
            uneven.solve(group, **options)
        assert found == []
        other.check(group)
        uneven.check(group)
        # The solution replaces the right-hand sides.
        first.out = first.arrays[3]
        with agreements() as found:
            first.solve(group, **options)
        assert found == []
        first.check(group)


def check_later_calls_with_info(group, rng):
    """The info of a repeated call is that of an agreement; other rows of a rank need another."""
    if group.size == 1:
        return
    with devices(group) as (group, device, _):
        sizes = split_of(group, 40)[:-1]
        for options in ({}, FAST, {"pivot": False}, {"on_singular": "nan", "pivot": False}):
            first, second = (
                Operands(group, device, oracle.dominant(rng, (3, 40), "float64")) for _ in range(2)
            )
            whole = oracle.dominant(rng, (3, 44), "float64")
            uneven = Operands(group, device, whole, [*sizes, 44 - sum(sizes)])
            given = options | {"return_info": True}
            _, wanted = first.solve(group, **given)
            with agreements() as found:
                for operands in (second, first):
                    _, info = operands.solve(group, **given)
                    for field in fields(info):
                        one, other = getattr(info, field.name), getattr(wanted, field.name)
                        assert np.array_equal(one, other), field.name
                    operands.check(group)
            assert found == []
            for operands, rows in ((uneven, 44), (second, 40), (uneven, 44)):
                _, info = operands.solve(group, **given)
                assert info.rows == rows
                assert info.exchange == "peers"
                operands.check(group)
            bad = Operands(group, device, oracle.dominant(rng, (3, 40), "float64"))
            first.solve(group, **given)
            for a in bad.whole[:3]:
                a[1, 20] = 0
            bad = Operands(group, device, bad.whole)
            if options.get("on_singular", "raise") == "raise":
                with pytest.raises(SingularSystemError):
                    bad.solve(group, **given)
            else:
                bad.solve(group, **given)
            _, info = first.solve(group, **given)
            first.check(group)


def check_ranks_that_share_a_device(group, rng):
    """They are counted if the driver names the devices: here the first rank has one alone."""
    if group.size == 1:
        return
    for name in (b"", b"of all", bytes([group.rank > 0])):
        with devices(group) as (again, device, _), devices_named(name):
            operands = Operands(again, device, oracle.dominant(rng, (3, 40), "float64"))
            for _ in range(2):
                operands.solve(again)
                operands.check(again)
            others = group.size - 1 if group.rank else 1
            assert device.sharing == {b"": 1, b"of all": group.size}.get(name, others)


def check_ranks_that_differ(group, rng):
    """Rank 1 makes another call than the others; these wait for the outcome, or do not."""
    if group.size == 1:
        return
    with devices(group) as (group, device, _):
        differ(group, device, rng, on_singular="raise")
        differ(group, device, rng, pivot=False, on_singular="ignore")


def differ(group, device, rng, **options):
    """Make calls of kinds that are kept, of other kinds, and calls that raise on one rank."""
    odd, is_waiting = group.rank == 1, options["on_singular"] == "raise"
    first, other_dtype, other_shape, new = (
        Operands(group, device, oracle.dominant(rng, shape, dtype))
        for shape, dtype in (
            ((3, 40), "float64"),
            ((3, 40), "float32"),
            ((5, 40), "float64"),
            ((7, 40), "float64"),
        )
    )
    for text, operands, more in (
        ("dtype must be the same", other_dtype, {}),
        ("shape must be the same", other_shape, {}),
        ("shape must be the same", new, {}),
        ("periodic must be the same", first, {"periodic": True}),
        ("on_singular must be the same", first, {"on_singular": "nan"}),
        ("raised AxisError", first, {"axis": 7}),
    ):
        for kind in (first, other_dtype, other_shape):
            kind.solve(group, **options)
        begun = time.monotonic()
        kinds, wanted = (DistributedError, ValueError), f"{text}|axis must"
        if is_waiting:
            with pytest.raises(kinds, match=wanted):
                (operands if odd else first).solve(group, **options | (more if odd else {}))
        else:
            try:
                (operands if odd else first).solve(group, **options | (more if odd else {}))
            except kinds:
                assert odd
            else:
                assert np.isnan(first.out.get()).all() or odd
                with pytest.raises(kinds, match="it makes another call"), group.agreement("test"):
                    pass
        assert time.monotonic() - begun < 5
        first.solve(group, **options)
        first.check(group)


def check_failures_of_systems(group, rng):
    if group.size == 1:
        return
    with devices(group) as (group, device, _):
        fail(group, device, rng)


def fail(group, device, rng, chunk=0):
    """Solve singular systems, and systems that need row exchanges, and dominant ones after them.

    A device eliminates chunks of rows, and names a bad pivot in that of the first bad row, or next
    to it.
    """
    good = Operands(group, device, oracle.dominant(rng, (3, 40), "float64"))
    bad = Operands(group, device, oracle.dominant(rng, (3, 40), "float64"))
    general = Operands(group, device, oracle.general(rng, (3, 40), "float64"))
    sizes = split_of(group, 40)
    for row in (0, sizes[0] - 1, sizes[0], 39):
        for a in bad.whole[:3]:
            a[1, row] = 0
        bad = Operands(group, device, bad.whole)
        for options in ({}, {"pivot": False}):
            good.solve(group, **options)
            for _ in range(2):
                with pytest.raises(SingularSystemError) as caught:
                    bad.solve(group, **options)
                assert caught.value.systems.tolist() == [[1]]
                (found,) = caught.value.rows.tolist()
                if chunk == 0:
                    with pytest.raises(SingularSystemError) as expected:
                        solve_tridiagonal(*bad.whole, **options)
                    assert found == expected.value.rows[0]
                assert abs(found - row) <= chunk or options == {}
                good.solve(group, **options)
                good.check(group)
        nan = {"pivot": False, "on_singular": "nan"}
        for operands in (good, bad):
            operands.solve(group, **nan)
        assert (np.isnan(bad.out.get()).all(axis=-1) == [False, True, False]).all()
        bad = Operands(group, device, oracle.dominant(rng, (3, 40), "float64"))
    for _ in range(2):
        good.solve(group)
        general.solve(group)
        general.check(group)
    mixed = [np.array(a) for a in good.whole]
    for a, b in zip(mixed, general.whole, strict=True):
        a[1] = b[1]
    mixed = Operands(group, device, mixed)
    mixed.out = mixed.arrays[3]
    good.solve(group)
    mixed.solve(group)
    mixed.check(group)


def check_calls_do_not_keep_arrays(group, rng):
    if group.size == 1:
        return
    with devices(group) as (group, device, _):
        operands = Operands(group, device, oracle.dominant(rng, (3, 40), "float64"))
        for options in ({}, FAST):
            for _ in range(3):
                operands.solve(group, **options)
        references = [weakref.ref(array) for array in (*operands.arrays, operands.out)]
        del operands
        gc.collect()
        assert [reference() for reference in references] == [None] * 5


def check_streams_follow_each_other(group, rng):
    if group.size == 1:
        return
    with devices(group) as (group, device, library):
        operands = Operands(group, device, oracle.dominant(rng, (3, 40), "float64"))
        operands.solve(group, **FAST)
        for stream in (4, 4, 5):
            library.current = stream
            operands.solve(group, **FAST)
        assert device.orders == [(0, 4), (4, 5)]
        library.captured = True
        library.current = 6
        operands.solve(group, **FAST)
        assert device.orders == [(0, 4), (4, 5)]
        library.captured = False
        operands.check(group)
