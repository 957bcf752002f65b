"""Exceptions, the status table, and the registry of backends."""

import pickle
import sys
import types
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

import pysolvers
from pysolvers import _cli, _errors, _options, _version
from pysolvers._extras import extra_module
from pysolvers._runtime import backends

STATUS = {
    0: ("PS_OK", "success"),
    1: ("PS_BAD_ARGUMENT", "out of range"),
    2: ("PS_BAD_LAYOUT", "overlap"),
    3: ("PS_UNSUPPORTED", "not offered"),
    6: ("PS_INTERRUPTED", "interrupted"),
}


def singular(*indices):
    return np.array(indices, np.intp).reshape(len(indices), -1)


@pytest.mark.parametrize("name", ["BackendError", "ConvergenceError", "SingularSystemError"])
def test_every_error_is_a_pysolvers_error(name):
    assert issubclass(getattr(pysolvers, name), pysolvers.PysolversError)


def test_singular_system_is_a_linalg_error():
    assert issubclass(pysolvers.SingularSystemError, np.linalg.LinAlgError)


def test_message_names_the_first_system_and_row():
    error = pysolvers.SingularSystemError(singular((1, 2), (3, 0)), np.array([4, 5]))

    assert (
        str(error) == "a zero or subnormal pivot in 2 systems, first at batch index (1, 2), row 4"
    )


def test_message_of_a_single_failure_counts_one():
    error = pysolvers.SingularSystemError(singular((7,)), np.array([0]))

    assert str(error) == "a zero or subnormal pivot in 1 system at batch index (7,), row 0"


def test_message_without_a_batch_has_no_index():
    error = pysolvers.SingularSystemError(np.zeros((1, 0), np.intp), np.array([3]))

    assert str(error) == "a zero or subnormal pivot in the system, row 3"


def test_errors_survive_pickling():
    error = pysolvers.SingularSystemError(singular((1, 2)), np.array([4]))
    stopped = pysolvers.ConvergenceError("no progress", result={"iterations": 3})

    same_error, same_stop = pickle.loads(pickle.dumps((error, stopped)))

    np.testing.assert_array_equal(same_error.systems, [[1, 2]])
    np.testing.assert_array_equal(same_error.rows, [4])
    assert str(same_error) == str(error)
    assert same_stop.result == {"iterations": 3}
    assert str(same_stop) == "no progress"


def test_success_raises_nothing():
    _errors.raise_for_status(0, STATUS, "solve")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (1, ValueError),
        (2, ValueError),
        (3, pysolvers.BackendError),
        (6, pysolvers.BackendError),
    ],
)
def test_status_raises_its_exception_with_its_text(status, kind):
    name, text = STATUS[status]

    with pytest.raises(kind, match=rf"solve: {text} \({name}\)"):
        _errors.raise_for_status(status, STATUS, "solve")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (None, ("cpu", 0)),
        ("cpu", ("cpu", 0)),
        ("cuda", ("cuda", 0)),
        ("cuda:1", ("cuda", 1)),
        ("cuda:12", ("cuda", 12)),
        ("gpu", ("cuda", 0)),
        ("gpu:2", ("cuda", 2)),
    ],
)
def test_device_is_backend_and_number(device, expected):
    assert backends.parse_device(device) == expected


@pytest.mark.parametrize("device", ["", "tpu", "cpu:0", "cuda:", "cuda:-1", "cuda:1 ", "CPU"])
def test_unknown_device_is_refused(device):
    with pytest.raises(ValueError, match="device must be"):
        backends.parse_device(device)


def test_device_must_be_text():
    with pytest.raises(TypeError, match="device must be a str or None, got int"):
        backends.parse_device(0)


@pytest.fixture
def registry(monkeypatch):
    """Register modules as backends for the length of a test."""

    def add(name, module_name, module=None):
        monkeypatch.setitem(backends._MODULES, name, (module_name,))
        if module is not None:
            monkeypatch.setitem(sys.modules, module_name, module)
        backends.host.cache_clear()
        backends._load.cache_clear()

    yield add
    backends.host.cache_clear()
    backends._load.cache_clear()


def test_missing_backend_says_that_it_is_not_installed(registry):
    registry("none", "pysolvers._none")

    assert backends.unavailable_reason("none") == "pysolvers._none is not installed"
    with pytest.raises(pysolvers.BackendError, match=r"'none' is not available.*not installed"):
        backends.require("none")


def test_missing_device_backend_names_the_remedy(registry):
    registry("cuda", "pysolvers._missing")

    remedy = r"PYSOLVERS_CUDA=1 pip install \..*device='cpu'"
    with pytest.raises(pysolvers.BackendError, match=f"_missing is not installed: .*{remedy}"):
        pysolvers.solve_tridiagonal(-1.0, 4.0, -1.0, np.ones(4), device="cuda")


@pytest.mark.parametrize(
    ("is_source", "remedy"),
    [
        (True, r"not compiled in .*another folder.*pip install -e \."),
        (False, r"pip install \. in a copy"),
    ],
)
def test_missing_cpu_backend_names_the_remedy(registry, monkeypatch, tmp_path, is_source, remedy):
    registry("cpu", "pysolvers._missing")
    monkeypatch.setattr(backends, "_ROOT", tmp_path)
    if is_source:
        (tmp_path / "setup.py").touch()

    with pytest.raises(pysolvers.BackendError, match=remedy):
        pysolvers.solve_tridiagonal(-1.0, 4.0, -1.0, np.ones(4))


def test_backend_of_another_contract_is_refused_with_both_numbers(registry):
    stale = types.ModuleType("stale")
    stale.ABI = 999
    registry("stale", "stale", stale)

    with pytest.raises(pysolvers.BackendError, match=r"built for contract 999.*rebuild"):
        backends.require("stale")


DISTRIBUTION = backends.CUDA_DISTRIBUTION
PACKAGE = DISTRIBUTION.replace("-", "_")
METADATA = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: "


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install modules that stand for the CUDA backend into a folder of the search path."""
    own = "stand_in_for_own_build"
    monkeypatch.setitem(backends._MODULES, "cuda", (own, backends._MODULES["cuda"][1]))
    monkeypatch.setattr(_version, "__version__", "1.2.3")
    monkeypatch.syspath_prepend(tmp_path)
    for name in (PACKAGE, f"{PACKAGE}._cuda"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    backends._load.cache_clear()

    def code(where, abi):
        return f"ABI, WHERE = {abi}, {where!r}\ndef unavailable():\n    return None\n"

    def build(abi=backends.ABI_VERSION):
        (tmp_path / f"{own}.py").write_text(code("own build", abi))

    def install(version="1.2.3", abi=backends.ABI_VERSION, text=None):
        folder = tmp_path / PACKAGE
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "_cuda.py").write_text(text or code("distribution", abi))
        if version is not None:
            metadata = tmp_path / f"{PACKAGE}-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(
                f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n"
            )

    yield types.SimpleNamespace(build=build, install=install)
    backends._load.cache_clear()
    for name in (own, PACKAGE, f"{PACKAGE}._cuda"):
        sys.modules.pop(name, None)


def test_distribution_for_cuda_is_found_without_a_setting(installed):
    installed.install()

    assert backends.loaded("cuda") is None
    assert backends.require("cuda").WHERE == "distribution"
    assert backends.loaded("cuda") is backends.require("cuda")
    assert backends.installed_module("cuda") == f"{PACKAGE}._cuda"


def test_own_build_is_used_before_the_distribution(installed):
    installed.build()
    installed.install()

    assert backends.require("cuda").WHERE == "own build"


def test_own_build_of_another_contract_is_not_replaced_in_silence(installed):
    installed.build(abi=3)
    installed.install()

    with pytest.raises(
        pysolvers.BackendError, match=r"own_build was built for contract 3.*rebuild"
    ):
        backends.require("cuda")


def test_distribution_of_another_version_is_refused_with_the_remedy(installed):
    installed.install(version="1.2.4")

    expected = (
        f"{DISTRIBUTION} is version 1.2.4, pysolvers is 1.2.3: "
        "build both from one copy of the source"
    )
    assert backends.unavailable_reason("cuda") == expected
    assert backends.installed_module("cuda") is None


def test_distribution_of_another_contract_is_refused_with_the_remedy(installed):
    installed.install(abi=3)

    with pytest.raises(
        pysolvers.BackendError, match=r"contract 3.*: build both from one copy of the source"
    ):
        backends.require("cuda")


@pytest.mark.parametrize(("own", "other"), [("0+unknown", "1.0"), ("1.2.3", None)])
def test_version_that_is_not_known_is_not_compared(installed, monkeypatch, own, other):
    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_version, "__version__", own)
    if other is None:  # a folder of the search path, which pip did not install
        monkeypatch.setattr("importlib.metadata.version", not_installed)
    installed.install(version=other)

    assert backends.require("cuda").WHERE == "distribution"


def test_info_names_the_installed_module_and_why_no_device_is_used(installed, capsys):
    installed.install(
        text=f"ABI = {backends.ABI_VERSION}\ndef unavailable():\n    return 'no GPU'\n"
    )

    assert _cli.main(["info"]) == 0
    text = f"backend cuda  {PACKAGE}._cuda is installed, but not available: no GPU\n"
    assert text in capsys.readouterr().out


def test_library_that_the_distribution_lacks_is_named(installed):
    installed.install(text="import library_that_is_missing")

    reason = f"{PACKAGE}._cuda cannot be imported: No module named 'library_that_is_missing'"
    assert backends.unavailable_reason("cuda") == reason


def test_cpu_backend_is_always_there():
    assert backends.unavailable_reason("cpu") is None
    assert backends.require("cpu").NAME == "cpu"


@pytest.mark.parametrize(
    ("method", "pivot", "expected"),
    [
        ("auto", None, "auto"),
        ("auto", True, "always"),
        ("auto", False, "never"),
        ("pivoted", None, "always"),
        ("pivoted", True, "always"),
        ("thomas", None, "never"),
        ("cr", np.False_, "never"),
    ],
)
def test_pivoting_follows_method_and_option(method, pivot, expected):
    codes = {"auto": "auto", "never": "never", "always": "always"}

    assert _options.pivot_code(pivot, codes, method) == expected


@pytest.mark.parametrize(("method", "pivot"), [("pivoted", False), ("cr", True)])
def test_contradiction_of_method_and_pivot_is_refused(method, pivot):
    with pytest.raises(ValueError, match=method):
        _options.pivot_code(pivot, {}, method)


def test_pivot_must_be_a_bool():
    with pytest.raises(TypeError, match="pivot must be a bool or None, got int"):
        _options.pivot_code(1, {})


@pytest.mark.parametrize("threads", [0, -1, 2**15 + 1])
def test_thread_count_out_of_range_is_refused(threads):
    with pytest.raises(ValueError, match=f"threads must be in 1 .. 32768, got {threads}"):
        _options.check_threads(threads)


@pytest.mark.parametrize("threads", [True, 1.0, "2"])
def test_thread_count_must_be_an_integer(threads):
    with pytest.raises(TypeError, match="threads must be an int or None"):
        _options.check_threads(threads)


def test_thread_count_of_none_is_the_default():
    assert _options.check_threads(None) == 0
    assert _options.check_threads(np.int64(3)) == 3


def test_extra_that_is_broken_says_what_it_lacks(monkeypatch, tmp_path):
    (tmp_path / "broken_extra.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        extra_module("broken_extra", "plot")
