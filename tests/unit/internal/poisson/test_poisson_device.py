"""FastPoisson on a device made of host memory: panels, buffers, sides and arrays of a library.

What the kernels compute is tested in test_transform_elements.py and, with cuFFT, in tests/gpu.
"""

import copy
import functools
import itertools
from contextlib import nullcontext

import fake_device
import numpy as np
import poisson_pairs
import pytest
from poisson_pairs import (
    EDGES,
    ONE_AXIS,
    PAIRS,
    check_ocean,
    check_one_axis,
    check_same_solution,
    right_side,
    set_least_in_parts,
    set_least_longer,
    set_mirrored,
    set_no_graphs,
    solvers,
)
from poisson_random import check_random_problems, check_random_sides
from transform_device import Device, Plan, PlanOfWaves, Products

from pysolvers import (
    Dirichlet,
    FastPoisson,
    Neumann,
    SingularSystemError,
    SingularSystemWarning,
)
from pysolvers._runtime import device as _runtime_device, interop
from pysolvers._runtime.streams import Stream
from pysolvers.poisson import _device, _longer, _mirrored, _waves
from pysolvers.poisson._methods import methods_of


@pytest.fixture
def device(monkeypatch):
    with fake_device.in_place_of_cuda(Device()) as fake:
        for module in (_waves, _mirrored):
            monkeypatch.setattr(module, "CufftPlan", functools.partial(PlanOfWaves, fake))
        monkeypatch.setattr(_device, "CufftPlan", Plan)
        for module in (_device, _longer, _mirrored):
            monkeypatch.setattr(module, "products", lambda _: Products(fake))
        monkeypatch.setattr(_longer, "_WORK", 256)
        yield fake


def sides(pair, rng, shape, axis, dtype):
    """Return the conditions of the two sides of an axis, with random values."""
    if pair == "PP":
        return "periodic"
    kinds = {"D": Dirichlet, "N": Neumann}
    side = shape[:axis] + shape[axis + 1 :]
    values = rng.uniform(-1, 1, (2, *side)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        values = values * (1 + 2j)
    return [kinds[letter](value) for letter, value in zip(pair, values, strict=True)]


def boundary_of(rng, shape, ends, dtype=np.float64):
    boundary = {}
    for axis, pair in enumerate(ends):
        name = "xyz"[len(shape) - 1 - axis]
        found = sides(pair, rng, shape, axis, dtype)
        if pair == "PP":
            boundary[name] = found
        else:
            boundary[name + "-"], boundary[name + "+"] = found
    return boundary


def pair_of_solvers(shape, boundary, **options):
    """Return the same solver on the CPU and on the device."""
    given = {"boundary": boundary, "on_incompatible": "ignore"} | options
    spacing = tuple(0.3 + 0.1 * k for k in range(len(shape)))
    return [FastPoisson(shape, spacing, device=d, **given) for d in ("cpu", "cuda")]


def near(actual, expected):
    most = 200 * np.finfo(expected.dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=most)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_rectangle_is_that_of_the_cpu(device, rng, grid, y, x, dtype):
    check_same_solution(rng, (9, 7), [y, x], grid=grid, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("panel", [1, 700, 2000, 1 << 24])
@pytest.mark.parametrize(
    "ends", [("DN", "PP", "DD"), ("PP", "NN", "NN"), ("PP", "PP", "PP"), ("DD", "DD", "ND")]
)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_box_in_any_panels_is_that_of_the_cpu(monkeypatch, device, rng, grid, ends, panel, dtype):
    monkeypatch.setattr(_device, "_PANEL", panel)
    device.packs = False
    shape = (6, 5, 9)
    boundary = boundary_of(rng, shape, ends, dtype)
    here, there = pair_of_solvers(shape, boundary, grid=grid, dtype=dtype)
    f = rng.uniform(-1, 1, shape).astype(dtype)

    near(there.solve(f), here.solve(f))
    loads = [call for call in device.calls if call[0] == "load"]
    if panel == 1:  # one column each
        assert all(shape[:2] == (1, 1) for _, shape in loads)
    if panel == 1 << 24:
        assert len(loads) == 4


@pytest.mark.parametrize("shape", [(5, 1, 7), (2, 2, 2), (6, 5, 8), (3, 8, 9), (4, 6, 1)])
@pytest.mark.parametrize("x", ["DD", "NN", "PP"])
@pytest.mark.parametrize("y", ["DD", "NN", "PP"])
@pytest.mark.parametrize("z", ["DD", "DN", "NN", "PP"])
def test_box_of_packed_waves_is_that_of_the_cpu(device, rng, z, y, x, shape):
    ends = [z, y, x]
    if any(pair == "PP" and n < 2 for pair, n in zip(ends, shape, strict=True)):
        pytest.skip("a periodic axis has at least two cells")
    check_same_solution(rng, shape, ends, grid="cells")
    assert [call for call in device.calls if call[0] == "waves_load"] == [("waves_load", shape)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("ends", ["NN", "DN", "ND", "PP"])
def test_thin_layers_of_an_ocean(device, ends, dtype):
    check_ocean(ends, dtype, 64, 20)


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("y", ["DD", "NN", "PP"])
@pytest.mark.parametrize("x", PAIRS)
def test_waves_are_packed_where_they_can_be(device, rng, x, y, packs):
    device.packs = packs
    for grid in ("cells", "nodes"):
        for dtype in ("float64", "complex128"):
            device.calls.clear()
            shape = (6, 7)
            boundary = boundary_of(rng, shape, [y, x], dtype)
            here, there = pair_of_solvers(shape, boundary, grid=grid, dtype=dtype)
            f = rng.uniform(-1, 1, shape).astype(dtype)

            near(there.solve(f), here.solve(f))
            suits = x in ("DD", "NN", "PP")
            packed = packs and dtype == "float64" and suits
            loads = {call[0] for call in device.calls if "load" in call[0]} - {"upload", "download"}
            assert loads == {"waves_load" if packed else "load"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [3, 4, 5, 7, 8, 9, 17, 21, 25, 33, 49])
@pytest.mark.parametrize("x", ["DD", "NN"])
@pytest.mark.parametrize("y", ["DD", "ND", "NN", "PP"])
def test_waves_of_nodes_in_parts(monkeypatch, device, rng, y, x, size, dtype):
    set_least_in_parts(monkeypatch, 0)
    here, there = solvers(rng, (7, size), [y, x], dtype=dtype)
    f = right_side(rng, (7, size), dtype)

    poisson_pairs.near(there.solve(f), here.solve(f), here)
    halvings = {5: 1, 7: 1, 9: 2, 17: 3, 21: 2, 25: 3, 33: 3, 49: 3}.get(size, 0)
    assert there._device._packed._halvings == halvings


def test_packed_waves_are_solved_in_place(device, rng):
    shape = (9, 8)
    for boundary in ({"x": 1.0, "y": Neumann(2.0)}, {"x": 0.0, "y": Neumann(0.0)}):
        here, there = pair_of_solvers(shape, boundary, grid="cells")
        f = rng.uniform(-1, 1, shape)
        array, wide = device.array(f), device.array(np.zeros((9, 16)))

        there.solve(array, out=wide.view(np.s_[:, ::2]))
        near(wide.get()[:, ::2], here.solve(f))
        assert not wide.get()[:, 1::2].any()
        np.testing.assert_array_equal(array.get(), f)
        there.solve(array, out=array)
        near(array.get(), here.solve(f))


@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_interval_is_that_of_the_cpu(device, rng, x, dtype):
    check_same_solution(rng, (11,), [x], dtype=dtype)


@pytest.mark.parametrize("y", PAIRS)
def test_stretched_rectangle_is_that_of_the_cpu(device, rng, y):
    check_same_solution(rng, (6, 8), [y, "ND"], x=np.cumsum(rng.uniform(0.1, 1, 8)))


@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_arrays_of_a_library_stay_on_the_device(device, rng, grid):
    shape = (9, 8)
    boundary = boundary_of(rng, shape, ["DD", "ND"])
    here, there = pair_of_solvers(shape, boundary, grid=grid)
    f = rng.uniform(-1, 1, shape)
    expected = here.solve(f)
    array = fake_device.Array(device, f, stream=77)
    wide = device.array(np.zeros((18, 8)))
    device.calls.clear()

    u = there.solve(array)
    out = wide.view(np.s_[::2])
    assert there.solve(array, out=out) is out

    near(u.get(), expected)
    near(wide.get()[::2], expected)
    assert not wide.get()[1::2].any()
    np.testing.assert_array_equal(array.get(), f)
    assert not [c for c in device.calls if c[0] in ("download", "upload", "wait")]
    assert {c[1] for c in device.calls if c[0] == "solve"} == {77}
    there.solve(array, out=array)
    near(array.get(), expected)


class Quick(interop.Library):
    """A library whose arrays need no checks, on its current stream 77."""

    has_fast_access = True

    def __init__(self, device):
        self.device = device

    @property
    def fast_access(self):
        def empty(like, ordinal):
            return self.device.array(np.zeros(like.shape, like.__cuda_array_interface__["typestr"]))

        return None, None, None, empty

    def stream(self, value, ordinal):
        return Stream(77)


@pytest.mark.parametrize("case", ["packed", "pipe", "box", "two stretched", "negative box"])
def test_plain_arrays_of_a_library_are_solved_without_general_checks(
    monkeypatch, device, rng, case
):
    shape, spacing, options = ONE_AXIS[case]
    monkeypatch.setattr(fake_device.Array, "shape", property(shape_of), raising=False)
    library = Quick(device)
    monkeypatch.setattr(_device, "library_of", lambda _: library)
    here, there = (
        FastPoisson(shape, spacing, device=d, grid="cells", **options) for d in ("cpu", "cuda")
    )
    f = rng.uniform(-1, 1, shape)
    array, single = device.array(f), device.array(f.astype(np.float32))
    wide = device.array(np.zeros((*shape, 2)))
    with monkeypatch.context() as quick:
        quick.setattr(_device, "find_target", None)  # which the general way needs
        before = device.live
        u = there.solve(array)
        near(u.get(), here.solve(f))
        assert {call[1] for call in device.calls if call[0] == "solve"} == {77}
        out = device.array(np.full(shape, np.nan))
        assert there.solve(array, out=out) is out
        near(out.get(), here.solve(f))
        del u, out
        assert device.live == before
        np.testing.assert_array_equal(array.get(), f)
    there.solve(array, out=wide.view(np.s_[..., 0]))  # strides
    near(wide.get()[..., 0], here.solve(f))
    with pytest.raises(TypeError, match="cannot be converted to float64"):
        there.solve(single)
    flat = device.array(np.zeros(2 * f.size))
    first, second = (flat.view(np.s_[start : start + f.size]).reshape(shape) for start in (0, 1))
    with pytest.raises(ValueError, match="overlap"):
        there.solve(second, out=first)
    there.solve(array, out=array)
    near(array.get(), here.solve(f))


def test_sides_of_large_fields_are_copied_on_another_stream(monkeypatch, device, rng):
    """Fields that are too large for a graph."""
    set_no_graphs(monkeypatch)
    monkeypatch.setattr(_runtime_device, "private_stream", lambda _: nullcontext(Stream(50)))
    monkeypatch.setattr(fake_device.Array, "shape", property(shape_of), raising=False)
    library = Quick(device)
    monkeypatch.setattr(_device, "library_of", lambda _: library)
    here, there = solvers(rng, (9, 8), ["DD", "DN"])
    f = right_side(rng, (9, 8))
    array, out = device.array(f), device.array(np.zeros((9, 8)))
    device.calls.clear()

    there.solve(array, out=out)

    poisson_pairs.near(out.get(), here.solve(f), here)
    assert [call[1:] for call in device.calls if call[0] == "order"] == [(77, 50), (50, 77)]
    monkeypatch.setattr(there._device, "_run", raise_error)
    device.calls.clear()
    with pytest.raises(ValueError, match="no kernel"):
        there.solve(array, out=out)
    # Other work follows the copies after an error, too.
    assert [call[1:] for call in device.calls if call[0] == "order"] == [(77, 50), (50, 77)]


def raise_error(*_arguments, **_options):
    raise ValueError("no kernel")


class Graphs(Quick):
    """A library that names its arrays, so that repeated solves become graphs."""

    def identity(self, value):
        interface = value.__cuda_array_interface__
        return interface["data"][0], interface["shape"], interface["strides"]


@pytest.mark.parametrize(
    ("size", "grid", "ends"),
    [
        (17, "nodes", ("DD", "DD")),
        (17, "nodes", ("ND", "NN")),
        (17, "cells", ("NN", "PP")),
        (17, "cells", ("DD", "DD")),
        (18, "nodes", ("DD", "DD")),
        (18, "nodes", ("ND", "DD")),
        (18, "nodes", ("NN", "NN")),
    ],
)
def test_repeated_solves_are_graphs_with_the_values_of_sides(
    monkeypatch, device, rng, size, grid, ends
):
    """17 intervals or cells between two Dirichlet or Neumann sides are a part of 24."""
    graphs, shape, streams = [], (9, size), itertools.count(100)
    set_least_longer(monkeypatch, 0)

    def captured(own, work):
        graphs.append((own, work))
        place = own.backend, own.ordinal, own.operation
        return lambda: work(_runtime_device._Captured(*place, Stream(99)))

    def private_stream(_):
        return nullcontext(Stream(next(streams)))

    monkeypatch.setattr(_runtime_device, "private_stream", private_stream)

    monkeypatch.setattr(fake_device.Array, "shape", property(shape_of), raising=False)
    monkeypatch.setattr(_runtime_device.Device, "captured", captured)
    monkeypatch.setattr(_runtime_device.Device, "launch", lambda own, graph: graph())
    set_least_in_parts(monkeypatch, 0)
    library = Graphs(device)
    monkeypatch.setattr(_device, "library_of", lambda _: library)
    here, there = solvers(rng, shape, ends, grid=grid)
    array, out = device.array(np.zeros(shape)), device.array(np.zeros(shape))

    for count in range(5):
        f = right_side(rng, shape)
        with device.open():
            array._shadow()[...] = f
        there.solve(array, out=out)
        poisson_pairs.near(out.get(), here.solve(f), here)
        assert len(graphs) == min(count, 1)
    packed = there._device._packed
    is_longer = size == (18 if grid == "nodes" else 17) and ends[1] in ("DD", "NN")
    assert isinstance(packed, _longer.LongerGrid) == is_longer
    in_parts = grid == "nodes" and ends[1] != "PP" and (size == 17 or is_longer)
    parts = 4 if in_parts else 1
    # The values of the sides at the same time as the solve, and its parts at the same time.
    has_values = grid == "nodes" and "D" in "".join(ends)
    first = 100 + has_values
    expected = [
        *([(99, 100)] if has_values else []),
        *((99, first + k) for k in range(parts - 1)),
        *((first + k, 99) for k in range(parts - 1)),
    ]
    orders = [call[1:] for call in device.calls if call[0] == "order"]
    assert orders[: len(expected)] == expected
    assert not has_values or (100, 99) in orders
    kind = Dirichlet if here.boundary["y-"] == "Dirichlet" else Neumann
    given = {"y-": kind(2.0)}  # not the value of the graph
    poisson_pairs.near(there.solve(f, boundary=given), here.solve(f, boundary=given), here)


def shape_of(array):
    return array.__cuda_array_interface__["shape"]


def test_values_of_sides_change_from_call_to_call(device, rng):
    shape = (7, 8)
    boundary = {"x-": 1.0, "x+": Neumann(), "y-": Neumann(2.0), "y+": 0.5}
    here, there = pair_of_solvers(shape, boundary)
    f = rng.uniform(-1, 1, shape)
    changes = [{"x-": rng.uniform(-1, 1, 7)}, {"y-": Neumann(0.0)}, {"y+": -1.0, "x-": 0.0}, {}]

    for change in changes:
        near(there.solve(f, boundary=change), here.solve(f, boundary=change))


def test_forms_of_the_right_side(device):
    here, there = pair_of_solvers((6, 7), {"x": 0.0, "y": Neumann()})
    forms = [1.0, 2, np.arange(7.0), [[1]], lambda x, y: x + y, np.ones((6, 7), np.float32)]

    for f in forms:
        near(there.solve(f), here.solve(f))
    row = device.array(np.arange(7.0))
    near(there.solve(row).get(), here.solve(np.arange(7.0)))


def test_errors_name_the_remedy(device):
    here, there = pair_of_solvers((6, 7), 0.0)
    with pytest.raises(TypeError, match="create FastPoisson with device='cuda'"):
        here.solve(device.array(np.zeros((6, 7))))
    with pytest.raises(ValueError, match="stream must be None on the CPU"):
        here.solve(0.0, stream=7)
    with pytest.raises(ValueError, match=r"f must broadcast to shape \(6, 7\), got shape \(7, 6\)"):
        there.solve(np.zeros((7, 6)))
    with pytest.raises(ValueError, match=r"f must broadcast to shape \(6, 7\), got shape \(5, 7\)"):
        there.solve(device.array(np.zeros((5, 7))))
    with pytest.raises(TypeError, match="the solver is float64"):
        there.solve(device.array(np.zeros((6, 7), np.complex128)))
    with pytest.raises(
        TypeError, match=r"FastPoisson on cuda:0 cannot be pickled .* create it again"
    ):
        copy.deepcopy(there)


def test_memory_of_a_call_is_freed(device):
    solver = FastPoisson((9, 8), 0.1, boundary=1.0, device="cuda")
    before = device.live

    solver.solve(np.zeros((9, 8)))

    assert device.live == before
    assert solver.nbytes > 0
    del solver
    assert device.live == 0


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("case", ONE_AXIS)
def test_one_axis_of_lines_and_batches_are_those_of_the_cpu(device, rng, case, dtype):
    check_one_axis(rng, case, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("spacing", [0.02, 0.2, 5.0])
@pytest.mark.parametrize("y", ["DD", "NN", "ND", "DN"])
@pytest.mark.parametrize("x", ["DD", "NN"])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_slow_lengths_as_a_part_of_a_longer_grid(
    monkeypatch, device, rng, grid, x, y, spacing, dtype
):
    """17 intervals or cells as a part of 24: long waves only (0.02), or all of them."""
    set_least_longer(monkeypatch, 0)
    monkeypatch.setattr(_longer, "_LEAST_COLUMNS", 2)  # several products
    monkeypatch.setattr(_longer, "_COLUMNS", 1)
    set_least_in_parts(monkeypatch, 0)
    c = 0.1 if (x, y) == ("DD", "ND") else 0.0
    values = {"x-": 0.5, "x+": -1.0, "y-": 0.3, "y+": 0.2}
    kinds = zip(values, x + y, strict=True)
    boundary = {side: {"D": Dirichlet, "N": Neumann}[kind](values[side]) for side, kind in kinds}
    shape = (40, 17 + (grid == "nodes"))
    options = {"boundary": boundary, "helmholtz": c, "dtype": dtype, "grid": grid}
    options["on_incompatible"] = "ignore"
    here, there = (FastPoisson(shape, (0.5, spacing), device=d, **options) for d in ("cpu", "cuda"))
    f = right_side(rng, shape, dtype)
    expected = here.solve(f)

    poisson_pairs.near(there.solve(f), expected, here)
    packed = there._device._packed
    # Of Neumann sides rounding errors would grow: the first wave hardly decays in 7 nodes.
    assert isinstance(packed, _longer.LongerGrid) == (x == "DD" or spacing < 1)
    if x == "NN" and spacing > 1:
        return
    ((rows, waves, _), *_) = (call[1] for call in device.calls if call[0] == "matrices")
    assert spacing > 0.02 or waves < rows
    array = device.array(f)
    batch = device.array(np.stack([f, 2 * f]))
    first, second = there.solve(batch).get()
    poisson_pairs.near(first, expected, here)
    poisson_pairs.near(second, here.solve(2 * f), here)
    wide = device.array(np.zeros((shape[0], 2 * shape[1]), dtype))
    there.solve(array, out=wide.view(np.s_[:, ::2]))
    poisson_pairs.near(wide.get()[:, ::2], expected, here)
    poisson_pairs.near(there.solve(array, out=array).get(), expected, here)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("z", PAIRS)
@pytest.mark.parametrize("y", ["DD", "NN"])
@pytest.mark.parametrize("x", ["DD", "NN", "stretched"])
@pytest.mark.parametrize(
    "shape", [(5, 8, 9), (6, 9, 12), (4, 10, 7), (4, 9, 25), (4, 7, 17), (4, 33, 9)]
)
def test_products_of_both_axes_of_a_plane(monkeypatch, device, rng, shape, x, y, z, dtype):
    """Even and odd eigenvectors, and lines along the first axis."""
    set_mirrored(monkeypatch)
    edges = np.array([0, 0.1, 0.3, 0.6, 1.0, 1.4])
    edges = np.concatenate([edges, 3.0 - edges[::-1]])[: shape[-1]]
    edges = 0.5 * (edges - edges[::-1])  # symmetric
    coordinates = edges - edges[0] if x == "stretched" and shape[-1] == 12 else None
    ends = (z, y, "DD" if x == "stretched" else x)
    here, there = solvers(rng, shape, ends, dtype=dtype, x=coordinates)
    f = right_side(rng, shape, dtype)

    poisson_pairs.near(there.solve(f), here.solve(f), here)
    assert there.methods == {"z": "lines", "y": "eigenvectors", "x": "eigenvectors"}
    in_five = -3 if shape[-2] % 8 == 1 else -2
    assert poisson_pairs.halvings_of(there) == (in_five if shape[-1] % 8 == 1 else -1)
    assert isinstance(there._device._packed, _waves.PackedWaves)
    batch = np.stack([f, 2 * f])
    poisson_pairs.near(there.solve(batch)[1], here.solve(2 * f), here)


@pytest.mark.parametrize(
    "ends",
    [("DD", "NN"), ("PP", "DN"), ("ND", "PP"), ("PP", "DD", "NN"), ("NN", "PP", "PP"), ("DN",)],
)
@pytest.mark.parametrize(("grid", "dtype"), [("nodes", "float32"), ("cells", "complex128")])
def test_fields_of_a_batch_share_their_calls(monkeypatch, device, rng, grid, ends, dtype):
    shape, batch = (6, 5, 9)[: len(ends)], (2, 4)
    here, there = solvers(rng, shape, ends, grid=grid, dtype=dtype)
    fields = right_side(rng, (*batch, *shape), dtype)
    expected = [[here.solve(f) for f in row] for row in fields]
    loads = []
    for given in (fields[0], fields[0, :1]):
        device.calls.clear()
        there.solve(given)
        loads.append(len([call for call in device.calls if call[0] in ("load", "waves_load")]))
    wide = device.array(np.zeros((*batch, *shape[:-1], 2 * shape[-1]), dtype))
    most = int(np.prod(shape)) * np.dtype(dtype).itemsize

    for count in (3, 100):  # fields at once
        monkeypatch.setattr(_device, "_TOGETHER", count * most)
        for array in (device.array(fields), device.array(fields[:, ::-1]).view(np.s_[:, ::-1])):
            result = there.solve(array).get()
            there.solve(array, out=wide.view(np.s_[..., ::2]))
            for row, others, strided in zip(result, expected, wide.get()[..., ::2], strict=True):
                for u, x, v in zip(row, others, strided, strict=True):
                    poisson_pairs.near(u, x, here)
                    np.testing.assert_array_equal(u, v)
    assert loads[0] == loads[1] or there._device._packed is not None


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("case", ["symmetric", "products and waves", "first axis", "negative"])
def test_products_of_even_and_odd_eigenvectors(monkeypatch, device, rng, case, dtype):
    monkeypatch.setattr(_device, "_LEAST_HALVED", 2)
    check_one_axis(rng, case, dtype)
    sizes = {call[1][1] for call in device.calls if call[0] == "product"}
    assert case == "products and waves" or max(sizes) < 7


@pytest.mark.parametrize("size", [6, 7])
@pytest.mark.parametrize("is_lined", [True, False])
def test_halved_products_of_a_plane(monkeypatch, device, rng, size, is_lined):
    monkeypatch.setattr(_device, "_LEAST_HALVED", 2)
    options = {"boundary": 0.0, "grid": "cells", "helmholtz": 0.5 if is_lined else -0.5}
    methods = {"y": "eigenvectors"} | ({} if is_lined else {"x": "eigenvectors"})
    here, there = (
        FastPoisson((size, size), 0.2, device=d, methods=methods, **options)
        for d in ("cpu", "cuda")
    )
    f = rng.uniform(-1, 1, (size, size))
    array = device.array(f)

    near(there.solve(array).get(), here.solve(f))
    np.testing.assert_array_equal(array.get(), f)
    there.solve(array, out=array)
    near(array.get(), here.solve(f))


def methods(shape, spacing=0.2, boundary=0.0, **options):
    """Return the methods of a device, in the order x, y, z."""
    given = {"boundary": boundary, "grid": "cells", "device": "cuda", **options}
    return tuple(FastPoisson(shape, spacing, **given).methods.values())


def test_choice_of_methods(device):
    """A slow transform is replaced by lines, and a second one by a short product."""
    slow, slower = 131, 2 * 3137  # cuFFT has kernels for prime factors up to 127
    assert methods((6, 8)) == ("transform", "lines")  # packed waves: the lines are the columns
    assert methods((slow, 8)) == ("transform", "lines")
    assert methods((4, 6, 8)) == ("transform", "transform", "lines")
    assert methods((6, 8), dtype="complex64") == ("lines", "transform")
    assert methods((slow, 8), dtype="complex64") == ("lines", "eigenvectors")
    assert methods((slower, 8), dtype="complex64") == ("transform", "lines")
    assert methods((8, slower)) == ("lines", "transform")
    assert methods((slow, slow)) == ("lines", "eigenvectors")
    assert methods((slower, slow)) == ("eigenvectors", "lines")
    assert methods((slow, slow), boundary="periodic") == ("lines", "transform")
    assert methods((6, 8), helmholtz=-1.0) == ("eigenvectors", "transform")
    assert methods((6, 8), spacing=(EDGES[0], EDGES[1][:7])) == ("lines", "eigenvectors")


def test_methods_of_a_device_that_the_caller_chooses(device, rng):
    """Lines along x are not those of packed waves."""
    f, found = rng.uniform(-1, 1, (6, 8)), []
    for given in (None, {"y": "lines"}, {"x": "lines"}, {"x": "lines", "y": "eigenvectors"}):
        solver = FastPoisson((6, 8), 0.2, boundary=0.0, grid="cells", device="cuda", methods=given)
        found.append(solver.solve(f))
        assert (solver._device._packed is not None) == (solver.methods["y"] == "lines")
        assert given is None or given.items() <= solver.methods.items()
    for other in found[1:]:
        near(other, found[0])


class Sizes:
    """An axis of nodes between Dirichlet sides, for the choice of methods."""

    has_transform, is_periodic, is_symmetric = True, False, True
    transform = "dst", 1

    def __init__(self, name, intervals):
        self.name, self.intervals, self.count = name, intervals, intervals - 1


@pytest.mark.parametrize(
    ("intervals", "method"),
    [(999, "transform"), (1009, "eigenvectors"), (1999, "transform"), (2003, "transform"),
     (2999, "eigenvectors"), (4099, "eigenvectors"), (7993, "transform")],
)  # fmt: skip
def test_products_replace_slow_transforms_from_the_measured_size_on(intervals, method):
    """Whole products, then transforms, then products by halves; 1999 and 2999 were measured."""
    axes = [Sizes(name, intervals) for name in "yx"]
    found = methods_of(axes, None, helmholtz=0.0, on_device=True)

    assert found == (method, "lines")


@pytest.mark.parametrize(
    ("intervals", "count"), [(8, 0), (96, 0), (192, 2), (510, 2), (512, 2), (1000, 0)]
)
def test_products_replace_extended_transforms_of_boxes(intervals, count):
    """511^3 nodes by transforms 25.3 ms, 512^3 by products 12.2 ms (H200)."""
    axes = [Sizes(name, intervals) for name in "zyx"]
    found = methods_of(axes, None, helmholtz=0.0, on_device=True)

    assert found == (*["eigenvectors" if count else "transform"] * 2, "lines")


def test_what_a_device_does_not_offer(device):
    with pytest.raises(ValueError, match="axis must have 'lines' or 'eigenvectors'"):
        methods((7, 8), methods={"x": "transform", "y": "transform"})


@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_products_read_and_write_dense_arrays_of_a_library(device, rng, grid):
    spacing = np.linspace(0, 1, 8 + (grid == "cells")) ** 2
    options = {"boundary": Neumann(), "grid": grid, "helmholtz": 0.5}
    here, there = (
        FastPoisson((8, 8), (spacing, spacing), device=d, **options) for d in ("cpu", "cuda")
    )
    f = rng.uniform(-1, 1, (8, 8))
    array, wide = device.array(f), device.array(np.zeros((8, 16)))
    device.calls.clear()

    near(there.solve(array).get(), here.solve(f))
    assert not [call for call in device.calls if call[0] == "relayout"]
    there.solve(array, out=wide.view(np.s_[:, ::2]))
    near(wide.get()[:, ::2], here.solve(f))
    assert not wide.get()[:, 1::2].any()
    np.testing.assert_array_equal(array.get(), f)
    there.solve(array, out=array)
    near(array.get(), here.solve(f))


@pytest.mark.parametrize(
    ("shape", "grid", "batch", "words"),
    [((33, 33), "cells", 0, 10.5), ((40, 18), "nodes", 0, 29.0), ((33, 33), "cells", 3, 7.0)],
)
def test_words_of_the_benchmark(monkeypatch, device, shape, grid, batch, words):
    """Packed waves; 17 intervals as a part of 24, which has the extension; a batch by panels."""
    bench_poisson = pytest.importorskip("benchmarks.poisson")
    set_least_longer(monkeypatch, 0)
    solver = FastPoisson(shape, 0.1, boundary=0.0, grid=grid, device="cuda")
    if batch:
        solver.solve(np.zeros((batch, *shape)))
    assert bench_poisson.words_of(solver, batch=bool(batch)) == pytest.approx(words, rel=0.15)


def test_random_problems_have_the_exact_solution(device, rng):
    check_random_problems(rng, 40, device="cuda")


def test_values_of_sides_have_the_exact_solution(device, rng):
    check_random_sides(rng, 40, device="cuda")


@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_number_next_to_an_eigenvalue(device, grid):
    """The distance is that of the CPU; an eigenvalue is an error."""
    options = {"boundary": {"x": 0.0, "y": Neumann()}, "grid": grid}
    for number in (0.0, 0.8, -3.0):
        given = options | {"helmholtz": number}
        here, there = (FastPoisson((7, 9), 0.3, device=d, **given) for d in ("cpu", "cuda"))
        assert there.eigenvalue_distance == pytest.approx(here.eigenvalue_distance, rel=1e-13)
    count = 8 if grid == "nodes" else 9
    first = -4 / 0.09 * np.sin(np.pi / (2 * count)) ** 2  # constant along y
    with pytest.raises(SingularSystemError):
        FastPoisson((7, 9), 0.3, device="cuda", helmholtz=first, **options)
    with pytest.warns(SingularSystemWarning):
        FastPoisson((7, 9), 0.3, device="cuda", helmholtz=first * (1 + 1e-10), **options)
