/* test_blocks.c - block tridiagonal systems: the line engine with blocks of 2 x 2 numbers
 * (lines/block.h), and a source of block rows (reaction.h).
 *
 * The truth is the residual of every scalar equation, in long double.
 */
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors as parameters, within this file */

#define PS_ISA test
#ifndef PS_VECTOR_BYTES
#define PS_VECTOR_BYTES 32
#endif
#include "isa/f64_block.h"
#include "isa/kernels.h"
#include "reaction.h"
#include "runtime/threads.h"
#include "lines/partition/partition.h"

#undef load
#undef store
#include "check.h"

enum { SIDE = 2, BLOCK_REALS = SIDE * SIDE, BOUND = 40 /* eps, of backward errors */ };

static const ps_type_kernels *const kernels = &ps_kernels_f64_block_test;

static void *
memory_of(size_t bytes)
{
    void *at = NULL;

    CHECK(posix_memalign(&at, 64, bytes > 0 ? bytes : 1) == 0, "%zu bytes", bytes);
    return at;
}

/* `systems` systems of `rows` block rows. Along lines, rows are adjacent in memory;
 * otherwise systems are. */
typedef struct {
    int64_t rows, systems;
    int along_lines;
    uint32_t flags;
    double *words[WORDS], *x; /* blocks, or columns of right-hand sides and of x */
    int32_t *info;
    ps_tridiag t;
} batch;

static int
reals_of(int word)
{
    return word < RHS ? BLOCK_REALS : SIDE;
}

/* Where the element of a row begins. */
static int64_t
place(const batch *b, int reals, int64_t system, int64_t row)
{
    return reals * (b->along_lines ? system * b->rows + row : row * b->systems + system);
}

static batch
batch_new(int64_t rows, int64_t systems, int along_lines, uint32_t flags, double diagonal)
{
    batch b = {rows, systems, along_lines, flags, .info = NULL};
    const ps_stride stride =
        along_lines ? (ps_stride){1, 0, rows} : (ps_stride){systems, 0, 1};
    ps_input *const inputs[WORDS] = {&b.t.lower, &b.t.diag, &b.t.upper, &b.t.rhs};

    b.info = memory_of((size_t)systems * sizeof *b.info);
    memset(b.info, -1, (size_t)systems * sizeof *b.info);
    b.t.dtype = PS_F64;
    b.t.flags = flags;
    b.t.rows = rows;
    b.t.outer = 1;
    b.t.inner = systems;
    b.t.info = b.info;
    for (int word = 0; word <= WORDS; word++) {
        const int reals = reals_of(word);
        double *const at = memory_of((size_t)(rows * systems * reals) * sizeof *at);

        for (int64_t k = 0; k < rows * systems; k++) {
            for (int p = 0; p < reals; p++) {
                const int on_diagonal = word == DIAG && p % (SIDE + 1) == 0;

                at[place(&b, reals, k / rows, k % rows) + p] =
                    noise(k / rows, k % rows, word * BLOCK_REALS + p) +
                    diagonal * on_diagonal;
            }
        }
        if (word < WORDS) {
            b.words[word] = at;
            *inputs[word] = (ps_input){at, stride};
        }
        else {
            b.x = at;
            b.t.x = (ps_output){at, stride};
        }
    }
    return b;
}

static void
batch_free(batch *b)
{
    for (int word = 0; word < WORDS; word++) {
        free(b->words[word]);
    }
    free(b->x);
    free(b->info);
}

/* Entry p of the matrix of `matrix` in row `row`, in the block of column `column`, which is
 * next to the row or the row itself; of the transposed matrix if `transposed`. */
static double
matrix_entry(const batch *b, int64_t matrix, int64_t row, int word, int p, int transposed)
{
    if (transposed) { /* block `word` of the row is the transpose of a block of its column */
        row = (row + word - DIAG + b->rows) % b->rows;
        word = UPPER - word;
        p = p % SIDE * SIDE + p / SIDE;
    }
    return b->words[word][place(b, BLOCK_REALS, matrix, row) + p];
}

/* Check the equations of all systems; `shared`: all have the matrix of the first. */
static void
check_solution(const batch *b, int shared, int transposed, const char *what)
{
    long double worst = 0;

    for (int64_t k = 0; k < b->rows * b->systems * SIDE; k++) {
        const int64_t system = k / (b->rows * SIDE), row = k / SIDE % b->rows;
        const double rhs = b->words[RHS][place(b, SIDE, system, row) + k % SIDE];
        long double sum = -(long double)rhs, size = fabs(rhs);

        for (int64_t step = -1; step <= 1; step++) {
            const int64_t column = (row + step + b->rows) % b->rows;

            for (int j = 0; j < SIDE && (row + step == column || b->flags & PS_PERIODIC);
                 j++) {
                const long double term =
                    (long double)matrix_entry(b, shared ? 0 : system, row,
                                              DIAG + (int)step,
                                              (int)(k % SIDE) * SIDE + j, transposed) *
                    b->x[place(b, SIDE, system, column) + j];

                sum += term;
                size += fabsl(term);
            }
        }
        worst = isnan(sum) ? INFINITY : fmaxl(worst, fabsl(sum) / size);
    }
    CHECK(worst < BOUND * DBL_EPSILON,
          "%s, %d rows, %d systems, layout %d, flags %u: %g eps", what, (int)b->rows,
          (int)b->systems, b->along_lines, (unsigned)b->flags,
          (double)(worst / DBL_EPSILON));
    for (int64_t s = 0; s < b->systems; s++) {
        CHECK(b->info[s] == 0 || (shared && b->info[s] == -1), "%s: info %d", what,
              (int)b->info[s]);
    }
    memset(b->x, 0, (size_t)(b->rows * b->systems * SIDE) * sizeof *b->x);
}

/* Thomas in tiles, or elimination with exchanges of block rows. Returns the number of systems
 * solved with exchanges. */
static int64_t
solve_tiles(const ps_tridiag *t, ps_pivot pivot)
{
    ps_plan plan = ps_plan_of(kernels, t, PS_AUTO, pivot, 2);
    ps_exec exec = {.threads = 2};
    int64_t pivoted = -1;

    ps_plan_method(&plan);
    exec.work = memory_of(plan.scratch * 2);
    CHECK(ps_plan_run(&plan, &exec, exec.work, &pivoted) == PS_OK, "run");
    free(exec.work);
    return pivoted;
}

/* The partition of long systems: all systems that are adjacent in memory at once, others
 * one by one. */
static void
solve_chunks(const batch *b, int keeps, int check)
{
    const int64_t side = b->along_lines ? 1 : b->systems;

    for (int64_t k = 0; k < b->systems; k += side) {
        ps_partition p = {.t = &b->t, .k = k, .side = side, .check = check};
        int dominant = 1;

        kernels->partition(&p);
        const size_t scratch = kernels->partition_scratch(&p);
        void *const rows = memory_of(scratch * (size_t)p.groups);
        const int64_t blocks = (p.groups + p.batch_block - 1) / p.batch_block;
        const int64_t element = (int64_t)kernels->element, width = p.chunks * side;

        p.kept = keeps ? rows : NULL;
        p.separators = memory_of(kernels->partition_interface_bytes(&p));
        for (int64_t i = 0; i < blocks; i++) {
            CHECK(kernels->partition_eliminate(&p, i, rows, &dominant) == 0, "bad row");
        }
        CHECK(dominant, "%d rows", (int)b->rows);
        kernels->partition_assemble(&p);

        char *const at = p.separators;
        const ps_stride dense = {side, 0, 1};
        const ps_tridiag reduced = {.dtype = PS_F64,
                                    .flags = b->flags,
                                    .rows = p.chunks,
                                    .outer = 1,
                                    .inner = side,
                                    .lower = {at + LOWER * width * element, dense},
                                    .diag = {at + DIAG * width * element, dense},
                                    .upper = {at + UPPER * width * element, dense},
                                    .rhs = {at + RHS * width * element, dense},
                                    .x = {at + RHS * width * element, dense},
                                    .info = b->info + k};

        solve_tiles(&reduced, PS_PIVOT_NEVER);
        for (int64_t i = 0; i < blocks; i++) {
            kernels->partition_substitute(&p, i, rows);
        }
        free(rows);
        free(p.separators);
    }
}

/* A factor of all matrices or, if `shared`, of the first. */
static void
solve_factor(const batch *b, int shared, ps_trans trans, ps_pivot pivot)
{
    const int64_t matrices = shared ? 1 : b->systems;
    ps_factor f = {.dtype = PS_F64,
                   .flags = b->flags,
                   .rows = b->rows,
                   .outer = 1,
                   .inner = matrices,
                   .pivot = pivot};
    const ps_factor_rhs rhs = {.trans = trans,
                               .outer = 1,
                               .inner = b->systems,
                               .outer_step = 1,
                               .inner_step = !shared || b->systems == 1,
                               .rhs = b->t.rhs,
                               .x = b->t.x};
    ps_job job = {.t = b->t, .pivot = pivot, .runs = 1, .run = matrices, .group = 1};
    void *work = memory_of(kernels->factor_make_scratch(&f));

    f.store = memory_of(kernels->factor_store(&f));
    job.t.inner = matrices;
    job.t.rhs.data = job.t.x.data = NULL;
    job.tiles = kernels->factor_tiles(&f);
    for (int64_t k = 0; k < job.tiles; k++) {
        kernels->factor_make(&f, &job, k, work);
    }
    free(work);
    ps_job_init(&job, &b->t, kernels->lanes);
    job.t.lower.data = job.t.diag.data = job.t.upper.data = NULL;
    if (!shared) {
        job.shift = 0;
        job.tiles = (b->systems + kernels->lanes - 1) / kernels->lanes;
    }
    ps_job_band(&job, kernels, shared, 1);
    work = memory_of(kernels->factor_scratch(&f, &job));
    for (int64_t k = 0; k < (job.tiles + job.group - 1) / job.group; k++) {
        kernels->factor_solve(&f, &rhs, &job, k, work);
    }
    free(work);
    free(f.store);
}

/* Right-hand sides of one matrix, whose chunks are eliminated once. */
static void
solve_tables(const batch *b, ps_trans trans)
{
    ps_partition p = {.t = &b->t, .side = 1};
    ps_chunks c = {.partition = &p,
                   .trans = trans,
                   .systems = b->systems,
                   .rhs = b->t.rhs,
                   .x = b->t.x,
                   .eliminates = 1};
    int dominant = 1;

    ps_partition_tables(&p, kernels);
    const size_t bytes = kernels->chunks_table(&p);
    const int64_t tiles = (p.chunks + kernels->lanes - 1) / kernels->lanes;
    const int64_t element = (int64_t)kernels->element, width = p.chunks;
    char *const tables = memory_of(bytes * (size_t)p.groups);
    char *const at = p.separators = memory_of(kernels->partition_interface_bytes(&p));
    void *const y = memory_of(kernels->chunks_scratch(&p));
    int32_t info = -1;

    c.interface = memory_of((size_t)(2 * p.chunks * b->systems * SIDE) * sizeof(double));
    for (int up = 0; up < 2; up++) {
        for (int64_t k = 0; k < p.groups; k++) {
            const int64_t end = (k + 1) * p.tiles < tiles ? (k + 1) * p.tiles : tiles;
            void *const table = tables + bytes * (size_t)k;

            if (!up) {
                CHECK(kernels->chunks_make(&p, k, table, &dominant) == 0, "bad row");
            }
            kernels->chunks_solve(&c, k * p.tiles, end, table, y, up);
        }
        if (up) {
            break;
        }
        kernels->partition_assemble(&p);
        kernels->chunks_add_interfaces(&c);
        batch reduced = {.rows = p.chunks, .systems = b->systems, .flags = b->flags};
        const ps_stride dense = {1, 0, 0}, columns = {b->systems, 0, 1};

        reduced.t = (ps_tridiag){.dtype = PS_F64,
                                 .flags = b->flags,
                                 .rows = p.chunks,
                                 .outer = 1,
                                 .inner = b->systems,
                                 .lower = {at + LOWER * width * element, dense},
                                 .diag = {at + DIAG * width * element, dense},
                                 .upper = {at + UPPER * width * element, dense},
                                 .rhs = {c.interface, columns},
                                 .x = {c.interface, columns},
                                 .info = &info};
        solve_factor(&reduced, 1, trans, PS_PIVOT_NEVER);
        CHECK(info == 0, "info %d", (int)info);
    }
    free(tables), free(p.separators), free(y), free(c.interface);
}

static void
all_methods_satisfy_the_equations(int64_t rows, int64_t systems, int along_lines,
                                  uint32_t flags, int strong)
{
    static const ps_pivot pivots[] = {PS_PIVOT_NEVER, PS_PIVOT_AUTO, PS_PIVOT_ALWAYS};
    batch b = batch_new(rows, systems, along_lines, flags, strong ? 40 : 9);

    for (int k = 0; k < COUNT(pivots); k++) {
        const int64_t pivoted = solve_tiles(&b.t, pivots[k]);

        CHECK(pivots[k] == PS_PIVOT_AUTO && !strong
                  ? pivoted <= systems
                  : pivoted == (pivots[k] == PS_PIVOT_ALWAYS ? systems : 0),
              "%d of %d systems with exchanges", (int)pivoted, (int)systems);
        check_solution(&b, 0, 0, "tiles");
        for (int shared = 0; shared < 2; shared++) {
            for (int transposed = 0; transposed < 2; transposed++) {
                solve_factor(&b, shared, transposed ? PS_TRANS_TRANSPOSE : PS_TRANS_NONE,
                             pivots[k]);
                check_solution(&b, shared, transposed, "factor");
            }
        }
    }
    for (int keeps = 0; keeps < 2; keeps++) {
        solve_chunks(&b, keeps, strong);
        check_solution(&b, 0, 0, "chunks");
    }
    for (int transposed = 0; transposed < 2; transposed++) {
        solve_tables(&b, transposed ? PS_TRANS_TRANSPOSE : PS_TRANS_NONE);
        check_solution(&b, 1, transposed, "tables");
    }
    batch_free(&b);
}

/* Implicit upwind advection with long steps around a ring: the rounding errors of all rows
 * meet in the last one, which is corrected. */
static void
last_rows_are_accurate(int64_t rows, int64_t systems, double scale)
{
    static const double flow[BLOCK_REALS] = {1000.3, 1.7, 0.6, 1200.1};
    static const double loss[BLOCK_REALS] = {1.1, -0.2, 0.3, 1.3};
    batch b = batch_new(rows, systems, 1, PS_PERIODIC, 0);
    const int64_t count = rows * systems * BLOCK_REALS;

    for (int64_t k = 0; k < count; k++) {
        const int p = (int)(k % BLOCK_REALS);

        b.words[LOWER][k] = -scale * flow[p];
        b.words[DIAG][k] = scale * flow[p] + loss[p];
        b.words[UPPER][k] = 0;
    }
    for (int64_t k = 0; k < rows * systems * SIDE; k++) {
        b.words[RHS][k] = 1;
    }
    solve_tiles(&b.t, PS_PIVOT_NEVER);
    check_solution(&b, 0, 0, "last rows");
    for (int transposed = 0; transposed < 2; transposed++) {
        solve_factor(&b, 0, transposed ? PS_TRANS_TRANSPOSE : PS_TRANS_NONE,
                     PS_PIVOT_NEVER);
        check_solution(&b, 0, transposed, "last rows of a factor");
    }
    batch_free(&b);
}

/* A singular pivot in one system: its row is reported, and others are solved. */
static void
singular_blocks_are_found(int64_t rows, int64_t systems, uint32_t flags, int64_t bad_row)
{
    static const double block[BLOCK_REALS] = {1, 2, 2, 4};
    batch b = batch_new(rows, systems, 1, flags, 9);
    const int64_t bad = systems / 2;

    for (int p = 0; p < BLOCK_REALS; p++) {
        b.words[LOWER][place(&b, BLOCK_REALS, bad, bad_row) + p] = 0;
        b.words[DIAG][place(&b, BLOCK_REALS, bad, bad_row) + p] = block[p];
    }
    solve_tiles(&b.t, PS_PIVOT_NEVER);
    for (int64_t s = 0; s < systems; s++) {
        CHECK(b.info[s] == (s == bad ? bad_row + 1 : 0), "tiles: %d", (int)b.info[s]);
        b.info[s] = -1;
    }
    solve_factor(&b, 0, PS_TRANS_NONE, PS_PIVOT_NEVER);
    for (int64_t s = 0; s < systems; s++) {
        CHECK(b.info[s] == (s == bad ? bad_row + 1 : 0), "factor: %d", (int)b.info[s]);
    }
    batch_free(&b);
}

/* T left = lower_0 e_0 and T right = upper_{n-1} e_{n-1}, of which each column of a block
 * is a right-hand side. */
static void
spikes_satisfy_their_equations(int64_t rows, int64_t systems, int along_lines)
{
    batch b = batch_new(rows, systems, along_lines, 0, 9);
    const size_t bytes = (size_t)(rows * systems * BLOCK_REALS) * sizeof(double);
    double *const spike[] = {memory_of(bytes), memory_of(bytes)};
    ps_plan plan = ps_plan_of(kernels, &b.t, PS_AUTO, PS_PIVOT_NEVER, 1);
    int64_t count = -1;

    plan.job.left = (ps_output){spike[0], b.t.x.stride};
    plan.job.right = (ps_output){spike[1], b.t.x.stride};
    ps_plan_kernel(&plan, kernels->spikes_scratch, kernels->spikes);
    ps_exec exec = {.threads = 1, .work = memory_of(plan.scratch)};
    CHECK(ps_plan_run(&plan, &exec, exec.work, &count) == PS_OK && count == 0, "spikes");
    free(exec.work);
    check_solution(&b, 0, 0, "x of spikes");
    for (int k = 0; k < 2 * SIDE; k++) { /* column k % SIDE of a side */
        const int side = k / SIDE, column = k % SIDE;
        const int64_t row = side == 0 ? 0 : rows - 1;

        memset(b.words[RHS], 0, (size_t)(rows * systems * SIDE) * sizeof(double));
        for (int64_t s = 0; s < systems; s++) {
            for (int i = 0; i < SIDE; i++) {
                b.words[RHS][place(&b, SIDE, s, row) + i] = matrix_entry(
                    &b, s, row, side == 0 ? LOWER : UPPER, i * SIDE + column, 0);
            }
        }
        for (int64_t i = 0; i < rows * systems * SIDE; i++) {
            b.x[i] = spike[side][i / SIDE * BLOCK_REALS + i % SIDE * SIDE + column];
        }
        check_solution(&b, 0, 0, side == 0 ? "left" : "right");
    }
    free(spike[0]), free(spike[1]);
    batch_free(&b);
}

/* Steps of reaction.h along both axes of `lines` lines of `nodes` nodes. */
static void
reactions_satisfy_the_equations(int64_t nodes, int64_t lines, int along_lines)
{
    const size_t bytes = (size_t)(nodes * lines) * sizeof(double);
    const int64_t along = along_lines ? 1 : lines, across = along_lines ? nodes : 1;
    double *old[SIDE], *new[SIDE];
    line_source s = {.rows = nodes - 2, .spread = {3, 0.25}, .rate = {1.5, 0.5}};
    num *const kept = memory_of((size_t)SOURCE_KEPT(s.rows) * sizeof *kept);
    long double worst = 0;

    for (int k = 0; k < SIDE; k++) {
        old[k] = memory_of(bytes);
        new[k] = memory_of(bytes);
        for (int64_t i = 0; i < nodes * lines; i++) {
            old[k][i] = new[k][i] = noise(k, i, 0);
        }
        s.substance[k] = (field){new[k] + along, along, across, lines};
    }
    CHECK(source_solve(&s, 0, field_tiles(&s.substance[0]), !along_lines, kept) == 0,
          "pivot");
    for (int64_t i = 0; i < (nodes - 2) * lines * SIDE; i++) {
        const int k = (int)(i % SIDE);
        const int64_t at =
            (i / SIDE % (nodes - 2) + 1) * along + i / SIDE / (nodes - 2) * across;
        const long double terms[] = {
            new[k][at],
            s.spread[k] *
                (2 * (long double)new[k][at] - new[k][at - along] - new[k][at + along]),
            (k == 0 ? 1 : -1) * s.rate[0] * (long double)new[0][at],
            (k == 0 ? -1 : 1) * s.rate[1] * (long double)new[1][at],
            -(long double)old[k][at]};
        long double sum = 0;

        for (int j = 0; j < COUNT(terms); j++) {
            sum += terms[j];
        }
        worst = fmaxl(worst, fabsl(sum));
    }
    CHECK(worst < BOUND * DBL_EPSILON, "%d nodes, %d lines: %g eps", (int)nodes,
          (int)lines, (double)worst / DBL_EPSILON);
    for (int k = 0; k < SIDE; k++) {
        free(old[k]), free(new[k]);
    }
    free(kept);
}

int
main(void)
{
    static const int64_t rows[] = {1, 2, 3, 16, 17, 70}, systems[] = {1, 3, 8, 37};

    for (int k = 0; k < COUNT(rows) * COUNT(systems) * 2; k++) {
        const int64_t n = rows[k / 2 % COUNT(rows)], count = systems[k / 2 / COUNT(rows)];
        const int along_lines = k % 2;

        for (int strong = 0; strong < 2; strong++) {
            all_methods_satisfy_the_equations(n, count, along_lines, 0, strong);
            if (n > 2) {
                all_methods_satisfy_the_equations(n, count, along_lines, PS_PERIODIC,
                                                  strong);
            }
        }
        spikes_satisfy_their_equations(n, count, along_lines);
        reactions_satisfy_the_equations(n + 2, count, along_lines);
    }
    for (int k = 0; k < 4; k++) { /* many chunks */
        all_methods_satisfy_the_equations(1100, k / 2 ? 9 : 1, k % 2, PS_PERIODIC, 1);
        all_methods_satisfy_the_equations(1100, k / 2 ? 9 : 2, k % 2, 0, 1);
    }
    for (int k = 0; k < 10; k++) {
        last_rows_are_accurate(1500, 1, 3.96 + 1.11 * k);
    }
    singular_blocks_are_found(20, 11, 0, 0);
    singular_blocks_are_found(20, 11, 0, 13);
    singular_blocks_are_found(20, 11, PS_PERIODIC, 5);
    return report();
}
