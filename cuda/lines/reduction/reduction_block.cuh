/* reduction_block.cuh - systems in shared memory: cr, pcr, cr-pcr and pcr-thomas.
 *
 *   cr          rows 2s-1, 4s-1, ... eliminate their neighbours at distance s = 1, 2, 4,
 *               ...; the number of live rows is halved each time. Back substitution level
 *               by level. 17 operations per row (Hockney 1965).
 *   pcr         every row eliminates both neighbours, ceil(log2 rows) times; 12 operations
 *               per row and step (Hockney and Jesshope 1981).
 *   cr-pcr      cr, then pcr on the live rows (Zhang, Cohen and Owens 2010).
 *   pcr-thomas  some steps of pcr, then one thread for each of the remaining interleaved
 *               systems (Sakharnykh 2009; Kim et al. 2011).
 *
 * All are one sequence: levels of cr, steps of pcr, Thomas, back substitution. Memory
 * traffic is 5 words per row. No pivoting: stable for diagonally dominant systems.
 */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_BLOCK_CUH
#define PS_CUDA_LINES_REDUCTION_REDUCTION_BLOCK_CUH

#include "lines/reduction/reduction.cuh"

namespace pysolvers::reduction {

template <typename Number>
static constexpr int block_threads = number_traits<Number>::is_complex ? 512 : 1024;

/* Rows that a thread of pcr keeps in registers. */
template <typename Number>
static constexpr int rows_a_thread = 32 / static_cast<int>(sizeof(Number));

/* Rows in shared memory, one array per coefficient. */
template <typename Number, int sides> struct Arrays {
    Number *base;
    int32_t rows;

    __device__ __forceinline__ Number &lower(int i) const
    {
        return base[i];
    }

    __device__ __forceinline__ Number &diag(int i) const
    {
        return base[rows + i];
    }

    __device__ __forceinline__ Number &upper(int i) const
    {
        return base[2 * rows + i];
    }

    __device__ __forceinline__ Number &rhs(int side, int i) const
    {
        return base[(3 + side) * rows + i];
    }

    __device__ __forceinline__ Equation<Number, sides> get(int i) const
    {
        Equation<Number, sides> row = {lower(i), diag(i), upper(i), {rhs(0, i)}};

        if (sides == 2) {
            row.rhs[sides - 1] = rhs(1, i);
        }
        return row;
    }

    __device__ __forceinline__ void put(int i, const Equation<Number, sides> &row) const
    {
        lower(i) = row.lower;
        diag(i) = row.diag;
        upper(i) = row.upper;
#pragma unroll
        for (int s = 0; s < sides; s++) {
            rhs(s, i) = row.rhs[s];
        }
    }
};

/* Levels of cr: at each level the rows 2 step - 1, 4 step - 1, ... of all rows. */
template <typename Batch, typename Number, int sides>
__device__ __forceinline__ void
cr_down(const Part<Batch> &part, const Arrays<Number, sides> &rows, int levels)
{
    const int count = part.rows, lane = threadIdx.x, lanes = blockDim.x;

    for (int level = 0, step = 1; level < levels; level++, step *= 2) {
        for (int i = 2 * step * (lane + 1) - 1; i < count; i += 2 * step * lanes) {
            Equation<Number, sides> row = rows.get(i);
            const Equation<Number, sides> above = rows.get(i - step);

            eliminate_above(row, above, part.invert(above.diag, i - step));
            if (i + step < count) {
                const Equation<Number, sides> below = rows.get(i + step);

                eliminate_below(row, below, part.invert(below.diag, i + step));
            }
            rows.put(i, row);
        }
        __syncthreads(); /* the next level reads these rows */
    }
}

/* Back substitution from the live rows, whose solution is in their rhs. */
template <typename Batch, typename Number, int sides>
__device__ __forceinline__ void
cr_up(const Part<Batch> &part, const Arrays<Number, sides> &rows, int levels)
{
    const int count = part.rows, lane = threadIdx.x, lanes = blockDim.x;

    for (int step = 1 << levels >> 1; step >= 1; step /= 2) {
        for (int i = step * (2 * lane + 1) - 1; i < count; i += 2 * step * lanes) {
            const Number inverse = part.invert(rows.diag(i), i);
            const Number lower = rows.lower(i), upper = rows.upper(i);

#pragma unroll
            for (int s = 0; s < sides; s++) {
                Number r = rows.rhs(s, i);

                if (i >= step) {
                    r = r - lower * rows.rhs(s, i - step);
                }
                if (i + step < count) {
                    r = r - upper * rows.rhs(s, i + step);
                }
                rows.rhs(s, i) = r * inverse;
            }
        }
        __syncthreads(); /* the next level reads this solution */
    }
}

/* The live rows of pcr: row r of lane l is l + r * lanes. It is kept in own[r] and, for
 * other threads, in `shared`, there with the inverse of its diagonal. Rows beyond the
 * last one are those of the identity. */
template <typename Batch> struct Live {
    using Number = typename Batch::Number;
    static constexpr int sides = Batch::sides;
    static constexpr int depth = rows_a_thread<Number>;
    const Part<Batch> &part;
    Arrays<Number, sides> shared; /* of the longest system */
    int32_t count, levels;
    Equation<Number, sides> own[depth];

    __device__ __forceinline__ static int index(int r)
    {
        return threadIdx.x + r * blockDim.x;
    }

    /* Whether any thread of the grid has a row r: uniform, so that a short system does
     * not process the rows of a long one. */
    __device__ __forceinline__ bool live_at(int r) const
    {
        return r * static_cast<int>(blockDim.x) < shared.rows;
    }

    /* The row nearest to i. It replaces an absent neighbour, whose coupling is 0. */
    __device__ __forceinline__ int existing(int i) const
    {
        return max(min(i, count - 1), 0);
    }

    /* Index in the part of live row i. */
    __device__ __forceinline__ int origin(int i) const
    {
        return ((i + 1) << levels) - 1;
    }

    /* Steps of pcr as long as rows of the longest system are coupled; returns the
     * distance of the remaining couplings. */
    __device__ __forceinline__ int reduce(int steps)
    {
        int reach = 1;

        for (int step = 0; step < steps && reach < shared.rows; step++, reach *= 2) {
#pragma unroll
            for (int r = 0; r < depth && live_at(r); r++) {
                Equation<Number, sides> row = own[r];

                row.diag = part.invert(row.diag, origin(index(r)));
                if (index(r) < count) {
                    shared.put(index(r), row);
                }
            }
            __syncthreads(); /* all rows of this step are visible */
#pragma unroll
            for (int r = 0; r < depth && live_at(r); r++) {
                const Equation<Number, sides> above =
                    shared.get(existing(index(r) - reach));
                const Equation<Number, sides> below =
                    shared.get(existing(index(r) + reach));

                eliminate_above(own[r], above, above.diag);
                eliminate_below(own[r], below, below.diag);
            }
            __syncthreads(); /* all rows of this step are read */
        }
        return reach;
    }

    /* For uncoupled rows: write the solution to own[r].rhs. */
    __device__ __forceinline__ void divide()
    {
#pragma unroll
        for (int r = 0; r < depth && live_at(r); r++) {
            const Number inverse = part.invert(own[r].diag, origin(index(r)));

#pragma unroll
            for (int s = 0; s < sides; s++) {
                own[r].rhs[s] = own[r].rhs[s] * inverse;
            }
        }
    }

    /* Thomas on the rows first, first + reach, ...; c replaces upper. */
    __device__ __forceinline__ void thomas(int first, int reach) const
    {
        Number c = 0, x[sides] = {};
        int i = first;

        for (; i < count; i += reach) {
            const Equation<Number, sides> row = shared.get(i);
            const Number inverse = part.invert(row.diag - row.lower * c, origin(i));

            c = row.upper * inverse;
            shared.upper(i) = c;
#pragma unroll
            for (int s = 0; s < sides; s++) {
                x[s] = (row.rhs[s] - row.lower * x[s]) * inverse;
                shared.rhs(s, i) = x[s];
            }
        }
        for (i -= 2 * reach; i >= 0; i -= reach) {
            c = shared.upper(i);
#pragma unroll
            for (int s = 0; s < sides; s++) {
                x[s] = shared.rhs(s, i) - c * x[s];
                shared.rhs(s, i) = x[s];
            }
        }
    }

    /* For rows coupled at distance `reach`: one thread for each system of them. */
    __device__ __forceinline__ void solve_split(int reach)
    {
#pragma unroll
        for (int r = 0; r < depth && live_at(r); r++) {
            if (index(r) < count) {
                shared.put(index(r), own[r]);
            }
        }
        __syncthreads(); /* a thread reads rows of others */
        for (int first = threadIdx.x; first < reach; first += blockDim.x) {
            thomas(first, reach);
        }
        __syncthreads(); /* the other threads read the solution */
#pragma unroll
        for (int r = 0; r < depth && live_at(r); r++) {
#pragma unroll
            for (int s = 0; s < sides; s++) {
                if (index(r) < count) {
                    own[r].rhs[s] = shared.rhs(s, index(r));
                }
            }
        }
    }
};

/* Solve class `task % e.classes` of system `task / e.classes`: p.lanes threads, and
 * p.pitch numbers of shared memory. All reads of a system precede its first write, so that
 * x may be rhs, and rows of an earlier step may be overwritten by the solution. */
template <typename Batch>
__device__ __forceinline__ void
solve_part(const Batch &e, const ps_cuda_on_chip &p, int64_t task,
           typename Batch::Number *mine)
{
    using Number = typename Batch::Number;
    constexpr int sides = Batch::sides, depth = rows_a_thread<Number>;
    const Part<Batch> part(e, task);
    const Arrays<Number, sides> all = {mine, p.rows};
    const int above = p.levels > 0 ? (3 + sides) * p.rows : 0;
    Live<Batch> live = {
        part, {mine + above, p.live}, part.rows >> p.levels, p.levels, {}};
    Number *const staged = live.shared.base + (3 + sides) * p.live;

    if (p.levels > 0) {
        for (int i = threadIdx.x; i < part.rows; i += blockDim.x) {
            all.put(i, part.load(i));
        }
        __syncthreads(); /* a row reads its neighbours */
        cr_down(part, all, p.levels);
    }
#pragma unroll
    for (int r = 0; r < depth && live.live_at(r); r++) {
        const int i = live.index(r);

        live.own[r] = i >= live.count ? Equation<Number, sides>{0, 1, 0, {}}
                      : p.levels > 0  ? all.get(live.origin(i))
                                      : part.load(i);
    }
    const int reach = live.reduce(p.steps);
    if (reach >= p.live) {
        live.divide();
    }
    else {
        live.solve_split(reach);
    }
#pragma unroll
    for (int r = 0; r < depth && live.live_at(r); r++) {
        const int i = live.index(r);

#pragma unroll
        for (int s = 0; s < sides; s++) {
            if (i < live.count) {
                const Number x = live.own[r].rhs[s];

                if (p.levels > 0) {
                    all.rhs(s, live.origin(i)) = x;
                }
                else if (p.staged) {
                    staged[s * p.rows + i] = x;
                }
                else {
                    part.store(i, s, x);
                }
            }
        }
    }
    if (p.levels == 0 && !p.staged) {
        return;
    }
    __syncthreads(); /* the solution of the live rows is visible */
    cr_up(part, all, p.levels);
    for (int i = threadIdx.x; i < part.rows; i += blockDim.x) {
#pragma unroll
        for (int s = 0; s < sides; s++) {
            part.store(i, s, p.levels > 0 ? all.rhs(s, i) : staged[s * p.rows + i]);
        }
    }
}

/* Grid: blocks for e.systems * e.classes systems. Block: p.lanes by p.systems threads.
 * Shared memory: p.pitch numbers per system. */
template <typename Batch>
__global__ void
__launch_bounds__(block_threads<typename Batch::Number>)
    reduction_kernel(const __grid_constant__ Batch e,
                     const __grid_constant__ ps_cuda_on_chip p)
{
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    auto *const all = reinterpret_cast<typename Batch::Number *>(shared_bytes);
    const int64_t task = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;

    solve_part(e, p, task, all + p.pitch * threadIdx.y);
}

} // namespace pysolvers::reduction

#endif
