"""Records have one form, a name and a reader; every benchmark has a help."""

import argparse
import json
import re
from datetime import date

import command_line
import pytest

from benchmarks import record as records
from benchmarks.command import BENCHMARKS, PAPERS
from benchmarks.documents.tables import ROOT, TABLES
from benchmarks.options import add_options, shape
from benchmarks.sources import device_hash, source_hash

SCHEMA = ["benchmark", "date", "sources", "machine", "gpu", "versions", "load", "settings"]
COMMITTED = sorted(records.RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_record_has_the_form_of_all(path):
    record = json.loads(path.read_text())

    assert list(record)[: len(SCHEMA)] == SCHEMA
    assert re.fullmatch(r"[0-9a-f]{64}", record["sources"])
    date.fromisoformat(record["date"])
    if record["benchmark"] == "gpu record":
        assert record["bench"]["cases"] and path.stem == records.slug(record["gpu"]["name"])
    else:
        assert record["cases"]
        assert path.stem.startswith(record["benchmark"] + "-")
        name = record["gpu"]["name"] if record["gpu"] else record["machine"]["cpu"]
        assert path.stem.startswith(f"{record['benchmark']}-{records.slug(name).split('-')[0]}")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_record_has_a_reader(path):
    readers = [ROOT / name for name in TABLES] + list((ROOT / "benchmarks/documents").iterdir())

    assert any(path.name in reader.read_text() for reader in readers if reader.is_file())


@pytest.mark.parametrize("gpu", [False, True])
def test_new_record_has_the_form_of_all_and_goes_where_it_is_told(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(records.machine, "gpu", lambda: {"name": "NVIDIA H200"})
    parser = argparse.ArgumentParser()
    add_options(parser, "quick", "gpu")
    args = parser.parse_args(["--record", "--json", str(tmp_path / "new" / "one.json")])

    record = records.Measurement("some", ("scipy",), gpu=gpu).record([1], {"n": 2}, more=3)
    records.write(args, record, count=2)

    assert list(record) == [*SCHEMA, "more", "cases"]
    assert record["sources"] == (device_hash() if gpu else source_hash())
    assert record["versions"].keys() == {"python", "pysolvers", "numpy", "scipy"}
    (named,) = (tmp_path / "results").iterdir()
    assert named.name == f"some-{'h200-x2' if gpu else records.machine_name()}.json"
    for path in (named, tmp_path / "new" / "one.json"):
        assert json.loads(path.read_text()) == record


@pytest.mark.parametrize(
    "words", [("bench", name) for name in BENCHMARKS] + [("reproduce", name) for name in PAPERS]
)
def test_every_benchmark_and_paper_has_a_help(words, capsys):
    if words[1] == "jax_cpu":
        pytest.importorskip("jax")
    if words[1] == "documents":
        pytest.importorskip("matplotlib")

    with pytest.raises(SystemExit) as stop:
        command_line.main([*words, "--help"])

    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert f"pysolvers {words[0]} {words[1]}" in said
    has_record = words[0] == "bench" and words[1] not in ("documents", "gpu_profile")
    assert ("--json FILE" in said and "--record" in said) == has_record


def test_common_options_have_one_meaning(capsys):
    parser = argparse.ArgumentParser()
    add_options(parser, "sizes", "threads", samples=41, device={"choices": ("cpu", "cuda:1")})

    args = parser.parse_args(["--sizes", "24x30", "6x5x7", "--device", "cuda:1"])
    assert args.sizes == [(24, 30), (6, 5, 7)]
    assert (args.threads, args.samples, args.device) == (None, 41, "cuda:1")
    assert (args.json, args.record) == (None, False)
    assert shape("64") == (64,)
    for wrong in (["--sizes", "0x4"], ["--threads", "-1"], ["--device", "cuda"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "an integer of at least 1, got 0" in capsys.readouterr().err
