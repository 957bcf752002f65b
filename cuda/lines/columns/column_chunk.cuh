/* column_chunk.cuh - the eliminated rows of a thread, in registers and shared memory.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_CHUNK_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_CHUNK_CUH

#include "lines/join/segment.cuh"

namespace pysolvers::columns {

using namespace join;

/* A Chunk whose numbers g are in shared memory, so that a thread can have more rows:
 * x_i = g_i - l_i y_left - u_i x_{i+1} for i < ROWS - 1. */
template <typename Number, int ROWS> struct ColumnChunk {
    static constexpr int words = (ROWS - 1) * 32; /* of a warp */
    Number l[ROWS - 1], u[ROWS - 1];
    Number *const g; /* g_i at index 32 i */

    /* Like that of Chunk. */
    template <typename Rows, typename Inverter>
    __device__ __forceinline__ Segment<Number> eliminate(const Rows &rows, int32_t start,
                                                         int pads, Inverter &inverter)
    {
        Spike<Number> above = left_spike<Number>(), first = own_spike<Number>();

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            const Row<Number> row = rows(i);

            above = above.below(row, inverter.invert(above.pivot_of(row), start + i));
            g[32 * i] = above.g;
            l[i] = above.l;
            u[i] = above.u;
            if (i >= pads) {
                first = {first.g - first.u * above.g, first.l - first.u * above.l,
                         -(first.u * above.u)};
            }
        }
        return Segment<Number>::closed(first, above, rows(ROWS - 1));
    }

    /* x_i of all rows, from the last to the first: put(i, x). */
    template <typename Put>
    __device__ __forceinline__ void substitute(Number y_left, Number y,
                                               const Put &put) const
    {
        put(ROWS - 1, y);
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            y = Spike<Number>{g[32 * i], l[i], u[i]}.at(y_left, y);
            put(i, y);
        }
    }
};

} // namespace pysolvers::columns

#endif
