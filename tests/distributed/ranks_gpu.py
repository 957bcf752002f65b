"""Checks of split solves on GPUs, run by every rank of an MPI job; see tests/gpu.

Rank r uses device r, or the devices in turn if there are fewer.
"""

import own_device  # noqa: F401, I001  before CUDA is used

from contextlib import nullcontext

import gpu_libraries
import numpy as np
import oracle
import pytest
from rank_hooks import without_whole_lines
from ranks_blocks import (
    band_product,
    options_of,
    own_part,
    product,
    random_bands,
    random_blocks,
    require_solution,
)
from ranks_factor import solved as solved_by_factor
from ranks_steps import faces_of_part
from ranks_solve import cut, joined, singular_operands, solved

import pysolvers
from pysolvers.distributed import Slab

SHAPES = ((37, 300, 5), (2, 3, 5000))


def check_arrays_of_the_host(group, rng):
    for shape in SHAPES:
        axis = int(np.argmax(shape))
        for dtype in oracle.DTYPES:
            for periodic in (False, True):
                batch = (*shape[:axis], *shape[axis + 1 :])
                operands = oracle.dominant(rng, (*batch, shape[axis]), dtype)
                operands = [np.moveaxis(a, -1, axis) for a in operands]
                # Whole lines are solved as on one device: one dtype is enough.
                for along in range(3) if dtype == np.float64 and not periodic else (axis,):
                    if shape[along] >= group.size:
                        solved(group, operands, shape, axis, along, periodic, "ends", device="cuda")


def check_arrays_of_every_library(group, rng):
    for make in (oracle.dominant, oracle.general):
        operands = make(rng, (6, 301))
        expected = pysolvers.solve_tridiagonal(*operands)
        for kind in gpu_libraries.LIBRARIES.values():
            try:
                library = kind()
            except ImportError:
                continue
            parts = [library.array(np.array(cut(group, a, (6, 301), 1))) for a in operands]
            x = pysolvers.solve_tridiagonal(*parts, group=group, split=Slab(1))
            whole = joined(group, library.get(x), 1)
            np.testing.assert_allclose(whole, expected, rtol=1e-9, atol=1e-9)


def check_masks_row_sums_and_steps(group, rng):
    """Of every library; the results are those of one process on the host."""
    lower, diag, upper, rhs = oracle.dominant(rng, (6, 301))
    inside = rng.random(rhs.shape) < 0.8
    rhs, diag = (np.where(inside, a, np.nan) for a in (rhs, diag))
    lower, upper, sums = -np.abs(lower), -np.abs(upper), np.full(rhs.shape, 1e-9)
    ones, least = np.ones(rhs.shape), rng.random(rhs.shape)
    options, split = {"dt": 0.3, "where": inside}, {"group": group, "split": Slab(1)}
    matrix = -lower, -np.abs(diag), -upper
    expected = {
        "solve": pysolvers.solve_tridiagonal(lower, diag, upper, rhs, where=inside),
        "sums": pysolvers.solve_tridiagonal(lower, pysolvers.RowSums(sums), upper, ones),
        "step": pysolvers.theta_step(*matrix, rhs, source=rhs, **options),
        "steps": pysolvers.factor_theta(*matrix, **options).step(rhs, rhs, count=2),
        "bound": pysolvers.theta_step(*matrix, rhs, projected=least, **options),
    }
    faces, heat = rng.random((6, 302)), rng.random(6)
    layers = {"axis": 1, "dt": 0.7, "theta": 0.5, "value_last": 0.3}
    expected["diffusion"] = pysolvers.implicit_diffusion(
        rhs, faces, least, **layers, flux_first=heat, where=inside
    )
    for called, kind in gpu_libraries.LIBRARIES.items():
        try:
            library = kind()
        except ImportError:
            continue
        whole = (lower, diag, upper, rhs, sums, ones, least, inside, *matrix)
        parts = [library.array(np.array(cut(group, a, rhs.shape, 1))) for a in whole]
        lo, di, up, b, s, one, bound, where, *own = parts
        here = {"dt": 0.3, "where": where, **split}
        found = {
            "solve": pysolvers.solve_tridiagonal(lo, di, up, b, where=where, **split),
            "sums": pysolvers.solve_tridiagonal(lo, pysolvers.RowSums(s), up, one, **split),
        }
        if called != "numba":  # whose arrays have no arithmetic
            found |= {
                "step": pysolvers.theta_step(*own, b, source=b, **here),
                "steps": pysolvers.factor_theta(*own, **here).step(b, b, count=2),
                "bound": pysolvers.theta_step(*own, b, projected=bound, **here),
            }
            K, flux = (library.array(a) for a in (faces_of_part(group, faces, 301, 1), heat))
            found["diffusion"] = pysolvers.implicit_diffusion(
                b, K, bound, **layers, flux_first=flux, where=where, **split
            )
        for name, x in found.items():
            x = joined(group, library.get(x), 1)
            np.testing.assert_allclose(x, expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


def check_factors(group, rng):
    for make in (oracle.dominant, oracle.general):
        *matrix, rhs = make(rng, (6, 301))
        for own in (matrix, [a[0] for a in matrix]):
            shape = own[0].shape
            along = len(shape) - 1
            factor = pysolvers.factor_tridiagonal(
                *(cut(group, a, shape, along) for a in own),
                device="cuda",
                group=group,
                split=Slab(along),
            )
            solved_by_factor(group, factor, own, rhs, 1, 1)


def check_recurrences(group, rng):
    """Of every library; those that decay, that do not, and that grow."""
    shape = (6, 3001)
    for factor, order in ((0.9, 1), (1.0, 1), (1.1, 1), (0.7, 2)):
        a, b = factor * rng.choice([-1.0, 1.0], shape), rng.standard_normal(shape)
        options = {"initial": 0.3} if order == 1 else {"second": -0.2, "initial": (0.3, 1.0)}
        for reverse in (False, True):
            expected = pysolvers.linear_recurrence(a, b, reverse=reverse, **options)
            for kind in gpu_libraries.LIBRARIES.values():
                try:
                    library = kind()
                except ImportError:
                    continue
                parts = [library.array(np.array(cut(group, v, shape, 1))) for v in (a, b)]
                x = pysolvers.linear_recurrence(
                    *parts, reverse=reverse, group=group, split=Slab(1), **options
                )
                whole = joined(group, library.get(x), 1)
                np.testing.assert_allclose(
                    whole, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max()
                )


def check_blocks(group, rng):
    """Also periodic ones, of every library."""
    for kind in gpu_libraries.LIBRARIES.values():
        try:
            library = kind()
        except ImportError:
            continue
        for side, form, dtype in (
            (2, "dominant", "f8"),
            (3, "definite", "f8"),
            (2, "general", "f4"),
        ):
            blocks = random_blocks(rng, (7,), 501, side, dtype, form)
            lines = 300 if form == "definite" else 7  # few have factors
            bands = random_bands(rng, (lines,), 1001, dtype, form)
            rhs, right = (oracle.uniform(rng, s, dtype) for s in ((7, 501, side, 2), (lines, 1001)))
            for periodic in (False, True):
                if periodic and (form == "definite" or group.size == 1):
                    continue
                options = {"periodic": periodic, "group": group, "split": Slab(-1)}
                options |= options_of(form)
                parts = [library.array(own_part(group, a, 1)) for a in (*blocks, rhs)]
                with nullcontext() if form == "general" else without_whole_lines():
                    x = library.get(pysolvers.solve_block_tridiagonal(*parts, **options))
                x = joined(group, x, 1)
                require_solution(blocks, rhs, x, product, periodic=periodic, tail=3)
                parts = [library.array(own_part(group, a, 1)) for a in (*bands, right)]
                with nullcontext() if form == "general" else without_whole_lines():
                    x = library.get(pysolvers.solve_pentadiagonal(*parts, **options))
                x = joined(group, x, 1)
                require_solution(bands, right, x, band_product, periodic=periodic, tail=1)


def check_rows_of_blocks_inside_one_part_decide(group, rng):
    """A system that needs row exchanges there is solved as a whole line, also in place."""
    rows = 400 * group.size
    blocks = random_blocks(rng, (7,), rows, 2, "f8", "dominant")
    bands = random_bands(rng, (7,), rows, "f8", "dominant")
    blocks[1][3, 200] *= 1e-9
    bands[2][3, 200] *= 1e-9
    for kind in gpu_libraries.LIBRARIES.values():
        try:
            library = kind()
        except ImportError:
            continue
        for solve, matrix, shape, multiply, tail in (
            (pysolvers.solve_block_tridiagonal, blocks, (7, rows, 2, 2), product, 3),
            (pysolvers.solve_block_tridiagonal, blocks, (7, rows, 2, 1), product, 3),
            (pysolvers.solve_pentadiagonal, bands, (7, rows), band_product, 1),
        ):
            rhs = rng.standard_normal(shape)
            parts = [library.array(own_part(group, a, 1)) for a in (*matrix, rhs)]
            if group.size > 1:
                with without_whole_lines(), pytest.raises(AssertionError, match="whole lines"):
                    solve(*parts, group=group, split=Slab(1))
            out = parts[-1] if library.mutable else None
            x = solve(*parts, out=out, group=group, split=Slab(1))
            x = joined(group, library.get(x), 1)
            require_solution(matrix, rhs, x, multiply, periodic=False, tail=tail)


def check_factors_of_blocks(group, rng):
    """Of every library; solves on another stream than that of the factors, and determinants."""
    for kind in gpu_libraries.LIBRARIES.values():
        try:
            library = kind()
        except ImportError:
            continue
        for form, dtype, periodic, along in (
            ("dominant", "f8", True, 1),
            ("definite", "f4", False, 1),
            ("general", "f8", False, 1),
            ("dominant", "f8", False, 0),
        ):
            if group.size == 1 and (periodic or form == "general"):
                continue  # such factors of one rank are those of the host
            blocks = random_blocks(rng, (7,), 501, 2, dtype, form)
            bands = random_bands(rng, (7,), 1001, dtype, form)
            for factor, matrix, shape, multiply, tail in (
                (pysolvers.factor_block_tridiagonal, blocks, (7, 501, 2, 3), product, 3),
                (pysolvers.factor_pentadiagonal, bands, (7, 1001), band_product, 1),
            ):
                options = {**options_of(form), "periodic": periodic}
                parts = [library.array(own_part(group, a, along)) for a in matrix]
                made = factor(*parts, axis=-1, group=group, split=Slab(along - 2), **options)
                del parts
                assert made.is_kept is (form != "general")
                for stream in (None, "another"):
                    rhs = oracle.uniform(rng, shape, dtype)
                    right = library.array(own_part(group, rhs, along))
                    has_streams = stream and hasattr(library, "stream")
                    with library.current(library.stream()) if has_streams else nullcontext():
                        x = library.get(made.solve(right))
                    x = joined(group, x, along)
                    require_solution(matrix, rhs, x, multiply, periodic=periodic, tail=tail)
                found = library.get(made.logdet())
                found = joined(group, found, 0) if along == 0 else found
                expected = factor(*matrix, axis=-1, **options).logdet()
                np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "f4" else 1e-9)


def check_singular_systems(group, rng):
    operands = singular_operands(rng)
    parts = [cut(group, a, (6, 20), 1) for a in operands]
    options = {"group": group, "split": Slab(1), "device": "cuda"}
    x, info = pysolvers.solve_tridiagonal(*parts, on_singular="nan", return_info=True, **options)
    whole = joined(group, x, 1)
    np.testing.assert_array_equal(info.singular[:, 0], [1, 4])
    np.testing.assert_array_equal(np.isnan(whole).all(axis=1), np.isin(range(6), (1, 4)))


def check_long_lines(group, rng):
    for rows in (4097, 300001):
        shape = (2, rows)
        for lower, diag, upper in ((-1, 2, -1), (-1.9, 2, -0.1)):
            matrix = [np.full(shape, float(v)) for v in (lower, diag, upper)]
            operands = (*matrix, rng.standard_normal(shape))
            solved(group, operands, shape, 1, 1, exchange="ends", device="cuda")


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())
