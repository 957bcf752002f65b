/* column_stage.cuh - copies of rows from global memory to registers through a ring in
 * shared memory.
 *
 * Each warp has a ring for a few batches of rows of its chunks. After it has read a
 * batch, it starts the copies of the batch that replaces it. Memory is therefore busy
 * while rows are eliminated, joined and stored.
 *
 * If rows are aligned, a lane copies 16 bytes, also for neighbouring lanes. If they are
 * not, but neighbouring systems lie side by side, it copies the vectors of 16 bytes that
 * contain the elements of a chunk: each row has its own shift to the begin of a sector,
 * and keeps it in shared memory. Otherwise each lane copies its own elements.
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
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS>
struct ColumnStage {
    using Ring = ColumnRing<Number, IS_CLUSTER, ACCESS>;
    static constexpr int batch = Ring::batch, batches = ROWS / batch;

    __device__ __forceinline__ ColumnStage(const ColumnJob<Number> &j,
                                           const ColumnThreadPlace<ROWS> &place,
                                           const ColumnTileScheduler<IS_CLUSTER> &tiles,
                                           Number *memory)
        : job(j), self(place), scheduler(tiles), ring(memory)
    {
        if constexpr (is_shifted) {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const Input<Number> &in = job.inputs[q];
                low[q] = low_bits(in.data + self.start * in.row);
            }
        }
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
     * Called by whole warps, for b = 0, 1, ... in this order, tile after tile. */
    __device__ __forceinline__ void read(int b, Row<Number> (&row)[batch])
    {
        const int ahead = b + Ring::slots;
        Number *const place = ring + slot * Ring::batch_words;

        copies_done_but<Ring::slots - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < batch; i++) {
            const Number *const at = place + i * Ring::row_words + own_word();
            const int r = b * batch + i;
            row[i] = {at[word_of(0, r)], at[word_of(1, r)], at[word_of(2, r)],
                      at[word_of(3, r)]};
        }
        __syncwarp();
        if (b == 0 || ahead % batches == 0) {
            set_sources(scheduler.at(ahead / batches), ahead % batches * batch);
        }
        load(ahead % batches, place);
        slot = slot + 1 < Ring::slots ? slot + 1 : 0;
    }

  private:
    static constexpr bool is_shifted = ACCESS == ColumnAccess::shifted;
    static constexpr bool by_vectors = ACCESS != ColumnAccess::elements;
    static constexpr int bytes = by_vectors ? vector_bytes : sizeof(Number);
    /* vectors of a row of 32 aligned elements, and those that shifts add */
    static constexpr int vectors = 32 * sizeof(Number) / vector_bytes;
    static constexpr int added = is_shifted ? Ring::spare / Ring::sector : 0;
    /* copies of a lane per row; vectors of an operand are copied by eight lanes */
    static constexpr int copies = by_vectors ? (vectors + added + 7) / 8 : 4;
    const ColumnJob<Number> &job;
    const ColumnThreadPlace<ROWS> &self;
    const ColumnTileScheduler<IS_CLUSTER> &scheduler;
    Number *const ring;
    int32_t slot = 0;
    /* sources of this lane in the tile that is being loaded */
    const Number *from[copies];
    uint32_t wanted[copies]; /* bit i: row i exists */
    /* shifted: the address of row 0 of the chunk; the place of a vector in a row of the
     * ring, in bytes; whether aligned rows end before the vector */
    uint32_t low[is_shifted ? 4 : 1];
    int32_t target[is_shifted ? copies : 1];
    bool is_spare[is_shifted ? copies : 1];

    /* The operand of copy k, and the first of the lanes whose elements it copies. */
    static __device__ __forceinline__ int32_t operand_of(int k)
    {
        return by_vectors ? threadIdx.x % 32 / 8 : k;
    }
    static __device__ __forceinline__ int32_t lane_of(int k)
    {
        constexpr int vector = 16 / sizeof(Number);
        return by_vectors ? (threadIdx.x % 8 + 8 * k) * vector : threadIdx.x % 32;
    }

    static __device__ __forceinline__ uint32_t low_bits(const Number *at)
    {
        return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at));
    }

    /* Bytes of a chunk in a row of the ring, for an operand whose rows are shifted. */
    __device__ __forceinline__ int32_t chunk_bytes() const
    {
        return (static_cast<int32_t>(sizeof(Number)) << job.shape.width) + sector_bytes;
    }

    /* The place of this lane's element in a row of the ring: own_word() + word_of(). */
    __device__ __forceinline__ int32_t own_word() const
    {
        constexpr int32_t size = sizeof(Number);
        return is_shifted ? self.part * (chunk_bytes() / size) + self.column
                          : static_cast<int32_t>(threadIdx.x % 32);
    }
    /* For operand q of row r of the chunk. The width of a tile is a multiple of a sector,
     * so that the shift does not depend on the tile. */
    __device__ __forceinline__ int32_t word_of(int q, int r) const
    {
        if constexpr (is_shifted) {
            constexpr uint32_t size = sizeof(Number);
            const uint32_t at = low[q] + r * size * uint32_t(job.inputs[q].row);
            return q * Ring::operand_words + at % sector_bytes / size;
        }
        else {
            return q * Ring::operand_words;
        }
    }

    /* Bit i: row i of a chunk that begins at row `start` of operand q is in memory. */
    __device__ __forceinline__ uint32_t present(int32_t start, int32_t q) const
    {
        const int32_t absent = job.absent[q] - start;
        const int32_t pads = max(-start, 0);
        const uint32_t all = pads < ROWS ? ~0u >> (32 - ROWS) << pads : 0;

        return absent >= 0 && absent < ROWS ? all & ~(1u << absent) : all;
    }

    /* Set the sources to row `row` of the chunks of a tile. */
    __device__ __forceinline__ void set_sources(int64_t tile, int row)
    {
        if constexpr (is_shifted) {
            set_shifted(tile, row);
        }
        else {
            set_aligned(tile, row);
        }
    }
    __device__ __forceinline__ void set_aligned(int64_t tile, int row)
    {
        const int32_t width = job.shape.width;

#pragma unroll
        for (int k = 0; k < copies; k++) {
            const int32_t lane = lane_of(k), q = operand_of(k);
            const int32_t start = self.start + ((lane >> width) - self.part) * ROWS;
            const int64_t system = (tile << width) + (lane & ((1 << width) - 1));

            from[k] = ColumnPlace(job.t, system).at(job.inputs[q], start + row);
            wanted[k] = system < job.t.outer * job.t.inner ? present(start, q) : 0;
        }
    }

    /* The same for vectors that begin anywhere: an element of the vector, of which the
     * target has the place that it would have if the row began at a sector. */
    __device__ __forceinline__ void set_shifted(int64_t tile, int row)
    {
        constexpr int32_t size = sizeof(Number), vector = vector_bytes / size;
        const int64_t system = tile << job.shape.width;
        const int32_t count = (1 << job.shape.width) / vector + 1; /* of a chunk */
        const bool is_there = system < job.t.inner;

#pragma unroll
        for (int k = 0; k < copies; k++) {
            const int32_t which = threadIdx.x % 8 + 8 * k, q = operand_of(k);
            const int32_t part = which / count, j = which - part * count;
            const int32_t start = self.start + (part - self.part) * ROWS;
            const Input<Number> &in = job.inputs[q];

            from[k] = in.data + (start + row) * in.row + system + j * vector;
            wanted[k] = is_there && part < job.shape.parts() ? present(start, q) : 0;
            target[k] =
                q * Ring::operand_words * size + part * chunk_bytes() + j * vector_bytes;
            is_spare[k] = j == count - 1;
        }
    }

    /* Start copy k of a row, shifted, if it has elements of the row. The target has the
     * alignment of the source to sectors: otherwise sectors are transferred twice. */
    __device__ __forceinline__ void load_shifted(int k, char *to) const
    {
        const uintptr_t at = reinterpret_cast<uintptr_t>(from[k]);
        const uintptr_t begin = at & ~uintptr_t(vector_bytes - 1);
        const auto end = reinterpret_cast<uintptr_t>(job.end[operand_of(k)]);
        const int64_t left = static_cast<int64_t>(end - begin);
        const int32_t half = static_cast<int32_t>(at ^ target[k]) & vector_bytes;

        if (left > 0 && !(is_spare[k] && at == begin)) {
            copy_async_of_line_part(to + target[k] + half,
                                    reinterpret_cast<const void *>(begin),
                                    left < vector_bytes ? left : vector_bytes);
        }
    }

    /* Start the copies of batch b of the tile that is being loaded, and advance the
     * sources. */
    __device__ __forceinline__ void load(int b, Number *place)
    {
#pragma unroll
        for (int i = 0; i < batch; i++) {
#pragma unroll
            for (int k = 0; k < copies; k++) {
                Number *const line = place + i * Ring::row_words;
                Number *const to = line + operand_of(k) * 32 + lane_of(k);

                if ((wanted[k] >> (b * batch + i) & 1u) != 0) {
                    if constexpr (is_shifted) {
                        load_shifted(k, reinterpret_cast<char *>(line));
                    }
                    else if (ACCESS == ColumnAccess::halves) {
                        copy_async_cached(to, from[k]);
                    }
                    else {
                        copy_async_of_line<bytes>(to, from[k]);
                    }
                }
                from[k] += job.inputs[operand_of(k)].row;
            }
        }
        copies_committed();
    }
};

} // namespace pysolvers::columns

#endif
