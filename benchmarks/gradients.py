"""`solve_tridiagonal` of JAX and of PyTorch on a GPU, compiled, forward and in reverse.

Own matrices, 2^26 unknowns, in systems of 64, 512 and 4096 rows. `forward` is the compiled solve,
`reverse` its reverse pass, which gives the gradients of the three diagonals and the right-hand
side; `direct` is `pysolvers.solve_tridiagonal` with arrays of the library. The floor of `forward`
and `direct` is the time in which the device moves five words per unknown, at the bandwidth of x + 1
of JAX or of a copy of PyTorch. `peak` is the memory that the reverse pass needs.

JAX, with `jit`: `transposed` is the solve of the reverse pass with the transposes, and `jax_` the
solve of JAX itself. A loop is one solve in a compiled loop of 1000 solves of 100 systems of 64
rows; with `unroll` an iteration has several solves, which XLA can launch as one CUDA graph; with
the flag of `GRAPH_FLAG`, it makes a graph of a single solve, too. Times are measured on the host.

PyTorch, with `compile`: `eager` is the reverse pass without compilation, `kept` is the memory that
the passes share; both in arrays of the size of x. The loop is compiled with CUDA graphs. Times are
measured by events on the device, those of the loop on the host.

The exit code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import pysolvers
from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table

from .options import add_options, positive
from .record import Measurement, Record, finish
from .timing import Call, device, median_of, waiting

ROWS = (64, 512, 4096)
SAMPLES, SAMPLE_SECONDS = 7, 0.2
WORDS = 5
LOOP_ROWS, LOOP_SYSTEMS, LOOP_SOLVES = 64, 100, 1000
UNROLLED = 50  # solves in a compiled function of the loop of PyTorch
LOOP_BAR = 10e-6
LOOPS = ((1, None), (1, False), (10, None), (10, False))  # unroll and pivot
GRAPH_FLAG = "--xla_gpu_graph_min_graph_size=1"

# Text of a bar -> value of a case, whether more is better, the bar.
Bar = tuple[Callable[[Record], float], bool, float]
BARS: dict[str, dict[str, Bar]] = {
    "jax": {
        "forward, times JAX": (lambda c: c["jax_forward"] / c["forward"], True, 4.0),
        "reverse, of forward": (lambda c: c["reverse"] / c["forward"], False, 2.2),
        "reverse, times JAX": (lambda c: c["jax_reverse"] / c["reverse"], True, 4.0),
        "floor, points behind direct": (
            lambda c: 100 * c["floor"] * (1 / c["direct"] - 1 / c["forward"]),
            False,
            3.0,
        ),
    },
    "torch": {
        "reverse, of forward": (lambda c: c["reverse"] / c["forward"], False, 2.2),
        "floor, points behind direct": (
            lambda c: 100 * c["floor"] * (1 / c["direct"] - 1 / c["forward"]),
            False,
            3.0,
        ),
        "kept, arrays": (lambda c: c["kept"], False, 1.01),
        "peak, arrays": (lambda c: c["peak"], False, 4.02),
    },
}


class Jax:
    """The measurements of `pysolvers.jax`."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9")
        self._jax = jax = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        self._solve = import_module("pysolvers.jax").solve_tridiagonal
        self._clock = waiting(jax.block_until_ready)

    def seconds(self, call: Call) -> float:
        """Return the seconds of one call."""
        return median_of(call, SAMPLES, seconds=SAMPLE_SECONDS, clock=self._clock)

    def bandwidth(self, size: int) -> float:
        """Return the bytes per second that x + 1 of so many numbers moves."""
        x = self._jax.numpy.zeros(size, "float32")
        add = self._jax.jit(lambda a: a + 1)
        return 2 * x.nbytes / self.seconds(lambda: add(x))

    def operands(self, rows: int, systems: int, dtype: str) -> list[Any]:
        """Return dominant systems; the corners are zero, as JAX's solve needs."""
        keys = self._jax.random.split(self._jax.random.key(0), 4)
        lower, diag, upper, rhs = (
            self._jax.random.uniform(key, (systems, rows), dtype, -1, 1) for key in keys
        )
        return [lower.at[:, 0].set(0), diag + 3, upper.at[:, -1].set(0), rhs]

    def own_solve(self, lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
        """Solve with JAX itself."""
        solve = self._jax.lax.linalg.tridiagonal_solve
        return solve(lower, diag, upper, rhs[..., None])[..., 0]

    def transposed(self, lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
        """Solve with the transposes, which is a part of the reverse pass."""
        solve = self._jax.linear_transpose(lambda b: self._solve(lower, diag, upper, b), rhs)
        return solve(rhs)[0]

    def reverse_of(self, solve: Callable[..., Any], system: list[Any]) -> tuple[Call, int]:
        """Return a call of the reverse pass, and the bytes of its temporary arrays."""
        x, pull = self._jax.vjp(self._jax.jit(solve), *system)
        apply = self._jax.jit(lambda pull, g: pull(g))
        analysis = apply.lower(pull, x).compile().memory_analysis()
        return lambda: apply(pull, x), int(analysis.temp_size_in_bytes)

    def measure(self, rows: int, dtype: str, unknowns: int, rate: float) -> Record:
        """Return the times of one case in seconds."""
        system = self.operands(rows, unknowns // rows, dtype)
        jit = self._jax.jit
        forward, peer, transposed = map(jit, (self._solve, self.own_solve, self.transposed))
        case: Record = {"rows": rows, "dtype": dtype, "unknowns": unknowns}
        case["floor"] = WORDS * system[0].nbytes / rate
        case["forward"] = self.seconds(lambda: forward(*system))
        direct = pysolvers.solve_tridiagonal
        case["direct"] = self.seconds(lambda: direct(*system, on_singular="nan"))
        case["jax_forward"] = self.seconds(lambda: peer(*system))
        case["transposed"] = self.seconds(lambda: transposed(*system))
        worst = float(abs(forward(*system) - peer(*system)).max())
        assert worst < 1e3 * np.finfo(dtype).eps, f"the solutions differ by {worst}"
        for name, solve in (("", self._solve), ("jax_", self.own_solve)):
            call, case[f"{name}peak"] = self.reverse_of(solve, system)
            case[f"{name}reverse"] = self.seconds(call)
            del call
        return case

    def loop_seconds(self, dtype: str, unroll: int, pivot: bool | None) -> float:
        """Return the seconds of one small solve in a compiled loop."""
        lower, diag, upper, rhs = self.operands(LOOP_ROWS, LOOP_SYSTEMS, dtype)

        def body(_: Any, x: Any) -> Any:
            return self._solve(lower, diag, upper, x, pivot=pivot)

        fori_loop = self._jax.lax.fori_loop
        loop = self._jax.jit(lambda x: fori_loop(0, LOOP_SOLVES, body, x, unroll=unroll))
        return self.seconds(lambda: loop(rhs)) / LOOP_SOLVES

    def flagged_loops(self, dtypes: list[str]) -> list[Record]:
        """Return the times of compiled loops with the flags of XLA that this process has."""
        flags = os.environ.get("XLA_FLAGS", "")
        return [
            {
                "dtype": dtype,
                "unroll": unroll,
                "pivot": pivot,
                "flags": flags,
                "seconds": self.loop_seconds(dtype, unroll, pivot),
            }
            for dtype in dtypes
            for unroll, pivot in LOOPS
        ]

    def loops(self, dtypes: list[str]) -> list[Record]:
        """Return the times of compiled loops, also those of a process with `GRAPH_FLAG`."""
        here = self.flagged_loops(dtypes)
        environment = os.environ | {
            "XLA_FLAGS": GRAPH_FLAG,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        command = [sys.executable, "-m", "pysolvers", "bench", "gradients", "--loops"]
        run = subprocess.run(
            [*command, "--dtypes", *dtypes],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [*here, *json.loads(run.stdout)]


class Torch:
    """The measurements of `pysolvers.torch`."""

    def __init__(self) -> None:
        self._torch = torch = import_module("torch")
        # The reverse pass is repeated.
        import_module("torch._functorch.config").donated_buffer = False
        self._solve = import_module("pysolvers.torch").solve_tridiagonal
        self._clock = device("torch")
        self._wait = torch.cuda.synchronize

    def seconds(self, call: Call) -> float:
        """Return the seconds of one call."""
        return median_of(call, SAMPLES, seconds=SAMPLE_SECONDS, clock=self._clock)

    def bandwidth(self, size: int) -> float:
        """Return the bytes per second that a copy of so many numbers moves."""
        x = self._torch.zeros(size, device="cuda")
        y = self._torch.empty_like(x)
        return 2 * x.nbytes / self.seconds(lambda: y.copy_(x))

    def operands(self, rows: int, systems: int, dtype: str) -> list[Any]:
        """Return dominant systems."""
        torch = self._torch
        torch.manual_seed(0)
        shape, options = (systems, rows), {"device": "cuda", "dtype": getattr(torch, dtype)}
        lower, diag, upper, rhs = (torch.rand(shape, **options).mul_(2).sub_(1) for _ in range(4))
        return [lower, diag.add_(3), upper, rhs]

    def reverse_of(self, solve: Callable[..., Any], system: list[Any]) -> tuple[Call, float, float]:
        """Return a call of the reverse pass, and the arrays that are kept and needed."""
        cuda = self._torch.cuda
        size = system[0].nbytes
        leaves = [a.detach().requires_grad_() for a in system]
        cotangent = self._torch.ones_like(system[3])
        solve(*leaves)
        self._wait()
        before = cuda.memory_allocated()
        x = solve(*leaves)
        kept = (cuda.memory_allocated() - before) / size

        def reverse() -> Any:
            return self._torch.autograd.grad(x, leaves, cotangent, retain_graph=True)

        reverse()
        self._wait()
        before = cuda.memory_allocated()
        cuda.reset_peak_memory_stats()
        reverse()
        self._wait()
        return reverse, kept, (cuda.max_memory_allocated() - before) / size

    def measure(self, rows: int, dtype: str, unknowns: int, rate: float) -> Record:
        """Return the times of one case in seconds."""
        self._torch._dynamo.reset()
        system = self.operands(rows, unknowns // rows, dtype)
        compiled = self._torch.compile(self._solve, fullgraph=True)
        case: Record = {"rows": rows, "dtype": dtype, "unknowns": unknowns}
        case["floor"] = WORDS * system[0].nbytes / rate
        direct = pysolvers.solve_tridiagonal
        with self._torch.no_grad():
            case["forward"] = self.seconds(lambda: compiled(*system))
            same = self._torch.equal(compiled(*system), direct(*system))
        assert same, "the compiled solve and the direct one differ"
        case["direct"] = self.seconds(lambda: direct(*system, on_singular="nan"))
        call, case["kept"], case["peak"] = self.reverse_of(compiled, system)
        case["reverse"] = self.seconds(call)
        call, *_ = self.reverse_of(self._solve, system)
        case["eager"] = self.seconds(call)
        return case

    def loop_seconds(self, dtype: str) -> float:
        """Return the seconds of one small solve in a compiled loop."""
        self._torch._dynamo.reset()
        lower, diag, upper, rhs = self.operands(LOOP_ROWS, LOOP_SYSTEMS, dtype)

        def some(x: Any) -> Any:
            for _ in range(UNROLLED):
                x = self._solve(lower, diag, upper, x)
            return x

        compiled = self._torch.compile(some, fullgraph=True, mode="reduce-overhead")

        def loop() -> None:
            x = rhs
            for _ in range(LOOP_SOLVES // UNROLLED):
                x = compiled(x).clone()

        with self._torch.no_grad():
            for _ in range(2):
                loop()
            clock = waiting(lambda _: self._wait())
            return median_of(loop, SAMPLES, clock=clock) / LOOP_SOLVES

    def loops(self, dtypes: list[str]) -> list[Record]:
        """Return the times of compiled loops."""
        return [{"dtype": dtype, "seconds": self.loop_seconds(dtype)} for dtype in dtypes]


LIBRARIES: dict[str, Callable[[], Jax | Torch]] = {"jax": Jax, "torch": Torch}


def unknowns_of(record: Record) -> str:
    """Return the number of unknowns of all cases, as a power of two."""
    (unknowns,) = {entry["unknowns"] for entry in record["cases"]}
    return f"$2^{{{unknowns.bit_length() - 1}}}$"


def tables(record: Record) -> list[Table]:
    """Return the tables of a record: those of solves, and with JAX that of loops."""
    if record["benchmark"] == "jax":
        return [jax_table(record), jax_loops(record)]
    return [torch_table(record)]


def jax_table(record: Record) -> Table:
    """Return the table of JAX: milliseconds of a solve and of its reverse pass."""
    rows = []
    for entry in record["cases"]:
        solve, reverse = entry["forward"], entry["reverse"]
        peers = [
            f"{1e3 * peer:.1f} ({peer / own:.1f} ×)"
            for own, peer in ((solve, entry["jax_forward"]), (reverse, entry["jax_reverse"]))
        ]
        own = (1e3 * entry["floor"], 1e3 * solve, peers[0], 1e3 * reverse, peers[1])
        rows.append((entry["dtype"], entry["rows"], *own, reverse / solve))
    heads = ("copy", "`solve_tridiagonal`", "of JAX", "reverse pass", "of JAX", "reverse / solve")
    columns = [Column("dtype"), Column("rows"), *(Column(head, ".2f") for head in heads)]
    note = (
        f"Milliseconds for {unknowns_of(record)} unknowns, each system with its own matrix, "
        "compiled by `jax.jit`. *Copy* moves five words per unknown, as a solve does; *of JAX* is "
        "`jax.lax.linalg.tridiagonal_solve`, in brackets its ratio to this package. "
        f"Measured on {record['gpu']['name']}, JAX {record['versions']['jax']}."
    )
    return Table("", columns, rows, (note,))


def jax_loops(record: Record) -> Table:
    """Return the table of JAX: microseconds of a small solve in a loop."""
    found = {
        (loop["unroll"], loop["flags"], loop["pivot"]): loop["seconds"]
        for loop in record["loops"]
        if loop["dtype"] == "float64"
    }
    rows = []
    for unroll, flags in dict.fromkeys(key[:2] for key in found):
        options = [f"`unroll={unroll}`"] * (unroll > 1) + [f"`{flags}`"] * bool(flags)
        times = (1e6 * found[unroll, flags, pivot] for pivot in (None, False))
        rows.append((", ".join(options) or "by default", *times))
    columns = (Column(""), Column("`pivot=None`", ".1f"), Column("`pivot=False`", ".1f"))
    note = (
        "Microseconds per solve in a compiled loop of 1000 solves with 100 systems of 64 rows, "
        f"float64. Measured on {record['gpu']['name']}, JAX {record['versions']['jax']}."
    )
    return Table("", columns, rows, (note,))


def torch_table(record: Record) -> Table:
    """Return the table of PyTorch: milliseconds of a solve and of its reverse pass."""
    rows = []
    for entry in record["cases"]:
        times = [1e3 * entry[name] for name in ("floor", "forward", "reverse", "eager")]
        ratio = entry["reverse"] / entry["forward"]
        rows.append((entry["dtype"], entry["rows"], *times[:3], ratio, times[3]))
    heads = ("copy", "solve", "reverse pass", "reverse / solve", "reverse pass, not compiled")
    columns = [Column("dtype"), Column("rows"), *(Column(head, ".2f") for head in heads)]
    loop = next(1e6 * e["seconds"] for e in record["loops"] if e["dtype"] == "float64")
    note = (
        f"Milliseconds for {unknowns_of(record)} unknowns, each system with its own matrix, "
        "compiled by `torch.compile`. *Copy* moves five words per unknown, as a solve does. A "
        "solve of 100 systems of 64 rows in a loop that is recorded as a CUDA graph takes "
        f"{loop:.1f} µs. Measured on {record['gpu']['name']}, torch {record['versions']['torch']}."
    )
    return Table("", columns, rows, (note,))


def missed(record: Record) -> list[str]:
    """Return what misses its bar."""
    found = []
    for entry in record["cases"]:
        for name, (value, is_more, bar) in BARS[record["benchmark"]].items():
            if value(entry) < bar if is_more else value(entry) > bar:
                size = f"{entry['dtype']}, {entry['rows']} rows"
                found.append(f"{size}: {name}: {value(entry):.2f}, bar {bar}")
    for loop in record["loops"]:
        settings = {"unroll": 1, "pivot": None, "flags": ""} | loop
        is_plain = (settings["unroll"], settings["pivot"], settings["flags"]) == (1, None, "")
        if is_plain and loop["seconds"] > LOOP_BAR:
            found.append(f"loop, {loop['dtype']}: {1e6 * loop['seconds']:.2f} µs")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "dtypes")
    parser.add_argument("--library", choices=LIBRARIES, default="jax", help="(%(default)s)")
    parser.add_argument("--unknowns", type=positive, default=2**26, help="(%(default)d)")
    parser.add_argument("--loops", action="store_true", help="print the times of loops as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables, compare with the bars and write the record."""
    library = LIBRARIES[args.library]()
    if args.loops:
        assert isinstance(library, Jax)
        print(json.dumps(library.flagged_loops(args.dtypes)))
        return 0
    measurement = Measurement(args.library, (args.library,), gpu=True)
    unknowns = 2**12 if args.quick else args.unknowns
    rate = library.bandwidth(2**20 if args.quick else 2**28)
    todo = [(rows, dtype) for dtype in args.dtypes for rows in ROWS]
    cases = [library.measure(*case, unknowns, rate) for case in progress(todo, args.library)]
    settings = {"quick": args.quick, "unknowns": unknowns}
    loops = library.loops(args.dtypes)
    record = measurement.record(cases, settings, bandwidth=rate, loops=loops)
    found = missed(record)
    finish(args, record, tables(record), found)
    return int(bool(found) and not args.quick)
