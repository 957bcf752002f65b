"""What the kernels of transforms do to one number, compiled for the host, around NumPy's FFT."""

import ctypes
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
import transform_device

ROOT = Path(__file__).parents[2]
COSINES = ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4")

# Stands for device/number.cuh, which needs the CUDA compiler.
NUMBER = """
#pragma once
#include <cmath>
#define __host__
#define __device__
#define __forceinline__ inline
namespace pysolvers::device {
template <typename Real> struct Complex {
    Real re, im;
    Complex() = default;
    Complex(Real real, Real imag = Real(0)) : re(real), im(imag) {}
};
template <typename Real>
Complex<Real> operator*(Complex<Real> a, Complex<Real> b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
}
inline void sincospi(double x, double *s, double *c)
{
    *s = std::sin(M_PI * x), *c = std::cos(M_PI * x);
}
inline void sincospif(float x, float *s, float *c)
{
    *s = float(std::sin(M_PI * x)), *c = float(std::cos(M_PI * x));
}
"""

PROGRAM = """
#include <type_traits>
#include <vector>
#include "transforms/element.cuh"
#include "transforms/halved.cuh"
#include "transforms/mirrored.cuh"
#include "transforms/waves.cuh"
using namespace pysolvers::transforms;

template <ps_transform_kind kind>
void load(int n, int numbers, const double *values, double *line)
{
    using Number = std::conditional_t<loads_complex(kind), Complex<double>, double>;
    for (int t = 0; t < numbers; t++) {
        auto &number = reinterpret_cast<Number *>(line)[t];
        number = load_number<double, kind>(t, n, [&](int j) { return values[j]; });
        if constexpr (has_load_factor(kind)) {
            number = load_factor<double, kind>(t, n) * number;
        }
    }
}

template <ps_transform_kind kind>
void store(int n, int numbers, const double *line, double *values, int *writes)
{
    using Number = std::conditional_t<stores_complex(kind), Complex<double>, double>;
    for (int t = 0; t < numbers; t++) {
        store_number<double, kind>(t, n, store_factor<double, kind>(t, n),
                                   reinterpret_cast<const Number *>(line)[t],
                                   [&](int k, double y) { values[k] = y, writes[k]++; });
    }
}

#define CASE(name, text) if (kind == name) load<name>(n, numbers, values, line);
extern "C" void load_line(int kind, int n, int numbers, const double *values, double *line)
{
    PS_TRANSFORM_LIST(CASE)
}
#undef CASE
#define CASE(name, text) if (kind == name) store<name>(n, numbers, line, values, writes);
extern "C" void store_line(int kind, int n, int numbers, const double *line, double *values,
                           int *writes)
{
    PS_TRANSFORM_LIST(CASE)
}
#undef CASE
extern "C" int place_of(int kind, int j, int n)
{
    return wave_place((ps_transform_kind)kind, j, n);
}
/* The lanes of all tiles of a plane, with exchanges between them. */
extern "C" void combine(const WaveTiles *t, const double *turns, const double *row_turns,
                        int undoes, double *plane, int *writes)
{
    const auto *turn = reinterpret_cast<const Complex<double> *>(turns);
    const auto *row_turn = reinterpret_cast<const Complex<double> *>(row_turns);
    const int line = 2 * (t->length / 2 + 1);
    for (int tile = 0; tile < t->count(); tile++) {
        std::vector<double> x(t->slots), old;
        std::vector<WavePlace> places;
        std::vector<WaveTurns<double>> all;
        for (int slot = 0; slot < t->slots; slot++) {
            const WavePlace p(*t, tile, slot);
            places.push_back(p);
            all.emplace_back(p, turn[p.real / 2], row_turn[p.row < p.mirror ? p.row : p.mirror]);
            x[slot] = plane[p.row * line + p.column];
        }
        const auto stage = [&](auto which, int reach) {
            old = x;
            for (int slot = 0; slot < t->slots && reach > 0; slot++) {
                const auto own = which(all[slot]);
                x[slot] = undoes ? own.undo(old[slot], old[slot ^ reach])
                                 : own.apply(old[slot], old[slot ^ reach]);
            }
        };
        const int reach = t->reach(), of_rows = reach > 0;
        const auto values = [](const auto &w) { return w.values; };
        const auto both = [](const auto &w) { return w.both; };
        const auto rows = [](const auto &w) { return w.rows; };
        undoes ? stage(rows, of_rows) : stage(values, 1);
        stage(both, reach);
        undoes ? stage(values, 1) : stage(rows, of_rows);
        for (int slot = 0; slot < t->slots; slot++) {
            if (places[slot].exists) {
                const int at = places[slot].row * line + places[slot].column;
                plane[at] = x[slot];
                writes[at]++;
            }
        }
    }
}
/* One line of kind 1 to its parts, and back; the values are those of all nodes. */
template <int LEVELS>
void split(bool is_sine, int n, const double *values, double *parts)
{
    const HalvedParts of = {n, LEVELS};
    for (int t = 0; t <= (n >> LEVELS) / 2; t++) {
        const HalvedLine<double, LEVELS> line(t, n >> LEVELS);
        double x[line.slots];
        for (int s = 0; s < line.slots; s++) {
            x[s] = values[line.place(s)];
        }
        line.split(is_sine, x, [&](int level, int index, Complex<double> number) {
            reinterpret_cast<Complex<double> *>(parts + of.before(level))[index] = number;
        });
        parts[t] = x[0];
        parts[line.m - t] = x[1];
    }
}
template <int LEVELS>
void merge(bool is_sine, int n, const double *parts, double *values)
{
    const HalvedParts of = {n, LEVELS};
    for (int t = 0; t <= (n >> LEVELS) / 2; t++) {
        const HalvedLine<double, LEVELS> line(t, n >> LEVELS);
        double x[line.slots] = {parts[t], parts[line.m - t]};
        line.merge(is_sine, x, [&](int level, int index) {
            return reinterpret_cast<const Complex<double> *>(parts + of.before(level))[index];
        });
        for (int s = 0; s < line.slots; s++) {
            values[line.place(s)] = x[s];
        }
    }
}
#define CASE(LEVELS) \
    if (levels == LEVELS) splits ? split<LEVELS>(is_sine, n, from, to) \
                                 : merge<LEVELS>(is_sine, n, from, to);
extern "C" void move_halved(int levels, int splits, int is_sine, int n, const double *from,
                            double *to)
{
    CASE(1)
    CASE(2)
    CASE(3)
}
#undef CASE
extern "C" int place_of_part(int n, int levels, int part, int *pitch)
{
    const HalvedParts of = {n, levels};
    *pitch = of.pitch(part);
    return of.before(part);
}
/* A line to sums and differences of mirror places, or back; `writes` counts what is written. */
extern "C" int fold(int kind, int n, int loads, const double *from, double *to, int *writes)
{
    const Mirroring mirroring = {n, (ps_transform_kind)kind};
    const int pitch = mirroring.pitch();
    for (int t = 0; t < mirroring.groups(); t++) {
        int places[2][4];
        double x[4];
        for (int s = 0; s < 4; s++) {
            const int number = mirroring.number(t, s), part = mirroring.part(s);
            places[0][s] = mirroring.value(t, s);
            places[1][s] = number < 0 ? -1 : mirroring.start(part, pitch) + number;
            const int own = places[!loads][s];
            x[s] = own < 0 ? 0 : from[own];
        }
        loads ? mirroring.load(x[0], x[1], x[2], x[3]) : mirroring.store(x[0], x[1], x[2], x[3]);
        for (int s = 0; s < 4; s++) {
            const int own = places[!!loads][s];
            if (own >= 0) {
                to[own] = x[s], writes[own]++;
            }
        }
    }
    for (int p = 0; p < mirroring.parts(); p++) {
        const int end = mirroring.start(p, pitch) + mirroring.size(p);
        if (end > mirroring.end(p, pitch) || mirroring.end(p, pitch) - end > 16) {
            return -1;
        }
    }
    return pitch;
}
/* Rows to the parts of PS_MIRRORED_IN_FIVE, or back; `writes` counts what is written. */
extern "C" int fold_in_five(int kind, int n, int loads, const double *from, double *to, int *writes)
{
    const MirroredRows rows = {n, (ps_transform_kind)kind};
    for (int t = 0; t < rows.groups(); t++) {
        int places[2][8];
        double x[8];
        for (int s = 0; s < 8; s++) {
            const int number = rows.number(t, s);
            places[0][s] = rows.value(t, s);
            places[1][s] = number < 0 ? -1 : rows.start(rows.part(s)) + number;
            if (number >= 0 && places[1][s] >= rows.start(rows.part(s) + 1)) {
                return -1;
            }
            const int own = places[!loads][s];
            x[s] = own < 0 ? 0 : from[own];
        }
        loads ? rows.load(x) : rows.store(x);
        for (int s = 0; s < 8; s++) {
            const int own = places[!!loads][s];
            if (own >= 0) {
                to[own] = x[s], writes[own]++;
            }
        }
    }
    return rows.start(5);
}
/* The sums and differences of the last transform in lines of PS_MIRRORED_ROWS. */
extern "C" int fold_last(int n, int is_sine, const double *from, double *to)
{
    const HalvedRows parts = {n, is_sine != 0};
    for (int t = 0; t < parts.groups(); t++) {
        const double a = from[t], b = from[parts.last() - t];
        if (parts.sum(t) >= 0) {
            to[parts.sum(t)] = a + b;
        }
        if (parts.rest(t) >= 0) {
            to[parts.half() + parts.rest(t)] = a - b;
        }
    }
    for (int is_rest = 0; is_rest < 2; is_rest++) {
        for (int k = 0; k < parts.between(is_rest != 0); k++) {
            to[(1 + is_rest) * parts.half() - 1 - k] = 0;
        }
    }
    return parts.before(2) + parts.pitch(2);
}
extern "C" void continue_line(int kind, int size, int given, const double *values, double *line)
{
    for (int i = 0; i < size; i++) {
        const ContinuedPlace own((ps_transform_kind)kind, i, size, given);
        line[i] = own.of(values[own.place]);
    }
}
extern "C" int is_continued(int kind, int size, int given)
{
    double number = 0;
    ps_waves w = {};
    w.dtype = PS_F64, w.kind = (ps_transform_kind)kind, w.row_kind = PS_RFFT;
    w.planes = w.rows = 1, w.size = size, w.given = given, w.pitch = 4 * size + 4;
    w.field.data = w.waves = &number;
    return ps_waves_check(&w) == PS_OK;
}
extern "C" int is_legal(int kind, int n, int halvings, long long pitch)
{
    double number = 0;
    ps_waves w = {};
    w.dtype = PS_F64, w.kind = (ps_transform_kind)kind, w.row_kind = PS_RFFT;
    w.halvings = halvings, w.planes = w.rows = 1, w.size = w.given = n, w.pitch = pitch;
    w.field.data = w.waves = &number;
    return ps_waves_check(&w) == PS_OK;
}
extern "C" void shape_of(int kind, int n, long long *s)
{
    const ps_transform_shape shape = ps_transform_shape_of((ps_transform_kind)kind, n);
    s[0] = shape.form, s[1] = shape.in, s[2] = shape.out, s[3] = shape.length;
    s[4] = shape.pitch;
}
"""

KINDS = ("dct1", "dct2", "dct3", "dct4", "dst1", "dst2", "dst3", "dst4", "rfft", "irfft")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler, c_compiler = shutil.which("g++"), shutil.which("gcc")
    if not (compiler and c_compiler):
        pytest.skip("g++ and gcc are needed to compile the elements for the host")
    if not (ROOT / "csrc").exists():  # the tests of a wheel
        pytest.skip("needs a copy of the source")
    folder = tmp_path_factory.mktemp("elements")
    (folder / "device").mkdir()
    (folder / "device/number.cuh").write_text(NUMBER)
    (folder / "program.cpp").write_text(PROGRAM)
    include = f"-I{ROOT / 'csrc/include'}"
    core = sorted((ROOT / "csrc/core").glob("*.c"))
    run = {"check": True, "cwd": folder, "timeout": 120}
    subprocess.run([c_compiler, "-std=c11", "-fPIC", include, "-c", *core], **run)
    command = [compiler, "-std=c++17", "-Wall", "-Wno-unknown-pragmas", "-Werror", "-fPIC"]
    command += [
        "-shared",
        "-I.",
        include,
        f"-I{ROOT / 'cuda'}",
        "program.cpp",
        *(f"{source.stem}.o" for source in core),
        "-o",
        "elements.so",
    ]
    subprocess.run(command, **run)
    return ctypes.CDLL(str(folder / "elements.so"))


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def transform(library, name, n, values):
    """Load, transform by NumPy, store; require that each value is written once."""
    kind = KINDS.index(name)
    shape = np.zeros(5, np.int64)
    library.shape_of(kind, n, pointer(shape))
    form, before, after, length, pitch = map(int, shape)
    assert len(values) == before
    half = length // 2 + 1
    line = np.full(pitch, np.nan)
    library.load_line(kind, n, half if form == 1 else length, pointer(values), pointer(line))
    if form == 0:
        waves = np.fft.rfft(line[:length])
    elif form == 1:
        waves = np.fft.irfft(line.view(complex), length) * length
    else:
        waves = np.fft.fft(line.view(complex))
    result, writes = np.full(after, np.nan), np.zeros(after, np.int32)
    waves = np.ascontiguousarray(waves)
    library.store_line(kind, n, len(waves), pointer(waves), pointer(result), pointer(writes))
    assert (writes == 1).all()
    return result


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 16, 31, 100])
@pytest.mark.parametrize("name", COSINES)
def test_sines_and_cosines_are_those_of_scipy(library, rng, name, n):
    if name == "dct1" and n == 1:
        pytest.skip("a transform dct1 has at least 2 values")
    x = rng.standard_normal(n)
    expected = getattr(scipy.fft, name[:3])(x, int(name[3]))

    np.testing.assert_allclose(transform(library, name, n, x), expected, rtol=0, atol=1e-13 * n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 16, 31])
def test_waves_are_those_of_scipy_and_invert(library, rng, n):
    x = rng.standard_normal(n)

    waves = transform(library, "rfft", n, x)

    np.testing.assert_allclose(waves.view(complex), scipy.fft.rfft(x), rtol=0, atol=1e-13)
    np.testing.assert_allclose(transform(library, "irfft", n, waves), n * x, rtol=0, atol=1e-12)


def combined(library, plane, length, turns, slots, undoes=False):
    """Combine the packed waves of a plane, or undo it; require that each is written once."""
    plane, writes = plane.copy(), np.zeros(plane.shape, np.int32)
    tiles = np.array([len(plane), length, slots], np.int32)
    arrays = [np.stack([np.cos(t), np.sin(t)], -1) for t in turns[::-1]]
    pointers = map(pointer, (tiles, *arrays))
    library.combine(*pointers, int(undoes), pointer(plane), pointer(writes))
    if len(plane) == 1 and length % 2 == 0:  # the zeros of waves 0 and length/2 are left out
        assert (writes[0, [1, length + 1]] == 0).all()
        writes[0, [1, length + 1]] = 1
    assert (writes == 1).all()
    return plane


@pytest.mark.parametrize("slots", [8, 16, 32])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 16, 33])
@pytest.mark.parametrize("rows", [1, 2, 3, 6, 9])
def test_packed_waves_are_cosine_transforms_in_both_axes(library, rng, rows, size, slots):
    x = rng.standard_normal((rows, size))
    orders = [[library.place_of(KINDS.index("dct2"), j, n) for j in range(n)] for n in x.shape]
    v = np.empty_like(x)
    v[np.ix_(*orders)] = x
    packed = np.fft.rfft2(v).view(float)
    turns = [np.pi / 2 * np.arange(count) / n for count, n in ((rows, rows), (size // 2 + 1, size))]

    plane = combined(library, packed, size, turns, slots)

    back = combined(library, plane, size, turns, slots, undoes=True)
    np.testing.assert_allclose(back, packed, rtol=0, atol=1e-12 * rows * size)
    if rows == 1 and size % 2 == 0:  # its last wave is not turned
        plane[0, size:] = plane[0, size] * np.array([1, -1]) / np.sqrt(2)
    expected = scipy.fft.dctn(x, 2)
    half = np.arange(size // 2 + 1)
    mirrored = np.where(half > 0, size - half, 0)
    for j in range(rows):
        m = -j % rows
        real, imaginary = plane[j, ::2], plane[j, 1::2]
        if j == m:  # but for factors of 2 and sqrt(2)
            ratio = 4 if j == 0 else np.sqrt(8)
            found = ratio * real, -ratio * imaginary
            there = expected[j, half], expected[j, mirrored]
        elif j < m:
            found = np.sqrt(8) * real, -np.sqrt(8) * imaginary
            there = expected[j, half], expected[m, half]
        else:  # the places of Im(w' Q) and Re(w' Q)
            found = np.sqrt(8) * real, -np.sqrt(8) * imaginary
            there = expected[j, mirrored], expected[m, mirrored]
        # Wave 0 along the values has no imaginary part, and Q is made of imaginary parts.
        exists = [(half > 0) | (j < m), (half > 0) | (j <= m)]
        for actual, desired, wave in zip(found, there, exists[::-1], strict=True):
            np.testing.assert_allclose(
                actual[wave], desired[wave], rtol=0, atol=1e-12 * rows * size
            )


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 12, 64])
@pytest.mark.parametrize("name", ["dct1", "dst1"])
def test_lines_in_parts_are_sines_and_cosines_and_invert(library, rng, name, size, levels):
    n, is_sine = size << levels, name == "dst1"
    x = rng.standard_normal(n + 1)
    if is_sine:
        x[[0, -1]] = 0
    places = []
    for part in range(levels + 1):
        pitch = ctypes.c_int()
        start = library.place_of_part(n, levels, part, ctypes.byref(pitch))
        places.append(np.s_[start : start + pitch.value])
    assert [(p.start, p.stop - p.start) for p in places[:1]] == [(0, (n >> levels) * 2 + 2)]
    assert all(a.stop == b.start for a, b in pairwise(places))
    values = x[1:-1] if is_sine else x
    kind = KINDS.index(name)
    for more, longer, legal in ((0, 0, True), (0, 2, False), (1, 0, False)):
        pitch = ctypes.c_longlong(places[-1].stop + longer)
        assert bool(library.is_legal(kind, len(values) + more, levels, pitch)) == legal
    lines = np.zeros(places[-1].stop)

    library.move_halved(levels, 1, int(is_sine), n, pointer(x), pointer(lines))

    expected = scipy.fft.dst(values, 1) if is_sine else scipy.fft.dct(values, 1)
    expected = np.r_[0.0, expected, 0.0] if is_sine else expected
    last, own = lines[: (n >> levels) + 1], np.zeros(places[-1].stop)
    coarse = scipy.fft.dst(last[1:-1], 1) if is_sine else scipy.fft.dct(last, 1)
    coarse = np.r_[0.0, coarse, 0.0] if is_sine else coarse
    np.testing.assert_allclose(coarse, expected[:: 1 << levels], rtol=0, atol=1e-13 * n)
    own[: len(last)] = 2 * (n >> levels) * last
    for part in range(1, levels + 1):
        size = n >> part
        waves = np.fft.irfft(lines[places[part]].view(complex), size) * size
        assert places[part].stop - places[part].start == 2 * (size // 2 + 1)
        order = np.r_[0:size:2, np.arange(1, size, 2)[::-1]]
        signs = (-1.0) ** order if is_sine else 1.0
        wanted = expected[(1 << (part - 1)) * (2 * order + 1)]
        np.testing.assert_allclose(waves * signs, wanted, rtol=0, atol=1e-13 * n)
        own[places[part]] = np.fft.rfft(waves).view(float)
    found = np.full(n + 1, np.nan)
    library.move_halved(levels, 0, int(is_sine), n, pointer(own), pointer(found))
    np.testing.assert_allclose(found, 2 * n * x, rtol=0, atol=1e-12 * n)


@pytest.mark.parametrize("n", [8, 16, 24, 40, 512])
@pytest.mark.parametrize("name", ["dct1", "dst1"])
def test_last_part_of_mirrored_rows(library, rng, name, n):
    """Sums and differences of mirror places, the middle twice, and zeros between them."""
    is_sine, kind = name == "dst1", KINDS.index(name)
    x = rng.standard_normal(n // 4 + 1)
    if is_sine:
        x[[0, -1]] = 0
    first, middle = int(is_sine), n // 8
    half = -(-(middle + 1 - first) // 4) * 4
    line, expected = np.full(2 * half, np.nan), np.zeros(2 * half)

    pitch = library.fold_last(n, int(is_sine), pointer(x), pointer(line))

    expected[: middle + 1 - first] = (x + x[::-1])[first : middle + 1]
    expected[half : half + middle - first] = (x - x[::-1])[first:middle]
    np.testing.assert_array_equal(line, expected)
    assert pitch == 2 * half + n // 2 + 2 + n // 4 + 2
    values = n - 1 if is_sine else n + 1
    for halvings, more, longer, legal in (
        (-2, 0, 0, True), (-2, 0, 2, False), (-2, 4, 0, False), (-3, 0, 0, False),
        (-4, 0, 0, False)
    ):  # fmt: skip
        place = ctypes.c_longlong(pitch + longer)
        assert bool(library.is_legal(kind, values + more, halvings, place)) == legal
    assert not library.is_legal(KINDS.index("dct2"), values, -2, ctypes.c_longlong(pitch))


@pytest.mark.parametrize("given", [2, 3, 8])
@pytest.mark.parametrize("kind", ["dct1", "dst1", "dct2", "dst2"])
def test_lines_continue_a_shorter_field(library, rng, kind, given):
    """The values of the waves of `given` values in the places after them."""
    most = 2 * given + {"dct1": -1, "dst1": 1}.get(kind, 0)
    for size in range(given, most + 1):
        assert library.is_continued(KINDS.index(kind), size, given)
        values, line = rng.standard_normal(given), np.full(size, np.nan)
        library.continue_line(KINDS.index(kind), size, given, pointer(values), pointer(line))

        waves = getattr(scipy.fft, kind[:3])(values, int(kind[3]))
        k, j = np.arange(given), np.arange(size)[:, None]
        if kind.startswith("dst"):
            n = given + 1 if kind == "dst1" else given
            found = np.sin(np.pi / n * (k + 1) * (j + (1 if kind == "dst1" else 0.5)))
            waves[-1] /= 1 if kind == "dst1" else 2
        else:
            n = given - 1 if kind == "dct1" else given
            found = np.cos(np.pi / n * k * (j + (0 if kind == "dct1" else 0.5)))
            waves[0] /= 2
            waves[-1] /= 2 if kind == "dct1" else 1
        np.testing.assert_allclose(line, found @ waves / n, rtol=0, atol=1e-13)
    assert not library.is_continued(KINDS.index(kind), most + 1, given)
    assert not library.is_continued(KINDS.index(kind), given - 1, given)
    assert not library.is_continued(KINDS.index("rfft"), given + 1, given)


@pytest.mark.parametrize("kind", ["rfft", "dct1", "dst1"])
@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 509, 511, 513])
def test_sums_and_differences_of_mirror_places(library, rng, kind, n):
    """Those of the definition, PS_MIRRORED, and back; each place is written."""
    pitch = 16 * -(-(((n + 1) // 2 + 1) // 2) // 4)
    kinds, shape = (KINDS.index(kind),) * 2, (1, n, n)
    _, (fold, unfold, places) = transform_device.Device._foldings(kinds, shape, pitch)
    x, line = rng.standard_normal(n), np.zeros(pitch)
    writes = np.zeros(pitch, np.int32)

    assert library.fold(kinds[0], n, 1, pointer(x), pointer(line), pointer(writes)) == pitch
    np.testing.assert_allclose(line[places], fold @ x, rtol=0, atol=1e-14)
    assert (writes[places] > 0).all()
    writes[places] = 0
    assert not writes.any()
    numbers, found, writes = rng.standard_normal(pitch), np.zeros(n), np.zeros(n, np.int32)
    library.fold(kinds[0], n, 0, pointer(numbers), pointer(found), pointer(writes))
    np.testing.assert_allclose(found, unfold @ numbers[places], rtol=0, atol=1e-14)
    assert (writes > 0).all()


@pytest.mark.parametrize("kind", ["dct1", "dst1"])
@pytest.mark.parametrize("intervals", [8, 16, 24, 32, 40, 512])
def test_rows_in_five_parts(library, rng, kind, intervals):
    """Those of the definition, PS_MIRRORED_IN_FIVE, and back; each place is written."""
    n = intervals + (1 if kind == "dct1" else -1)
    fold, unfold = transform_device.fold_in_five(kind, n)
    for loads, matrix in ((1, fold), (0, unfold)):
        x, found, writes = rng.standard_normal(n), np.zeros(n), np.zeros(n, np.int32)
        arrays = map(pointer, (x, found, writes))
        assert library.fold_in_five(KINDS.index(kind), n, loads, *arrays) == n
        np.testing.assert_allclose(found, matrix @ x, rtol=0, atol=1e-13)
        assert (writes > 0).all()


def test_order_of_values_before_the_library(library):
    for n in (1, 2, 5, 8):
        for kind in ("dct2", "dst2", "rfft"):
            order = [library.place_of(KINDS.index(kind), j, n) for j in range(n)]
            values = np.arange(n)
            expected = values if kind == "rfft" else np.r_[values[::2], values[1::2][::-1]]
            np.testing.assert_array_equal(np.argsort(order), expected)
        assert [library.place_of(KINDS.index("dct1"), j, n) for j in range(n)] == [*range(n)]
        assert [library.place_of(KINDS.index("dst1"), j, n) for j in range(n)] == [*range(1, n + 1)]
