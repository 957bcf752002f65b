"""Operands of one axis: every shape against the rule, written once more in operand_axes.py."""

import itertools
import os
import re

import numpy as np
import pytest
from operand_axes import NAMES, both, cases, filled, meant, residual

import pysolvers

PLANES = list(itertools.product(range(1, 7), range(1, 7)))
BOXES = [(2, 3, 4), (3, 3, 3), (4, 1, 3), (1, 4, 2)]
SEED = int(os.environ.get("PYSOLVERS_RANDOM_SEED", "20240607"))


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_solve_in_planes(solve, rng, axis, periodic):
    for shape in PLANES:
        for shapes, at in cases(shape, axis):
            check(solve, filled(rng, shapes), at, periodic)


@pytest.mark.parametrize("axis", range(-3, 3))
def test_solve_in_boxes(solve, rng, axis):
    for shape in BOXES:
        for shapes, at in cases(shape, axis):
            check(solve, filled(rng, shapes), at, False)


def check(solve, named, axis, periodic):
    """Require that a call returns the solution of what its operands mean, or refuses them."""
    options = {"axis": axis, "periodic": periodic}
    found = both(named, axis, periodic, solve, *named.values(), **options)
    if found is None:
        return
    full, x = found
    x = np.moveaxis(x, axis, -1)
    assert x.shape == full[0].shape
    shapes = {name: np.shape(a) for name, a in named.items()}
    assert residual(full, x, periodic=periodic) < 1e-13, (shapes, axis, periodic)


@pytest.mark.parametrize("axis", [0, 1])
def test_factors_and_their_right_hand_sides(factor, rng, axis):
    """Factors of every shape, with right-hand sides of one axis."""

    def make(lower, diag, upper, axis):
        one = {a.shape[axis] if a.ndim > 1 else a.size for a in (lower, diag, upper)} == {1}
        return factor(lower, diag, upper, axis=axis, rows=1 if one else None)

    for shape in PLANES[axis::2]:
        rows = shape[axis]
        for shapes, at in cases(shape, axis, NAMES[:3]):
            named = filled(rng, shapes)
            found = both(named, at, False, make, *named.values(), axis=at)
            if found is None:
                continue
            full, made = found
            for length in {rows - 1, rows, rows + 1, 1, *shape}:
                rhs = rng.uniform(-1, 1, length)
                if length != full[0].shape[-1]:
                    with pytest.raises(ValueError, match=f"rhs has {length} entr"):
                        made.solve(rhs)
                    continue
                x = np.moveaxis(made.solve(rhs), made.axis, -1)
                assert x.shape == full[0].shape
                assert residual([*full, rhs], x) < 1e-13


def test_factors_refuse_what_solves_refuse(rng):
    """With `rows`, too: no length stands for a number."""
    for length in range(6):
        diagonals = [np.full(length, 1.0), np.full((3, 4), 4.0), 1.0]
        if length in (3, 4):
            pysolvers.factor_tridiagonal(*diagonals, rows=4)
            continue
        with pytest.raises(ValueError, match=f"lower has {length} entr"):
            pysolvers.factor_tridiagonal(*diagonals, rows=4)
    made = pysolvers.factor_tridiagonal(1.0, np.full((3, 4), 4.0), 1.0)
    with pytest.raises(ValueError, match=r"diag has 1 entry, but .* 4 rows: .* write a number"):
        made.refactor(1.0, [4.0], 1.0)


MESSAGES = [
    (
        {"lower": (32,), "rhs": (64, 32)},
        0,
        "lower has 32 entries, but the systems along axis 0 have 64 rows: a one-dimensional "
        "operand lies along the axis; for one coefficient per column write lower[None, :]",
    ),
    ({"diag": (63,), "rhs": (64, 63)}, 0, "per column write diag[None, :]"),
    ({"upper": (5,), "rhs": (5, 7)}, 1, "per row of the array write upper[:, None]"),
    ({"rhs": (5,), "diag": (4, 5)}, 0, "one value per column write rhs[None, :]"),
    ({"lower": (7,), "rhs": (7, 5, 9)}, 1, "per index of axis 0 write lower[:, None, None]"),
    ({"lower": (9,), "rhs": (7, 5, 9)}, 1, "per index of axis 2 write lower[None, :]"),
    ({"diag": (1,), "rhs": (5, 4)}, -1, "for a constant coefficient write a number, diag[0]"),
    ({"rhs": (1,), "diag": (5, 4)}, -1, "the same value in every row write numpy.full(4, value)"),
    ({"diag": (4,), "rhs": (5,)}, 0, "diag has 4 entries, but the systems have 5 rows: "),
    ({"lower": (2, 4), "rhs": (2, 6)}, 1, "lower has 4 rows along axis 1, but the systems have 6"),
]


@pytest.mark.parametrize(("shapes", "axis", "text"), MESSAGES)
def test_messages_show_the_call_to_write(solve, shapes, axis, text):
    operands = {"lower": 1.0, "diag": 4.0, "upper": 1.0} | {
        name: np.ones(shape) for name, shape in shapes.items()
    }

    with pytest.raises(ValueError, match=re.escape(text)) as caught:
        solve(*(operands[name] for name in NAMES), axis=axis)

    advice = re.search(r"write (\w+)\[(None|:)(.*)\]$", str(caught.value))
    if advice:  # what the message says works
        name = advice[1]
        operands[name] = eval(advice[0].removeprefix("write "), {name: operands[name]})
        solve(*(operands[name] for name in NAMES), axis=axis)


@pytest.mark.parametrize(("name", "end"), [("lower", "first in lower"), ("upper", "last in upper")])
def test_corner_entries_of_periodic_systems(solve, name, end):
    operands = dict(zip(NAMES, (1.0, 4.0, 1.0, np.ones(6)), strict=True))
    operands[name] = np.ones(5)

    with pytest.raises(ValueError, match=f"{name} has 5 entries.*corner entry, which is the {end}"):
        solve(*operands.values(), periodic=True)


def test_random_shapes_and_lengths(solve):
    """Up to four axes, any of them left out, for other seeds with PYSOLVERS_RANDOM_SEED."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    refused = 0
    for _ in range(400):
        full = tuple(rng.integers(1, 6, rng.integers(1, 5)).tolist())
        axis = int(rng.integers(-len(full), len(full)))
        shapes = {name: random_shape(rng, full, axis) for name in NAMES}
        named = filled(rng, shapes) if shapes["rhs"] else filled(rng, shapes | {"rhs": full})
        axis = min(axis, max(map(np.ndim, named.values())) - 1)
        if -axis > max(map(np.ndim, named.values())):
            continue
        periodic = bool(rng.random() < 0.3)
        try:
            meant(named, axis, periodic=periodic)
        except ValueError:
            refused += 1
        check(solve, named, axis, periodic)
    assert 20 < refused < 380


def random_shape(rng, full, axis):
    """Return a shape that broadcasts to `full`, or of one axis of some length, or nearly so."""
    rows = full[axis]
    kind = rng.choice(["number", "line", "all", "some"], p=[0.15, 0.4, 0.15, 0.3])
    if kind == "number":
        return ()
    if kind == "line":
        return (int(rng.choice([rows, rows, rows, rows - 1, rows + 1, 1, full[-1]])),)
    if kind == "all":
        return full
    return tuple(1 if rng.random() < 0.3 else n for n in full[rng.integers(len(full)) :])
