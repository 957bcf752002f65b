"""Arrays of every library on a device: the answers of NumPy, in arrays of that library.

The device is made of protected host memory or, where there is one, a GPU.
"""

import numpy as np
import oracle
import pytest

import pysolvers

DTYPES = ("f4", "f8", "c8", "c16")


@pytest.fixture
def library(device_library):
    return device_library


@pytest.fixture
def mutable(device_library):
    """The libraries whose arrays can be written."""
    if not device_library.mutable:
        pytest.skip("its arrays cannot be written")
    return device_library


@pytest.fixture
def ordered(device_library):
    """The libraries whose arrays have any order and steps in memory."""
    if not device_library.has_any_order:
        pytest.skip("its arrays are contiguous")
    return device_library


@pytest.fixture
def dominant(rng):
    """Make dominant systems as NumPy arrays."""

    def make(shape, dtype=np.float64):
        return list(oracle.dominant(rng, shape, dtype))

    return make


def agree(x, expected):
    """Whether answers agree to what two stable methods give for a dominant system."""
    tolerance = 200 * oracle.eps(expected.dtype)
    np.testing.assert_allclose(x, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_and_dtype(library, dominant, dtype, periodic, axis):
    operands = dominant((5, 33, 6), dtype)
    expected = pysolvers.solve_tridiagonal(*operands, axis=axis, periodic=periodic)

    x = pysolvers.solve_tridiagonal(*map(library.array, operands), axis=axis, periodic=periodic)

    assert library.is_kind(x)
    agree(library.get(x), expected)


@pytest.mark.parametrize("method", oracle.METHODS)
def test_every_method(library, dominant, method):
    operands = dominant((7, 300))
    expected = pysolvers.solve_tridiagonal(*operands, method="thomas")

    x = pysolvers.solve_tridiagonal(*map(library.array, operands), method=method)

    agree(library.get(x), expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "index", [np.s_[:, ::2, :], np.s_[::3, :, ::2], np.s_[::-1, :, ::-2], np.s_[1:, 2:, 3:]]
)
def test_any_strides(library, dominant, axis, index):
    whole = dominant((6, 8, 10))
    smaller = tuple(slice(n) for n in whole[0][index].shape)
    for operand in range(4):
        parts = [index if k == operand else smaller for k in range(4)]
        hosts = [host[part] for host, part in zip(whole, parts, strict=True)]
        try:
            arrays = [
                library.view(library.array(host), part)
                for host, part in zip(whole, parts, strict=True)
            ]
        except NotImplementedError as error:
            pytest.skip(f"no such array: {error}")

        x = pysolvers.solve_tridiagonal(*arrays, axis=axis)

        agree(library.get(x), pysolvers.solve_tridiagonal(*hosts, axis=axis))


def test_operand_that_does_not_merge_is_copied(ordered, dominant):
    hosts = dominant((3, 4, 5, 6))
    hosts[2] = np.asfortranarray(hosts[2])

    x, info = pysolvers.solve_tridiagonal(
        *map(ordered.array, hosts), on_singular="ignore", return_info=True
    )

    agree(ordered.get(x), pysolvers.solve_tridiagonal(*hosts))
    assert info.copied == ("upper",)
    assert (info.backend, info.singular, info.singular_rows, info.seconds) == (
        "cuda",
        None,
        None,
        None,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_broadcast_scalars_and_short_off_diagonals(library, rng, dtype):
    rhs = oracle.uniform(rng, (4, 6, 50), dtype)
    short = oracle.uniform(rng, (6, 49), dtype)
    diag = np.full(50, 5, dtype)
    expected = pysolvers.solve_tridiagonal(short, diag, -1, rhs)

    x = pysolvers.solve_tridiagonal(
        library.array(short), library.array(diag), -1, library.array(rhs)
    )

    agree(library.get(x), expected)


@pytest.mark.parametrize("shape", [(700, 64), (700, 65), (99, 512), (9, 4096), (3, 30000), (40, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_off_diagonals_that_are_views_of_whole_rows(ordered, rng, dtype, shape):
    """With and without a shift, as in A and its transpose; entries between are not used."""
    lower, diag, upper, rhs = oracle.dominant(rng, shape, dtype)
    diag += 9  # the transposes are dominant, too
    matrices = {trans: oracle.transposed(lower, diag, upper, trans) for trans in "NT"}
    lower, upper = lower.copy(), upper.copy()
    lower[:, 0] = upper[:, -1] = np.nan
    arrays = [ordered.array(a) for a in (lower, diag, upper, rhs)]
    below = ordered.view(arrays[0], np.s_[:, 1:])
    above = ordered.view(arrays[2], np.s_[:, :-1])

    for trans, (first, last) in {"N": (below, above), "T": (above, below)}.items():
        x = pysolvers.solve_tridiagonal(first, arrays[1], last, arrays[3])

        error = oracle.backward_error(*matrices[trans], rhs, ordered.get(x))
        assert error < 50 * oracle.eps(dtype)


def test_shared_matrix(library, rng):
    rhs = rng.standard_normal((100, 64))
    lower, diag, upper = (array[0] for array in oracle.dominant(rng, (1, 64))[:3])

    x = pysolvers.solve_tridiagonal(*map(library.array, (lower, diag, upper, rhs)))

    agree(library.get(x), pysolvers.solve_tridiagonal(lower, diag, upper, rhs))


def test_inputs_are_left_alone(library, dominant):
    hosts = dominant((4, 70))
    arrays = [library.array(host) for host in hosts]

    pysolvers.solve_tridiagonal(*arrays)

    for array, host in zip(arrays, hosts, strict=True):
        np.testing.assert_array_equal(library.get(array), host)


@pytest.mark.parametrize("axis", [0, 1])
def test_out_and_in_place(mutable, dominant, axis):
    hosts = dominant((40, 50))
    arrays = [mutable.array(host) for host in hosts]
    out = mutable.array(np.zeros((40, 50)))
    expected = pysolvers.solve_tridiagonal(*hosts, axis=axis)

    assert pysolvers.solve_tridiagonal(*arrays, axis=axis, out=out) is out
    agree(mutable.get(out), expected)
    assert pysolvers.solve_tridiagonal(*arrays, axis=axis, out=arrays[3]) is arrays[3]
    agree(mutable.get(arrays[3]), expected)


def test_out_that_does_not_merge(ordered, dominant):
    hosts = dominant((3, 4, 5))
    wide = ordered.array(np.full((3, 8, 10), 7.0))
    try:
        out = ordered.view(wide, np.s_[:, ::2, ::-2])
    except NotImplementedError:
        out = ordered.view(wide, np.s_[:, ::2, ::2])

    pysolvers.solve_tridiagonal(*map(ordered.array, hosts), axis=0, out=out)

    agree(ordered.get(out), pysolvers.solve_tridiagonal(*hosts, axis=0))
    assert (ordered.get(wide)[:, 1::2] == 7).all()


def test_memory_order_of_the_right_hand_side_is_kept(mutable, dominant):
    hosts = [np.asfortranarray(host) for host in dominant((8, 9))]

    x = pysolvers.solve_tridiagonal(*map(mutable.array, hosts), axis=0)

    strides = mutable.strides(x)
    assert strides[0] < strides[1]
    agree(mutable.get(x), pysolvers.solve_tridiagonal(*hosts, axis=0))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (3, 1)])
def test_empty_batches_and_single_rows(library, shape):
    arrays = [library.array(np.full(shape, 2.0)) for _ in range(4)]

    x = pysolvers.solve_tridiagonal(*arrays)

    assert library.get(x).tolist() == np.ones(shape).tolist()


def singular(dominant):
    hosts = dominant((5, 40))
    for host in hosts[:3]:
        host[3] = 0
    return hosts


@pytest.mark.parametrize("axis", [0, 1])
def test_singular_systems(library, dominant, axis):
    hosts = [host.swapaxes(axis, 1) for host in singular(dominant)]
    arrays = [library.array(host) for host in hosts]

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.solve_tridiagonal(*arrays, axis=axis)
    assert caught.value.systems.tolist() == [[3]]
    with pytest.warns(pysolvers.SingularSystemWarning):
        pysolvers.solve_tridiagonal(*arrays, axis=axis, on_singular="warn")
    x = library.get(pysolvers.solve_tridiagonal(*arrays, axis=axis, on_singular="nan"))
    assert np.isnan(x).all(axis=axis).tolist() == [False, False, False, True, False]
    assert np.isnan(x).sum() == 40


@pytest.mark.parametrize("batch", [(), (6,), (2, 3)])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_factors(library, rng, dominant, batch, trans):
    *matrix, _ = dominant((*batch, 70), "c16")
    rhs = oracle.uniform(rng, (4, *batch, 70), "c16")
    expected = pysolvers.factor_tridiagonal(*matrix).solve(rhs, trans=trans)

    factor = pysolvers.factor_tridiagonal(*map(library.array, matrix))
    x = factor.solve(library.array(rhs), trans=trans)

    assert library.is_kind(x)
    agree(library.get(x), expected)
    agree(factor.solve(rhs, trans=trans), expected)
    factor.refactor(*(library.array(2 * diagonal) for diagonal in matrix))
    agree(2 * library.get(factor.solve(library.array(rhs), trans=trans)), expected)


def test_factors_give_nan_for_singular_matrices(library, dominant):
    hosts = singular(dominant)
    factor = pysolvers.factor_tridiagonal(*map(library.array, hosts[:3]), on_singular="nan")

    x = library.get(factor.solve(library.array(np.stack([hosts[3]] * 2))))

    assert np.isnan(x).all(axis=(0, 2)).tolist() == [False, False, False, True, False]


def test_arrays_that_cannot_be_used_are_refused(library, dominant):
    hosts = dominant((4, 6))
    arrays = [library.array(host) for host in hosts]
    solve = pysolvers.solve_tridiagonal

    with pytest.raises(TypeError, match=r"on cuda:0, but rhs is a numpy.ndarray"):
        solve(*arrays[:3], hosts[3])
    with pytest.raises(TypeError, match=r"lower is a numpy.ndarray"):
        solve(*hosts[:3], arrays[3])
    with pytest.raises(TypeError, match=r"out is a numpy.ndarray"):
        solve(*arrays, out=hosts[3])
    with pytest.raises(ValueError, match="device is 'cpu'"):
        solve(*arrays, device="cpu")
    with pytest.raises(TypeError, match="diag: need float32"):
        solve(arrays[0], library.array(np.full((4, 6), 4, "f2")), arrays[2], arrays[3])
    with pytest.raises(ValueError, match="shapes do not broadcast"):
        solve(arrays[0], library.array(np.full((3, 6), 4.0)), arrays[2], arrays[3])


@pytest.mark.parametrize(
    ("matrix", "rhs", "result"),
    [("f8", "f4", "f8"), ("f4", "f8", "f8"), ("i4", "f4", "f8"), ("f8", "c8", "c16")],
)
def test_libraries_convert_their_arrays(library, dominant, matrix, rhs, result):
    hosts = [np.asarray(10 * a, matrix) for a in dominant((4, 6))[:3]]
    hosts.append(dominant((4, 6))[3].astype(rhs))
    expected = pysolvers.solve_tridiagonal(*(a.astype(result) for a in hosts))
    arrays = [library.array(host) for host in hosts]
    if not library.converts:
        with pytest.raises(TypeError, match="cannot be converted"):
            pysolvers.solve_tridiagonal(*arrays)
        return

    x = library.get(pysolvers.solve_tridiagonal(*arrays))

    assert x.dtype == result
    agree(x, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["own", "shared", "numbers"])
@pytest.mark.parametrize("rows", [7, 300])
def test_real_matrix_and_complex_sides(library, dominant, rng, rows, kind, axis):
    *matrix, _ = dominant((rows,) if kind == "shared" else (6, 5, rows))
    if kind == "numbers":
        matrix = [-1.0, 3.0, -1.0]
    elif kind == "own":
        matrix = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in matrix]
    rhs = rng.standard_normal((6, 5, rows)) + 1j * rng.standard_normal((6, 5, rows))
    rhs = np.ascontiguousarray(np.moveaxis(rhs, -1, axis))
    expected = pysolvers.solve_tridiagonal(*(np.asarray(a) + 0j for a in matrix), rhs, axis=axis)
    arrays = [library.array(a) if np.ndim(a) else a for a in matrix]

    x = library.get(pysolvers.solve_tridiagonal(*arrays, library.array(rhs), axis=axis))
    agree(x, expected)
    if kind != "numbers":
        shared = kind == "shared"
        factor = pysolvers.factor_tridiagonal(*arrays, axis=-1 if shared else axis)
        agree(library.get(factor.solve(library.array(rhs), axis=axis)), expected)


def test_out_that_cannot_be_written_is_refused(mutable, dominant):
    arrays = [mutable.array(host) for host in dominant((4, 6))]

    with pytest.raises(ValueError, match="out overlaps diag"):
        pysolvers.solve_tridiagonal(*arrays, out=arrays[1])
    with pytest.raises(ValueError, match="shape"):
        pysolvers.solve_tridiagonal(*arrays, out=mutable.array(np.zeros((4, 7))))
    with pytest.raises(TypeError, match="float32"):
        pysolvers.solve_tridiagonal(*arrays, out=mutable.array(np.zeros((4, 6), "f4")))
