"""Wrong arguments are refused by a sentence that names the argument, the rule and the value."""

import os
import subprocess
import sys

import numpy as np
import pytest
import saved_files
from covering import slow

from pysolvers import GCEIDD, HeatADI, solve_tridiagonal
from pysolvers.flow import LidDrivenCavity

NAN, INF = float("nan"), float("inf")


def cavity():
    return LidDrivenCavity(100, 7)


def relaxation():
    return saved_files.plate()


def stepper():
    return saved_files.heat()


def heat(**options):
    return HeatADI((5, 6), 0.25, 0.01, boundary=0.0, **options)


def gceidd(**options):
    return GCEIDD(saved_files.PULSE, shape=(9, 9), dt=0.01, **options)


def overlapping(shape, strides):
    """Views whose axes overlap; the memory behind them is long enough."""
    return np.lib.stride_tricks.as_strided(np.zeros(100), shape, [8 * step for step in strides])


def solve(**options):
    return solve_tridiagonal(-1.0, 4.0, -1.0, np.ones((4, 5)), **options)


REFUSALS = [
    (lambda: cavity().solve(INF), ValueError, "tol must be finite, got inf"),
    (lambda: cavity().solve(NAN), ValueError, "tol must be finite, got nan"),
    (lambda: cavity().solve(-1), ValueError, "tol must be at least 0, got -1"),
    (lambda: cavity().solve(True), TypeError, "tol must be a number, got bool"),
    (lambda: cavity().solve(np.True_), TypeError, "tol must be a number, got bool"),
    (lambda: cavity().solve("x"), TypeError, "tol must be a number, got str"),
    (lambda: cavity().solve(None), TypeError, "tol must be a number, got NoneType"),
    (lambda: cavity().solve(10**400), ValueError, "tol must be at most 1.79"),
    (lambda: cavity().solve(max_iterations=NAN), TypeError, "max_iterations must be an int"),
    (lambda: cavity().solve(max_iterations=INF), TypeError, "max_iterations must be an int"),
    (lambda: cavity().solve(max_iterations=0), ValueError, "max_iterations must be at least 1"),
    (lambda: cavity().solve(callback=3), TypeError, "callback must be a function or None, got int"),
    (lambda: cavity().iterate(NAN), TypeError, "count must be an int, got float"),
    (lambda: cavity().iterate(True), TypeError, "count must be an int, got bool"),
    (lambda: cavity().iterate("1"), TypeError, "count must be an int, got str"),
    (lambda: cavity().iterate(None), TypeError, "count must be an int, got NoneType"),
    (lambda: cavity().iterate(-1), ValueError, "count must be at least 0, got -1"),
    (lambda: relaxation().solve(True), TypeError, "tol must be a number, got bool"),
    (lambda: relaxation().solve(INF), ValueError, "tol must be finite, got inf"),
    (lambda: relaxation().solve(callback=3), TypeError, "callback must be a function or None"),
    (lambda: relaxation().iterate(True), TypeError, "count must be an int, got bool"),
    (lambda: stepper().run(1.0, callback=3), TypeError, "callback must be a function or None"),
    (lambda: stepper().run("1"), TypeError, "until must be a number, got str"),
    (lambda: stepper().step(1.0), TypeError, "count must be an int, got float"),
    (lambda: gceidd(bound="1"), TypeError, "bound must be a number, got str"),
    (lambda: gceidd(bound=True), TypeError, "bound must be a number, got bool"),
    (lambda: gceidd(bound=NAN), ValueError, "bound must be positive or None, got nan"),
    (lambda: solve(variant=1), TypeError, "solve_tridiagonal has no argument .variant."),
    (lambda: solve(axis=2**70), ValueError, rf"axis must be in -2 \.\. 1.*got {2**70}"),
    (lambda: solve(axis=-(2**70)), IndexError, rf"axis must be in -2 \.\. 1.*got -{2**70}"),
    (lambda: solve(axis=2), ValueError, r"axis must be in -2 \.\. 1.*got 2"),
    (lambda: solve(axis=-3), ValueError, r"axis must be in -2 \.\. 1.*got -3"),
    *(
        (
            lambda strides=strides: solve(out=overlapping((4, 5), strides)),
            ValueError,
            "out must hold each element at one index.*strides",
        )
        for strides in [(1, 1), (4, 1), (1, 0), (2, 2), (1, 3)]
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), REFUSALS, ids=[f"{k}-{r[2][:30]}" for k, r in enumerate(REFUSALS)]
)
def test_wrong_argument_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("strides", [(5, 1), (1, 4), (7, 1), (-5, 1), (1, 20), (20, -2)])
def test_out_without_repeats_is_taken(strides):
    out = overlapping((4, 5), np.abs(strides))
    out = out[:: 1 if strides[0] > 0 else -1, :: 1 if strides[1] > 0 else -1]

    np.testing.assert_array_equal(solve(out=out), solve())


def test_infinite_bound_is_none():
    assert gceidd(bound=INF).step(3).steps == 3


SCRIPT = """
import numpy as np, pysolvers
try:
    _, info = pysolvers.solve_tridiagonal(-1.0, 4.0, -1.0, np.ones((4096, 64)), return_info=True)
    print(info.threads, info.kernel)
except ValueError as error:
    print(error)
"""


def run(**variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSOLVERS_")}
    environment.update(variables, OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive")
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize(
    "value", ["2x", "0", "1025", "9" * 5000, "²", *map(slow, ("x", "1.5", "-1", "1 2"))]
)
def test_wrong_number_of_threads_in_the_environment_is_refused(value):
    said = run(PYSOLVERS_NUM_THREADS=value)

    rule = "PYSOLVERS_NUM_THREADS must be an integer in 1 .. 1024, got "
    shown = value if len(value) < 10 else "9" * 37 + "..."
    remedy = "unset it, or set for example PYSOLVERS_NUM_THREADS=4"
    assert said == f"the environment variable {rule}{shown!r}: {remedy}"


@pytest.mark.parametrize("value", ["AVX2", *map(slow, ("avx", "sse", "1"))])
def test_unknown_instruction_set_in_the_environment_is_refused(value):
    said = run(PYSOLVERS_ISA=value)

    rule = "PYSOLVERS_ISA must be one of baseline, avx2, avx512, got "
    assert said == f"the environment variable {rule}{value!r}: unset it, or set one of these"


def test_number_of_threads_in_the_environment_is_taken():
    """It is a limit: no more threads run than there are processors."""
    usable = int(run().split()[0])

    assert run(PYSOLVERS_NUM_THREADS="").split()[0] == str(usable)
    for value in ("1", " 2 ", "1024"):
        assert run(PYSOLVERS_NUM_THREADS=value).split()[0] == str(min(int(value), usable))


def test_instruction_set_in_the_environment_is_taken():
    assert run(PYSOLVERS_ISA="baseline", PYSOLVERS_NUM_THREADS="1") == "1 baseline"
