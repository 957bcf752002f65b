/* transform_check.c - lengths and checks of transforms, for all backends. */
#include <math.h>

#include "ps_transform.h"

ps_transform_shape
ps_transform_shape_of(ps_transform_kind kind, int64_t size)
{
    const int64_t half = size / 2 + 1;
    ps_transform_shape s = {
        .form = PS_REAL_TO_COMPLEX, .in = size, .out = size, .length = size};

    switch (kind) {
    case PS_DCT1:
        s.length = 2 * (size - 1);
        break;
    case PS_DST1:
        s.length = 2 * (size + 1);
        break;
    case PS_DCT3:
    case PS_DST3:
        s.form = PS_COMPLEX_TO_REAL;
        break;
    case PS_DCT4:
    case PS_DST4:
        s.form = PS_COMPLEX;
        s.length = size % 2 == 0 ? size / 2 : 2 * size;
        break;
    case PS_RFFT:
        s.out = 2 * half;
        break;
    case PS_IRFFT:
        s.form = PS_COMPLEX_TO_REAL;
        s.in = 2 * half;
        break;
    default: /* PS_DCT2, PS_DST2: as initialised */
        break;
    }
    s.pitch = s.form == PS_COMPLEX ? 2 * s.length : 2 * (s.length / 2 + 1);
    return s;
}

ps_status
ps_transform_check(const ps_transform *t)
{
    if (t == NULL || !ps_is_real(t->dtype) || (unsigned)t->kind >= PS_TRANSFORM_COUNT ||
        t->outer < 0 || t->inner < 0 || t->size < (t->kind == PS_DCT1 ? 2 : 1) ||
        t->size > INT32_MAX / 8 || !isfinite(t->scale)) {
        return PS_BAD_ARGUMENT;
    }
    if (t->outer == 0 || t->inner == 0) {
        return PS_OK;
    }
    return t->field.data == NULL || t->lines == NULL ? PS_BAD_ARGUMENT : PS_OK;
}

static int
has_shape(ps_dtype dtype, int64_t planes, int64_t rows, int64_t length, int64_t pitch)
{
    return ps_is_real(dtype) && planes >= 1 && rows >= 1 && length >= 1 &&
           planes <= INT32_MAX / 8 && rows <= INT32_MAX / 8 && length <= INT32_MAX / 4 &&
           pitch >= 2 * (length / 2 + 1) && pitch % 2 == 0;
}

/* Whether there is an order of `size` values for the kind. */
static int
has_order(ps_transform_kind kind, int64_t size)
{
    return kind == PS_DCT2 || kind == PS_DST2 || kind == PS_RFFT || kind == PS_DST1 ||
           (kind == PS_DCT1 && size >= 2);
}

/* Intervals of `size` values of kind 1. */
static int64_t
intervals_of(ps_transform_kind kind, int64_t size)
{
    return kind == PS_DST1 ? size + 1 : size - 1;
}

/* Whether the values are of kind 1, and their intervals a multiple of 8. */
static int
is_in_eighths(ps_transform_kind kind, int64_t size)
{
    const int64_t n = intervals_of(kind, size);

    return (kind == PS_DCT1 || kind == PS_DST1) && n >= 8 && n % 8 == 0;
}

static int
has_halvings(const ps_waves *w)
{
    const int64_t n = intervals_of(w->kind, w->size);
    const int levels = w->halvings;
    int64_t pitch = 2;

    if ((w->kind != PS_DCT1 && w->kind != PS_DST1) || w->rows != 1 || levels < 0 ||
        levels > PS_MOST_HALVINGS || n < 1 || n % (INT64_C(1) << levels) != 0) {
        return 0;
    }
    for (int p = 1; p <= levels; p++) {
        pitch += 2 * ((n >> p) / 2 + 1);
    }
    return w->pitch == pitch + 2 * (n >> levels);
}

/* Whether the lines are `given` values, or their continuation. */
static int
has_continuation(const ps_waves *w)
{
    const int64_t more = w->kind == PS_DCT1 ? -1 : w->kind == PS_DST1 ? 1 : 0;

    return w->given == w->size ||
           (w->kind != PS_RFFT && w->given >= 1 && w->given < w->size &&
            w->size - w->given <= w->given + more);
}

/* Numbers of a line of PS_MIRRORED, PS_MIRRORED_ROWS or PS_MIRRORED_IN_FIVE; 0 if there is no
 * such line. */
static int64_t
mirrored_pitch(const ps_waves *w)
{
    if (w->halvings == PS_MIRRORED) {
        return (((w->size + 1) / 2 + 1) / 2 + 3) / 4 * 16;
    }
    const int64_t n = intervals_of(w->kind, w->size);
    const int64_t middle = n / 8 + (w->kind == PS_DCT1);

    if (w->halvings < PS_MIRRORED_IN_FIVE || !is_in_eighths(w->kind, w->size) ||
        (w->halvings == PS_MIRRORED_IN_FIVE && !is_in_eighths(w->row_kind, w->rows))) {
        return 0;
    }
    return (middle + 3) / 4 * 8 + n / 2 + 2 + n / 4 + 2;
}

static ps_status
mirrored_check(const ps_waves *w)
{
    return w->size >= 1 && w->size <= INT32_MAX / 8 && w->pitch == mirrored_pitch(w) &&
                   has_shape(w->dtype, w->planes, w->rows, w->size, w->pitch) &&
                   w->given == w->size && w->edge == NULL && w->field.data != NULL &&
                   w->waves != NULL && isfinite(w->scale)
               ? PS_OK
               : PS_BAD_ARGUMENT;
}

ps_status
ps_waves_check(const ps_waves *w)
{
    if (w != NULL && w->halvings < 0) {
        return mirrored_check(w);
    }
    if (w == NULL || w->size < 1 || w->size > INT32_MAX / 8 ||
        !has_order(w->kind, w->size) || !has_order(w->row_kind, w->rows) ||
        w->row_kind == PS_DCT1 || w->row_kind == PS_DST1 || w->field.data == NULL ||
        w->waves == NULL || !isfinite(w->scale) || !has_continuation(w) ||
        (w->edge != NULL && (w->edge_place < 0 || w->edge_place >= w->size)) ||
        (w->halvings != 0 && !has_halvings(w))) {
        return PS_BAD_ARGUMENT;
    }
    const int64_t length = w->halvings != 0
                               ? intervals_of(w->kind, w->size)
                               : ps_transform_shape_of(w->kind, w->size).length;

    return has_shape(w->dtype, w->planes, w->rows, length, w->pitch) ? PS_OK
                                                                     : PS_BAD_ARGUMENT;
}

ps_status
ps_wave_lines_check(const ps_wave_lines *l)
{
    return l != NULL && has_shape(l->dtype, l->planes, l->rows, l->length, l->pitch) &&
                   l->planes >= 2 && l->waves != NULL && l->shifts != NULL &&
                   l->turns != NULL && l->row_turns != NULL &&
                   (l->y == NULL) == (l->y_left == NULL) &&
                   (l->ends == NULL || l->y == NULL) &&
                   (l->couplings == NULL || l->ends != NULL) &&
                   (!l->periodic || (l->ends == NULL && l->y == NULL))
               ? PS_OK
               : PS_BAD_ARGUMENT;
}

ps_status
ps_centre_check(const ps_centre *c)
{
    if (c == NULL || !ps_is_real(c->dtype) || c->size < 0) {
        return PS_BAD_ARGUMENT;
    }
    return c->size > 0 && (c->data == NULL || c->weights == NULL) ? PS_BAD_ARGUMENT
                                                                  : PS_OK;
}
