/* line_tiles.cuh - tiles of whole neighbouring lines in shared memory, for the
 * partition method.
 *
 * A block reads some lines of a field in the order of memory, stores their numbers in
 * planes of shared memory, solves the lines there with a chunk of 4 or 8 rows per thread
 * (levels.cuh), and writes the solution in the order of memory. The pitch of a chunk is
 * one word more than it has, which avoids bank conflicts.
 */
#ifndef PS_CUDA_LINES_JOIN_LINE_TILES_CUH
#define PS_CUDA_LINES_JOIN_LINE_TILES_CUH

#include "lines/join/levels.cuh"
#include "runtime/engine.h"

namespace pysolvers::join {

using namespace runtime;

constexpr int chunk_rows = 8, chunk_pitch = 9, warp_lanes = 32;
constexpr int largest_block = 512;

/* Tile `blockIdx.x` consists of lines first, first + 1, ... of a field; a line has a
 * system of shape.rows rows from node `begin` on. */
struct LineTiles {
    Shape shape;
    int nodes, begin;
    int lines, threads, blocks;
    int line_bits; /* along y: 2^line_bits neighbouring threads process neighbouring lines
                    */
    int chunk_bits; /* a chunk has 2^chunk_bits rows */
    int front;      /* pads before the first row: lines are aligned to their ends */
    int pitch, plane;
    size_t shared;
};

/* The nodes of a thread in the order of memory: in the lines `line` to `end` of the
 * tile, every `step`th node from `node` on. */
template <int AXIS> struct Walk {
    int line, end, node, step;

    __device__ __forceinline__ explicit Walk(const LineTiles &t)
    {
        const int thread = static_cast<int>(threadIdx.x);

        if (AXIS == 0) {
            line = 0;
            end = t.lines;
            node = thread;
            step = t.threads;
        }
        else {
            line = thread & ((1 << t.line_bits) - 1);
            end = min(line + 1, t.lines);
            node = thread >> t.line_bits;
            step = t.threads >> t.line_bits;
        }
    }
};

__device__ __forceinline__ int
slot_of(const LineTiles &t, int line, int node)
{
    const int place = node - t.begin + t.front;

    return line * t.pitch + place + (place >> t.chunk_bits);
}

/* Lines of a tile: whole memory sectors along y; along x few lines, because small
 * blocks overlap their copies and computations better. */
inline int
lines_for(const Shape &shape, int axis, int word)
{
    const int block = axis == 0 ? 4 * warp_lanes : largest_block;
    const int sector = 32 / word, wanted = axis == 0 ? shape.groups : sector;
    const int fitting = block / (shape.warps * warp_lanes);

    if (shape.warps > 1) {
        return fitting < 1 ? 1 : fitting > sector ? sector : fitting;
    }
    return (wanted + shape.groups - 1) / shape.groups * shape.groups;
}

inline void
set_lines(LineTiles &t, int lines, int all, int axis, int words, int word)
{
    t.lines = lines;
    t.threads = lines / t.shape.groups * t.shape.warps * warp_lanes;
    t.blocks = (all + lines - 1) / lines;
    t.line_bits = 0;
    while (axis == 1 && 1 << t.line_bits < lines) {
        t.line_bits++;
    }
    t.pitch = t.shape.chunks() * ((1 << t.chunk_bits) + 1);
    while (lines > 1 && t.pitch % 16 != 4) {
        t.pitch++;
    }
    t.plane = lines * t.pitch;
    t.shared = static_cast<size_t>(words * t.plane * word);
}

/* The tiles of `all` lines along `axis` of `rows` rows each, with `words` numbers of
 * `word` bytes per row, and chunks of `of_chunk` rows. A tile of long lines has fewer
 * lines if a block has less shared memory than `most`. */
inline LineTiles
line_tiles(int rows, int all, int axis, int words, int word, size_t most,
           int of_chunk = chunk_rows)
{
    const int chunks = (rows + of_chunk - 1) / of_chunk;
    LineTiles t = {};

    t.chunk_bits = of_chunk == 4 ? 2 : 3;
    t.shape.rows = rows;
    t.shape.warps = (chunks + warp_lanes - 1) / warp_lanes;
    t.shape.lanes = t.shape.warps > 1 ? warp_lanes : chunks;
    t.shape.groups = warp_lanes / t.shape.lanes;
    t.shape.blocks = 1;
    t.front = t.shape.chunks() * of_chunk - rows;
    set_lines(t, lines_for(t.shape, axis, word), all, axis, words, word);
    while (t.shared > most && t.lines > t.shape.groups) {
        set_lines(t, t.lines - t.shape.groups, all, axis, words, word);
    }
    return t;
}

/* Dynamic shared memory that a block may use apart from its WarpExchange. */
template <typename Number>
inline size_t
line_tile_bytes(const ps_cuda_device *device)
{
    return static_cast<size_t>(device->shared_bytes) - sizeof(WarpExchange<Number>);
}

} // namespace pysolvers::join

#endif
