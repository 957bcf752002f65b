"""The binding of GCEIDD guards the memory: what does not fit is refused by name."""

import numpy as np
import pytest

from pysolvers import _core

NX, NY, STEPS = 8, 6, 2
NODES = (STEPS, NY + 1, NX + 1)


def arguments(**changes):
    """Return the arguments of a call that is right, but for `changes` by name."""
    given = {
        "codes": (0,) * 9,
        "strips": (2, 1),
        "lost": (0, 0),
        "spacing": (0.1, 0.2),
        "dt": 0.05,
        "limits": (-np.inf, np.inf),
        "fields": (np.ones((1, NY + 1, NX + 1)), None, None),
        "before": None,
        "velocity": (np.ones(NODES), np.broadcast_to(0.5, NODES)),
        "diffusion": (np.broadcast_to(0.1, NODES),) * 2,
        "source": ((np.zeros(NODES), None),),
        "kinds": (0,) * 4,
        "edges": (*(np.ones((STEPS, NY + 1, 1)),) * 2, *(np.ones((STEPS, 1, NX + 1)),) * 2),
        "exchange": (None,) * 4,
        "count": STEPS,
        "threads": 1,
        "made": np.zeros(1, np.int64),
    }
    return tuple((given | changes).values())


def test_a_right_call_steps():
    given = arguments()

    status, report = _core.gceidd_step(*given)

    assert _core.STATUS[status][0] == "PS_OK"
    assert (report["steps"], report["grown"], int(given[-1][0])) == (STEPS, False, STEPS)
    assert set(report["x"]) == set(report["y"]) == set(_core.GCEIDD_PARTS)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"fields": (np.ones((1, 7, 9), "f4"), None, None)}, TypeError, "velocity: the dtype"),
        ({"fields": (np.ones((7, 9)), None, None)}, ValueError, "u: need 3 axes"),
        ({"fields": (np.ones((2, 7, 9)), None, None)}, ValueError, "u: need shape"),
        ({"fields": (np.ones((1, 7, 18))[:, :, ::2], None, None)}, ValueError, "u: need shape"),
        ({"fields": (np.ones((1, 9, 7)).transpose(0, 2, 1), None, None)}, ValueError, "C order"),
        ({"fields": (np.broadcast_to(1.0, (1, 7, 9)), None, None)}, ValueError, "u: .*read-only"),
        ({"fields": ("u", None, None)}, TypeError, "u: need an ndarray, got str"),
        ({"fields": (np.ones((1, 7, 9)), np.ones((1, 7, 8)), None)}, ValueError, "older: need"),
        ({"before": np.ones((1, 7, 8))}, ValueError, "before: need shape"),
        ({"before": np.ones((1, 7, 18))[:, :, ::2]}, ValueError, "before: need shape"),
        ({"before": np.ones((1, 7, 9), "f4")}, TypeError, "before: the dtype"),
        ({"velocity": (np.ones((1, 7, 9)), np.ones(NODES))}, ValueError, "velocity: need shape"),
        ({"diffusion": (np.ones(NODES, "f4"), np.ones(NODES))}, TypeError, "diffusion: the dtype"),
        ({"edges": (np.ones((2, 7, 2)),) * 4}, ValueError, "west: need shape"),
        ({"edges": (np.ones((2, 7, 1)),) * 4}, ValueError, "south: need shape"),
        ({"exchange": (np.ones((2, 7, 2)), *(None,) * 3)}, ValueError, "exchange: need shape"),
        ({"source": ((np.zeros(NODES), None),) * 3}, ValueError, "source: at most 2 terms"),
        ({"source": (np.zeros(NODES),)}, TypeError, "source: need pairs"),
        ({"source": ((np.zeros(NODES), np.ones(3)),)}, TypeError, "source: a factor has"),
        ({"source": ((np.zeros(NODES), np.ones(2, "f4")),)}, TypeError, "source: a factor has"),
        ({"made": np.zeros(1)}, TypeError, "made: need one writeable int64"),
        ({"count": 3}, ValueError, "velocity: need shape"),
        ({"threads": -1}, ValueError, "threads: need at least 0"),
    ],
)
def test_what_does_not_fit_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        _core.gceidd_step(*arguments(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"codes": (9,) * 9},
        {"strips": (3, 1)},
        {"dt": -1.0},
        {"kinds": (5,) * 4},
        {"lost": (-1, 0)},
        {"lost": (1, 0)},  # the only strip
        {"strips": (2, 2), "lost": (2, 0)},
        {"strips": (2, 2), "lost": (1, 1)},  # nothing is left for the second step
    ],
)
def test_what_the_check_refuses_has_a_status(changes):
    status, report = _core.gceidd_step(*arguments(**changes))

    assert (_core.STATUS[status][0], report) == ("PS_BAD_ARGUMENT", None)


def test_the_field_before_the_first_step_is_only_read():
    before, u = np.ones((1, NY + 1, NX + 1)), np.full((1, NY + 1, NX + 1), np.nan)
    before.flags.writeable = False
    given = arguments()
    _core.gceidd_step(*given)

    _core.gceidd_step(*arguments(fields=(u, None, None), before=before))

    np.testing.assert_array_equal(u, given[6][0])


def test_without_steps_the_field_is_that_before_them():
    before, u = np.ones((1, NY + 1, NX + 1)), np.full((1, NY + 1, NX + 1), np.nan)
    none = {"count": 0, "velocity": (np.ones((0, NY + 1, NX + 1)),) * 2}
    none |= {"diffusion": none["velocity"], "source": ()}
    none["edges"] = (*(np.ones((0, NY + 1, 1)),) * 2, *(np.ones((0, 1, NX + 1)),) * 2)

    status, _ = _core.gceidd_step(*arguments(fields=(u, None, None), before=before, **none))

    assert _core.STATUS[status][0] == "PS_OK"
    np.testing.assert_array_equal(u, before)


def test_fields_that_overlap_have_a_status():
    room = np.ones((1, NY + 2, NX + 1))
    fields = (room[:, 1:], room[:, :-1], np.ones((1, NY + 1, NX + 1)))
    codes = (_core.GCEIDD_SCHEMES["mu"], *(0,) * 8)

    status, _ = _core.gceidd_step(*arguments(fields=fields, codes=codes))

    assert _core.STATUS[status][0] == "PS_BAD_LAYOUT"

    status, _ = _core.gceidd_step(*arguments(fields=(room[:, 1:], None, None), before=room[:, :-1]))

    assert _core.STATUS[status][0] == "PS_BAD_LAYOUT"


def test_half_levels_have_no_other_field_before_the_first_step():
    fields = tuple(np.ones((1, NY + 1, NX + 1)) for _ in range(3))
    codes = (_core.GCEIDD_SCHEMES["mu"], *(0,) * 8)

    status, _ = _core.gceidd_step(*arguments(fields=fields, codes=codes, before=fields[0].copy()))

    assert _core.STATUS[status][0] == "PS_BAD_ARGUMENT"
