/* guarded.h - operands whose buffers end where their last element ends, so that a
 * sanitizer sees each overrun; every byte of no element holds MARK.
 */
#ifndef PS_TESTS_GUARDED_H
#define PS_TESTS_GUARDED_H

#include "check.h"

enum { MARK = 0xA5 };

typedef struct {
    unsigned char *room;
    size_t bytes;
    void *data; /* element (0, 0, 0) */
    ps_stride stride;
} operand;

/* Where the elements of rows * outer * inner systems may lie. */
enum { ROWS_PACKED, INNER_PACKED, MIDDLE, GAPS, BACKWARDS, LAYOUTS };

static inline ps_stride
layout_of(int kind, int64_t n, int64_t outer, int64_t inner)
{
    switch (kind) {
    case ROWS_PACKED:
        return (ps_stride){1, n * inner, n};
    case INNER_PACKED:
        return (ps_stride){inner * outer, inner, 1};
    case MIDDLE:
        return (ps_stride){inner, n * inner, 1};
    case GAPS:
        return (ps_stride){3, 3 * n * inner + 5, 3 * n};
    default:
        return (ps_stride){-1, -n * inner, -n};
    }
}

static inline size_t
reach(int64_t stride, int64_t count)
{
    return (size_t)((stride < 0 ? -stride : stride) * (count - 1));
}

static inline operand
operand_new(ps_dtype dtype, int kind, int64_t n, int64_t outer, int64_t inner)
{
    const ps_stride s = layout_of(kind, n, outer, inner);
    const size_t size = element_size(dtype);
    const size_t last = reach(s.row, n) + reach(s.outer, outer) + reach(s.inner, inner);
    operand a = {.bytes = (last + 1) * size, .stride = s};

    a.room = malloc(a.bytes);
    memset(a.room, MARK, a.bytes);
    a.data = s.row < 0 ? a.room + last * size : a.room;
    return a;
}

static inline int64_t
at(const operand *a, int64_t i, int64_t j, int64_t k)
{
    return i * a->stride.row + j * a->stride.outer + k * a->stride.inner;
}

static inline void
fill(const operand *a, const ps_tridiag *t, int word)
{
    for (int64_t s = 0; s < t->outer * t->inner; s++) {
        for (int64_t i = 0; i < t->rows; i++) {
            store(t->dtype, a->data, at(a, i, s / t->inner, s % t->inner),
                  entry(t->dtype, s, i, word));
        }
    }
}

/* Check the answers, then overwrite them with MARK: no other byte may differ. */
static inline void
check_output(const operand *x, const ps_tridiag *t, double bound, const char *what)
{
    double complex *const line = calloc((size_t)t->rows, sizeof *line);

    for (int64_t s = 0; s < t->outer * t->inner; s++) {
        for (int64_t i = 0; i < t->rows; i++) {
            const int64_t here = at(x, i, s / t->inner, s % t->inner);

            line[i] = load(t->dtype, x->data, here);
            memset((char *)x->data + here * (int64_t)element_size(t->dtype), MARK,
                   element_size(t->dtype));
        }
        const double error =
            backward_error(t->dtype, s, t->rows, !!(t->flags & PS_PERIODIC), line);
        CHECK(error <= bound * epsilon(t->dtype),
              "%s: system %d of %d, %d rows, dtype %d: %g", what, (int)s,
              (int)(t->outer * t->inner), (int)t->rows, (int)t->dtype,
              error / epsilon(t->dtype));
    }
    size_t touched = 0;
    for (size_t byte = 0; byte < x->bytes; byte++) {
        touched += x->room[byte] != MARK;
    }
    CHECK(touched == 0, "%s: %zu bytes outside the output", what, touched);
    free(line);
}

#endif
