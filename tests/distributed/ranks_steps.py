"""Checks of split products and steps, run by every rank of an MPI job; see test_distributed.py."""

import itertools

import numpy as np
import oracle
import pytest
from fake_device import FullArray, in_place_of_cuda, without_functions
from ranks_solve import cut, joined
from slabs import chosen

import pysolvers
from pysolvers import (
    RowSums,
    factor_theta,
    implicit_diffusion,
    residual,
    theta_step,
    tridiagonal_matvec,
)
from pysolvers.distributed import Slab


def cases(rng, group, dtypes=oracle.DTYPES):
    """Yield whole operands, their shape, the axis of the systems, and the one that is cut.

    Each has one of the dtypes in turn; in the slow runs there is one of each dtype.
    """
    number = 0
    for shape in ((5, 7), (3, 4, 6), (4, 3)):
        for axis, along in itertools.product(range(len(shape)), repeat=2):
            if shape[along] < group.size:
                continue
            batch = (*shape[:axis], *shape[axis + 1 :])
            number += 1
            for dtype in chosen(number, dtypes):
                operands = oracle.dominant(rng, (*batch, shape[axis]), dtype)
                yield [np.moveaxis(a, -1, axis) for a in operands], shape, axis, along


def check_products_have_the_bits_of_the_whole(group, rng):
    for (lower, diag, upper, x), shape, axis, along in cases(rng, group):
        for periodic in (False, True):
            b = np.ascontiguousarray(x[::-1])
            options = {"axis": axis, "periodic": periodic}
            split = {"group": group, "split": Slab(along)}
            for matrix in (
                (lower, diag, upper),
                (-np.ones((), x.real.dtype), diag.real, np.flip(upper.real, axis)),
            ):
                parts = [cut(group, a, shape, along) for a in matrix]
                own, rhs = (cut(group, a, shape, along).copy() for a in (x, b))

                y = tridiagonal_matvec(*parts, own, **options, **split)
                r = residual(*parts, own, rhs, **options, **split, out=rhs)

                assert r is rhs
                whole = tridiagonal_matvec(*matrix, x, **options)
                np.testing.assert_array_equal(joined(group, y, along), whole)
                whole = residual(*matrix, x, b, **options)
                np.testing.assert_array_equal(joined(group, r, along), whole)


def check_row_sums_and_extended_residuals(group, rng):
    lower, upper = rng.uniform(0, 1, (2, 4, 9))
    sums, x = rng.standard_normal((2, 4, 9))
    split = {"group": group, "split": Slab(1)}
    parts = [cut(group, a, (4, 9), 1) for a in (lower, sums, upper, x)]

    y = tridiagonal_matvec(
        parts[0], RowSums(parts[1], check_signs=False), parts[2], parts[3], **split
    )
    r = residual(*parts, parts[3], extended=True, **split)

    whole = tridiagonal_matvec(lower, RowSums(sums, check_signs=False), upper, x)
    np.testing.assert_array_equal(joined(group, y, 1), whole)
    whole = residual(lower, sums, upper, x, x, extended=True)
    np.testing.assert_array_equal(joined(group, r, 1), whole)


def check_corners_do_not_matter(group, rng):
    """Also if the x of another rank is not finite."""
    *matrix, x = oracle.dominant(rng, (3, 8))
    matrix[0][:, 0] = matrix[2][:, -1] = np.nan
    x[:, -1] = np.inf
    parts = [cut(group, a, (3, 8), 1) for a in (*matrix, x)]

    y = tridiagonal_matvec(*parts, group=group, split=Slab(1))

    whole = tridiagonal_matvec(*matrix, x)
    np.testing.assert_array_equal(joined(group, y, 1), whole)


def check_theta_steps(group, rng):
    for operands, shape, axis, along in cases(rng, group, (np.float64, np.complex128)):
        lower, diag, upper, u = operands
        matrix = (lower, -np.abs(diag) - 2, upper)
        source, split = u[::-1], {"group": group, "split": Slab(along)}
        for theta in (0.5, 1):
            options = {"dt": 0.3, "theta": theta, "axis": axis}
            parts = [cut(group, a, shape, along) for a in (*matrix, u)]
            own = parts[-1].copy()

            x, info = theta_step(
                *parts[:-1],
                own,
                source=cut(group, source, shape, along),
                out=own,
                return_info=True,
                **options,
                **split,
            )

            assert x is own
            whole = theta_step(*matrix, u, source=source, **options)
            np.testing.assert_allclose(joined(group, x, along), whole, rtol=1e-10, atol=1e-12)
            assert info.rows == shape[axis] or along != axis


def check_theta_steps_with_operands_of_one_axis(group, rng):
    """They lie along the systems, also if another axis has as many entries."""
    rows = 4 * group.size
    lower, diag, upper, u = (a.T for a in oracle.dominant(rng, (4, rows)))
    source, line = rng.standard_normal((2, rows))
    options, split = {"dt": 0.3, "axis": 0}, {"group": group, "split": Slab(0)}
    matrix = (lower, -np.abs(diag) - 2, upper)
    parts = [cut(group, a, (rows, 4), 0) for a in matrix]
    for values in (u, line):
        own, added = (cut(group, a, a.shape, 0) for a in (values, source))

        x = theta_step(*parts, own, source=added, **options, **split)

        whole = theta_step(*matrix, values, source=source, **options)
        np.testing.assert_allclose(joined(group, x, 0), whole, rtol=1e-10, atol=1e-12)
    out = np.zeros((4, 4), np.float32)
    with pytest.raises(TypeError, match="out must be float64"):
        theta_step(*parts, cut(group, u, (rows, 4), 0), out=out, **options, **split)
    assert not out.any()


def check_steps_with_factors(group, rng):
    for operands, shape, axis, along in cases(rng, group, (np.float64, np.complex128)):
        lower, diag, upper, u = operands
        matrix, source = (lower, -np.abs(diag) - 2, upper), u[::-1]
        parts = [cut(group, a, shape, along) for a in (*matrix, u, source)]
        for theta in (0.5, 1):
            options = {"dt": 0.3, "theta": theta, "axis": axis}
            split = {"rows": parts[0].shape[axis], "group": group, "split": Slab(along)}
            factor = factor_theta(*parts[:3], **options, **split)
            own = parts[3].copy()

            x = factor.step(own, parts[4], count=3)
            y = factor.step(own, out=own[...])  # another view of the same numbers

            assert np.shares_memory(y, own)
            kept = factor_theta(*matrix, **options)
            whole = kept.step(u, source, count=3)
            np.testing.assert_allclose(joined(group, x, along), whole, rtol=1e-10, atol=1e-12)
            whole = kept.step(u)
            np.testing.assert_allclose(joined(group, y, along), whole, rtol=1e-10, atol=1e-12)


def check_what_steps_with_factors_do_not_take(group, rng):
    *matrix, u = oracle.dominant(rng, (3, 12))
    *parts, own = (cut(group, a, (3, 12), 1) for a in (*matrix, u))
    whole = {"dt": 0.1, "group": group, "split": Slab(1)}
    factor = factor_theta(*parts, rows=own.shape[1], **whole)
    before = own.copy()
    refused = {
        "u must have all axes": (own[0], {}),
        "source must have all axes": (own, {"source": own[0]}),
        "out overlaps source": (before, {"source": own, "out": own}),
        "out must be float64": (own, {"out": np.empty(own.shape, np.float32)}),
    }
    for text, (values, more) in refused.items():
        with pytest.raises((TypeError, ValueError), match=text):
            factor.step(values, **more)
        np.testing.assert_array_equal(own, before)


def check_what_cut_steps_do_not_take(group, rng):
    *matrix, u = oracle.dominant(rng, (3, 12))
    parts = [cut(group, a, (3, 12), 1) for a in (*matrix, u)]
    options = {"dt": 0.1, "group": group, "split": Slab(1)}
    message = ""
    try:
        theta_step(*parts, **options, theta=0)
    except (ValueError, pysolvers.DistributedError) as error:
        message = str(error)
    assert "theta must be greater" in message or group.size == 1, message


def faces_of_part(group, K, layers, axis):
    """Return the faces of the layers of this rank, those at the cuts included."""
    own = Slab(axis).part(layers, group.rank, group.size)
    return K[(slice(None),) * axis + (slice(own.start, own.stop + 1),)]


def check_diffusion_of_cut_columns(group, rng):
    layers = 3 * group.size + 1
    ends = {"flux_first": 0.3, "flux_last": -0.2}, {"value_first": 1.5, "flux_last": 0.1}
    for number, (shape, axis) in enumerate(
        (((layers,), 0), ((layers, 3), 0), ((2, layers, 4), 1), ((3, layers), 1))
    ):
        faces = tuple(n + (k == axis) for k, n in enumerate(shape))
        T, source = rng.random((2, *shape))
        K, dz = 10 ** rng.uniform(-3, 3, faces), rng.uniform(0.1, 2, shape)
        line = 1 + np.arange(layers) / layers
        values = rng.random(shape[:axis] + shape[axis + 1 :]) if len(shape) > 1 else 0.4
        for dtype in chosen(number, (np.float64, np.float32)):
            for given_K, given_dz, more in (
                (K, dz, {}),
                (K, line, {"source": source} | ends[0]),
                (K, 0.5, ends[1]),
                (2.0, dz, {"value_last": values}),
            ):
                whole, parts = {}, {}
                operands = {"T": T, "K": given_K, "dz": given_dz, **more}
                for name, value in operands.items():
                    value = np.asarray(value, dtype) if np.ndim(value) else value
                    own = value
                    if name == "K" and np.ndim(value):
                        own = faces_of_part(group, value, layers, axis)
                    elif np.ndim(value) == 1 and name in ("T", "dz", "source"):
                        own = cut(group, value, (layers,), 0)
                    elif np.ndim(value) and name in ("T", "dz", "source"):
                        own = cut(group, value, shape, axis)
                    whole[name], parts[name] = value, own
                for theta in (1, 0.5):
                    options = {"dt": 0.7, "theta": theta, "axis": axis - len(shape)}
                    before = {name: np.copy(value) for name, value in parts.items()}

                    x = implicit_diffusion(**parts, **options, group=group, split=Slab(axis))

                    assert x.dtype == dtype
                    for name, value in parts.items():
                        np.testing.assert_array_equal(value, before[name])
                    expected = implicit_diffusion(**whole, **options)
                    eps = np.finfo(dtype).eps
                    scale = np.abs(expected).max()
                    found = joined(group, x, axis)
                    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * eps * scale)
                    if not more:  # nothing enters
                        d = dz.astype(dtype)
                        change = (d * (found - T.astype(dtype))).sum(axis)
                        assert np.abs(change).max() < 50 * eps * (d * scale).sum(axis).max()
    out = np.zeros_like(parts["T"])
    assert implicit_diffusion(**parts, **options, group=group, split=Slab(axis), out=out) is out
    np.testing.assert_array_equal(out, x)


def check_diffusion_of_cut_columns_on_a_device(group, rng):
    """The rows have the bits of the host; also without arithmetic the reason is named."""
    shape = 2, 3 * group.size, 3
    T, source, dz = rng.random((3, *shape))
    K = rng.random((2, shape[1] + 1, 3))
    wet = rng.random(shape) < 0.7
    heat, top = rng.random((2, 2, 3))
    split = {"group": group, "split": Slab(1), "axis": 1, "dt": 0.7}
    own = [cut(group, a, shape, 1) for a in (T, source, dz, wet)]
    own.insert(1, faces_of_part(group, K, shape[1], 1))
    for theta in (1, 0.5):
        for has_mask in (False, True):
            for more in ({"flux_first": heat, "value_last": 0.3}, {"value_first": top}, {}):
                with in_place_of_cuda() as fake:
                    arrays = [FullArray(fake, a) for a in (*own, np.zeros_like(own[0]))]
                    t, k, s, d, w, out = arrays
                    there = {n: FullArray(fake, a) if np.ndim(a) else a for n, a in more.items()}
                    options = {**split, "theta": theta, **there}
                    options |= {"where": w} if has_mask else {}
                    x = implicit_diffusion(t, k, d, source=s, **options)
                    assert implicit_diffusion(t, k, d, source=s, out=out, **options) is out
                    found = x.get()
                    np.testing.assert_array_equal(out.get(), found)
                mask = {"where": wet} if has_mask else {}
                whole = implicit_diffusion(
                    T, K, dz, 0.7, axis=1, source=source, theta=theta, **mask, **more
                )
                np.testing.assert_allclose(joined(group, found, 1), whole, rtol=0, atol=1e-13)
    if group.size == 1:
        return
    with in_place_of_cuda() as fake:
        t = FullArray(fake, own[0])
        x = implicit_diffusion(t, 0.3, 1.0, source=2.0, **split)
        whole = implicit_diffusion(T, 0.3, 1.0, 0.7, axis=1, source=2.0)
        np.testing.assert_allclose(joined(group, x.get(), 1), whole, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(
            implicit_diffusion(t, 0.3, 1.0, where=False, **split).get(), own[0]
        )
        with pytest.raises(ValueError, match="stream must be None, got 5"):
            implicit_diffusion(t, 0.3, 1.0, stream=5, **split)
        with (
            without_functions(),
            pytest.raises(pysolvers.BackendError, match="must be of CuPy, PyTorch or JAX"),
        ):
            implicit_diffusion(t, 0.3, 1.0, **split)
        # Arrays of the host are solved on the device that was asked for.
        fake.calls.clear()
        x = implicit_diffusion(own[0], 0.3, 1.0, source=2.0, device="cuda", **split)
        np.testing.assert_allclose(joined(group, x, 1), whole, rtol=0, atol=1e-13)
        assert fake.calls


def check_diffusion_of_columns_that_are_not_cut(group, rng):
    shape = 5, 2 * group.size
    T, wet = rng.random(shape), rng.random(shape) < 0.8
    parts = cut(group, T, shape, 1), cut(group, wet, shape, 1)
    options = {"K": 0.3, "dz": 1.0, "dt": 2.0, "axis": 0}
    x = implicit_diffusion(parts[0], where=parts[1], **options, group=group, split=Slab(1))
    np.testing.assert_array_equal(joined(group, x, 1), implicit_diffusion(T, where=wet, **options))


def check_what_cut_columns_do_not_take(group, rng):
    T = rng.random((3, 2))
    options = {"dz": 1.0, "dt": 0.1, "axis": 0, "group": group, "split": Slab(0)}
    refused = {
        "where: need booleans": {"K": 1.0, "where": np.ones((3, 2))},
        "must be a number or have the 4 faces": {"K": np.ones(2)},
        "K must have the same value": {"K": np.arange(4.0) + 5 * group.rank},
        "must be real": {"K": 1j},
    }
    for text, more in refused.items():
        message = ""
        try:
            implicit_diffusion(T, **options, **more)
        except (TypeError, ValueError, pysolvers.DistributedError) as error:
            message = str(error)
        assert text in message or group.size == 1, message


def check_operands_of_single_precision_are_not_rounded_again(group, rng):
    """float32 with float64 gives float64, also in systems that are cut."""
    shape = (3, 4 * group.size)
    lower, upper, diag, source = rng.uniform(-1, 1, (4, *shape)).astype(np.float32)
    u = rng.uniform(-1, 1, shape)
    options = {"dt": 0.3, "theta": 0.7}
    split = {"group": group, "split": Slab(1)}
    own = [cut(group, a, shape, 1) for a in (lower, diag - 3, upper, u, source)]
    wide = [np.asarray(a, np.float64) for a in (lower, diag - 3, upper)]
    truth = theta_step(*wide, u, source=source.astype(np.float64), **options)
    x = theta_step(*own[:4], source=own[4], **options, **split)
    np.testing.assert_allclose(joined(group, x, 1), truth, rtol=0, atol=1e-14)
    made = factor_theta(own[0], own[1], own[2].astype(np.float64), **options, **split)
    x = made.step(own[3], own[4])
    np.testing.assert_allclose(joined(group, x, 1), truth, rtol=0, atol=1e-14)
