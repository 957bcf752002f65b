"""The kernels with compiler directives, built for this test: OpenACC and OpenMP on the host."""

import contextlib
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pysolvers
from pysolvers import Neumann, Robin
from pysolvers._runtime import directive
from pysolvers.papers.survey2014 import RedBlackSOR, StaggeredCavity

TOOL = Path(__file__).parents[4] / "tools" / "build_directive.py"

# The tests of a wheel have neither the tool nor the sources. The kernels are those of one paper,
# and the tests compile them for seconds.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("gcc") is None or not TOOL.exists(),
        reason="needs gcc and a copy of the source",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of the libraries, with code for the host only."""
    found = tmp_path_factory.mktemp("directive")
    command = [sys.executable, TOOL, "--host", "--output", found]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directive, "FOLDER", found)
        patch.setenv("OMP_NUM_THREADS", "1")  # read when libgomp is loaded
        for name in directive.MODELS:
            with contextlib.suppress(
                pysolvers.BackendError
            ):  # where an older libgomp was loaded before
                directive.load(name)
    return found


@pytest.fixture(params=list(directive.MODELS))
def kernels(request, folder, monkeypatch):
    monkeypatch.setattr(directive, "FOLDER", folder)
    try:
        directive.load(request.param)
    except pysolvers.BackendError as error:
        if "torch" in sys.modules and "older libgomp" in str(error):
            pytest.skip("PyTorch, which brings its own libgomp, was imported in this process")
        raise
    return request.param


@pytest.mark.parametrize("options", [{}, {"gamma": 0.9}, {"gamma": "auto", "pressure_tol": 1e-7}])
@pytest.mark.parametrize("n", [5, 16, 33])
def test_fields_are_those_of_the_other_kernels(n, options, kernels):
    options = {"pressure": "sor", **options}
    expected = StaggeredCavity(100, n, **options).step(100)

    found = StaggeredCavity(100, n, kernels=kernels, **options).step(100)

    assert found.time == expected.time
    # The sums of the stopping criterion are formed in another order.
    assert abs(found.sweeps - expected.sweeps) <= 2
    for name in "uvp":
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    assert found.change == pytest.approx(expected.change, rel=1e-9)


def test_result_names_the_model_and_the_times(kernels):
    result = StaggeredCavity(100, 16, pressure="sor", kernels=kernels).step(3).result()

    assert result.kernel == f"{directive.MODELS[kernels]} on the host"
    assert result.seconds.keys() == {"predict", "pressure", "correct"}
    assert min(result.seconds.values()) > 0


def test_restart_is_exact(kernels, tmp_path):
    options = {"pressure": "sor", "kernels": kernels, "pressure_tol": None, "max_sweeps": 9}
    whole = StaggeredCavity(100, 12, **options).step(40)
    StaggeredCavity(100, 12, **options).step(17).save(tmp_path / "state.npz")

    loaded = StaggeredCavity.load(tmp_path / "state.npz").step(23)

    for name in "uvp":
        np.testing.assert_array_equal(getattr(loaded, name), getattr(whole, name))


def test_runs_end_as_with_the_other_kernels(kernels):
    options = {"pressure": "sor", "kernels": kernels}

    assert StaggeredCavity(100, 12, **options).run(0.25).time == 0.25
    assert StaggeredCavity(20, 8, **options).solve(1e-2).change <= 1e-2
    with pytest.raises(pysolvers.ConvergenceError, match="diverged"):
        StaggeredCavity(100, 32, dt=0.05, **options).step(500)
    few = StaggeredCavity(100, 32, max_sweeps=3, **options)
    with pytest.raises(pysolvers.ConvergenceError, match="raise max_sweeps"):
        few.step()
    assert few.steps == 0
    assert not few.u.any()
    assert not few.p.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("source", [0.0, 3.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (7, 8), (20, 33)])
def test_plate_is_that_of_the_naive_variant(shape, source, dtype, kernels):
    boundary = {"x-": 1.0, "x+": Robin(2.0, 0.5), "y-": Neumann(0.3), "y+": 2.0}
    options = {"boundary": boundary, "source": source, "extent": ((0, 1), (0, 1.5))}
    options["dtype"] = dtype
    expected = RedBlackSOR(shape, variant="naive", **options).iterate(60)

    found = RedBlackSOR(shape, variant=kernels, **options).iterate(60)

    np.testing.assert_array_equal(found.u, expected.u)
    assert found.iterations == 60


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("criterion", ["residual", "change", "solution"])
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_plate_is_measured_as_in_the_naive_variant(norm, criterion, dtype, kernels):
    found = []
    for variant in ("naive", kernels):
        plate = RedBlackSOR(
            (12, 17),
            extent=((0, 1), (0, 1)),
            boundary={"y+": 1.0, "x": 0.0, "y-": 0.0},
            variant=variant,
            dtype=dtype,
        )
        with pytest.raises(pysolvers.ConvergenceError) as caught:
            plate.solve(1e-30, norm=norm, criterion=criterion, max_iterations=25, check_every=10)
        found.append(caught.value.result.history)

    expected, history = found
    assert history.iteration.tolist() == [10, 20, 25]
    np.testing.assert_array_equal(history.iteration, expected.iteration)
    np.testing.assert_allclose(
        history.measure, expected.measure, rtol=3e-6 if dtype == np.float32 else 1e-12
    )


def test_plate_converges_and_diverges_as_in_the_naive_variant(kernels):
    results = [
        RedBlackSOR(
            (16, 16),
            extent=((0, 1), (0, 1)),
            boundary={"y+": 1.0, "x": 0.0, "y-": 0.0},
            variant=variant,
        ).solve(1e-9)
        for variant in ("naive", kernels)
    ]

    assert results[0].iterations == results[1].iterations
    np.testing.assert_array_equal(results[0].u, results[1].u)
    assert results[1].kernel == f"{directive.MODELS[kernels]} on the host"
    nan = np.full((8, 8), np.nan)
    with pytest.raises((pysolvers.ConvergenceError, ValueError)):
        RedBlackSOR(
            (8, 8), boundary=0.0, extent=((0, 1), (0, 1)), initial=nan, variant=kernels
        ).solve(1e-9)


def test_plate_refuses_what_directives_do_not_offer(kernels, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="device must be 'cpu' with variant='directive"):
        RedBlackSOR((8, 8), boundary=0.0, extent=((0, 1), (0, 1)), device="cuda", variant=kernels)
    monkeypatch.setattr(directive, "FOLDER", tmp_path)
    with pytest.raises(pysolvers.BackendError, match="was not built"):
        RedBlackSOR((8, 8), boundary=0.0, extent=((0, 1), (0, 1)), variant=kernels)


def test_library_that_was_not_built_is_named(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(directive, "FOLDER", tmp_path)

    with pytest.raises(pysolvers.BackendError, match=r"was not built: run\s+tools/build_directive"):
        StaggeredCavity(pressure="sor", kernels=kernels)


def test_file_that_is_no_library_is_named(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(directive, "FOLDER", tmp_path)
    (tmp_path / f"libpysolvers_{directive.MODELS[kernels]}.so").write_bytes(b"no library")

    with pytest.raises(pysolvers.BackendError, match="cannot be loaded"):
        StaggeredCavity(pressure="sor", kernels=kernels)


def test_older_libgomp_of_another_package_is_named(tmp_path, monkeypatch):
    def load(path):
        raise OSError("libgomp.so.1: version `GOMP_5.1' not found")

    monkeypatch.setattr(directive, "FOLDER", tmp_path)
    monkeypatch.setattr(directive, "_load", load)
    (tmp_path / "libpysolvers_openmp.so").touch()

    with pytest.raises(pysolvers.BackendError, match="loaded an older libgomp before: run the"):
        directive.load("directive-openmp")


def test_tool_names_a_missing_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")

    with pytest.raises(SystemExit, match="no compiler no-such-compiler was found"):
        runpy.run_path(str(TOOL))["compiler"]()
