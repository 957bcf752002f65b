/* ps_transform.h - sine, cosine and real Fourier transforms around one transform of a
 * library, which takes lines that are contiguous.
 *
 * A transform along one axis of a field is three steps:
 *
 *   load     values of the field, combined and transposed, to the lines
 *   library  one transform of `length` per line: real to complex, complex to real, or
 *            complex to complex forward, in place, without scaling
 *   store    numbers of the lines, combined and transposed, to the field, times `scale`
 *
 * With x the `in` values before and y the `out` values after, scale 1:
 *
 *   dct1    y[k] = x[0] + (-1)^k x[n-1] + 2 sum_{0<j<n-1} x[j] cos(pi j k/(n-1))
 *   dct2    y[k] = 2 sum_j x[j] cos(pi k (2j+1)/(2n))
 *   dct3    y[k] = x[0] + 2 sum_{j>0} x[j] cos(pi j (2k+1)/(2n))
 *   dct4    y[k] = 2 sum_j x[j] cos(pi (2j+1)(2k+1)/(4n))
 *   dst1    y[k] = 2 sum_j x[j] sin(pi (j+1)(k+1)/(n+1))
 *   dst2    y[k] = 2 sum_j x[j] sin(pi (k+1)(2j+1)/(2n))
 *   dst3    y[k] = (-1)^k x[n-1] + 2 sum_{j<n-1} x[j] sin(pi (j+1)(2k+1)/(2n))
 *   dst4    y[k] = 2 sum_j x[j] sin(pi (2j+1)(2k+1)/(4n))
 *   rfft    y[2k] + i y[2k+1] = sum_j x[j] exp(-2 pi i j k/n), 0 <= k <= n/2
 *   irfft   y[j] = sum over all k of X[k] exp(2 pi i j k/n), X[k] = x[2k] + i x[2k+1]
 *           for 0 <= k <= n/2 and X[n-k] the conjugate of X[k]
 */
#ifndef PS_TRANSFORM_H
#define PS_TRANSFORM_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PS_TRANSFORM_LIST(X) \
    X(PS_DCT1, "dct1")       \
    X(PS_DCT2, "dct2")       \
    X(PS_DCT3, "dct3")       \
    X(PS_DCT4, "dct4")       \
    X(PS_DST1, "dst1")       \
    X(PS_DST2, "dst2")       \
    X(PS_DST3, "dst3")       \
    X(PS_DST4, "dst4")       \
    X(PS_RFFT, "rfft")       \
    X(PS_IRFFT, "irfft")

#define PS_NAME_(name, text) name,
typedef enum { PS_TRANSFORM_LIST(PS_NAME_) PS_TRANSFORM_COUNT } ps_transform_kind;
#undef PS_NAME_

/* The transform of the library. */
typedef enum { PS_REAL_TO_COMPLEX, PS_COMPLEX_TO_REAL, PS_COMPLEX } ps_transform_form;

/* The lines of a transform. Numbers before and after are real or complex as in `form`. */
typedef struct {
    ps_transform_form form;
    int64_t in, out; /* values of the field before and after */
    int64_t length;  /* of the transform of the library */
    int64_t pitch;   /* reals from one line to the next: room for both sides */
} ps_transform_shape;

/* Values of the field: value t of column (j, k) at
 * field.data[t*row + j*outer + k*inner]; line number j*inner + k begins at
 * lines[(j*inner + k) * pitch]. load() reads the field and writes the lines, store()
 * reads the lines and writes the field. They do not overlap. */
struct ps_transform {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_transform_kind kind;
    int64_t size; /* n */
    int64_t outer, inner;
    ps_output field;
    void *lines; /* aligned to a complex number */
    double scale;
};

#define PS_MOST_HALVINGS 3
/* Instead of a number of halvings: */
#define PS_MIRRORED (-1)
#define PS_MIRRORED_ROWS (-2)
#define PS_MIRRORED_IN_FIVE (-3)

/* A real field of planes x rows x `size` values, and its waves along the values and the
 * rows as the library packs them: its transform of a plane, real to complex along the
 * values and complex along the rows (of one row: along the values alone), of values in
 * an order that depends on the kind. A line has length/2 + 1 complex numbers, `length`
 * of ps_transform_shape; line (plane, row) begins at waves[(plane*rows + row) * pitch].
 *
 *   PS_RFFT   value j of a line is number j of the library
 *   PS_DCT2   the values 0, 2, 4, ... and then the odd ones from the last to the first
 *   PS_DST2   the same, with the odd values negated
 *   PS_DCT1   the even extension x[0], ..., x[n-1], x[n-2], ..., x[1]
 *   PS_DST1   the odd extension 0, x[0], ..., x[n-1], 0, -x[n-1], ..., -x[0]
 *
 * The last two are not offered along the rows. load() reads the field and writes the
 * lines before the library transforms them, store() reads the lines and writes the field,
 * times `scale`. They do not overlap.
 *
 * With `halvings` > 0, for one row, the lines of PS_DCT1 and PS_DST1 of N intervals (n - 1
 * and n + 1; a multiple of 2^halvings) are in parts, each of which has `planes`
 * lines next to each other. Part 0 has lines as above of N / 2^halvings intervals: their
 * waves are those of order 2^halvings k. Part p = 1 .. halvings has lines of M = N / 2^p
 * reals, 2 (M/2 + 1) apart, which the library transforms from complex to real after load() and
 * from real to complex before store(): M waves, those of order 2^(p-1) (2q + 1) for q = 0,
 * 2, 4, ... and then the odd q from the last to the first. `pitch` is the sum of the
 * distances of lines of all parts.
 *
 * With `halvings` PS_MIRRORED the lines are sums and differences of mirror places of both
 * axes of a plane, for products. A line of n values has two parts: the sums of values i and
 * n-1-i, and their differences. With PS_DST1, an odd n and m = (n+1)/2 the differences are
 * replaced by sums and differences of their mirror places i and m-2-i, with PS_DCT1 and
 * m = (n-1)/2 the sums by those of i and m-i: three parts. The middle is added to itself.
 * The parts of a line follow each other from 0, and those that were not folded twice have
 * half of `pitch`, others a quarter; pitch/4 is half of (n+1)/2, each rounded up, to a
 * multiple of 4. Other places have zeros. The parts of the rows follow each other without
 * gaps. store() reads lines in which the parts are the even and the odd part of values, and so
 * for those of parts.
 *
 * With `halvings` PS_MIRRORED_ROWS the rows are those of PS_MIRRORED, and the values, of
 * PS_DST1 or PS_DCT1 and a multiple N of 8 intervals, are in three parts, each of which has
 * planes x rows lines next to each other. Parts 1 and 2 are those of two halvings. Part 0 has
 * the values of its last transform, of N / 4 intervals, as PS_MIRRORED has those of a line that
 * is folded once, in two halves of a multiple of 4 numbers. store() reads their even and odd
 * part, times 2 N: all results have the factor 2 N `scale`.
 *
 * With `halvings` PS_MIRRORED_IN_FIVE the values are those of PS_MIRRORED_ROWS, and the rows, of
 * PS_DST1 or PS_DCT1 and a multiple N = 4m of 8 intervals, are in five parts without gaps. With
 * row j of N of nodes, from 0 on, x[0] = x[N] = 0 with PS_DST1, and for those of
 *
 *   PS_DST1   a[j] = x[j] + x[N-j],       d[j] = x[j] - x[N-j],  e[j] = d[j] + d[2m-j],
 *             g[j] = d[j] - d[2m-j]
 *   PS_DCT1   a[j] = x[2m-j] - x[2m+j],   d[j] = x[j] + x[N-j],  e[j] = d[j] - d[2m-j],
 *             g[j] = d[j] + d[2m-j]
 *
 * part 0 has g[j] + g[m-j], j = 1 .. m/2 or 0 .. m/2, part 1 g[j] - g[m-j], j = 1 .. m/2 - 1 or
 * 0 .. m/2 - 1, part 2 e[j], j = 1 .. m or 0 .. m - 1, and parts 3 and 4 have a[j] + a[2m-j] +-
 * sqrt(2) a[m+j], j = 1 .. m. store() reads b and c of parts 3 and 4 as
 *
 *   a[j] = b[j] + c[j],  a[m+j] = sqrt(2) (b[j] - c[j]) + a[m-j],  j <= m, b[0] = c[0] = 0,
 *
 * and the others as the even and the odd part of what load() adds and subtracts.
 *
 * The field can have fewer values than the lines, `given` of `size`, but with PS_RFFT.
 * load() continues them, even with cosines and odd with sines: about the last value with
 * PS_DCT1, about the place after it, where the value is zero, with PS_DST1, and about the
 * middle between the last value and the next place with the kinds 2. store() writes the
 * given ones, and value `edge_place` of each line to `edge` unless that is NULL. */
struct ps_waves {
    ps_dtype dtype;                   /* PS_F32 or PS_F64 */
    ps_transform_kind kind, row_kind; /* along the values, and along the rows */
    int32_t halvings;                 /* at most PS_MOST_HALVINGS, or one of the others */
    int64_t planes, rows, size, pitch;
    int64_t given;   /* size - given <= given - 1, `given` or `given` + 1 for the three
                      * continuations above */
    ps_output field; /* `row` of its stride: values; outer: planes; inner: rows */
    void *waves;     /* aligned to a complex number */
    double scale;
    int64_t edge_place;
    void *edge; /* `planes` x `rows` numbers, or NULL */
};

/* Solve one tridiagonal system along the planes for each real of the sine, cosine or
 * Fourier transform of a plane, and replace its waves by those of the solution. The
 * matrices differ in a multiple of the unit matrix: the row sum of row i is sum + shift.
 *
 * Along the values the library has one of the waves k and n-k: with w = exp(-i turn[k]),
 * Re(w V[k]) and Im(w V[k]) are the transforms k and n-k but for a factor. Along the rows
 * it has both, and the transforms are combinations of the four reals of V[j][k] and
 * V[rows-j][k], j < rows-j, with w' = exp(-i row_turn[j]):
 *
 *   W[j] = w V[j]
 *   P = (W[j] + conj W[rows-j]) / 2
 *   Q = (W[j] - conj W[rows-j]) / (2i)
 *   Re(w' P), Im(w' P), Re(w' Q), Im(w' Q)
 *
 * which take the places of Re V[j], Im V[j], Im V[rows-j], Re V[rows-j]. For j = 0 and
 * 2j = rows they are Re W[j] and Im W[j]. `shifts` is in the order of these places: rows
 * x 2 (length/2 + 1). For one row and an even length V[0] and V[length/2] are real, and
 * V[length/2] is solved in the place of Im V[0]: `shifts` has `length` entries. */
struct ps_wave_lines {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int64_t planes, rows, pitch;
    int64_t length; /* of the transform along the values */
    void *waves;
    const void *shifts;
    const void *turns;     /* cos and sin of the turn of wave k: (length/2 + 1) x 2 */
    const void *row_turns; /* rows x 2 */
    /* lower, sum, upper of the rows of a matrix, where sum is the sum of the entries of
     * the row that are used, without the shift: the diagonal would lose shifts that are
     * small compared with it. For all waves inner[0] = inner[2], (inner[1] + shift) / inner[2]
     * <= 0 and the like for first and last; first[2] is not 0. With two planes inner is
     * not used. */
    double first[3], inner[3], last[3];
    double null_sum;  /* instead of that of the first row if the shift is 0 */
    int32_t periodic; /* otherwise first[0] and last[2] are not used, but by parts */
    /* Parts of the systems, of consecutive planes, with the other planes on other devices.
     * first and last are rows of the part; first[0] multiplies y_left, the last unknown
     * before the part, and last[2] multiplies x_next, the first one after it; they are 0
     * at the ends of systems that are not periodic, and `periodic` is 0. The rows of a
     * part, negated, leave for its first unknown and its last one, y,
     *
     *   x_first = G + (1 - S - U) y_left + U y
     *   A (y - y_left) + sigma y + C (y - x_next) = D
     *
     * with S, U, A, sigma, C >= 0. A first call writes G and D of all systems, 2 x
     * `shifts`, to `ends`, and S, U, A, sigma and C, 5 x `shifts`, to `couplings` unless
     * it is null; the waves are only read. In a second call `ends` is null, y_left and y
     * have these unknowns, as many as shifts, and the waves are replaced. All null: whole
     * systems. */
    void *ends, *couplings;
    const void *y_left, *y;
};

/* Subtract the mean with weights from a line of reals:
 * data[i*stride] -= sum_i w[i] data[i*stride] / sum_i w[i]. */
struct ps_centre {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int64_t size, stride;
    void *data;
    const double *weights;
};

/* The shape of the lines; `kind` and n are legal. */
ps_transform_shape ps_transform_shape_of(ps_transform_kind kind, int64_t size);

/* Check all that the structs alone determine, for all backends. */
ps_status ps_transform_check(const ps_transform *t);
ps_status ps_centre_check(const ps_centre *c);
ps_status ps_waves_check(const ps_waves *w);
ps_status ps_wave_lines_check(const ps_wave_lines *l);

#ifdef __cplusplus
}
#endif
#endif
