/* kernels.h - what an instruction set offers to the drivers of the CPU backend.
 *
 * isa/<dtype>_<set>.c compiles the .inc files of csrc/cpu/lines for one dtype and one
 * instruction set; isa/<set>.c exports their tables as one ps_isa. All arithmetic is done
 * there, one SIMD lane a line, without contraction to fused operations, so that every
 * instruction set gives the same bits.
 */
#ifndef PS_CPU_KERNELS_H
#define PS_CPU_KERNELS_H

#include "lines/lines.h"
#include "pysolvers.h"
#include "runtime/isa.h"

enum { PS_GROUP_TILES = 8, PS_BAND_TILES = 16 };

/* A batch to be cut into tiles, one tile a lane width of systems. */
typedef struct {
    const ps_lines *lines; /* row source and sink; null: the operands of t */
    ps_tridiag t;          /* of a ps_lines: dtype, rows, inner and info only */
    ps_method method;
    ps_pivot pivot;
    int stream;        /* store x past the caches */
    int strided;       /* neighbouring systems are neighbours in memory */
    int64_t shift;     /* systems missing from the first tile of a run */
    int64_t run, runs; /* systems in a run of tiles, number of runs */
    int64_t tiles;     /* tiles of all runs */
    int64_t group;     /* tiles solved side by side, at most PS_GROUP_TILES, or
                          PS_BAND_TILES by a factor */
} ps_job;

/* Long systems cut into chunks, in three steps: eliminate every chunk to its
 * separator, solve for the separators, substitute. See chunks.inc. */
typedef struct {
    const ps_tridiag *t;
    int64_t j, k;           /* the first system */
    int64_t side;           /* so many of them, neighbours along inner, are solved */
    int64_t tiles;          /* side by side in a group, at most PS_GROUP_TILES */
    int64_t chunks, groups; /* chunks of a system, groups of all */
    int64_t batch_block;    /* groups that follow each other on a thread */
    int64_t wide, rows;     /* the first `wide` chunks have rows + 1, the others rows */
    void *separators;       /* what the chunks tell about them: [word][chunk][system] */
    void *kept;             /* null, or room for the eliminated rows of all groups */
    int stream, check;      /* check: look for rows that are not dominant */
} ps_partition;

/* A batch of long systems cut into spans, with row exchanges, in three steps: eliminate
 * every span but for its ends, solve for these, substitute. See pivoted_partition.inc. */
typedef struct {
    ps_tridiag t;
    int64_t side, sets;    /* systems that are neighbours in memory, or 1; of all */
    int64_t rows, spans;   /* of a span, but the last has more; spans of a system */
    int64_t groups, bands; /* of a set: groups of tiles of spans, tiles of systems */
    void *interface;       /* what the spans tell: [set][word][span][system] */
    int stream;            /* store x past the caches */
} ps_span;

/* Right-hand sides of a long matrix whose chunks are eliminated once for all of them. */
typedef struct {
    const ps_partition *partition; /* of the matrix alone */
    ps_trans trans;
    int64_t systems;
    ps_input rhs; /* from one to the next: inner */
    ps_output x;
    void
        *interface; /* of the separators: [right-hand side, what to add][chunk][system] */
    int stream;
    int eliminates; /* the matrix, a group at a time; else that was done before */
} ps_chunks;

struct ps_type_kernels {
    int lanes;
    size_t element; /* bytes */

    /* Solve group `index` of a job, by reduction tile `index`; return the number of
     * systems pivoted. Scratch is for a group. */
    size_t (*direct_scratch)(const ps_job *job);
    int64_t (*direct)(const ps_job *job, int64_t index, void *scratch);
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

    /* cut: fills what follows side. partition_interface_bytes: bytes of separators.
     * partition_scratch: bytes of one group. partition_eliminate works on a stretch of
     * groups, tells about its separators, returns 0, or 1 + the row of a bad pivot, and
     * clears *dominant when a row is not. partition_assemble makes lower, diag, upper,
     * rhs of what was told, one word after the other; partition_substitute, another
     * stretch, takes the solution in place of rhs. */
    void (*partition)(ps_partition *partition);
    size_t (*partition_interface_bytes)(const ps_partition *partition);
    size_t (*partition_scratch)(const ps_partition *partition);
    int32_t (*partition_eliminate)(const ps_partition *partition, int64_t batch_block,
                                   void *scratch, int *dominant);
    void (*partition_assemble)(const ps_partition *partition);
    void (*partition_substitute)(const ps_partition *partition, int64_t batch_block,
                                 void *scratch);

    /* A matrix cut into chunks. chunks_table: bytes of the eliminated rows of a group;
     * chunks_scratch: bytes for a thread. chunks_make eliminates group `index`, and tells
     * and returns as partition_eliminate does. chunks_solve takes tiles first .. end-1 of
     * chunks down, which tells the separators, or up when they are solved; `table` is
     * that of the group which tile `first` begins. chunks_add_interfaces sums up what was
     * told. */
    size_t (*chunks_table)(const ps_partition *partition);
    size_t (*chunks_scratch)(const ps_partition *partition);
    int32_t (*chunks_make)(const ps_partition *partition, int64_t index, void *table,
                           int *dominant);
    void (*chunks_solve)(const ps_chunks *c, int64_t first, int64_t end,
                         const void *table, void *scratch, int up);
    void (*chunks_add_interfaces)(const ps_chunks *c);

    /* span_partition: fills what follows sets. span_interface_bytes: bytes of told.
     * span_scratch: bytes of a group. Groups of all sets are eliminated and substituted,
     * bands of all sets are joined, which sets info. */
    void (*span_partition)(ps_span *s);
    size_t (*span_interface_bytes)(const ps_span *s);
    size_t (*span_scratch)(const ps_span *s);
    void (*span_eliminate)(const ps_span *s, int64_t index, void *scratch);
    void (*span_join)(const ps_span *s, int64_t index);
    void (*span_substitute)(const ps_span *s, int64_t index, void *scratch);
};

/* Longest system, in bytes of one operand, that "auto" solves with one lane a
 * system: two words a row and lane then stay in a second-level cache. */
enum { PS_LANE_BYTES = 32768 };

/* Outputs beyond this many bytes are stored past the caches. */
enum { PS_STREAM_BYTES = 1 << 23 };

/* A system whose eliminated rows take at most this many bytes keeps them between
 * the two passes of the partition method. */
enum { PS_KEPT_BYTES = 1 << 22 };

/* Cut a batch into tiles of `lanes`; also brings a batch of one column into the
 * other axis. `t` is copied. */
void ps_job_init(ps_job *job, const ps_tridiag *t, int lanes);

/* The systems of tile `index`: their number, and the first of them. */
int64_t ps_job_tile(const ps_job *job, int lanes, int64_t index, int64_t *first);

/* Solve as many tiles side by side as the eliminated rows leave room for in cache,
 * `bytes` a tile, and as leaves work for all threads. */
void ps_job_group(ps_job *job, size_t bytes, int threads);

/* The same for a job that a factor solves: a group lies within a run, the tiles of which
 * are made a multiple of it. Tiles beyond the end of a run have no systems. `shared`: one
 * matrix serves all systems, so that a tile may begin anywhere. */
void ps_job_band(ps_job *job, const ps_type_kernels *kernels, int shared, int threads);

/* The groups of tiles of a job over the threads, each with `bytes` of work at
 * work + thread * bytes. `solve` is called for one after the other; `prepare`, when not
 * null, once a thread before. */
typedef struct {
    const ps_job *job;
    const ps_exec *exec;
    int threads;
    size_t bytes;
    char *work;
    void *self;
    void (*prepare)(void *self, const ps_job *job, void *work);
    int64_t (*solve)(void *self, const ps_job *job, int64_t index, void *work);
} ps_tiles;

/* PS_OK or PS_INTERRUPTED; *pivoted is the sum of what solve returned. */
ps_status ps_tiles_run(const ps_tiles *tiles, int64_t *pivoted);

#endif
