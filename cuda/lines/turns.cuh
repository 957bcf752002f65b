/* turns.cuh - barriers of two warps of a block, of which one goes on.
 */
#ifndef PS_CUDA_LINES_TURNS_CUH
#define PS_CUDA_LINES_TURNS_CUH

namespace pysolvers::lines {

/* Barrier 1 + id of the hardware: one warp passes it after another one has arrived. The accesses of
 * the latter to shared memory before it precede those of the former after it. */
__device__ __forceinline__ void
arrive_at(int id)
{
    __syncwarp();
    asm volatile("bar.arrive %0, 64;" ::"r"(1 + id) : "memory");
}

__device__ __forceinline__ void
wait_at(int id)
{
    __syncwarp();
    asm volatile("bar.sync %0, 64;" ::"r"(1 + id) : "memory");
}

/* How many turns a block has if blocks have parts of equal size in turn. */
__device__ __forceinline__ int32_t
turns_of_block(int64_t parts)
{
    return static_cast<int32_t>((parts - blockIdx.x + gridDim.x - 1) / gridDim.x);
}

/* The memory of `rows` eliminated rows, in pieces that one warp hands over to the other one, which
 * needs them in the order in which they are free. `first`: its first barrier. */
template <int PIECES> struct PiecesOfTurn {
    const int32_t rows, length;

    __device__ __forceinline__ explicit PiecesOfTurn(int32_t count)
        : rows(count), length((count + PIECES - 1) / PIECES)
    {
    }
    /* Before row t is written. */
    __device__ __forceinline__ void wait(int32_t t, int first) const
    {
        if (t >= 0 && t % length == 0) {
            wait_at(first + t / length);
        }
    }
    /* After row t has been read. */
    __device__ __forceinline__ void release(int32_t t, int first) const
    {
        if (t >= 0 && ((t + 1) % length == 0 || t == rows - 1)) {
            arrive_at(first + t / length);
        }
    }
};

} // namespace pysolvers::lines

#endif
