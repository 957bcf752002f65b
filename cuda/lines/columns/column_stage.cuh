/* column_stage.cuh - copies of rows from global memory to registers through a ring in
 * shared memory.
 *
 * Each warp has a ring for a few batches of rows of its chunks. After it has read a
 * batch, it starts the copies of the batch that replaces it. Memory is therefore busy
 * while rows are eliminated, joined and stored. If rows are aligned, a lane copies 16
 * bytes, also for neighbouring lanes; otherwise each lane copies its own elements: vectors
 * of 16 bytes that begin before the rows took 0.85 to 1.1 of the time in float32, and 1 to
 * 2.9 in float64.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_STAGE_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_STAGE_CUH

#include "lines/columns/column_tile_scheduler.cuh"

namespace pysolvers::columns {

/* The indices of a system on the two batch axes. */
struct ColumnPlace {
    int64_t outer, inner;

    template <typename Number>
    __device__ __forceinline__ ColumnPlace(const Systems<Number> &t, int64_t system)
    {
        outer = t.outer > 1 ? quotient(system, t.inner) : 0;
        inner = system - outer * t.inner;
    }
    template <typename Operand>
    __device__ __forceinline__ auto at(const Operand &operand, int32_t row) const
        -> decltype(operand.data)
    {
        return operand.system(outer, inner) + row * operand.row;
    }
};

/* The ring of a warp. */
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS,
          typename Job = ColumnJob<Number>>
struct ColumnStage {
    using Element = ElementOf<Number>;
    using Ring = ColumnRing<Number, IS_CLUSTER, ACCESS, Job::operands>;
    static constexpr int batch = Ring::batch, batches = ROWS / batch;

    __device__ __forceinline__ ColumnStage(const Job &j,
                                           const ColumnThreadPlace<ROWS> &place,
                                           const ColumnTileScheduler<IS_CLUSTER> &tiles,
                                           Element *memory)
        : job(j), self(place), scheduler(tiles), ring(memory)
    {
    }

    /* Start the copies of the first batches. */
    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int b = 0; b < Ring::slots; b++) {
            if (b % batches == 0) {
                set_sources(scheduler.at(b / batches), 0);
            }
            load(b % batches, ring + b * Ring::batch_words);
        }
    }

    /* Read batch b of the tile, and start the copies of the batch that replaces it.
     * Called by whole warps, for b = 0, 1, ... in this order, tile after tile. `fifth`
     * gets the fifth operand if there is one. */
    template <typename... Fifth>
    __device__ __forceinline__ void read(int b, Row<Number> (&row)[batch],
                                         Fifth &...fifth)
    {
        const int ahead = b + Ring::slots;
        Element *const place = ring + slot * Ring::batch_words;
        const Element *const from = place + threadIdx.x % 32;

        copies_done_but<Ring::slots - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < batch; i++) {
            const Element *const at = from + i * Ring::row_words;

            if constexpr (is_block<Number>) {
                row[i] = job.row_of(at);
            }
            else {
                row[i] = {at[0], at[32], at[64], value_at(at + 96)};
                ((fifth[i] = at[128]), ...);
            }
        }
        __syncwarp();
        if (b == 0 || ahead % batches == 0) {
            set_sources(scheduler.at(ahead / batches), ahead % batches * batch);
        }
        load(ahead % batches, place);
        slot = slot + 1 < Ring::slots ? slot + 1 : 0;
    }

  private:
    /* What the right-hand sides of a row have. */
    static __device__ __forceinline__ ValueOf<Number> value_at(const Number *rhs)
    {
        if constexpr (sides_of_number<Number> > 1) {
            ValueOf<Number> all;

#pragma unroll
            for (int p = 0; p < sides_of_number<Number>; p++) {
                all.at[p] = rhs[32 * p].value;
            }
            return all;
        }
        else {
            return *rhs;
        }
    }

    static constexpr bool by_vectors = ACCESS != ColumnAccess::elements;
    static constexpr int bytes = by_vectors ? 16 : sizeof(Element);
    static constexpr int vector = 16 / sizeof(Element);
    static constexpr int vectors = Job::operands * 32 / vector; /* of a row */
    static constexpr int copies = /* of a lane per row, of the last one by some lanes */
        by_vectors ? (vectors + 31) / 32 : Job::operands;
    const Job &job;
    const ColumnThreadPlace<ROWS> &self;
    const ColumnTileScheduler<IS_CLUSTER> &scheduler;
    Element *const ring;
    int32_t slot = 0;
    /* sources of this lane in the tile that is being loaded */
    const Element *from[copies];
    uint32_t wanted[copies]; /* bit i: row i is in memory */

    /* The operand of copy k, and the first of the lanes whose elements it copies. */
    static __device__ __forceinline__ int32_t operand_of(int k)
    {
        if constexpr (Job::operands != 4 && by_vectors) {
            return min((32 * k + threadIdx.x % 32) / (32 / vector), Job::operands - 1);
        }
        return by_vectors ? threadIdx.x % 32 / 8 : k;
    }
    static __device__ __forceinline__ int32_t lane_of(int k)
    {
        if constexpr (Job::operands != 4 && by_vectors) {
            return threadIdx.x % (32 / vector) * vector;
        }
        return by_vectors ? (threadIdx.x % 8 + 8 * k) * vector : threadIdx.x % 32;
    }

    /* Whether this lane has copy k. */
    static __device__ __forceinline__ bool has_copy(int k)
    {
        return !by_vectors || 32 * (k + 1) <= vectors ||
               32 * k + threadIdx.x % 32 < vectors;
    }

    /* Bit i: row i of a chunk that begins at row `start` is one of operand q in memory. */
    __device__ __forceinline__ uint32_t present(int32_t start, int32_t q) const
    {
        const int32_t first = max(job.begin[q] - start, 0);
        const int32_t count = min(job.end[q] - start, ROWS) - first;

        return count > 0 ? ~0u >> (32 - count) << first : 0;
    }

    /* Set the sources to row `row` of the chunks of a tile. */
    __device__ __forceinline__ void set_sources(int64_t tile, int row)
    {
        const int32_t width = job.shape.width;
        const SystemRange systems = job.systems(tile);

#pragma unroll
        for (int k = 0; k < copies; k++) {
            const int32_t lane = lane_of(k), q = operand_of(k);
            const int32_t start = self.start + ((lane >> width) - self.part) * ROWS;
            const int32_t column = lane & ((1 << width) - 1);

            const ColumnPlace place(job.t, systems.first + column);

            from[k] = place.at(job.inputs[q], start + row);
            wanted[k] = column < systems.count ? present(start, q) : 0;
            if constexpr (sides_of_number<Number> > 1) {
                wanted[k] = q - 3 < job.groups.sides_of(place.outer) ? wanted[k] : 0;
            }
            if constexpr (Job::has_absent) {
                wanted[k] = job.inputs[q].data != nullptr ? wanted[k] : 0;
            }
        }
    }

    /* Start the copies of batch b of the tile that is being loaded, and advance the
     * sources. The ring gets zeros for what is not in memory. */
    __device__ __forceinline__ void load(int b, Element *place)
    {
#pragma unroll
        for (int i = 0; i < batch; i++) {
            load_row(b * batch + i, place + i * Ring::row_words);
        }
        copies_committed();
    }

    /* Start the copies of row i of the chunk to `place`, and advance the sources. */
    __device__ __forceinline__ void load_row(int i, Element *place)
    {
#pragma unroll
        for (int k = 0; k < copies; k++) {
            Element *const to = place + operand_of(k) * 32 + lane_of(k);
            const bool is_wanted = (wanted[k] >> i & 1u) != 0;

            if (has_copy(k)) {
                copy(to, from[k], is_wanted);
            }
            if constexpr (is_block<Number>) {
                from[k] += job.input_step;
            }
            else {
                from[k] += job.inputs[operand_of(k)].row;
            }
        }
    }

    static __device__ __forceinline__ void copy(Element *to, const Element *source,
                                                bool is_wanted)
    {
        if (ACCESS == ColumnAccess::half_sectors) {
            copy_async_cached_or_clear(to, source, is_wanted);
        }
        else {
            copy_async_of_line_or_clear<bytes>(to, source, is_wanted);
        }
    }
};

} // namespace pysolvers::columns

#endif
