"""The same bits for any number of threads, any batch, any neighbour, any instruction set."""

import json
import os
import subprocess
import sys

import numpy as np
import oracle
import pytest

from pysolvers import factor_tridiagonal, solve_tridiagonal


def mixed(rng, shape, dtype=np.float64):
    """Return dominant systems with general ones among them, so that auto does both."""
    system = oracle.dominant(rng, shape, dtype)
    for a, general in zip(system, oracle.general(rng, shape, dtype), strict=True):
        a[::5] = general[::5]
    return system


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_threads_do_not_change_a_bit(rng, dtype, method, periodic, axis):
    system = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in mixed(rng, (611, 97), dtype)]
    options = {"axis": axis, "method": method, "periodic": periodic, "on_singular": "ignore"}

    answers = [solve_tridiagonal(*system, **options, threads=t) for t in (1, 2, 3, None)]

    for other in answers[1:]:
        np.testing.assert_array_equal(other, answers[0])


@pytest.mark.each_value
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("rows", [100_003, 1 << 18])
def test_threads_do_not_change_a_bit_of_one_long_system(rng, method, rows):
    system = oracle.dominant(rng, (rows,))

    answers = [solve_tridiagonal(*system, method=method, threads=t) for t in (1, 2, 3)]

    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])


def test_info_tells_the_threads(rng):
    system = oracle.dominant(rng, (4096, 64))

    for threads in (1, 2):
        _, info = solve_tridiagonal(*system, threads=threads, return_info=True)
        assert info.threads == threads


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_system_alone_and_among_a_thousand(solve, same_but_for_layout, rng, dtype, method, axis):
    make = oracle.dominant if axis == 0 else mixed
    system = make(rng, (1000, 37), dtype)
    moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]

    x = np.moveaxis(solve(*moved, axis=axis, method=method, on_singular="ignore"), axis, -1)

    for k in range(0, 1000, 31):
        alone = solve(*(a[k] for a in system), method=method, on_singular="ignore")
        same_but_for_layout(alone, x[k], neighbours=axis == 0, err_msg=f"system {k}")


@pytest.mark.each_value
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_columns_among_few_and_among_a_thousand(solve, rng, dtype, method):
    system = [np.ascontiguousarray(a.T) for a in mixed(rng, (1000, 37), dtype)]
    options = {"axis": 0, "method": method, "on_singular": "ignore"}
    x = solve(*system, **options)

    for few in (32, 33, 100):
        for k in range(0, 1000 - few, 301):
            own = solve(*(a[:, k : k + few] for a in system), **options)
            np.testing.assert_array_equal(own, x[:, k : k + few], err_msg=f"columns from {k}")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_place_in_the_batch_does_not_matter(solve, rng, method, axis):
    system = mixed(rng, (100, 37))
    options = {"axis": axis, "method": method, "on_singular": "ignore"}
    expected = solve(*(np.moveaxis(a, -1, axis).copy() for a in system), **options)
    expected = np.moveaxis(expected, axis, -1)

    for shift in range(1, 33):
        x = solve(*(np.moveaxis(np.roll(a, shift, 0), -1, axis).copy() for a in system), **options)
        np.testing.assert_array_equal(np.moveaxis(x, axis, -1), np.roll(expected, shift, 0))


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("periodic", [False, True])
def test_size_of_the_batch_does_not_matter(solve, backend, rng, periodic, method):
    system = mixed(rng, (70, 29))
    options = {"method": method, "periodic": periodic, "on_singular": "ignore"}
    expected = solve(*system, **options)

    for systems in range(1, 70, 1 if backend == "cpu" else 3):
        x = solve(*(a[:systems] for a in system), **options)
        np.testing.assert_array_equal(x, expected[:systems])


@pytest.mark.parametrize("rows", [5000, 70_001, 300_000])
def test_auto_chooses_alike_for_one_and_for_many(solve, rng, rows):
    system = mixed(rng, (9, rows))

    x = solve(*system)

    for k in range(9):
        np.testing.assert_array_equal(solve(*(a[k] for a in system)), x[k])


@pytest.mark.each_value
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [None, True])
@pytest.mark.parametrize("count", [2, 4, 5])
def test_few_long_factors_alone_and_together(rng, count, pivot, periodic, trans):
    """A factor has shorter vectors if they hold all matrices, and not for its right-hand sides."""
    lower, diag, upper, _ = mixed(rng, (count, 9000))
    rhs = oracle.uniform(rng, (17, count, 9000))
    options = {"pivot": pivot, "periodic": periodic}
    factor = factor_tridiagonal(lower, diag, upper, **options)

    x, first = factor.solve(rhs, trans=trans), factor.solve(rhs[0], trans=trans)

    for k in range(count):
        alone = factor_tridiagonal(lower[k], diag[k], upper[k], **options)
        expected = alone.solve(rhs[:, k], trans=trans)
        np.testing.assert_array_equal(x[:, k], expected)
        np.testing.assert_array_equal(first[k], expected[0])


@pytest.mark.parametrize("pivot", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_shared_matrix_alone_and_among_many(solve, same_but_for_sharing, rng, axis, pivot):
    lower, diag, upper, _ = oracle.dominant(rng, (37,))
    rhs = oracle.uniform(rng, (100, 37))
    shape = (1, 37) if axis else (37, 1)
    matrix = [a.reshape(shape) for a in (lower, diag, upper)]

    x = solve(*matrix, np.moveaxis(rhs, -1, axis).copy(), axis=axis, pivot=pivot)

    for k in range(100):
        alone = solve(lower, diag, upper, rhs[k], pivot=pivot)
        same_but_for_sharing(alone, np.moveaxis(x, axis, -1)[k])


@pytest.mark.each_value
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("junk", [np.nan, np.inf, 0.0, 1e308])
def test_neighbours_do_not_leak(solve, rng, junk, axis, method):
    system = mixed(rng, (36, 29))
    options = {"axis": axis, "method": method, "on_singular": "ignore"}
    expected = solve(*(np.moveaxis(a, -1, axis).copy() for a in system), **options)
    expected = np.moveaxis(expected, axis, -1)

    for bad in (0, 1, 6, 15, 17, 35):
        spoiled = [a.copy() for a in system]
        for a in spoiled:
            a[bad] = junk
        moved = [np.moveaxis(a, -1, axis).copy() for a in spoiled]
        x = np.moveaxis(solve(*moved, **options), axis, -1)
        others = np.arange(36) != bad
        np.testing.assert_array_equal(x[others], expected[others])


INSTRUCTION_SETS = ("baseline", "avx2", "avx512")

DIGESTS = """
import hashlib, itertools, json, numpy as np, oracle, pysolvers

digests = {}
for dtype in oracle.DTYPES:
    rng = np.random.default_rng(5)
    for rows, systems in ((1, 9), (2, 9), (33, 41), (200, 19), (20_000, 3)):
        dominant = oracle.dominant(rng, (systems, rows), dtype)
        general = oracle.general(rng, (systems, rows), dtype)
        for method in oracle.METHODS:
            system = general if method in ("pivoted", "auto") else dominant
            for periodic in (False, True):
                for axis in (0, 1):
                    moved = [np.moveaxis(a, -1, axis).copy() for a in system]
                    x, info = pysolvers.solve_tridiagonal(
                        *moved, axis=axis, method=method, periodic=periodic, return_info=True
                    )
                    case = f"{np.dtype(dtype)} {rows} {method} {periodic} {axis}"
                    digests[case] = hashlib.sha256(np.moveaxis(x, axis, -1).tobytes()).hexdigest()
        f = pysolvers.factor_tridiagonal(*general[:3], rows=rows)
        for trans in "NTH":
            x = f.solve(general[3], trans=trans)
            case = f"{np.dtype(dtype)} {rows} factor {trans}"
            digests[case] = hashlib.sha256(x.tobytes()).hexdigest()
        x = f.solve(np.stack([(k + 1) * general[3] for k in range(7)]))
        case = f"{np.dtype(dtype)} {rows} factor of 7 right-hand sides each"
        digests[case] = hashlib.sha256(x.tobytes()).hexdigest()
for method in ("adi", "line-jacobi"):
    for n in (6, 21, 70):
        fields = pysolvers.LidDrivenCavity(20, n, method=method, threads=1).iterate(3)
        found = fields.psi.tobytes() + fields.omega.tobytes()
        digests[f"cavity {method} {n}"] = hashlib.sha256(found).hexdigest()
FLOWS = {(17, 21): {"psi_solver": "lines"}, (49, 91): {}, (33, 61): {"steady": True}}
for dtype in ("f4", "f8"):
    for shape, options in FLOWS.items():
        flow = pysolvers.SquareCylinder(60, shape, length=10, dtype=dtype, **options).step(4)
        found = flow.psi.tobytes() + flow.omega.tobytes() + flow.result().history.drag.tobytes()
        digests[f"cylinder {dtype} {shape}"] = hashlib.sha256(found).hexdigest()
for dtype in ("f4", "f8"):
    for shape in ((45, 523), (7, 8, 9)):
        pairs = ("xx", "yy", "zz")[: len(shape)] + ("xy", "xz", "yz")[: 2 * len(shape) - 3]
        plate = pysolvers.ParabolicADI(
            shape,
            extent=((0, 1),) * len(shape),
            diffusion={p: 1.0 if p[0] == p[1] else 0.3 for p in pairs},
            boundary=0.0,
            initial=np.random.default_rng(1).random(shape),
            dt=1e-3,
            dtype=dtype,
        )
        found = hashlib.sha256(plate.step(2).u.tobytes()).hexdigest()
        digests[f"parabolic {dtype} {shape}"] = found
    for shape in ((45, 83), (7, 24, 30)):
        places = [np.tanh(np.linspace(first, 1, n)) for n, first in zip(shape, (-1, 0, -1))]
        solver = pysolvers.FastPoisson(shape, tuple(places[::-1]), boundary=0.0, dtype=dtype)
        found = solver.solve(np.random.default_rng(1).random(shape).astype(dtype))
        digests[f"poisson {dtype} {shape}"] = hashlib.sha256(found.tobytes()).hexdigest()
for dtype in ("f4", "f8", "c8", "c16"):
    for axis, batch, rows in itertools.product(
        (0, 1), (1, 2, 3, 5, 9, 17, 40), (1, 9, 100, (1 << 15) + 5)
    ):
        if batch > 9 and rows > 100:
            continue
        shape = (rows, batch) if axis == 0 else (batch, rows)
        rng = np.random.default_rng(rows + batch)
        half = np.dtype(dtype).type(0.45)
        a, c, b = (oracle.uniform(rng, shape, np.dtype(dtype)) * half for _ in range(3))
        for second in (None, c):
            x = pysolvers.linear_recurrence(a, b, second=second, axis=axis)
            case = f"recurrence {dtype} {axis} {batch} {rows} {second is None}"
            digests[case] = hashlib.sha256(x.tobytes()).hexdigest()
for axis, pivot, (batch, rows) in itertools.product(
    (0, 1), (False, True), ((700, 2100), (2500, 500), (130, 9001))
):
    shape = (rows, batch) if axis == 0 else (batch, rows)
    system = [a.astype("f4") for a in oracle.dominant(np.random.default_rng(rows), shape)]
    if axis == 0:
        system[1] = system[1] + 5
    x = pysolvers.solve_tridiagonal(*system, axis=axis, pivot=pivot)
    digests[f"far lines {axis} {pivot} {rows}"] = hashlib.sha256(x.tobytes()).hexdigest()
    factor = pysolvers.factor_tridiagonal(*system[:3], axis=axis, pivot=pivot)
    for trans in "NT":
        x = factor.solve(system[3], trans=trans)
        case = f"factor of far lines {axis} {pivot} {rows} {trans}"
        digests[case] = hashlib.sha256(x.tobytes()).hexdigest()
print(json.dumps({"kernel": info.kernel, "digests": digests}))
"""


@pytest.fixture(scope="module")
def digests():
    """Kernel name and digests of many answers, for each instruction set allowed."""
    found = {}
    for name in reversed(INSTRUCTION_SETS):
        if name == "avx2" and "avx512" not in found["avx512"]["kernel"].lower():
            found[name] = found["avx512"]  # which took what this machine has
            continue
        environment = os.environ | {
            "PYSOLVERS_ISA": name,
            "PYTHONPATH": os.pathsep.join([os.path.dirname(oracle.__file__), *sys.path]),
        }
        run = subprocess.run(
            [sys.executable, "-P", "-c", DIGESTS],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        found[name] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("name", INSTRUCTION_SETS[1:])
def test_instruction_set_does_not_change_a_bit(digests, name):
    if digests[name]["kernel"] == digests["baseline"]["kernel"]:
        pytest.skip(f"this machine has no {name}")

    expected = digests["baseline"]["digests"]
    changed = [case for case, d in digests[name]["digests"].items() if d != expected[case]]

    assert not changed


def test_instruction_set_is_limited_on_demand(digests):
    assert "avx" not in digests["baseline"]["kernel"].lower()
    assert "avx512" not in digests["avx2"]["kernel"].lower()
