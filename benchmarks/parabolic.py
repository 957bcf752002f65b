"""`ParabolicADI`: the time of a step over that of the words that it has to move, and a batch.

Plates of float64 with constant coefficients and with arrays, by the schemes of Douglas and of
modified Craig and Sneyd, and with a mixed derivative. "words" are those that a step moves per node
(pysolvers/_split/schemes.py); "share" is the time of a copy of as many words over that of the step.
On the CPU the copy is measured in turn with the steps.

    F of one field, to one or two    2 or 3 words, 4 on a device with the sum of the step before; 3
                                     more for each axis with rows that are arrays, 1 for a mixed
                                     coefficient that is an array
    the correction                   4 words, and the same ones for arrays
    solve along an axis              2 words, and 3 for factors of arrays
    sum of the solution              3 words

The batch are calls of Heston's model with random parameters, and one of them alone. Next to them
stands the finite-difference engine of QuantLib, if it is installed, for one set of parameters with
as many nodes and the same scheme. With --gpu the solvers are on a device, the batch has ten
thousand sets of parameters, and the time of QuantLib is that of the record of a CPU.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from pysolvers import ParabolicADI
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table

from . import machine
from .options import add_options
from .record import RESULTS, Measurement, Record, finish
from .timing import Copier, device_bandwidth, medians

WORD = 8
PLATE, BATCH, GPU_BATCH = (4096, 4096), (64, 50, 100), (10_000, 50, 100)
SMALL_PLATE, SMALL_BATCH = (64, 65), (3, 9, 10)
CALL, GPU_CALL = 10, 50  # steps of a call on a plate
STEPS = 20  # of the batch, and of QuantLib: what a price takes apart from its steps is shared
COPIED = 1 << 24  # words of a copy that measures the bandwidth

# Scheme, and whether there is a mixed derivative.
SCHEMES = (
    ("douglas", False),
    ("modified-craig-sneyd", False),
    ("modified-craig-sneyd", True),
)


def words(scheme: str, *, has_arrays: bool, is_mixed: bool, on_device: bool = False) -> int:
    """Return the words of a step in two dimensions, per node."""
    arrays = 2 * 3 * has_arrays
    solves = 2 * 2 + arrays
    if scheme == "douglas":
        return (4 if on_device else 2 + 3) + arrays + solves
    mixed = is_mixed * has_arrays
    return (3 + arrays + mixed) + solves + (4 + arrays + mixed) + solves + 3


def plate(
    shape: tuple[int, ...], scheme: Any, where: Record, *, has_arrays: bool, is_mixed: bool
) -> ParabolicADI:
    """Return a solver on a plate."""
    rng = np.random.default_rng(0)
    k = 1 + 0.1 * rng.random(shape) if has_arrays else 1.0
    diffusion = {"xx": k, "yy": k} | ({"xy": 0.5 * k} if is_mixed else {})
    return ParabolicADI(
        shape,
        extent=((0, 1), (0, 1)),
        diffusion=diffusion,
        boundary=0.0,
        initial=rng.random(shape),
        dt=1e-4,
        scheme=scheme,
        damped_start=False,
        **where,
    )


def heston(count: int, shape: tuple[int, ...], where: Record) -> ParabolicADI:
    """Return a solver of calls with parameters of their own."""
    rng = np.random.default_rng(1)
    kappa, eta, sigma, rho = (
        rng.uniform(low, high, (count, 1, 1))
        for low, high in ((0.5, 3.0), (0.02, 0.12), (0.1, 0.5), (-0.9, 0.1))
    )
    s = 100 + 20 * np.sinh(np.linspace(-np.arcsinh(5), np.arcsinh(35), shape[1]))
    s[0] = 0.0
    v = 0.02 * np.sinh(np.linspace(0, np.arcsinh(150), shape[0]))
    return ParabolicADI(
        shape,
        batch=count,
        coordinates=(s, v),
        diffusion={
            "xx": lambda x, y: 0.5 * y * x**2,
            "xy": lambda x, y: rho * sigma * x * y,
            "yy": lambda y: 0.5 * sigma**2 * y,
        },
        advection={"x": lambda x: 0.03 * x, "y": lambda y: kappa * (eta - y)},
        reaction=-0.03,
        boundary={"x-": 0.0, "x+": "linear", "y": "linear"},
        initial=np.maximum(s - 100, 0.0),
        dt=0.01,
        scheme="modified-craig-sneyd",
        damped_start=False,
        **where,
    )


def quantlib(shape: tuple[int, ...], steps: int) -> Callable[[], Any] | None:
    """Return the price of one call by QuantLib with a number of steps, if it is installed."""
    try:
        ql = import_module("QuantLib")
    except ImportError:
        return None
    today = ql.Date(1, 1, 2025)
    ql.Settings.instance().evaluationDate = today
    calendar = ql.Actual365Fixed()
    rate, spot = (
        ql.YieldTermStructureHandle(ql.FlatForward(today, r, calendar)) for r in (0.03, 0)
    )
    quote = ql.QuoteHandle(ql.SimpleQuote(100.0))
    process = ql.HestonProcess(rate, spot, quote, 0.04, 1.5, 0.04, 0.3, -0.9)
    exercise = ql.EuropeanExercise(today + ql.Period(1, ql.Years))
    option = ql.VanillaOption(ql.PlainVanillaPayoff(ql.Option.Call, 100.0), exercise)
    scheme = ql.FdmSchemeDesc.ModifiedCraigSneyd()
    nodes = shape[1], shape[0]
    option.setPricingEngine(
        ql.FdHestonVanillaEngine(ql.HestonModel(process), steps, *nodes, 0, scheme)
    )

    def price() -> float:
        option.recalculate()
        return float(option.NPV())

    return price


def cases(args: argparse.Namespace) -> list[Record]:
    """Measure all cases."""
    shape = SMALL_PLATE if args.quick else PLATE
    where = {"device": "cuda"} if args.gpu else {"threads": args.threads}
    copied = 1 << 16 if args.quick else COPIED
    steps_of_call = GPU_CALL if args.gpu else CALL
    copier = None
    if not args.gpu:
        backend = backends.require("cpu")
        copier = Copier(backend, np.ones(copied), np.ones(copied), args.threads)
    kinds = [(has_arrays, *each) for has_arrays in (False, True) for each in SCHEMES]
    found = []
    for has_arrays, scheme, is_mixed in progress(kinds, "parabolic"):
        kind = {"has_arrays": has_arrays, "is_mixed": is_mixed}
        solver = plate(shape, scheme, where, **kind)
        solver.step()  # makes the factors
        calls: dict[str, Callable[[], Any]] = {"step": partial(solver.step, steps_of_call)}
        if copier is not None:
            calls["copy"] = copier.bandwidth
        times = medians(calls, args.runs)
        seconds = times["step"] / steps_of_call
        bandwidth = 2 * WORD * copied / times["copy"] if copier else device_bandwidth()
        count = words(scheme, **kind, on_device=args.gpu)
        share = count * WORD * np.prod(shape) / bandwidth / seconds
        name = ("arrays" if has_arrays else "constants") + (", mixed" if is_mixed else "")
        found.append(
            {
                "name": name,
                "scheme": scheme,
                "shape": list(shape),
                "words": count,
                "seconds": float(f"{seconds:.4g}"),
                "share": float(f"{share:.3g}"),
            }
        )
    batch = GPU_BATCH if args.gpu else BATCH
    count, *own = SMALL_BATCH if args.quick else batch
    for each in (count, 1):
        solver = heston(each, tuple(own), where)
        solver.step()
        steps = {"step": lambda solver=solver: solver.step(STEPS)}
        peer = quantlib(tuple(own), STEPS) if each == 1 and not args.gpu else None
        times = medians(steps | ({} if peer is None else {"peer": peer}), args.runs)
        found += [
            {
                "name": "Heston" if name == "step" else "Heston, QuantLib",
                "scheme": "modified-craig-sneyd",
                "shape": [each, *own],
                "words": None,
                "seconds": float(f"{seconds / STEPS:.4g}"),
                "share": None,
            }
            for name, seconds in times.items()
        ]
    return found + (quantlib_of_records(tuple(own)) if args.gpu else [])


def quantlib_of_records(shape: tuple[int, ...]) -> list[Record]:
    """Return the times of QuantLib in the records of CPUs, with the names of these."""
    found = []
    for path in sorted(RESULTS.glob("parabolic-*.json")):
        record = json.loads(path.read_text())
        found += [
            entry | {"name": f"{entry['name']}, {record['machine']['cpu']}"}
            for entry in record["cases"]
            if record["gpu"] is None
            and entry["name"] == "Heston, QuantLib"
            and tuple(entry["shape"][1:]) == shape
        ]
    return found


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    rows = []
    for entry in record["cases"]:
        nodes = np.prod(entry["shape"])
        of_node = 1e9 * entry["seconds"] / nodes
        rows.append(
            (
                entry["name"],
                entry["scheme"],
                shape_text(entry["shape"]),
                1e3 * entry["seconds"],
                of_node,
                entry["words"],
                None if entry["share"] is None else 100 * entry["share"],
            )
        )
    columns = [
        Column("coefficients", left=True),
        Column("scheme", left=True),
        Column("nodes", left=True),
        Column("ms of a step", ".2f"),
        Column("ns of a node", ".2f"),
        Column("words"),
        Column("share, %", ".0f"),
    ]
    settings, gpu = record["settings"], record["gpu"]
    place = f"{settings['threads']} threads" if gpu is None else "on a device"
    name = record["machine"]["cpu"] if gpu is None else gpu["name"]
    note = (
        f"Float64, {place}, medians of {settings['runs']} runs. Measured on {name}; load before: "
        f"{record['load']}."
    )
    return [Table("", columns, rows, (note,))]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "gpu", "threads", runs=7)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table, and write the record."""
    packages = machine.GPU_PACKAGES if args.gpu else ("QuantLib",)
    measurement = Measurement("parabolic", packages, gpu=args.gpu)
    args.threads = args.threads or backends.require("cpu").default_threads()
    settings = {"quick": args.quick, "threads": args.threads, "runs": args.runs}
    record = measurement.record(cases(args), settings)
    finish(args, record, tables(record))
    return 0
