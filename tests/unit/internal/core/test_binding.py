"""The extension module: what it guards, and what it reports.

Operands have the shape (outer, inner, rows).
"""

import re
import threading

import numpy as np
import pytest

from pysolvers import _core

AUTO = _core.METHODS["auto"]
PIVOT = _core.PIVOTS["auto"]
SHORT = _core.SHORT_LOWER | _core.SHORT_UPPER
ROWS = 5


def code_of(name):
    return next(code for code, (text, _) in _core.STATUS.items() if text == name)


def operands(outer=2, inner=3, rows=ROWS, dtype=np.float64):
    """Dominant lower, diag, upper, rhs and an x of zeros."""
    rng = np.random.default_rng(7)
    shape = (outer, inner, rows)
    lower, upper, rhs = rng.uniform(-1, 1, (3, *shape)).astype(dtype)
    return {
        "lower": lower,
        "diag": np.full(shape, 4, dtype),
        "upper": upper,
        "rhs": rhs,
        "x": np.zeros(shape, dtype),
    }


def solve(ops, *, method=AUTO, pivot=PIVOT, flags=0, info=None, threads=1, variant=0):
    return _core.tridiag_solve(method, pivot, flags, *ops.values(), info, threads, variant)


def make(ops, *, pivot=PIVOT, flags=0, info=None):
    matrix = (ops[name] for name in ("lower", "diag", "upper"))
    return _core.factor_make(pivot, flags, *matrix, info, 1)


def residual(ops):
    x = ops["x"]
    product = ops["diag"] * x
    product[..., 1:] += ops["lower"][..., 1:] * x[..., :-1]
    product[..., :-1] += ops["upper"][..., :-1] * x[..., 1:]
    return np.max(np.abs(product - ops["rhs"]))


def test_lists_of_the_contract_are_numbered_from_zero():
    for table in (_core.METHODS, _core.DTYPES, _core.TRANS, _core.PIVOTS):
        assert sorted(table.values()) == list(range(len(table)))
    assert sorted(_core.STATUS) == list(range(len(_core.STATUS)))
    assert _core.STATUS[0] == ("PS_OK", "success")


def test_backend_describes_itself():
    assert _core.NAME == "cpu"
    assert _core.describe()
    assert _core.default_threads() >= 1


@pytest.mark.parametrize("dtype", list(_core.DTYPES))
def test_solve_reports_what_it_did(dtype):
    ops = operands(dtype=dtype)
    info = np.full(6, -1, np.int32)

    status, report = solve(ops, info=info)

    assert status == 0
    assert set(report) == {"method", "threads", "pivoted", "repeated", "kernel"}
    assert report["method"] in set(_core.METHODS) - {"auto"}
    assert report["pivoted"] == 0
    assert not info.any()
    assert residual(ops) < 1e-5


def test_info_may_be_left_out():
    ops = operands()

    assert solve(ops)[0] == 0
    assert residual(ops) < 1e-14


def test_host_ignores_device_and_stream():
    ops = operands()

    assert _core.tridiag_solve(AUTO, PIVOT, 0, *ops.values(), None, 1, 0, 3, 12345)[0] == 0
    assert residual(ops) < 1e-14


def test_strides_of_any_sign_and_sharing_are_read():
    ops = operands()
    ops["rhs"] = ops["rhs"][::-1, :, ::-1]
    ops["diag"] = np.broadcast_to(np.float64(4), ops["x"].shape)
    ops["x"] = np.zeros((3, ROWS, 4)).transpose(2, 0, 1)[::-2]

    assert solve(ops)[0] == 0
    assert residual(ops) < 1e-14


def test_short_off_diagonals_start_at_their_first_entry():
    ops = operands()
    whole = {name: array.copy() for name, array in ops.items()}
    ops["lower"], ops["upper"] = ops["lower"][..., 1:], ops["upper"][..., :-1]

    assert solve(whole)[0] == 0
    assert solve(ops, flags=SHORT)[0] == 0

    np.testing.assert_array_equal(ops["x"], whole["x"])


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["lower", "diag", "upper", "rhs", "x"])
@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda a: a.tolist(), TypeError),
        (lambda a: a[0], ValueError),
        (lambda a: a.astype(np.int64), TypeError),
        (lambda a: a.astype(np.float16), TypeError),
        (lambda a: a.astype(np.float32), TypeError),
        (lambda a: a.astype(">f8"), ValueError),
        (lambda a: np.zeros((2, 2, ROWS)), ValueError),
        (lambda a: np.zeros((2, 3, ROWS + 1)), ValueError),
        (lambda a: np.zeros((2, 3, ROWS), [("a", "f8"), ("b", "i4")])["a"], ValueError),
        (lambda a: np.zeros(8 * 30 + 1, np.uint8)[1:].view("f8").reshape(a.shape), ValueError),
    ],
)
def test_unsafe_operand_is_refused_by_name(name, spoil, error):
    ops = operands()
    ops[name] = spoil(ops[name])
    others = "lower|upper|rhs|x" if name == "diag" else name

    with pytest.raises(error, match=f"^({others}|{name}): "):
        solve(ops)


def test_read_only_x_is_refused():
    ops = operands()
    ops["x"].flags.writeable = False

    with pytest.raises(ValueError, match="x: the array is read-only"):
        solve(ops)


@pytest.mark.parametrize(
    ("info", "error"),
    [
        ([0] * 6, TypeError),
        (np.zeros(5, np.int32), ValueError),
        (np.zeros(6, np.int64), ValueError),
        (np.zeros(12, np.int32)[::2], ValueError),
    ],
)
def test_unsafe_info_is_refused(info, error):
    with pytest.raises(error, match="info: "):
        solve(operands(), info=info)


def test_negative_thread_count_is_refused():
    with pytest.raises(ValueError, match="threads: need at least 0, got -1"):
        solve(operands(), threads=-1)


@pytest.mark.parametrize(
    "options",
    [
        {"method": -1},
        {"method": len(_core.METHODS)},
        {"pivot": -1},
        {"pivot": len(_core.PIVOTS)},
        {"variant": -1},
        {"flags": 8},
    ],
)
def test_code_out_of_range_is_a_bad_argument(options):
    status, report = solve(operands(), **options)

    assert status == code_of("PS_BAD_ARGUMENT")
    assert report is None


def test_periodic_systems_have_no_short_off_diagonal():
    ops = operands()
    ops["lower"] = ops["lower"][..., 1:]

    status, _ = solve(ops, flags=_core.PERIODIC | _core.SHORT_LOWER)

    assert status == code_of("PS_BAD_ARGUMENT")


def test_x_may_be_rhs():
    ops = operands()
    rhs = ops["rhs"].copy()
    ops["x"] = ops["rhs"]

    assert solve(ops)[0] == 0

    ops["rhs"] = rhs
    assert residual(ops) < 1e-14


@pytest.mark.parametrize("name", ["lower", "diag", "upper"])
def test_x_may_not_be_a_diagonal(name):
    ops = operands()
    ops["x"] = ops[name]

    assert solve(ops)[0] == code_of("PS_BAD_LAYOUT")


@pytest.mark.parametrize(
    "shift",
    [
        lambda base: (base[:, :, :ROWS], base[:, :, 1 : ROWS + 1]),
        lambda base: (base[:, :, :ROWS], base[:, :, ROWS - 1 :: -1]),
        lambda base: (base[:, :3, :ROWS], base[:, 1:, :ROWS]),
        lambda base: (base[::-1, :, :ROWS], base[:, :, :ROWS]),
        lambda base: (base[:, :, : 2 * ROWS : 2], base[:, :, 2 : ROWS + 2]),
    ],
)
def test_x_may_not_overlap_rhs_otherwise(shift):
    ops = operands(inner=3)
    ops["rhs"], ops["x"] = (a[:, :3] for a in shift(np.ones((2, 4, 2 * ROWS))))

    assert solve(ops)[0] == code_of("PS_BAD_LAYOUT")


@pytest.mark.parametrize(
    "part",
    [
        lambda base: (base[:, :3, : 2 * ROWS : 2], base[:, :3, 1 : 2 * ROWS : 2]),
        lambda base: (base[:, :3, :ROWS], base[:, :3, ROWS:]),
        lambda base: (base[:, :3, ROWS - 1 :: -1], base[:, 3:, :ROWS]),
        lambda base: (base[:, ::2, :ROWS], base[::-1, 1::2, :ROWS]),
    ],
)
def test_views_that_interleave_without_a_common_element_are_accepted(part):
    ops = operands()
    lower, x = part(np.full((2, 6, 2 * ROWS), 0.5))
    ops["lower"], ops["x"] = lower, x

    assert solve(ops)[0] == 0
    assert residual(ops) < 1e-14


@pytest.mark.parametrize("strides", [(0, 40, 8), (120, 40, 0), (120, 8, 8), (16, 40, 8)])
def test_x_may_not_repeat_an_element(strides):
    ops = operands()
    ops["x"] = np.lib.stride_tricks.as_strided(np.zeros(60), (2, 3, ROWS), strides)

    assert solve(ops)[0] == code_of("PS_BAD_LAYOUT")


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_empty_batch_is_a_success(shape):
    outer, inner = shape

    assert solve(operands(outer, inner))[0] == 0


def test_inputs_are_read_only_to_the_backend():
    ops = operands()
    for name in ("lower", "diag", "upper", "rhs"):
        ops[name].flags.writeable = False
    before = {name: array.copy() for name, array in ops.items()}

    solve(ops)

    for name in ("lower", "diag", "upper", "rhs"):
        np.testing.assert_array_equal(ops[name], before[name])


@pytest.mark.parametrize("trans", list(_core.TRANS))
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_factor_solves_every_form(trans, dtype):
    ops = operands(dtype=dtype)
    if trans != "N":
        turned = {name: array.conj() if trans == "H" else array for name, array in ops.items()}
        ops["lower"] = np.roll(turned["upper"], 1, axis=-1)
        ops["upper"] = np.roll(turned["lower"], -1, axis=-1)
    matrix = operands(dtype=dtype)

    status, report, factor = make(matrix)

    assert status == 0
    assert report["pivoted"] == 0
    assert factor.nbytes > 0
    assert factor.solve(_core.TRANS[trans], ops["rhs"], ops["x"], 1, 1, 1, 0) == 0
    assert residual(ops) < 1e-14


@pytest.mark.parametrize("steps", [(0, 1), (1, 0), (0, 0)])
def test_factor_is_shared_along_an_axis_of_step_zero(steps):
    ops = operands()
    matrix = {
        name: array[: 2 if steps[0] else 1, : 3 if steps[1] else 1] for name, array in ops.items()
    }
    factor = make(matrix)[2]

    assert factor.solve(0, ops["rhs"], ops["x"], *steps, 1) == 0

    for name in ("lower", "diag", "upper"):
        ops[name] = np.broadcast_to(matrix[name], ops["x"].shape)
    assert residual(ops) < 1e-14


def test_factor_names_singular_matrices():
    ops = operands()
    ops["diag"][1, 2, 3] = ops["lower"][1, 2, 3] = ops["upper"][1, 2, 3] = 0
    info = np.zeros(6, np.int32)

    status, _, _ = make(ops, info=info)

    assert status == 0
    assert np.flatnonzero(info).tolist() == [5]


def test_factor_refuses_systems_that_it_has_no_matrix_for():
    factor = make(operands())[2]
    ops = operands(outer=3)
    bad = code_of("PS_BAD_ARGUMENT")

    assert factor.solve(0, ops["rhs"], ops["x"], 1, 1, 1) == bad
    assert factor.solve(0, ops["rhs"][:2], ops["x"][:2], 2, 1, 1) == bad
    assert factor.solve(len(_core.TRANS), ops["rhs"][:2], ops["x"][:2], 1, 1, 1) == bad


def test_factor_refuses_overlap_and_other_operands():
    factor = make(operands())[2]
    base = np.zeros((2, 3, ROWS + 1))

    status = factor.solve(0, base[..., 1:], base[..., :-1], 1, 1, 1)

    assert status == code_of("PS_BAD_LAYOUT")
    with pytest.raises(ValueError, match="rhs: need the dtype and the 5 rows of the factor"):
        factor.solve(0, base, np.zeros_like(base), 1, 1, 1)
    single = base[..., 1:].astype(np.float32)
    with pytest.raises(ValueError, match="rhs: need the dtype"):
        factor.solve(0, single, np.zeros_like(single), 1, 1, 1)


@pytest.mark.parametrize("options", [{"pivot": -1}, {"flags": 8}, {"pivot": len(_core.PIVOTS)}])
def test_factor_code_out_of_range_is_a_bad_argument(options):
    status, report, factor = make(operands(), **options)

    assert status == code_of("PS_BAD_ARGUMENT")
    assert report is None
    assert factor is None


def test_factor_is_made_by_the_module_only():
    with pytest.raises(TypeError):
        _core.Factor()
    with pytest.raises(TypeError):
        _core.Factor.solve = None


def test_factor_serves_several_threads_at_once():
    ops = operands(outer=20, inner=30, rows=50)
    factor = make(ops)[2]
    results = [np.zeros_like(ops["rhs"]) for _ in range(4)]

    def work(x):
        for _ in range(20):
            assert factor.solve(0, ops["rhs"], x, 1, 1, 1) == 0

    threads = [threading.Thread(target=work, args=(x,)) for x in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for x in results:
        np.testing.assert_array_equal(x, results[0])
    ops["x"] = results[0]
    assert residual(ops) < 1e-13


@pytest.mark.parametrize(("factors", "error"), [([], TypeError), ((), ValueError)])
def test_differences_name_the_factors_that_they_refuse(factors, error):
    by = (0, 1, 0.5, 0.0, 0.25, 0.0, ((1.0,), (1.0,)))

    with pytest.raises(error, match=re.escape(f"got {factors}")):
        _core.differences_direct(by, factors, np.ones(8), 0, None, 1)
