"""The benchmark of cut lines runs on ranks, and fits a model; its table and picture are made."""

import json
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from mpi_job import LAUNCHER, finished, started

from benchmarks import distributed, group_calls, ranks as ranks_of_jobs
from pysolvers.papers.logp1993 import CostModel

STAGES = {"elimination", "exchange", "reduced systems", "substitution", "comparison"}

# Exact in binary, so that the fit finds them again.
TRUE = CostModel(
    whole=2.0**-30,
    elimination=2.0**-28,
    substitution=2.0**-29,
    reduced=2.0**-25,
    latency=2.0**-16,
    gap=2.0**-19,
    bandwidth=2.0**31,
    overhead=2.0**-10,
)


MODELS = {"own": TRUE, "shared": replace(TRUE, numbers=2)}


def case(kind, rows, lines, ranks):
    stages = MODELS[kind].stages(rows, lines, ranks)
    return {
        "matrix": kind,
        "rows": rows,
        "lines": lines,
        "ranks": ranks,
        "seconds": sum(stages.values()),
        "stages": stages | {"comparison": 2.0**-10} if ranks > 1 else {},
    }


def found(ranks):
    octets = [8, 2**24]
    return {
        "cases": [
            case(kind, rows, lines, p)
            for p in (1, ranks)
            for rows, lines in {(4096, 1024): 0, (512, 8192): 0, (512, 256): 0, (2048 * p, 1024): 0}
            for kind in MODELS
        ],
        "messages": [
            {
                "ranks": ranks,
                "bytes": b,
                "seconds": TRUE.latency + (ranks - 1) * (TRUE.gap + b / TRUE.bandwidth),
            }
            for b in octets
        ],
        "gap": TRUE.gap,
    }


@pytest.mark.parametrize("ranks", [2, 4])
def test_fit_finds_the_constants_of_a_machine(ranks):
    args = SimpleNamespace(device="cpu", dtype="float64", calls=1)

    record = distributed.record_of(args, found(ranks))

    for kind, model in MODELS.items():
        assert record["models"][kind] == pytest.approx(asdict(model), rel=1e-2)
    for entry in record["cases"]:
        assert entry["model"] == pytest.approx(entry["seconds"], rel=1e-2)


def test_picture_of_scaling():
    pytest.importorskip("matplotlib")
    from benchmarks.documents import distributed_picture

    cpu = found(2) | {"models": {"own": asdict(TRUE)}}
    gpu = json.loads(distributed_picture.GPU.read_text())
    solvers = json.loads(distributed_picture.SOLVERS.read_text())
    axes = distributed_picture.picture(cpu, gpu, solvers).axes

    assert len(axes) == 3
    efficiency = [100 * case["efficiency"] for case in solvers["cases"] if case["ranks"] > 1]
    assert [bar.get_width() for bar in axes[2].patches] == pytest.approx(efficiency)
    lines = {line.get_label(): line for line in axes[0].lines}
    measured = lines["CPU, measured"]
    assert list(measured.get_xdata()) == [1, 2]
    modelled = lines["CPU, model"].get_ydata()[:2]
    assert list(measured.get_ydata()) == pytest.approx(list(modelled))
    published = lines["NVIDIA H200, PaScaL_TDMA 2.1, published"]
    assert list(published.get_ydata()) == pytest.approx([22.3, 21.4, 17.9], abs=0.05)


def test_table_of_calls_with_a_group():
    kinds = (*group_calls.KINDS, "graph")
    times = {name: {"host": k * 1e-6, "seconds": 100e-6} for k, name in enumerate(kinds, 1)}
    size = {"dtype": "float32", "lines": 256, "rows": 512, "ranks": 2}
    record = {"cases": [size | times], "gpu": {"name": "a GPU"}, "versions": {"torch": "2"}}

    (table,) = group_calls.tables(record)

    head, _, row, *_ = table.markdown()
    assert [cell.strip(" `") for cell in head.split("|")[5:-1]] == list(kinds)
    assert [cell.strip() for cell in row.split("|")[1:5]] == ["float32", "512", "256", "2"]
    assert [int(cell) for cell in row.split("|")[5:-1]] == [*range(1, len(kinds)), 100]


@pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")
@pytest.mark.slow
def test_small_benchmark_writes_a_record(tmp_path):
    pytest.importorskip("mpi4py")
    path = tmp_path / "record.json"
    options = "--calls", "2", "--json", str(path)
    status, _, errors = finished(
        started(sys.executable, "-m", "pysolvers", "bench", "distributed", *options)
    )

    assert status == 0, errors
    record = json.loads(path.read_text())
    assert {entry["ranks"] for entry in record["cases"]} == {1, 2}
    assert record["models"].keys() == {"own", "shared"}
    for entry in record["cases"]:
        if entry["ranks"] == 2:
            assert entry["exchange"] == "ends"
            assert entry["stages"].keys() == STAGES
            assert sum(entry["stages"].values()) <= 1.01 * entry["seconds"]
            assert entry["seconds"] > entry["alone"] > 0
    systems = {entry["system"] for entry in record["systems"] if entry["ranks"] == 2}
    assert systems == {"recurrence", "recurrence, slow", "five diagonals", "blocks of 2"}
    assert all(entry["seconds"] > 0 and entry["alone"] > 0 for entry in record["systems"])


def test_jobs_that_fail_do_not_lose_the_cases_of_the_others(monkeypatch):
    """A job that prints values before it fails does not lose these either."""
    outputs = {2: (1, ""), 3: (1, '[{"ranks": 3}, {"failed": "why"}]')}

    def run(command, **_options):
        status, out = outputs[int(command[-1])]
        return SimpleNamespace(returncode=status, stdout=out)

    monkeypatch.setattr(ranks_of_jobs, "launch_command", lambda count, _: ["mpiexec", str(count)])
    monkeypatch.setattr(ranks_of_jobs.subprocess, "run", run)

    found = ranks_of_jobs.cases_of_jobs("lines", ((count, []) for count in (2, 3)))

    cases, failed = ranks_of_jobs.without_failures(found)
    assert cases == [{"ranks": 3}]
    assert failed == ["lines, ranks 2: exit status 1", "why"]
    with pytest.raises(RuntimeError, match="no case was measured: why"):
        ranks_of_jobs.without_failures([{"failed": "why"}])


def test_case_that_raises_becomes_a_failure(capsys):
    def measure():
        raise ValueError("too few GPUs")

    assert ranks_of_jobs.guarded("float64", measure) == {
        "failed": "float64: ValueError: too few GPUs"
    }
    assert "too few GPUs" in capsys.readouterr().err
    assert ranks_of_jobs.guarded("float64", lambda: {"seconds": 1.0}) == {"seconds": 1.0}
