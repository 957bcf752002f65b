/* staggered_stages.cu - the explicit stages of a step on the staggered grid.
 *
 * The scheme is that of csrc/cpu/flow/staggered_stages.c. f and g are not stored: the
 * stage predict computes those of the four faces of a cell for its q, and the stage
 * correct computes those of two faces again. So that no block reads a velocity of
 * another step, the stage correct writes it to other arrays than it reads: after an even
 * number of steps the velocity is in u and v, after an odd number in f and g.
 *
 * Words read and written per cell, the fewest with q and p as arrays: predict reads u and
 * v and writes q; correct reads u, v and p and writes u and v. 3 and 5 words, 8 in all,
 * and those of the pressure: 7 for the direct solver (pysolvers/poisson/_device.py), so
 * 15 words = 120 bytes. With f and g in memory a step takes 5 and 7 words. A cell costs
 * about 300 operations, twice as many as with stored f and g.
 *
 * The device chooses the length of a step and decides on its end. Every block computes
 * the length from the clock; the stages of a step after the end do nothing. The maxima
 * over the faces are reduced to one number per block and then by one block. They are
 * compared as integers, in which NaN is the largest number.
 */
#include "flow/staggered_stages.h"

#include "device/operand.cuh"
#include "ps_staggered_clock.h"
#include "runtime/elements.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int block_width = 32, block_rows = 8, block_threads = block_width * block_rows;
constexpr int64_t most_blocks = 4096; /* each adds three numbers to the last reduction */
constexpr unsigned all_lanes = 0xffffffffu;

/* A field of N x N cells, as p and q. */
struct PlainCells {
    double *data;
    int64_t n;

    __device__ __forceinline__ double get(int64_t i, int64_t j) const
    {
        return data[(j - 1) * n + i - 1];
    }
    __device__ __forceinline__ void put(int64_t i, int64_t j, double value) const
    {
        data[(j - 1) * n + i - 1] = value;
    }
};

/* A field of ps_laplace, with one array per colour. */
struct ColouredCells {
    double *data;
    int64_t pitch, half;

    __device__ __forceinline__ int64_t place(int64_t i, int64_t j) const
    {
        return ((i + j) % 2 != 0 ? half : 0) + j * pitch + i / 2;
    }
    __device__ __forceinline__ double get(int64_t i, int64_t j) const
    {
        return data[place(i, j)];
    }
    __device__ __forceinline__ void put(int64_t i, int64_t j, double value) const
    {
        data[place(i, j)] = value;
    }
};

ColouredCells
coloured(const void *data, const ps_laplace *l)
{
    return {static_cast<double *>(const_cast<void *>(data)), l->pitch,
            (l->ny + 2) * l->pitch};
}

/* The current step: the velocity before it, and what the clock determines. */
struct Step {
    const double *u, *v;
    const double *force_x, *force_y;
    double *u_next, *v_next;
    int64_t n, m; /* m = n + 2: elements of a row */
    bool has_ended;
    double dt, next, gamma, diffusion, convection;
};

/* Reads no entry of the clock that a block of the stage predict writes. Without a force
 * the code of one costs no registers. */
template <bool FORCED>
__device__ __forceinline__ Step
step_of(const ps_staggered &s)
{
    double clock[PS_CLOCK_COUNT];
    ps_staggered own = s;
    Step a;

    own.clock = clock;
    own.push = FORCED ? s.push : 0;
    clock[PS_CLOCK_TIME] = s.clock[PS_CLOCK_TIME];
    clock[PS_CLOCK_CHANGE] = s.clock[PS_CLOCK_CHANGE];
    clock[PS_CLOCK_U] = s.clock[PS_CLOCK_U];
    clock[PS_CLOCK_V] = s.clock[PS_CLOCK_V];
    ps_staggered_choose_dt(&own);
    const bool is_odd = static_cast<int64_t>(s.clock[PS_CLOCK_STEPS]) % 2 != 0;
    const double inverse = static_cast<double>(s.cells);

    a.u = is_odd ? s.f : s.u;
    a.v = is_odd ? s.g : s.v;
    a.force_x = s.force_x;
    a.force_y = s.force_y;
    a.u_next = is_odd ? s.u : s.f;
    a.v_next = is_odd ? s.v : s.g;
    a.n = s.cells;
    a.m = s.cells + 2;
    a.has_ended = ps_staggered_judge(&own) != PS_STAGGERED_COUNT;
    a.dt = clock[PS_CLOCK_DT];
    a.next = clock[PS_CLOCK_NEXT];
    a.gamma = ps_staggered_gamma(&own);
    a.diffusion = a.dt * inverse * inverse / s.reynolds;
    a.convection = a.dt * inverse / 4;
    return a;
}

/* 4 h times the difference of the flux of `c`, carried by the sums of velocities `out`
 * and `in` of two adjacent faces, between neighbours with the values before, c, after. */
__device__ __forceinline__ double
flux(double out, double in, double before, double c, double after, double gamma)
{
    const double central = out * (c + after) - in * (before + c);

    return central + gamma * (fabs(out) * (c - after) - fabs(in) * (before - c));
}

/* f of face (i, j), 0 <= i <= N; 0 on walls. */
template <bool FORCED>
__device__ __forceinline__ double
face_f(const Step &a, int64_t i, int64_t j)
{
    if (i == 0 || i == a.n) {
        return 0;
    }
    const double *const u = a.u + j * a.m + i, *const v = a.v + j * a.m + i;
    const double c = u[0], east = u[1], west = u[-1], north = u[a.m], south = u[-a.m];
    const double uu = flux(c + east, west + c, west, c, east, a.gamma);
    const double uv = flux(v[0] + v[1], v[-a.m] + v[1 - a.m], south, c, north, a.gamma);
    const double lap = ((east + west) + (north + south)) - 4 * c;

    const double free = c + (a.diffusion * lap - a.convection * (uu + uv));

    return FORCED ? free + a.dt * a.force_x[j * a.m + i] : free;
}

/* g of face (i, j), 0 <= j <= N; 0 on walls. */
template <bool FORCED>
__device__ __forceinline__ double
face_g(const Step &a, int64_t i, int64_t j)
{
    if (j == 0 || j == a.n) {
        return 0;
    }
    const double *const u = a.u + j * a.m + i, *const v = a.v + j * a.m + i;
    const double c = v[0], east = v[1], west = v[-1], north = v[a.m], south = v[-a.m];
    const double vv = flux(c + north, south + c, south, c, north, a.gamma);
    const double uv = flux(u[0] + u[a.m], u[-1] + u[a.m - 1], west, c, east, a.gamma);
    const double lap = ((east + west) + (north + south)) - 4 * c;

    const double free = c + (a.diffusion * lap - a.convection * (uv + vv));

    return FORCED ? free + a.dt * a.force_y[j * a.m + i] : free;
}

/* The cells of a thread: column i, rows j = first, first + block_rows, ... <= last. */
struct Cells {
    int64_t i, first, last;
};

__device__ __forceinline__ Cells
cells_of_thread(int64_t n, int rows)
{
    const int64_t across = (n - 1) / block_width + 1;
    const int64_t tile = device::quotient(blockIdx.x, across);
    const int64_t begin = tile * rows * block_rows;
    const int64_t end = begin + rows * block_rows;

    return {(blockIdx.x - tile * across) * block_width + threadIdx.x % block_width + 1,
            begin + threadIdx.x / block_width + 1, end < n ? end : n};
}

/* `rows` are the rows of a thread. */
template <bool FORCED, typename Source> struct Predict {
    ps_staggered s;
    const Source q;
    double sign;
    int rows;

    __device__ __forceinline__ void operator()() const
    {
        wait_for_last_kernel();
        const Step a = step_of<FORCED>(s);
        const Cells cells = cells_of_thread(a.n, rows);
        const double scale = sign * static_cast<double>(a.n) / a.dt;

        if (a.has_ended) {
            return;
        }
        let_next_kernel_in();
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            s.clock[PS_CLOCK_DT] = a.dt;
            s.clock[PS_CLOCK_NEXT] = a.next;
        }
        for (int64_t j = cells.first; cells.i <= a.n && j <= cells.last;
             j += block_rows) {
            const int64_t i = cells.i;
            const double f = face_f<FORCED>(a, i, j) - face_f<FORCED>(a, i - 1, j);
            const double g = face_g<FORCED>(a, i, j) - face_g<FORCED>(a, i, j - 1);

            q.put(i, j, scale * (f + g));
        }
    }
};

/* Largest magnitudes as integers: u, v, and their changes. */
struct Most {
    uint64_t u = 0, v = 0, change = 0;
};

__device__ __forceinline__ void
raise_to(uint64_t &most, double x)
{
    const uint64_t own = static_cast<uint64_t>(__double_as_longlong(fabs(x)));

    most = own > most ? own : most;
}

__device__ __forceinline__ void
join(Most &a, const Most &b)
{
    a.u = b.u > a.u ? b.u : a.u;
    a.v = b.v > a.v ? b.v : a.v;
    a.change = b.change > a.change ? b.change : a.change;
}

/* The maximum over a block of block_threads threads, in thread 0. */
__device__ __forceinline__ Most
most_of_block(Most most)
{
    constexpr int lanes = 32, warps = block_threads / lanes;
    __shared__ Most of_warp[warps];

#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) {
        join(most, {__shfl_xor_sync(all_lanes, most.u, step),
                    __shfl_xor_sync(all_lanes, most.v, step),
                    __shfl_xor_sync(all_lanes, most.change, step)});
    }
    if (threadIdx.x % lanes == 0) {
        of_warp[threadIdx.x / lanes] = most;
    }
    __syncthreads();
    for (int k = 1; threadIdx.x == 0 && k < warps; k++) {
        join(most, of_warp[k]);
    }
    return most;
}

/* The next velocity of faces (i, j) and the ghosts next to them. */
template <bool FORCED, typename Pressure>
__device__ __forceinline__ void
correct_cell(const Step &a, const Pressure &p, double lid, int64_t i, int64_t j,
             Most &most)
{
    const int64_t n = a.n, m = a.m, at = j * m + i;
    const double factor = a.dt * static_cast<double>(n), own = p.get(i, j);
    double u = 0, v = 0;

    if (i < n) {
        u = face_f<FORCED>(a, i, j) - factor * (p.get(i + 1, j) - own);
        raise_to(most.change, u - a.u[at]);
        raise_to(most.u, u);
        a.u_next[at] = u;
    }
    if (j < n) {
        v = face_g<FORCED>(a, i, j) - factor * (p.get(i, j + 1) - own);
        raise_to(most.change, v - a.v[at]);
        raise_to(most.v, v);
        a.v_next[at] = v;
    }
    if (i == 1) {
        a.v_next[at - 1] = -v;
    }
    if (i == n) {
        a.v_next[at + 1] = -v;
    }
    if (j == 1) {
        a.u_next[at - m] = -u;
    }
    if (j == n) {
        a.u_next[at + m] = 2 * lid - u;
        raise_to(most.u, 2 * lid - u);
    }
    if (i == 1 && j == n) {
        a.u_next[at + m - 1] = 2 * lid; /* above the corner */
    }
}

/* `p` is the pressure; with `copies` it is written to s.p. parts[3 b]: of block b. */
template <bool FORCED, bool COPIES, typename Pressure> struct Correct {
    ps_staggered s;
    const Pressure p;
    uint64_t *parts;
    int rows;

    __device__ __forceinline__ void operator()() const
    {
        wait_for_last_kernel();
        const Step a = step_of<FORCED>(s);
        const Cells cells = cells_of_thread(a.n, rows);
        const PlainCells copy = {s.p, s.cells};
        Most most;

        if (a.has_ended) {
            return;
        }
        let_next_kernel_in();
        for (int64_t j = cells.first; cells.i <= a.n && j <= cells.last;
             j += block_rows) {
            correct_cell<FORCED>(a, p, s.lid, cells.i, j, most);
            if (COPIES) {
                copy.put(cells.i, j, p.get(cells.i, j));
            }
        }
        most = most_of_block(most);
        if (threadIdx.x == 0) {
            parts[3 * blockIdx.x] = most.u;
            parts[3 * blockIdx.x + 1] = most.v;
            parts[3 * blockIdx.x + 2] = most.change;
        }
    }
};

/* Complete a step in the clock. One block. */
struct CompleteStep {
    ps_staggered s;
    const uint64_t *parts;
    int64_t count;
    Swept swept;

    __device__ __forceinline__ void operator()() const
    {
        double *const clock = s.clock;
        Most most;

        wait_for_last_kernel();
        const Step a = step_of<true>(s); /* push is 0 without a force */

        __syncthreads(); /* all threads have read the clock */
        if (a.has_ended) {
            return;
        }
        for (int64_t k = threadIdx.x; k < count; k += block_threads) {
            Most part;

            part.u = parts[3 * k];
            part.v = parts[3 * k + 1];
            part.change = parts[3 * k + 2];
            join(most, part);
        }
        most = most_of_block(most);
        if (threadIdx.x != 0) {
            return;
        }
        double u = __longlong_as_double(static_cast<long long>(most.u));
        double v = __longlong_as_double(static_cast<long long>(most.v));
        double change = __longlong_as_double(static_cast<long long>(most.change));
        const double sum = u + v + change, not_finite = sum - sum; /* 0 or NaN */

        clock[PS_CLOCK_U] = u + not_finite;
        clock[PS_CLOCK_V] = v + not_finite;
        clock[PS_CLOCK_CHANGE] = (change + not_finite) / a.dt;
        clock[PS_CLOCK_TIME] = a.next;
        clock[PS_CLOCK_STEPS] += 1;
        if (swept.counts) {
            clock[PS_CLOCK_SWEEPS] += swept.sweeps;
            clock[PS_CLOCK_RESIDUAL] = swept.residual;
        }
    }
};

/* Copy p to a field, and write the coefficients of its cells: first, inner and last row,
 * for each parity of i. */
struct Colour {
    ps_staggered s;
    ColouredCells to;
    double *diag, *gain;

    __device__ __forceinline__ void operator()(unsigned row, int64_t column) const
    {
        const PlainCells from = {s.p, s.cells};
        const int64_t n = s.cells, i = column + 1, j = int64_t(row) + 1;

        to.put(i, j, from.get(i, j));
        if (j == 1 || j == 2 || j == n) {
            const int64_t kind = j == 1 ? 0 : j == n ? 2 : 1;
            const int64_t at = (kind * 2 + i % 2) * to.pitch + i / 2;
            const double count = 4 - (kind != 1) - (i == 1) - (i == n);

            diag[at] = static_cast<double>(n * n) * count;
            gain[at] = s.omega / diag[at];
        }
    }
};

/* After an odd number of steps the velocity is in f and g. */
struct Settle {
    const double *clock, *f, *g;
    double *u, *v;

    __device__ __forceinline__ void operator()(int64_t k) const
    {
        if (static_cast<int64_t>(clock[PS_CLOCK_STEPS]) % 2 != 0) {
            u[k] = f[k];
            v[k] = g[k];
        }
    }
};

/* Rows of a thread, for at most most_blocks blocks where possible. */
int
rows_of(int64_t n)
{
    const int64_t across = (n - 1) / block_width + 1, down = (n - 1) / block_rows + 1;
    const int64_t rows = (across * down - 1) / most_blocks + 1;

    return static_cast<int>(rows);
}

template <bool FORCED>
ps_status
predict(const ps_staggered *s, const ps_laplace *l, cudaStream_t stream)
{
    const int64_t blocks = ps_cuda_staggered_parts(s->cells);
    const int rows = rows_of(s->cells);

    return l != nullptr
               ? for_threads<block_threads>(blocks, stream,
                                            Predict<FORCED, ColouredCells>{
                                                *s, coloured(l->source, l), -1.0, rows})
               : for_threads<block_threads>(
                     blocks, stream,
                     Predict<FORCED, PlainCells>{*s, {s->q, s->cells}, 1.0, rows});
}

template <bool FORCED>
ps_status
correct(const ps_staggered *s, const ps_laplace *l, uint64_t *parts, cudaStream_t stream)
{
    const int64_t blocks = ps_cuda_staggered_parts(s->cells);
    const int rows = rows_of(s->cells);

    return l != nullptr
               ? for_threads<block_threads>(blocks, stream,
                                            Correct<FORCED, true, ColouredCells>{
                                                *s, coloured(l->t, l), parts, rows})
               : for_threads<block_threads>(blocks, stream,
                                            Correct<FORCED, false, PlainCells>{
                                                *s, {s->p, s->cells}, parts, rows});
}

} // namespace

int64_t
ps_cuda_staggered_parts(int64_t cells)
{
    const int64_t across = (cells - 1) / block_width + 1;

    return across * ((cells - 1) / (block_rows * rows_of(cells)) + 1);
}

ps_status
ps_cuda_staggered_predict(const ps_staggered *s, const ps_laplace *l, cudaStream_t stream)
{
    return s->force_x != nullptr ? predict<true>(s, l, stream)
                                 : predict<false>(s, l, stream);
}

ps_status
ps_cuda_staggered_correct(const ps_staggered *s, const ps_laplace *l, const Swept &swept,
                          uint64_t *parts, cudaStream_t stream)
{
    const ps_status status = s->force_x != nullptr ? correct<true>(s, l, parts, stream)
                                                   : correct<false>(s, l, parts, stream);

    return status == PS_OK
               ? for_threads<block_threads>(
                     1, stream,
                     CompleteStep{*s, parts, ps_cuda_staggered_parts(s->cells), swept})
               : status;
}

ps_status
ps_cuda_staggered_colour(const ps_staggered *s, const ps_laplace *l, cudaStream_t stream)
{
    double *const diag = static_cast<double *>(const_cast<void *>(l->diag));
    double *const gain = static_cast<double *>(const_cast<void *>(l->gain));

    return for_rows_of_elements(s->cells, s->cells, stream,
                                Colour{*s, coloured(l->t, l), diag, gain});
}

ps_status
ps_cuda_staggered_settle(const ps_staggered *s, cudaStream_t stream)
{
    return for_elements((s->cells + 2) * (s->cells + 2), stream,
                        Settle{s->clock, s->f, s->g, s->u, s->v});
}

} // namespace pysolvers::flow
