from typing import Any, Final, Self, final

from numpy import int32
from numpy.typing import NDArray

from ._core import (
    ABI as ABI,
    BLOCK_TASKS as BLOCK_TASKS,
    CLOCK as CLOCK,
    COLUMNS as COLUMNS,
    CRITERIA as CRITERIA,
    CYLINDER_COLUMNS as CYLINDER_COLUMNS,
    CYLINDER_TABLES as CYLINDER_TABLES,
    DIFFUSION_KEPT as DIFFUSION_KEPT,
    DIFFUSION_MARGIN as DIFFUSION_MARGIN,
    DIRECTIONS as DIRECTIONS,
    DTYPES as DTYPES,
    FAST_SIDE as FAST_SIDE,
    GCEIDD_FEET as GCEIDD_FEET,
    GCEIDD_KERNELS as GCEIDD_KERNELS,
    GCEIDD_KINDS as GCEIDD_KINDS,
    GCEIDD_PARTS as GCEIDD_PARTS,
    GCEIDD_PREDICTORS as GCEIDD_PREDICTORS,
    GCEIDD_SCHEMES as GCEIDD_SCHEMES,
    GCEIDD_SIDES as GCEIDD_SIDES,
    GCEIDD_STRATEGIES as GCEIDD_STRATEGIES,
    GCEIDD_UPWINDS as GCEIDD_UPWINDS,
    HEAT_KERNELS as HEAT_KERNELS,
    HEAT_MEMORY as HEAT_MEMORY,
    HEAT_SCHEMES as HEAT_SCHEMES,
    HEAT_SIDES as HEAT_SIDES,
    HEAT_STAGES as HEAT_STAGES,
    LAPLACE_COEFFICIENTS as LAPLACE_COEFFICIENTS,
    LAPLACE_VARIANTS as LAPLACE_VARIANTS,
    LMSOR_KERNELS as LMSOR_KERNELS,
    MAX_ROWS as MAX_ROWS,
    METHODS as METHODS,
    MOST_SIDE as MOST_SIDE,
    NAME as NAME,
    NORMS as NORMS,
    PERIODIC as PERIODIC,
    PIVOTS as PIVOTS,
    PRESSURES as PRESSURES,
    RELAXATIONS as RELAXATIONS,
    REVERSED as REVERSED,
    ROW_SUMS as ROW_SUMS,
    SCHEMES as SCHEMES,
    SHORT_LOWER as SHORT_LOWER,
    SHORT_UPPER as SHORT_UPPER,
    SPLINE_ENDS as SPLINE_ENDS,
    SPLINE_FAULTS as SPLINE_FAULTS,
    SPLINE_OUTSIDES as SPLINE_OUTSIDES,
    STAGES as STAGES,
    STAGGERED_ENDS as STAGGERED_ENDS,
    STAGGERED_KERNELS as STAGGERED_KERNELS,
    STAGGERED_STAGES as STAGGERED_STAGES,
    STATUS as STATUS,
    STEP_KINDS as STEP_KINDS,
    TABLE_ROWS as TABLE_ROWS,
    TRANS as TRANS,
    TRANSPOSED as TRANSPOSED,
    WALLS as WALLS,
    Factor as Factor,
    _DiffusionSystem,
    bands_borrowed as bands_borrowed,
    bands_direct as bands_direct,
    blocks_borrowed as blocks_borrowed,
    blocks_direct as blocks_direct,
    blocks_factored as blocks_factored,
    blocks_run as blocks_run,
    blocks_store as blocks_store,
    borrow as borrow,
    borrow_operands as borrow_operands,
    cavity_iterate as cavity_iterate,
    copy as copy,
    cylinder_step as cylinder_step,
    default_threads as default_threads,
    describe as describe,
    differences as differences,
    differences_borrowed as differences_borrowed,
    differences_direct as differences_direct,
    diffusion_apply as diffusion_apply,
    diffusion_solve as diffusion_solve,
    factor_make as factor_make,
    factor_step as factor_step,
    gceidd_step as gceidd_step,
    heat_cut as heat_cut,
    heat_keep as heat_keep,
    heat_step as heat_step,
    laplace_iterate as laplace_iterate,
    lmsor_iterate as lmsor_iterate,
    masked_rows as masked_rows,
    product as product,
    product_direct as product_direct,
    products as products,
    recurrence as recurrence,
    recurrence_borrowed as recurrence_borrowed,
    recurrence_direct as recurrence_direct,
    spline_make as spline_make,
    spline_pieces as spline_pieces,
    spline_points as spline_points,
    staggered_step as staggered_step,
    step_solve as step_solve,
    tridiag_borrowed as tridiag_borrowed,
    tridiag_solve as tridiag_solve,
    xla_blocks as xla_blocks,
    xla_blocks_work as xla_blocks_work,
    xla_products as xla_products,
    xla_recurrence as xla_recurrence,
    xla_recurrence_work as xla_recurrence_work,
    xla_tridiag as xla_tridiag,
    xla_tridiag_work as xla_tridiag_work,
)

_Array = NDArray[Any]

@final
class Buffer:
    def __new__(
        cls, nbytes: int, device: int = 0, stream: int = 0, lasting: bool = False
    ) -> Self: ...
    @property
    def address(self) -> int: ...
    @property
    def device(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

@final
class Mark:
    def __new__(cls, device: int = 0, stream: int = 0) -> Self: ...
    @property
    def passed(self) -> bool: ...

@final
class Answer:
    def __new__(cls, device: int = 0, stream: int = 0) -> Self: ...
    @property
    def address(self) -> int: ...
    def read(self, nbytes: int, /) -> bytes: ...
    def end(self) -> None: ...

@final
class Graph:
    def __new__(cls, device: int = 0, stream: int = 0) -> Self: ...
    def launch(self, device: int = 0, stream: int = 0, /) -> int: ...

def capture(device: int = 0, stream: int = 0, /) -> int: ...
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

PART_STEPS: Final[dict[str, int]]

def part_mailbox(dtype: int, systems: int, count: int, step: int, /) -> tuple[int, int]: ...
def part_check(
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    rhs: _Array,
    x: _Array,
    info: NDArray[int32] | None,
    part: int,
    count: int,
    last_rows: tuple[int, ...],
    mailboxes: tuple[int, ...],
    logs: tuple[int, ...],
    key: int,
    clock: int,
    patience: int,
    marks: int,
    step: int,
    device: int = 0,
    stream: int = 0,
    sharing: int = 1,
    /,
) -> int: ...
def part_solve(
    flags: int,
    lower: _Array,
    diag: _Array,
    upper: _Array,
    rhs: _Array,
    x: _Array,
    info: NDArray[int32] | None,
    part: int,
    count: int,
    last_rows: tuple[int, ...],
    mailboxes: tuple[int, ...],
    logs: tuple[int, ...],
    key: int,
    clock: int,
    patience: int,
    marks: int,
    step: int,
    device: int = 0,
    stream: int = 0,
    sharing: int = 1,
    /,
) -> int: ...
def part_leave(
    part: int,
    count: int,
    logs: tuple[int, ...],
    ends: bool,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def part_barrier(
    part: int,
    count: int,
    slots: tuple[int, ...],
    round: int,
    fails: bool,
    patience: int,
    clock: int,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def reach(other: int, device: int, /) -> int: ...
def share(address: int, device: int, /) -> tuple[int, bytes]: ...
def open_shared(name: bytes, device: int, /) -> tuple[int, int]: ...
def close_shared(address: int, device: int, /) -> int: ...
def upload(address: int, host: _Array, device: int = 0, stream: int = 0, /) -> int: ...
def download(host: _Array, address: int, device: int = 0, stream: int = 0, /) -> int: ...
def download_info(host: _Array, address: int, device: int = 0, stream: int = 0, /) -> int: ...
def relayout(to: _Array, source: _Array, device: int = 0, stream: int = 0, /) -> int: ...
def accumulate(to: _Array, source: _Array, device: int = 0, stream: int = 0, /) -> int: ...
def add_product(
    to: _Array, factor: _Array, source: _Array, device: int = 0, stream: int = 0, /
) -> int: ...
def fill_nan(x: _Array, info: NDArray[int32], device: int = 0, stream: int = 0, /) -> int: ...
def order(first: int, second: int, device: int = 0, /) -> int: ...
def wait(device: int = 0, stream: int = 0, /) -> int: ...
def trim(device: int = 0, /) -> int: ...
def spline_create(
    x: Any,
    y: Any,
    axis: Any,
    ends: tuple[int, int],
    keeper: int,
    threads: int,
    device: int,
    stream: int,
    /,
) -> tuple[int, Buffer, Answer] | None: ...
def device_count() -> int: ...
def unavailable() -> str | None: ...

TRANSFORMS: Final[dict[str, int]]

def transform_shape(kind: int, size: int, /) -> tuple[int, int, int, int, int]: ...
def transform_load(
    kind: int,
    size: int,
    field: _Array,
    lines: int,
    nbytes: int,
    scale: float,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def transform_store(
    kind: int,
    size: int,
    field: _Array,
    lines: int,
    nbytes: int,
    scale: float,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def diffusion_centre(
    ends: tuple[tuple[int, int, int], ...],
    system: _DiffusionSystem,
    x: _Array,
    mean: float,
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def centre(line: _Array, weights: int, device: int = 0, stream: int = 0, /) -> int: ...
def waves_fit(is_float32: bool, planes: int, device: int = 0, stream: int = 0, /) -> bool: ...
def waves_load(
    row_kind: int,
    kind: int,
    halvings: int,
    field: _Array,
    size: int,
    pitch: int,
    waves: int,
    nbytes: int,
    scale: float,
    edge: tuple[int, int],
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def waves_store(
    row_kind: int,
    kind: int,
    halvings: int,
    field: _Array,
    size: int,
    pitch: int,
    waves: int,
    nbytes: int,
    scale: float,
    edge: tuple[int, int],
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
def wave_lines(
    is_float32: bool,
    planes: int,
    rows: int,
    length: int,
    pitch: int,
    waves: int,
    tables: tuple[int, int, int],
    first: tuple[float, float, float],
    inner: tuple[float, float, float],
    last: tuple[float, float, float],
    null_sum: float,
    periodic: bool,
    part: tuple[int, int, int, int],
    device: int = 0,
    stream: int = 0,
    /,
) -> int: ...
