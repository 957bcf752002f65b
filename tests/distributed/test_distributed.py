"""Split arrays under MPI: each test starts a job of a few ranks and looks at how it ends."""

import signal
import time

import pytest
from mpi_job import LAUNCHER, finished, is_mpich, start

pytest.importorskip("mpi4py", reason="needs the extra 'mpi'")

pytestmark = pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")


SOLVERS = (
    "heat",
    "poisson",
    "relaxation",
    "transport",
    "new_solver",
    "conformance",
    "device_unsplit",
    "device_poisson",
)
SUBJECTS = ("solve", "factor", "steps", *SOLVERS, "device", "repeats", "unsplit")


# Of lines, what depends on the number of ranks: with 2 ranks both neighbours are one rank, with 4
# ranks two parts that are not at the ends are neighbours.
OF_TWO = (
    "solve/every_axis_and_dtype,every_remainder,row_exchanges,rows_at_the_ends_decide,"
    "matrices_that_are_not_finite,singular_systems,exchanges_of_a_call,"
    "an_error_of_one_rank_in_its_elimination,closed_groups_free_their_communicators",
    "factor/every_remainder,singular_matrices,arrays_on_a_device",
)
OF_FOUR = (
    "solve/every_remainder,unequal_parts,row_exchanges,rows_at_the_ends_decide,sub_communicators",
    "factor/every_remainder",
    "few",
)
# What a rank with two neighbours changes in the halos of these are halos of other solvers, too; the
# fewer the ranks, the less their references cost, which every rank computes.
OF_TWO_OR_MORE = ("steps", "new_solver", "conformance")


def jobs():
    """The checks on 1 to 4 ranks; in the default run those of the solvers on one number of ranks.

    Of 3 ranks one has two neighbours, and their parts are of different lengths. A job has several
    subjects, as its ranks take longer to start than for most of them; a slow one has one subject,
    with all combinations of its cases: a minute and more for some.
    """
    lines = ("solve", "factor", "steps")
    yield from (
        (1, lines),
        (2, (*OF_TWO, *OF_TWO_OR_MORE, "device", "repeats")),
        (3, ("solve", "factor", *(name for name in SOLVERS if name not in OF_TWO_OR_MORE))),
        (4, OF_FOUR),
    )
    for subject in SUBJECTS:
        for ranks in (1, 2, 3, 4):
            yield pytest.param(ranks, (subject, "every"), marks=pytest.mark.slow)


@pytest.mark.parametrize(("ranks", "subjects"), list(jobs()))
def test_ranks(ranks, subjects):
    status, out, errors = finished(start(ranks, "../support/run_checks.py", *subjects))

    assert status == 0, errors
    for subject in subjects:
        if subject != "every":
            assert out.count(f": {subject.split('/')[0]} all checks passed") == ranks


def notes(folder, rank):
    """Return the lines that a rank wrote, split into words."""
    path = folder / str(rank)
    return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []


def found_by_ranks(folder, ranks):
    """Return, for each rank, {name of a call: the words of its note}."""
    return [{name: words for name, *words in notes(folder, rank)} for rank in range(ranks)]


@pytest.fixture(scope="module")
def survived(tmp_path_factory):
    """What three ranks noted in one job of all faults after which they end without an error."""
    folder = tmp_path_factory.mktemp("survived")
    status, _, errors = finished(start(3, "ranks_faults.py", folder, "survived"), 60)

    assert status == 0, errors
    return found_by_ranks(folder, 3)


def test_ranks_that_differ_raise_on_all_ranks(survived):
    found = survived
    assert [words["after"] for words in found] == [["True"]] * 3
    for name, text in {
        "dtype": "dtype must be the same on all ranks",
        "shape": "rank 0 has (3, ':') and rank 1 has (2, ':')",
        "periodic": "rank 0 has False and rank 1 has True",
        "pivot": "rank 0 has None and rank 1 has True",
        "policy": "rank 0 has 'raise' and rank 1 has 'nan'",
        "split": "shape must be the same on all ranks",
    }.items():
        for words in found:
            assert words[name][:2] == ["DistributedError", "(1,)"]
            assert text in words[name][2]
    for name, text in {"method": "method must be one of", "short": "lower: only rank 0"}.items():
        assert found[1][name][0] == "ValueError"
        assert text in found[1][name][2]
        for words in found[::2]:
            assert words[name][:2] == ["DistributedError", "(1,)"]
            assert f"rank 1 raised ValueError: {text}" in words[name][2]
    for words in found:
        assert words["empty"][0] == "ValueError"
        assert "the ranks hold 14, 0, 13" in words["empty"][2]


def test_options_of_solvers_that_differ_raise_on_all_ranks(survived):
    found = [{n: words for n, words in each.items() if " " in n} for each in survived]
    for name in found[0]:
        expected = name.split()[1] + " must be the same on all ranks"
        for rank, words in enumerate(found):
            kind, ranks, text, _ = words[name]
            if name == "heat value":
                assert kind == ("ValueError" if rank == 1 else "DistributedError")
                assert "dt must be positive" in text
            else:
                assert (kind, ranks) == ("DistributedError", "(1,)"), name
                assert expected in text
    assert len(found[0]) == 7


def test_messages_of_other_sizes_are_named(tmp_path):
    status, *_ = finished(start(3, "ranks_faults.py", tmp_path, "sizes"), 60)

    assert status != 0
    for rank, words in enumerate(found_by_ranks(tmp_path, 3)):
        kind, ranks, text, seconds = words["sizes"]
        assert (kind, ranks) == ("DistributedError", "(0, 2)" if rank == 1 else "(1,)")
        assert "it makes another call" in text
        assert float(seconds) < 10


@pytest.mark.parametrize(
    ("how", "reason"),
    [("ends", "it raised RuntimeError: no data"), ("goes on", "it makes another call")],
)
def test_error_in_the_middle_of_a_run_is_named_at_once(how, reason, tmp_path):
    status, _, errors = finished(start(3, "ranks_faults.py", tmp_path, "midway", how), 60)

    assert status != 0
    assert ("RuntimeError: no data" in errors) == (how == "ends")
    found = found_by_ranks(tmp_path, 3)
    for words in (found[0], found[2]):
        kind, ranks, text, seconds = words["run"]
        assert (kind, ranks) == ("DistributedError", "(1,)")
        assert f"no message from rank 1: {reason}" in text
        assert float(seconds) < 10  # the timeout is 20 s
        assert "cannot be used after" in words["next"][2]
    if how == "goes on":
        assert found[1]["run"][0] == "RuntimeError"
        assert found[1]["next"][0] == "DistributedError"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("ends", "it raised RuntimeError: no data"),
        pytest.param("exit", "it has ended", marks=pytest.mark.slow),
    ],
)
def test_rank_that_ends_while_a_kernel_waits_for_it_is_named_at_once(how, reason, tmp_path):
    status, *_ = finished(start(3, "ranks_faults.py", tmp_path, "kernel", how), 60)

    assert status != 0
    for words in found_by_ranks(tmp_path, 3)[::2]:
        kind, ranks, text, seconds = words["run"]
        assert (kind, ranks) == ("DistributedError", "(1,)")
        assert f"no message from rank 1: {reason}" in text
        assert float(seconds) < 10  # the timeout is 20 s
        assert "cannot be used after" in words["next"][2]


@pytest.mark.parametrize(
    ("how", "reasons"),
    [
        ("silent", ["by NCCL: waited 1 s"] * 2),
        pytest.param(
            "failing",
            ["by NCCL: waited 1 s", "by NCCL: remote process exited"],
            marks=pytest.mark.slow,
        ),
        ("ends", ["from rank 1: it raised RuntimeError: no data", None]),
    ],
)
def test_message_by_nccl_that_does_not_arrive_ends_the_wait_in_time(how, reasons, tmp_path):
    status, *_ = finished(start(2, "ranks_faults.py", tmp_path, "nccl", how), 60)

    assert status != 0
    for rank, (words, reason) in enumerate(zip(found_by_ranks(tmp_path, 2), reasons, strict=True)):
        if reason is None:
            continue
        kind, ranks, text, seconds = words["run"]
        assert (kind, ranks) == ("DistributedError", "(1,)" if how == "ends" else "()")
        assert f"rank {rank} of 2 gets no message {reason}" in text
        assert float(seconds) < 10
        assert words["next"][0] == "DistributedError"
        assert "cannot be used after" in words["next"][2]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("stop", "waited 2 s"),
        ("exit", "it has ended"),
        pytest.param("leave", "it has ended", marks=pytest.mark.slow),
    ],
)
def test_rank_that_is_missing_is_named_by_the_others_in_time(how, reason, tmp_path):
    begun = time.monotonic()
    status, *_ = finished(start(3, "ranks_faults.py", tmp_path, "lose", how), 60)

    assert status != 0
    assert time.monotonic() - begun < 30
    for rank in (0, 2):
        first, second = notes(tmp_path, rank)
        assert first[0] == "(1,)"
        assert float(first[1]) < 10  # the timeout is 20 s, and 2 s for a rank that stopped
        assert f"no message from rank 1: {reason}" in first[2]
        assert "cannot be used after" in second[2]


def test_rank_that_ended_after_its_part_of_a_call_is_not_missing(survived):
    assert survived[0]["first"] == ["True", "True"]


@pytest.mark.slow  # between two calls; in a run it is killed below
def test_rank_that_is_killed_ends_the_job_in_time(tmp_path):
    begun = time.monotonic()
    status, *_ = finished(start(4, "ranks_faults.py", tmp_path, "lose", "kill"), 60)

    assert status != 0  # the launcher may end the other ranks before they notice
    assert time.monotonic() - begun < 30


def test_rank_that_is_killed_in_a_run_ends_the_job_in_time(tmp_path):
    begun = time.monotonic()
    status, *_ = finished(start(3, "ranks_faults.py", tmp_path, "die"), 60)

    assert status != 0
    assert time.monotonic() - begun < 30
    for words in found_by_ranks(tmp_path, 3):  # of those that the launcher left to themselves
        kind, _, text, _ = words.get("run", ("DistributedError", "", "no message from rank", ""))
        assert kind == "DistributedError"
        assert "no message from rank" in text


def test_interrupt_ends_all_ranks(tmp_path):
    job = start(2, "ranks_faults.py", tmp_path, "loop")
    try:
        while not (tmp_path / "0").exists() and job.poll() is None:
            time.sleep(0.1)
        time.sleep(0.5)
        job.send_signal(signal.SIGINT)
        status, *_ = finished(job, 30)
    finally:
        job.kill()

    assert status != 0
    if is_mpich():  # other launchers end the ranks by another signal
        assert ["interrupted"] in notes(tmp_path, 0)
