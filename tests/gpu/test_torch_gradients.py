"""`pysolvers.torch` on a device: the CPU's numbers, streams, graphs, compilation and memory."""

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers import BackendError, Neumann  # noqa: E402
from pysolvers.torch import (  # noqa: E402
    FastPoisson,
    linear_recurrence,
    solve_block_tridiagonal,
    solve_pentadiagonal,
    solve_tridiagonal,
    theta_step,
    whittaker,
)

SHAPES = {"own": [(300, 65)] * 4, "shared": [(65,), (65,), (65,), (300, 65)]}


def system(shapes, dtype=torch.float64, dominance=3.0):
    generator = torch.Generator().manual_seed(3)
    made = [torch.rand(shape, dtype=dtype, generator=generator) - 0.5 for shape in shapes]
    made[1] = made[1] + dominance
    return made


def gradients(operands, **options):
    """Return the solution and the gradients of the sum of its squares, in host memory."""
    leaves = [a.detach().requires_grad_() for a in operands]
    x = solve_tridiagonal(*leaves, **options)
    found = torch.autograd.grad(x.abs().square().sum(), leaves)
    return [a.detach().cpu() for a in (x, *found)]


def nearly(found, expected, most=500):
    for one, other in zip(found, expected, strict=True):
        bound = most * torch.finfo(other.dtype).eps * max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one, other, rtol=0, atol=bound)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_operator_passes_the_checks_of_torch():
    operands = [a.cuda().requires_grad_() for a in system([(3, 5)] * 4)]
    operator = torch.ops.pysolvers.solve_tridiagonal.default
    torch.library.opcheck(operator, (*operands, False, None, "nan", None))


def test_both_passes_use_the_current_stream():
    operands = [a.cuda() for a in system(SHAPES["own"])]
    expected = gradients(operands)  # and whatever is done once
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    was_ahead = False
    for seconds in (1, 5):  # a loaded host can take longer than a second
        with torch.cuda.stream(stream):
            torch.cuda._sleep(seconds * 1_500_000_000)
            delayed = [a + 0 for a in operands]  # not ready before the stream has slept
            leaves = [a.requires_grad_() for a in delayed]
            x = solve_tridiagonal(*leaves)
            found = torch.autograd.grad(x.square().sum(), leaves)
            was_ahead = was_ahead or not stream.query()
        stream.synchronize()
        nearly([a.detach().cpu() for a in (x, *found)], expected)
        if was_ahead:
            break
    assert was_ahead


def test_both_passes_in_a_graph():
    operands = [a.cuda() for a in system(SHAPES["own"])]
    leaves = [a.clone().requires_grad_() for a in operands]

    def step():
        x = solve_tridiagonal(*leaves)
        return x, *torch.autograd.grad(x.square().sum(), leaves)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()
    with torch.no_grad():
        leaves[3].mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    nearly([a.detach().cpu() for a in results], gradients([*operands[:3], 2 * operands[3]]))


# torch records an empty graph before the first one, and warns of it.
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("case", ["own", "shared"])
def test_compiled(case, mode):
    torch._dynamo.reset()
    operands = [a.cuda() for a in system(SHAPES[case])]
    leaves = [a.clone().requires_grad_() for a in operands]
    compiled = torch.compile(solve_tridiagonal, fullgraph=True, mode=mode)
    for _ in range(3):  # records a graph, and replays it
        torch.compiler.cudagraph_mark_step_begin()
        x = compiled(*leaves)
        found = torch.autograd.grad(x.square().sum(), leaves)
        results = [a.detach().cpu() for a in (x, *found)]
    nearly(results, gradients(operands))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("theta", [0.6, 1.0])
@pytest.mark.parametrize(("shape", "axis"), [((300, 64), -1), ((65, 300), 0), ((3, 65, 7), 1)])
def test_theta_steps(shape, axis, theta, periodic, dtype):
    """In one pass each way, also for a graph of the reverse pass, and without one pass."""
    lower, diag, upper, u = system([shape] * 4, dtype)
    source = system([(shape[axis],)] * 2, dtype)[0]
    generator = torch.Generator().manual_seed(4)
    cotangent = torch.rand(shape, dtype=dtype, generator=generator)
    shared = [a.movedim(axis, -1).reshape(-1, shape[axis])[0] for a in (lower, -diag, upper)]
    number = torch.tensor(0.3, dtype=torch.float64, device="cuda")
    for operands in ([lower, -diag, upper, u], [*shared, u], [lower, -diag, upper, u, source]):
        answers = []
        for device, dt in (("cuda", 0.3), ("cpu", 0.3), ("cuda", number)):
            *matrix, v, s = operands if len(operands) == 5 else [*operands, None]
            given = [a.to(device).requires_grad_() for a in (*matrix, v)]
            s = s if s is None else s.to(device).requires_grad_()
            options = {"dt": dt, "theta": theta, "axis": axis, "periodic": periodic}
            x = theta_step(*given, source=s, **options)
            leaves = given if s is None else [*given, s]
            for create_graph in (False, True):
                found = torch.autograd.grad(
                    x, leaves, cotangent.to(device), retain_graph=True, create_graph=create_graph
                )
                answers.append([a.detach().cpu() for a in (x, *found)])
        for answer in answers:
            nearly(answer, answers[2], 5000)


def refuse_a_second_call(monkeypatch):
    """Let the reverse pass of a step fail if it makes its products in a second call."""
    monkeypatch.setattr("pysolvers.torch._theta.step_products", None)


# Along the last axis parts of a warp, warps, blocks and a cluster of tiles; along the first one
# chunks of all lengths.
TILES = ((50, 1), (40, 16), (300, 33), (37, 200), (300, 512), (19, 511), (40, 1000), (3, 9000))
CHUNKS = ((16, 37), (20, 64), (75, 96), (100, 64), (129, 100), (400, 48), (1500, 64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [(shape, -1) for shape in TILES] + [(shape, 0) for shape in CHUNKS]
)
def test_gradients_of_a_step_in_one_call(monkeypatch, shape, axis, periodic, dtype):
    """Also of systems that need row exchanges, with and without the test for these."""
    lower, diag, upper, u = system([shape] * 4, dtype)
    cotangent = system([shape] * 2, dtype)[0]
    systems_last = (diag - 4).movedim(axis, -1)  # diagonals of decaying equations
    cases = [(0.5, None), (1.0, False), (0.7, None)]
    for theta, pivot in cases:
        decaying = systems_last.clone()
        if pivot is None:
            decaying[2, shape[axis] // 2] = 0.95 / (0.3 * theta)  # 0.05 in the solve
        given = [lower, decaying.movedim(-1, axis).contiguous(), upper, u]
        answers = []
        for device in ("cpu", "cuda"):
            leaves = [a.to(device).requires_grad_() for a in given]
            options = {"theta": theta, "axis": axis, "periodic": periodic, "pivot": pivot}
            x = theta_step(*leaves, dt=0.3, **options)
            with monkeypatch.context() as patched:
                if device == "cuda":
                    refuse_a_second_call(patched)
                found = torch.autograd.grad(x, leaves, cotangent.to(device))
            answers.append([a.detach().cpu() for a in (x, *found)])
        nearly(*answers[::-1], 3000)


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_singular_steps(monkeypatch, axis):
    refuse_a_second_call(monkeypatch)
    zero = torch.zeros(40, 40, dtype=torch.float64, device="cuda")
    diag = zero - 1
    diag.movedim(axis, -1)[7] = 4  # 1 - theta dt diag, the matrix of the solve, is 0 exactly
    leaves = [a.clone().requires_grad_() for a in (zero, diag, zero, zero + 1)]
    found = torch.autograd.grad(theta_step(*leaves, dt=0.5, axis=axis).sum(), leaves)
    for gradient in found:
        is_nan = gradient.movedim(axis, -1).isnan()
        assert is_nan[7].all()
        assert not is_nan[:7].any()
        assert not is_nan[8:].any()


def test_theta_steps_do_not_wait():
    operands = [a.cuda() for a in system(SHAPES["own"])]
    operands[1] = -operands[1]

    def work():
        leaves = [a.requires_grad_() for a in (b + 0 for b in operands)]
        x = theta_step(*leaves, dt=0.3)
        return torch.autograd.grad(x, leaves, torch.ones_like(x))

    work()  # whatever is done once
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
        torch.cuda._sleep(1_500_000_000)
        work()
        assert not stream.query()
    stream.synchronize()


def test_the_reverse_pass_keeps_x_and_the_matrix_only():
    operands = [a.cuda().requires_grad_() for a in system([(20000, 64)] * 4)]
    size = operands[0].nbytes
    solve_tridiagonal(*operands)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = solve_tridiagonal(*operands)
    assert torch.cuda.memory_allocated() - before <= 1.01 * size
    del x


def test_vmap_keeps_a_matrix_shared():
    lower, diag, upper, rhs = (a.cuda() for a in system([(64,)] * 3 + [(20000, 64)]))
    batched = torch.vmap(solve_tridiagonal, in_dims=(None, None, None, 0))
    expected = solve_tridiagonal(lower, diag, upper, rhs)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = batched(lower, diag, upper, rhs)
    assert torch.cuda.max_memory_allocated() - before <= 1.01 * rhs.nbytes
    torch.testing.assert_close(x, expected, rtol=0, atol=0)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")
def test_a_device_that_is_not_the_current_one():
    operands = system(SHAPES["own"])
    nearly(gradients([a.to("cuda:1") for a in operands]), gradients(operands))


def poisson_loss(solver, f, **options):
    u = solver.solve(f, **options)
    return u, (
        u * torch.linspace(1, 2, 40, dtype=u.real.dtype, device=u.device)
    ).abs().square().sum()


def test_both_passes_of_poisson_use_the_current_stream():
    solver = FastPoisson((33, 40), 1 / 64, boundary={"x": 0.0, "y": Neumann(0.5)})
    given = torch.rand(33, 40, dtype=torch.float64, device="cuda")
    f = given.clone().requires_grad_()
    u, loss = poisson_loss(solver, f)
    expected = [a.detach().cpu() for a in (u, *torch.autograd.grad(loss, f))]
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_500_000_000)
        late = (given + 0).requires_grad_()
        u, loss = poisson_loss(solver, late)
        found = [u, *torch.autograd.grad(loss, late)]
        assert not stream.query()
    stream.synchronize()
    nearly([a.detach().cpu() for a in found], expected)


# torch records an empty graph before the first one, and warns of it.
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_poisson(mode):
    torch._dynamo.reset()
    solver = FastPoisson((33, 40), 1 / 64, boundary={"x": 1.0, "y": Neumann(0.5)})
    f = torch.rand(33, 40, dtype=torch.float64, device="cuda").requires_grad_()

    def both(compute):
        u, loss = compute(solver, f)
        return [a.detach().cpu() for a in (u, *torch.autograd.grad(loss, f))]

    expected = both(poisson_loss)
    compiled = torch.compile(poisson_loss, fullgraph=True, mode=mode)
    for _ in range(3):  # records a graph, and replays it
        torch.compiler.cudagraph_mark_step_begin()
        found = both(compiled)
    nearly(found, expected)


def test_the_reverse_pass_of_poisson_keeps_nothing():
    solver = FastPoisson((1025, 1025), 1 / 1024, boundary={"x": 0.0, "y": Neumann()})
    f = torch.rand(1025, 1025, dtype=torch.float64, device="cuda").requires_grad_()
    solver.solve(f)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    u = solver.solve(f)
    assert torch.cuda.memory_allocated() - before <= 1.01 * u.nbytes


def as_on_the_cpu(function, operands, most=1e5):
    """Compare a value and the gradients of the sum of its squares with those of the CPU."""

    def both(leaves):
        leaves = [a.requires_grad_() for a in leaves]
        x = function(*leaves)
        return [x, *torch.autograd.grad(x.square().sum(), leaves)]

    found = both([a.detach().cuda() for a in operands])
    assert all(a.is_cuda for a in found)
    expected = both([a.detach().clone() for a in operands])
    nearly([a.detach().cpu() for a in found], [a.detach() for a in expected], most)


def draw(*shape, size=1.0):
    generator = torch.Generator().manual_seed(sum(shape))
    return size * (2 * torch.rand(shape, dtype=torch.float64, generator=generator) - 1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5000), -1), ((700, 40), 0), ((1, 40_000), 1)])
def test_recurrences(shape, axis, order, reverse):
    operands = [draw(*shape, size=0.45), draw(*shape[::-1]).reshape(shape)]
    if order == 2:
        operands.append(draw(*shape, size=0.4))

    def compute(a, b, second=None):
        return linear_recurrence(a, b, second=second, axis=axis, reverse=reverse)

    as_on_the_cpu(compute, operands)
    as_on_the_cpu(compute, [torch.tensor(0.5, dtype=torch.float64), operands[1]], 1e7)


@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("side", [0, 2, 3, 4])
def test_blocks_and_bands(side, pivot):
    """One of the systems needs row exchanges by default."""
    if side == 0:
        operands = [draw(70, 9, size=0.2) + (k == 2) for k in range(5)] + [draw(9, 70).T]
        solve = solve_pentadiagonal
    else:
        operands = [draw(70, 9, side, side, size=0.2 / side) for _ in range(3)]
        operands[1] = operands[1] + torch.eye(side)
        operands.append(draw(70, 9, side, 2))
        solve = solve_block_tridiagonal
        if pivot is not False:
            operands[1][0, 4] *= 1e-3
    as_on_the_cpu(lambda *a: solve(*a, pivot=pivot), operands, 1e7)


def test_blocks_that_no_device_solves_and_singular_ones():
    one = torch.eye(5, dtype=torch.float64, device="cuda")
    with pytest.raises(BackendError, match="blocks of 5 rows"):
        solve_block_tridiagonal(one, 4 * one, one, torch.ones(6, 5, 1, device="cuda"))
    diag = torch.ones(3, 9, dtype=torch.float64, device="cuda")
    diag[1] = 0
    x = solve_pentadiagonal(0.0, 0.0, diag, 0.0, 0.0, torch.ones_like(diag))
    assert x[1].isnan().all()
    assert x[[0, 2]].isfinite().all()


def test_smoothers_and_periodic_bands():
    y = draw(40, 100)
    lam = torch.tensor(7.0, dtype=torch.float64)
    for order in (1, 2):
        as_on_the_cpu(lambda y, lam, o=order: whittaker(y, lam, order=o), [y, lam], 1e7)
    bands = [draw(40, 100, size=0.2) + (k == 2) for k in range(5)]
    as_on_the_cpu(lambda *a: solve_pentadiagonal(*a, periodic=True), [*bands, y], 1e7)
