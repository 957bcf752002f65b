/* row_walk.cuh - one pass over the rows of a batch, each computed from the row's three
 * coefficients and the values u of it and of its neighbours.
 *
 * Neighbouring threads have neighbouring numbers of memory: of rows if these are
 * contiguous, otherwise of systems. A thread has several numbers side by side, a pack,
 * and walks along the other axis, from system to system or from row to row. Packs of 16
 * bytes are read and written at once where their addresses allow it. Along strided rows
 * a thread reads each u once and keeps it for the next two rows; along contiguous rows
 * the neighbours of a pack come from the cache.
 *
 * A form computes and stores the rows of a pack: form.put<WIDTH>(place, rows). Of
 * Form::at_once packs of 16 bytes, twice as many smaller ones, all operands are loaded
 * before a result is stored.
 *
 * Of marked systems only: a thread of a block reads one mark, and all threads of the block
 * compute the rows of the systems that have one. Without marked systems, a step with this and the
 * solver with row exchanges behind it takes 1.04 to 1.08 of its time (H200, 65536 systems of 512
 * rows; 1.06 to 1.10 if the kernel does not follow the last one closely). When a mark was read for
 * each number of the rows, this took half to all of the time of the step.
 *
 * A kernel apart from those of solves, because a product has no elimination and no
 * exchange: it moves its words at 0.84 to 1.02 of the speed of a copy (H200, own
 * matrices, 64 to 1000 rows).
 */
#ifndef PS_CUDA_LINES_ROW_WALK_CUH
#define PS_CUDA_LINES_ROW_WALK_CUH

#include <type_traits>

#include "device/operand.cuh"
#include "device/pack.cuh"
#include "lines/row_walk.h"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

using namespace runtime;

/* The place of a pack: its first number along the axis of neighbouring threads, its
 * indices on the other two axes, and the row of its first number. */
struct WalkPlace {
    int64_t along, step, other;
    int32_t row;
};

/* A pack of an operand without the entries `absent`, a bit each, which become 0. */
template <int WIDTH, typename Number>
__device__ __forceinline__ Pack<Number, WIDTH>
load_pack(const Walked<const Number> &from, const WalkPlace &at, uint32_t absent = 0)
{
    const Number *const first = from.at(at.along, at.step, at.other);
    Pack<Number, WIDTH> pack;

    if (WIDTH > 1 && from.access == PackAccess::whole) {
        return *reinterpret_cast<const Pack<Number, WIDTH> *>(first);
    }
    if (WIDTH > 1 && from.access == PackAccess::same) {
        const Number value = *first;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            pack.of[j] = value;
        }
        return pack;
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        pack.of[j] = (absent >> j & 1u) == 0 ? first[j * from.along] : Number(0);
    }
    return pack;
}

template <int WIDTH, typename Number>
__device__ __forceinline__ void
store_pack(const Walked<Number> &to, const WalkPlace &at, const Pack<Number, WIDTH> &pack)
{
    Number *const first = to.at(at.along, at.step, at.other);

    if (WIDTH > 1 && to.access == PackAccess::whole) {
        *reinterpret_cast<Pack<Number, WIDTH> *>(first) = pack;
        return;
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        first[j * to.along] = pack.of[j];
    }
}

/* The numbers of a pack of rows: of neighbouring systems, or of neighbouring rows of one
 * system. lower is 0 in a row without a left neighbour, upper in one without a right
 * one, and so is what stands for u there. */
template <typename Number, int WIDTH> struct PackOfRows {
    Pack<Number, WIDTH> lower, diag, upper, u, before, behind, added;
};

/* Along contiguous rows: the coefficients of a pack. */
template <int WIDTH, typename Number>
__device__ __forceinline__ void
load_matrix(const RowWalk<Number> &w, const WalkPlace &at, PackOfRows<Number, WIDTH> &p)
{
    const bool is_first = at.row == 0, is_last = at.row + WIDTH == w.rows;
    const uint32_t no_lower = is_first && w.short_lower ? 1u : 0;
    const uint32_t no_upper = is_last && w.short_upper ? 1u << (WIDTH - 1) : 0;

    p.lower = load_pack<WIDTH>(w.lower, at, no_lower);
    p.diag = load_pack<WIDTH>(w.diag, at);
    p.upper = load_pack<WIDTH>(w.upper, at, no_upper);
    if (is_first && !w.periodic) {
        p.lower.of[0] = Number(0);
    }
    if (is_last && !w.periodic) {
        p.upper.of[WIDTH - 1] = Number(0);
    }
}

/* The other numbers of the pack. */
template <int WIDTH, typename Number>
__device__ __forceinline__ void
load_vectors(const RowWalk<Number> &w, const WalkPlace &at, PackOfRows<Number, WIDTH> &p)
{
    using P = Pack<Number, WIDTH>;
    const bool is_first = at.row == 0, is_last = at.row + WIDTH == w.rows;
    const Number *const u = w.u.at(at.along, at.step, at.other);
    const int64_t far = static_cast<int64_t>(w.rows - WIDTH) * w.u.along;
    Number before = Number(0), behind = Number(0);

    p.u = load_pack<WIDTH>(w.u, at);
    if (!is_first || w.periodic) {
        before = is_first ? u[far + (WIDTH - 1) * w.u.along] : u[-w.u.along];
    }
    if (!is_last || w.periodic) {
        behind = is_last ? u[-far] : u[WIDTH * w.u.along];
    }
    p.added = w.added.data != nullptr ? load_pack<WIDTH>(w.added, at) : P{};
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        p.before.of[j] = j > 0 ? p.u.of[j - 1] : before;
        p.behind.of[j] = j + 1 < WIDTH ? p.u.of[j + 1] : behind;
    }
}

/* Along contiguous rows: a thread has the same rows of one system after the other. The
 * coefficients that all systems share are loaded once. */
template <int AT_ONCE, bool IS_SHARED, int WIDTH, typename Number, typename Form>
__device__ __forceinline__ void
walk_systems(const RowWalk<Number> &w, const Form &form, WalkPlace at, int64_t begin,
             int64_t end)
{
    PackOfRows<Number, WIDTH> shared;

    at.row = static_cast<int32_t>(at.along);
    if (IS_SHARED) {
        at.step = begin;
        load_matrix(w, at, shared);
    }
    for (int64_t first = begin; first < end; first += AT_ONCE) {
        PackOfRows<Number, WIDTH> p[AT_ONCE];

#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            at.step = first + k;
            if (at.step < end) {
                if (IS_SHARED) {
                    p[k].lower = shared.lower;
                    p[k].diag = shared.diag;
                    p[k].upper = shared.upper;
                }
                else {
                    load_matrix(w, at, p[k]);
                }
                load_vectors(w, at, p[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            at.step = first + k;
            if (at.step < end) {
                form.template put<WIDTH>(at, p[k]);
            }
        }
    }
}

/* Along strided rows: u of row `row`, 0 where there is no row. */
template <int WIDTH, typename Number>
__device__ __forceinline__ Pack<Number, WIDTH>
load_u_of_row(const RowWalk<Number> &w, WalkPlace at, int64_t row)
{
    if (row < 0 || row >= w.rows) {
        if (!w.periodic) {
            return {};
        }
        row = row < 0 ? w.rows - 1 : 0;
    }
    at.step = row;
    return load_pack<WIDTH>(w.u, at);
}

/* Along strided rows: what row at.step has apart from u of itself and of the row before it. */
template <int WIDTH, typename Number>
__device__ __forceinline__ void
load_row(const RowWalk<Number> &w, const WalkPlace &at, PackOfRows<Number, WIDTH> &p)
{
    using P = Pack<Number, WIDTH>;
    const bool no_left = at.step == 0 && !w.periodic;
    const bool no_right = at.step == w.rows - 1 && !w.periodic;

    p.behind = load_u_of_row<WIDTH>(w, at, at.step + 1);
    p.lower = no_left ? P{} : load_pack<WIDTH>(w.lower, at);
    p.diag = load_pack<WIDTH>(w.diag, at);
    p.upper = no_right ? P{} : load_pack<WIDTH>(w.upper, at);
    p.added = w.added.data != nullptr ? load_pack<WIDTH>(w.added, at) : P{};
}

/* Along strided rows: a thread has one row after the other of the same systems. */
template <int AT_ONCE, int WIDTH, typename Number, typename Form>
__device__ __forceinline__ void
walk_rows(const RowWalk<Number> &w, const Form &form, WalkPlace at, int64_t begin,
          int64_t end)
{
    using P = Pack<Number, WIDTH>;
    P before = load_u_of_row<WIDTH>(w, at, begin - 1);
    P now = load_u_of_row<WIDTH>(w, at, begin);

    for (int64_t first = begin; first < end; first += AT_ONCE) {
        PackOfRows<Number, WIDTH> p[AT_ONCE];

#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            at.step = first + k;
            if (at.step < end) {
                load_row(w, at, p[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            at.step = first + k;
            if (at.step < end) {
                at.row = static_cast<int32_t>(at.step);
                p[k].before = before;
                p[k].u = now;
                before = now;
                now = p[k].behind;
                form.template put<WIDTH>(at, p[k]);
            }
        }
    }
}

/* The walk of thread `index` of w.threads. */
template <bool BY_ROW, int WIDTH, typename Number, typename Form> struct ThreadWalk {
    RowWalk<Number> w;
    Form form;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        constexpr int at_once = (WIDTH * sizeof(Number) >= 16 ? 1 : 2) * Form::at_once;
        const int64_t rest = quotient(index, w.packs);
        WalkPlace at;

        at.along = (index - rest * w.packs) * WIDTH;
        at.other = quotient(rest, w.walks);
        const int64_t begin = (rest - at.other * w.walks) * w.each;
        const int64_t end = min(begin + w.each, w.steps);

        if constexpr (!BY_ROW) {
            walk_rows<at_once, WIDTH>(w, form, at, begin, end);
        }
        else if (w.is_shared) { /* u alone must keep the memory busy */
            walk_systems<2 * at_once, true, WIDTH>(w, form, at, begin, end);
        }
        else {
            walk_systems<at_once, false, WIDTH>(w, form, at, begin, end);
        }
    }
};

/* Row `row` of one system. */
template <bool BY_ROW, typename Number, typename Form>
__device__ __forceinline__ void
walk_one_row(const RowWalk<Number> &w, const Form &form, int64_t near, int64_t far,
             int32_t row)
{
    const WalkPlace at = {BY_ROW ? row : near, BY_ROW ? near : row, far, row};
    PackOfRows<Number, 1> p;

    if constexpr (BY_ROW) {
        load_matrix(w, at, p);
        load_vectors(w, at, p);
    }
    else {
        load_row(w, at, p);
        p.before = load_u_of_row<1>(w, at, at.step - 1);
        p.u = load_pack<1>(w.u, at);
    }
    form.template put<1>(at, p);
}

/* Grid: `parts` blocks with a part of the rows each for every walk_threads systems. */
template <bool BY_ROW, typename Number, typename Form> struct MarkedWalk {
    RowWalk<Number> w;
    MarkedSystems marked;
    int32_t parts;
    Form form;

    __device__ __forceinline__ void operator()() const
    {
        __shared__ int32_t counts[walk_threads / 32];
        __shared__ int64_t found[walk_threads]; /* the marked systems */
        const int64_t block = blockIdx.x / parts,
                      system = block * walk_threads + threadIdx.x;

        wait_for_last_kernel();
        const bool is_marked = system < marked.count && marked.marks[system] != 0;

        if (__syncthreads_or(is_marked) == 0) {
            return;
        }
        const int32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const uint32_t of_warp = __ballot_sync(all_lanes, is_marked);
        int32_t before = __popc(of_warp & ((1u << lane) - 1)), all = 0;

        if (lane == 0) {
            counts[warp] = __popc(of_warp);
        }
        __syncthreads();
        for (int i = 0; i < walk_threads / 32; i++) {
            before += i < warp ? counts[i] : 0;
            all += counts[i];
        }
        if (is_marked) {
            found[before] = system;
        }
        __syncthreads();

        const int32_t part = static_cast<int32_t>(blockIdx.x - block * parts);
        const int32_t each = divided_up(w.rows, parts), begin = part * each;
        const int32_t rows = min(each, w.rows - begin);

        for (int64_t i = threadIdx.x; i < int64_t(rows) * all; i += walk_threads) {
            const int64_t slow = quotient(i, BY_ROW ? rows : all);
            const int32_t fast = static_cast<int32_t>(i - slow * (BY_ROW ? rows : all));
            const int64_t which = found[BY_ROW ? slow : fast];
            const int64_t j = quotient(which, marked.inner), k = which - j * marked.inner;

            walk_one_row<BY_ROW>(w, form, marked.swaps ? j : k, marked.swaps ? k : j,
                                 begin + (BY_ROW ? fast : static_cast<int32_t>(slow)));
        }
    }
};

/* The rows of the marked systems. */
template <typename Number, typename Form>
inline ps_status
launch_marked(const RowWalk<Number> &w, const MarkedSystems &marked, const Form &form,
              cudaStream_t stream)
{
    constexpr int64_t least_blocks = 1024, least_rows = 32;
    const int64_t runs = divided_up(marked.count, walk_threads);
    const int64_t wanted =
        std::min(divided_up(least_blocks, runs), divided_up(int64_t(w.rows), least_rows));
    /* no part is empty */
    const auto parts = static_cast<int32_t>(
        divided_up(int64_t(w.rows), divided_up(int64_t(w.rows), wanted)));

    const auto run = [&](auto by_row) {
        return for_threads<walk_threads>(
            runs * parts, stream,
            MarkedWalk<by_row.value, Number, Form>{w, marked, parts, form});
    };

    return w.by_row ? run(std::true_type()) : run(std::false_type());
}

template <int WIDTH, typename Number, typename Form>
inline ps_status
launch_walk(const RowWalk<Number> &w, const Form &form, cudaStream_t stream)
{
    const auto run = [&](auto by_row) {
        return for_elements<walk_threads, 2>(
            w.threads, stream, ThreadWalk<by_row.value, WIDTH, Number, Form>{w, form});
    };

    return w.by_row ? run(std::true_type()) : run(std::false_type());
}

/* Enqueue the walk. */
template <typename Number, typename Form>
inline ps_status
run_walk(const RowWalk<Number> &w, const Form &form, cudaStream_t stream)
{
    constexpr int width = pack_width<Number>;

    if constexpr (width > 1) {
        if (w.width == width) {
            return launch_walk<width>(w, form, stream);
        }
    }
    return launch_walk<1>(w, form, stream);
}

} // namespace pysolvers::lines

#endif
