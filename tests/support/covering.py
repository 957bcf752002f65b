"""Tests whose parameters form a product: the default run makes a part of it.

Of three parameters and more the part has each value of each one with each value of each other one:
a branch that depends on two parameters is taken in each run, one that depends on three perhaps in
the slow runs only. Of a test with the mark `each_value` it has each value of each parameter.
"""

import collections
import itertools

import pytest


def slow(*values):
    """Return a case for the slow runs: its branches are those of others, or it takes seconds."""
    return pytest.param(*values, marks=pytest.mark.slow)


def covering(cases, strength=2):
    """Return the numbers of some cases that together have every pair of values of all cases.

    Parameters
    ----------
    cases : sequence of tuple
        The values of the parameters of each case, all of one length.
    strength : int
        The number of parameters whose values meet: 2, or 1 for every value of all cases.

    Returns
    -------
    set of int
        The first case, then always that with most pairs that no case before it has (of single
        values that whose values are in the fewest cases); all cases of no more parameters than
        `strength`.
    """
    if len(cases[0]) <= strength:
        return set(range(len(cases)))
    pairs = [set(itertools.combinations(enumerate(case), strength)) for case in cases]
    left, taken, used = set().union(*pairs), set(), collections.Counter()
    gains = [len(own) for own in pairs]

    def gain(k):
        return gains[k], -sum(used[value] for value in enumerate(cases[k]))

    while left:
        best = max(range(len(cases)), key=gain if strength == 1 else gains.__getitem__)
        taken.add(best)
        used.update(enumerate(cases[best]))
        left -= pairs[best]
        gains = [len(own & left) if most else 0 for own, most in zip(pairs, gains, strict=True)]
    return taken


def factors(items):
    """Return the cases of a test as tuples of numbers of values.

    Parameters
    ----------
    items : sequence of pytest.Function
        The cases. The arguments of one `parametrize` are one parameter, a fixture is another one.

    Returns
    -------
    list of tuple
        The values of each case, for the parameters of more than one value.
    """
    marks = [mark.args[0] for mark in items[0].iter_markers("parametrize")]
    groups = [tuple(n.replace(",", " ").split() if isinstance(n, str) else n) for n in marks]
    others = items[0].callspec.params.keys() - {name for group in groups for name in group}
    columns = []
    for group in (*groups, *((name,) for name in sorted(others))):
        values = [tuple(id(item.callspec.params[name]) for name in group) for item in items]
        if len(set(values)) > 1:
            columns.append(values)
    return list(zip(*columns, strict=True)) if columns else [()] * len(items)
