/* blocks.c - block tridiagonal systems and systems of five diagonals: which kernels, which
 * workspace, and the loop over tiles.
 *
 * Blocks of 2, 3 and 4 rows, and five diagonals as blocks of 2, are eliminated as numbers
 * (lines/blocks.inc). Other blocks, and the systems of a tile that need partial pivoting,
 * are bands of scalar rows (lines/band.inc), whose factors are in the workspace of the
 * thread.
 */
#include "blocks.h"

#include <stdatomic.h>

#include "lines/blocks.h"
#include "lines/kernels.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"
#include "runtime/workspace.h"

/* The widest kernels if the eliminated rows of a tile stay in cache, or others: all
 * instruction sets have the same bits. */
static const ps_block_kernels *
fitting(const ps_blocks *b, const ps_block_kernels *wide, const ps_block_kernels *narrow)
{
    return wide->scratch_bytes(b) <= PS_BLOCKS_BYTES ? wide : narrow;
}

#define FITTING(b, name) fitting(b, PS_ISA_OF(name), PS_ISA_NARROW(name))

/* The same of blocks of 2: solves that come from memory have narrow ones, too. Factors are
 * of the width with which they were made, for any number of right-hand sides. */
static const ps_block_kernels *
fitting_pairs(const ps_blocks *b)
{
    const int64_t scalars = b->rows * b->outer * b->inner * 2;
    const int far = b->side == 2 && b->task == PS_BLOCKS_SOLVE &&
                    scalars * (int64_t)sizeof(double) > PS_PAIRS_BYTES;

    return far ? PS_ISA_NARROW(ps_blocks_f64_2) : FITTING(b, ps_blocks_f64_2);
}

/* The kernels of a side, or null; and those of bands. Blocks of float32 have none for
 * AVX-512, with which sides 2, 3, 4 took 1.13, 1.06, 1.07 of the time of AVX2 (EPYC). */
static const ps_block_kernels *
blocks_of(const ps_blocks *b)
{
    const int is_single = b->dtype == PS_F32;

    switch (b->side) {
    case 0:
    case 2:
        return is_single ? PS_ISA_NARROW(ps_blocks_f32_2) : fitting_pairs(b);
    case 3:
        return is_single ? PS_ISA_NARROW(ps_blocks_f32_3) : FITTING(b, ps_blocks_f64_3);
    case 4:
        return is_single ? PS_ISA_NARROW(ps_blocks_f32_4) : FITTING(b, ps_blocks_f64_4);
    default:
        return NULL;
    }
}

/* Those of bands, with the lanes of the former. */
static const ps_block_kernels *
band_of(const ps_blocks *b)
{
    const ps_block_kernels *const blocks = blocks_of(b);
    const ps_block_kernels *const wide =
        b->dtype == PS_F32 ? PS_ISA_OF(ps_band_f32) : PS_ISA_OF(ps_band_f64);

    if (blocks == NULL || blocks->lanes == wide->lanes) {
        return wide;
    }
    return b->dtype == PS_F32 ? PS_ISA_NARROW(ps_band_f32) : PS_ISA_NARROW(ps_band_f64);
}

/* The kernels of all systems of a call that does not solve with PS_PIVOT_AUTO. */
static const ps_block_kernels *
kernels_of(const ps_blocks *b)
{
    const ps_block_kernels *const blocks = blocks_of(b);

    return blocks == NULL || b->pivot == PS_PIVOT_ALWAYS ? band_of(b) : blocks;
}

/* A call and its workspace of a thread: the factors of a band, then scratch. */
typedef struct {
    ps_blocks b;
    const ps_block_kernels *kernels, *band; /* band: null if no system needs it */
    int threads;
    int64_t tiles; /* of one index of the outer axis */
    size_t store, bytes;
    char *work;
    atomic_llong pivoted;
} run;

static void
exchange_axes(ps_blocks *b)
{
    ps_stride *const strides[] = {
        &b->lower.stride,    &b->diag.stride,     &b->upper.stride,
        &b->rhs.stride,      &b->x.stride,        &b->bands[0].stride,
        &b->bands[1].stride, &b->bands[2].stride, &b->bands[3].stride,
        &b->bands[4].stride, &b->weight.stride,   &b->scale.stride};
    const int64_t outer = b->outer;

    b->outer = b->inner;
    b->inner = outer;
    for (int k = 0; k < 12; k++) {
        const ps_stride s = *strides[k];

        *strides[k] = (ps_stride){s.row, s.inner, s.outer};
    }
}

static void
plan(const ps_blocks *b, const ps_exec *exec, run *r)
{
    r->b = *b;
    r->kernels = kernels_of(b);
    r->band = b->task == PS_BLOCKS_SOLVE &&
                      (b->pivot != PS_PIVOT_NEVER || r->kernels == band_of(b))
                  ? band_of(b)
                  : NULL;
    /* info has the order of the axes */
    if (b->task == PS_BLOCKS_SOLVE && b->info == NULL && b->outer > b->inner &&
        b->inner < r->kernels->lanes) {
        exchange_axes(&r->b);
    }
    r->tiles = (r->b.inner + r->kernels->lanes - 1) / r->kernels->lanes;
    r->threads = ps_thread_count_for(exec, b->rows * (b->side == 0 ? 1 : b->side) *
                                               b->outer * b->inner);
    r->store = r->band == NULL ? 0 : ps_aligned(r->band->store_bytes(b));

    size_t scratch = r->kernels->scratch_bytes(b);

    if (r->band != NULL && r->band->scratch_bytes(b) > scratch) {
        scratch = r->band->scratch_bytes(b);
    }
    r->bytes = r->store + ps_aligned(scratch);
}

/* The call at an index of the outer axis. */
static ps_blocks
at_outer(const ps_blocks *b, int64_t j)
{
    const int64_t size = ps_dtype_size(b->dtype);
    ps_blocks one = *b;
    ps_block_diagonal *const diagonals[] = {&one.lower, &one.diag, &one.upper, &one.rhs,
                                            &one.x};

    one.outer = 1;
    for (int k = 0; k < 5; k++) {
        if (diagonals[k]->data != NULL) {
            diagonals[k]->data =
                (char *)diagonals[k]->data + j * diagonals[k]->stride.outer * size;
        }
        if (one.bands[k].data != NULL) {
            one.bands[k].data =
                (const char *)one.bands[k].data + j * one.bands[k].stride.outer * size;
        }
    }
    if (b->weight.data != NULL) {
        one.weight.data =
            (const char *)one.weight.data + j * one.weight.stride.outer * size;
        one.scale.data = (const char *)one.scale.data + j * one.scale.stride.outer * size;
    }
    one.info = b->info == NULL ? NULL : b->info + j * b->inner;
    return one;
}

/* The factors of a tile. */
static char *
store_at(const run *r, int64_t tile)
{
    return (char *)r->b.store + (size_t)tile * r->kernels->store_bytes(&r->b);
}

static int64_t
count_of(uint32_t lanes, int64_t systems)
{
    int64_t count = 0;

    for (int v = 0; v < 32 && v < systems; v++) {
        count += lanes >> v & 1;
    }
    return count;
}

/* Solve a tile. Returns the number of systems solved with row exchanges. */
static int64_t
solve_tile(const run *r, const ps_blocks *b, int64_t tile, char *work)
{
    char *const scratch = work + r->store;
    const uint32_t again =
        r->kernels->solve == NULL ? ~0u : r->kernels->solve(b, tile, scratch);
    const int64_t count = count_of(again, b->inner - tile * r->kernels->lanes < 32
                                              ? b->inner - tile * r->kernels->lanes
                                              : 32);

    if (count > 0 && r->band != NULL) {
        r->band->factor(b, tile, work, scratch);
        r->band->apply(b, tile, work, scratch, again);
    }
    return count;
}

static void
run_tiles(void *self, int64_t begin, int64_t end, int thread)
{
    run *const r = self;
    char *const work = r->work + (size_t)thread * r->bytes;
    int64_t pivoted = 0;

    for (int64_t k = begin; k < end; k++) {
        const int64_t j = k / r->tiles, tile = k % r->tiles;
        ps_blocks b = at_outer(&r->b, j);
        const int64_t left = b.inner - tile * r->kernels->lanes;

        switch (b.task) {
        case PS_BLOCKS_SOLVE:
            pivoted += solve_tile(r, &b, tile, work);
            break;
        case PS_BLOCKS_FACTOR:
            pivoted += count_of(r->kernels->factor(&b, tile, store_at(r, k), work), left);
            break;
        case PS_BLOCKS_APPLY: {
            const int64_t tiles =
                (b.factor_inner + r->kernels->lanes - 1) / r->kernels->lanes;

            b.trans = r->b.trans;
            r->kernels->apply(
                &b, tile,
                store_at(r, (b.outer_step ? j * tiles : 0) + (b.inner_step ? tile : 0)),
                work, ~0u);
            break;
        }
        case PS_BLOCKS_LOGDET:
            b.logdet += j * b.inner;
            b.sign += j * b.inner;
            r->kernels->logdet(&b, tile, store_at(r, k));
            break;
        default:
            for (int w = 0; w < 3; w++) {
                if (b.inverse[w].data != NULL) {
                    b.inverse[w].data =
                        (char *)b.inverse[w].data +
                        j * b.inverse[w].stride.outer * ps_dtype_size(b.dtype);
                }
            }
            r->kernels->inverse(&b, tile, store_at(r, k));
        }
    }
    atomic_fetch_add(&r->pivoted, pivoted);
}

ps_status
ps_cpu_blocks_store(const ps_blocks *b, const ps_exec *exec, size_t *bytes)
{
    (void)exec;
    if (b == NULL || b->side < 0 || b->side > PS_MOST_SIDE || b->rows < 1) {
        return PS_BAD_ARGUMENT;
    }
    const ps_block_kernels *const kernels = kernels_of(b);

    *bytes = (size_t)(b->outer * ((b->inner + kernels->lanes - 1) / kernels->lanes)) *
             kernels->store_bytes(b);
    return PS_OK;
}

ps_status
ps_cpu_blocks_work(const ps_blocks *b, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_blocks_check(b);
    run r;

    *bytes = 0;
    if (status == PS_OK && b->outer > 0 && b->inner > 0) {
        plan(b, exec, &r);
        *bytes = r.bytes * (size_t)r.threads;
    }
    return status;
}

ps_status
ps_cpu_blocks_run(const ps_blocks *b, const ps_exec *exec, ps_report *report)
{
    size_t bytes;
    ps_status status = ps_cpu_blocks_work(b, exec, &bytes);
    run r;

    *report = (ps_report){.method = PS_THOMAS, .kernel = ps_isa_get()->name};
    if (status != PS_OK || b->outer == 0 || b->inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    plan(b, exec, &r);
    if (b->task == PS_BLOCKS_INVERSE && r.kernels->inverse == NULL) {
        return PS_UNSUPPORTED; /* factors with row exchanges across blocks */
    }
    if (b->task != PS_BLOCKS_SOLVE) {
        ps_blocks matrices = *b;

        if (b->task == PS_BLOCKS_APPLY) {
            matrices.outer = b->factor_outer;
            matrices.inner = b->factor_inner;
        }
        ps_cpu_blocks_store(&matrices, exec, &bytes);
        if (bytes > b->store_bytes) {
            return PS_WORK_TOO_SMALL;
        }
    }
    r.work = exec->work;
    atomic_init(&r.pivoted, 0);
    status =
        ps_run(exec, r.threads, r.b.outer * r.tiles,
               b->rows * (b->side == 0 ? 1 : b->side) * r.kernels->lanes, run_tiles, &r);
    report->threads = r.threads;
    report->method = r.kernels == band_of(b) ? PS_PIVOTED : PS_THOMAS;
    report->pivoted = atomic_load(&r.pivoted);
    return status;
}
