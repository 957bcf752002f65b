/* turned_tile.cuh - elements whose neighbours in memory are others where they are written than
 * where they are read, through tiles of 32 x 32 elements in shared memory.
 *
 * Block: tile_side x tile_rows threads. Of a warp, both the elements that are read at the same
 * time and those that are written are neighbours.
 */
#ifndef PS_CUDA_DEVICE_TURNED_TILE_CUH
#define PS_CUDA_DEVICE_TURNED_TILE_CUH

namespace pysolvers::device {

constexpr int tile_side = 32, tile_rows = 8;

/* read(x, y, value) for 0 <= x, y < tile_side, then write(y, x, value) with the value of
 * read(x, y, value). The first argument of both differs between neighbouring threads. A thread
 * reads all its elements before it needs one, so that the reads wait for each other once;
 * meanwhile() is called before they have come, and what it writes to shared memory is there
 * for write(). */
template <typename Element, typename Read, typename Meanwhile, typename Write>
__device__ __forceinline__ void
turn_tile(const Read &read, const Meanwhile &meanwhile, const Write &write)
{
    __shared__ Element tile[tile_side][tile_side + 1];
    const int x = static_cast<int>(threadIdx.x);
    Element values[tile_side / tile_rows];

#pragma unroll
    for (int k = 0; k < tile_side / tile_rows; k++) {
        read(x, static_cast<int>(threadIdx.y) + k * tile_rows, values[k]);
    }
    meanwhile();
#pragma unroll
    for (int k = 0; k < tile_side / tile_rows; k++) {
        tile[threadIdx.y + k * tile_rows][x] = values[k];
    }
    __syncthreads(); /* the tile is complete */
    for (int k = 0; k < tile_side; k += tile_rows) {
        const int y = static_cast<int>(threadIdx.y) + k;

        write(x, y, tile[x][y]);
    }
    __syncthreads(); /* the tile has been read */
}

} // namespace pysolvers::device

#endif
