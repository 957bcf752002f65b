"""``python -m pysolvers reproduce lmsor2012``: comparison with published counts and speeds."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from pysolvers._errors import ConvergenceError
from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.papers.lmsor2012 import COUNTS, LMSOR, Count, count_iterations, solver_of

from ..timing import cpu_bandwidth, device_bandwidth, median_of
from .report import Verdict, add_paper_options, left_out, report

SIZES = (402, 1002, 2002, 4002)
PUBLISHED_MILLISECONDS: Mapping[int, float] = {1: 1.807, 2: 1.466, 3: 6.897}
"""An iteration of the kernels at 2002, problem 1, on the GTX 480."""

PUBLISHED_ELEMENTS: Mapping[str, tuple[float, float]] = {
    "Opteron 6180, one core": (25.0, 58.0),
    "Tesla C2050": (722.0, 1869.0),
    "GTX 480": (1330.0, 2776.0),
}
"""Millions of nodes relaxed in a second, both colours, over the sizes: least and most."""
TITLE = "Cotronis et al. 2012: local modified SOR by red-black kernels"
_WORDS = {1: 8, 2: 6, 3: 3}
_PROBLEM, _REYNOLDS = 1, 10.0
_QUICK_COUNT = Count(1, 10.0, 34, None)
_SIZES = (*SIZES[:3], 3002, SIZES[3])
_OVER_REYNOLDS = tuple(count for count in COUNTS if count.size == 1002)
_KERNELS = (1, 2, 3, "auto")
_CPU_WORK = 1.2e10  # nodes times iterations of a count that a CPU makes in about 15 seconds
_KERNEL_3 = (
    "Kernel 3, the slowest of the paper, can be the fastest of the three on a GPU of today: it "
    "moves half of the words of kernel 2 and computes the parameters again, and the data sheets "
    "give a GTX 480 about 1 float64 operation a byte of its memory bandwidth, an H200 about 7. It "
    "also reads f(x) and g(y) from two tables, where the kernel of the paper evaluates them."
)
_Times = dict[tuple[int | str, int], float]  # by kernel and size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiments to their parser."""
    add_paper_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiments and return the exit code."""
    reason = backends.unavailable_reason("cuda")
    device = "cpu" if reason else "cuda"
    sizes = (34, 66) if args.quick else _SIZES[:4] if reason else _SIZES
    counts = (_QUICK_COUNT,) if args.quick else _counts_of_a_cpu() if reason else COUNTS
    bandwidth = _bandwidth(device, quick=args.quick)
    times = {
        (kernel, size): _seconds(size, kernel, device, quick=args.quick)
        for kernel, size in progress([(k, n) for k in _KERNELS for n in sizes], "lmsor2012")
    }
    tables = [
        _count_table(counts, device, quick=args.quick),
        _kernel_table(times, sizes, bandwidth, device),
        _scaling_table(times, sizes, device),
        _reynolds_table(counts if args.quick else _OVER_REYNOLDS[: 1 if reason else None], device),
        _peer_table(sizes[-1] if args.quick else 1002, device),
    ]
    if reason:
        missing = (n for n in _SIZES if n not in sizes)
        notes = left_out(missing, "a gigabyte of arrays", quick=args.quick)
        tables.append(Table("On a GPU", (Column("not measured"),), [(reason,)], notes))
    pictures = {"kernels": _picture(times, sizes)}
    said = [verdict(tables[0]), kernel_verdict(times if not reason else {})]
    report(args, "lmsor2012", TITLE, tables, verdict=said, pictures=pictures)
    return 0


def _counts_of_a_cpu() -> tuple[Count, ...]:
    """Return the counts that a CPU makes in seconds; the others are left out on a CPU."""
    return tuple(c for c in COUNTS if (c.published or 0) * (c.size - 2) ** 2 <= _CPU_WORK)


def verdict(counts: Table) -> Verdict:
    """Return what the paper claims and what the counts of a run say about it."""
    pairs = [row[-2:] for row in counts.rows if row[-2] is not None]
    equal = sum(published == counted for published, counted in pairs)
    return Verdict(
        "red-black SOR with one parameter for each node needs the published numbers of iterations",
        f"{equal} of {len(pairs)} published numbers are counted here exactly; problem 2 at Re = 10 "
        "needs an error in the printed formula for it"
        if pairs
        else "no published number is among the sizes of this run",
        "not measured" if not pairs else "confirmed" if equal == len(pairs) else "not confirmed",
    )


def kernel_verdict(times: _Times) -> Verdict:
    """Return what the paper claims of its kernels and what was found.

    Parameters
    ----------
    times : mapping
        Seconds of an iteration by kernel and size on a GPU; empty without one.
    """
    size = max((n for _, n in times), default=0)
    size = 2002 if (1, 2002) in times else size
    found = {k: times[k, size] for k in (1, 2, 3)} if times else {}
    ordered = sorted(found, key=lambda k: found[k])
    claimed = PUBLISHED_MILLISECONDS[1] / PUBLISHED_MILLISECONDS[2]
    return Verdict(
        f"kernel 2 is the fastest, {claimed:.2f} times faster than kernel 1, and kernel 3 the "
        "slowest",
        f"at {size} kernel {ordered[0]} is the fastest and kernel {ordered[-1]} the slowest; "
        f"kernel 2 is {found[1] / found[2]:.2f} times faster than kernel 1"
        if found
        else "this machine has no GPU that the package can use",
        "not measured" if not found else "confirmed" if ordered == [2, 1, 3] else "not confirmed",
    )


def _bandwidth(device: str, *, quick: bool) -> float:
    if device == "cpu":
        return cpu_bandwidth(2**16 if quick else 2**25)
    return device_bandwidth()


def _seconds(size: int, kernel: int | str, device: str, *, quick: bool) -> float:
    """Return the seconds of an iteration, measured over about a quarter of a second."""
    solver = solver_of(_PROBLEM, _REYNOLDS, size, kernel=kernel, device=device)
    wanted = 4 if quick else max(16, int((1e8 if device == "cpu" else 4e9) / size**2))
    return iteration_seconds(solver, min(wanted, 4096))


def _count_table(counts: Sequence[Count], device: str, *, quick: bool = False) -> Table:
    columns = [Column("problem"), Column("Re", "g"), Column("sqrt(N)"), Column("relaxation")]
    columns += [Column("published"), Column("counted")]
    rows = []
    for c in progress(counts, "lmsor2012"):
        found = count_iterations(c, device=device)
        rows.append((str(c.problem), c.reynolds, c.size, c.relaxation, c.published, found))
    note = (
        "Until max |u| is at most 1e-6, tested after each iteration. Published for problem 2 at "
        "Re = 10 are counts with an error in the parameters of real nodes, lmsor-2012."
    )
    missing = [f"{c.published} at {c.size}" for c in COUNTS if c.published and c not in counts]
    reason = f"more than {_CPU_WORK:.1e} nodes times iterations, minutes on a CPU"
    notes = [note, *left_out(missing, reason, quick=quick)]
    return Table("Iterations", columns, rows, notes)


def _kernel_table(times: _Times, sizes: Sequence[int], bandwidth: float, device: str) -> Table:
    columns = (
        Column("kernel"),
        Column("sqrt(N)"),
        Column("µs an iteration", ".2f"),
        Column("words"),
        Column("of its floor", ".0%"),
        Column("GB/s", ".0f"),
        Column("over kernel 2's floor", ".2f"),
        Column("published, µs", ".0f"),
    )
    rows: list[tuple[Any, ...]] = []
    for size in sizes:
        nodes = (size - 2) ** 2
        second = _WORDS[2] * 8 * nodes / bandwidth
        for kernel in _KERNELS:
            time = times[kernel, size]
            words = _WORDS.get(kernel)
            moved = None if words is None else words * 8 * nodes
            known = PUBLISHED_MILLISECONDS if size == 2002 and kernel != "auto" else {}
            rows.append(
                (
                    str(kernel),
                    size,
                    1e6 * time,
                    words,
                    None if moved is None else moved / bandwidth / time,
                    None if moved is None else moved / time / 1e9,
                    second / time,
                    1e3 * known[kernel] if known else None,
                )
            )
    where = "all cores" if device == "cpu" else "the GPU"
    note = (
        f"On {where}, problem {_PROBLEM}, Re = {_REYNOLDS:g}, float64, max |u| tested in every "
        f"iteration; copy {bandwidth / 1e9:.0f} GB/s. Smaller sizes stay in the cache. auto makes "
        "several iterations in one pass over memory; published: GTX 480."
    )
    notes = (note,) if device == "cpu" else (note, _KERNEL_3)
    return Table("Kernels", columns, rows, notes)


def _scaling_table(times: _Times, sizes: Sequence[int], device: str) -> Table:
    columns = [Column("sqrt(N)")]
    columns += [Column(f"kernel {k}" if k != "auto" else "auto", ".0f") for k in _KERNELS]
    columns += [Column("serial", ".1f")]
    rows = []
    for size in sizes:
        rates = [(size - 2) ** 2 / times[kernel, size] / 1e6 for kernel in _KERNELS]
        serial = solver_of(_PROBLEM, _REYNOLDS, size, kernel="serial", threads=1)
        seconds = iteration_seconds(serial, 2, 1)
        rows.append((size, *rates, (size - 2) ** 2 / seconds / 1e6))
    published = "; ".join(
        f"{k} {low:g} to {high:g}" for k, (low, high) in PUBLISHED_ELEMENTS.items()
    )
    where = "all cores" if device == "cpu" else "the GPU"
    note = f"Kernels on {where}, serial on one core. Published, kernel 2 on the GPUs: {published}."
    return Table("Millions of nodes an iteration and second", columns, rows, (note,))


def _reynolds_table(counts: Sequence[Count], device: str) -> Table:
    columns = [Column("problem"), Column("Re", "g"), Column("sqrt(N)"), Column("iterations")]
    columns += [Column("set-up, s", ".3f"), Column("computation, s", ".3f")]
    columns += [Column("one core, s", ".1f"), Column("times faster", ".0f")]
    rows = []
    serial: dict[int, float] = {}
    for c in progress(counts, "lmsor2012"):
        solver = solver_of(c.problem, c.reynolds, c.size, relaxation=c.relaxation, device=device)
        made = solver.solve(1e-6, criterion="solution", max_iterations=20_000).iterations
        if c.size not in serial:
            one = solver_of(c.problem, c.reynolds, c.size, kernel="serial", threads=1)
            serial[c.size] = iteration_seconds(one, 5, 1)
        spent, core = solver.seconds, made * serial[c.size]
        times = (spent["set-up"], spent["iterations"], core, core / spent["iterations"])
        rows.append((str(c.problem), c.reynolds, c.size, made, *times))
    note = "One core: kernel serial, time of a few iterations, scaled to their number."
    return Table("Whole solves over Re", columns, rows, (note,))


def _peer_table(size: int, device: str) -> Table:
    n = size - 2
    columns = (Column(f"an iteration at {size}"), Column("µs", ".1f"))
    rows: list[tuple[Any, ...]] = []
    for where in dict.fromkeys((device, "cpu")):
        solver = solver_of(_PROBLEM, _REYNOLDS, size, device=where)
        steps = 8 if n < 100 else 64
        rows.append((f"auto, {where}", 1e6 * iteration_seconds(solver, steps)))
    for name, measure in _PEERS.items():
        try:
            rows.append((name, 1e6 * measure(n)))
        except Exception as error:  # the other peers run even if one fails
            text = str(error).splitlines() or [type(error).__name__]
            rows.append((f"{name}: {text[0][:60]}", None))
    note = "Peers relax Poisson's five points with one parameter, which is less work."
    return Table("Peers", columns, rows, (note,))


def _pyamg(n: int) -> float:
    relaxation = import_module("pyamg.relaxation.relaxation")
    matrix = _poisson(n)
    x, b = np.ones(n * n), np.zeros(n * n)
    return median_of(lambda: relaxation.sor(matrix, x, b, 1.9), 3)


def _scipy(n: int) -> float:
    from scipy.sparse import tril
    from scipy.sparse.linalg import spsolve_triangular

    matrix = _poisson(n)
    lower, x = tril(matrix, format="csr"), np.ones(n * n)
    return median_of(lambda: spsolve_triangular(lower, matrix @ x), 1)


def _poisson(n: int) -> Any:
    from scipy.sparse import diags_array, eye_array, kron

    line = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return (kron(line, eye_array(n)) + kron(eye_array(n), line)).tocsr()


def _cupy(n: int) -> float:
    import cupy

    u, omega = cupy.ones((n + 2, n + 2)), 1.9
    j, i = cupy.indices((n, n))
    masks = [((i + j) % 2 == colour) for colour in (0, 1)]

    def relax() -> None:
        for mask in masks:
            mean = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
            middle = u[1:-1, 1:-1]
            middle += cupy.where(mask, omega * (mean - middle), 0)
        cupy.cuda.get_current_stream().synchronize()

    return median_of(relax, 10)


_PEERS = {
    "PyAMG, sor": _pyamg,
    "SciPy, spsolve_triangular": _scipy,
    "CuPy, red-black by masks": _cupy,
}


def _picture(times: _Times, sizes: Sequence[int]) -> Callable[[], Any]:
    def draw() -> Any:
        from .figures import Curves, plot_curves

        rates = Curves("Red-black relaxation", "nodes along a side", "million nodes per second")
        for kernel in _KERNELS:
            for size in sizes:
                name = "auto" if kernel == "auto" else f"kernel {kernel}"
                rates.add(name, size, (size - 2) ** 2 / times[kernel, size] / 1e6)
        return plot_curves([rates], log=(True, True))

    return draw


def iteration_seconds(solver: LMSOR, iterations: int, warm_up: int = 8) -> float:
    """Return the seconds of an iteration, each with the stop test of the paper."""
    for count in (warm_up, iterations):
        before = solver.seconds["iterations"]
        with suppress(ConvergenceError):  # a tolerance that is never reached
            solver.solve(0.0, criterion="solution", max_iterations=count)
    return (solver.seconds["iterations"] - before) / iterations
