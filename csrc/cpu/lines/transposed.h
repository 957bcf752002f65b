/* transposed.h - rows of LANES lines that are contiguous in memory, transposed in squares
 * to and from an array in which a row has one value of each line.
 */
#ifndef PS_CPU_LINES_TRANSPOSED_H
#define PS_CPU_LINES_TRANSPOSED_H

#include "lines/prefetch.h"

/* to[r*pitch + v] = at[v][r]. If ahead > 0, prefetch the values `ahead` rows ahead. */
PS_INLINE void
transposed_read(const real *const at[LANES], int64_t rows, real *to, int64_t pitch,
                int64_t ahead)
{
    int64_t r = 0;

    for (; r + LANES <= rows; r += LANES) {
        vec square[LANES];

        load_square(at, r, square);
        for (int v = 0; ahead > 0 && v < LANES; v++) {
            prefetch_near((uintptr_t)(at[v] + r + ahead));
        }
        for (int k = 0; k < LANES; k++) {
            store(to + (r + k) * pitch, square[k]);
        }
    }
    for (; r < rows; r++) {
        for (int v = 0; v < LANES; v++) {
            to[r * pitch + v] = at[v][r];
        }
    }
}

/* at[v][r] = from[r*pitch + v], or at[v][r] += that, for the first `lanes` lines. */
PS_INLINE void
transposed_write(const real *from, int64_t pitch, int64_t rows, real *const *at,
                 int lanes, int increment)
{
    int64_t r = 0;

    for (; r + LANES <= rows; r += LANES) {
        vec square[LANES];

        for (int k = 0; k < LANES; k++) {
            square[k] = load(from + (r + k) * pitch);
        }
        transpose(square);
        for (int v = 0; v < lanes; v++) {
            real *const to = at[v] + r;

            store(to, increment ? load(to) + square[v] : square[v]);
        }
    }
    for (; r < rows; r++) {
        for (int v = 0; v < lanes; v++) {
            const real x = from[r * pitch + v];

            at[v][r] = increment ? at[v][r] + x : x;
        }
    }
}

#endif
