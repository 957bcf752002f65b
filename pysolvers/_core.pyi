from typing import Any, Final, TypedDict, final

from numpy import float64, int32, int64
from numpy.typing import NDArray

class _Report(TypedDict):
    method: str
    threads: int
    pivoted: int
    kernel: str

class _CavityReport(TypedDict):
    psi_residual: float
    omega_residual: float
    seconds: dict[str, float]
    lines: _Report

_Array = NDArray[Any]
_Info = NDArray[int32] | None

ABI: Final[int]
DIRECTIONS: Final[dict[str, int]]
DTYPES: Final[dict[str, int]]
MAX_ROWS: Final[int]
METHODS: Final[dict[str, int]]
NAME: Final[str]
PERIODIC: Final[int]
PIVOTS: Final[dict[str, int]]
SCHEMES: Final[dict[str, int]]
SHORT_LOWER: Final[int]
SHORT_UPPER: Final[int]
STAGES: Final[dict[str, int]]
STATUS: Final[dict[int, tuple[str, str]]]
TRANS: Final[dict[str, int]]
WALLS: Final[dict[str, int]]

@final
class Factor:
    @property
    def nbytes(self) -> int: ...
    def solve(
        self,
        trans: int,
        rhs: _Array,
        x: _Array,
        outer_step: int,
        inner_step: int,
        threads: int,
        stream: int = 0,
        /,
    ) -> int: ...

def tridiag_solve(
    method: int,
    pivot: int,
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    rhs: _Array,
    x: _Array,
    info: _Info,
    threads: int,
    variant: int = 0,
    device: int = 0,
    stream: int = 0,
    count: int = 0,
    /,
) -> tuple[int, _Report | None]: ...
def factor_make(
    pivot: int,
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    info: _Info,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _Report | None, Factor | None]: ...
def cavity_iterate(
    scheme: int,
    wall: int,
    direction: int,
    stages: int,
    viscosity: float,
    lid: float,
    step: float,
    psi_sweeps: int,
    iteration: int,
    psi: NDArray[float64],
    omega: NDArray[float64],
    count: int,
    method: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _CavityReport | None]: ...
def copy(
    source: _Array,
    target: _Array,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def describe() -> str: ...
def default_threads() -> int: ...
