"""The benchmark of gradients on the CPU at small size, with JAX, and its record."""

import json

import command_line
import pytest

from benchmarks import gradients_cpu


@pytest.mark.slow  # a quick run of a benchmark
def test_quick_run_writes_the_record(tmp_path, capsys, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setattr(gradients_cpu, "SMALL", (((5, 4), -1),))
    path = tmp_path / "record.json"
    options = ["--quick", "--libraries", "jax", "--json", str(path)]
    assert command_line.main(["bench", "gradients_cpu", *options]) == 0

    record = json.loads(path.read_text())
    assert [case["call"] for case in record["cases"]] == ["solve", "theta step"]
    for case in record["cases"]:
        assert (case["library"], case["shape"], case["axis"]) == ("jax", [5, 4], -1)
        assert all(seconds >= 0 for seconds in case["seconds"].values())
    assert "with gradients, ms" in capsys.readouterr().out


def test_missed_bars_are_named():
    case = {"library": "torch", "call": "solve", "shape": [5, 4]}
    times = ({"forward": 1.0, "gradients": 3.9}, {"forward": 1.0, "gradients": 4.1})
    record = {"cases": [case | {"seconds": seconds} for seconds in times]}
    (text,) = gradients_cpu.missed(record)
    assert text == "torch, solve, 5 × 4: value and gradients 4.10 times the value, bar 4"
