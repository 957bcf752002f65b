"""The sweeps of the heat solver against sparse matrices: every kind of side, k and source."""

import numpy as np
import pytest
from heat_reference import (
    Box,
    douglas_gunn,
    factored_residual,
    peaceman_rachford,
    with_sides,
)

from pysolvers import Dirichlet, HeatADI, Neumann, Robin, _core

# The schemes are exact for polynomials, whatever the length of a step.
pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")

D, F, P = "value", "flux", "periodic"
STEPS = 2
REFERENCES = {"peaceman-rachford": peaceman_rachford, "douglas-gunn": douglas_gunn}

SIDES_2D = [
    ((D, D), (D, D)),
    ((F, D), (D, F)),
    ((F, F), (F, F)),
    ((P, P), (D, D)),
    ((P, P), (P, P)),
    ((D, F), (P, P)),
]
SIDES_3D = [
    ((D, D), (D, D), (D, D)),
    ((F, D), (P, P), (D, F)),
    ((P, P), (F, F), (D, D)),
    ((F, F), (D, F), (P, P)),
]
RATIO = (0.7, 13.0, 0.4)
RIGHT_SIDES = ("none", "uniform", "field")


class Case:
    """Random data for STEPS steps, packed as the backend takes them."""

    def __init__(self, rng, shape, kinds, varied, source):
        axes = len(shape)
        self.ratio = RATIO[:axes]
        self.k = rng.uniform(0.2, 1.2, shape) if varied else np.ones(shape)
        exchange = [[0.3 if kind == F else 0.0 for kind in pair] for pair in kinds]
        self.box = Box(shape, self.ratio, kinds, exchange, self.k)
        self.levels, self.sweeps, self.sides, tables = {}, {}, [], []
        for axis in range(axes):
            over = tuple(n for a, n in enumerate(shape) if a != axes - 1 - axis)
            for end in (0, -1):
                kind = kinds[axis][end]
                level, sweep = rng.random((STEPS + 1, *over)), rng.random((STEPS, *over))
                self.levels[axis, end], self.sweeps[axis, end] = level, sweep
                start = sum(map(np.size, tables))
                nodes = int(np.prod(over))
                places = (start, nodes, 1), (start + level.size, nodes, 1)
                self.sides.append((_core.HEAT_SIDES[kind], exchange[axis][end], *places))
                tables += [level.ravel(), sweep.ravel()]
        self.tables = np.concatenate(tables)
        self.t = with_sides(self.box, rng.random(shape), self.levels, 0)
        self.source, self.source_steps = self._source(rng, source, shape)
        self.varied = varied

    def _source(self, rng, source, shape):
        if source == "none":
            return None, (0, 0)
        if source == "uniform":
            return rng.random((STEPS, *(1 for _ in shape))), (1, 0)
        return rng.random((STEPS, *shape)), (int(np.prod(shape)), 1)

    def step(self, scheme, threads=1, steps=STEPS, kept=None, before=0, expected="PS_OK"):
        """t after the steps, and the largest magnitude that the backend found."""
        t, w, largest = self.t.copy(), np.full_like(self.t, np.nan), np.zeros(1)
        made = np.zeros(1, np.int64)
        k = self.k if self.varied else None
        status, _ = _core.heat_step(
            (_core.HEAT_SCHEMES[scheme], 0, 0, 1, 0),
            (1, 0, 0, 0, before),
            (*self.ratio, *(0.0,) * (3 - len(self.ratio))),
            tuple(self.sides),
            self.tables,
            self.source,
            self.source_steps,
            k,
            t,
            w,
            largest,
            kept,
            steps,
            threads,
            made,
        )
        assert _core.STATUS[status][0] == expected
        assert made[0] == (steps if expected == "PS_OK" else 0)
        return t, largest[0]

    def expected(self, scheme):
        source = [0.0] * STEPS if self.source is None else self.source
        return REFERENCES[scheme](self.box, self.t, self.levels, self.sweeps, source)


def check(case, scheme, threads=1):
    t, largest = case.step(scheme, threads)
    expected = case.expected(scheme)

    np.testing.assert_allclose(t, expected, rtol=0, atol=2e-13 * np.abs(expected).max())
    assert largest == np.abs(t).max()


@pytest.mark.parametrize("source", RIGHT_SIDES)
@pytest.mark.parametrize("varied", [False, True], ids=["k", "k(x)"])
@pytest.mark.parametrize("kinds", SIDES_2D, ids=str)
@pytest.mark.parametrize("scheme", REFERENCES)
def test_two_axes(rng, scheme, kinds, varied, source):
    check(Case(rng, (9, 7), kinds, varied, source), scheme)


@pytest.mark.parametrize("varied", [False, True], ids=["k", "k(x)"])
@pytest.mark.parametrize("kinds", SIDES_3D, ids=str)
def test_three_axes(rng, kinds, varied):
    check(Case(rng, (6, 4, 5), kinds, varied, "field"), "douglas-gunn")


# Bands are 64 or 32 lines wide in float64, chunks 32 or 64 rows.
@pytest.mark.each_value
@pytest.mark.parametrize("shape", [(3, 3), (3, 140), (140, 3), (66, 67), (35, 131), (130, 64)])
@pytest.mark.parametrize("kinds", [SIDES_2D[1], SIDES_2D[5]], ids=str)
def test_bands_and_chunks(rng, shape, kinds):
    for scheme in REFERENCES:
        check(Case(rng, shape, kinds, False, "field"), scheme, threads=2)


def test_a_negative_number_of_steps_before_is_refused(rng):
    case = Case(rng, (9, 7), SIDES_2D[1], False, "none")

    case.step("douglas-gunn", before=-1, expected="PS_BAD_ARGUMENT")
    case.step("douglas-gunn", before=3)


def test_planes_of_three_axes(rng):
    check(Case(rng, (19, 5, 6), SIDES_3D[1], False, "uniform"), "douglas-gunn", threads=2)


@pytest.mark.parametrize("varied", [False, True], ids=["k", "k(x)"])
def test_two_nodes_between_fluxes(rng, varied):
    check(Case(rng, (2, 2), ((F, F), (F, F)), varied, "none"), "peaceman-rachford")


def test_single_unknown(rng):
    check(Case(rng, (3, 3), ((D, D), (D, D)), True, "none"), "peaceman-rachford")


@pytest.mark.each_value
@pytest.mark.parametrize("scheme", REFERENCES)
@pytest.mark.parametrize("varied", [False, True], ids=["k", "k(x)"])
def test_same_bits_for_any_threads(rng, scheme, varied):
    case = Case(rng, (97, 150), SIDES_2D[1], varied, "field")
    one = case.step(scheme, 1)[0]

    for threads in (2, 3):
        np.testing.assert_array_equal(case.step(scheme, threads)[0], one)


def test_largest_tells_what_is_not_finite(rng):
    case = Case(rng, (40, 40), SIDES_2D[0], False, "none")
    case.t[20, 20] = np.inf

    assert not np.isfinite(case.step("peaceman-rachford", 2)[1])


STEADY = ("d", "n", "r")


class MovingCase:
    """Sides with random values at every step, given to HeatADI as functions of time.

    Those of a kind in small letters stay as they are at first.
    """

    def __init__(self, rng, shape, kinds, varied):
        self.shape, self.steps = shape, 3
        self.k = rng.uniform(0.2, 1.2, shape) if varied else np.ones(shape)
        self.spacing, self.dt = (0.3, 0.25, 0.2)[-len(shape) :], 0.5
        spacing = self.spacing[::-1]
        fields = rng.random((self.steps + 1, *shape))
        self.initial = fields[0]
        self.boundary, self.flow, self.given, exchange = {}, {}, {}, []
        for axis, pair in enumerate(kinds):
            factors = []
            for end, kind in zip((0, -1), pair, strict=True):
                # Sides that meet have the same values there.
                values = fields.take(end, len(shape) - axis)
                if kind in STEADY:
                    values, kind = np.broadcast_to(values[0], values.shape), kind.upper()
                unit = 2 * self.dt / spacing[axis]
                factors.append(0.7 * unit if kind == "R" else 0.0)
                self._add("xyz"[axis] + ("-" if end == 0 else "+"), kind, values)
                if kind == "D":
                    self.given[axis, end] = values
                elif kind != P:
                    self.flow[axis, end] = values * (factors[-1] if kind == "R" else unit)
            exchange.append(factors)
        names = {"D": D, "N": F, "R": F, "d": D, "n": F, "r": F, P: P}
        ratio = [self.dt / h**2 for h in spacing]
        by_kind = [tuple(names[kind] for kind in pair) for pair in kinds]
        self.box = Box(shape, ratio, by_kind, exchange, self.k)

    def _add(self, name, kind, values):
        def at(t):
            return values[round(t / self.dt)]

        given = at if values.strides[0] else values[0]
        self.boundary[name] = {
            "D": Dirichlet(given),
            "N": Neumann(given),
            "R": Robin(0.7, given),
            P: "periodic",
        }[kind]

    def flows(self, step):
        """What flows in along each axis, as fields."""
        fields = [np.zeros(self.shape) for _ in self.shape]
        for (axis, end), values in self.flow.items():
            fields[axis] += self.box.on_side(axis, end, values[step])
        return fields


MOVING = [
    ("DD", "DD"),
    ("DN", "RD"),
    ("NR", "DN"),
    ("RN", "NR"),
    ((P, P), "RD"),
    ("DD", "DD", "DD"),
    ("DN", "RD", "ND"),
    ("RD", (P, P), "DR"),
    ((P, P), "NN", "DD"),
    ("dd", "NR"),
    ("dn", "RN"),
    ("NR", "dr"),
    ("dd", "nr", "NN"),
]


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:HeatADI. in (two|three) dimensions:RuntimeWarning")
@pytest.mark.parametrize("varied", [False, True], ids=["k", "k(x)"])
@pytest.mark.parametrize("kinds", MOVING, ids=str)
def test_moving_sides_at_intermediate_levels(rng, kinds, varied):
    case = MovingCase(rng, (5, 7, 6)[-len(kinds) :], kinds, varied)
    source = rng.random(case.shape)
    schemes = ("peaceman-rachford", "douglas-gunn")[0 if len(kinds) == 2 else 1 :]
    for scheme in schemes:
        solver = HeatADI(
            case.shape,
            spacing=case.spacing[::-1],
            dt=case.dt,
            damped_start=False,
            scheme=scheme,
            diffusivity=case.k if varied else 1.0,
            boundary=case.boundary,
            source=source,
            initial=case.initial,
        )
        for step in range(case.steps):
            before = solver.u.copy()
            after = solver.step().u
            flows = case.flows(step), case.flows(step + 1)
            residual = factored_residual(case.box, before, after, flows, case.dt * source)

            np.testing.assert_allclose(residual, 0, rtol=0, atol=2e-11)
            for (axis, end), values in case.given.items():
                np.testing.assert_array_equal(after[case.box.side(axis, end)], values[step + 1])


def cut(**changed):
    """The status of a call of heat_cut with some arguments changed."""
    arguments = {
        "applies": True,
        "place": (0, 2),
        "ends": (-1, 7),
        "beyond": (-1, 8),
        "first": (0, 4),
        "used": ((0, 0), (1, 3)),
        "t": np.zeros((9, 5)),
        "before": np.zeros((2, 5)),
        "differences": np.zeros((4, 5)),
        "outer": np.zeros((2, 5)),
        "weights": np.zeros((2, 4, 5)),
        "spikes": (None, np.zeros((4, 1))),
    }
    return _core.heat_cut(*(arguments | changed).values())


@pytest.mark.parametrize("spike", [np.zeros((5, 1)), np.zeros((2, 5))])
def test_cuts_are_for_devices(spike):
    assert _core.STATUS[cut(spikes=(spike, None))][0] == "PS_UNSUPPORTED"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"ends": (0, 9)}, "outside"),
        ({"beyond": (9, -1)}, "outside"),
        ({"used": ((0, 5), (0, 0))}, "outside"),
        ({"used": ((-1, 2), (0, 0))}, "outside"),
        ({"place": (2, 2)}, "a rank"),
        ({"t": np.zeros((0, 5))}, "a real field"),
        ({"t": np.zeros((9, 5), complex)}, "a real field"),
        ({"before": np.zeros((2, 4))}, "before: need 10 values, got 8"),
        ({"differences": np.zeros((2, 5))}, "ends: need 20 values, got 10"),
        ({"outer": np.zeros(5)}, "outer: need 10 values, got 5"),
        ({"weights": np.zeros((2, 4))}, "weights: need 40 values, got 8"),
        ({"spikes": (None, np.zeros((6, 1)))}, "they leave the nodes of t"),
        ({"spikes": (np.zeros((2, 4)), None)}, "they leave the nodes of t"),
        ({"first": (-1, 4), "spikes": (np.zeros((2, 1)), None)}, "they leave the nodes of t"),
    ],
)
def test_cuts_outside_of_the_field_are_refused(changed, text):
    with pytest.raises(ValueError, match=text):
        cut(**changed)


@pytest.mark.parametrize("name", ["before", "differences", "outer", "weights"])
def test_arrays_of_cuts_have_the_dtype_of_the_field(name):
    with pytest.raises(TypeError, match="float64"):
        cut(**{name: np.zeros(40, np.float32)})


def test_what_is_kept_is_a_capsule_of_the_extension(rng):
    case = Case(rng, (6, 7), ((D, D), (F, D)), varied=True, source="none")
    kept = _core.heat_keep()

    for _ in range(2):
        np.testing.assert_array_equal(
            case.step("peaceman-rachford", kept=kept)[0], case.step("peaceman-rachford")[0]
        )
    with pytest.raises(ValueError, match="PyCapsule"):
        case.step("peaceman-rachford", kept=_core)
