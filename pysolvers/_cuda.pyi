from typing import Any, Final, Self, final

from numpy import int32
from numpy.typing import NDArray

from ._core import ABI as ABI
from ._core import BLOCK_TASKS as BLOCK_TASKS
from ._core import CLOCK as CLOCK
from ._core import COLUMNS as COLUMNS
from ._core import CRITERIA as CRITERIA
from ._core import CYLINDER_COLUMNS as CYLINDER_COLUMNS
from ._core import CYLINDER_TABLES as CYLINDER_TABLES
from ._core import DIFFUSION_KEPT as DIFFUSION_KEPT
from ._core import DIFFUSION_MARGIN as DIFFUSION_MARGIN
from ._core import DIRECTIONS as DIRECTIONS
from ._core import DTYPES as DTYPES
from ._core import FAST_SIDE as FAST_SIDE
from ._core import GCEIDD_FEET as GCEIDD_FEET
from ._core import GCEIDD_KERNELS as GCEIDD_KERNELS
from ._core import GCEIDD_KINDS as GCEIDD_KINDS
from ._core import GCEIDD_PARTS as GCEIDD_PARTS
from ._core import GCEIDD_PREDICTORS as GCEIDD_PREDICTORS
from ._core import GCEIDD_SCHEMES as GCEIDD_SCHEMES
from ._core import GCEIDD_SIDES as GCEIDD_SIDES
from ._core import GCEIDD_STRATEGIES as GCEIDD_STRATEGIES
from ._core import GCEIDD_UPWINDS as GCEIDD_UPWINDS
from ._core import HEAT_KERNELS as HEAT_KERNELS
from ._core import HEAT_MEMORY as HEAT_MEMORY
from ._core import HEAT_SCHEMES as HEAT_SCHEMES
from ._core import HEAT_SIDES as HEAT_SIDES
from ._core import HEAT_STAGES as HEAT_STAGES
from ._core import LAPLACE_COEFFICIENTS as LAPLACE_COEFFICIENTS
from ._core import LAPLACE_VARIANTS as LAPLACE_VARIANTS
from ._core import LMSOR_KERNELS as LMSOR_KERNELS
from ._core import MAX_ROWS as MAX_ROWS
from ._core import METHODS as METHODS
from ._core import MOST_SIDE as MOST_SIDE
from ._core import NAME as NAME
from ._core import NORMS as NORMS
from ._core import PERIODIC as PERIODIC
from ._core import PIVOTS as PIVOTS
from ._core import PRESSURES as PRESSURES
from ._core import RELAXATIONS as RELAXATIONS
from ._core import REVERSED as REVERSED
from ._core import ROW_SUMS as ROW_SUMS
from ._core import SCHEMES as SCHEMES
from ._core import SHORT_LOWER as SHORT_LOWER
from ._core import SHORT_UPPER as SHORT_UPPER
from ._core import SPLINE_ENDS as SPLINE_ENDS
from ._core import SPLINE_FAULTS as SPLINE_FAULTS
from ._core import SPLINE_OUTSIDES as SPLINE_OUTSIDES
from ._core import STAGES as STAGES
from ._core import STAGGERED_ENDS as STAGGERED_ENDS
from ._core import STAGGERED_KERNELS as STAGGERED_KERNELS
from ._core import STAGGERED_STAGES as STAGGERED_STAGES
from ._core import STATUS as STATUS
from ._core import STEP_KINDS as STEP_KINDS
from ._core import TABLE_ROWS as TABLE_ROWS
from ._core import TRANS as TRANS
from ._core import TRANSPOSED as TRANSPOSED
from ._core import WALLS as WALLS
from ._core import Factor as Factor
from ._core import _DiffusionSystem
from ._core import bands_direct as bands_direct
from ._core import blocks_direct as blocks_direct
from ._core import blocks_factored as blocks_factored
from ._core import blocks_run as blocks_run
from ._core import blocks_store as blocks_store
from ._core import borrow as borrow
from ._core import cavity_iterate as cavity_iterate
from ._core import copy as copy
from ._core import cylinder_step as cylinder_step
from ._core import default_threads as default_threads
from ._core import describe as describe
from ._core import diffusion_apply as diffusion_apply
from ._core import diffusion_solve as diffusion_solve
from ._core import factor_make as factor_make
from ._core import factor_step as factor_step
from ._core import gceidd_step as gceidd_step
from ._core import heat_step as heat_step
from ._core import laplace_iterate as laplace_iterate
from ._core import lmsor_iterate as lmsor_iterate
from ._core import product as product
from ._core import product_direct as product_direct
from ._core import products as products
from ._core import recurrence as recurrence
from ._core import recurrence_borrowed as recurrence_borrowed
from ._core import recurrence_direct as recurrence_direct
from ._core import spline_pieces as spline_pieces
from ._core import spline_points as spline_points
from ._core import spline_rows as spline_rows
from ._core import staggered_step as staggered_step
from ._core import step_solve as step_solve
from ._core import tridiag_borrowed as tridiag_borrowed
from ._core import tridiag_solve as tridiag_solve
from ._core import xla_blocks as xla_blocks
from ._core import xla_blocks_work as xla_blocks_work
from ._core import xla_products as xla_products
from ._core import xla_recurrence as xla_recurrence
from ._core import xla_recurrence_work as xla_recurrence_work
from ._core import xla_tridiag as xla_tridiag
from ._core import xla_tridiag_work as xla_tridiag_work

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
    step: tuple[Any, ...] = ...,
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
