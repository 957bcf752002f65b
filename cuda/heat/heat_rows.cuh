/* heat_rows.cuh - a sweep along x.
 *
 * A block solves one line after the other in shared memory. The next line is loaded by
 * a bulk copy while one is solved, if shared memory holds both, and a solved line is stored by a bulk
 * copy; elements outside of 16-byte boundaries are copied one by one. A chunk has an odd number of
 * rows, so that its threads use different banks.
 *
 * Why not the division of device/run_copy.cuh: with it the kernel of chunks of 17 rows in
 * float32 takes 80 instead of 63 registers, 3 instead of 4 blocks per multiprocessor.
 */
#ifndef PS_CUDA_HEAT_HEAT_ROWS_CUH
#define PS_CUDA_HEAT_HEAT_ROWS_CUH

#include "device/tile_copy.cuh"
#include "heat/heat_line.cuh"
#include "heat/heat_sweeps.h"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

enum { HEAT_STAGES = 2 }; /* lines in shared memory, at most */

/* The location of a line in global and in shared memory. */
template <typename Real> struct HeatSpan {
    static constexpr int per_copy = 16 / sizeof(Real);
    Real *memory;
    Real *chip; /* of the first row */
    /* `head` rows are copied one by one, then `body` rows in bulk */
    int rows, head, body;

    __device__ __forceinline__ HeatSpan(Real *from, Real *buffer, int pads, int64_t count)
        : memory(from), rows(static_cast<int>(count))
    {
        const int place =
            static_cast<int>(reinterpret_cast<uintptr_t>(from) / sizeof(Real));

        chip = buffer + pads + ((place - pads) & (per_copy - 1));
        head = min(-place & (per_copy - 1), rows);
        body = (rows - head) & -per_copy;
    }

    /* By the lanes of a warp. */
    __device__ __forceinline__ void load(int lane, Arrivals &arrivals) const
    {
        if (!has_bulk) {
            for (int i = lane; i < rows; i += 32) {
                chip[i] = memory[i];
            }
            return;
        }
        if (lane == 0) {
            arrivals.expect(body * static_cast<int>(sizeof(Real)));
            if (body > 0) {
                copy_bulk(chip + head, memory + head,
                          body * static_cast<int>(sizeof(Real)), arrivals);
            }
        }
        for (int i = lane; i < rows - body; i += 32) {
            const int at = i < head ? i : i + body;

            chip[at] = memory[at];
        }
    }

    __device__ __forceinline__ void store(int lane, bool keeps_in_cache) const
    {
        if (!has_bulk) {
            for (int i = lane; i < rows; i += 32) {
                memory[i] = chip[i];
            }
            return;
        }
        if (lane == 0 && body > 0) {
            const int bytes = body * static_cast<int>(sizeof(Real));

            if (keeps_in_cache) {
                store_bulk_evict_last(memory + head, chip + head, bytes);
            }
            else {
                store_bulk(memory + head, chip + head, bytes);
            }
            commit_stores();
        }
        for (int i = lane; i < rows - body; i += 32) {
            const int at = i < head ? i : i + body;

            memory[at] = chip[at];
        }
    }
};

/* The shared memory of a block apart from the lines. */
template <typename Real>
static constexpr size_t heat_row_shared_bytes =
    HEAT_STAGES * sizeof(Arrivals) + HEAT_MOST_GROUPS * sizeof(HeatPair<Real>);

/* Solve a chunk of a line in shared memory. */
template <bool EDGE, typename Real, int ROWS>
__device__ __forceinline__ HeatPair<Real>
eliminate_row_chunk(HeatChunk<Real, ROWS> &chunk, const Real *w, const Real *added,
                    int64_t step, const Real end[2])
{
    if (added == nullptr) {
        return chunk.template eliminate<EDGE>([&](int i) { return w[i]; }, end);
    }
    return chunk.template eliminate<EDGE>([&](int i) { return w[i] + added[i * step]; },
                                          end);
}

template <bool EDGE, typename Real, int ROWS>
__device__ __forceinline__ void
substitute_row_chunk(HeatChunk<Real, ROWS> &chunk, const HeatPair<Real> &in, Real *w,
                     ps_cuda_heat_sink sink)
{
    const Real own = sink == HEAT_PLAIN ? Real(1) : Real(2);
    const Real old = sink == HEAT_PLAIN ? Real(0) : Real(-1);

    chunk.template substitute<EDGE>(
        in, [&](int i, Real x) { w[i] = fma(old, w[i], own * x); });
}

/* The lines of a block, one after the other. */
template <typename Real> struct HeatCursor {
    const HeatRows<Real> &s;
    int64_t j, k, skip_j, skip_k;

    __device__ __forceinline__ explicit HeatCursor(const HeatRows<Real> &of) : s(of)
    {
        k = blockIdx.x / s.lines[0];
        j = blockIdx.x - k * s.lines[0];
        skip_k = gridDim.x / s.lines[0];
        skip_j = gridDim.x - skip_k * s.lines[0];
    }

    __device__ __forceinline__ bool is_there() const
    {
        return k < s.lines[1];
    }

    __device__ __forceinline__ void advance()
    {
        j += skip_j;
        k += skip_k;
        if (j >= s.lines[0]) {
            j -= s.lines[0];
            k++;
        }
    }

    __device__ __forceinline__ Real *line() const
    {
        return s.w + j * s.pitch[0] + k * s.pitch[1];
    }
    /* Where it is read. */
    template <bool MOVES> __device__ __forceinline__ Real *source() const
    {
        return MOVES ? const_cast<Real *>(s.from) + j * s.from_pitch : line();
    }
};

/* The last warp of a block copies, because the first one has the edge of the line. MOVES: lines are
 * read from another field, whose distance from 16 bytes is another one, and all threads store. */
template <typename Real, int ROWS, int THREADS, int BLOCKS, bool MOVES,
          int STAGES = HEAT_STAGES>
__global__ void
__launch_bounds__(THREADS, BLOCKS)
    heat_rows_kernel(const __grid_constant__ HeatLine<Real> line,
                     const __grid_constant__ HeatRows<Real> s, int buffer)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ Arrivals arrivals[STAGES];
    __shared__ HeatPair<Real> total[HEAT_MOST_GROUPS];
    const int number = static_cast<int>(threadIdx.x), start = number * ROWS - line.pads;
    const int lane = number % 32, group = number / 32;
    const bool is_edge = group == 0, is_copier = group == line.groups - 1;
    HeatChunk<Real, ROWS> chunk = {line, min(max(-start, 0), static_cast<int>(ROWS)),
                                   number == line.first_chunk,
                                   number == HEAT_CHUNKS * line.groups - 1};
    Real *const buffers = reinterpret_cast<Real *>(memory);
    HeatCursor<Real> cursor(s);

    if (number == 0) {
        for (int k = 0; k < STAGES; k++) {
            arrivals[k].init(1);
        }
    }
    __syncthreads();
    wait_for_last_kernel();
    const HeatShare<Real> share(*line.table, lane, group);
    if (is_copier && cursor.is_there()) {
        HeatSpan<Real>(cursor.template source<MOVES>(), buffers, line.pads, s.rows)
            .load(lane, arrivals[0]);
    }
    __syncthreads();
    for (int round = 0; cursor.is_there(); round++) {
        const int stage = round % STAGES;
        const int64_t node = cursor.j + cursor.k * s.side;
        const Real end[2] = {s.end[0].at(node), s.end[1].at(node)};
        const HeatSpan<Real> span(cursor.template source<MOVES>(),
                                  buffers + stage * buffer, line.pads, s.rows);
        Real *const to = MOVES ? cursor.line() : nullptr;
        Real *const w = span.chip + start;
        const Real *const added =
            s.added.data == nullptr
                ? nullptr
                : s.added.data + (span.memory - s.w + start) * s.added.step;
        HeatGroup<Real> chunks = {line, lane, group};

        arrivals[stage].wait(round / STAGES & 1);
        const HeatPair<Real> whole = chunks.scan(
            is_edge ? eliminate_row_chunk<true>(chunk, w, added, s.added.step, end)
                    : eliminate_row_chunk<false>(chunk, w, added, s.added.step, end));
        if (lane == 0) {
            total[group] = whole;
        }
        __syncthreads();
        const bool keeps_in_cache = cursor.j >= s.lines[0] - s.kept;
        const auto load_next = [&]() {
            if (is_copier && cursor.is_there()) {
                const int next = (round + 1) % STAGES;

                if (lane == 0) {
                    stores_read();
                }
                bulk_fence();
                __syncwarp();
                HeatSpan<Real>(cursor.template source<MOVES>(), buffers + next * buffer,
                               line.pads, s.rows)
                    .load(lane, arrivals[next]);
            }
        };

        cursor.advance();
        if (STAGES > 1) {
            load_next();
        }
        if (!cursor.is_there()) {
            let_next_kernel_in();
        }
        const HeatInflow<Real> from =
            heat_inflow(line, share, group, [&](int g) { return total[g]; }, end);
        HeatPair<Real> in = share.into_chunk(chunks.in, from.group);

        if (chunk.has_first && chunk.pads > 0) {
            in.u = from.first;
        }
        if (is_edge) {
            substitute_row_chunk<true>(chunk, in, w, s.sink);
        }
        else {
            substitute_row_chunk<false>(chunk, in, w, s.sink);
        }
        bulk_fence();
        __syncthreads();
        if constexpr (MOVES) {
            for (int i = number; i < span.rows; i += static_cast<int>(blockDim.x)) {
                to[i] = span.chip[i];
            }
        }
        else if (is_copier) {
            span.store(lane, keeps_in_cache);
        }
        if (STAGES == 1) {
            if (MOVES) {
                __syncthreads();
            }
            load_next();
            __syncthreads();
        }
    }
    if (is_copier && lane == 0) {
        stores_written();
    }
}

} // namespace pysolvers::heat

#endif
