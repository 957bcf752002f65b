/* diffusion_coarse.cuh - the coarse levels of a V-cycle of ps_diffusion.h in one block.
 *
 * A V-cycle is a list of steps. The steps of the coarse levels follow each other in it:
 * levels whose fields and line matrices fit into the shared memory of a block are left to
 * one kernel, which executes these steps with a barrier between two operations. The
 * operations are those of the kernels of one level (diffusion_kernels.cuh,
 * diffusion_transfer.cuh), and lines are solved as the partition method does in a warp
 * (lines/join/levels.cuh): 4 rows per lane, 32 / lanes lines per warp. A coarse level is a
 * chain of latencies: as kernels of their own, its operations take some 5 to 8 us each on
 * an H200, of which less than 1 us is that of the operation. This kernel and fewer
 * operations outside it take 271 instead of 440 us for a V-cycle on 129^2 nodes there.
 *
 * Words of shared memory per node: x, r, t, and per axis the off-diagonal and the row sum
 * of the line matrices, which are symmetric: 7 with two axes, 9 with three. The
 * conductances, row sums and weights are read from global memory through the cache.
 *
 * Words of global memory per node and V-cycle with two axes: 4 of the line matrices once,
 * and 3 of the operator for each of 4 residuals, of which the cache keeps those of small
 * levels.
 */
#ifndef PS_CUDA_HEAT_DIFFUSION_COARSE_CUH
#define PS_CUDA_HEAT_DIFFUSION_COARSE_CUH

#include "heat/diffusion_transfer.cuh"
#include "lines/join/levels.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::heat {

using namespace join;

/* Steps of a V-cycle on a level. */
enum class CycleStep : int8_t {
    solve,      /* x = T^-1 r along an axis: a relaxation for x = 0 */
    relax,      /* x += T^-1 (r - A x) along an axis */
    restrict,   /* r of the next level = the restriction of r - A x */
    interpolate /* x += the interpolation of x of the next level */
};

struct CycleOperation {
    CycleStep step;
    int8_t level, axis;
};

/* The steps of the levels from some level on, in order. */
template <int LEVELS> struct CycleList {
    static constexpr int most = LEVELS * (2 * PS_DIFFUSION_AXES + 2);
    CycleOperation operation[most];
    int32_t count;

    __host__ __device__ void add(CycleStep step, int level, int axis = 0)
    {
        operation[count++] = {step, static_cast<int8_t>(level),
                              static_cast<int8_t>(axis)};
    }
};

/* The V-cycle of the levels from `first` to the last one, `levels` - 1. */
template <int LEVELS>
inline CycleList<LEVELS>
cycle_of(int first, int levels, int axes)
{
    CycleList<LEVELS> list = {};

    for (int level = first; level < levels; level++) {
        list.add(CycleStep::solve, level);
        for (int axis = 1; axis < axes; axis++) {
            list.add(CycleStep::relax, level, axis);
        }
        if (level + 1 < levels) {
            list.add(CycleStep::restrict, level);
        }
    }
    for (int level = levels - 1; level >= first; level--) {
        if (level + 1 < levels) {
            list.add(CycleStep::interpolate, level);
        }
        for (int axis = axes - 1; axis >= 0; axis--) {
            list.add(CycleStep::relax, level, axis);
        }
    }
    return list;
}

constexpr int coarse_levels = 9; /* at most: the parameters of a kernel have 4 KiB */
constexpr int coarse_rows = 4;   /* of a lane */
/* Unknown nodes of a coarse level at most: as many as the threads of a block process in
 * about the time of the launches. */
constexpr int coarse_nodes = 5000;

/* Threads of the block: as the registers of a thread allow. */
template <typename Real> constexpr int coarse_threads = sizeof(Real) == 4 ? 1024 : 512;

/* Distances of neighbouring rows, and of lines along the two other axes. */
struct CoarseStride {
    int32_t row, outer, inner;
};

/* The lines along an axis. Their matrices are arrays without gaps. */
template <typename Real> struct CoarseLines {
    const Real *lower, *sum;
    CoarseStride matrix, field;
    int32_t first;               /* node of the first line */
    int32_t rows, inner, lines;  /* `inner` lines along the inner axis */
    int32_t lanes, groups, part; /* of a Shape; 2^16 / lanes, rounded up */
    int32_t lower_at, sum_at;    /* in shared memory */
};

template <typename Real> struct CoarseLevel {
    DiffusionOperator<Real, int32_t> a;
    CoarseLines<Real> lines[PS_DIFFUSION_AXES];
    const Real *weight[PS_DIFFUSION_AXES]; /* as in TwoLevels */
    int32_t x, r, t;                       /* in shared memory */

    /* Set the places in shared memory from word `at` on; return the end. */
    int32_t place(int32_t at)
    {
        constexpr int32_t vector = 16 / sizeof(Real);
        const auto take = [&at](int32_t words) {
            const int32_t start = at;

            at += (words + vector - 1) / vector * vector;
            return start;
        };
        const int32_t nodes = a.box.nodes[0] * a.box.nodes[1] * a.box.nodes[2];

        x = take(nodes);
        r = take(nodes);
        t = take(nodes);
        for (int axis = 0; axis < a.box.axes; axis++) {
            lines[axis].lower_at = take(a.box.unknowns());
            lines[axis].sum_at = take(a.box.unknowns());
        }
        return at;
    }
};

template <typename Real> struct CoarseCycle {
    CoarseLevel<Real> level[coarse_levels];
    CycleList<coarse_levels> list; /* levels from 0 on: those of this struct */
    int32_t levels;
    const Real *r; /* of the first level */
    Real *x;
};
static_assert(sizeof(CoarseCycle<double>) <= 4096, "parameters of a kernel");

/* body(place) for the unknown nodes of a level, a row of nodes per warp. */
template <typename Body>
__device__ __forceinline__ void
for_nodes_of_block(const BoxOf<int32_t> &box, const Body &body)
{
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warps = static_cast<int>(blockDim.x / 32);

    for (int row = static_cast<int>(threadIdx.x / 32); row < box.count[1] * box.count[2];
         row += warps) {
        const int plane = box.axes == 2 ? 0 : row / box.count[1];
        const int j = box.first[1] + row - plane * box.count[1];
        const int k = box.first[2] + plane;
        const int begin = (k * box.nodes[1] + j) * box.nodes[0];

        for (int i = box.first[0] + lane; i < box.first[0] + box.count[0]; i += 32) {
            body(PlaceOf<int32_t>{{i, j, k}, begin + i});
        }
    }
}

/* The block of the coarse levels; all threads call each function together. */
template <typename Real> struct CoarseBlock {
    const CoarseLevel<Real> *const level; /* in shared memory */
    Real *const memory;                   /* shared */

    /* Fields of zeros, the matrices, and r of the first level. */
    __device__ __forceinline__ void begin(int levels, const Real *r) const
    {
        for (int k = 0; k < levels; k++) {
            const CoarseLevel<Real> &l = level[k];
            const int unknowns = l.a.box.unknowns(), end = l.lines[0].lower_at;

            for (int i = l.x + static_cast<int>(threadIdx.x); i < end;
                 i += static_cast<int>(blockDim.x)) {
                memory[i] = Real(0);
            }
            for (int axis = 0; axis < l.a.box.axes; axis++) {
                load(l.lines[axis].lower, l.lines[axis].lower_at, unknowns);
                load(l.lines[axis].sum, l.lines[axis].sum_at, unknowns);
            }
        }
        __syncthreads();
        Real *const to = memory + level[0].r;

        for_nodes_of_block(level[0].a.box,
                           [&](const PlaceOf<int32_t> &p) { to[p.node] = r[p.node]; });
        copies_done();
        __syncthreads();
    }

    __device__ __forceinline__ void execute(const CycleOperation &o) const
    {
        const CoarseLevel<Real> &l = level[o.level];
        Real *const x = memory + l.x;

        switch (o.step) {
        case CycleStep::solve:
            solve_lines<false>(l, o.axis, memory + l.r);
            break;
        case CycleStep::relax:
            residual(l);
            solve_lines<true>(l, o.axis, memory + l.t);
            break;
        case CycleStep::restrict: {
            const TwoLevels<Real, int32_t> two = two_levels(o.level);
            const Real *const t = memory + l.t;
            Real *const to = memory + level[o.level + 1].r;

            residual(l);
            for_nodes_of_block(two.coarse, [&](const PlaceOf<int32_t> &p) {
                to[p.node] = restricted<0>(two, t, p.at[0], p.at[1], p.at[2]);
            });
            break;
        }
        case CycleStep::interpolate: {
            const TwoLevels<Real, int32_t> two = two_levels(o.level);
            const Real *const from = memory + level[o.level + 1].x;

            for_nodes_of_block(two.fine, [&](const PlaceOf<int32_t> &p) {
                x[p.node] += interpolated<PS_DIFFUSION_AXES - 1>(
                    two, from, static_cast<Real *>(nullptr), p.at[0], p.at[1], p.at[2]);
            });
            break;
        }
        }
        __syncthreads();
    }

    /* Store x of the first level. */
    __device__ __forceinline__ void end(Real *to) const
    {
        const Real *const x = memory + level[0].x;

        for_nodes_of_block(level[0].a.box,
                           [&](const PlaceOf<int32_t> &p) { to[p.node] = x[p.node]; });
    }

  private:
    /* Start the copy of `count` numbers; the memory behind them exists up to a multiple
     * of 16 bytes. */
    __device__ __forceinline__ void load(const Real *from, int to, int count) const
    {
        constexpr int vector = 16 / sizeof(Real);

        for (int i = static_cast<int>(threadIdx.x) * vector; i < count;
             i += static_cast<int>(blockDim.x) * vector) {
            copy_async<16>(memory + to + i, from + i);
        }
    }

    __device__ __forceinline__ TwoLevels<Real, int32_t> two_levels(int fine) const
    {
        const CoarseLevel<Real> &l = level[fine];

        return {l.a.box, level[fine + 1].a.box, {l.weight[0], l.weight[1], l.weight[2]}};
    }

    /* t = r - A x. */
    __device__ __forceinline__ void residual(const CoarseLevel<Real> &l) const
    {
        const DiffusionOperator<Real, int32_t> a = l.a;
        const Real *const x = memory + l.x, *const r = memory + l.r;
        Real *const t = memory + l.t;

        for_nodes_of_block(a.box, [&](const PlaceOf<int32_t> &p) {
            t[p.node] = r[p.node] - a.at(p, [x](int32_t node) { return x[node]; });
        });
        __syncthreads();
    }

    /* x = T^-1 from along an axis, or x += that if ADDS. */
    template <bool ADDS>
    __device__ __forceinline__ void solve_lines(const CoarseLevel<Real> &l, int axis,
                                                const Real *from) const
    {
        const CoarseLines<Real> m = l.lines[axis];
        const bool periodic = l.a.box.periodic[axis] != 0;
        const Shape shape = {m.rows, m.lanes, m.groups, 1, 1};
        const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
        const int32_t group = lane * m.part >> 16; /* lane / m.lanes */
        const bool is_idle = group >= m.groups;
        const int32_t which = is_idle ? 0 : group;
        Real *const x = memory + l.x;

        /* the first line of a warp */
        for (int32_t first = static_cast<int32_t>(threadIdx.x / 32) * m.groups;
             first < m.lines; first += static_cast<int32_t>(blockDim.x / 32) * m.groups) {
            const int32_t line = first + which;
            const int32_t j = m.lines == m.inner ? 0 : line / m.inner;
            const int32_t k = line - j * m.inner;
            const int32_t matrix = j * m.matrix.outer + k * m.matrix.inner;
            const int32_t node = m.first + j * m.field.outer + k * m.field.inner;
            ThreadPlace<coarse_rows> self(shape, which,
                                          is_idle ? m.lanes : lane - which * m.lanes);

            if (line >= m.lines) {
                self.clear();
            }
            solve_line(shape, self, memory + m.lower_at + matrix,
                       memory + m.sum_at + matrix, m.matrix.row, from + node, m.field.row,
                       periodic, [&](int32_t i, Real value) {
                           Real &to = x[node + i * m.field.row];

                           to = ADDS ? to + value : value;
                       });
        }
    }

    /* Solve the lines of a warp: put(row, x). */
    template <typename Put>
    static __device__ __forceinline__ void
    solve_line(const Shape &shape, const ThreadPlace<coarse_rows> &self,
               const Real *lower, const Real *sum, int32_t pitch, const Real *rhs,
               int32_t stride, bool periodic, const Put &put)
    {
        using Number = BySums<Real>;
        const auto rows = [&](int i) {
            const int32_t row = self.start + i;

            if (row < 0) {
                return copy_row<Number>();
            }
            const bool is_last = row == shape.rows - 1;
            const Real below = row > 0 || periodic ? lower[row * pitch] : Real(0);
            const Real above = !is_last   ? lower[(row + 1) * pitch]
                               : periodic ? lower[0]
                                          : Real(0);

            return Row<Number>{below, sum[row * pitch], above, rhs[row * stride]};
        };
        Levels<Number, coarse_rows> levels;

        levels.eliminate(self, rows);
        const Ends<Number> ends = levels.join_system(shape, self, periodic);

        levels.chunk.substitute(ends.y_left, ends.y, [&](int i, Number value) {
            if (self.start + i >= 0) {
                put(self.start + i, value);
            }
        });
    }
};

extern __shared__ int4 coarse_memory[];

/* Grid: one block. The levels are copied from the parameters to shared memory: they are
 * more than the constant cache of a multiprocessor holds. */
template <typename Real>
__global__ void
__launch_bounds__(coarse_threads<Real>)
    coarse_kernel(const __grid_constant__ CoarseCycle<Real> c)
{
    constexpr int words = sizeof c.level / sizeof(int64_t);
    __shared__ int64_t levels[words];
    const int64_t *const from = reinterpret_cast<const int64_t *>(c.level);
    const CoarseBlock<Real> block = {reinterpret_cast<const CoarseLevel<Real> *>(levels),
                                     reinterpret_cast<Real *>(coarse_memory)};

    for (int i = static_cast<int>(threadIdx.x); i < words;
         i += static_cast<int>(blockDim.x)) {
        levels[i] = from[i];
    }
    __syncthreads();
    wait_for_last_kernel();
    block.begin(c.levels, c.r);
    for (int i = 0; i < c.list.count; i++) {
        block.execute(c.list.operation[i]);
    }
    block.end(c.x);
}

} // namespace pysolvers::heat

#endif
