"""What the kernels of transforms do to one number, compiled for the host, around NumPy's FFT."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.fft

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
#include "transforms/element.cuh"
using namespace pysolvers::transforms;

template <ps_transform_kind kind>
void load(int n, int numbers, const double *values, double *line)
{
    using Number = std::conditional_t<loads_complex(kind), Complex<double>, double>;
    for (int t = 0; t < numbers; t++) {
        reinterpret_cast<Number *>(line)[t] =
            load_number<double, kind>(t, n, load_factor<double, kind>(t, n),
                                      [&](int j) { return values[j]; });
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
    folder = tmp_path_factory.mktemp("elements")
    (folder / "device").mkdir()
    (folder / "device/number.cuh").write_text(NUMBER)
    (folder / "program.cpp").write_text(PROGRAM)
    include = f"-I{ROOT / 'csrc/include'}"
    check = ROOT / "csrc/core/transform_check.c"
    run = {"check": True, "cwd": folder, "timeout": 120}
    subprocess.run([c_compiler, "-std=c11", "-fPIC", include, "-c", check, "-o", "c.o"], **run)
    command = [compiler, "-std=c++17", "-Wall", "-Werror", "-fPIC", "-shared", "-I."]
    command += [include, f"-I{ROOT / 'cuda'}", "program.cpp", "c.o", "-o", "elements.so"]
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
