"""Fixtures of all tests: seeded numbers, and every backend through the same test bodies."""

import functools
import gc
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

# One thread of OpenBLAS, which reads the variable when NumPy is imported, also in the processes of
# pytest-xdist and in those that tests start. The oracles take singular values of matrices of 200
# rows and products of matrices of 512 rows: with a thread per core in each of many processes the
# threads wait for each other, and such a test takes minutes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Python keeps the modules that it compiles: the processes that tests start, more than a hundred,
# would each compile the package for half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The folder of `benchmarks`, which is not installed. It comes last: the package that is tested is
# the one that is installed, not the one of this folder.
sys.path.append(str(Path(__file__).parents[1]))

import array_libraries
import availability
import covering
import fake_device
import gpu_libraries
import numpy as np
import pytest

import pysolvers

os.environ["MPLBACKEND"] = "agg"  # a test must not wait until a window is closed

if availability.missing("cuda"):  # programs for a device are those of users
    array_libraries.switch_off_optimizations()

try:
    import hypothesis
except ImportError:  # a machine with a GPU may lack it; its tests are skipped there
    pass
else:
    from hypothesis.internal.conjecture import providers

    # The same draws in every run, and nothing kept from one run to the next: a run fails because
    # of the code alone. The slow tests draw anew in each run; see test_hypothesis.py.
    hypothesis.settings.register_profile(
        "pysolvers", database=None, derandomize=True, deadline=None, print_blob=True
    )
    hypothesis.settings.load_profile("pysolvers")
    CACHE = tempfile.TemporaryDirectory(prefix="hypothesis-")  # instead of .hypothesis in the clone
    hypothesis.configuration.set_hypothesis_home_dir(CACHE.name)
    # The constants of the sources are no better draws, and reading them takes each process 8 s.
    providers.is_local_module_file = lambda path: False


def pytest_addoption(parser):
    parser.addoption(
        "--require-backend",
        default="cpu",
        metavar="NAMES",
        help="backends, separated by commas, whose absence is a failure and not a skip",
    )


# Tests that start processes, compile programs of JAX, draw figures or many random cases.
LONG = (
    "distributed/",
    "notebooks/",
    "programs/",
    "benchmarks/",
    "contract/",
    "unit/differentiable/",
    "unit/internal/runtime/test_directive",
    "unit/jax/",
    "unit/test_hypothesis",
    "unit/test_plots",
    "unit/test_random_calls",
    "unit/test_spline_hypothesis",
    "unit/tridiagonal/test_determinism",
)


def pytest_ignore_collect(collection_path, config):
    """Leave out files none of whose tests would run.

    Those of LONG, which import much, where only quick tests are asked for; and those of a GPU, a
    quarter of all tests, where there is none and nobody asks for them.
    """
    if config.option.markexpr == "quick" and _is_long(collection_path):
        return True
    is_gpu = collection_path == Path(__file__).parent / "gpu"
    return True if is_gpu and not _is_asked_for_gpu(config) else None


def _is_asked_for_gpu(config):
    """Whether there is a GPU, or an option or an argument names it."""
    options = (config.option.markexpr, config.option.keyword, *config.args)
    return _has_cuda(config) or "gpu" in " ".join(options)


def _is_long(path):
    place = path.relative_to(Path(__file__).parent).as_posix()
    return f"{place}/".startswith(LONG)


def pytest_sessionstart(session):
    """Make no collections of garbage while tests are collected, which keeps all that is made."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Make collections of what tests make alone, not of the tests."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # of JAX programs collections take a twentieth of the time
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark cases of each function that are neither slow nor of a GPU: as quick, and as slow.

    The first one is quick, apart from those of LONG. Of a product of three parameters and more, or
    of two with the mark `each_value`, those are slow that `covering` leaves out, unless a case is
    named.
    """
    functions = {}
    for item in items:
        if not any(mark.name in ("slow", "gpu") for mark in item.iter_markers()):
            functions.setdefault((item.path, item.nodeid.split("[")[0]), []).append(item)
    for (path, _), cases in functions.items():
        if not _is_long(path):
            cases[0].add_marker(pytest.mark.quick)
        strength = 1 if cases[0].get_closest_marker("each_value") else 2
        if len(cases) > strength + 1 and not any("[" in argument for argument in config.args):
            kept = covering.covering(covering.factors(cases), strength)
            for number, case in enumerate(cases):
                if number not in kept:
                    case.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc):
    """Run a test that asks for `backend` on each one that is here or required."""
    if "backend" in metafunc.fixturenames:
        needed = availability.required(metafunc.config)
        here = [b for b in availability.BACKENDS if b in needed or not availability.missing(b)]
        marks = {"cuda": pytest.mark.gpu}
        params = [pytest.param(name, marks=marks.get(name, ())) for name in here]
        metafunc.parametrize("backend", params, scope="session")
    if "everywhere" in metafunc.fixturenames:
        places = [(name, "cpu") for name in array_libraries.DIFFERENTIABLE]
        if _has_cuda(metafunc.config):
            marks = [pytest.mark.gpu, *gpu_libraries.IGNORED]
            places += [pytest.param((name, "cuda"), marks=marks) for name, _ in places]
        metafunc.parametrize("everywhere", places, indirect=True, ids=" ".join)
    if "device_library" in metafunc.fixturenames:
        metafunc.parametrize("device_library", _device_libraries(metafunc.config), indirect=True)


def _has_cuda(config):
    return not availability.missing("cuda") or "cuda" in availability.required(config)


def _device_libraries(config):
    """Return a device of host memory, and the libraries of a GPU that is here or required."""
    if not _has_cuda(config):
        return ["host memory"]
    marks = [pytest.mark.gpu, *gpu_libraries.IGNORED]
    on_gpu = [pytest.param(name, marks=marks) for name in gpu_libraries.LIBRARIES]
    return ["host memory", *on_gpu]


@pytest.fixture(params=array_libraries.LIBRARIES)
def xp(request):
    """Every library of arrays in host memory."""
    with array_libraries.opened(request.param) as library:
        yield library


@pytest.fixture(params=array_libraries.DIFFERENTIABLE)
def differentiable(request):
    """The libraries whose functions have derivatives."""
    with array_libraries.opened(request.param) as library:
        yield library


@pytest.fixture
def everywhere(request):
    """The libraries whose functions have derivatives, in host memory and on a device."""
    with array_libraries.opened(*request.param) as library:
        yield library


@pytest.fixture
def device_library(request):
    """Every library of arrays on a device; the first one needs no GPU."""
    if request.param != "host memory":
        yield gpu_libraries.library(request.param, request.config)
        return
    with fake_device.in_place_of_cuda() as device:
        yield gpu_libraries.HostMemory(device)
    assert device.live == 0


@pytest.fixture(scope="session")
def solve(backend):
    """`solve_tridiagonal` on one backend."""
    return functools.partial(pysolvers.solve_tridiagonal, device=backend)


@pytest.fixture(scope="session")
def factor(backend):
    """`factor_tridiagonal` on one backend; matrices of one row have ``rows=1``."""

    def make(*diagonals, axis=-1, **options):
        lengths = {np.shape(a)[axis] for a in diagonals if np.ndim(a) > 1}
        if lengths == {1}:
            options.setdefault("rows", 1)
        return pysolvers.factor_tridiagonal(*diagonals, axis=axis, device=backend, **options)

    return make


def nearly(actual, desired, **options):
    """Require answers of dominant systems that differ by rounding alone."""
    most = 100 * np.finfo(desired.dtype).eps * np.max(np.abs(desired), initial=0)
    np.testing.assert_allclose(actual, desired, rtol=0, atol=most, **options)


@pytest.fixture(scope="session")
def same_but_for_sharing(backend):
    """Require equal answers; on a device a matrix shared by the batch has kernels of its own."""
    return np.testing.assert_array_equal if backend == "cpu" else nearly


@pytest.fixture(scope="session")
def same_but_for_layout(backend):
    """Require equal answers; on a device neighbouring systems have kernels of their own."""
    equal = np.testing.assert_array_equal

    def same(actual, desired, *, neighbours, **options):
        (nearly if neighbours and backend != "cpu" else equal)(actual, desired, **options)

    return same


@pytest.fixture
def interrupt_later():
    """Interrupt this process in a moment, even where a shell that started it ignores interrupts."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield timer.start
    timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures of pyplot that a test opened."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)
