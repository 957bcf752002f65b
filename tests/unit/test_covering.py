"""The part of a product of parameters that the default run makes has every pair of values."""

import itertools

import covering
import pytest


def pairs(case):
    return set(itertools.combinations(enumerate(case), 2))


@pytest.mark.parametrize("sizes", [(2, 3, 4, 3), (4, 3, 2), (3, 3, 3, 2, 2), (1, 4, 1, 3)])
def test_every_pair_of_values_is_in_some_case(sizes):
    cases = [*itertools.product(*(range(n) for n in sizes))]
    kept = covering.covering(cases)

    assert 0 in kept
    assert set().union(*(pairs(cases[k]) for k in kept)) == set().union(*map(pairs, cases))
    assert len(kept) <= 1.2 * max(a * b for a, b in itertools.combinations(sizes, 2)) + 1


@pytest.mark.parametrize("sizes", [(3, 10), (6, 6), (2, 5, 3)])
def test_every_value_is_in_some_case(sizes):
    cases = [*itertools.product(*(range(n) for n in sizes))]
    kept = [cases[k] for k in covering.covering(cases, strength=1)]

    assert len(kept) == max(sizes)
    for values, n in zip(zip(*kept, strict=True), sizes, strict=True):
        counts = [values.count(value) for value in range(n)]
        assert min(counts) >= 1 and max(counts) - min(counts) <= 1


def test_cases_of_two_parameters_are_all_kept():
    cases = [*itertools.product(range(3), range(4))]
    assert covering.covering(cases) == set(range(12))
    assert covering.covering([()] * 5) == set(range(5))
    assert covering.covering([(k,) for k in range(5)], strength=1) == set(range(5))


@pytest.mark.parametrize(("a", "b"), [(1, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("c", [1, 2])
def test_arguments_of_one_decorator_are_one_parameter(request, a, b, c):
    items = [
        item
        for item in request.session.items
        if item.nodeid.split("[")[0] == request.node.nodeid.split("[")[0]
    ]
    if len(items) == 6:  # of a run of all cases
        assert sorted(map(len, covering.factors(items))) == [2] * 6
        assert len(set(covering.factors(items))) == 6
