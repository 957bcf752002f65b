/* lines.h - the line engine of the CPU: row source -> algorithm -> row sink.
 *
 * A line is one tridiagonal system. A source writes the rows of some lines into
 * a small block, an algorithm eliminates them with one SIMD lane a line, a sink
 * takes the answer. A solver brings its source and its sink and nothing else.
 */
#ifndef PS_CPU_LINES_H
#define PS_CPU_LINES_H

#include "pysolvers.h"

/* Rows of a block. A block holds 4 words (lower, diag, upper, rhs) of this many
 * rows for all lanes and stays in the first-level cache. */
enum { PS_BLOCK_ROWS = 16, PS_MAX_LANES = 16 };

enum { PS_LOWER, PS_DIAG, PS_UPPER, PS_RHS, PS_WORDS };

/* Where the rows of the lines come from. `rows` writes rows row .. row+count-1,
 * count <= PS_BLOCK_ROWS, of the lines first .. first+lanes-1, all of which
 * exist. Values of dtype lie at
 *
 *   lane_major == 0:  block[(word * PS_BLOCK_ROWS + r) * width + v]
 *   lane_major == 1:  block[(word * width + v) * PS_BLOCK_ROWS + r]
 *
 * for row row+r of line first+v; width is the lane width of the engine, at least
 * `lanes`. lane_major 1 suits lines that are contiguous in memory: the engine
 * transposes. lower of the first row and upper of the last have no influence.
 * Called from several threads at once; rows of a tile are asked for in ascending
 * order, and may be asked for twice. All of them are read before the first call
 * of `put` for that tile. */
typedef struct {
    const void *self;
    int lane_major;
    void (*rows)(const void *self, int64_t first, int lanes, int width, int64_t row,
                 int count, void *block);
} ps_source;

/* Where the answers go: the same layout with one word. */
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

/* Workspace and solution, with the rules of ps_backend, for PS_F32 and PS_F64 and all
 * methods but PS_PARTITION; else PS_UNSUPPORTED. PS_AUTO is PS_THOMAS or, with
 * PS_PIVOT_ALWAYS, PS_PIVOTED; PS_PIVOT_AUTO pivots where a line is not diagonally
 * dominant. */
ps_status ps_lines_work(const ps_lines *lines, const ps_options *options,
                        const ps_exec *exec, size_t *bytes);
ps_status ps_lines_solve(const ps_lines *lines, const ps_options *options,
                         const ps_exec *exec, ps_report *report);

#endif
