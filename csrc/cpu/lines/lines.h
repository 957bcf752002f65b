/* lines.h - the line engine of the CPU: row source -> algorithm -> row sink.
 *
 * A line is one tridiagonal system. A source writes the rows of some lines into a small
 * block, an algorithm solves them with one line per SIMD lane, and a sink receives the
 * solution. A solver provides its source and its sink.
 */
#ifndef PS_CPU_LINES_H
#define PS_CPU_LINES_H

#include "pysolvers.h"
#include "runtime/tuning.h"

enum { PS_MAX_LANES = 16 };

enum { PS_LOWER, PS_DIAG, PS_UPPER, PS_RHS, PS_WORDS };

/* Source of the rows. `rows` writes rows row .. row+count-1, count <= PS_BLOCK_ROWS, of
 * the existing lines first .. first+lanes-1. Values have the type dtype and the layout
 *
 *   lane_major == 0:  block[(word * PS_BLOCK_ROWS + r) * width + v]
 *   lane_major == 1:  block[(word * width + v) * PS_BLOCK_ROWS + r]
 *
 * for row row+r of line first+v; width is the lane width of the engine, at least
 * `lanes`. With lane_major == 1, for lines that are contiguous in memory, the engine
 * transposes the block. lower of the first row and upper of the last row are ignored.
 * Several threads call `rows` concurrently. The rows of a tile are requested in ascending
 * order, possibly twice, and all before the first call of `put` for that tile. */
typedef struct {
    const void *self;
    int lane_major;
    void (*rows)(const void *self, int64_t first, int lanes, int width, int64_t row,
                 int count, void *block);
} ps_source;

/* Sink of the solution: the layout of a source with one word. */
typedef struct {
    void *self;
    int lane_major;
    void (*put)(void *self, int64_t first, int lanes, int width, int64_t row, int count,
                const void *x);
} ps_sink;

/* `systems` lines of `rows` unknowns each. */
typedef struct {
    ps_dtype dtype;
    int64_t rows, systems;
    ps_source source;
    ps_sink sink;
    int32_t *info; /* null, or as in ps_tridiag */
} ps_lines;

/* Workspace in bytes, and solution, with the rules of ps_backend, for PS_F32 and PS_F64
 * and all methods except PS_PARTITION; otherwise PS_UNSUPPORTED. PS_AUTO means PS_THOMAS
 * or, with PS_PIVOT_ALWAYS, PS_PIVOTED. PS_PIVOT_AUTO exchanges rows in lines that are
 * not diagonally dominant. */
ps_status ps_lines_work(const ps_lines *lines, const ps_options *options,
                        const ps_exec *exec, size_t *bytes);
ps_status ps_lines_solve(const ps_lines *lines, const ps_options *options,
                         const ps_exec *exec, ps_report *report);

#endif
