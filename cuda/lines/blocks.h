/* blocks.h - what the entries of block tridiagonal systems and their kernels share. */
#ifndef PS_CUDA_LINES_BLOCKS_H
#define PS_CUDA_LINES_BLOCKS_H

#include <cstdlib>

#include "device/operand.cuh"
#include "lines/columns/column_shape.cuh"
#include "ps_blocks.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

/* A diagonal of blocks, or right-hand sides or unknowns, of which only `down` counts. */
template <typename Real> struct BlockOperand {
    Real *data;
    int64_t row, outer, inner, down, across;
    bool is_dense; /* blocks, or columns, have no gaps and are aligned to 16 bytes */
};

/* Whether entries of `side` numbers, or blocks, lie at multiples of 16 bytes. */
inline bool
is_dense(const ps_block_diagonal &d, int64_t size, int32_t side, bool is_column)
{
    const int64_t count = 16 / size;
    const bool has_gaps = is_column ? d.down != 1 : d.across != 1 || d.down != side;

    return !has_gaps && reinterpret_cast<uintptr_t>(d.data) % 16 == 0 &&
           d.stride.row % count == 0 && d.stride.outer % count == 0 &&
           d.stride.inner % count == 0;
}

template <typename Real>
inline BlockOperand<Real>
block_operand(const ps_block_diagonal &d, int32_t side, bool is_column)
{
    return {static_cast<Real *>(d.data),
            d.stride.row,
            d.stride.outer,
            d.stride.inner,
            d.down,
            d.across,
            is_dense(d, sizeof(Real), side, is_column)};
}

static constexpr int blocks_threads = 64;

/* What a warp has in shared memory, in numbers for each of its lanes. */
struct BlocksTile {
    int rows;        /* block rows of a tile */
    int copied;      /* numbers that are copied together */
    int matrix, rhs; /* pitches of a diagonal and of right-hand sides */
    int words, row;  /* of a tile, and of an eliminated row */
    int stages;      /* tiles of which one is eliminated while the others are copied */
    int depth;       /* eliminated rows that are loaded at the same time */
};

/* side: of a block, 0 for five diagonals; size of a number. Single numbers of neighbouring lanes
 * lie in different banks with odd pitches, vectors of 16 bytes with odd numbers of vectors. */
constexpr BlocksTile
blocks_tile(int side, int size)
{
    BlocksTile tile = {};
    const int of = side == 0 ? 2 : side;

    tile.rows = side == 0 ? 4 : side == 2 ? 2 : 1;
    tile.copied = side == 4 ? 16 / size : 1;
    tile.rhs = (tile.rows * of / tile.copied | 1) * tile.copied;
    tile.matrix =
        side == 0 ? tile.rhs : (tile.rows * of * of / tile.copied | 1) * tile.copied;
    tile.words = (side == 0 ? 5 : 3) * tile.matrix + tile.rhs;
    tile.row = of * of + of;
    tile.stages = side == 4 ? 3 : 4;
    tile.depth = (tile.stages * tile.words - tile.rhs) / tile.row;
    tile.depth = tile.depth < 8 ? tile.depth : 8;
    return tile;
}

/* The systems of a warp, of which each has two lanes. */
static constexpr int tile_systems = 16, tile_threads = 64;

/* Neighbouring lanes of a team (block_team.cuh). */
__host__ __device__ constexpr int
team_lanes(int side)
{
    return side == 3 ? 4 : side;
}

/* Half of a system of five diagonals by scalar rows (five_rows.cuh). */
struct FiveHalf {
    int32_t groups; /* of four rows */
    int32_t first; /* row of the first group, which is negative if that is not complete */
    int32_t slot;  /* of its first row among the eliminated rows of the system */
};

static constexpr int five_threads = 64;

/* Systems that a warp eliminates from both ends (five_turns.cuh). */
static constexpr int turn_systems = 16;

__host__ __device__ constexpr FiveHalf
five_half(int32_t rows, bool is_last)
{
    const int32_t groups = (rows + 7) / 8, rest = rows - 4 * groups,
                  others = (rest + 3) / 4;

    return is_last ? FiveHalf{others, rest - 4 * others, 4 * groups}
                   : FiveHalf{groups, 0, 0};
}

__host__ __device__ constexpr int32_t
five_kept_rows(int32_t rows)
{
    return five_half(rows, true).slot + 4 * five_half(rows, true).groups;
}

/* The least rows that both halves have a group. */
static constexpr int64_t least_five_rows = 5;

/* Block rows of a chunk of a divided system, and the threads of a block, at most. */
static constexpr int lines_rows = 4, lines_threads = 128;

/* Block rows of a chunk that is eliminated in place, and the threads of a block, at most. */
static constexpr int in_place_rows = 4, in_place_threads = 256;

/* Numbers of a chunk of words of a row: an odd number of vectors of 16 bytes, so that those of
 * neighbouring lanes lie in different banks. */
__host__ __device__ constexpr int
in_place_pitch(int rows, int words, int size)
{
    const int vector = 16 / size;

    return (rows * words / vector | 1) * vector;
}

/* Threads of a block of five_lines.cuh, and its systems, at most. */
static constexpr int five_lines_threads = 256, five_lines_systems = 64;

/* Rows of a chunk and neighbouring systems of a tile of five_columns.cuh. */
template <typename Real>
static constexpr int five_column_rows = sizeof(Real) == 4 ? 32 : 16;
template <typename Real>
static constexpr int five_column_width = sizeof(Real) == 4 ? 16 : 8;

/* The systems of a tile of blocks_lines.cuh, and how they are copied. */
struct BlocksLines {
    join::Shape shape; /* rows: block rows */
    int32_t systems, threads;
    bool is_used;
    bool are_runs;  /* systems are copied as vectors without gaps */
    uint32_t pairs; /* operands that are copied by two numbers: matrix, rhs, x */
    uint32_t shared_bytes;
    bool is_in_place; /* blocks_in_place.cuh */
};

/* ps_blocks with the batch axis of smaller stride as the inner one. */
template <typename Real> struct BlocksJob {
    BlockOperand<Real> lower, diag, upper, rhs, x;
    Input<Real> bands[5];
    int64_t outer, inner;
    int32_t rows, side;
    bool is_swapped;  /* outer and inner are exchanged */
    bool is_definite; /* pivots that are not positive definite are bad */
    bool checks; /* systems that are not dominant are marked with info -1, and pivoted */
    bool pivots; /* all systems are pivoted */
    int32_t *info;
    Real *
        kept; /* eliminated rows, [row][word][system], or pivot rows of `slots` systems */
    int64_t slots;            /* as many systems, or a multiple of blocks_threads */
    bool has_rows, has_tiles; /* five_rows.cuh; contiguous rows in tiles */
    bool has_turns;           /* five_turns.cuh */
    bool is_alike;            /* five diagonals and rhs have the same pitches */
    bool is_tiled;            /* blocks_tiles.cuh */
    /* the first eliminated rows (blocks_tiles.cuh), or groups of rows of each half
     * (five_turns.cuh), that are in `kept` */
    int32_t far;
    uint32_t shared_bytes;
    BlocksLines lines;
    int32_t chunk;                /* rows of a chunk of five_lines.cuh, or 0 */
    bool by_columns;              /* blocks_columns.cuh */
    columns::ColumnShape columns; /* then */
    bool has_columns;             /* five_columns.cuh */
    int64_t tiles;                /* of five_columns.cuh */

    /* Whether the rows of a system, not the systems, are neighbours in memory. */
    bool is_by_row() const
    {
        return inner == 1 || std::abs(x.row) < std::abs(x.inner);
    }
};

/* blocks_reals.cu */
template <typename Real>
ps_status launch_blocks(const BlocksJob<Real> &job, cudaStream_t stream);
/* The systems that info marks: -1, with pivoting; a bad pivot of rows that were not eliminated in
 * order, in order, which reports the first one. */
template <typename Real>
ps_status launch_marked(const BlocksJob<Real> &job, cudaStream_t stream);

/* blocks.cu */
ps_status ps_cuda_blocks_work(const ps_blocks *b, size_t *bytes);
ps_status ps_cuda_blocks_run(const ps_blocks *b, const ps_exec *exec, ps_report *report);

} // namespace pysolvers::lines

#endif
