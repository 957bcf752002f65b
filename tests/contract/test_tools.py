"""The tools that compare two builds: their machine code, and their speed."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

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


def test_two_builds_alternate(tmp_path):
    name, report = "small/f64/last/1x8", tmp_path / "report.json"
    options = ("--rounds", 1, "--limit", 1e6, "--json", report)
    text, status = tool("ab.py", CORE, CORE, name, *options)

    assert status == 0
    assert f"{pysolvers._core.describe()}\n" * 2 + name in text
    (measured,) = json.loads(report.read_text())
    assert measured["name"] == name
    assert measured["ratio"] == measured["new"] / measured["old"] > 0
    assert measured["repeat"] is None

    # Any build is slower than a millionth of itself.
    text, status = tool("ab.py", CORE, CORE, name, "--rounds", 1, "--limit", 1e-6)
    assert status == 1
    assert "1 cases above 1e-06, and measured again:" in text


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
