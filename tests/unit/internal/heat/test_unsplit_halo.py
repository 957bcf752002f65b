"""The halo of implicit steps that are not split: its depth against dense solutions."""

import numpy as np
import pytest
from scipy.linalg import solveh_banded

from pysolvers.heat._unsplit_halo import depth_for

TOLERANCES = {"float64": 1e-8, "float32": 1e-5}


def solved(conductances, rhs):
    """Solve (1 + L) x = rhs, with L of conductances between neighbours: M-matrix, row sums 1."""
    bands = np.zeros((2, rhs.size))
    bands[1] = 1
    bands[1, :-1] += conductances
    bands[1, 1:] += conductances
    bands[0, 1:] = -conductances
    return solveh_banded(bands, rhs)


def changes(ratio, depth, rng, *, is_random):
    """Return the relative change at the nodes of a rank by an end of the halo where x is 0."""
    before, own = 3 * depth, 2 * depth
    nodes = before + depth + own
    faces = ratio * (rng.random(nodes - 1) if is_random else np.ones(nodes - 1))
    places = np.arange(nodes)
    outer = before  # the first node of the halo
    for rhs in (
        np.float64(places == outer),
        np.float64(abs(places - outer) <= 2),
        rng.standard_normal(nodes) * np.exp(-0.1 * abs(places - outer)),
        rng.standard_normal(nodes),
    ):
        whole = solved(faces, rhs)
        part = solved_with_given_end(faces[outer], faces[outer + 1 :], rhs[outer + 1 :])
        difference = part[depth - 1 :] - whole[outer + depth :]
        yield np.linalg.norm(difference) / np.linalg.norm(whole)


def solved_with_given_end(face, conductances, rhs):
    """Solve the rows behind a node whose value is 0, to which a face leads."""
    bands = np.zeros((2, rhs.size))
    bands[1] = 1
    bands[1, 0] += face
    bands[1, :-1] += conductances
    bands[1, 1:] += conductances
    bands[0, 1:] = -conductances
    return solveh_banded(bands, rhs)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("ratio", [0.01, 0.3, 3.0, 40.0, 1000.0])
def test_depth_keeps_what_the_end_changes_below_a_tenth_of_the_tolerance(rng, ratio, dtype):
    depth, limit = depth_for(ratio, dtype), 0.1 * TOLERANCES[dtype]
    for is_random in (False, True):
        assert max(changes(ratio, depth, rng, is_random=is_random)) <= limit


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("ratio", [0.3, 3.0, 40.0, 1000.0])
def test_depth_is_not_much_larger_than_needed(rng, ratio, dtype):
    depth, limit = depth_for(ratio, dtype), 0.1 * TOLERANCES[dtype]

    assert max(changes(ratio, int(0.6 * depth), rng, is_random=False)) > limit
