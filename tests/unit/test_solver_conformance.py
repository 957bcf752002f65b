"""What every solver has: arguments that are read back, fields that can be set, a time to start."""

import copy
import dataclasses
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest
import shared_device
import solver_cases
from solver_cases import (
    COMPUTED,
    SOLVERS,
    STARTS,
    STEPPERS,
    count_of,
    equal,
    fields_of,
    heat,
    reloaded,
    transport,
)

import pysolvers
from pysolvers._solver import Iteration, Result, Settings, TimeStepping
from pysolvers.papers import gceidd2022, lmsor2012, pta2020, survey2014, wei2013


def arguments_of(name):
    """Return the names of the arguments of a constructor."""
    return set(inspect.signature(getattr(pysolvers, name)).parameters)


def names_of_settings(solver):
    return {field.name for field in dataclasses.fields(solver.settings)}


@pytest.mark.parametrize("name", SOLVERS)
def test_settings_are_the_arguments_of_the_constructor_that_are_no_data(name):
    solver = SOLVERS[name]()
    settings = solver.settings
    assert isinstance(settings, Settings)
    assert arguments_of(name) == {*names_of_settings(solver), *solver._data_given}
    assert dataclasses.replace(settings) == settings
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.device = "cuda"


def test_every_class_that_takes_a_group_is_in_the_conformance_test_of_ranks():
    """Those of tests/distributed/ranks_conformance.py; two classes without steps have others."""
    public = (getattr(pysolvers, name) for name in pysolvers.__all__)
    classes = (c for c in public if inspect.isclass(c) and not issubclass(c, BaseException))
    of_ranks = {c.__name__ for c in classes if "group" in inspect.signature(c.__init__).parameters}

    without_steps = {"FastPoisson", "SplitBlockFactor"}
    assert of_ranks - without_steps <= {type(make()).__name__ for make in STARTS.values()}
    assert {"HeatADI", *without_steps} <= of_ranks


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_has_the_calls_of_the_base(name):
    kind = getattr(pysolvers, name)
    base = TimeStepping if hasattr(kind, "run") else Iteration

    assert issubclass(kind, base)
    for method in ("result", "save", "step", "__getstate__", "__deepcopy__"):
        owner = next(c for c in kind.__mro__ if method in vars(c))
        assert owner.__module__.startswith("pysolvers._solver"), (name, method)
    solver = SOLVERS[name]()
    result = solver.step(2).result()
    assert isinstance(result, Result)
    assert (result.stop_reason, result.seconds, result.backend) == (
        "running",
        solver.seconds,
        "cpu",
    )


def wave(x, y):
    return np.sin(3 * x) * y


def growing(y, t):
    return y + t


# Arguments other than the defaults, and how they are read back where that is another form.
GIVEN = {
    "HeatADI": (
        (),
        {
            "shape": [6, 5],
            "extent": [(0, 1), (0, 2)],
            "dt": 0.25,
            "diffusivity": {"x": 2.0, "y": 1.0},
            "scheme": "douglas-gunn",
            "boundary": {"x": growing, "y": pysolvers.Neumann(1.0)},
            "source": np.full((6, 5), 3.0),
            "initial": wave,
            "start_time": 1.5,
            "damped_start": False,
            "dtype": "float32",
            "threads": 2,
        },
        {"shape": (6, 5), "extent": ((0, 1), (0, 2)), "spacing": None, "dtype": np.float32},
    ),
    "GCEIDD": (
        (
            pysolvers.ConvectionDiffusion(
                (1, 2),
                0.1,
                boundary={"x": "periodic", "y-": pysolvers.Robin(1.0, growing), "y+": "outflow"},
                initial=wave,
            ),
            (9, 11),
            0.01,
        ),
        {
            "scheme": "mu",
            "strips": 2,
            "upwind": "plain",
            "dtype": np.float32,
            "start_time": -2.0,
            "bound": 5.0,
            "device": "cpu",
            "threads": 1,
        },
        {"shape": (9, 11), "strips": (2, 2)},
    ),
    "ParabolicADI": (
        (),
        {
            "shape": [5, 5],
            "batch": 3,
            "coordinates": {"x": [0, 1, 3, 4, 5], "y": range(5)},
            "dt": 0.25,
            "diffusion": {"xx": 2.0, "yy": growing, "xy": 0.5},
            "advection": {"x": wave},
            "reaction": -0.5,
            "source": np.full((3, 5, 5), 3.0),
            "boundary": {"x": growing, "y": pysolvers.Neumann(1.0)},
            "initial": wave,
            "scheme": "craig-sneyd",
            "theta": 0.75,
            "start_time": 1.5,
            "damped_start": False,
            "dtype": "float32",
            "threads": 2,
        },
        {
            "batch": (3,),
            "coordinates": ((0, 1, 3, 4, 5), (0, 1, 2, 3, 4)),
            "shape": (5, 5),
            "dtype": np.float32,
        },
    ),
    "AdvectionDiffusion": (
        (
            pysolvers.ConvectionDiffusion((1, 2), 0.1, boundary=growing, initial=wave),
            (9, 11),
            0.01,
        ),
        {
            "differences": "upwind",
            "damped_start": True,
            "dtype": np.float32,
            "start_time": -2.0,
            "device": "cpu",
            "threads": 1,
        },
        {"shape": (9, 11)},
    ),
    "LMSOR": (
        (
            pysolvers.SteadyConvectionDiffusion(
                1.0,
                0.0,
                shape=(5, 6),
                extent=((0, 1), (0, 1)),
                boundary={"x": "periodic", "y-": pysolvers.Robin(2.0, wave), "y+": "outflow"},
            ),
        ),
        {"relaxation": 1.25, "dtype": np.float32, "initial": wave, "device": "cpu", "threads": 2},
        {},
    ),
    "RedBlackSOR": (
        ((4, 6),),
        {
            "spacing": 0.5,
            "conductivity": 2.0,
            "boundary": {"x": "periodic", "y": 1.0},
            "source": wave,
            "omega": 1.25,
            "dtype": np.float32,
            "initial": np.ones((4, 6)),
            "threads": 2,
        },
        {"spacing": (0.5, 0.5), "extent": None},
    ),
    "LidDrivenCavity": (
        (50, 7),
        {
            "lid_velocity": -2.0,
            "wall": "thom",
            "line_method": "thomas",
            "direction": "x",
            "psi_solver": "adi",
            "psi_sweeps": 2,
            "pseudo_dt": 0.5,
            "device": "cpu",
            "threads": 2,
        },
        {"method": "adi"},
    ),
    "StaggeredCavity": (
        (50, 6),
        {
            "lid_velocity": 0.5,
            "force": (wave, 2.0),
            "pressure": "sor",
            "gamma": 0.5,
            "tau": 0.25,
            "dt": 0.125,
            "start_time": 3.0,
            "pressure_tol": None,
            "max_sweeps": 7,
            "omega": 1.5,
            "threads": 1,
        },
        {"device": None},
    ),
    "SquareCylinder": (
        (20, (17, 101)),
        {
            "dt": 0.125,
            "start_time": 3.0,
            "cylinder": "fixed",
            "psi_solver": "lines",
            "psi_tol": 1e-3,
            "wall": "woods",
            "steady": False,
            "perturbation": 0.5,
            "dtype": np.float32,
            "threads": 1,
        },
        {"length": 50.0},
    ),
}


@pytest.mark.filterwarnings("ignore:HeatADI. a step of dt:RuntimeWarning")
@pytest.mark.parametrize("name", GIVEN)
def test_every_argument_is_an_attribute_also_of_copies_and_after_a_file(name, tmp_path):
    args, options, other = GIVEN[name]
    kind = getattr(pysolvers, name)
    names = list(inspect.signature(kind).parameters)
    defaults = {k: p.default for k, p in inspect.signature(kind).parameters.items()}
    given = defaults | dict(zip(names, args, strict=False)) | options | other
    solver = kind(*args, **options)

    def require_arguments(found, start):
        for argument in names:
            expected = start if argument == "initial" else given[argument]
            value = getattr(found, argument)
            if argument == "dtype":
                assert value == np.dtype(expected)
            else:
                assert equal(value, expected), (argument, value, expected)

    require_arguments(solver, given.get("initial"))
    require_arguments(copy.deepcopy(solver), given.get("initial"))
    start = None if callable(given.get("initial")) else given.get("initial")
    require_arguments(pickle.loads(pickle.dumps(solver)), start)
    loaded = reloaded(solver, tmp_path / "state")
    taken = set(solver._data_given) - {"initial"}
    taken |= {"device", "threads"} & set(inspect.signature(kind.load).parameters)
    given |= {k: getattr(loaded, k) for k in taken}
    require_arguments(loaded, None)
    if name in ("HeatADI", "ParabolicADI"):  # which `load` takes again
        assert loaded.boundary is solver.boundary
    if name in ("GCEIDD", "AdvectionDiffusion"):
        assert loaded.problem is solver.problem
    for argument in set(names) - {"dt", "force", *solver_cases.FIELDS.get(name, ())}:
        with pytest.raises(AttributeError):
            setattr(solver, argument, given[argument])
    solver.step()
    public = {one for one in dir(solver) if not one.startswith("_")}
    assert {one for one in public if not hasattr(solver, one)} <= {"z"}  # of a plane


def test_a_solver_made_of_a_function_without_a_name_can_be_pickled():
    field = heat(lambda x, y: x * y).step(2)
    repeated = pickle.loads(pickle.dumps(field))
    assert repeated.initial is None
    np.testing.assert_array_equal(repeated.step().u, field.step().u)
    moved = transport(lambda x, y: x * y).step(2)
    repeated = pickle.loads(pickle.dumps(moved))
    np.testing.assert_array_equal(repeated.step().u, moved.step().u)
    assert repeated.problem.extent == moved.problem.extent


ARRAYS = {
    "HeatADI": lambda d: heat(
        d[0], boundary={"x": d[1], "y": pysolvers.Robin(1.0, d[2])}, source=d[3], diffusivity=0.2
    ),
    "GCEIDD": lambda d: transport(
        d[4], {"x": d[5], "y": pysolvers.Neumann(d[6])}, d[7], velocity=(d[8], 0.5)
    ),
    "LMSOR": lambda d: solver_cases.relaxed(d[9], {"x": d[10], "y": pysolvers.Robin(1.0, d[11])}),
    "RedBlackSOR": lambda d: solver_cases.plate(d[12], source=d[12]),
    "StaggeredCavity": lambda d: solver_cases.staggered(force=(d[13], 0.0)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_changed_later_change_no_solver(name, rng):
    """Nor does a solver change them, also where it computes its tables again for another dt."""
    shapes = [(13, 9), (13,), (9,), (13, 9), (17, 16), (17,), (16,), (17, 16), (17, 16)]
    shapes += [(14, 7), (14,), (9,), (12, 7), (8, 9)]
    data = [0.1 + 0.1 * rng.random(shape) for shape in shapes]
    kept = [each.copy() for each in data]
    solver, expected = ARRAYS[name](data), ARRAYS[name](kept)
    for one, other in zip(data, kept, strict=True):
        np.testing.assert_array_equal(one, other)
        one[...] = np.nan
    for length in (1.0, 0.5):
        if name in ("HeatADI", "GCEIDD"):
            solver.dt = expected.dt = 0.01 * length
        np.testing.assert_array_equal(solver.step(4).u, expected.step(4).u)


def test_an_argument_that_is_set_names_the_constructor():
    with pytest.raises(AttributeError, match=r"scheme of a HeatADI cannot be set: .*scheme=\.\.\."):
        heat().scheme = "implicit"


@pytest.mark.parametrize(
    "make",
    [
        lambda: wei2013.HeatADI((5, 5), 0.25, 0.1, boundary=0.0, kernels="fused", mapping="C2"),
        lambda: gceidd2022.GCEIDD(
            pysolvers.ConvectionDiffusion((1, 0), 0.1, boundary=0.0), (5, 5), 0.1, few_strips=3
        ),
        lambda: lmsor2012.LMSOR(GIVEN["LMSOR"][0][0], kernel=1),
        lambda: survey2014.StaggeredCavity(100, 6, kernels="serial"),
        lambda: pta2020.LidDrivenCavity(100, 7, block=None),
    ],
)
def test_arguments_of_papers_are_attributes(make):
    solver = make()
    for name, value in solver._experiment.items():
        assert getattr(solver, name) == value


@pytest.mark.parametrize("name", STARTS)
def test_a_solver_is_freed_when_the_last_name_of_it_is_gone(name):
    """Without the collection of cycles, which can come late and holds all memory until then."""
    gc.collect()
    gc.disable()
    try:
        solver = STARTS[name]().step(2)
        solver.result()
        copy.deepcopy(solver)
        is_there = weakref.ref(solver)
        del solver
        assert is_there() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", STARTS)
def test_a_solver_goes_on_from_other_values_as_from_initial_ones(name, rng, tmp_path):
    make = STARTS[name]
    solver = make().step(3)
    field = rng.random(solver.u.shape)
    made = count_of(solver)

    given = field.copy()
    solver.u = given
    given[...] = 7.0  # u is a copy

    expected = make(field)
    np.testing.assert_array_equal(solver.u, expected.u)
    if isinstance(solver, Iteration):
        assert solver.residual == np.inf
        np.testing.assert_array_equal(reloaded(solver, tmp_path / "state").u, expected.u)
    assert count_of(solver) == made == 3
    for count in (1, 1, 4):
        np.testing.assert_array_equal(solver.step(count).u, expected.step(count).u)
    result = solver.result()
    if hasattr(solver, "time"):
        assert (solver.time, result.steps) == (pytest.approx(9 * solver.dt), 9)
    if name.startswith("heat"):
        assert result.damped_start == expected.result().damped_start


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn", "implicit"])
@pytest.mark.parametrize("damped", [False, True])
def test_data_in_time_go_on_where_u_was_set(scheme, damped, rng, tmp_path):
    """As a solver whose data begin later; also from a file of the state between."""

    def make(later, initial):
        data = {"boundary": lambda t: np.sin(later + t), "source": lambda x, t: x * (later + t)}
        made = heat(initial, scheme=scheme, damped_start=damped, **data)
        return made, data

    (solver, data), field = make(0.0, 0.0), rng.random((13, 9))
    solver.step(5)
    solver.u = field
    expected = make(0.1, field)[0].step(4)
    solver.save(tmp_path / "state")
    loaded = pysolvers.HeatADI.load(tmp_path / "state", **data)

    np.testing.assert_allclose(
        solver.step(4).u, expected.u, rtol=1e-7 if scheme == "implicit" else 1e-12
    )
    np.testing.assert_array_equal(loaded.step(4).u, solver.u)


# A solver that went some steps, and one of other fields that takes those of the first.
CONTINUED = {
    "LidDrivenCavity": [{"pseudo_dt": 0.05}, {"pseudo_dt": 0.05, "psi_solver": "fast"}],
    "StaggeredCavity": [{}, {"dt": 0.01}, {"pressure": "sor", "pressure_tol": 1e-9}],
}


@pytest.mark.parametrize(
    ("name", "options"), [(name, one) for name, some in CONTINUED.items() for one in some]
)
def test_a_flow_goes_on_from_the_fields_of_another(name, options, rng):
    make, fields = SOLVERS[name], fields_of(name)
    flow, other = make(**options).step(30), make(**options).step(30)
    for field in fields:
        values = np.array(getattr(flow, field))
        setattr(other, field, rng.random(values.shape))
    other.step(10)
    flow.step(10)  # the same number of iterations: of shifts, and of directions of lines
    for field in fields:
        setattr(other, field, np.array(getattr(flow, field)))

    sor = options.get("pressure") == "sor"
    for _ in range(2):
        for field in fields:
            found, expected = (np.array(getattr(each, field)) for each in (other, flow))
            bound = 1e-6 if sor else 1e-15 if field == "p" else 0  # p is read with the mean 0
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
        other.step(25), flow.step(25)


def test_walls_of_a_flow_that_is_set_stay(rng):
    cavity = SOLVERS["LidDrivenCavity"]()
    cavity.psi = rng.random((9, 9))
    for edge in (cavity.psi[0], cavity.psi[-1], cavity.psi[:, 0], cavity.psi[:, -1]):
        np.testing.assert_array_equal(edge, 0)
    flow = SOLVERS["StaggeredCavity"]()
    flow.u, flow.v = rng.random((8, 9)), rng.random((9, 8))
    for edge in (flow.u[:, 0], flow.u[:, -1], flow.v[0], flow.v[-1]):
        np.testing.assert_array_equal(edge, 0)
    assert flow.change == np.inf
    assert flow.step().divergence < 1e-13


def test_the_length_of_a_step_is_that_of_the_velocity_that_was_set(rng):
    flow = SOLVERS["StaggeredCavity"]().step(3)
    speeds = 20 * rng.random((8, 9)), 30 * rng.random((9, 8))
    flow.u, flow.v = speeds
    largest = max(np.abs(2 - flow.u).max(), np.abs(flow.v).max())  # ghosts are beyond the lid
    assert flow.step().last_dt == pytest.approx(0.5 / 8 / largest, rel=1e-3)


def test_the_choice_of_the_pseudo_time_step_begins_again():
    cavity = SOLVERS["LidDrivenCavity"]().iterate(60)
    assert cavity.pseudo_dt != SOLVERS["LidDrivenCavity"]().pseudo_dt
    cavity.psi = cavity.omega = np.zeros((9, 9))
    assert cavity.residual == np.inf
    expected = SOLVERS["LidDrivenCavity"]()
    for _ in range(3):
        assert cavity.iterate(20).pseudo_dt == expected.iterate(20).pseudo_dt
        np.testing.assert_array_equal(cavity.psi, expected.psi)
        assert cavity.residual == expected.residual
    assert cavity.iterations == 120


def test_a_vorticity_that_is_set_begins_as_the_start():
    there, here = solver_cases.cylinder(perturbation=0.7), solver_cases.cylinder(perturbation=0.0)
    start = there.omega.copy()
    here.omega = start
    np.testing.assert_array_equal(here.psi, there.psi)
    for _ in range(2):
        np.testing.assert_array_equal(here.step(5).omega, there.step(5).omega)
        np.testing.assert_array_equal(here.psi, there.psi)
    assert here.circulation == there.circulation != 0


def test_a_vorticity_is_set_in_the_middle_of_a_run(tmp_path):
    """psi and the circulation stay those of the vorticity; histories and the clock go on."""
    flow = solver_cases.cylinder(start_time=1.0).step(12)
    psi, circulation, time = flow.psi.copy(), flow.circulation, flow.time
    flow.omega = flow.omega.copy()

    np.testing.assert_allclose(flow.psi, psi, rtol=0, atol=1e-12)
    assert (flow.circulation, flow.time, flow.steps) == (circulation, time, 12)
    with pytest.raises(ValueError, match="a step is needed before"):
        flow.forces  # noqa: B018
    loaded = reloaded(flow, tmp_path / "state")
    with pytest.raises(ValueError, match="a step is needed before"):
        loaded.forces  # noqa: B018
    for solver in (flow, loaded):
        history = solver.step(8).result().history
        assert history.probe_time.size == 20
        np.testing.assert_allclose(np.diff(history.probe_time), flow.dt, rtol=1e-12)
        assert solver.forces.time == pytest.approx(solver.time - flow.dt / 2)
    np.testing.assert_array_equal(flow.omega, loaded.omega)


@pytest.mark.parametrize("name", SOLVERS)
def test_values_of_fields_are_checked(name):
    solver = SOLVERS[name]()
    for field in fields_of(name):
        before = np.array(getattr(solver, field))
        for values, error, text in (
            (np.zeros(3), ValueError, rf"{field} must have the shape \([\d, ]+\), got shape \(3,"),
            (0.5, ValueError, rf"{field} must have the shape \([\d, ]+\), got shape \(\)"),
            (np.full(before.shape, np.nan), ValueError, rf"{field} must be finite, got nan at \(0"),
            (np.zeros(before.shape, complex), TypeError, f"{field} must be real numbers"),
            ("zero", TypeError, f"{field} must be real numbers"),
        ):
            with pytest.raises(error, match=text):
                setattr(solver, field, values)
        np.testing.assert_array_equal(getattr(solver, field), before)

        def sets(solver, field=field, before=before):
            setattr(solver, field, before)

        call = solver.run if hasattr(solver, "run") else solver.solve
        with pytest.raises(RuntimeError, match=rf"\.{field} was called by a callback"):
            call(0.1 if hasattr(solver, "run") else 1e-3, callback=sets)
    for field in COMPUTED.get(name, ()):
        with pytest.raises(AttributeError, match=rf"{field} of a {name} is computed: set "):
            setattr(solver, field, getattr(solver, field))


def test_values_too_large_for_the_dtype_are_refused():
    with pytest.raises(ValueError, match="u must be finite"):
        heat(dtype=np.float32).u = np.full((13, 9), 1e39)


# Solvers of _split compute with arrays of CuPy there.
@pytest.mark.parametrize(
    "name", [name for name in STARTS if name.partition("-")[0] not in ("parabolic", "advected")]
)
def test_fields_on_a_device_can_be_set(name, rng):
    """The way to a device; its kernels are those of the CPU."""
    with shared_device.in_place_of_cuda():
        there, here = STARTS[name](device="cuda").step(3), STARTS[name]().step(3)
        here.u = there.u = rng.random(here.u.shape)
        np.testing.assert_array_equal(there.u, here.u)
        np.testing.assert_array_equal(there.step(4).u, here.step(4).u)


LATER = 0.75


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn", "implicit"])
@pytest.mark.parametrize("damped", [False, True])
def test_heat_that_starts_later_has_the_data_of_later_times(scheme, damped, rng):
    field, options = rng.random((13, 9)), {"scheme": scheme, "damped_start": damped}
    later = heat(
        field,
        start_time=LATER,
        boundary=lambda x, t: x / t,  # not defined at 0
        source=lambda y, t: y * np.log(t),
        **options,
    )
    shifted = heat(
        field,
        boundary=lambda x, t: x / (t + LATER),
        source=lambda y, t: y * np.log(t + LATER),
        **options,
    )
    assert (later.time, later.start_time, later.steps) == (LATER, LATER, 0)
    bound = 1e-7 if scheme == "implicit" else 1e-12
    for count in (0, 1, 1, 5):
        np.testing.assert_allclose(later.step(count).u, shifted.step(count).u, atol=bound)
    assert later.time == pytest.approx(shifted.time + LATER, rel=1e-14)


@pytest.mark.parametrize("scheme", ["cp", "cfd", "mu"])
def test_transport_that_starts_later_has_the_data_of_later_times(scheme, rng):
    field = rng.random((17, 16))
    later = transport(
        field,
        boundary=lambda x, t: x / t,
        source=lambda y, t: y * np.log(t),
        start_time=LATER,
        scheme=scheme,
    )
    shifted = transport(
        field,
        boundary=lambda x, t: x / (t + LATER),
        source=lambda y, t: y * np.log(t + LATER),
        scheme=scheme,
    )
    for count in (0, 1, 5):
        np.testing.assert_allclose(later.step(count).u, shifted.step(count).u, atol=1e-12)
    np.testing.assert_allclose(later._range.at(6), shifted._range.at(6), rtol=1e-12)


@pytest.mark.parametrize("name", STEPPERS)
def test_a_start_time_is_that_of_the_first_step(name, tmp_path):
    pytest.importorskip("xarray")
    step = 2.0**-7
    plain, solver = SOLVERS[name](dt=step), SOLVERS[name](dt=step, start_time=-0.5)
    assert (solver.time, solver.steps) == (-0.5, 0)

    result = solver.record(times=[-0.5, -0.5 + 3 * step, -0.5 + 4.5 * step])

    np.testing.assert_array_equal(result.to_xarray()["time"], [f.time for f in result.frames])
    expected = plain.record(times=[0.0, 3 * step, 4.5 * step])
    for one, other in zip(result.frames, expected.frames, strict=True):
        assert one.time == other.time - 0.5
        np.testing.assert_allclose(one.u, other.u, rtol=0, atol=1e-14)
    loaded = reloaded(solver, tmp_path / "state")
    for other in (loaded, copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
        assert (other.start_time, other.time) == (-0.5, solver.time)
        np.testing.assert_array_equal(copy.copy(solver).step(2).u, other.step(2).u)
    with pytest.raises(ValueError, match="until must be at least the time"):
        SOLVERS[name](start_time=2.0).run(1.0)
    with pytest.raises(ValueError, match="start_time must be finite"):
        SOLVERS[name](start_time=np.inf)


@pytest.mark.parametrize("name", STEPPERS)
def test_a_record_begins_at_a_time_that_differs_by_rounding(name):
    """Three steps of 0.1 end at 0.30000000000000004."""
    solver = (
        SOLVERS[name](dt=0.1) if name != "SquareCylinder" else SOLVERS[name](dt=0.1, steady=False)
    )
    solver.step(3)
    assert solver.time != 0.3
    result = solver.record(times=[0.3, 0.35])
    assert [frame.time for frame in result.frames] == [0.3, 0.35]
    np.testing.assert_array_equal(result.frames[1].u, solver.u)
