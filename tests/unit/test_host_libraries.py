"""Arrays of all libraries in host memory: results are arrays of the library of `rhs`.

The tests of a library are skipped where it is not installed.
"""

import array_libraries
import numpy as np
import oracle
import pytest

import pysolvers

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture
def torch():
    with array_libraries.opened("torch") as library:
        yield library


@pytest.fixture
def jax():
    with array_libraries.opened("jax") as library:
        yield library


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((4, 7), 1), ((7, 4), 0), ((2, 7, 3), 1)])
def test_results_are_arrays_of_the_library(xp, rng, dtype, shape, axis):
    inner = np.moveaxis(np.empty(shape), axis, -1).shape
    system = [np.moveaxis(a, -1, axis) for a in oracle.dominant(rng, inner, np.dtype(dtype))]
    arrays = [xp.array(np.ascontiguousarray(a)) for a in system]
    expected = pysolvers.solve_tridiagonal(*system, axis=axis)

    x = pysolvers.solve_tridiagonal(*arrays, axis=axis)
    y = pysolvers.factor_tridiagonal(*arrays[:3], axis=axis).solve(arrays[3])

    for answer in (x, y):
        assert isinstance(answer, xp.results)
        assert tuple(answer.shape) == shape
        assert xp.dtype(answer) == dtype
        assert xp.results is not xp.kind or answer.device == arrays[3].device
        error = np.max(np.abs(np.asarray(answer) - expected)) / np.max(np.abs(expected))
        assert error <= 50 * oracle.eps(dtype)
    for array, values in zip(arrays, system, strict=True):
        np.testing.assert_array_equal(np.asarray(array), values)


def test_library_of_rhs_decides(xp, rng):
    system = oracle.dominant(rng, (3, 8))
    arrays = [xp.array(a) for a in system]

    x = pysolvers.solve_tridiagonal(*arrays[:3], system[3])
    y = pysolvers.solve_tridiagonal(*system[:3], arrays[3])

    assert type(x) is np.ndarray
    assert isinstance(y, xp.results)
    np.testing.assert_array_equal(np.asarray(y), x)


def test_real_matrix_and_complex_rhs(xp, rng):
    *matrix, rhs = oracle.dominant(rng, (3, 8))

    x = pysolvers.solve_tridiagonal(*map(xp.array, matrix), xp.array(rhs * (1 + 2j)))

    assert xp.dtype(x) == np.complex128
    expected = oracle.solve(*matrix, rhs * (1 + 2j))
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-12)


def test_results_belong_to_the_caller(xp, rng):
    *matrix, rhs = oracle.dominant(rng, (3, 8))
    rhs = xp.array(rhs)
    x = pysolvers.solve_tridiagonal(*matrix, rhs)
    kept = np.asarray(x).copy()

    pysolvers.solve_tridiagonal(*matrix, 2 * rhs)

    np.testing.assert_array_equal(np.asarray(x), kept)
    np.testing.assert_allclose(np.asarray(x + x), 2 * kept)


def test_out_of_torch_is_written(torch, rng):
    *matrix, rhs = oracle.dominant(rng, (3, 8))
    expected = pysolvers.solve_tridiagonal(*matrix, rhs)
    right, wide = torch.array(rhs), torch.array(np.zeros((3, 16)))

    for out in (wide[:, ::2], right):
        assert pysolvers.solve_tridiagonal(*matrix, right, out=out) is out
        np.testing.assert_array_equal(out.numpy(), expected)
    assert (wide[:, 1::2] == 0).all()
    factor = pysolvers.factor_tridiagonal(*matrix)
    right = torch.array(rhs)
    assert factor.solve(right, out=right) is right
    np.testing.assert_allclose(right.numpy(), expected, rtol=1e-12)


def test_tensors_without_plain_values_are_refused(torch, rng):
    *matrix, rhs = oracle.dominant(rng, (3, 8), np.complex128)
    lazy = torch.array(rhs)

    with pytest.raises(TypeError, match=r"rhs requires a gradient.*detach\(\) it"):
        pysolvers.solve_tridiagonal(*matrix, lazy.clone().requires_grad_())
    with pytest.raises(TypeError, match="rhs is a lazy conjugate"):
        pysolvers.solve_tridiagonal(*matrix, lazy.conj())
    with pytest.raises(TypeError, match="out requires a gradient"):
        pysolvers.solve_tridiagonal(*matrix, rhs, out=lazy.clone().requires_grad_())


def test_out_of_jax_is_refused(jax, rng):
    *matrix, rhs = oracle.dominant(rng, (3, 8))

    with pytest.raises(TypeError, match=r"out must be writeable, a jax.* never is"):
        pysolvers.solve_tridiagonal(*matrix, rhs, out=jax.array(rhs))


@pytest.mark.parametrize("operand", range(4))
def test_tracers_are_refused_by_name(jax, rng, operand):
    system = list(oracle.dominant(rng, (3, 8)))
    factor = pysolvers.factor_tridiagonal(*system[:3])
    name = ("lower", "diag", "upper", "rhs")[operand]

    def solve(traced):
        return pysolvers.solve_tridiagonal(*system[:operand], traced, *system[operand + 1 :])

    for transform in (jax.module.jit, jax.module.vmap, jax.module.grad):
        with pytest.raises(TypeError, match=f"{name} is a JAX tracer: .*use pysolvers.jax"):
            transform(solve)(jax.array(system[operand]))
    with pytest.raises(TypeError, match="rhs is a JAX tracer"):
        jax.module.jit(factor.solve)(jax.array(system[3]))


def test_callback_solves_inside_jit(jax, rng):
    system = list(oracle.dominant(rng, (3, 8)))

    @jax.module.jit
    def solve(rhs):
        result = jax.module.ShapeDtypeStruct(rhs.shape, rhs.dtype)
        return 2 * jax.module.pure_callback(
            lambda b: pysolvers.solve_tridiagonal(*system[:3], np.asarray(b)), result, rhs
        )

    np.testing.assert_allclose(solve(system[3]), 2 * oracle.solve(*system), rtol=1e-12)


def test_library_that_is_not_known_gives_numpy(rng):
    class Wrapped:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return self.values

    system = oracle.dominant(rng, (3, 8))
    x = pysolvers.solve_tridiagonal(*map(Wrapped, system))

    assert type(x) is np.ndarray
    np.testing.assert_allclose(x, oracle.solve(*system), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_splines_are_arrays_of_the_library(xp, rng, dtype):
    x = np.cumsum(1 + rng.random(9))
    y = (rng.standard_normal((2, 9, 3)) * (1 + 1j if "complex" in dtype else 1)).astype(dtype)
    x = x.astype(y.real.dtype)
    points = rng.uniform(0, 12, (4, 2)).astype(x.dtype)
    own = xp.array(x), xp.array(y), xp.array(points)
    expected = pysolvers.CubicSpline(x, y, 1)

    spline = pysolvers.CubicSpline(*own[:2], 1)

    for actual, wanted in (
        (spline(own[2]), expected(points)),
        (spline(points), expected(points)),
        (spline(2.5, 1), expected(2.5, 1)),
        (spline.derivative()(own[2]), expected.derivative()(points)),
        (spline.antiderivative(2)(own[2]), expected.antiderivative(2)(points)),
        (spline.integrate(1, 5), expected.integrate(1, 5)),
        (spline.c, expected.c),
        (spline.x, x),
        (pysolvers.CubicSpline(x, y, 1)(own[2]), expected(points)),
    ):
        assert isinstance(actual, xp.results)
        assert xp.dtype(actual) == wanted.dtype
        np.testing.assert_array_equal(np.asarray(actual), wanted)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, complex(0, np.nan)])
@pytest.mark.parametrize("end", [0, 1])
def test_derivatives_that_are_not_finite_are_refused_by_name(xp, rng, value, end):
    x, y = np.cumsum(1 + rng.random(5)), rng.standard_normal((5, 2))
    conditions = ["natural", "natural"]
    conditions[end] = (1, xp.array(np.array([1.0, value])))

    with pytest.raises(ValueError, match=rf"bc_type\[{end}\]: .* only finite values"):
        pysolvers.CubicSpline(xp.array(x), xp.array(y), bc_type=tuple(conditions))


FUNCTIONS = {
    "solve": lambda y: pysolvers.solve_tridiagonal(-1.0, 3.0, -1.0, y),
    "factor": lambda y: pysolvers.factor_tridiagonal(-1.0, 3.0, -1.0, rows=6).solve(y),
    "product": lambda y: pysolvers.tridiagonal_matvec(-1.0, 3.0, -1.0, y),
    "theta": lambda y: pysolvers.theta_step(1.0, -2.0, 1.0, y, dt=0.1),
    "recurrence": lambda y: pysolvers.linear_recurrence(0.5, y),
    "pentadiagonal": lambda y: pysolvers.solve_pentadiagonal(1.0, -4.0, 6.1, -4.0, 1.0, y),
    "spline": lambda y: pysolvers.CubicSpline(np.arange(6.0), y, axis=-1)(0.5),
    "smoothing": lambda y: pysolvers.smoothing.whittaker(y, 10.0),
}


def arrays_of(name, values):
    """Return an array of a library with labels, of one without a NumPy array, or of dask."""
    module = pytest.importorskip(name)
    if name == "pandas":
        return module.DataFrame(values)
    if name == "xarray":
        return module.DataArray(values, dims=("x", "z"))
    return module.asarray(values) if name == "array_api_strict" else module.from_array(values)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("name", ["array_api_strict", "pandas", "xarray"])
def test_results_for_arrays_without_a_library_of_their_own_are_numpy_arrays(rng, name, function):
    values = rng.standard_normal((4, 6))

    found = function(arrays_of(name, values))

    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, function(values))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_arrays_of_dask_are_refused_and_the_advice_works(rng, function):
    values = rng.standard_normal((4, 6))
    blocks = arrays_of("dask.array", values).rechunk((2, 6))

    with pytest.raises(TypeError, match=r"got Array.*dask.array.map_blocks"):
        function(blocks)
    options = {"dtype": float} | ({"drop_axis": 1} if function(values).ndim == 1 else {})
    found = blocks.map_blocks(function, **options).compute()
    np.testing.assert_array_equal(found, function(values))
