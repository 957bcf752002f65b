/* field.h - values of a field at some rows of a tile of lines: loads and stores.
 *
 * A tile is LANES neighbouring lines. Lines that are adjacent in memory are accessed in
 * whole vectors, lines that are contiguous in memory in squares of LANES rows, which are
 * transposed in registers; other lines by single elements. Lanes of the last tile that
 * have no line repeat the last line and are not stored.
 */
#ifndef PS_CPU_LINES_FIELD_H
#define PS_CPU_LINES_FIELD_H

/* Row i of line v at at[i*along + v*across]. */
typedef struct {
    real *at;
    int64_t along, across, lines;
} field;

/* Number of tiles of the lines. */
PS_INLINE int64_t
field_tiles(const field *f)
{
    return (f->lines + LANES - 1) / LANES;
}

/* Number of lines of a tile. */
PS_INLINE int
field_lanes(const field *f, int64_t tile)
{
    return f->lines - tile * LANES < LANES ? (int)(f->lines - tile * LANES) : LANES;
}

/* Load rows row .. row+count-1, count <= LANES. */
PS_INLINE void
field_load(const field *f, int64_t row, int count, int64_t tile, vec *to)
{
    const int64_t along = f->along, across = f->across;
    const real *const first = f->at + row * along + tile * LANES * across;
    const int lanes = field_lanes(f, tile);

    if (across == 0) {
        for (int r = 0; r < count; r++) {
            to[r] = splat(first[r * along]);
        }
    }
    else if (across == 1 && lanes == LANES) {
        for (int r = 0; r < count; r++) {
            to[r] = load(first + r * along);
        }
    }
    else if (along == 1 && count == LANES) {
        vec square[LANES]; /* in registers: all loops over it are unrolled */

#if PS_VECTOR_BYTES == 64
        const real *at[LANES];

#pragma GCC unroll 16
        for (int v = 0; v < LANES; v++) {
            at[v] = first + (v < lanes ? v : lanes - 1) * across;
        }
        load_square(at, 0, square);
#else
#pragma GCC unroll 16
        for (int v = 0; v < LANES; v++) {
            square[v] = load(first + (v < lanes ? v : lanes - 1) * across);
        }
        transpose(square);
#endif
#pragma GCC unroll 16
        for (int r = 0; r < LANES; r++) {
            to[r] = square[r];
        }
    }
    else if (across == 1) {
        for (int r = 0; r < count; r++) {
            to[r] = load_some(first + r * along, lanes);
        }
    }
    else {
        for (int r = 0; r < count; r++) {
            real row_of[LANES];

            for (int v = 0; v < LANES; v++) {
                row_of[v] = first[r * along + (v < lanes ? v : lanes - 1) * across];
            }
            to[r] = load(row_of);
        }
    }
}

/* Store rows row .. row+count-1, count <= LANES. `from` is overwritten. */
PS_INLINE void
field_store(const field *f, int64_t row, int count, int64_t tile, vec *from)
{
    const int64_t along = f->along, across = f->across;
    real *const first = f->at + row * along + tile * LANES * across;
    const int lanes = field_lanes(f, tile);

    if (across == 1 && lanes == LANES) {
        for (int r = 0; r < count; r++) {
            store(first + r * along, from[r]);
        }
    }
    else if (along == 1 && count == LANES) {
        vec square[LANES];

#pragma GCC unroll 16
        for (int r = 0; r < LANES; r++) {
            square[r] = from[r];
        }
        transpose(square);
#pragma GCC unroll 16
        for (int v = 0; v < LANES; v++) {
            if (v < lanes) {
                store(first + v * across, square[v]);
            }
        }
    }
    else if (across == 1) {
        for (int r = 0; r < count; r++) {
            store_some(first + r * along, from[r], lanes);
        }
    }
    else {
        for (int r = 0; r < count; r++) {
            for (int v = 0; v < lanes; v++) {
                first[r * along + v * across] = from[r][v];
            }
        }
    }
}

#endif
