"""Checks of masks, of row sums and of obstacles on ranks; see test_distributed.py.

Every rank makes the same operands, and compares its part with that of one process.
"""

import exact_lines
import fake_device
import numpy as np
import oracle
import pytest
from ranks_solve import cut, joined
from slabs import chosen

import pysolvers
from pysolvers import (
    RowSums,
    SingularSystemError,
    factor_theta,
    factor_tridiagonal,
    implicit_diffusion,
    solve_tridiagonal,
    theta_step,
)
from pysolvers.distributed import Slab


def cases(rng, group, dtypes=oracle.DTYPES):
    """Yield operands that are NaN outside, the mask, their shape, and the axes."""
    number = 0
    for shape in ((5, 7), (3, 4, 9), (3, 4 * group.size), (2, 200 * group.size)):
        for axis in range(len(shape)):
            for along in range(len(shape)):
                if shape[along] < group.size:
                    continue
                number += 1
                for dtype in chosen(number, dtypes):
                    batch = (*shape[:axis], *shape[axis + 1 :])
                    inside = rng.random((*batch, shape[axis])) < 0.8
                    lower, diag, upper, rhs = oracle.dominant(rng, inside.shape, dtype)
                    before, after = np.roll(inside, 1, -1), np.roll(inside, -1, -1)
                    lower[~(inside & before)] = upper[~(inside & after)] = np.nan
                    diag[~inside] = rhs[~inside] = np.nan
                    operands = (lower, diag, upper, rhs, inside)
                    yield [np.moveaxis(a, -1, axis) for a in operands], shape, axis, along


def same(group, part, whole, along, dtype):
    tolerance = 200 * oracle.eps(dtype)
    assert part.dtype == whole.dtype
    found = joined(group, part, along)
    np.testing.assert_allclose(found, whole, rtol=0, atol=tolerance * np.nanmax(np.abs(whole)))


def check_masks_of_solves_and_factors(group, rng):
    for (*matrix, rhs, inside), shape, axis, along in cases(rng, group):
        parts = [cut(group, a, shape, along) for a in (*matrix, rhs, inside)]
        before = [a.copy() for a in parts]
        for periodic in (False, True):
            for pivot in (None, True):
                options = {"axis": axis, "periodic": periodic, "pivot": pivot}
                split = {"group": group, "split": Slab(along), "where": parts[4]}
                whole = solve_tridiagonal(*matrix, rhs, where=inside, **options)

                x, info = solve_tridiagonal(*parts[:4], return_info=True, **options, **split)
                factor = factor_tridiagonal(*parts[:3], **options, **split)
                y = factor.solve(parts[3], axis=axis)

                same(group, x, whole, along, rhs.dtype)
                same(group, y, whole, along, rhs.dtype)
                np.testing.assert_array_equal(x[~parts[4]], parts[3][~parts[4]])
                if along == axis and group.size > 1:
                    expected = "lines" if pivot else "ends"
                    assert info.exchange == factor.info.exchange == expected
            out = parts[3].copy()
            options = {"axis": axis, "periodic": periodic, "out": out}
            solved = solve_tridiagonal(*parts[:3], out, **options, **split)
            assert solved is out
            same(group, out, whole, along, rhs.dtype)
            out = parts[3].copy()
            assert factor.solve(out, axis=axis, out=out) is out
            same(group, out, whole, along, rhs.dtype)
        for part, kept in zip(parts, before, strict=True):
            np.testing.assert_array_equal(part, kept)


def check_masks_that_broadcast(group, rng):
    """One mask for all systems, one matrix for all, numbers, and complex right-hand sides."""
    rows = 6 * group.size
    inside = np.arange(rows) % 5 > 0
    for rhs in (rng.random((3, rows)), rng.random((3, rows)) * (1 + 2j)):
        for matrix in ((-1.0, 3.0, -1.0), [a[0] for a in oracle.dominant(rng, (1, rows))[:3]]):
            for where in (inside, rng.random((3, rows)) < 0.7, True):
                whole = solve_tridiagonal(*matrix, rhs, where=where)
                parts = [cut(group, a, (3, rows), 1) for a in (*matrix, rhs, where)]
                split = {"group": group, "split": Slab(-1), "where": parts[-1]}
                x = solve_tridiagonal(*parts[:-1], **split)
                same(group, x, whole, 1, rhs.dtype)
                factor = factor_tridiagonal(*parts[:3], rows=parts[3].shape[1], **split)
                same(group, factor.solve(parts[3]), whole, 1, rhs.dtype)


def check_masks_on_a_device(group, rng):
    """On a device made of protected host memory, which ends a process that touches it."""
    *matrix, rhs = oracle.dominant(rng, (3, 5 * group.size))
    inside = rng.random(rhs.shape) < 0.7
    rhs[~inside] = np.nan
    for along in (0, 1):
        if rhs.shape[along] < group.size:
            continue
        parts = [cut(group, a, rhs.shape, along) for a in (*matrix, rhs, inside)]
        whole = solve_tridiagonal(*matrix, rhs, where=inside)
        step = theta_step(*matrix, rhs, dt=-0.1, where=inside, source=rhs)
        with fake_device.in_place_of_cuda() as fake:
            *own, b, where = (fake.array(part) for part in parts)
            split = {"group": group, "split": Slab(along), "where": where}
            x = solve_tridiagonal(*own, b, **split)
            y = factor_tridiagonal(*own, **split).solve(b)
            staged = solve_tridiagonal(*parts[:4], device="cuda", **split | {"where": parts[4]})
            kept = factor_theta(*own, dt=-0.1, **split)
            z = kept.step(b, b, count=2)
            x, y, z = (a.get() for a in (x, y, z))
        for found in (x, y, staged):
            same(group, found, whole, along, rhs.dtype)
        twice = theta_step(*matrix, step, dt=-0.1, where=inside, source=rhs)
        same(group, z, twice, along, rhs.dtype)


def check_finite_entries_outside_do_not_count(group, rng):
    *matrix, rhs = oracle.dominant(rng, (2, 4 * group.size))
    inside = np.ones(rhs.shape, bool)
    inside[1, 1] = False
    rhs[1, 1] = np.nan
    parts = [cut(group, a, rhs.shape, 1) for a in (*matrix, rhs, inside)]
    options = {"group": group, "split": Slab(1), "check_finite": True}
    solve_tridiagonal(*parts[:4], where=parts[4], **options)
    factor = factor_tridiagonal(*parts[:3], where=parts[4], **options)
    factor.solve(parts[3], check_finite=True)
    with pytest.raises((ValueError, pysolvers.DistributedError), match="rhs is nan"):
        solve_tridiagonal(*parts[:4], where=np.ones(parts[4].shape, bool), **options)


def check_values_that_are_not_finite_inside(group, rng):
    """They spread along their system, and rows outside keep their values."""
    rows = 6 * group.size
    *matrix, rhs = oracle.dominant(rng, (3, rows))
    inside = np.ones(rhs.shape, bool)
    inside[:, 2::6] = False
    for place in (0, rows // 2, rows - 1):
        b = rhs.copy()
        b[1, place] = np.inf
        parts = [cut(group, a, rhs.shape, 1) for a in (*matrix, b, inside)]
        split = {"group": group, "split": Slab(1)}
        x = solve_tridiagonal(*parts[:4], where=parts[4], **split)
        factor = factor_tridiagonal(*parts[:3], where=parts[4], **split)
        for found in (x, factor.solve(parts[3])):
            np.testing.assert_array_equal(found[~parts[4]], parts[3][~parts[4]])
            whole = joined(group, found, 1)
            assert not np.isfinite(whole[1, place])
            truth = solve_tridiagonal(*matrix, b, where=inside)
            np.testing.assert_allclose(whole[[0, 2]], truth[[0, 2]], rtol=1e-12)


def check_what_masks_do_not_go_with(group, rng):
    *matrix, rhs = oracle.dominant(rng, (2, 4 * group.size))
    parts = [cut(group, a, rhs.shape, 1) for a in (*matrix, rhs)]
    options = {"group": group, "split": Slab(1)}
    for call in (solve_tridiagonal, factor_tridiagonal):
        operands = parts if call is solve_tridiagonal else parts[:3]
        with pytest.raises(TypeError, match="where: need booleans, got float64"):
            call(*operands, where=parts[0], **options)
    factor = factor_tridiagonal(*parts[:3], where=np.ones(parts[3].shape, bool), **options)
    with pytest.raises(ValueError, match="the factor has a mask"):
        factor.refactor(*parts[:3])
    with pytest.raises(ValueError, match="keep_matrix with a group"):
        factor_tridiagonal(*parts[:3], keep_matrix=True, **options)
    if group.size > 1:
        where = np.ones(parts[3].shape, bool) if group.rank == 0 else None
        with pytest.raises(pysolvers.DistributedError):
            solve_tridiagonal(*parts, where=where, **options)


def check_singular_systems_with_masks(group, rng):
    """All ranks name the systems, which are singular inside the mask alone."""
    *matrix, rhs = oracle.dominant(rng, (4, 5 * group.size))
    inside = np.ones(rhs.shape, bool)
    for part in matrix:
        part[1:3, 2] = 0
    inside[1, 2] = False
    parts = [cut(group, a, rhs.shape, 1) for a in (*matrix, rhs, inside)]
    options = {"group": group, "split": Slab(1)}
    with pytest.raises(SingularSystemError) as found:
        solve_tridiagonal(*parts[:4], where=parts[4], **options)
    with pytest.raises(SingularSystemError) as expected:
        solve_tridiagonal(*matrix, rhs, where=inside)
    np.testing.assert_array_equal(found.value.systems, [[2]])
    np.testing.assert_array_equal(found.value.rows, expected.value.rows)
    x = solve_tridiagonal(*parts[:4], where=parts[4], on_singular="nan", **options)
    whole = solve_tridiagonal(*matrix, rhs, where=inside, on_singular="nan")
    same(group, x, whole, 1, rhs.dtype)


def assert_every_unknown(x, operands, dtype, *, periodic):
    lower, sums, upper, rhs = operands
    bound = max(50, x.shape[-1] / 2) * oracle.eps(dtype)
    for k in range(len(x)):
        truth = exact_lines.solve(lower[k], sums[k], upper[k], rhs[k], periodic=periodic)
        error = np.abs(x[k].astype(float) - truth) / truth
        assert error.max() <= bound, (k, error.max() / oracle.eps(dtype))


def check_row_sums_of_any_condition(group, rng):
    """Every unknown is right, as on one process; the matrices have row sums down to 1e-20."""
    for rows in (max(group.size, 3), 2 * group.size + 1, 17, 130):
        for periodic in (False, True):
            for number, dtype in enumerate((np.float32, np.float64)):
                operands = exact_lines.family(rng, 6, rows, np.dtype(dtype).name, symmetric=True)
                for axis in chosen(number + rows, (1, 0)):
                    given = [a if axis else np.ascontiguousarray(a.T) for a in operands]
                    shape = given[0].shape
                    lower, sums, upper, rhs = (cut(group, a, shape, axis) for a in given)
                    options = {"axis": axis, "periodic": periodic}
                    options |= {"group": group, "split": Slab(axis)}

                    x, info = solve_tridiagonal(
                        lower, RowSums(sums), upper, rhs, return_info=True, **options
                    )
                    options["rows"] = rhs.shape[axis]
                    factor = factor_tridiagonal(lower, RowSums(sums), upper, **options)
                    del options["rows"]
                    y = factor.solve(rhs, axis=axis)

                    assert info.exchange == ("ends" if group.size > 1 else "none")
                    for found in (x, y):
                        whole = joined(group, found, axis)
                        whole = whole if axis else whole.T
                        assert_every_unknown(whole, operands, dtype, periodic=periodic)
                    out = rhs.copy()
                    solve_tridiagonal(lower, RowSums(sums), upper, out, out=out, **options)
                    np.testing.assert_array_equal(out, x)


def check_row_sums_of_tiny_size(group, rng):
    """A bar without flux that loses heat at a rate of 1e-20, and the Laplacian's signs."""
    rows = 40 * group.size
    part = cut(group, np.ones((2, rows)), (2, rows), 1)
    options = {"group": group, "split": Slab(1)}
    for sign in (1, -1):
        x = solve_tridiagonal(-1.0 * sign, RowSums(1e-20 * sign), -1.0 * sign, part, **options)
        np.testing.assert_allclose(x, 1e20 * sign, rtol=1e-13)
        inside = np.ones(part.shape, bool)
        inside[0, 0] = False
        for where in (None, inside):
            factor = factor_tridiagonal(
                *(-1.0 * sign, RowSums(np.full(part.shape, 1e-20 * sign)), -1.0 * sign),
                where=where,
                **options,
            )
            x = factor.solve(part * 1j).imag
            apart = np.full(part.shape, 1e20 * sign)
            if where is not None:
                apart[0, 0] = 1
            np.testing.assert_allclose(x, apart, rtol=1e-13)


def check_what_row_sums_do_not_take(group, rng):
    part = np.ones((2, 3))
    options = {"group": group, "split": Slab(1)}
    wrong = {
        "RowSums.s is -1.0": (-1.0, RowSums(-1.0), -1.0),
        "pivot must be None or False": (-1.0, RowSums(1.0), -1.0),
        "must be real": (-1.0, RowSums(1j), -1.0),
    }
    for text, matrix in wrong.items():
        pivot = True if "pivot" in text else None
        with pytest.raises((ValueError, TypeError), match=text):
            solve_tridiagonal(*matrix, part, pivot=pivot, **options)
    with pytest.raises(SingularSystemError) as found:
        solve_tridiagonal(-1.0, RowSums(np.zeros((2, 3))), -1.0, part, **options)
    assert len(found.value.rows) == 2
    if group.size > 1:
        sign = 1.0 if group.rank else -1.0
        with pytest.raises(pysolvers.DistributedError, match="signs of the matrices"):
            solve_tridiagonal(sign, RowSums(-sign), sign, part, **options)


def check_row_sums_on_a_device(group, rng):
    lower, sums, upper, rhs = exact_lines.family(rng, 3, 9 * group.size, "float64", symmetric=True)
    own = [cut(group, a, rhs.shape, 1) for a in (lower, sums, upper, rhs)]
    with fake_device.in_place_of_cuda() as fake:
        a, s, c, f = map(fake.array, own)
        x = solve_tridiagonal(a, RowSums(s), c, f, group=group, split=Slab(1)).get()
    whole = joined(group, x, 1)
    assert_every_unknown(whole, (lower, sums, upper, rhs), np.float64, periodic=False)


def check_theta_steps_with_masks_and_row_sums(group, rng):
    kinds = (np.float64, np.complex128, np.float32)
    for (lower, diag, upper, u, inside), shape, axis, along in cases(rng, group, kinds):
        real = not np.iscomplexobj(u)
        parts = {}
        source = np.where(inside, u[::-1], np.nan)
        source = np.where(np.isnan(source), np.where(inside, 1, np.nan), source).astype(u.dtype)
        for name, array in {
            "lower": np.abs(lower) if real else lower,
            "diag": -np.abs(diag),
            "upper": np.abs(upper) if real else upper,
            "u": u,
            "where": inside,
            "source": source,
        }.items():
            parts[name] = array, cut(group, array, shape, along)
        for form in (False, True)[: 1 + real]:
            for theta in (0.5, 1):
                options = {"dt": 0.3, "theta": theta, "axis": axis}
                whole, own = ({name: pair[side] for name, pair in parts.items()} for side in (0, 1))
                for given in (whole, own):
                    given["diag"] = RowSums(given["diag"]) if form else given["diag"]
                expected = theta_step(**whole, **options)
                split = {"group": group, "split": Slab(along)}

                x, info = theta_step(**own, **options, **split, return_info=True)

                assert info.rows == (shape[axis] if along == axis else own["u"].shape[axis])
                assert info.exchange == ("ends" if along == axis and group.size > 1 else "none")
                same(group, x, expected, along, u.dtype)
                out = own["u"].copy()
                assert theta_step(**own | {"u": out}, **options, **split, out=out) is out
                np.testing.assert_array_equal(out, x)
                matrix = [own.pop(name) for name in ("lower", "diag", "upper")]
                where, start, added = (own[name] for name in ("where", "u", "source"))
                factor = factor_theta(*matrix, where=where, **options, **split)
                same(group, factor.step(start, added), expected, along, u.dtype)
                twice = theta_step(**whole | {"u": expected}, **options)
                out = start.copy()
                assert factor.step(out, added, count=2, out=out) is out
                same(group, out, twice, along, u.dtype)


def american_put(rows):
    """Return the diagonals of A and the payoff of an American put."""
    s = np.linspace(0, 4, rows)
    vol, rate, h = 0.3, 0.05, s[1]
    second, first = 0.5 * vol**2 * s**2 / h**2, 0.5 * rate * s / h
    lower, diag, upper = second - first, -2 * second - rate, second + first
    for entries in (lower, diag, upper):
        entries[[0, -1]] = 0
    return (lower, diag, upper), np.maximum(1 - s, 0)


def check_obstacles(group, rng):
    rows = 20 * group.size + 1
    matrix, payoff = american_put(rows)
    strikes = np.array([1.0, 0.8, 1.2, 1.1, 0.9])[:, None]
    for axis in (1, 0):
        start = strikes * payoff if axis else (strikes * payoff).T
        along = axis
        for contact in ("first", "last"):
            flip = (slice(None, None, 1 if contact == "first" else -1),)
            own = [np.flip(a) for a in reversed(matrix)] if contact == "last" else matrix
            bound = start[(slice(None),) * axis + flip]
            whole = u = bound
            mine = cut(group, bound, bound.shape, along)
            parts = [cut(group, a, (rows,), 0) for a in own]
            split = {"group": group, "split": Slab(along)}
            for step in range(3):
                options = {"dt": 0.05, "theta": 1 if step < 1 else 0.5, "axis": axis}
                options |= {"contact": contact}
                source = rng.random(bound.shape) * 1e-3
                whole = theta_step(*own, whole, projected=bound, source=source, **options)
                added = cut(group, source, bound.shape, along)
                out = np.array(u if step else mine)

                u, info = theta_step(
                    *parts,
                    out,
                    projected=mine,
                    source=added,
                    out=out,
                    return_info=True,
                    **options,
                    **split,
                )

                assert u is out
                np.testing.assert_array_equal(joined(group, u, along), whole)
                if group.size > 1:
                    assert info.exchange == "lines"
                assert (info.ranks, info.rows) == (group.size, rows)
            assert (whole == bound).any()


def check_obstacles_with_masks_and_row_sums(group, rng):
    rows = 12 * group.size
    lower, upper = rng.uniform(0, 2, (2, 3, rows))
    sums = -rng.uniform(0, 1, (3, rows))
    u, bound = rng.random((2, 3, rows))
    inside = rng.random((3, rows)) < 0.8
    u[~inside] = bound[~inside] = np.nan
    whole = [lower, RowSums(sums), upper, u]
    options = {"dt": 0.4, "contact": "last"}
    expected = theta_step(*whole, where=inside, projected=bound, **options)
    a, s, c, own, where, least = (
        cut(group, array, (3, rows), 1) for array in (lower, sums, upper, u, inside, bound)
    )
    split = {"group": group, "split": Slab(1)}
    x = theta_step(a, RowSums(s), c, own, where=where, projected=least, **options, **split)
    np.testing.assert_array_equal(joined(group, x, 1), expected)
    with fake_device.in_place_of_cuda() as fake:
        arrays = map(fake.array, (a, s, c, own, where, least))
        a, s, c, own, where, least = arrays
        x = theta_step(a, RowSums(s), c, own, where=where, projected=least, **options, **split)
        x = x.get()
    np.testing.assert_array_equal(joined(group, x, 1), expected)


def check_diffusion_of_cut_columns_with_masks(group, rng):
    """Columns that end on any rank, and columns without any layer inside."""
    layers = 3 * group.size + 1
    for number, (shape, axis) in enumerate(
        (((layers, 6), 0), ((2, layers, 4), 1), ((5, layers), 1))
    ):
        place = [1] * len(shape)
        place[axis] = layers
        index = np.arange(layers).reshape(place)
        batch = shape[:axis] + shape[axis + 1 :]
        first = np.expand_dims(rng.integers(0, layers, batch), axis)
        last = np.expand_dims(rng.integers(0, layers + 1, batch), axis)
        holes = rng.random(shape) < 0.8
        faces = tuple(n + (k == axis) for k, n in enumerate(shape))
        for inside in ((first <= index) & (index < last), holes, holes & (index % 3 < 2)):
            T, source = (np.where(inside, rng.random(shape), np.nan) for _ in range(2))
            K = 10 ** rng.uniform(-3, 3, faces)
            dz = np.where(inside, rng.uniform(0.1, 2, shape), np.nan)
            rows_last = np.moveaxis(inside, axis, -1)
            dry = ~(np.pad(rows_last, [(0, 0)] * len(batch) + [(1, 1)]))
            bad = np.moveaxis(dry[..., 1:] & dry[..., :-1], -1, axis)
            K[bad] = np.nan  # no layer inside touches these faces
            flux, value = rng.random((2, *batch))
            for more in (
                {"flux_first": flux, "source": source},
                {"value_first": value, "flux_last": 0.1},
                {"value_last": value, "flux_first": 0.2},
            ):
                for dtype in chosen(number, (np.float64, np.float32)):
                    whole, parts = {}, {}
                    for name, array in {"T": T, "K": K, "dz": dz, **more}.items():
                        array = np.asarray(array, dtype)
                        own = array
                        if name == "K":
                            part = Slab(axis).part(layers, group.rank, group.size)
                            own = array[(slice(None),) * axis + (slice(part.start, part.stop + 1),)]
                        elif array.shape == shape:
                            own = cut(group, array, shape, axis)
                        whole[name], parts[name] = array, own
                    where = cut(group, inside, shape, axis)
                    for theta in (1, 0.5):
                        options = {"dt": 0.7, "theta": theta, "axis": axis}
                        expected = implicit_diffusion(**whole, where=inside, **options)

                        x = implicit_diffusion(
                            **parts, where=where, **options, group=group, split=Slab(axis)
                        )

                        assert x.dtype == dtype
                        scale = np.nanmax(np.abs(expected))
                        np.testing.assert_allclose(
                            joined(group, x, axis),
                            expected,
                            rtol=0,
                            atol=100 * oracle.eps(dtype) * scale,
                        )
                        np.testing.assert_array_equal(x[~where], parts["T"][~where])
        T = cut(group, T, shape, axis)
        out = np.full(T.shape, 7.0)
        options = {"K": 0.3, "dz": 1.0, "dt": 2.0, "axis": axis, "where": where}
        x = implicit_diffusion(T, **options, group=group, split=Slab(axis), out=out)
        assert x is out
        np.testing.assert_array_equal(out[~where], T[~where])
        assert np.isfinite(out[where]).all()
