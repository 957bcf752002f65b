"""FastPoisson on a device made of host memory: panels, buffers, sides and arrays of a library.

The transforms of this device are those of SciPy: `transform_load` copies the values to the lines,
the plan of cuFFT does nothing, and `transform_store` transforms them. What the kernels compute is
tested in test_transform_elements.py and, with cuFFT, in tests/gpu.
"""

import copy
import functools

import fake_device
import numpy as np
import pytest
import scipy.fft

from pysolvers import Dirichlet, FastPoisson, Neumann
from pysolvers._runtime.cufft import COMPLEX_TO_REAL
from pysolvers.poisson import _device, _waves

KINDS = ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4", "rfft", "irfft")


class Device(fake_device.Device):
    """A device with the entries of transforms; `packs`: it solves packed waves."""

    SIZE = 1 << 27
    packs = True
    TRANSFORMS = dict(zip(KINDS, range(len(KINDS)), strict=True))  # noqa: RUF012

    def transform_shape(self, kind, size):
        pairs = 2 * (size // 2 + 1)
        before = pairs if KINDS[kind] == "irfft" else size
        after = pairs if KINDS[kind] == "rfft" else size
        return 0, before, after, size, pairs

    def transform_load(self, kind, size, field, lines, nbytes, scale, ordinal, stream):
        self.calls.append(("load", field.shape))
        with self.open():
            there = self._lines(field, lines, nbytes, size)
            there[...] = np.nan
            there[..., : field.shape[-1]] = field
        return 0

    def transform_store(self, kind, size, field, lines, nbytes, scale, ordinal, stream):
        name = KINDS[kind]
        with self.open():
            values = self._lines(field, lines, nbytes, size)
            if name == "rfft":
                waves = scipy.fft.rfft(values[..., :size])
                result = np.stack([waves.real, waves.imag], -1).reshape(field.shape)
            elif name == "irfft":
                waves = values[..., ::2] + 1j * values[..., 1::2]
                result = scipy.fft.irfft(waves, size) * size
            else:
                result = getattr(scipy.fft, name[:3])(values[..., :size], int(name[3]))
            field[...] = result * scale
        return 0

    def waves_fit(self, is_float32, planes, ordinal):
        return self.packs and planes > 1

    def waves_load(self, row_kind, kind, field, pitch, waves, nbytes, scale, ordinal, stream):
        self.calls.append(("waves_load", field.shape))
        with self.open():
            lines = self._waves(field.shape, field.dtype, pitch, waves, nbytes)
            lines[...] = np.nan
            rows, values = self._order(field.shape, row_kind, kind)
            signs = self._signs(field.shape, row_kind, kind)
            ordered = (field * signs)[:, rows][:, :, values]
            if KINDS[kind] == "dct1":
                ordered = np.concatenate([ordered, ordered[..., -2:0:-1]], -1)
            if KINDS[kind] == "dst1":
                zero = np.zeros_like(ordered[..., :1])
                ordered = np.concatenate([zero, ordered, zero, -ordered[..., ::-1]], -1)
            lines[:, :, : ordered.shape[2]] = ordered
        return 0

    def waves_store(self, row_kind, kind, field, pitch, waves, nbytes, scale, ordinal, stream):
        with self.open():
            lines = self._waves(field.shape, field.dtype, pitch, waves, nbytes)
            rows, values = self._order(field.shape, row_kind, kind)
            result = np.empty(field.shape)
            begin = int(KINDS[kind] == "dst1")
            result[:, rows[:, None], values] = lines[:, :, begin : begin + field.shape[2]]
            field[...] = result * self._signs(field.shape, row_kind, kind) * scale
        return 0

    def wave_lines(
        self, is_float32, planes, rows, size, pitch, waves, tables, first, inner, last, null,
        is_ring, ordinal, stream,
    ):  # fmt: skip
        """The definition of ps_wave_lines, for all waves at once."""
        dtype = np.dtype(np.float32 if is_float32 else np.float64)
        half = size // 2 + 1
        self.calls.append(("solve", stream))
        with self.open():
            lines = self._waves((planes, rows, size), dtype, pitch, waves, None)
            is_folded = rows == 1 and size % 2 == 0
            shapes = (rows, size if is_folded else 2 * half), (half, 2), (rows, 2)
            shifts, turns, row_turns = (
                fake_device._as_host(table, int(np.prod(shape)) * dtype.itemsize)
                .view(dtype)
                .reshape(shape)
                .astype(float)
                for table, shape in zip(tables, shapes, strict=True)
            )
            given = lines[:, :, : 2 * half].astype(float)
            w = (turns[:, 0] - 1j * turns[:, 1]) * (given[..., ::2] + 1j * given[..., 1::2])
            across = row_turns[:, 0] - 1j * row_turns[:, 1]
            parts = np.empty_like(given)
            for j in range(rows // 2 + 1):
                m = -j % rows
                if m == j:
                    parts[:, j, ::2], parts[:, j, 1::2] = w[:, j].real, w[:, j].imag
                else:
                    p = across[j] * (w[:, j] + w[:, m].conj()) / 2
                    q = across[j] * (w[:, j] - w[:, m].conj()) / 2j
                    parts[:, j, ::2], parts[:, j, 1::2] = p.real, p.imag
                    parts[:, m, ::2], parts[:, m, 1::2] = q.imag, q.real
            if is_folded:  # the place of Im V[0], which is zero, has the shift of the last wave
                shifts = np.append(shifts, 2 * [shifts[0, 1]]).reshape(1, -1)
            matrix = np.zeros((planes, planes))
            for i in range(planes):
                row = first if i == 0 else last if i == planes - 1 else inner
                matrix[i, i] = row[1]
                if i > 0 or is_ring:
                    matrix[i, i - 1] += row[0]
                if i < planes - 1 or is_ring:
                    matrix[i, (i + 1) % planes] += row[2]
            for j, k in np.ndindex(rows, 2 * half):
                own = matrix + shifts[j, k] * np.eye(planes)
                own[0, 0] += null - first[1] if shifts[j, k] == 0 else 0
                parts[:, j, k] = np.linalg.solve(own, parts[:, j, k])
            for j in range(rows // 2 + 1):
                m = -j % rows
                one = parts[:, j, ::2] + 1j * parts[:, j, 1::2]
                if m == j:
                    w[:, j] = one
                else:
                    p = one * across[j].conj()
                    q = (parts[:, m, 1::2] + 1j * parts[:, m, ::2]) * across[j].conj()
                    w[:, j], w[:, m] = p + 1j * q, (p - 1j * q).conj()
            w = w * (turns[:, 0] + 1j * turns[:, 1])
            lines[:, :, : 2 * half : 2], lines[:, :, 1 : 2 * half : 2] = w.real, w.imag
        return 0

    def _waves(self, shape, dtype, pitch, waves, nbytes):
        count = int(np.prod(shape[:2])) * pitch
        assert nbytes in (None, count * dtype.itemsize)
        lines = fake_device._as_host(waves, count * dtype.itemsize).view(dtype)
        return lines.reshape(*shape[:2], pitch)

    @staticmethod
    def _order(shape, *kinds):
        """The values in the order of the lines, along rows and values."""
        orders = (np.arange(n) for n in shape[1:])
        return [
            np.concatenate([j[::2], j[1::2][::-1]]) if KINDS[kind][3:] == "2" else j
            for j, kind in zip(orders, kinds, strict=True)
        ]

    @staticmethod
    def _signs(shape, *kinds):
        signs = [(-1.0 if KINDS[k] == "dst2" else 1.0) ** np.arange(n)
                 for n, k in zip(shape[1:], kinds, strict=True)]  # fmt: skip
        return signs[0][:, None] * signs[1]

    def _lines(self, field, lines, nbytes, size):
        shape = (*field.shape[:2], 2 * (size // 2 + 1))
        need = int(np.prod(shape)) * field.itemsize
        assert need <= nbytes
        return fake_device._as_host(lines, need).view(field.dtype).reshape(shape)

    def accumulate(self, to, source, ordinal, stream):
        with self.open():
            to += source
        return 0

    def centre(self, line, weights, ordinal, stream):
        assert line.shape[:2] == (1, 1)
        with self.open():
            own = fake_device._as_host(weights, line.size * 8).view(np.float64)
            line -= np.average(line, axis=2, weights=own)[..., None].astype(line.dtype)
        return 0


class Plan:
    """A plan that leaves its lines as they are, because transform_store() transforms them."""

    work_bytes = 512

    def __init__(self, *_arguments):
        pass

    def execute(self, lines, work, stream):
        assert lines
        assert work


class PlanOfWaves(Plan):
    """A plan that transforms lines or planes by SciPy."""

    def __init__(self, device, form, lengths, pitch, count, dtype, ordinal):
        self.device, self.form, self.lengths = device, form, lengths
        self.shape, self.dtype = (count, *lengths[:-1], pitch), dtype

    def execute(self, lines, work, stream):
        assert work
        size, axes = self.lengths[-1], tuple(range(1, len(self.shape)))
        with self.device.open():
            nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
            values = fake_device._as_host(lines, nbytes).view(self.dtype).reshape(self.shape)
            waves = values[..., : 2 * (size // 2 + 1)]
            numbers = waves[..., ::2] + 1j * waves[..., 1::2]
            if self.form == COMPLEX_TO_REAL:
                gain = np.prod(self.lengths)
                values[..., :size] = scipy.fft.irfftn(numbers, self.lengths, axes) * gain
            else:
                numbers = scipy.fft.rfftn(values[..., :size], self.lengths, axes)
                waves[..., ::2], waves[..., 1::2] = numbers.real, numbers.imag


@pytest.fixture
def device(monkeypatch):
    with fake_device.in_place_of_cuda(Device()) as fake:
        monkeypatch.setattr(_waves, "CufftPlan", functools.partial(PlanOfWaves, fake))
        monkeypatch.setattr(_device, "CufftPlan", Plan)
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


PAIRS = ("DD", "DN", "ND", "NN", "PP")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_rectangle_is_that_of_the_cpu(device, rng, grid, y, x, dtype):
    shape = (9, 7)
    boundary = boundary_of(rng, shape, [y, x], dtype)
    here, there = pair_of_solvers(shape, boundary, grid=grid, dtype=dtype)
    f = rng.uniform(-1, 1, shape).astype(dtype)

    near(there.solve(f), here.solve(f))


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
    boundary = boundary_of(rng, shape, ends)
    here, there = pair_of_solvers(shape, boundary, grid="cells")
    f = rng.uniform(-1, 1, shape)

    near(there.solve(f), here.solve(f))
    assert [call for call in device.calls if call[0] == "waves_load"] == [("waves_load", shape)]


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
    boundary = boundary_of(rng, (11,), [x], dtype)
    here, there = pair_of_solvers((11,), boundary, dtype=dtype)
    f = rng.uniform(-1, 1, 11).astype(dtype)

    near(there.solve(f), here.solve(f))


@pytest.mark.parametrize("y", PAIRS)
def test_stretched_rectangle_is_that_of_the_cpu(device, rng, y):
    shape = (6, 8)
    boundary = boundary_of(rng, shape, [y, "ND"])
    x = np.cumsum(rng.uniform(0.1, 1, 8))
    here, there = (
        FastPoisson(shape, (x, 0.2), boundary=boundary, device=d) for d in ("cpu", "cuda")
    )
    f = rng.uniform(-1, 1, shape)

    near(there.solve(f), here.solve(f))


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
