"""Checks of solvers with a group on devices made of host memory; see test_distributed.py.

Whatever is not a kernel is that of GPUs: fields on the device, parts that are copied, halos that
travel between devices or through the memory of the host, and waiting.
"""

import io
import tempfile
from contextlib import contextmanager, nullcontext, redirect_stderr
from types import SimpleNamespace
from unittest import mock

import device_halo
import device_heat
import device_poisson
import device_relaxation
import device_transport
import device_unsplit
import numpy as np
import pytest
import ranks_transport
import shared_device
import shared_nccl
from command_line import main
from rank_hooks import failing, field_on_device, going_on, halo_between, own_device
from slabs import EVERY, anew, same

from pysolvers import (
    GCEIDD,
    LMSOR,
    BackendError,
    DistributedError,
    FastPoisson,
    HeatADI,
    RedBlackSOR,
    factor_tridiagonal,
)
from pysolvers.distributed import Slab

# Of several blocks of the kernels of a GPU, which memory of the host does not have.
LARGE = (
    "check_heat_of_large_fields",
    "check_poisson_of_large_fields",
    "check_transport_of_a_large_field",
)
# In the default run, through the host and by NCCL: what exchanges nothing by the link, and what
# differs from the halos of other solvers in nothing that a link sees.
SHORT = (
    "check_calls_of_relaxations",
    "check_counts_of_relaxations",
    "check_heat_by_cut_lines",
    "check_heat_by_halo",
    "check_heat_run_and_saved_states",
    "check_heat_that_a_device_refuses",
    "check_poisson",
    "check_poisson_of_mirrored_boxes",
    "check_poisson_of_nodes_in_parts",
    "check_poisson_of_one_or_two_rows",
    "check_poisson_of_ranks_that_differ",
    "check_relaxations_of_ranks_that_differ",
    "check_transport",
    "check_what_devices_do_not_offer",
)
# In the default run 3 ranks make the first ones, of which one has no end of a line:
# ranks_device_poisson.py. The others differ from those of the CPU in no branch.
OF_THREE = (
    "check_poisson_of_mirrored_boxes",
    "check_poisson_of_nodes_in_parts",
    "check_poisson_of_one_or_two_rows",
    "check_poisson_of_packed_waves",
    "check_counts_of_relaxations",
    "check_heat_run_and_saved_states",
)


def check_halo_between_devices(group, rng):
    with shared_device.in_place_of_cuda():
        run(group, rng, ("peers",), () if EVERY else OF_THREE)


def check_halo_through_the_host(group, rng):
    with shared_device.in_place_of_cuda(is_shared=False):
        run(anew(group), rng, ("host",), () if EVERY else SHORT)


def check_halo_by_nccl(group, rng):
    with devices_with_nccl():
        run(anew(group, links=("nccl",)), rng, ("nccl",), () if EVERY else SHORT)


def check_fields_stay_on_the_device(group, rng):
    """Steps, also shorter ones, move neither the field nor the halo to the host."""
    problem = device_heat.fine(device_heat.PROBLEMS["values"]) | {"shape": (601, 104)}
    for link in ("peers", "nccl"):
        with devices_with_nccl() as device:
            options = {"group": anew(group, links=(link,)), "split": Slab(0)}
            solver = device_heat.OnDevice(**problem, **options).step(1)
            nbytes, device.transferred = solver.u.nbytes, 0
            solver.step(40)
            solver.dt = 0.9 * problem["dt"]
            solver.step(1)
            assert device.transferred < nbytes / 4
            assert solver.result().exchange == (link if group.size > 1 else "none")
            for make in (device_relaxation.lmsor, device_relaxation.plate):
                solver = make((150, 71), **options)
                nbytes, device.transferred = solver.u.nbytes, 0
                solver.iterate(3).iterate(40)  # measured twice
                assert device.transferred < nbytes / 4
            given, wide = ranks_transport.long(0, 60, source=0.5)
            wide |= {"shape": (481, 600)}
            for method in ranks_transport.SCHEMES[::3]:
                with ranks_transport.few_steps():
                    solver = device_transport.OnDevice(given, **wide, **method, **options).step(1)
                ranks_transport.require_halo(group, solver)
                nbytes, device.transferred = solver.u.nbytes, 0
                solver.step(9)
                assert device.transferred < nbytes / 4
                assert solver.result().exchange == (link if group.size > 1 else "none")


def check_device_that_does_not_answer(group, rng):
    """The other ranks name its rank, after the timeout."""
    if group.size == 1:
        return
    with shared_device.in_place_of_cuda() as device, going_on():
        state = field_on_device((8, 4))
        halo = halo_between(anew(group, timeout=1), state, 0, 2)
        is_silent = group.rank == 1
        if is_silent:
            device.part_barrier = lambda *arguments: 0
        named = pytest.raises(DistributedError, match="no message from rank 1: waited 1 s")
        with nullcontext() if is_silent else named, halo.in_order(1) as exchange:
            exchange("u")


def check_first_link_that_is_possible(group, rng):
    """In the order of the links of the group; the reasons, if none is possible."""
    if group.size == 1:
        return
    default = anew(group).links
    assert default == ("peers", "nccl", "host")
    for is_shared, nccl, links, expected in (
        (True, True, default, "peers"),
        (False, True, default, "nccl"),
        (False, False, default, "host"),
        (True, True, ("nccl", "peers"), "nccl"),
        (True, True, ("host", "peers"), "host"),
        (True, False, ("nccl", "peers"), "peers"),
    ):
        is_missing = group.rank == 1 and not nccl  # on one rank alone
        missing = shared_nccl.missing() if is_missing else nullcontext()
        with devices_with_nccl(is_shared=is_shared), missing:
            assert exchange_of(anew(group, links=links)) == expected
    package = "rank 1: .* pip install nvidia-nccl-cu13 cuda-pathfinder: no module"
    with devices_with_nccl(is_shared=False):
        with shared_nccl.missing() if group.rank == 1 else nullcontext():
            repeated = anew(group, links=("peers", "nccl"))
            for make in (device_heat.OnDevice, device_relaxation.plate, device_transport.OnDevice):
                with pytest.raises(BackendError, match=f"'peers': the devices .*'nccl': {package}"):
                    exchange_of(repeated, make)
        with pytest.raises(DistributedError, match="links of the group must be the same"):
            exchange_of(anew(group, links=("nccl",) if group.rank == 1 else ("host",)))


def check_halos_of_unsplit_heat(group, rng):
    """By two links; ranks_device_unsplit.py has the third one."""
    for link, devices in (
        ("host", shared_device.in_place_of_cuda(is_shared=False)),
        ("nccl", devices_with_nccl(is_shared=False)),
    ):
        with devices:
            repeated = anew(group, links=("peers", link))
            device_unsplit.check_halos_of_unsplit_steps(repeated, rng, (link,), each=5)


def check_nccl_that_does_not_start(group, rng):
    """NCCL refuses on all ranks or on one, or its start does not end on one."""
    if group.size == 1:
        return
    for kind, ranks in (
        (shared_nccl.RefusedCommunicator, range(group.size)),
        (shared_nccl.RefusedCommunicator, (1,)),
        (shared_nccl.HangingCommunicator, (1,)),
    ):
        reason = "invalid usage" if kind is shared_nccl.RefusedCommunicator else "waited 0.5 s"
        with shared_device.in_place_of_cuda(is_shared=False) as device:
            own = kind if group.rank in ranks else shared_nccl.Communicator
            with shared_nccl.in_place_of_nccl(device, own):
                repeated = anew(group, links=("peers", "nccl", "host"), timeout=1)
                for _ in range(2):
                    assert exchange_of(repeated) == "host"
                assert (
                    reason in repeated.reasons["nccl"] or "waited 0.5 s" in repeated.reasons["nccl"]
                )


def check_inbox_that_cannot_grow(group, rng):
    """A solver keeps its inbox, and another one gets one, after a rank had too little memory."""
    if group.size == 1:
        return
    small = device_heat.fine(device_heat.PROBLEMS["values"])
    large = small | {"shape": (101, 520)}
    with shared_device.in_place_of_cuda():
        options = {"group": anew(group), "split": Slab(0)}
        ones = [device_heat.OnDevice(**problem).step(40) for problem in (small, large)]
        first = device_heat.OnDevice(**small, **options).step(5)
        kind = MemoryError if group.rank == 1 else DistributedError
        full = failing("inbox", MemoryError("none is left"))
        second = device_heat.OnDevice(**large, **options)
        for _ in range(2):
            with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none is"):
                second.step(5)
        first.step(35)
        second.step(40)
        for problem, one, split in zip((small, large), ones, (first, second), strict=True):
            same(options["group"], split, one.u, 0, device_heat.bound_of(problem, one))
            assert split.result().exchange == "peers"


def check_each_rank_has_its_own_device(group, rng):
    """The ranks of a host take the devices in turn; a number, and arrays, name another one."""
    assert group.local_rank == group.rank
    with shared_device.in_place_of_cuda() as device:
        for count in (1, 2):
            device.device_count = lambda count=count: count
            own = f"cuda:{group.rank % count}" if group.size > 1 else "cuda"
            for name, expected in (("cuda", own), ("gpu", own), ("cuda:0", "cuda:0"), (None, None)):
                assert own_device(name, group, {"rhs": rng.random(3)}) == expected
            assert own_device("cuda", None) == "cuda"
            on_device = SimpleNamespace(__dlpack_device__=lambda: (2, 0))
            assert own_device("cuda", group, {"rhs": on_device}) == "cuda"
            if group.size > 1:
                lines = group.size * 3
                for along, pivot in ((0, None), (1, None), (1, True)):
                    options = {"device": "cuda", "group": group, "split": Slab(along)}
                    shape = (3, 5) if along == 0 else (lines, 5)
                    parts = [np.full(shape, value) for value in (-1.0, 4.0, -1.0)]
                    factor = factor_tridiagonal(*parts, pivot=pivot, **options)
                    assert factor.info.device == group.rank % count
                    assert factor.solve(rng.random(shape)).shape == shape


def check_device_that_a_rank_lacks(group, rng):
    """All ranks raise at once, and the group can be used afterwards."""
    if group.size == 1:
        return
    poisson = device_poisson.ranks_poisson.PROBLEMS["values"]
    transport = device_transport.PROBLEMS["values"]
    kind = BackendError if group.rank == 1 else DistributedError
    with shared_device.in_place_of_cuda():
        for solver, problem, options in (
            (HeatADI, (), device_heat.PLANE),
            (FastPoisson, (), poisson),
            (LMSOR, (device_relaxation.flow((20, 20)),), {}),
            (RedBlackSOR, ((20, 20),), {"boundary": 1.0, "spacing": 1.0}),
            (GCEIDD, (transport,), device_transport.METHOD),
        ):
            device = f"cuda:{int(group.rank == 1)}"
            found = {"device": device} | options | {"group": group, "split": Slab(0)}
            with pytest.raises(kind, match="there is no device cuda:1: 1 in all"):
                solver(*problem, **found)


def check_memory_that_a_rank_lacks(group, rng):
    """Memory of a device that is allocated after the options were compared."""
    if group.size == 1:
        return
    kind = MemoryError if group.rank == 1 else DistributedError
    heat = device_heat.fine(device_heat.PROBLEMS["values"])
    poisson = device_poisson.ranks_poisson.PROBLEMS["values"]
    with shared_device.in_place_of_cuda() as device:
        options = {"group": anew(group), "split": Slab(0)}
        for make, call in (
            (lambda: device_heat.OnDevice(**heat, **options), lambda solver: solver.step(5)),
            (lambda: device_poisson.OnDevice(**poisson, **options), lambda one: one.solve(1.0)),
        ):
            solver = make()
            full = mock.patch.object(device, "Buffer", side_effect=MemoryError("none is left"))
            with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none is"):
                call(solver)
            call(solver)


def check_memory_for_nccl_that_a_rank_lacks(group, rng):
    """Memory for the first messages, and for larger ones than before."""
    if group.size == 1:
        return
    kind = MemoryError if group.rank == 1 else DistributedError
    fields = rng.standard_normal((2, group.size, 5, 400))
    with devices_with_nccl() as device:
        repeated, made = anew(group, links=("nccl",)), []
        for part, shape in ((fields[0, ..., :2], (5, 2)), (fields[1], (5, 400))):
            store = field_on_device(shape)
            store.set("u", part[group.rank])
            full = mock.patch.object(device, "Buffer", side_effect=MemoryError("none is left"))
            for _ in range(2):
                with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none"):
                    halo_between(repeated, store, 0, 1)
            made.append((halo_between(repeated, store, 0, 1), store, part))
        for halo, store, part in made:
            halo.refresh("u")
            found = store.get("u")
            np.testing.assert_array_equal(found[0], part[(group.rank - 1) % group.size, -2])
            np.testing.assert_array_equal(found[-1], part[(group.rank + 1) % group.size, 1])


def check_heat_goes_on_after_an_error_of_cut_lines(group, rng):
    """A rank that has no memory for the first step with cut lines leaves the field as it was."""
    if group.size == 1:
        return
    problem = device_heat.fine(device_heat.PROBLEMS["values"])
    kind = MemoryError if group.rank == 1 else DistributedError
    with shared_device.in_place_of_cuda():
        options = {"group": anew(group), "split": Slab(0)}
        one = device_heat.OnDevice(**problem).step(5)
        split = device_heat.OnDevice(**problem, **options).step(5)
        before = split.u.copy()
        one.dt = split.dt = 1000 * problem["dt"]
        full = failing("values on a device", MemoryError("none is left"))
        with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none is"):
            split.step(1)
        np.testing.assert_array_equal(split.u, before)
        same(options["group"], split.step(3), one.step(3).u, 0, 1e-12)


def check_command_on_a_rank_without_devices(group, rng):
    """Rank 0 says at once what rank 1 lacks."""
    if group.size == 1:
        return
    folder = group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0]
    lacks = failing("backend", BackendError("none is here"))
    errors = io.StringIO()
    device = shared_device.in_place_of_cuda()
    with lacks if group.rank == 1 else nullcontext(), redirect_stderr(errors), device:
        status = main(["run", "heat", "--device", "cuda", "--no-plot", "--output", folder])
    assert status == 1
    assert errors.getvalue().endswith("none is here\n" if group.rank == 0 else "")


@contextmanager
def devices_with_nccl(**options):
    with shared_device.in_place_of_cuda(**options) as device, shared_nccl.in_place_of_nccl(device):
        yield device


def exchange_of(group, make=None):
    """Return how the halo of a solver travels, or of another one."""
    options = {"group": group, "split": Slab(0)}
    if make is device_relaxation.plate:
        solver = make((45, 30), **options)
    elif make is device_transport.OnDevice:
        solver = make(device_transport.PROBLEMS["values"], **device_transport.METHOD, **options)
    else:
        solver = device_heat.OnDevice(**device_heat.fine(device_heat.PROBLEMS["values"]), **options)
    return solver.result().exchange


def run(group, rng, links, omitted=()):
    for module in (device_halo, device_heat, device_poisson, device_relaxation, device_transport):
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and name not in (*LARGE, *omitted):
                check(group, rng, links)
