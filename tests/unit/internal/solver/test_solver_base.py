"""What the base gives every solver: settings that can be read back, checks by annotations."""

import dataclasses
import inspect
import re
import typing
from typing import Annotated, Literal

import numpy as np
import pytest
import saved_files
import solver_cases

import pysolvers
from pysolvers import _core
from pysolvers._solver import Settings, schema
from pysolvers._solver.result import Result, StopReason
from pysolvers.flow.cavity._settings import CavitySettings
from pysolvers.flow.cylinder._settings import CylinderSettings
from pysolvers.papers import gceidd2022, lmsor2012, pta2020, survey2014, wei2013
from pysolvers.transport._settings import TransportSettings

SOLVERS = {
    "HeatADI": saved_files.heat,
    "GCEIDD": saved_files.gceidd,
    "LMSOR": saved_files.lmsor,
    "RedBlackSOR": saved_files.plate,
    "LidDrivenCavity": saved_files.cavity,
    "StaggeredCavity": saved_files.staggered,
    "SquareCylinder": saved_files.cylinder,
}


def vtk_of(path):
    """Return dimensions, origin, spacing and arrays of a VTK file, by the rules of its format."""
    head, facts, arrays, rest = None, {}, {}, path.read_bytes()
    while rest:
        line, _, rest = rest.partition(b"\n")
        words = line.decode().split()
        if head is None:
            head = line
        elif words and words[0] in ("DIMENSIONS", "ORIGIN", "SPACING"):
            facts[words[0]] = [float(word) for word in words[1:]]
        elif words and words[0] in ("POINT_DATA", "CELL_DATA"):
            count = int(words[1])
        elif words and words[0] in ("SCALARS", "VECTORS"):
            size = count
            if words[0] == "SCALARS":
                table, _, rest = rest.partition(b"\n")
                assert table == b"LOOKUP_TABLE default"
            else:
                size *= 3
            arrays[words[1]] = np.frombuffer(rest[: 8 * size], ">f8")
            rest = rest[8 * size + 1 :]
    assert head == b"# vtk DataFile Version 3.0"
    return facts, arrays


@pytest.mark.parametrize("name", SOLVERS)
def test_every_result_has_a_vtk_file(name, tmp_path):
    result = SOLVERS[name]().step(2).result()
    result.to_vtk(tmp_path / "fields.vtk")
    facts, arrays = vtk_of(tmp_path / "fields.vtk")

    assert {*arrays} <= {"u", "p", "psi", "omega", "velocity"}
    if name in ("StaggeredCavity", "SquareCylinder"):  # which write means of cells, and no ends
        return
    nx, ny, nz = map(int, facts["DIMENSIONS"])
    assert (nx, ny, nz) == (result.x.size, result.y.size, 1)
    for axis, line in enumerate((result.x, result.y)):
        found = facts["ORIGIN"][axis] + facts["SPACING"][axis] * np.arange(line.size)
        np.testing.assert_allclose(found, line, rtol=0, atol=1e-14)
    if "velocity" in arrays:
        vectors = arrays.pop("velocity").reshape(ny, nx, 3)
        np.testing.assert_array_equal(vectors[..., 0], result.u)
        np.testing.assert_array_equal(vectors[..., 1], result.v)
        np.testing.assert_array_equal(vectors[..., 2], 0)
    for field, values in arrays.items():
        np.testing.assert_array_equal(values.reshape(ny, nx), getattr(result, field))


def test_vtk_file_of_a_box(tmp_path):
    box = pysolvers.HeatADI(
        (3, 4, 5), spacing=(0.1, 0.2, 0.3), dt=0.01, boundary=0.0, initial=1.0
    ).result()
    box.to_vtk(tmp_path / "box.vtk")
    facts, arrays = vtk_of(tmp_path / "box.vtk")

    assert facts["DIMENSIONS"] == [5, 4, 3]
    np.testing.assert_allclose(facts["SPACING"], box.spacing)
    np.testing.assert_array_equal(arrays["u"].reshape(3, 4, 5), box.u)


@pytest.mark.parametrize("kind", Result.__subclasses__())
def test_results_have_one_set_of_stop_reasons(kind):
    if kind.__module__.startswith("pysolvers"):
        assert typing.get_type_hints(kind)["stop_reason"] == StopReason


# Options of settings -> the table of the backend, and its names that settings do not have.
TABLES = [
    (wei2013.WeiSettings, "kernels", "HEAT_KERNELS"),
    (wei2013.WeiSettings, "memory", "HEAT_MEMORY"),
    (TransportSettings, "scheme", "GCEIDD_SCHEMES"),
    (TransportSettings, "upwind", "GCEIDD_UPWINDS"),
    (gceidd2022.PaperSettings, "predictor", "GCEIDD_PREDICTORS"),
    (gceidd2022.PaperSettings, "foot", "GCEIDD_FEET"),
    (gceidd2022.PaperSettings, "kernels", "GCEIDD_KERNELS"),
    (gceidd2022.PaperSettings, "strategy", "GCEIDD_STRATEGIES"),
    (survey2014.PlateSettings, "coefficients", "LAPLACE_COEFFICIENTS"),
    (CavitySettings, "wall", "WALLS"),
    (CylinderSettings, "wall", "WALLS"),
    (CavitySettings, "method", "SCHEMES"),
    (CavitySettings, "direction", "DIRECTIONS"),
    (CavitySettings, "line_method", "METHODS"),
]


@pytest.mark.parametrize(("kind", "option", "table"), TABLES)
def test_options_are_those_of_the_backend(kind, option, table):
    choices = typing.get_args(typing.get_type_hints(kind)[option])

    assert set(choices) == set(getattr(_core, table))


def test_more_options_are_those_of_the_backend():
    wei, lmsor, plate, cavity = map(
        typing.get_type_hints,
        (
            wei2013.WeiSettings,
            lmsor2012.PaperSettings,
            survey2014.PlateSettings,
            survey2014.CavitySettings,
        ),
    )

    assert {*typing.get_args(wei["scheme"])} == {*_core.HEAT_SCHEMES, "auto", "implicit"}
    assert set(_core.STAGGERED_KERNELS) <= {*typing.get_args(cavity["kernels"])}
    assert {*map(str, typing.get_args(lmsor["kernel"]))} == set(_core.LMSOR_KERNELS)
    local, _ = typing.get_args(lmsor["relaxation"])
    assert {*typing.get_args(local), "constant"} == set(_core.RELAXATIONS)
    assert set(_core.LAPLACE_VARIANTS) <= {*typing.get_args(plate["variant"])}


PAPERS = {
    wei2013.HeatADI: {"kernels", "mapping", "memory", "block", "timed"},
    gceidd2022.GCEIDD: {
        *("predictor", "foot", "kernels", "strategy"),
        *("few_strips", "short_strip", "throttle"),
    },
    lmsor2012.LMSOR: {"kernel"},
    pta2020.LidDrivenCavity: {"block"},
    pta2020.SquareCylinder: {"line_method", "block"},
    survey2014.RedBlackSOR: {"variant", "coefficients"},
    survey2014.StaggeredCavity: {"kernels"},
}


@pytest.mark.parametrize("kind", PAPERS)
def test_options_of_papers_are_those_of_their_classes_only(kind):
    """The solver has their values as constants of its settings, which the paper makes fields."""
    solver = kind.__base__
    fields = {field.name: field for field in dataclasses.fields(kind._SETTINGS)}

    assert fields.keys() - {f.name for f in dataclasses.fields(solver._SETTINGS)} == PAPERS[kind]
    parameters = inspect.signature(kind).parameters
    for name in PAPERS[kind]:
        assert name not in inspect.signature(solver).parameters
        assert parameters[name].default == getattr(solver._SETTINGS, name)
    assert kind._STATE._KIND != solver._STATE._KIND


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    count: int
    width: schema.Positive


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters(Settings):
    number: float
    share: Annotated[float, schema.number(least=0, most=1)]
    omega: Literal["best"] | Annotated[float, schema.number(above=0, below=2)]
    method: Literal["a", "b"] | None
    code: Literal[1, 2]
    sizes: tuple[schema.Count, ...]
    pair: tuple[int, float]
    is_fast: bool
    part: Part | None = None


GOOD = {
    "device": None,
    "threads": None,
    "number": 1,
    "share": 0.5,
    "omega": "best",
    "method": None,
    "code": 1,
    "sizes": (),
    "pair": (1, 2),
    "is_fast": True,
}


def test_values_get_their_standard_form():
    made = Parameters(**GOOD | {"number": np.float32(2), "sizes": [3, np.int8(4)], "threads": 2})

    assert (made.number, made.sizes, made.pair) == (2.0, (3, 4), (1, 2.0))
    assert [type(made.number), *map(type, made.sizes)] == [float, int, int]
    assert (made.is_on_device, made.call_threads, made.backend.NAME) == (False, 2, "cpu")
    assert made.agreed() == {k: v for k, v in made.facts().items() if k != "threads"} | {
        "device": "cpu"
    }
    assert schema.checks_of(Parameters)["part"]("part", {"count": 1, "width": 2}) == Part(
        count=1, width=2.0
    )


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"number": float("nan")}, ValueError, "number must be finite, got nan"),
        ({"number": "1"}, TypeError, "number must be a number, got str"),
        ({"number": True}, TypeError, "number must be a number, got bool"),
        ({"number": 1j}, TypeError, "number must be a number, got complex"),
        ({"share": 1.5}, ValueError, "share must be in 0 .. 1, got 1.5"),
        ({"omega": 2}, ValueError, "omega must be between 0 and 2, got 2"),
        ({"omega": "good"}, ValueError, "omega must be a number or 'best', got 'good'"),
        ({"method": "c"}, ValueError, "method must be one of a, b or None; got 'c'"),
        ({"method": 1}, TypeError, "method must be a str or None, got int"),
        ({"code": 3}, ValueError, "code must be one of 1, 2; got 3"),
        ({"code": True}, TypeError, "code must be an int, got bool"),
        ({"code": 1.0}, TypeError, "code must be an int, got float"),
        ({"sizes": (1, 0)}, ValueError, "sizes[1] must be at least 1, got 0"),
        ({"sizes": 3}, TypeError, "sizes must be a tuple, got 3"),
        ({"pair": (1,)}, ValueError, "pair must have 2 entries, got (1,)"),
        ({"pair": (1.0, 2)}, TypeError, "pair[0] must be an int, got float"),
        ({"is_fast": 1}, TypeError, "is_fast must be a bool, got int"),
        ({"device": "gpu2"}, ValueError, "device must be 'cpu', 'cuda' or 'cuda:N', got 'gpu2'"),
        ({"device": 0}, TypeError, "device must be a str or None, got int"),
        ({"threads": 0.5}, TypeError, "threads must be an int or None, got float"),
        ({"part": {"count": 1}}, ValueError, "part.width is missing"),
        ({"part": {"count": 1, "width": 0}}, ValueError, "part.width must be positive, got 0"),
        ({"part": {"count": 1, "width": 1, "x": 0}}, ValueError, "part.x is unknown"),
        ({"part": [1]}, TypeError, "part must be an object or None, got [1]"),
    ],
)
def test_every_rule_has_one_text(change, error, text):
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        Parameters(**GOOD | change)


@pytest.mark.parametrize(
    ("value", "name"),
    [("float32", "float32"), (np.float64, "float64"), (np.dtype("<f4"), "float32")],
)
def test_dtypes_are_kept_by_name(value, name):
    assert schema.real_dtype("dtype", value) == name


@pytest.mark.parametrize("value", [None, "int32", complex, [("a", "f8")], {"a": 1}, 3])
def test_other_dtypes_are_refused(value):
    with pytest.raises(TypeError):
        schema.real_dtype("dtype", value)


def numbers(call):
    """Return the numbers of steps at which a call calls its callback, all but the last one."""
    seen = []
    call(lambda s: seen.append(s.steps if hasattr(s, "steps") else s.iterations))
    return seen[:-1]


def test_callbacks_come_at_multiples_of_the_interval():
    """Of the number of all steps; a relaxation counts from the begin of the call."""
    solver = solver_cases.heat().step(2)
    assert numbers(lambda f: solver.run(0.29, callback=f, interval=4)) == [4, 8, 12]
    assert (solver.steps, solver.time) == (15, 0.29)
    staggered = saved_files.staggered(dt=0.01).step(2)
    assert numbers(lambda f: staggered.run(0.105, callback=f, interval=4)) == [4, 8]
    found = numbers(lambda f: staggered.solve(5e-2, callback=f, interval=25))
    assert found[:3] == [25, 50, 75]
    cavity = saved_files.cavity().iterate(7)
    found = numbers(lambda f: cavity.solve(1e-3, callback=f, interval=9))
    assert found[:3] == [9, 18, 27]
    cylinder = saved_files.cylinder(steady=True).step(2)
    found = numbers(lambda f: cylinder.solve(1e-2, callback=f, interval=5))
    assert found[:3] == [5, 10, 15]
    found = numbers(
        lambda f: solver_cases.relaxed().iterate(5).solve(1e-6, callback=f, check_every=7)
    )
    assert found[:2] == [12, 19]


@pytest.mark.parametrize("interval", [1, 7, 20, 33])
def test_a_callback_changes_no_decision(interval):
    expected = saved_files.cavity().iterate(7).solve(1e-7)

    found = (
        saved_files.cavity()
        .iterate(7)
        .solve(1e-7, callback=lambda solver: False, interval=interval)
    )

    assert found.iterations == expected.iterations
    np.testing.assert_array_equal(found.psi, expected.psi)


def test_largest_values_of_a_solution_do_not_stall():
    options = {"patience": 20, "max_iterations": 300, "callback": lambda solver: False}

    for criterion, reason in (("solution", "max_iterations"), ("residual", "stalled")):
        with pytest.raises(pysolvers.ConvergenceError) as caught:
            solver_cases.relaxed().solve(1e-30, criterion=criterion, **options)
        assert caught.value.result.stop_reason == reason


def test_a_rest_of_rounding_is_no_step():
    """Three steps of 0.3 end at 0.9 - 1.1e-16; a rest of 0.05 is a step."""
    options = {"boundary": 0.0, "initial": 1.0, "damped_start": False}
    solver = pysolvers.HeatADI((5, 6), 1.0, 0.3, **options).run(until=0.9)

    assert (solver.steps, solver.last_dt, solver.time) == (3, 0.3, 0.9)
    solver = pysolvers.HeatADI((5, 6), 1.0, 0.3, **options).run(until=0.95)
    assert (solver.steps, solver.time) == (4, 0.95)
    assert abs(solver.last_dt - 0.05) < 1e-15
