"""Steps of StaggeredCavity: its kernels with the same number of SOR iterations, and the direct one.

On a CPU all kernels that are available. With --gpu those of the device, with the direct solver of
the pressure, its stages, and with SOR. The floor is the time in which 15 words per cell move at the
bandwidth of a copy: 8 of the stages and 7 of the direct solver. On grids whose fields fit into the
cache of the device a step can be faster. The host waits once in a call with the direct solver.
"""

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

from pysolvers import BackendError
from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table
from pysolvers.papers.survey2014 import StaggeredCavity

from . import machine
from .options import add_options, positive
from .record import Measurement, Record, finish
from .timing import alternate, device_bandwidth, host

SIZES = (128, 256, 512, 1024)
GPU_SIZES = (*SIZES, 2048)
KERNELS = ("serial", "openmp", "auto", "directive", "directive-openmp")
STAGES = ("predict", "pressure", "correct")
WORDS = 15
INTERVAL = 20  # steps of a call


def step_times(
    make: Callable[[], StaggeredCavity], runs: int, steps: int = INTERVAL
) -> tuple[float, dict[str, float]]:
    """Return the seconds of a step, and those of its stages in the last call.

    From rest each time: with few iterations of SOR the flow would grow after many steps.
    """
    stages: dict[str, float] = {}

    def draw() -> float:
        cavity = make().step(2)
        before = cavity.result().seconds
        seconds = host(lambda: cavity.step(steps), 1)
        stages.update({k: (v - before[k]) / steps for k, v in cavity.result().seconds.items()})
        return seconds / steps

    return median(alternate({"": draw}, {"": runs})[""]), stages


def cpu_measure(n: int, sor: dict[str, Any], runs: int) -> Record:
    """Return the times of a size on a CPU, without kernels that are not available."""
    found: dict[str, float] = {}
    for kernels in (*KERNELS, "fast"):
        options = {} if kernels == "fast" else {**sor, "kernels": kernels}
        try:
            found[kernels], _ = step_times(lambda o=options: StaggeredCavity(1000, n, **o), runs)
        except BackendError:
            continue
    return {"n": n, "seconds": found}


def gpu_measure(n: int, sor: dict[str, Any], runs: int, bandwidth: float) -> Record:
    """Return the times of a size on a GPU."""
    fast, stages = step_times(lambda: StaggeredCavity(1000, n, device="cuda"), runs)
    relaxed, _ = step_times(lambda: StaggeredCavity(1000, n, device="cuda", **sor), runs)
    floor = WORDS * 8 * n * n / bandwidth
    return {"n": n, "fast": fast, "stages": stages, "sor": relaxed, "floor": floor}


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    return [gpu_table(record) if record["gpu"] else cpu_table(record)]


def cpu_table(record: Record) -> Table:
    """Return the table of a CPU: milliseconds of a step."""
    rows = [
        (f"{e['n']}²", *(1e3 * e["seconds"][k] if k in e["seconds"] else None for k in names))
        for names in ((*KERNELS, "fast"),)
        for e in record["cases"]
    ]
    columns = [Column("cells"), *(Column(name, ".3g") for name in (*KERNELS, "fast"))]
    note = (
        f"Milliseconds of a step with {record['settings']['sweeps']} iterations of SOR; *fast*: "
        f"with the direct solver. Measured on {record['machine']['cpu']}."
    )
    return Table("", columns, rows, (note,))


def gpu_table(record: Record) -> Table:
    """Return the table of a GPU: microseconds of a step."""
    rows = []
    for entry in record["cases"]:
        times = (entry["fast"], *(entry["stages"][s] for s in STAGES), entry["sor"], entry["floor"])
        rows.append((f"{entry['n']}²", *(1e6 * time for time in times)))
    names = ('`"fast"`', *STAGES, '`"sor"`')
    columns = [Column("cells"), *(Column(n, ".0f") for n in names), Column("15 words", ".3g")]
    note = (
        'Microseconds of a step on a device, by the clock of the host: with `pressure="fast"`, its '
        f"stages by the clock of the device, and with {record['settings']['sweeps']} iterations of "
        '`"sor"`; then the time in which 15 words per cell move at the bandwidth of a copy. On '
        "grids that fit into the cache of the device it is not a lower bound. "
        f"Measured on {record['gpu']['name']}."
    )
    return Table("", columns, rows, (note,))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "gpu", runs=3)
    parser.add_argument("--cells", type=positive, nargs="+", help="along a side")
    parser.add_argument("--sweeps", type=positive, default=50, help="iterations of SOR in a step")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    cells = args.cells or ((16,) if args.quick else GPU_SIZES if args.gpu else SIZES)
    # The steps are short: with so few iterations the flow grows after many steps.
    sor = {"pressure": "sor", "pressure_tol": None, "max_sweeps": args.sweeps, "dt": 1e-7}
    settings = {"quick": args.quick, "sweeps": args.sweeps}
    packages = (*machine.GPU_PACKAGES, "nvidia-cufft") if args.gpu else ()
    measurement = Measurement("staggered", packages, gpu=args.gpu)
    todo = progress(cells, "staggered")
    if args.gpu:
        rate = device_bandwidth()
        cases = [gpu_measure(n, sor, args.runs, rate) for n in todo]
        record = measurement.record(cases, settings, bandwidth=rate)
    else:
        record = measurement.record([cpu_measure(n, sor, args.runs) for n in todo], settings)
    finish(args, record, tables(record))
    return 0
