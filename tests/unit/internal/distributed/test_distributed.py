"""Groups of one process and slabs; tests/distributed has those of several processes."""

import copy
import pickle
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import RowSums
from pysolvers._runtime.lines import Shape
from pysolvers._runtime.targets import find_target
from pysolvers.distributed import Group, Slab, _group, _launch
from pysolvers.distributed._ends import Matrices
from pysolvers.distributed._exchange import exchange_arrays
from pysolvers.distributed._group import ONE_PROCESS
from pysolvers.distributed._halo import faces_of, slab_nodes
from pysolvers.distributed._launch import launch_command, launched
from pysolvers.heat._halo import plan_halo
from pysolvers.papers.logp1993 import CostModel


@pytest.fixture
def group(monkeypatch):
    """A group of this process, also where mpi4py is installed."""
    monkeypatch.setattr(_group, "_world", lambda: None)
    return Group()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("more", [0, 1, 5, 6])
def test_parts_of_a_slab_follow_each_other(size, more):
    length = 2 * size + more
    parts = [Slab(0).part(length, rank, size) for rank in range(size)]
    lengths = [part.stop - part.start for part in parts]

    assert [k for part in parts for k in range(length)[part]] == list(range(length))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1


def test_slabs_refuse_what_they_cannot_split():
    with pytest.raises(ValueError, match="an axis of 3 cannot be split over 4 ranks"):
        Slab(0).part(3, 0, 4)
    with pytest.raises(ValueError, match="rank must be in"):
        Slab(0).part(10, 4, 4)
    with pytest.raises(TypeError, match="axis"):
        Slab(0.5)
    assert Slab(-1).of(3) == 2
    with pytest.raises(np.exceptions.AxisError, match="split"):
        Slab(3).of(3)


def eliminated(matrix, *, is_short=False):
    """Eliminate the rows of a rank between others; return coefficients, l, u, and their rows."""
    rows = matrix[1].shape[-1]
    matrices = Matrices(
        find_target("cpu", None, {}, operation="test", leader="rhs"),
        [matrix[0][..., 1:] if is_short else matrix[0], *matrix[1:]],
        Shape(matrix[1].shape, matrix[1].ndim - 1, (is_short, False, False)),
        (0 if is_short else 1, 3),
        periodic=False,
    )

    def solve(rows, rhs, x):
        diagonals, lacks_one = matrices.diagonals(rows)
        assert lacks_one == (is_short and rows.start == 0)
        if lacks_one:
            diagonals[0] = np.insert(diagonals[0], 0, 0, axis=-1)
        x[...] = np.linalg.solve(oracle.dense(*diagonals), rhs[..., None])[..., 0]
        return True

    coefficients, spikes = matrices.eliminate(solve)
    full = np.zeros((2, *matrices.batch, rows - 1))
    for values, spike in zip(full, spikes, strict=True):
        if spike is not None:
            values[..., spike.rows] = spike.values
    return coefficients, full, [spike and spike.rows for spike in spikes]


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize(
    ("ratio", "fewest", "most"), [(0.05, 64, 64), (3.0, 126, 175), (1e6, 499, 499)]
)
def test_ends_reach_as_many_rows_as_the_matrix_lets_them(ratio, fewest, most, is_short, rng):
    scale = rng.uniform(0.5, 2, (2, 500))
    matrix = lower, _, upper = [entry * scale for entry in _diffusion(ratio)]
    found, (left, right), (of_left, of_right) = eliminated(matrix, is_short=is_short)
    inside = oracle.dense(*(a[:, :-1] for a in matrix))
    sides = np.zeros((2, 2, 499))
    sides[0, :, 0], sides[1, :, -1] = 0 if is_short else lower[:, 0], upper[:, -2]
    expected = [np.linalg.solve(inside, side[..., None])[..., 0] for side in sides]

    np.testing.assert_allclose([left, right], expected, rtol=1e-13, atol=1e-31)
    assert fewest <= of_right.stop - of_right.start <= most
    assert of_right.stop == 499
    assert of_left is None if is_short else of_left.start == 0
    assert is_short or fewest <= of_left.stop <= most
    np.testing.assert_array_equal(found.l, left[:, 0])
    np.testing.assert_array_equal(found.u, right[:, 0])
    np.testing.assert_array_equal(found.a, -lower[:, -1] * left[:, -1])
    np.testing.assert_array_equal(found.b, matrix[1][:, -1] - lower[:, -1] * right[:, -1])
    np.testing.assert_array_equal(found.c, upper[:, -1])


def test_one_slow_system_decides_for_all():
    for ratios in ([0.05, 0.05], [0.05, 1e4]):
        matrix = [np.outer(a, np.ones(300)) for a in (*_diffusion(np.array(ratios)),)]
        _, _, rows = eliminated(matrix)
        if ratios[1] > 1:
            assert rows == [slice(0, 299)] * 2
        else:
            assert rows[0].stop == 299 - rows[1].start == 64


def _diffusion(ratio):
    return -ratio, 1 + 2 * ratio, -ratio


def test_group_of_one_process_solves_as_without(group, rng):
    for axis in (0, 1):
        for make in (oracle.dominant, oracle.general):
            operands = make(rng, (7, 7))
            options = {"axis": axis, "periodic": True}
            expected = pysolvers.solve_tridiagonal(*operands, **options)
            factor = pysolvers.factor_tridiagonal(*operands[:3], **options)
            for along in (0, 1):
                split = {"group": group, "split": Slab(along)}
                x, info = pysolvers.solve_tridiagonal(
                    *operands, **options, **split, return_info=True
                )
                own = pysolvers.factor_tridiagonal(*operands[:3], **options, **split)

                np.testing.assert_array_equal(x, expected)
                np.testing.assert_array_equal(own.solve(operands[3]), factor.solve(operands[3]))
                assert (info.ranks, info.exchange) == (1, "none")
                assert own.solve(operands[3], trans="T").shape == (7, 7)


def test_row_sums_in_a_group(group, rng):
    lower, sums, upper = -rng.random((5, 7)), rng.random((5, 7)), -rng.random((5, 7))
    split = {"group": group, "split": Slab(0)}
    expected = pysolvers.factor_tridiagonal(lower, RowSums(sums), upper).solve(sums)
    factor = pysolvers.factor_tridiagonal(lower, RowSums(sums), upper, **split)
    np.testing.assert_array_equal(factor.solve(sums), expected)
    with pytest.raises(ValueError, match=r"RowSums.s is -.* at batch index \(0,\), row 0"):
        pysolvers.factor_tridiagonal(lower, RowSums(-sums), upper, **split)
    with pytest.raises(ValueError, match=r"made from RowSums: pass RowSums\(s\)"):
        factor.refactor(lower, sums, upper)
    x = pysolvers.solve_tridiagonal(lower, RowSums(sums), upper, sums, **split)
    np.testing.assert_allclose(x, expected, rtol=1e-13)


def test_group_and_split_go_together(group):
    ones = np.ones(3)
    for options in ({"group": group}, {"split": Slab(0)}, {"group": "all", "split": 0}):
        with pytest.raises(TypeError, match="group and split must be given together"):
            pysolvers.solve_tridiagonal(ones, 4 * ones, ones, ones, **options)
        with pytest.raises(TypeError, match="group and split must be given together"):
            pysolvers.factor_tridiagonal(ones, 4 * ones, ones, **options)


def test_arguments_of_a_group():
    with pytest.raises(TypeError, match="communicator of mpi4py"):
        Group("world")
    for timeout in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="timeout must be positive"):
            Group(timeout=timeout)
    for links in ("host", 1, None):
        with pytest.raises(TypeError, match=r"links must be a sequence of str, \('host',\)"):
            Group(links=links)
    for links, rule in (
        ((), "at least one of 'peers', 'nccl', 'host'"),
        (("host", "mpi"), "among 'peers', 'nccl', 'host', got 'mpi'"),
        (("nccl", "nccl"), "no name twice"),
    ):
        with pytest.raises(ValueError, match=f"links must (be|have) {rule}"):
            Group(links=links)
    assert Group(links=["nccl", "host"]).links == ("nccl", "host")


def without_launcher(monkeypatch):
    for variables in _launch._LAUNCHED:
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)


def test_processes_of_a_launcher_need_mpi4py(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(_group, "import_module", missing)
    without_launcher(monkeypatch)
    assert Group().size == 1
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(pysolvers.BackendError, match=r"started 4 processes.*extra 'mpi'"):
        Group()


def test_size_and_rank_come_from_the_launcher(monkeypatch):
    without_launcher(monkeypatch)
    assert launched() == (1, 0)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "6")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "5")
    assert launched() == (6, 5)


def test_launch_uses_the_launcher_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(_launch, "find_spec", lambda name: name)
    other = tmp_path / "other"
    for folder in (tmp_path, other):
        folder.mkdir(exist_ok=True)
        (folder / "mpiexec").write_text("")
        (folder / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    expected = [str(tmp_path / "mpiexec"), "-n", "3", sys.executable, "script.py"]
    assert launch_command(3, ["script.py"]) == expected
    (tmp_path / "mpiexec").unlink()
    assert launch_command(3, [])[0] == str(other / "mpiexec")
    (other / "mpiexec").unlink()
    with pytest.raises(pysolvers.BackendError, match=r"mpiexec is neither in .*extra 'mpi'"):
        launch_command(3, [])


def test_launch_needs_mpi4py(monkeypatch):
    monkeypatch.setattr(_launch, "find_spec", lambda name: None)
    monkeypatch.setattr(_launch.shutil, "which", lambda name, path=None: "/bin/mpiexec")
    with pytest.raises(pysolvers.BackendError, match=r"mpi4py is not installed.*extra 'mpi'"):
        launch_command(2, [])


MODEL = CostModel(
    whole=2.0,
    elimination=5.0,
    substitution=3.0,
    reduced=7.0,
    latency=11.0,
    gap=13.0,
    bandwidth=0.5,
    overhead=17.0,
    rounds=2,
    numbers=3,
)


def test_cost_of_the_stages():
    assert MODEL.seconds(12, 4, 1) == 2 * 48
    assert MODEL.stages(12, 4, 3, itemsize=2) == {
        "overhead": 17,
        "elimination": 5 * 16,
        "exchange": 2 * 11 + 2 * (2 * 13 + 3 * 2 * 4 / 0.5),
        "reduced systems": 7 * 3 * 4,
        "substitution": 3 * 16,
    }
    shares = MODEL.stages(12, 4, 3, itemsize=2, reduced_on="shares")
    assert shares["reduced systems"] == 7 * 4
    assert shares["exchange"] == pytest.approx(3 * 11 + 2 * (3 * 13 + (3 + 2) * 2 * 4 / 3 / 0.5))
    assert sum(shares.values()) == MODEL.seconds(12, 4, 3, itemsize=2, reduced_on="shares")


def test_arguments_of_a_cost_model():
    with pytest.raises(ValueError, match="latency must not be negative, got -1"):
        replace(MODEL, latency=-1.0)
    with pytest.raises(ValueError, match="reduced must not be negative, got nan"):
        replace(MODEL, reduced=float("nan"))
    with pytest.raises(ValueError, match="bandwidth must be positive"):
        replace(MODEL, bandwidth=0.0)
    with pytest.raises(TypeError, match="whole must be a number"):
        replace(MODEL, whole="fast")
    with pytest.raises(ValueError, match="rows must be at least ranks = 4, got 3"):
        MODEL.seconds(3, 1, 4)
    with pytest.raises(ValueError, match="reduced_on must be 'all' or 'shares', got 'none'"):
        MODEL.seconds(8, 1, 4, reduced_on="none")
    with pytest.raises(ValueError, match="lines must be at least 1"):
        MODEL.seconds(8, 0, 4)


def test_objects_that_stay_in_their_process(group, rng):
    *matrix, _ = oracle.dominant(rng, (2, 5))
    factor = pysolvers.factor_tridiagonal(*matrix, group=group, split=Slab(1))
    heat = pysolvers.HeatADI((9, 8), spacing=0.1, dt=0.1, group=group, split=Slab(0), boundary=0.0)
    poisson = pysolvers.FastPoisson((9, 8), spacing=0.1, boundary=0.0, group=group, split=Slab(0))
    for one in (group, factor, heat, poisson):
        for duplicate in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                duplicate(one)
    assert "rank 0 of 1" in repr(factor)
    assert repr(group) == "<Group rank 0 of 1, transport none>"


class Interrupted:
    """A transport whose exchange is interrupted."""

    rank, size, name = 0, 2, "mpi"

    def exchange(self, sends, receives, timeout, tag):
        raise KeyboardInterrupt

    def abandon(self):
        """Called at the end of the process."""


def test_interrupt_of_an_exchange_ends_the_use_of_a_group(group):
    group._transport, group.size = Interrupted(), 2
    with pytest.raises(KeyboardInterrupt):
        group.objects("test", None)
    with pytest.raises(pysolvers.DistributedError, match="after test: rank 0 of 2 was interrupted"):
        group.objects("test", None)


@pytest.mark.parametrize("ratio", [0.02, 0.3, 1.0, 8.0, 90.0])
def test_wrong_side_of_a_window_is_below_rounding_behind_its_layers(ratio):
    """One axis of Peaceman and Rachford's step, on a window and on a line that is longer."""
    plan = plan_halo(ratio, 200, 200, "peaceman-rachford", "float16")
    reach = plan.depth + 60

    def left(layers):
        """Return the change of the nodes of the rank by an insulated side."""
        step = {}
        for nodes in (layers + 40, reach + 300):
            a = -ratio / 2 * (np.eye(nodes, k=1) + np.eye(nodes, k=-1) - 2 * np.eye(nodes))
            a[[0, -1], [1, -2]] *= 2
            step[nodes] = np.linalg.solve(np.eye(nodes) + a, np.eye(nodes) - a)
        small, whole = (np.linalg.matrix_power(one, plan.steps) for one in step.values())
        change = whole[-40:].copy()  # of any data: row sums of the difference
        change[:, -len(small) :] -= small[-40:]
        return np.abs(change[:30]).sum(axis=1).max()

    rounding = float(np.finfo("float16").eps)
    assert left(plan.depth) < rounding / 32
    assert left(plan.depth // 3) > rounding


@pytest.mark.parametrize(
    "solver",
    [
        partial(pysolvers.FastPoisson, (8, 8), 1.0, boundary=0.0),
        partial(pysolvers.HeatADI, (8, 8), spacing=1.0, dt=0.1, boundary=0.0),
    ],
)
def test_groups_of_other_types_are_refused(solver):
    with pytest.raises(TypeError, match="group"):
        solver(group=3, split=Slab(0))


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_faces_of_a_halo_join_the_same_nodes(rng, size, periodic):
    """What a rank sends to a neighbour are the nodes that the neighbour holds of it, in order."""
    total = 40
    ends = [total * rank // size for rank in range(size + 1)]
    cut = [periodic or 0 < rank < size for rank in range(size + 1)]  # before each rank
    low, high = (rng.integers(1, 4, size + 1) for _ in range(2))
    low[-1], high[-1] = low[0], high[0]
    # Rank r holds low[r] nodes of the rank before, and high[r + 1] of the next one.
    sent, received = {}, {}
    for rank in range(size):
        group = SimpleNamespace(rank=rank, size=size)
        held = int(low[rank] * cut[rank]), int(high[rank + 1] * cut[rank + 1])
        given = int(high[rank] * cut[rank]), int(low[rank + 1] * cut[rank + 1])
        nodes = np.arange(ends[rank] - held[0], ends[rank + 1] + held[1]) % total
        for face in faces_of(group, 1, len(nodes), held, given):
            first, at = face.sent
            assert first == slice(None)
            sent[rank, face.rank, 1 - face.end] = nodes[at].tolist()
            received[face.rank, rank, face.end] = nodes[face.received[1]].tolist()
            assert len(nodes[face.received[1]]) == held[face.end]

    assert sent == received
    assert len(sent) == 2 * sum(cut[1:size]) + 2 * periodic
    if not periodic and size > 1:
        group = SimpleNamespace(rank=0, size=size)
        (face,) = faces_of(group, 0, 12, (0, 2))
        assert (face.sent, face.received) == ((slice(8, 10),), (slice(10, 12),))


@pytest.mark.parametrize(("size", "axis"), [(1, 0), (2, -1), (3, 1), (5, 0)])
def test_nodes_of_a_slab_and_its_halo(size, axis):
    shape, depth = (17, 16), 2
    split, numbers, own = Slab(axis), np.arange(shape[axis]), []
    for rank in range(size):
        nodes = slab_nodes(SimpleNamespace(rank=rank, size=size), split, shape, depth)
        held = numbers[nodes.held]
        np.testing.assert_array_equal(held[nodes.own], numbers[nodes.part])
        assert nodes.part == split.part(shape[axis], rank, size)
        assert len(held) - len(held[nodes.own]) == depth * ((rank > 0) + (rank < size - 1))
        assert len(nodes.faces) == (rank > 0) + (rank < size - 1)
        own += numbers[nodes.part].tolist()
    assert own == numbers.tolist()
    with pytest.raises(ValueError, match="every rank needs at least 9 nodes along axis 0, got 8"):
        slab_nodes(SimpleNamespace(rank=1, size=2), Slab(0), shape, 9)


def test_parts_of_arrays_are_exchanged(rng):
    """Of one process, which sends parts to itself: with gaps, without, and several."""
    source, target = rng.random((2, 6, 7))
    expected = target.copy()
    expected[1:3], expected[:, 5] = source[4:6], source[:, 0]
    one = slice(None)

    sends = {0: [(slice(4, 6),), (one, slice(0, 1))]}
    receives = {0: [(slice(1, 3),), (one, slice(5, 6))]}
    exchange_arrays(ONE_PROCESS, "test", source, sends, target, receives)

    np.testing.assert_array_equal(target, expected)
    exchange_arrays(ONE_PROCESS, "test", source, {0: [(one,)]}, target, {0: [(one,)]})
    np.testing.assert_array_equal(target, source)


def test_a_group_of_one_process_is_copied():
    for other in (copy.deepcopy(ONE_PROCESS), pickle.loads(pickle.dumps(ONE_PROCESS))):
        assert (other.rank, other.size, other.transport) == (0, 1, "none")
        np.testing.assert_array_equal(other.allgather("test", np.arange(3)), [[0, 1, 2]])
        assert other.gather("test", np.arange(3), 0).tolist() == [0, 1, 2]
