"""The tools that compare two builds: their machine code, and their speed."""

import json
import runpy
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import pysolvers._core

ROOT = Path(__file__).parents[2]
CORE = pysolvers._core.__file__

CODE = """
static const double table[] = {1, 2, 3};
double PREFIX_double(const double *x) { return x[0] * PRODUCT + x[1]; }
double PREFIX_sum(const double *x, int n)
{
    double sum = table[n & 1];
    for (int k = 0; k < n; k++) { sum += PREFIX_double(x + k); }
    return sum;
}
"""


def tool(name, *arguments):
    """Run a tool and return what it prints, and its exit status."""
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not run.stderr, run.stderr
    return run.stdout, run.returncode


def compiled(folder, prefix, product):
    """Return an object file of `CODE` with these names and this factor."""
    source = folder / f"{prefix}.c"
    source.write_text(CODE.replace("PREFIX", prefix).replace("PRODUCT", product))
    target = source.with_suffix(".o")
    flags = ["-O1", "-fno-inline", "-c", "-o", target]
    subprocess.run(["gcc", *flags, source], check=True)
    return target


@pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "objdump", "nm"))), reason="no gcc or no binutils"
)
def test_functions_are_compared_by_their_code(tmp_path):
    one, renamed, changed = (
        compiled(tmp_path, *parts)
        for parts in (("one", "x[2]"), ("other", "x[2]"), ("third", "x[3]"))
    )

    assert tool("kernels.py", one, "--with", renamed) == (
        "2 kernels and 2 kernels, 2 with the same code\n",
        0,
    )
    text, status = tool("kernels.py", one, "--with", changed)
    assert status == 1
    assert "2 kernels and 2 kernels, 1 with the same code" in text
    assert "only old: one.o: one_double" in text and "only new: third.o: third_double" in text
    assert "_sum" not in text

    first, second = (tool("kernels.py", path)[0].splitlines()[1:3] for path in (one, renamed))
    assert [line.split()[:2] for line in first] == [line.split()[:2] for line in second]


def cuobjdump_of(folder, sass, usage):
    """Write a program that answers as cuobjdump does."""
    program = folder / "cuobjdump"
    for name, text in (("sass", sass), ("usage", usage)):
        (folder / name).write_text(text)
    program.write_text(
        f"#!/bin/sh\ncase $1 in -sass) cat {folder}/sass;; *) cat {folder}/usage;; esac\n"
    )
    program.chmod(0o755)


def test_device_kernels_have_registers_local_memory_and_bytes(tmp_path, monkeypatch):
    cuobjdump_of(
        tmp_path,
        "arch = sm_90\n\t\tFunction : _Z1fv\n"
        "        /*0000*/   LDL R1, [R2] ;   /* 0x01 */\n          /* 0x02 */\n"
        "        /*0010*/   @P0 EXIT ;   /* 0x03 */\n          /* 0x04 */\n",
        "arch = sm_90\n Function _Z1fv:\n  REG:40 STACK:8 SHARED:0\n",
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "one.cubin").touch()

    (kernel,) = runpy.run_path(str(ROOT / "tools" / "kernels.py"))["kernels_of"](
        tmp_path / "one.cubin", None
    )

    assert kernel.name == "one.cubin sm_90: _Z1fv"
    assert (kernel.registers, kernel.local, kernel.size) == (40, 1, 32)


@pytest.mark.slow  # a tool of the laboratory, which measures for seconds
def test_two_builds_are_measured(tmp_path):
    name, report = "small/f64/last/1x8", tmp_path / "report.json"
    options = ("--rounds", 1, "--limit", "inf", "--json", report)
    text, status = tool("ab.py", CORE, CORE, name, *options)

    assert status == 0
    assert f"{pysolvers._core.describe()}\n" * 2 + name in text
    (measured,) = json.loads(report.read_text())
    assert measured["name"] == name
    assert measured["ratio"] == pytest.approx(measured["new"] / measured["old"])
    assert measured["repeat"] is None

    # Each ratio is above zero.
    text, status = tool("ab.py", CORE, CORE, name, "--rounds", 1, "--limit", 0)
    assert status == 1
    assert "1 cases above 0.0, and measured again:" in text


@pytest.mark.parametrize("threads", [1, 2])
def test_the_fastest_quarter_of_alternating_calls_counts(threads, monkeypatch):
    alternate = runpy.run_path(str(ROOT / "tools" / "ab.py"))["alternate"]
    # Seconds of each call of each build; the former has one more, before the rounds.
    durations = [iter([1, 8, 3, 7, 2, 9, 9, 9, 9]), iter([6, 5, 9, 9, 9, 4, 9, 9])]
    now, active, called = 0, [], []

    def build(side):
        return SimpleNamespace(activate=lambda: active.append(side))

    def call(side):
        nonlocal now
        now += next(durations[side])
        called.append(side)

    clock = {"thread_time" if threads == 1 else "perf_counter": lambda: now}
    monkeypatch.setitem(alternate.__globals__, "time", SimpleNamespace(**clock))
    seconds = alternate([build(0), build(1)], [partial(call, 0), partial(call, 1)], threads, 8)

    assert seconds == [(2 + 3) / 2, (4 + 5) / 2]
    assert active == [0, 1, 1, 0] * 4
    assert called == [0, *active]


@pytest.mark.parametrize(
    ("pairs", "ratio", "repeat"),
    [
        ([(4, 4)], 1, None),
        ([(4, 5)], 1.25, None),  # the limit itself
        ([(4, 5.5), (2, 8), (4, 1)], 1.375, 1),
        ([(5.5, 4), (1, 4), (1, 1)], 4 / 5.5, 2),  # faster than the inverse of the limit
    ],
)
def test_a_case_beyond_the_limit_is_measured_again(pairs, ratio, repeat, monkeypatch):
    names = runpy.run_path(str(ROOT / "tools" / "ab.py"))
    made, asked, times = [], [], iter(pairs)

    class Build:
        def make(self, maker, threads):
            made.append(builds.index(self))
            return maker, threads, self

    def alternate(of, calls, threads, rounds):
        assert of == builds
        assert calls == [("maker", 2, build) for build in builds]
        asked.append((threads, rounds))
        return next(times)

    builds = [Build(), Build()]
    monkeypatch.setitem(names["measure"].__globals__, "alternate", alternate)
    case = names["Case"]("name", 10**9, lambda: "maker")
    found = names["measure"](case, builds, 2, 24, 1.25)

    assert (found.name, found.old, found.new) == ("name", *pairs[0])
    assert (found.ratio, found.repeat) == (ratio, repeat)
    assert found.final == (ratio if repeat is None else repeat)
    # Four times the rounds, in half of which the calls of the second build are made first.
    assert asked == [(2, 24)] + [(2, 48)] * 2 * (repeat is not None)
    assert made == [0, 1] + [1, 0, 0, 1] * (repeat is not None)


def test_cases_are_chosen_by_pattern_or_first_words():
    names = runpy.run_path(str(ROOT / "tools" / "ab.py"))
    cases = names["all_cases"]()
    assert len({case.name for case in cases}) == len(cases)

    def chosen(*patterns):
        return {case.name for case in names["chosen"](cases, patterns)}

    assert chosen("heat/constant/f32") == chosen("heat/constant/f32/*") != set()
    assert chosen("plain", "heat") == chosen("plain") | chosen("heat")
    assert chosen() == {case.name for case in cases}
    with pytest.raises(SystemExit, match="no case is called nothing"):
        chosen("nothing")
