"""Batches and systems of more than 2**31 unknowns, and rows that lie so far apart."""

import pytest

import pysolvers

pytestmark = pytest.mark.slow

FAR = 2**31 + 7

# x of row r of system s, and what a matrix with -1 next to its diagonal makes of it.
FORMULAS = """
__device__ float x_of(long long r, long long s) { return (float)((5 * r + 3 * s) % 11) - 5; }
__device__ float diag_of(long long r, long long s) { return 4 + (r + s) % 2; }
"""
RHS = """
y = (r > 0 ? -x_of(r - 1, s) : 0) + (own ? diag_of(r, s) : 4) * x_of(r, s)
    + (r < n - 1 ? -x_of(r + 1, s) : 0)
"""

# shape, axis, whether every system has a matrix of its own, options
CASES = {
    "many rows of two": ((FAR, 2), 1, True, {}),
    "many columns of two": ((2, FAR), 0, True, {}),
    "columns": ((3, 2**30 + 5), 0, True, {}),
    "middle axis": ((2, 5, 2**28 + 3), 1, True, {}),
    "longer columns": ((700, 2**22 + 3), 0, True, {}),
    "rows": ((2**22 + 3, 700), 1, True, {}),
    "one system": ((2**31 - 2,), 0, True, {}),
    "one matrix, rows": ((2**23 + 3, 300), 1, False, {}),
    "one matrix, columns": ((300, 2**23 + 3), 0, False, {}),
    "one matrix, panels": ((300, 2**23 + 16), 0, False, {}),
    "one matrix, one row": ((FAR, 1), 1, False, {}),
    "pivoted rows of two": ((FAR, 2), 1, True, {"method": "pivoted"}),
    "pivoted columns": ((700, 2**22 + 3), 0, True, {"method": "pivoted"}),
    "one pivoted system": ((2**31 - 2,), 0, True, {"method": "pivoted"}),
    "a thread a column": ((2, FAR), 0, True, {"method": "thomas"}),
    "reduced columns": ((2, FAR), 0, True, {"method": "pcr"}),
    "reduced system": ((2**31 - 2,), 0, True, {"method": "cr"}),
}


@pytest.fixture
def cupy():
    """CuPy, with its memory given back around the test."""
    module = pytest.importorskip("cupy")
    module.get_default_memory_pool().free_all_blocks()
    yield module
    module.get_default_memory_pool().free_all_blocks()


def require_room(cupy, size):
    """Skip where the device has less memory left than so many bytes."""
    if cupy.cuda.runtime.memGetInfo()[0] < size + 2**30:
        pytest.skip("the device has too little memory")


class Problem:
    """Arrays of a case, made on the device."""

    def __init__(self, cupy, shape, axis):
        self.cupy, self.shape, self.n = cupy, shape, shape[axis]
        require_room(cupy, 20 * self.size)
        places = list(cupy.ogrid[tuple(slice(n) for n in shape)])
        self.row = places.pop(axis)
        self.system = places[0] if places else cupy.zeros((), cupy.int64)
        for place in places[1:]:
            self.system = 2 * self.system + 5 * place

    @property
    def size(self):
        size = 1
        for n in self.shape:
            size *= n
        return size

    def fill(self, formula, out, **values):
        """Set `out` to `y` of a formula."""
        names = "".join(f", int64 {name}" for name in values)
        kernel = self.cupy.ElementwiseKernel(
            f"int64 r, int64 s{names}", "float32 y", formula, "fill", preamble=FORMULAS
        )
        kernel(self.row, self.system, *values.values(), out)
        return out

    def empty(self):
        return self.cupy.empty(self.shape, "float32")

    def worst(self, x):
        """Return the largest error, which takes the place of x."""
        self.cupy.ElementwiseKernel(
            "int64 r, int64 s", "float32 y", "y = fabsf(y - x_of(r, s))", "off", preamble=FORMULAS
        )(self.row, self.system, x)
        return float(x.max())


@pytest.mark.parametrize("name", CASES)
def test_solutions_in_place(cupy, name):
    shape, axis, own, options = CASES[name]
    problem = Problem(cupy, shape, axis)
    x = problem.fill(RHS, problem.empty(), own=own, n=problem.n)
    diag = problem.fill("y = diag_of(r, s)", problem.empty()) if own else 4

    pysolvers.solve_tridiagonal(-1, diag, -1, x, axis=axis, out=x, on_singular="ignore", **options)

    assert problem.worst(x) < 1e-5


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_far_apart(cupy, axis):
    problem = Problem(cupy, (3, 9), axis)
    require_room(cupy, 24 * FAR)
    room = [cupy.empty((3, FAR), "float32")[:, :9] for _ in range(2)]
    x = problem.fill(RHS, room[0], own=1, n=problem.n)
    diag = problem.fill("y = diag_of(r, s)", room[1])

    for method in ("thomas", "pcr", "partition", "pivoted"):
        options = {"method": method, "on_singular": "ignore"}
        problem.fill(RHS, x, own=1, n=problem.n)
        pysolvers.solve_tridiagonal(-1, diag, -1, x, axis=axis, out=x, **options)
        assert problem.worst(x) < 1e-5


@pytest.mark.parametrize(("shape", "axis"), [((300, 2**23 + 16), 0), ((FAR, 2), 1)])
def test_factor(cupy, shape, axis):
    problem = Problem(cupy, shape, axis)
    x = problem.fill(RHS, problem.empty(), own=0, n=problem.n)
    diag = cupy.full((problem.n, 1) if axis == 0 else (1, problem.n), 4, "float32")

    pysolvers.factor_tridiagonal(-1, diag, -1, axis=axis, on_singular="ignore").solve(x, out=x)

    assert problem.worst(x) < 1e-5
