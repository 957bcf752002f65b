"""The benchmark of ParabolicADI at small size, and its record."""

import json

import command_line
import pytest

from benchmarks import parabolic


@pytest.mark.slow  # a quick run of a benchmark
def test_quick_run_has_a_share_for_each_plate(tmp_path, capsys):
    path = tmp_path / "record.json"
    assert (
        command_line.main(["bench", "parabolic", "--quick", "--runs", "1", "--json", str(path)])
        == 0
    )

    found = json.loads(path.read_text())["cases"]
    plates = [case for case in found if case["name"].split(",")[0] != "Heston"]
    assert [case["share"] is None for case in plates] == [False] * 6
    assert len([case for case in found if case["name"] == "Heston"]) == 2
    assert all(case["seconds"] > 0 for case in found)
    assert "modified-craig-sneyd" in capsys.readouterr().out


def test_arrays_and_a_second_sweep_move_more_words():
    def count(scheme, arrays=False, mixed=False):
        return parabolic.words(scheme, has_arrays=arrays, is_mixed=mixed)

    one = count("douglas")
    # One of u and one of F, four of the solves in place, three of the sum; on a device those of
    # u, the change, the solution and its F in one pass.
    assert one == 9
    assert parabolic.words("douglas", has_arrays=False, is_mixed=False, on_device=True) == 8
    assert count("douglas", arrays=True) == one + 12
    two = count("modified-craig-sneyd")
    assert two == 18
    assert count("modified-craig-sneyd", arrays=True, mixed=True) == two + 26
