"""Steps of the cavity on a staggered grid by a backend; the direct solver on a device."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from ..._axis import NEUMANN
from ..._runtime.device import Device
from ..._runtime.fields import DeviceFields, Fields
from ...poisson._axes import Axis
from ...poisson._device import DevicePoisson
from ._force import Force
from ._settings import StaggeredSettings

_FIELDS = ("u", "v", "p", "f", "g", "q", "clock")
_REPEATS = 10  # of a stage whose time is measured


def call_backend(
    settings: StaggeredSettings,
    fields: Fields,
    count: int,
    stages: tuple[str, ...],
    until: float,
    steady: float,
    force: Force | None,
    where: tuple[int, ...],
) -> tuple[int, Any]:
    """Run stages of `count` steps on the backend; `where` is what all its calls take last.

    Returns
    -------
    status : int
        Status of the contract.
    report : dict or None
        What was done, if the status is no error.
    """
    backend = settings.backend
    status, report = backend.staggered_step(
        (*settings.codes, sum(1 << backend.STAGGERED_STAGES[name] for name in stages)),
        settings.numbers(until, steady, None if force is None else force.most),
        settings.max_sweeps,
        *(fields.operand(name) for name in _FIELDS),
        None if force is None else force.operands,
        count,
        settings.call_threads,
        np.zeros(1, np.int64),
        *where,
    )
    return int(status), report


class DeviceSteps:
    """Steps on a device with the direct solver of the pressure.

    A step is a graph of all kernels: predict, the solver, correct. The device decides whether a
    step is made, so that the host waits once in a call. The graph contains the parameters of the
    step; others need another graph.

    Parameters
    ----------
    fields : DeviceFields
        The fields.
    settings : StaggeredSettings
        Parameters of the cavity.
    """

    def __init__(self, fields: DeviceFields, settings: StaggeredSettings) -> None:
        self._fields, self._device = fields, fields.device
        n = settings.n
        edges = np.linspace(0.0, 1.0, n + 1)
        axes = [Axis(name, n, False, (NEUMANN, NEUMANN), edges, 1 / n) for name in "yx"]
        self._poisson = DevicePoisson(axes, np.dtype(np.float64), str(settings.device))
        self._graph: Any = None
        self._parameters: tuple[Any, ...] | None = None
        self._times: dict[str, float] = {}  # seconds of the stages that can be repeated

    def make(
        self,
        settings: StaggeredSettings,
        count: int,
        until: float,
        steady: float,
        force: Force | None,
        seconds: dict[str, float],
    ) -> str:
        """Make at most `count` steps and add the times of the stages to `seconds`.

        Returns
        -------
        reason : str
            Why the steps ended, as in ps_staggered.h.
        """

        def call(device: Device, *stages: str) -> Any:
            """Enqueue these stages of one step; return the report of the backend."""
            limits = until, steady, force
            status, report = call_backend(
                settings, self._fields, 1, stages, *limits, device.arguments
            )
            device.check(status)
            return report

        def step(device: Device) -> None:
            """Enqueue one step, stage by stage."""
            call(device, "predict")
            self._solve(device)
            call(device, "correct")

        # The graph has the addresses of a force, but not its values.
        store = None if force is None else force.store
        parameters = settings.numbers(until, steady, None if force is None else force.most), store
        made = 0
        if not self._times:
            self._measure(lambda device: call(device, "predict"))
            step(self._device)  # loads the kernels of the stage correct
            made = 1
        if parameters != self._parameters:
            self._graph, self._parameters = None, None
            self._graph, self._parameters = self._device.captured(step), parameters
        start = perf_counter()
        for _ in range(made, count):
            self._device.launch(self._graph)
        reason = str(call(self._device)["end"])
        elapsed = perf_counter() - start
        for name, each in self._times.items():
            part = min(count * each, elapsed)
            seconds[name] += part
            elapsed -= part
        seconds["correct"] += elapsed
        return reason

    def _solve(self, device: Device) -> None:
        """Enqueue the solution for the pressure."""
        p, q = (self._fields.operand(name) for name in "pq")
        self._poisson.enqueue(q, p, device)

    def _measure(self, predict: Callable[[Device], object]) -> None:
        """Measure the stages before correct, which change no field that a step reads."""
        for name, work in (("predict", predict), ("pressure", self._solve)):
            work(self._device)  # loads the kernels
            graph = self._device.captured(work)
            times = []
            for count in (0, _REPEATS):
                start = perf_counter()
                for _ in range(count):
                    self._device.launch(graph)
                self._device.wait()
                times.append(perf_counter() - start)
            # Not negative if another program delayed the first wait.
            self._times[name] = max(times[1] - times[0], 0.0) / _REPEATS
