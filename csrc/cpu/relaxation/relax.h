/* relax.h - red-black relaxation over the rows of a grid, for any five-point formula.
 *
 * A half-sweep relaxes one colour. Half-sweep s of row j reads the other colour of the
 * rows j-1, j and j+1 after half-sweep s-1 and before half-sweep s+1. The order of the
 * rows is otherwise arbitrary and does not change a bit of the result. See relax.c.
 */
#ifndef PS_CPU_RELAX_H
#define PS_CPU_RELAX_H

#include "ps_stop.h"

enum { PS_CHUNK_BYTES = 64 };

typedef enum { PS_MEASURE_NONE, PS_MEASURE_MAX, PS_MEASURE_SQUARES } ps_measure;

/* One colour of a row. Pointers are those of element 0 of a row. Node i is element i/2
 * of its colour and parity (i % 2), or element i if the colours are interleaved. */
typedef struct {
    const void *own, *other, *north, *south;
    void *to;
    const void *omega, *source; /* source may be null */
    const void *coefficient[4];
    double cx, cy, skew_y;
    int64_t first, last; /* elements to relax: first <= m < last */
    int parity;
    ps_criterion criterion;
    ps_measure measure;
    void *slot; /* 64 bytes in which the measured quantity is accumulated; null: nothing
                   is measured */
} ps_relax_row;

/* Relax the chunks begin <= v < end, of 64 bytes each, of a row. */
typedef void (*ps_relax_function)(const ps_relax_row *row, int64_t begin, int64_t end);

/* The coefficients that the row functions of an instruction set read:
 *   full      coefficient: west, east, north, south
 *   skew      coefficient: skew_x, skew_y
 *   tables    coefficient: skew_x; skew_y
 *   volumes   omega: the gain; coefficient: the diagonal; cx and cy are ax and ay */
typedef enum {
    PS_ROW_FULL,
    PS_ROW_SKEW,
    PS_ROW_TABLES,
    PS_ROW_VOLUMES,
    PS_ROW_KINDS
} ps_row_kind;

/* Tables along x for the elements of a row, the table values of the row, and its
 * colour. */
typedef struct {
    const double *mu_max, *mu_min, *sign, *gain;
    double row_mu_max, row_mu_min, row_sign, row_gain;
    double constant;
    int relaxation, colour;
    int64_t count;
} ps_omega_row;

typedef struct {
    ps_relax_function row[PS_ROW_KINDS];
    void (*omega)(const ps_omega_row *row, void *to);
} ps_relax_kernels;

/* The fastest kernels for a dtype, PS_F32 or PS_F64, that this processor supports. */
const ps_relax_kernels *ps_relax_kernels_get(ps_dtype dtype);

/* A relaxation. describe() sets the members that row j needs in addition to `own` to
 * `to`, `first`, `last`, `parity` and the measured quantity; the row is at `offset`
 * bytes in a field. It may write `scratch`, the memory of one row, which is not changed
 * while the row is in use. */
typedef struct {
    ps_dtype dtype;
    int64_t nx, ny, pitch;
    void *field;
    const ps_stop *stop;
    const char *kernel;
    ps_relax_function row;
    void (*describe)(const void *self, int colour, int64_t j, size_t offset,
                     void *scratch, ps_relax_row *row);
    const void *self;
    int interleaved;   /* both colours in one array; one thread */
    int blocked;       /* several iterations per pass over memory; no axis is periodic */
    uint32_t periodic; /* bits of ps_stop.h */
    int row_words;     /* words per node that are read in a row, including the field */
} ps_relax;

/* Bytes of workspace of a call, and the call. */
size_t ps_relax_work(const ps_relax *r, const ps_exec *exec);
ps_status ps_relax_iterate(const ps_relax *r, int64_t count, const ps_exec *exec,
                           ps_relax_report *report);

#endif
