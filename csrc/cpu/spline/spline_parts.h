/* spline_parts.h - the parts that threads take from a batch of splines. */
#ifndef PS_CPU_SPLINE_PARTS_H
#define PS_CPU_SPLINE_PARTS_H

#include "ps_spline.h"
#include "runtime/tuning.h"

/* An operation on outer * inner splines with `rows` rows each. */
typedef struct {
    const void *operation; /* ps_spline_rows, ps_spline_pieces or ps_spline_points */
    int64_t outer, inner, rows;
} ps_spline_task;

/* Splines [first, end), counted outer * inner, rows [row, row_end). */
typedef struct {
    int64_t first, end, row, row_end;
} ps_spline_part;

/* Splines (j, k) to (j, k + count - 1). */
typedef struct {
    int64_t j, k, count;
} ps_spline_run;

/* What is left to multiply a value at a point with: unit^power; see ps_spline_point. */
typedef struct {
    double unit;
    int32_t power;
} ps_spline_scale;

static inline int64_t
ps_spline_count(int64_t items, int64_t size)
{
    return (items + size - 1) / size;
}

static inline ps_spline_part
ps_spline_part_of(const ps_spline_task *t, int64_t number)
{
    const int64_t blocks = ps_spline_count(t->rows, PS_SPLINE_BLOCK);
    const int64_t splines = t->outer * t->inner;
    ps_spline_part p = {.first = number / blocks * PS_SPLINE_TILE,
                        .row = number % blocks * PS_SPLINE_BLOCK};

    p.end = p.first + PS_SPLINE_TILE < splines ? p.first + PS_SPLINE_TILE : splines;
    p.row_end = p.row + PS_SPLINE_BLOCK < t->rows ? p.row + PS_SPLINE_BLOCK : t->rows;
    return p;
}

/* The run that begins with spline number `first`: one spline, or as many as possible. */
static inline ps_spline_run
ps_spline_run_at(const ps_spline_task *t, const ps_spline_part *p, int64_t first)
{
    ps_spline_run run = {first / t->inner, first % t->inner, 1};

    if (t->inner >= PS_SPLINE_RUN) {
        run.count = t->inner - run.k < p->end - first ? t->inner - run.k : p->end - first;
    }
    return run;
}

/* Work on parts [begin, end) of a ps_spline_task. */
void ps_spline_rows_f32(void *task, int64_t begin, int64_t end, int thread);
void ps_spline_rows_f64(void *task, int64_t begin, int64_t end, int thread);
void ps_spline_pieces_f32(void *task, int64_t begin, int64_t end, int thread);
void ps_spline_pieces_f64(void *task, int64_t begin, int64_t end, int thread);
void ps_spline_points_f32(void *task, int64_t begin, int64_t end, int thread);
void ps_spline_points_f64(void *task, int64_t begin, int64_t end, int thread);

#endif
