/* block_fields.h - the operands of a ps_blocks as fields of lanes (lines/field.h).
 *
 * Numbers that lie at equal distances in memory, as those of contiguous blocks and of
 * diagonals, are one field with as many rows, which is transposed in registers; entries
 * of other blocks are fields of their own.
 */
#ifndef PS_CPU_LINES_BLOCK_FIELDS_H
#define PS_CPU_LINES_BLOCK_FIELDS_H

#include "lines/blocks.h"
#include "lines/field.h"
#include "lines/prefetch.h"

/* Prefetch rows row .. row+count-1 of a field whose lines have `rows` rows, or rows of the
 * next tile where the line ends: a block of rows is read from as many streams as there are
 * lanes and operands, which hardware does not follow (from memory, five diagonals of 1000
 * rows took 2 times as long without). */
PS_INLINE void
fetch_lines(const field *f, int64_t row, int64_t count, int64_t rows, int64_t tile)
{
    const int64_t later = row < rows ? row : row - rows;
    const int64_t at =
        later * f->along + (row < rows ? tile : tile + 1) * LANES * f->across;

    if (f->across == 0 || f->at == NULL || (row >= rows && tile + 1 >= field_tiles(f))) {
        return;
    }
    if (f->across == 1) {
        for (int64_t k = 0; k < count; k++) {
            prefetch_run((uintptr_t)(f->at + at + k * f->along), 64);
        }
    }
    else if (f->along == 1) {
        for (int v = 0; v < LANES; v++) {
            prefetch_run((uintptr_t)(f->at + at + v * f->across),
                         (unsigned)(count * (int64_t)sizeof(real)));
        }
    }
}

#if defined(PS_SIDE) && PS_SIDE > 2
#define PS_LOAD_LINES PS_SEPARATE
#else
#define PS_LOAD_LINES PS_INLINE
#endif

/* Load rows row .. row+count-1 of a field. Blocks of 3 and 4 rows: without copies of it
 * their units have 0.8 of the code. Blocks of 2 rows and five diagonals took 1.09 to 1.13
 * of the time. */
PS_LOAD_LINES void
load_lines(const field *f, int64_t row, int64_t count, int64_t tile, vec *to)
{
    for (int64_t k = 0; k < count; k += LANES) {
        const int64_t left = count - k;

        field_load(f, row + k, (int)(left < LANES ? left : LANES), tile, to + k);
    }
}

/* The same, where only rows low .. high-1 exist; others are 0. */
PS_INLINE void
load_inside(const field *f, int64_t row, int64_t count, int64_t low, int64_t high,
            int64_t tile, vec *to)
{
    const int64_t first = row > low ? row : low;
    const int64_t last = row + count < high ? row + count : high;

    if (first == row && last == row + count) {
        load_lines(f, row, count, tile, to);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        to[k] = (vec){0};
    }
    if (first < last) {
        load_lines(f, first, last - first, tile, to + (first - row));
    }
}

PS_INLINE field
field_of(const ps_blocks *b, const void *data, int64_t place, int64_t along,
         int64_t across)
{
    return (field){(real *)(uintptr_t)data + place, along, across, b->inner};
}

/* A diagonal of scalar rows. */
PS_INLINE field
band_field(const ps_blocks *b, const ps_input *band)
{
    return field_of(b, band->data, 0, band->stride.row, band->stride.inner);
}

/* Store rows of lanes; those of `wanted` only. `from` is overwritten. */
PS_INLINE void
store_lines(const field *f, int64_t row, int64_t count, int64_t tile, vec *from,
            uint32_t wanted)
{
    const int lanes = field_lanes(f, tile);
    const uint32_t every = lanes == 32 ? ~0u : (1u << lanes) - 1;

    if ((wanted & every) == every) {
        for (int64_t k = 0; k < count; k += LANES) {
            const int64_t left = count - k;

            field_store(f, row + k, (int)(left < LANES ? left : LANES), tile, from + k);
        }
        return;
    }
    for (int v = 0; v < lanes; v++) {
        real *const at = f->at + (tile * LANES + v) * f->across + row * f->along;

        for (int64_t k = 0; k < count && wanted >> v & 1; k++) {
            at[k * f->along] = from[k][v];
        }
    }
}

/* The lanes of a mask, one bit each. */
PS_INLINE uint32_t
bits_of(mask m)
{
    uint32_t bits = 0;

    for (int v = 0; v < LANES; v++) {
        bits |= (uint32_t)(m[v] != 0) << v;
    }
    return bits;
}

/* Write info of the systems of a tile, for those of `wanted`. */
PS_INLINE void
write_block_info(const ps_blocks *b, int64_t tile, mask info, uint32_t wanted)
{
    for (int v = 0; b->info != NULL && v < LANES && tile * LANES + v < b->inner; v++) {
        if (wanted >> v & 1) {
            b->info[tile * LANES + v] = (int32_t)info[v];
        }
    }
}

#endif
