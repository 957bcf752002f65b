"""What solvers of a `ConvectionDiffusion` share: their problem in copies and in files."""

from copy import copy
from typing import Any, Self, TypeVar

from .._checks import require
from .._solver.stepping import TimeStepping
from .problem import ConvectionDiffusion

R = TypeVar("R")


class OfProblem(TimeStepping[R], is_base=True):
    """A solver whose data are a problem, which `load` takes again."""

    problem: ConvectionDiffusion

    def _data_of_a_copy(self) -> dict[str, Any]:
        problem = copy(self.problem)
        if callable(problem._initial):
            problem._initial = None
        return {**super()._data_of_a_copy(), "problem": problem}

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        extent = data["problem"].extent
        require(state.extent == extent, f"problem must have the extent {state.extent}", extent)
        return super()._from_saved(state, **{"dt": state.dt} | data)
