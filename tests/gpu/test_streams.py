"""Work in the order of streams: nothing waits that need not, and nothing comes too early."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import gpu_libraries
import numpy as np
import oracle
import pytest

import pysolvers

SHAPE = (64, 500)


def agree(x, expected):
    np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-12)


@pytest.fixture
def problem(dominant):
    """Dominant systems, and their solutions."""
    hosts = dominant(SHAPE)
    return hosts, pysolvers.solve_tridiagonal(*hosts)


@pytest.mark.parametrize("policy", ["ignore", "nan"])
def test_current_stream_is_used_and_not_waited_for(streaming, problem, policy):
    hosts, expected = problem
    values = [streaming.array(host) for host in hosts]
    arrays = [streaming.array(np.ones(SHAPE)) for _ in hosts]
    out = streaming.array(np.zeros(SHAPE))
    options = {"on_singular": policy, "out": out}
    pysolvers.solve_tridiagonal(*values, **options)  # whatever is done once
    stream = streaming.stream()

    with streaming.current(stream), gpu_libraries.delayed(streaming.address(stream)):
        for array, value in zip(arrays, values, strict=True):
            streaming.assign(array, value)
        pysolvers.solve_tridiagonal(*arrays, **options)
        returned_early = not streaming.is_done(stream)
        twice = out + out

    stream.synchronize()
    agree(streaming.get(twice), 2 * expected)
    assert returned_early


@pytest.mark.parametrize("given", ["object", "address"])
def test_given_stream_waits_for_the_producer(streaming, problem, given):
    hosts, expected = problem
    values = [streaming.array(host) for host in hosts]
    arrays = [streaming.array(np.ones(SHAPE)) for _ in hosts]
    producer, worker = streaming.stream(), streaming.stream()
    stream = worker if given == "object" else streaming.address(worker)

    with streaming.current(producer), gpu_libraries.delayed(streaming.address(producer)):
        for array, value in zip(arrays, values, strict=True):
            streaming.assign(array, value)
        x = pysolvers.solve_tridiagonal(*arrays, on_singular="ignore", stream=stream)
        returned_early = not streaming.is_done(producer)
        worker.synchronize()

    agree(streaming.get(x), expected)
    assert returned_early


def test_factor_works_on_the_current_stream(streaming, problem):
    hosts, expected = problem
    values = [streaming.array(host) for host in hosts]
    arrays = [streaming.array(np.ones(SHAPE)) for _ in hosts]
    out = streaming.array(np.zeros(SHAPE))
    stream = streaming.stream()

    with streaming.current(stream), gpu_libraries.delayed(streaming.address(stream)):
        for array, value in zip(arrays, values, strict=True):
            streaming.assign(array, value)
        factor = pysolvers.factor_tridiagonal(*arrays[:3], on_singular="ignore")
        factor.solve(arrays[3], out=out)

    stream.synchronize()
    agree(streaming.get(out), expected)


@pytest.mark.parametrize("other_stream", [False, True])
def test_factors_of_blocks_are_used_and_not_waited_for(streaming, rng, other_stream):
    blocks = [rng.uniform(-1, 1, (70, 3, 3)) / 12 for _ in range(3)]
    blocks[1] += np.eye(3)
    rhs = rng.standard_normal((70, 3, 1))
    expected = pysolvers.solve_block_tridiagonal(*blocks, rhs)
    values = [streaming.array(host) for host in (*blocks, rhs)]
    first = [np.broadcast_to(np.eye(3), block.shape) for block in blocks]
    first.append(np.zeros(rhs.shape))
    arrays, spare = ([streaming.array(host) for host in first] for _ in range(2))
    options = {"pivot": False, "on_singular": "ignore"}
    # Whatever is done once: to load a kernel, also one that copies arrays, waits for the device.
    for array, value in zip(spare, values, strict=True):
        streaming.assign(array, value)
    pysolvers.factor_block_tridiagonal(*values[:3], **options)
    stream, other = streaming.stream(), streaming.stream()

    with streaming.current(stream), gpu_libraries.delayed(streaming.address(stream)):
        for array, value in zip(arrays, values, strict=True):
            streaming.assign(array, value)
        factor = pysolvers.factor_block_tridiagonal(*arrays[:3], **options)
        returned_early = not streaming.is_done(stream)
        if not other_stream:
            x = factor.solve(arrays[3])
            determinant = factor.logdet()
    if other_stream:
        with streaming.current(other):
            x = factor.solve(values[3])
            determinant = factor.logdet()
        other.synchronize()

    stream.synchronize()
    agree(streaming.get(x), expected)
    agree(streaming.get(determinant), pysolvers.factor_block_tridiagonal(*blocks).logdet())
    assert returned_early


def test_factors_of_blocks_outlive_their_stream(streaming, rng):
    """Of more streams than those for which small blocks of memory are kept."""
    blocks = [rng.uniform(-1, 1, (70, 3, 3)) / 12 for _ in range(3)]
    blocks[1] += np.eye(3)
    rhs = rng.standard_normal((70, 3, 1))
    expected = pysolvers.solve_block_tridiagonal(*blocks, rhs)
    *matrix, right = (streaming.array(host) for host in (*blocks, rhs))
    for _ in range(40):
        stream = streaming.stream()
        with streaming.current(stream):
            factor = pysolvers.factor_block_tridiagonal(*matrix, pivot=False, on_singular="ignore")
        stream.synchronize()
        del stream
        agree(streaming.get(factor.solve(right)), expected)
        del factor


def test_numba_arrays_bring_their_stream(problem):
    cuda = pytest.importorskip("numba.cuda")
    hosts, expected = problem
    stream = cuda.stream()
    _, address = stream.__cuda_stream__()
    with gpu_libraries.delayed(address):
        arrays = [cuda.to_device(host, stream=stream) for host in hosts]
        x = pysolvers.solve_tridiagonal(*arrays, on_singular="ignore")

    agree(x.copy_to_host(stream=stream), expected)


def test_jax_results_may_be_used_at_once(problem):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    hosts, expected = problem
    arrays = [jax.device_put(host) for host in hosts]
    big = jax.device_put(np.eye(4096))

    @jax.jit
    def late(rhs, matrix):
        for _ in range(30):
            matrix = matrix @ matrix
        return rhs + (matrix[0, 0] - 1)

    late(arrays[3], big).block_until_ready()
    x = late(arrays[3], big)
    for _ in range(3):
        x = pysolvers.solve_tridiagonal(*arrays[:3], x, on_singular="ignore")
    total = x + 0
    del arrays, x

    for _ in range(2):
        expected = pysolvers.solve_tridiagonal(*hosts[:3], expected)
    agree(np.asarray(total), expected)


def test_graph_of_torch_is_replayed_with_new_data(problem):
    torch = pytest.importorskip("torch")
    hosts, expected = problem
    lower, diag, upper, rhs = (torch.from_numpy(host).cuda() for host in hosts)
    out, repeated, scalar = (torch.zeros_like(rhs) for _ in range(3))
    factor = pysolvers.factor_tridiagonal(lower, diag, upper)

    def work():
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, out=out, on_singular="nan")
        factor.solve(rhs, out=repeated)
        pysolvers.solve_tridiagonal(-1.0, 4.0, -1.0, rhs, out=scalar, on_singular="ignore")

    work()  # whatever is done once
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    for factor_of_rhs in (3.0, -0.5):
        rhs.copy_(factor_of_rhs * torch.from_numpy(hosts[3]).cuda())
        graph.replay()
        torch.cuda.synchronize()
        agree(out.cpu().numpy(), factor_of_rhs * expected)
        agree(repeated.cpu().numpy(), factor_of_rhs * expected)
        other = pysolvers.solve_tridiagonal(-1.0, 4.0, -1.0, factor_of_rhs * hosts[3])
        agree(scalar.cpu().numpy(), other)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_graph_of_cupy_is_replayed_with_new_data(dominant, method, axis):
    cupy = pytest.importorskip("cupy")
    hosts = dominant(SHAPE)
    arrays = [cupy.asarray(host) for host in hosts]
    out = cupy.zeros(SHAPE)
    options = {"axis": axis, "method": method, "on_singular": "nan", "out": out}
    pysolvers.solve_tridiagonal(*arrays, **options)  # whatever is done once
    cupy.cuda.get_current_stream().synchronize()  # the other stream does not wait for it
    stream = cupy.cuda.Stream(non_blocking=True)

    with stream:
        stream.begin_capture()
        pysolvers.solve_tridiagonal(*arrays, **options)
        graph = stream.end_capture()
        arrays[3] *= 2
        graph.launch(stream)
        stream.synchronize()

    agree(out.get(), 2 * pysolvers.solve_tridiagonal(*hosts, axis=axis))


def test_threads_with_streams_of_their_own(streaming, rng):
    def solve(seed):
        hosts = oracle.dominant(np.random.default_rng(seed), SHAPE)
        stream = streaming.stream()
        with streaming.current(stream):
            arrays = [streaming.array(host) for host in hosts]
            for _ in range(20):
                x = pysolvers.solve_tridiagonal(*arrays)
            stream.synchronize()
            return streaming.get(x), pysolvers.solve_tridiagonal(*hosts)

    with ThreadPoolExecutor(8) as pool:
        for x, expected in pool.map(solve, range(16)):
            agree(x, expected)


def test_threads_with_numpy_arrays_and_one_factor(problem):
    hosts, expected = problem
    factor = pysolvers.factor_tridiagonal(*hosts[:3], device="cuda")

    def solve(scale):
        for _ in range(20):
            x = factor.solve(scale * hosts[3])
            y = pysolvers.solve_tridiagonal(*hosts[:3], scale * hosts[3], device="cuda")
        return x, y, scale * expected

    with ThreadPoolExecutor(8) as pool:
        for x, y, scaled in pool.map(solve, range(1, 17)):
            agree(x, scaled)
            agree(y, scaled)


FORK = """
import os, warnings
import numpy as np
from pysolvers import BackendError, solve_tridiagonal

warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork next to threads
rhs = np.ones((10, 10))
first = solve_tridiagonal(-1.0, 4.0, -1.0, rhs, device="cuda")
child = os.fork()
if child == 0:
    try:
        solve_tridiagonal(-1.0, 4.0, -1.0, rhs, device="cuda")
    except BackendError as error:
        host = solve_tridiagonal(-1.0, 4.0, -1.0, rhs)
        os._exit(0 if "fork" in str(error) and np.allclose(host, first) else 3)
    os._exit(4)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
again = solve_tridiagonal(-1.0, 4.0, -1.0, rhs, device="cuda")
print(code, np.array_equal(again, first))
"""


def test_forked_child_is_told_why_not():
    run = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False
    )
    assert (run.returncode, run.stdout) == (0, "0 True\n"), run.stderr


def test_times_of_copies_and_of_solving_are_told_apart(problem):
    hosts, expected = problem
    before = [host.copy() for host in hosts]

    x, info = pysolvers.solve_tridiagonal(*hosts, device="cuda", return_info=True)

    agree(x, expected)
    assert set(info.seconds) == {"copy", "solve"}
    assert all(seconds > 0 for seconds in info.seconds.values())
    for host, old in zip(hosts, before, strict=True):
        np.testing.assert_array_equal(host, old)


@pytest.mark.parametrize("axis", [0, 1])
def test_large_numpy_arrays_go_there_and_back(rng, axis):
    hosts = oracle.dominant(rng, (1500, 2000))

    x = pysolvers.solve_tridiagonal(*hosts, axis=axis, device="cuda")

    agree(x, pysolvers.solve_tridiagonal(*hosts, axis=axis))
