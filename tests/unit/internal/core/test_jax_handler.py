"""The handler that XLA calls: it refuses calls whose arrays do not fit their layout."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from pysolvers._runtime.backends import require  # noqa: E402
from pysolvers.jax import solve_tridiagonal  # noqa: E402


@pytest.fixture(autouse=True)
def double_precision():
    """Let JAX have float64."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


ROWS, SYSTEMS = 8, 3
# pivot, flags, rows, outer, inner; then first element and strides of lower, diag, upper, rhs, x.
LAYOUT = np.array([0, 0, ROWS, 1, SYSTEMS, *[0, 1, 0, ROWS] * 5])


def call(layout, dtypes=(np.float64,) * 4, result=np.float64):
    """Call the handler with dominant systems."""
    solve_tridiagonal(1.0, 4.0, 1.0, np.ones(3))  # registers it
    values = (1.0, 4.0, 1.0, 6.0)
    operands = (np.full((SYSTEMS, ROWS), v, dtype) for v, dtype in zip(values, dtypes, strict=True))
    target = jax.ShapeDtypeStruct((SYSTEMS, ROWS), result)
    function = jax.ffi.ffi_call("pysolvers_tridiagonal", target)
    return np.asarray(jax.jit(lambda *a: function(*a, layout=layout))(*operands))


def changed(place, value):
    layout = LAYOUT.copy()
    layout[place] = value
    return layout


def test_layout_of_contiguous_arrays_is_accepted():
    product = 4 * call(LAYOUT)
    x = product / 4
    product[:, 1:] += x[:, :-1]
    product[:, :-1] += x[:, 1:]

    np.testing.assert_allclose(product, 6, rtol=1e-14)


@pytest.mark.parametrize(
    "layout",
    [
        LAYOUT[:-1],
        LAYOUT.astype(np.int32),
        changed(2, ROWS + 1),
        changed(4, SYSTEMS + 1),
        changed(4, 2**62),
        changed(5, 1),
        changed(5, -1),
        changed(6, -1),
        changed(8, 2**62),
        changed(-1, ROWS + 1),
    ],
)
def test_layout_beyond_the_arrays_is_refused(layout):
    with pytest.raises(Exception, match="do not fit its layout"):
        call(layout)


@pytest.mark.parametrize(("place", "value"), [(0, 9), (1, 64), (2, 0), (4, -1)])
def test_layout_that_the_backend_refuses_is_an_error(place, value):
    with pytest.raises(Exception, match="out of its range"):
        call(changed(place, value))


def test_types_must_agree():
    single = (np.float32, np.float64, np.float64, np.float64)

    with pytest.raises(Exception, match="do not fit its layout"):
        call(LAYOUT, single)
    with pytest.raises(Exception, match="do not fit its layout"):
        call(LAYOUT, result=np.int64)


def test_result_that_repeats_elements_is_refused():
    with pytest.raises(Exception, match="overlap"):
        call(changed(-1, 0))


def test_workspace_needs_a_layout():
    core = require("cpu")

    assert core.xla_tridiag_work(core.DTYPES["float64"], LAYOUT) >= 4 * SYSTEMS
    with pytest.raises(ValueError, match="a layout of at most 25 int64"):
        core.xla_tridiag_work(core.DTYPES["float64"], np.append(LAYOUT, 0))
    with pytest.raises(RuntimeError, match="out of its range"):
        core.xla_tridiag_work(core.DTYPES["float64"], LAYOUT[1:])
    with pytest.raises(ValueError, match="need a dtype"):
        core.xla_tridiag_work(17, LAYOUT)
    with pytest.raises(RuntimeError, match="out of its range"):
        core.xla_tridiag_work(core.DTYPES["float64"], changed(0, 9))
