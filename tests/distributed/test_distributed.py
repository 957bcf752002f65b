"""Split arrays under MPI: each test starts a job of a few ranks and looks at how it ends."""

import signal
import time

import pytest
from covering import slow
from mpi_job import LAUNCHER, finished, is_mpich, start

pytest.importorskip("mpi4py", reason="needs the extra 'mpi'")

pytestmark = pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")


LINES = ("solve", "factor", "steps", "masks", "recurrence", "blocks")
SOLVERS = ("heat", "poisson", "relaxation", "transport", "new_solver", "conformance")
ON_DEVICES = ("device_unsplit", "device_poisson", "device", "repeats")
SUBJECTS = (*LINES, *SOLVERS, *ON_DEVICES, "unsplit")


# What a rank with two neighbours decides: parts of lines, halos and the levels of a slab. 2 ranks
# make all other checks, as every rank computes the references of its checks.
OF_THREE = {
    "solve": "every_remainder,parts_of_more_rows_than_the_ends_reach,unequal_parts,row_exchanges,"
    "rows_at_the_ends_decide,ends_in_all_rows_in_one_pass,rows_inside_decide_in_one_pass,long_lines",
    "factor": "every_remainder,parts_of_more_rows_than_the_ends_reach,shared_matrices",
    "masks": "masks_of_solves_and_factors,row_sums_of_any_condition,"
    "diffusion_of_cut_columns_with_masks",
    "recurrence": "recurrences_along_every_axis,against_a_loop,values_that_grow,many_lines,"
    "values_that_only_exact_sums_keep_small,few_rows_are_computed_again,"
    "values_that_are_not_finite_spread_as_in_a_loop",
    "blocks": "blocks_along_every_axis,bands_along_every_axis,ends_of_every_reach,"
    "unequal_parts_and_parts_of_one_row,matrices_that_lines_share,"
    "dominant_and_definite_systems_are_eliminated_in_parts,factors_along_every_axis",
    "heat": "fields_of_one_process,kernels_with_a_halo_for_several_steps,windows_that_shrink,"
    "long_steps,last_part_of_one_node,unsplit_steps_have_the_bits_of_one_process",
    "poisson": "fields_of_one_process",
    "relaxation": "bits_of_one_process,plates",
    "transport": "fields_of_one_process,fields_by_halo,the_halo_is_exchanged,"
    "steps_that_are_too_long_for_the_halo",
}
# Both neighbours of a rank are one rank.
OF_TWO = (
    "solve/every_remainder,row_exchanges,rows_at_the_ends_decide",
    "factor/every_remainder",
    "masks/masks_of_solves_and_factors,row_sums_of_any_condition",
    *(f"{subject}/not,{checks}" for subject, checks in OF_THREE.items()),
    "blocks/unequal_parts_and_parts_of_one_row",
    *("steps", "new_solver", "conformance", "device", "repeats"),
)
# Two parts that are not at the ends are neighbours.
OF_FOUR = (
    "solve/every_remainder,unequal_parts,row_exchanges,rows_at_the_ends_decide,sub_communicators",
    "factor/every_remainder",
    "masks/row_sums_of_any_condition,row_sums_of_tiny_size",
    "recurrence/against_a_loop,unequal_parts_and_parts_of_one_row",
    "blocks/against_lapack,unequal_parts_and_parts_of_one_row",
    "few",
)


def jobs():
    """The checks on 1 to 4 ranks; in the default run those of the solvers on one number of ranks.

    The parts of 3 ranks are of different lengths. A job has several subjects, as its ranks take
    longer to start than for most of them; a slow one has one subject, with all combinations of its
    cases: a minute and more for some.
    """
    of_three = (f"{subject}/{checks}" for subject, checks in OF_THREE.items())
    yield from (
        (1, LINES),
        (2, OF_TWO),
        (3, (*of_three, "device_unsplit", "device_poisson")),
        (4, OF_FOUR),
    )
    for subject in SUBJECTS:
        for ranks in (1, 2, 3, 4):
            yield pytest.param(ranks, (subject, "every"), marks=pytest.mark.slow)


@pytest.mark.parametrize(("ranks", "subjects"), list(jobs()))
def test_ranks(ranks, subjects):
    status, out, errors = finished(start(ranks, "../support/run_checks.py", *subjects))

    assert status == 0, errors
    for subject in {words.split("/")[0] for words in subjects} - {"every"}:
        made = sum(words.split("/")[0] == subject for words in subjects)
        assert out.count(f": {subject} all checks passed") == ranks * made


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


@pytest.fixture(scope="module")
def started_jobs():
    """The jobs of `job` that run, by the test that needs them, and their folders."""
    jobs = {}
    yield jobs
    for process, _ in jobs.values():  # of tests that another worker makes
        process.kill()
        process.communicate()


@pytest.fixture
def job(request, started_jobs, tmp_path_factory):
    """Status, errors and folder of a job of faults: ranks, and arguments of ranks_faults.py.

    Such a job waits for most of its time: that of the next test starts together with it.
    """
    here = [
        item
        for item in request.session.items
        if item.path == request.node.path and "job" in item.fixturenames
    ]
    number = here.index(request.node)
    for item in here[number : number + 2]:
        if item.nodeid not in started_jobs:
            ranks, *arguments = item.callspec.params["job"]
            folder = tmp_path_factory.mktemp("job")
            process = start(ranks, "ranks_faults.py", folder, *arguments)
            started_jobs[item.nodeid] = process, folder
    process, folder = started_jobs.pop(request.node.nodeid)
    status, _, errors = finished(process, 30)
    return status, errors, folder


def faults(*jobs):
    """Return a mark that gives a test some jobs of faults."""
    return pytest.mark.parametrize(
        "job", jobs, indirect=True, ids=lambda job: " ".join(map(str, job))
    )


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


@faults((3, "sizes"))
def test_messages_of_other_sizes_are_named(job):
    status, _, folder = job

    assert status != 0
    for rank, words in enumerate(found_by_ranks(folder, 3)):
        kind, ranks, text, seconds = words["sizes"]
        assert (kind, ranks) == ("DistributedError", "(0, 2)" if rank == 1 else "(1,)")
        assert "it makes another call" in text
        assert float(seconds) < 10


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ((3, "midway", "ends"), "it raised RuntimeError: no data"),
        ((3, "midway", "goes on"), "it makes another call"),
    ],
    indirect=["job"],
)
def test_error_in_the_middle_of_a_run_is_named_at_once(job, reason):
    status, errors, folder = job

    assert status != 0
    assert ("RuntimeError: no data" in errors) == ("raised" in reason)
    found = found_by_ranks(folder, 3)
    for words in (found[0], found[2]):
        kind, ranks, text, seconds = words["run"]
        assert (kind, ranks) == ("DistributedError", "(1,)")
        assert f"no message from rank 1: {reason}" in text
        assert float(seconds) < 10  # the timeout is 20 s
        assert "cannot be used after" in words["next"][2]
    if "raised" not in reason:
        assert found[1]["run"][0] == "RuntimeError"
        assert found[1]["next"][0] == "DistributedError"


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ((3, "kernel", "ends"), "it raised RuntimeError: no data"),
        slow((3, "kernel", "exit"), "it has ended"),
    ],
    indirect=["job"],
)
def test_rank_that_ends_while_a_kernel_waits_for_it_is_named_at_once(job, reason):
    status, _, folder = job

    assert status != 0
    for words in found_by_ranks(folder, 3)[::2]:
        kind, ranks, text, seconds = words["run"]
        assert (kind, ranks) == ("DistributedError", "(1,)")
        assert f"no message from rank 1: {reason}" in text
        assert float(seconds) < 10  # the timeout is 20 s
        assert "cannot be used after" in words["next"][2]


@pytest.mark.parametrize(
    ("job", "reasons"),
    [
        ((2, "nccl", "silent"), ["by NCCL: waited 1 s"] * 2),
        slow((2, "nccl", "failing"), ["by NCCL: waited 1 s", "by NCCL: remote process exited"]),
        ((2, "nccl", "ends"), ["from rank 1: it raised RuntimeError: no data", None]),
    ],
    indirect=["job"],
)
def test_message_by_nccl_that_does_not_arrive_ends_the_wait_in_time(job, reasons):
    status, _, folder = job

    assert status != 0
    for rank, (words, reason) in enumerate(zip(found_by_ranks(folder, 2), reasons, strict=True)):
        if reason is None:
            continue
        kind, ranks, text, seconds = words["run"]
        assert (kind, ranks) == ("DistributedError", "(1,)" if "raised" in reason else "()")
        assert f"rank {rank} of 2 gets no message {reason}" in text
        assert float(seconds) < 10
        assert words["next"][0] == "DistributedError"
        assert "cannot be used after" in words["next"][2]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ((3, "lose", "stop"), "waited 2 s"),
        ((3, "lose", "exit"), "it has ended"),
        slow((3, "lose", "leave"), "it has ended"),
    ],
    indirect=["job"],
)
def test_rank_that_is_missing_is_named_by_the_others_in_time(job, reason):
    status, _, folder = job

    assert status != 0
    for rank in (0, 2):
        first, second = notes(folder, rank)
        assert first[0] == "(1,)"
        assert float(first[1]) < 10  # the timeout is 20 s, and 2 s for a rank that stopped
        assert f"no message from rank 1: {reason}" in first[2]
        assert "cannot be used after" in second[2]


def test_rank_that_ended_after_its_part_of_a_call_is_not_missing(survived):
    assert survived[0]["first"] == ["True", "True"]


@pytest.mark.slow  # between two calls; in a run it is killed below
@faults((4, "lose", "kill"))
def test_rank_that_is_killed_ends_the_job_in_time(job):
    assert job[0] != 0  # the launcher may end the other ranks before they notice


@faults((3, "die"))
def test_rank_that_is_killed_in_a_run_ends_the_job_in_time(job):
    status, _, folder = job

    assert status != 0
    for words in found_by_ranks(folder, 3):  # of those that the launcher left to themselves
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
