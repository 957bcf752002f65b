from collections.abc import Callable
from typing import Any, Final, TypedDict, TypeVar, final

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

_GceiddReport = TypedDict(
    "_GceiddReport",
    {
        "steps": int,
        "grown": bool,
        "threads": int,
        "kernel": str,
        "x": dict[str, float],
        "y": dict[str, float],
        "x occupancy": dict[str, float],
        "y occupancy": dict[str, float],
    },
)

class _HeatReport(TypedDict):
    seconds: dict[str, float]
    threads: int
    kernel: str

class _DiffusionReport(TypedDict):
    iterations: int
    converged: bool
    threads: int
    kernel: str
    error: float
    norm: float
    limit: float
    least: float

_DiffusionSystem = tuple[
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[_Array, ...],
    _Array,
]
_DiffusionLevel = tuple[
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[_Array, ...],
    _Array,
    tuple[Factor, ...],
    tuple[_Array | None, ...],
]

class _RelaxReport(TypedDict):
    iterations: int
    measures: int
    measure: float
    end: str
    threads: int
    kernel: str

class _CylinderReport(TypedDict):
    seconds: dict[str, float]
    threads: int

class _StaggeredReport(TypedDict):
    steps: int
    end: str
    seconds: dict[str, float]
    threads: int
    kernel: str

_Array = NDArray[Any]
_Result = TypeVar("_Result")
_Info = NDArray[int32] | None

ABI: Final[int]
BLOCK_TASKS: Final[dict[str, int]]
C_API: Final[object]
CLOCK: Final[dict[str, int]]
COLUMNS: Final[int]
CRITERIA: Final[dict[str, int]]
CYLINDER_TABLES: Final[dict[str, int]]
CYLINDER_COLUMNS: Final[dict[str, int]]
DIFFUSION_KEPT: Final[float]
DIFFUSION_MARGIN: Final[float]
DIRECTIONS: Final[dict[str, int]]
DTYPES: Final[dict[str, int]]
FAST_SIDE: Final[int]
GCEIDD_FEET: Final[dict[str, int]]
GCEIDD_KERNELS: Final[dict[str, int]]
GCEIDD_KINDS: Final[dict[str, int]]
GCEIDD_PARTS: Final[dict[str, int]]
GCEIDD_PREDICTORS: Final[dict[str, int]]
GCEIDD_SCHEMES: Final[dict[str, int]]
GCEIDD_SIDES: Final[dict[str, int]]
GCEIDD_STRATEGIES: Final[dict[str, int]]
GCEIDD_UPWINDS: Final[dict[str, int]]
HEAT_KERNELS: Final[dict[str, int]]
HEAT_MEMORY: Final[dict[str, int]]
HEAT_SCHEMES: Final[dict[str, int]]
HEAT_SIDES: Final[dict[str, int]]
HEAT_STAGES: Final[dict[str, int]]
LAPLACE_COEFFICIENTS: Final[dict[str, int]]
LAPLACE_VARIANTS: Final[dict[str, int]]
LMSOR_KERNELS: Final[dict[str, int]]
MAX_ROWS: Final[int]
MOST_SIDE: Final[int]
METHODS: Final[dict[str, int]]
NAME: Final[str]
NORMS: Final[dict[str, int]]
PERIODIC: Final[int]
PIVOTS: Final[dict[str, int]]
PRESSURES: Final[dict[str, int]]
RELAXATIONS: Final[dict[str, int]]
REVERSED: Final[int]
ROW_SUMS: Final[int]
SCHEMES: Final[dict[str, int]]
SHORT_LOWER: Final[int]
SHORT_UPPER: Final[int]
SPLINE_ENDS: Final[dict[str, int]]
SPLINE_FAULTS: Final[dict[str, int]]
SPLINE_OUTSIDES: Final[dict[str, int]]
STEP_KINDS: Final[dict[str, int]]
STAGES: Final[dict[str, int]]
STAGGERED_ENDS: Final[dict[str, int]]
STAGGERED_KERNELS: Final[dict[str, int]]
STAGGERED_STAGES: Final[dict[str, int]]
STATUS: Final[dict[int, tuple[str, str]]]
TABLE_ROWS: Final[int]
TRANS: Final[dict[str, int]]
TRANSPOSED: Final[int]
WALLS: Final[dict[str, int]]
xla_products: Final[Any]
xla_recurrence: Final[Any]
xla_blocks: Final[Any]
xla_tridiag: Final[Any]

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
    def direct(
        self,
        rhs: Any,
        axis: Any,
        out: Any,
        trans: int,
        shape: tuple[int, ...],
        threads: int,
        stream: int = 0,
        /,
    ) -> Any: ...
    def borrowed(
        self,
        rhs: Any,
        axis: Any,
        out: Any,
        trans: int,
        shape: tuple[int, ...],
        threads: int,
        library: Any,
        /,
    ) -> Any: ...

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
def spikes_solve(
    method: int,
    pivot: int,
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    rhs: _Array,
    x: _Array,
    left: _Array | None,
    right: _Array | None,
    info: _Info,
    threads: int,
    /,
) -> tuple[int, _Report | None]: ...
def product(
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    x: _Array,
    b: _Array | None,
    out: _Array,
    scale: float,
    weight: float,
    extended: bool,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def blocks_store(dtype: int, pivot: int, side: int, rows: int, matrices: int, /) -> int: ...
def blocks_run(
    task: int,
    dtype: int,
    pivot: int,
    trans: int,
    side: int,
    definite: bool,
    shape: tuple[int, int, int],
    matrix: tuple[_Array | None, ...] | None,
    rhs: _Array | None,
    x: _Array | None,
    info: _Info,
    store: NDArray[Any] | None,
    factor: tuple[int, int],
    inverse: tuple[_Array | None, _Array | None, _Array | None] | None,
    logdet: tuple[NDArray[float64], NDArray[float64]] | None,
    threads: int,
    device: int = 0,
    stream: int = 0,
    weight: _Array | None = None,
    scale: _Array | None = None,
    /,
) -> tuple[int, _Report | None]: ...
def recurrence_direct(
    first: object,
    second: object,
    b: object,
    axis: object,
    out: object,
    flags: int,
    threads: object,
    /,
) -> Any: ...
def bands_direct(
    lower2: object,
    lower: object,
    diag: object,
    upper: object,
    upper2: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: int,
    definite: bool,
    threads: object,
    /,
) -> Any: ...
def bands_borrowed(
    lower2: object,
    lower: object,
    diag: object,
    upper: object,
    upper2: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: int,
    definite: bool,
    threads: object,
    device: int,
    reports: bool,
    library: Any,
    /,
) -> Any: ...
def product_direct(
    lower: object,
    diag: object,
    upper: object,
    x: object,
    leader: object,
    axis: object,
    out: object,
    periodic: bool,
    threads: object,
    extended: bool,
    /,
) -> Any: ...
def blocks_direct(
    lower: object,
    diag: object,
    upper: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: int,
    definite: bool,
    threads: object,
    /,
) -> Any: ...
def blocks_borrowed(
    lower: object,
    diag: object,
    upper: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: int,
    definite: bool,
    threads: object,
    device: int,
    reports: bool,
    library: Any,
    /,
) -> Any: ...
def blocks_factored(
    store: NDArray[Any],
    dtype: int,
    pivot: int,
    trans: int,
    side: int,
    rows: int,
    matrices: int,
    rhs: object,
    axis: object,
    threads: object,
    /,
) -> Any: ...
def modes(
    is_backward: bool,
    even: _Array,
    odd: _Array | None,
    source: _Array,
    target: _Array,
    threads: int,
    /,
) -> int: ...
def rates(
    level: tuple[
        tuple[bool, bool, bool],
        tuple[int, int, int],
        tuple[int, int, int],
        int,
        tuple[_Array, ...],
        tuple[_Array, ...],
        tuple[_Array | None, ...],
    ],
    source: _Array | None,
    extra: _Array | None,
    u: _Array,
    d: _Array | None,
    out: _Array | None,
    second: _Array | None,
    factors: tuple[float, float, float, float, float],
    second_factors: tuple[float, float, float, float, float],
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def differences(
    by: tuple[int, bool, float, float, float, float, tuple[tuple[float, ...], tuple[float, ...]]],
    factors: tuple[Factor, ...],
    f: _Array,
    x: _Array,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def differences_direct(
    by: tuple[int, bool, float, float, float, float, tuple[tuple[float, ...], tuple[float, ...]]],
    factors: tuple[Factor, ...],
    f: object,
    axis: object,
    out: object,
    threads: object,
    /,
) -> Any: ...
def differences_borrowed(
    by: tuple[int, bool, float, float, float, float, tuple[tuple[float, ...], tuple[float, ...]]],
    factors: tuple[Factor, ...],
    f: object,
    axis: object,
    out: object,
    threads: object,
    device: int,
    library: Any,
    /,
) -> Any: ...
def recurrence(
    flags: int,
    first: _Array,
    second: _Array | None,
    b: _Array,
    initial: _Array | None,
    x: _Array,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def products(
    flags: int,
    rows: int,
    inner: int,
    g: _Array,
    x: _Array,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    threads: int,
    of_step: tuple[()] | tuple[_Array, _Array, float, float, float] = (),
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def step_solve(
    kind: int,
    pivot: int,
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    rhs: _Array,
    x: _Array,
    info: _Info,
    step: float,
    gain: float,
    source: _Array | None,
    least: _Array | None,
    where: _Array | None,
    ends: tuple[_Array | None, _Array | None, _Array | None, _Array | None],
    threads: int,
    device: int = 0,
    stream: int = 0,
    count: int = 0,
    /,
) -> tuple[int, _Report | None]: ...
def masked_rows(
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    where: _Array,
    outside: float,
    below: _Array,
    middle: _Array,
    above: _Array,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def factor_step(
    factor: Factor,
    trans: int,
    rhs: _Array,
    x: _Array,
    outer_step: int,
    inner_step: int,
    step: float,
    gain: float,
    source: _Array | None,
    where: _Array | None,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def tridiag_direct(
    lower: Any,
    diag: Any,
    upper: Any,
    rhs: Any,
    axis: Any,
    out: Any,
    pivot: Any,
    periodic: Any,
    threads: Any,
    device: int = 0,
    stream: int = 0,
    singular: int = 1,
    sums: int = 0,
    step: tuple[Any, ...] | None = None,
    method: int = 0,
    reports: bool = False,
    /,
) -> Any: ...
def recurrence_borrowed(
    first: Any,
    second: Any,
    b: Any,
    axis: int,
    out: Any,
    flags: int,
    threads: int | None,
    device: int,
    library: Any,
    /,
) -> Any: ...
def tridiag_borrowed(
    lower: Any,
    diag: Any,
    upper: Any,
    rhs: Any,
    axis: Any,
    out: Any,
    pivot: Any,
    periodic: Any,
    threads: Any,
    device: int,
    asks: bool,
    library: Any,
    step: tuple[Any, ...] | None = ...,
    /,
) -> Any: ...
def borrow(array: Any, device: int = 0, stream: int = 0, /) -> Any: ...
def borrow_operands(*operands_device_library: Any) -> Any: ...
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
    count: int = 0,
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
    variant: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _CavityReport | None]: ...
def staggered_step(
    codes: tuple[int, int, int],
    numbers: tuple[float, ...],
    most_sweeps: int,
    u: NDArray[float64],
    v: NDArray[float64],
    p: NDArray[float64],
    f: NDArray[float64],
    g: NDArray[float64],
    q: NDArray[float64],
    clock: NDArray[float64],
    force: tuple[NDArray[float64], NDArray[float64]] | None,
    count: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _StaggeredReport | None]: ...
def cylinder_step(
    switches: tuple[int, int, int, int],
    numbers: tuple[float, ...],
    shifts: tuple[float, ...],
    ranges: tuple[int, ...],
    sizes: tuple[int, int, int, int],
    fields: tuple[_Array, ...],
    scalars: _Array,
    addresses: tuple[int, ...],
    count: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _CylinderReport | None]: ...
def lmsor_iterate(
    kernel: int,
    relaxation: int,
    omega: float,
    nx: int,
    ny: int,
    pitch: int,
    periodic: int,
    cx: float,
    cy: float,
    u: _Array,
    fields: tuple[_Array | None, ...],
    tables: tuple[_Array | None, ...],
    stop: tuple[int, int, int, float, _Array | None, int, int],
    count: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _RelaxReport | None]: ...
def laplace_iterate(
    variant: int,
    coefficients: int,
    nx: int,
    ny: int,
    pitch: int,
    periodic: int,
    ax: float,
    ay: float,
    t: _Array,
    diag: _Array,
    gain: _Array,
    source: _Array | None,
    stop: tuple[int, int, int, float, _Array | None, int, int],
    count: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _RelaxReport | None]: ...
def gceidd_step(
    codes: tuple[int, ...],
    strips: tuple[int, int],
    lost: tuple[int, int],
    spacing: tuple[float, float],
    dt: float,
    limits: tuple[float, float],
    fields: tuple[_Array, _Array | None, _Array | None],
    before: _Array | None,
    velocity: tuple[_Array, _Array],
    diffusion: tuple[_Array, _Array],
    source: tuple[tuple[_Array, NDArray[float64] | None], ...],
    kinds: tuple[int, ...],
    edges: tuple[_Array, ...],
    exchange: tuple[_Array | None, ...],
    count: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _GceiddReport | None]: ...
def heat_step(
    codes: tuple[int, int, int, int, int],
    switches: tuple[int, int, int, int, int],
    ratios: tuple[float, float, float],
    sides: tuple[tuple[int, float, tuple[int, int, int], tuple[int, int, int]], ...],
    tables: _Array | None,
    source: _Array | None,
    source_steps: tuple[int, int],
    k: _Array | None,
    t: _Array,
    w: _Array,
    largest: NDArray[float64] | None,
    kept: object | None,
    count: int,
    threads: int,
    made: NDArray[int64],
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _HeatReport | None]: ...
def heat_keep() -> object: ...
def heat_cut(
    applies: bool,
    place: tuple[int, int],
    ends: tuple[int, int],
    beyond: tuple[int, int],
    first: tuple[int, int],
    used: tuple[tuple[int, int], tuple[int, int]],
    t: _Array,
    before: _Array,
    differences: _Array,
    outer: _Array,
    weights: _Array,
    spikes: tuple[_Array | None, _Array | None],
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def diffusion_apply(
    ends: tuple[tuple[int, int, int], ...],
    system: _DiffusionSystem,
    x: _Array,
    out: _Array,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def diffusion_solve(
    limits: tuple[float, float, int],
    ends: tuple[tuple[int, int, int], ...],
    system: _DiffusionSystem,
    levels: tuple[_DiffusionLevel, ...],
    rhs: _Array,
    x: _Array,
    scale: _Array | None,
    basis: tuple[_Array, ...],
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> tuple[int, _DiffusionReport | None]: ...
def diffusion_combine(
    products: tuple[tuple[float, ...], ...], is_float32: bool, /
) -> tuple[float, ...]: ...
def diffusion_least(
    state: tuple[float, float, float, float], alpha: float, beta: float, /
) -> tuple[tuple[float, float, float, float], float]: ...
def spline_make(
    ends: tuple[int, int],
    parts: int,
    x: _Array,
    y: _Array,
    given: tuple[_Array | None, _Array | None],
    knots: _Array,
    cubic: tuple[_Array, _Array],
    faults: NDArray[int32],
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def spline_pieces(
    form: tuple[int, int, bool],
    nu: int,
    is_absolute: bool,
    x: _Array,
    coefficients: tuple[_Array, ...],
    result: tuple[_Array, ...],
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def spline_points(
    form: tuple[int, int, bool],
    nu: int,
    outside: int,
    x: _Array,
    coefficients: tuple[_Array, ...],
    at: _Array,
    value: _Array,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def copy(
    source: _Array,
    target: _Array,
    threads: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def in_default_fp_mode(
    function: Callable[..., _Result], /, *args: Any, **kwargs: Any
) -> _Result: ...
def describe() -> str: ...
def default_threads() -> int: ...
def xla_tridiag_work(dtype: int, layout: Any, /) -> int: ...
def xla_recurrence_work(dtype: int, layout: Any, /) -> int: ...
def xla_blocks_work(dtype: int, layout: Any, /) -> int: ...
