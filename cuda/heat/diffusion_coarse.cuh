/* diffusion_coarse.cuh - the coarse levels of a V-cycle of ps_diffusion.h in one block.
 *
 * A V-cycle is a list of steps. The steps of the coarse levels follow each other in it:
 * levels whose fields and line matrices fit into the shared memory of a block are left to
 * one kernel, which executes these steps with a barrier between two operations. The
 * operations are those of the kernels of one level (diffusion_kernels.cuh,
 * diffusion_transfer.cuh), and lines are solved as the partition method does in a warp
 * (lines/join/levels.cuh): 4 rows per lane, 32 / lanes lines per warp. A coarse level is a
 * chain of latencies: as kernels of their own, its operations take some 5 to 8 us each on
 * an H200, of which less than 1 us is that of the operation.
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

constexpr int coarse_levels = 11; /* at most: the parameters of a kernel have 4 KiB */
constexpr int coarse_rows = 4;    /* of a lane */
/* Unknown nodes of a coarse level at most: as many as the threads of a block process in
 * about the time of the launches. */
constexpr int coarse_nodes = 5000;

/* Threads of the block: as the registers of a thread allow. */
template <typename Real> constexpr int coarse_threads = sizeof(Real) == 4 ? 1024 : 512;

/* The matrices of the lines along an axis: arrays without gaps. */
template <typename Real> struct CoarseLines {
    const Real *lower, *sum;
    int32_t row, outer, inner; /* strides */
};

template <typename Real> struct CoarseLevel {
    DiffusionOperator<Real, int32_t> a;
    CoarseLines<Real> lines[PS_DIFFUSION_AXES];
    const Real *weight[PS_DIFFUSION_AXES]; /* as in TwoLevels */
    int32_t at;                            /* of the level in shared memory */

    /* Whole vectors of 16 bytes. */
    static __host__ __device__ __forceinline__ int32_t padded(int32_t words)
    {
        constexpr int vector = 16 / sizeof(Real);

        return (words + vector - 1) / vector * vector;
    }
    __host__ __device__ __forceinline__ int32_t nodes() const
    {
        return a.box.nodes[0] * a.box.nodes[1] * a.box.nodes[2];
    }
    /* Places in shared memory: of field 0, x, 1, r, 2, t; of the lines along an axis,
     * lower and then sum; and of the end. */
    __host__ __device__ __forceinline__ int32_t field(int which) const
    {
        return at + which * padded(nodes());
    }
    __host__ __device__ __forceinline__ int32_t matrices(int axis) const
    {
        return field(3) + 2 * axis * padded(a.box.unknowns());
    }
    __host__ __device__ __forceinline__ int32_t end() const
    {
        return matrices(a.box.axes);
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
        const int plane = row / box.count[1];
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
    const CoarseCycle<Real> &c;
    Real *const memory; /* shared */

    __device__ __forceinline__ Real *x(int level) const
    {
        return memory + c.level[level].field(0);
    }
    __device__ __forceinline__ Real *r(int level) const
    {
        return memory + c.level[level].field(1);
    }
    __device__ __forceinline__ Real *t(int level) const
    {
        return memory + c.level[level].field(2);
    }

    /* Fields of zeros, the matrices, and r of the first level. */
    __device__ __forceinline__ void begin() const
    {
        const int thread = static_cast<int>(threadIdx.x);
        const int threads = static_cast<int>(blockDim.x);

        for (int level = 0; level < c.levels; level++) {
            const CoarseLevel<Real> &l = c.level[level];
            const int end = l.field(3);

            for (int i = l.at + thread; i < end; i += threads) {
                memory[i] = Real(0);
            }
            for (int axis = 0; axis < l.a.box.axes; axis++) {
                load(l.lines[axis].lower, l.matrices(axis), l.a.box.unknowns());
                load(l.lines[axis].sum, l.matrices(axis) + l.padded(l.a.box.unknowns()),
                     l.a.box.unknowns());
            }
        }
        __syncthreads();
        for_nodes_of_block(c.level[0].a.box, [&](const PlaceOf<int32_t> &p) {
            r(0)[p.node] = c.r[p.node];
        });
        copies_done();
        __syncthreads();
    }

    __device__ __forceinline__ void execute(const CycleOperation &o) const
    {
        switch (o.step) {
        case CycleStep::solve:
            solve_lines<false>(o.level, o.axis, r(o.level));
            break;
        case CycleStep::relax:
            residual(o.level);
            solve_lines<true>(o.level, o.axis, t(o.level));
            break;
        case CycleStep::restrict:
            residual(o.level);
            for_nodes_of_block(
                c.level[o.level + 1].a.box, [&](const PlaceOf<int32_t> &p) {
                    r(o.level + 1)[p.node] = restricted<0>(
                        two_levels(o.level), t(o.level), p.at[0], p.at[1], p.at[2]);
                });
            break;
        case CycleStep::interpolate:
            for_nodes_of_block(c.level[o.level].a.box, [&](const PlaceOf<int32_t> &p) {
                x(o.level)[p.node] += interpolated<PS_DIFFUSION_AXES - 1>(
                    two_levels(o.level), x(o.level + 1), static_cast<Real *>(nullptr),
                    p.at[0], p.at[1], p.at[2]);
            });
            break;
        }
        __syncthreads();
    }

    /* Store x of the first level. */
    __device__ __forceinline__ void end() const
    {
        for_nodes_of_block(c.level[0].a.box, [&](const PlaceOf<int32_t> &p) {
            c.x[p.node] = x(0)[p.node];
        });
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

    __device__ __forceinline__ TwoLevels<Real, int32_t> two_levels(int level) const
    {
        const CoarseLevel<Real> &l = c.level[level];

        return {
            l.a.box, c.level[level + 1].a.box, {l.weight[0], l.weight[1], l.weight[2]}};
    }

    /* t = r - A x. */
    __device__ __forceinline__ void residual(int level) const
    {
        const DiffusionOperator<Real, int32_t> &a = c.level[level].a;
        const Real *const field = x(level);

        for_nodes_of_block(a.box, [&](const PlaceOf<int32_t> &p) {
            t(level)[p.node] =
                r(level)[p.node] - a.at(p, [&](int32_t node) { return field[node]; });
        });
        __syncthreads();
    }

    /* x = T^-1 from along an axis, or x += that if ADDS. */
    template <bool ADDS>
    __device__ __forceinline__ void solve_lines(int level, int axis,
                                                const Real *from) const
    {
        const CoarseLevel<Real> &l = c.level[level];
        const BoxOf<int32_t> &box = l.a.box;
        const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;
        const int32_t stride[] = {1, box.nodes[0], box.nodes[0] * box.nodes[1]};
        const int32_t lanes = (box.count[axis] + coarse_rows - 1) / coarse_rows;
        const Shape shape = {box.count[axis], lanes, 32 / lanes, 1, 1};
        const ThreadPlace<coarse_rows> own(shape, 0);
        const int32_t lines = box.count[inner] * box.count[outer];
        const int32_t step = static_cast<int32_t>(blockDim.x / 32) * shape.groups;
        const int32_t start =
            box.first[0] + box.first[1] * stride[1] + box.first[2] * stride[2];
        const CoarseLines<Real> &m = l.lines[axis];
        const Real *const lower = memory + l.matrices(axis);
        const Real *const sum = lower + l.padded(box.unknowns());
        const bool periodic = box.periodic[axis] != 0;

        for (int32_t first = 0; first + own.slot - own.which < lines; first += step) {
            ThreadPlace<coarse_rows> self = own;
            const int32_t line = first + self.slot;

            if (line >= lines) {
                self.clear();
            }
            const int32_t j = line / box.count[inner], k = line - j * box.count[inner];
            const int32_t matrix = j * m.outer + k * m.inner;
            const int32_t node = start + j * stride[outer] + k * stride[inner];

            solve_line(shape, self, lower + matrix, sum + matrix, m.row, from + node,
                       stride[axis], periodic, [&](int32_t row, Real value) {
                           Real &to = x(level)[node + row * stride[axis]];

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
        const Segment<Number> whole =
            levels.reduce_up(levels.lanes, self, self.group, levels.own,
                             self.start + coarse_rows - 1, self.first_lane);
        Number y = close_system(whole, periodic, shape.rows - 1, levels.bad_pivot);
        Number y_left = periodic ? y : Number(0);

        levels.broadcast_down(shape, self, y_left, y);
        levels.chunk.substitute(y_left, y, [&](int i, Number value) {
            if (self.start + i >= 0) {
                put(self.start + i, value);
            }
        });
    }
};

extern __shared__ int4 coarse_memory[];

/* Grid: one block. */
template <typename Real>
__global__ void
__launch_bounds__(coarse_threads<Real>)
    coarse_kernel(const __grid_constant__ CoarseCycle<Real> c)
{
    const CoarseBlock<Real> block = {c, reinterpret_cast<Real *>(coarse_memory)};

    wait_for_last_kernel();
    block.begin();
    for (int i = 0; i < c.list.count; i++) {
        block.execute(c.list.operation[i]);
    }
    block.end();
}

} // namespace pysolvers::heat

#endif
