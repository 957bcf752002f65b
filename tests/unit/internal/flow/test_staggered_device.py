"""Graphs of the steps of the staggered cavity: when they are captured, launched and replaced."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from pysolvers import BackendError
from pysolvers._runtime import device as _runtime_device
from pysolvers._runtime.device import Device
from pysolvers._runtime.streams import Stream
from pysolvers.flow.staggered import _device
from pysolvers.flow.staggered._settings import StaggeredSettings

SETTINGS = {
    "reynolds": 100.0,
    "lid_velocity": 1.0,
    "n": 8,
    "pressure": "fast",
    "gamma": 0.0,
    "tau": 0.5,
    "dt": None,
    "start_time": 0.0,
    "pressure_tol": 1e-4,
    "max_sweeps": 10,
    "omega": None,
    "device": None,
    "threads": None,
}


PRIVATE = 99  # the stream of captures


class Backend:
    """Records what is enqueued, or captured in a graph of the private stream."""

    def __init__(self):
        self.STATUS = {0: ("PS_OK", ""), 1: ("PS_DEVICE_FAILURE", "failure")}
        self.done, self.captured = [], None
        backend = self

        class Graph:
            def __init__(self, device, stream):
                assert stream == PRIVATE
                self.work, backend.captured = backend.captured, None

            def launch(self, device, stream):
                assert stream != PRIVATE
                backend.done += self.work
                return 0

        self.Graph = Graph

    def capture(self, device, stream):
        assert self.captured is None and stream == PRIVATE
        self.captured = []
        return 0

    def wait(self, device, stream):
        assert self.captured is None
        return 0

    def enqueue(self, what, stream):
        assert (stream == PRIVATE) == (self.captured is not None)
        (self.done if self.captured is None else self.captured).append(what)


class Fields:
    def __init__(self, backend):
        self.device = Device(backend, 0, "StaggeredCavity")

    def operand(self, name):
        return np.empty(0)


@pytest.fixture
def fake():
    return Backend()


@pytest.fixture
def steps(monkeypatch, fake):
    class Poisson:
        def __init__(self, axes, dtype, device):
            assert [axis.name for axis in axes] == ["y", "x"]

        def enqueue(self, f, result, device):
            fake.enqueue("pressure", device.stream.address)

    def call(settings, fields, count, stages, until, steady, force, where):
        if not stages:
            assert fake.captured is None  # waits
            return 0, {"end": "count"}
        for name in stages:
            fake.enqueue(name, where[1])
        return 0, {"end": "count"}

    monkeypatch.setattr(_runtime_device, "private_stream", lambda _: nullcontext(Stream(PRIVATE)))
    monkeypatch.setattr(_device, "DevicePoisson", Poisson)
    monkeypatch.setattr(_device, "call_backend", call)
    monkeypatch.setattr(StaggeredSettings, "backend", fake)
    return _device.DeviceSteps(Fields(fake), StaggeredSettings(**SETTINGS))


def seconds():
    return dict.fromkeys(("predict", "pressure", "correct"), 0.0)


def test_first_call_measures_and_makes_all_steps(steps, fake):
    spent = seconds()

    reason = steps.make(StaggeredSettings(**SETTINGS), 5, np.inf, -1.0, None, spent)

    assert reason == "count"
    assert fake.done.count("correct") == 5
    # The measured stages come before the first step.
    first = len(fake.done) - 15
    assert fake.done[first:] == ["predict", "pressure", "correct"] * 5
    assert "correct" not in fake.done[:first]
    assert set(fake.done[:first]) == {"predict", "pressure"}
    assert all(value >= 0 for value in spent.values()) and sum(spent.values()) > 0


def test_later_calls_launch_the_same_graph(steps, fake, monkeypatch):
    settings = StaggeredSettings(**SETTINGS)
    steps.make(settings, 1, np.inf, -1.0, None, seconds())
    fake.done.clear()
    monkeypatch.setattr(fake, "capture", None)

    steps.make(settings, 20, np.inf, -1.0, None, seconds())

    assert fake.done == ["predict", "pressure", "correct"] * 20


@pytest.mark.parametrize(
    ("options", "until", "steady", "force"),
    [
        ({}, 1.0, -1.0, None),
        ({}, np.inf, 1e-3, None),
        ({"dt": 1e-3}, np.inf, -1.0, None),
        ({"lid_velocity": 0.0}, np.inf, -1.0, None),
        ({}, np.inf, -1.0, SimpleNamespace(most=0.0, store=object())),
    ],
)
def test_other_parameters_need_another_graph(steps, fake, options, until, steady, force):
    steps.make(StaggeredSettings(**SETTINGS), 2, np.inf, -1.0, None, seconds())
    before = steps._graph
    fake.done.clear()

    steps.make(StaggeredSettings(**SETTINGS | options), 3, until, steady, force, seconds())

    assert steps._graph is not before
    assert fake.done == ["predict", "pressure", "correct"] * 3


def test_error_during_a_capture_ends_it(steps, fake):
    settings = StaggeredSettings(**SETTINGS)
    steps.make(settings, 1, np.inf, -1.0, None, seconds())
    fake.done.clear()

    def fail(device):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        steps._device.captured(fail)

    assert fake.captured is None
    steps.make(settings, 2, 7.0, -1.0, None, seconds())
    assert fake.done == ["predict", "pressure", "correct"] * 2


def test_status_of_a_launch_is_an_error(steps, fake, monkeypatch):
    settings = StaggeredSettings(**SETTINGS)
    steps.make(settings, 1, np.inf, -1.0, None, seconds())
    monkeypatch.setattr(fake.Graph, "launch", lambda *_: 1)

    with pytest.raises(BackendError, match="failure"):
        steps.make(settings, 1, np.inf, -1.0, None, seconds())
