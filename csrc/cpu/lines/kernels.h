/* kernels.h - interface between the drivers of the CPU backend and its kernels.
 *
 * isa/<dtype>_<set>.c compiles the .inc files of csrc/cpu/lines for one dtype and one
 * instruction set; isa/<set>.c exports the kernel tables as one ps_isa. The kernels do
 * all arithmetic, with one line per SIMD lane and without contraction to fused
 * multiply-add, so that every instruction set gives the same bits.
 */
#ifndef PS_CPU_KERNELS_H
#define PS_CPU_KERNELS_H

#include "ps_step.h"
#include "runtime/isa.h"
#include "runtime/tuning.h"

enum { PS_LOWER, PS_DIAG, PS_UPPER, PS_RHS, PS_WORDS };

/* A batch divided into tiles; a tile has one system per lane. */
typedef struct {
    ps_tridiag t;
    ps_method method;
    ps_pivot pivot;
    int stream;        /* store x with non-temporal stores */
    int strided;       /* adjacent systems are adjacent in memory */
    int64_t shift;     /* lanes that the first tile of a run lacks, for alignment of x */
    int64_t run, runs; /* systems per run of tiles, number of runs */
    int64_t tiles;     /* tiles of all runs */
    int64_t group;     /* tiles solved together, at most PS_GROUP_TILES, or
                          PS_BAND_TILES by a factor */
    ps_output left, right;     /* of a ps_spikes; null data: not computed */
    const ps_step *step;       /* null, or what the rows are made of, of the same axes */
    const ps_product *product; /* null, or a product, of the same axes */
    ps_output made[3];         /* the diagonals that write_rows() writes */
    int64_t sides;    /* 0, or right-hand sides of each matrix, along the outer strides of
                         operands; outer is then 1 */
    int sides_inside; /* info is that of [system][side], not [side][system] */
} ps_job;

/* Long systems divided into chunks, solved in three steps: eliminate the interior rows of
 * every chunk, solve the reduced system of the separators, substitute. See chunks.inc. */
typedef struct {
    const ps_tridiag *t;
    int64_t j, k;           /* the first system */
    int64_t side;           /* number of systems, adjacent along inner */
    int64_t tiles;          /* tiles of a group, at most PS_GROUP_TILES */
    int64_t chunks, groups; /* chunks per system, number of groups */
    int64_t batch_block;    /* consecutive groups that one thread takes */
    int64_t wide, rows; /* the first `wide` chunks have rows + 1 rows, the others rows */
    void *separators;   /* coefficients of the reduced system: [word][chunk][system] */
    void *kept;         /* null, or storage for the eliminated rows of all groups */
    int stream, check;  /* check: test whether rows are diagonally dominant */
} ps_partition;

/* A batch of long systems divided into spans, solved with row exchanges in three steps:
 * eliminate the interior of every span, solve for the ends of the spans, substitute. See
 * pivoted_partition.inc. */
typedef struct {
    ps_tridiag t;
    int64_t side, sets;    /* systems of a set (adjacent in memory, or 1); sets */
    int64_t rows, spans;   /* rows of a span, the last one has more; spans per system */
    int64_t groups, bands; /* per set: groups of tiles of spans, tiles of systems */
    void *interface;       /* rows of the reduced systems: [set][word][span][system] */
    void *kept;            /* null, or storage for the eliminated rows of all groups */
    int stream;            /* store x with non-temporal stores */
} ps_span;

/* A long system with row exchanges, divided into pieces. See pieces.inc. */
enum { PS_PIECE_NUMBERS = 3 }; /* carried from a piece to the next one, at most */

typedef struct {
    ps_tridiag t;           /* one system */
    int64_t pieces, groups; /* number of pieces, and of groups of tiles of them */
    int64_t rows, rest;     /* rows of a piece, and additional ones of the last piece */
    int64_t lead;           /* rows of a lead */
    size_t kept_bytes;      /* of the eliminated rows of a group */
    void *kept;             /* the eliminated rows of all groups */
    void *begin, *end;      /* what the pieces carry at both ends: [piece][number] */
} ps_pieces;

/* Right-hand sides of one long matrix whose chunks are eliminated once. */
typedef struct {
    const ps_partition *partition; /* of the matrix alone */
    ps_trans trans;
    int64_t systems;
    ps_input rhs; /* systems are adjacent along inner */
    ps_output x;
    void *interface; /* reduced system: [right-hand side, increment][chunk][system] */
    int stream;
    int eliminates; /* eliminate the matrix group by group; 0: it is eliminated already */
} ps_chunks;

struct ps_type_kernels {
    int lanes;
    int pair; /* most tiles of contiguous lines that are eliminated together; 1: there
                       are no kernels for several right-hand sides of each matrix */
    size_t element; /* bytes */

    /* direct solves group `index` of a job, reduction solves tile `index`; both return
     * the number of systems solved with row exchanges. spikes solves group `index` of a
     * ps_spikes and returns the number of systems that need row exchanges. Scratch is for
     * one group. */
    size_t (*direct_scratch)(const ps_job *job);
    int64_t (*direct)(const ps_job *job, int64_t index, void *scratch);
    size_t (*spikes_scratch)(const ps_job *job);
    int64_t (*spikes)(const ps_job *job, int64_t index, void *scratch);
    /* step solves group `index` of a job with a step, with direct_scratch. product
     * multiplies, of a job with a product. write_rows writes the rows that are made of a
     * job with a step: the diagonals, unless they have null data, and the right-hand
     * sides to x. write_unknowns combines the unknowns x with the right-hand sides. All
     * for group `index`. */
    int64_t (*step)(const ps_job *job, int64_t index, void *scratch);
    size_t (*product_scratch)(const ps_job *job);
    int64_t (*product)(const ps_job *job, int64_t index, void *scratch);
    size_t (*write_scratch)(const ps_job *job);
    int64_t (*write_rows)(const ps_job *job, int64_t index, void *scratch);
    int64_t (*write_unknowns)(const ps_job *job, int64_t index, void *scratch);
    size_t (*reduction_scratch)(const ps_job *job);
    int64_t (*reduction)(const ps_job *job, int64_t index, void *scratch);

    size_t (*factor_store)(const ps_factor *f);
    int64_t (*factor_tiles)(const ps_factor *f);
    size_t (*factor_make_scratch)(const ps_factor *f);
    int64_t (*factor_make)(const ps_factor *f, const ps_job *job, int64_t index,
                           void *scratch);
    size_t (*factor_scratch)(const ps_factor *f, const ps_job *job);
    void (*factor_solve)(const ps_factor *f, const ps_factor_rhs *b, const ps_job *job,
                         int64_t index, void *scratch);
    /* The same for a job with a step. */
    size_t (*factor_step_scratch)(const ps_factor *f, const ps_job *job);
    void (*factor_step)(const ps_factor *f, const ps_factor_rhs *b, const ps_job *job,
                        int64_t index, void *scratch);

    /* partition sets tiles, chunks, groups, batch_block, wide and rows.
     * partition_interface_bytes: bytes of `separators`. partition_scratch: bytes of one
     * group. partition_eliminate eliminates the groups of block `batch_block`, stores
     * their contributions to the reduced system, returns 0, or 1 + the row of a bad
     * pivot, and clears *dominant if a row is not dominant. partition_assemble sums the
     * contributions: `separators` then holds lower, diag, upper, rhs of the reduced
     * system, one word after the other. partition_substitute substitutes into the groups
     * of block `batch_block`; the solution of the reduced system replaces its rhs. */
    void (*partition)(ps_partition *partition);
    size_t (*partition_interface_bytes)(const ps_partition *partition);
    size_t (*partition_scratch)(const ps_partition *partition);
    int32_t (*partition_eliminate)(const ps_partition *partition, int64_t batch_block,
                                   void *scratch, int *dominant);
    void (*partition_assemble)(const ps_partition *partition);
    void (*partition_substitute)(const ps_partition *partition, int64_t batch_block,
                                 void *scratch);

    /* One matrix divided into chunks. chunks_table: bytes of the eliminated rows of a
     * group; chunks_scratch: bytes per thread. chunks_make eliminates group `index`, with
     * the outputs of partition_eliminate. chunks_solve runs, for tiles first .. end-1 of
     * chunks, the forward elimination, which stores the right-hand sides of the reduced
     * system (up == 0), or the substitution after the reduced system is solved (up == 1);
     * `table` is the table of the group that starts with tile `first`.
     * chunks_add_interfaces sums the contributions to the reduced right-hand sides. */
    size_t (*chunks_table)(const ps_partition *partition);
    size_t (*chunks_scratch)(const ps_partition *partition);
    int32_t (*chunks_make)(const ps_partition *partition, int64_t index, void *table,
                           int *dominant);
    void (*chunks_solve)(const ps_chunks *c, int64_t first, int64_t end,
                         const void *table, void *scratch, int up);
    void (*chunks_add_interfaces)(const ps_chunks *c);

    /* span_partition sets rows, spans, groups and bands. span_interface_bytes: bytes of
     * `interface`. span_kept_bytes: of `kept`. span_scratch: bytes of a group, which is
     * not used where `kept` is not null. span_eliminate and span_substitute
     * handle one group, span_join solves the reduced systems of one band and sets info;
     * `index` counts the groups or bands of all sets. */
    void (*span_partition)(ps_span *s);
    size_t (*span_interface_bytes)(const ps_span *s);
    size_t (*span_kept_bytes)(const ps_span *s);
    size_t (*span_scratch)(const ps_span *s);
    void (*span_eliminate)(const ps_span *s, int64_t index, void *scratch);
    void (*span_join)(const ps_span *s, int64_t index);
    void (*span_substitute)(const ps_span *s, int64_t index, void *scratch);

    /* pieces_fit: whether `lanes` systems of a batch, from system `first` on, are solved
     * in order: 1, or -1 if none of them is, or 0. pieces_plan sets all but the addresses; pieces is 0 if there are too few
     * rows. pieces_down eliminates group `index`, pieces_rejoin the first rows of piece
     * `index` again; they return 0 if the system cannot be solved in pieces. pieces_up
     * substitutes a group, pieces_mend one piece again. */
    int (*pieces_fit)(const ps_tridiag *t, int64_t first);
    void (*pieces_plan)(ps_pieces *p);
    int (*pieces_down)(const ps_pieces *p, int64_t index);
    int (*pieces_rejoin)(const ps_pieces *p, int64_t index);
    void (*pieces_up)(const ps_pieces *p, int64_t index);
    void (*pieces_mend)(const ps_pieces *p, int64_t index);
};

/* The instruction set for some systems whose lines are eliminated one per lane. Where two
 * words of a row of full vectors do not fit in a second-level cache, it has the shortest
 * vectors with a lane for each system, otherwise the longest ones; but AVX2 for systems
 * that its lanes hold, and for more than `most` rows of complex systems, and of real ones in memory. */
const ps_isa *ps_isa_for(ps_dtype dtype, int64_t rows, int64_t systems, int64_t most);

/* `most` of direct solves, all with row exchanges or none, and of steps. */
int64_t ps_wide_rows(const ps_tridiag *t, int exchanges);

/* Divide a batch into tiles of `lanes` systems. A batch with inner == 1 is copied with
 * its outer axis as inner axis. `t` is copied. */
void ps_job_init(ps_job *job, const ps_tridiag *t, int lanes);

/* Number of systems of tile `index`; *first is the first of them. */
int64_t ps_job_tile(const ps_job *job, int lanes, int64_t index, int64_t *first);

/* Set job->group, the number of tiles that are solved together: as many as fit in cache
 * with `bytes` of eliminated rows per tile, but few enough to occupy all threads. */
void ps_job_group(ps_job *job, const ps_type_kernels *kernels, size_t bytes, int threads);

/* Set job->group of a job that a factor solves. A group is part of one run, and the
 * number of tiles of a run is rounded up to a multiple of the group; tiles beyond the end
 * of a run have no systems. `shared`: all systems have one matrix, so that a tile may
 * start at any system. */
void ps_job_band(ps_job *job, const ps_type_kernels *kernels, int shared, int threads);

/* The strides of an operand of a batch of one inner axis of length 1, which ps_job_init()
 * takes for the outer one. */
ps_stride ps_turned(ps_stride stride);

/* The strides of an operand whose outer and inner axes change places. */
ps_stride ps_exchanged(ps_stride stride);

/* Whether an operand has the same values in `outer` x `inner` systems of a batch, and whether the
 * three diagonals have: one matrix for all of them. */
int ps_is_one(ps_stride stride, int64_t outer, int64_t inner);
int ps_has_one_matrix(const ps_tridiag *t, int64_t outer, int64_t inner);

/* Whether each of several matrices has several right-hand sides, along one batch axis, and
 * the kernels eliminate it once for them: open ones of real numbers, given by diagonals.
 * Then *first is the batch of the first one, whose outer strides lead to the others. */
typedef struct {
    int64_t count; /* 0: no */
    int inside;    /* they are along inner */
} ps_sides;

ps_sides ps_sides_of(const ps_tridiag *t, const ps_type_kernels *kernels,
                     ps_tridiag *first);

/* The plan of a call that solves the groups of a job with one kernel. */
typedef struct {
    const ps_type_kernels *kernels;
    ps_job job;
    int threads;
    size_t scratch; /* bytes of workspace of a thread */
    int64_t (*solve)(const ps_job *job, int64_t index, void *scratch);
} ps_plan;

/* A plan without a kernel. Members of job that only some kernels need are set before
 * ps_plan_kernel(). */
ps_plan ps_plan_of(const ps_type_kernels *kernels, const ps_tridiag *t, ps_method method,
                   ps_pivot pivot, int threads);

/* Set the kernel of a plan, and with it the group and the workspace. ps_plan_method()
 * sets that of job.method: the direct one or that of reductions. */
void ps_plan_kernel(ps_plan *plan, size_t (*scratch)(const ps_job *job),
                    int64_t (*solve)(const ps_job *job, int64_t index, void *scratch));
void ps_plan_method(ps_plan *plan);

/* Make a plan for a batch of first right-hand sides one for all of them. */
void ps_plan_sides(ps_plan *plan, ps_sides sides);

/* The approximate number of unknowns of a group of a job, with 8 lanes per tile: the cost
 * of an iteration over groups. */
int64_t ps_job_cost(const ps_job *job);

/* Solve all groups, with scratch bytes of `work` for each thread. Returns PS_OK or
 * PS_INTERRUPTED; *pivoted is the number of systems solved with row exchanges. */
ps_status ps_plan_run(const ps_plan *plan, const ps_exec *exec, void *work,
                      int64_t *pivoted);

#endif
