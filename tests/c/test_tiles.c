/* test_tiles.c - the division of a batch into tiles: where tiles start in memory, which
 * solutions are stored past the caches, and which instruction set few long systems have. */
#include "check.h"

#include "lines/kernels.h"
#include "lines/streams.h"

/* Adjacent systems whose x starts `offset` elements after an aligned address, which is not
 * accessed; rows are `row` elements apart. */
static ps_tridiag
adjacent(ps_dtype dtype, int64_t rows, int64_t systems, int64_t row, int64_t offset)
{
    char *const x = (char *)(uintptr_t)4096 + offset * (int64_t)element_size(dtype);
    const ps_stride stride = {row, rows * row, 1};

    return (ps_tridiag){.dtype = dtype,
                        .rows = rows,
                        .outer = 1,
                        .inner = systems,
                        .lower = {x, stride},
                        .diag = {x, stride},
                        .upper = {x, stride},
                        .rhs = {x, stride},
                        .x = {x, stride}};
}

/* The tiles of a job cover all systems in order; those after the first one start at
 * aligned vectors if there are many of them and rows are whole vectors apart. */
static void
check_tiles(ps_dtype dtype, int64_t systems, int64_t offset)
{
    const int lanes = ps_isa_get()->type[dtype]->lanes;
    const int64_t row = (systems + 2 * lanes - 1) / lanes * lanes;
    const ps_tridiag t = adjacent(dtype, 8, systems, row, offset);
    const int many = systems >= PS_LONG_RUN_TILES * lanes;
    int64_t covered = 0;
    ps_job job;

    ps_job_init(&job, &t, lanes);
    for (int64_t k = 0; k < job.tiles; k++) {
        int64_t first;
        const int64_t count = ps_job_tile(&job, lanes, k, &first);

        CHECK(first == covered && count > 0 && count <= lanes,
              "tile %d of %d systems, offset %d", (int)k, (int)systems, (int)offset);
        CHECK(k == 0 || !many || (first + offset) % lanes == 0,
              "tile %d of %d systems, offset %d starts at %d", (int)k, (int)systems,
              (int)offset, (int)first);
        covered = first + count;
    }
    CHECK(covered == systems, "%d of %d systems", (int)covered, (int)systems);
}

/* A large solution of adjacent systems is stored past the caches if and only if every
 * vector of its tiles is aligned. */
static void
check_streams(ps_dtype dtype, int64_t row, int64_t offset)
{
    const int lanes = ps_isa_get()->type[dtype]->lanes;
    const int64_t rows = PS_STREAM_BYTES / 256;
    const ps_tridiag t = adjacent(dtype, rows, 256, row, offset);
    ps_job job;

    ps_job_init(&job, &t, lanes);
    const int aligned = (offset - job.shift) % lanes == 0 && row % lanes == 0;

    CHECK(ps_is_streamed(&t, lanes, job.shift, 0) == aligned,
          "rows %d apart, offset %d, %d lanes", (int)row, (int)offset, lanes);
    CHECK(job.stream == aligned, "rows %d apart, offset %d, %d lanes", (int)row,
          (int)offset, lanes);
}

/* A solution that is not large is stored past the caches if each system has a matrix of its
 * own, and through the caches if all have one. */
static void
check_own_streams(ps_dtype dtype)
{
    const int lanes = ps_isa_get()->type[dtype]->lanes;
    ps_tridiag t = adjacent(
        dtype, PS_STREAM_OWN_BYTES / 256 / (int64_t)element_size(dtype) + 1, 256, 256, 0);

    CHECK(ps_is_streamed(&t, lanes, 0, 0), "%d lanes", lanes);
    t.diag.stride = (ps_stride){1, 0, 0};
    CHECK(!ps_is_streamed(&t, lanes, 0, 0), "%d lanes", lanes);
    t.diag.stride = t.x.stride;
    t.rows--;
    CHECK(!ps_is_streamed(&t, lanes, 0, 0), "%d lanes", lanes);
}

static int
is_narrow(const ps_isa *isa)
{
    return isa->type[PS_F64]->lanes <= 4;
}

/* Long systems have the shortest vectors that hold all of them. Short ones, and more systems
 * than any vector has lanes, have the longest ones, but vectors of at most 32 bytes if these
 * hold all systems, and for systems in memory of more rows than the caller allows. */
static void
check_instruction_set(ps_dtype dtype, int64_t systems)
{
    const int64_t most = PS_LANE_BYTES / (int64_t)element_size(dtype);
    const ps_isa *const long_ones = ps_isa_for(dtype, most + 1, systems, INT64_MAX);
    const ps_isa *const short_ones =
        ps_isa_for(dtype, most, systems, ps_is_real(dtype) ? most - 1 : most);
    const ps_isa *const many = ps_isa_for(dtype, most, PS_PAIR_BYTES, most - 1);
    const int lanes = long_ones->type[dtype]->lanes;
    const int few = systems * element_size(dtype) <= (dtype < PS_C64 ? 32 : 64);

    CHECK(short_ones == ps_isa_get() || few, "%d systems", (int)systems);
    CHECK(!few || is_narrow(short_ones), "%d systems", (int)systems);
    CHECK(is_narrow(many), "%d lanes", many->type[dtype]->lanes);
    CHECK(long_ones == ps_isa_get() || lanes >= systems, "%d systems", (int)systems);
    CHECK(long_ones == &ps_isa_baseline || 2 * systems > lanes, "%d systems, %d lanes",
          (int)systems, lanes);
}

/* Rows beyond which a batch in memory has vectors of at most 32 bytes, by layout: of float32
 * if lines are contiguous, of complex numbers if all exchange rows and are one tile. */
static void
check_wide_rows(ps_dtype dtype, int64_t systems)
{
    const int is_real = ps_is_real(dtype), is_single = dtype == PS_F32;
    const int alone = !is_real && systems <= ps_isa_get()->type[dtype]->lanes;
    ps_tridiag t = adjacent(dtype, 64, systems, systems + 8, 0);

    CHECK(ps_wide_rows(&t, 0) == INT64_MAX, "%d systems", (int)systems);
    CHECK(ps_wide_rows(&t, 1) == (alone ? PS_WIDE_COMPLEX_COLUMNS : INT64_MAX),
          "%d systems", (int)systems);
    t.rhs.stride = t.x.stride = (ps_stride){1, 0, 64};
    CHECK(ps_wide_rows(&t, 0) == (is_single ? PS_WIDE_ROWS : INT64_MAX), "%d systems",
          (int)systems);
    CHECK(ps_wide_rows(&t, 1) == (is_single ? PS_WIDE_PIVOTED_ROWS
                                  : alone   ? PS_WIDE_COMPLEX_ROWS
                                            : INT64_MAX),
          "%d systems", (int)systems);
}

int
main(void)
{
    for (int dtype = 0; dtype < PS_DTYPE_COUNT; dtype++) {
        const int lanes = ps_isa_get()->type[dtype]->lanes;

        check_own_streams((ps_dtype)dtype);
        for (int64_t offset = 0; offset < lanes; offset++) {
            for (int64_t more = 0; more <= lanes; more++) {
                check_tiles((ps_dtype)dtype, 1 + more, offset);
                check_tiles((ps_dtype)dtype, PS_LONG_RUN_TILES * lanes + more, offset);
            }
            check_streams((ps_dtype)dtype, 256, offset);
            check_streams((ps_dtype)dtype, 256 + lanes, offset);
            check_streams((ps_dtype)dtype, 257, offset);
        }
        for (int64_t systems = 1; systems <= 4 * lanes; systems++) {
            check_instruction_set((ps_dtype)dtype, systems);
            check_wide_rows((ps_dtype)dtype, systems);
        }
    }
    return report();
}
