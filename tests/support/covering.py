"""Tests whose parameters form a product of three and more: the default run makes a part of it.

The part has each value of each parameter with each value of each other one: a branch that depends
on two parameters is taken in each run, one that depends on three perhaps in the slow runs only.
"""

import itertools


def covering(cases):
    """Return the numbers of some cases that together have every pair of values of all cases.

    Parameters
    ----------
    cases : sequence of tuple
        The values of the parameters of each case, all of one length.

    Returns
    -------
    set of int
        The first case, then always that with most pairs that no case before it has; all cases of
        fewer than three parameters.
    """
    if len(cases[0]) < 3:
        return set(range(len(cases)))
    pairs = [
        {(i, a, j, b) for (i, a), (j, b) in itertools.combinations(enumerate(case), 2)}
        for case in cases
    ]
    left, taken = set().union(*pairs), set()
    gains = [len(own) for own in pairs]
    while left:
        best = max(range(len(cases)), key=gains.__getitem__)
        taken.add(best)
        left -= pairs[best]
        gains = [len(own & left) if gain else 0 for own, gain in zip(pairs, gains, strict=True)]
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
