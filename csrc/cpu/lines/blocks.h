/* blocks.h - interface between blocks.c and its kernels: lines/blocks.inc for each side of
 * a block, lines/band.inc for any side.
 */
#ifndef PS_CPU_LINES_BLOCKS_H
#define PS_CPU_LINES_BLOCKS_H

#include "ps_blocks.h"

/* All functions are of a tile: one system per lane, the systems tile*lanes .. of the inner
 * axis; the outer axis of b has length 1. `store` is that of the tile. Bit v of a result
 * and of `wanted` is lane v; only the x of wanted lanes is written. */
typedef struct {
    int lanes;
    size_t (*store_bytes)(const ps_blocks *b);   /* of the factors of a tile */
    size_t (*scratch_bytes)(const ps_blocks *b); /* of any task */

    /* Solve without exchanges of rows across blocks, or factor. Returns the lanes that
     * have to be solved with them: if b->pivot is PS_PIVOT_AUTO, those that are not
     * dominant or have a bad pivot. Their x is not written. band: 0. */
    uint32_t (*solve)(const ps_blocks *b, int64_t tile, void *scratch);
    uint32_t (*factor)(const ps_blocks *b, int64_t tile, void *store, void *scratch);
    void (*apply)(const ps_blocks *b, int64_t tile, const void *store, void *scratch,
                  uint32_t wanted);
    void (*logdet)(const ps_blocks *b, int64_t tile, const void *store);
    void (*inverse)(const ps_blocks *b, int64_t tile, const void *store); /* band: null */
} ps_block_kernels;

#define PS_BLOCK_KERNELS(set)                                                   \
    extern const ps_block_kernels ps_blocks_f64_2_##set, ps_blocks_f64_3_##set, \
        ps_blocks_f64_4_##set, ps_band_f32_##set, ps_band_f64_##set;
#define PS_BLOCK_KERNELS_F32(set)                                               \
    extern const ps_block_kernels ps_blocks_f32_2_##set, ps_blocks_f32_3_##set, \
        ps_blocks_f32_4_##set;
PS_BLOCK_KERNELS(baseline)
PS_BLOCK_KERNELS(avx2)
PS_BLOCK_KERNELS(avx512)
PS_BLOCK_KERNELS_F32(baseline)
PS_BLOCK_KERNELS_F32(avx2)
#undef PS_BLOCK_KERNELS
#undef PS_BLOCK_KERNELS_F32

#endif
