/* elements.cuh - the kernels of operations, structs with the operands whose operator()
 * computes one element, or what a thread computes.
 *
 * Elements, nodes of a field or systems that need nothing of each other: one thread per
 * element, and no loop, as the number of blocks of a grid is not a limit.
 */
#ifndef PS_CUDA_RUNTIME_ELEMENTS_CUH
#define PS_CUDA_RUNTIME_ELEMENTS_CUH

#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::runtime {

constexpr int element_threads = 256;

/* operation(i) for 0 <= i < count. */
template <int THREADS, typename Operation, int BLOCKS = 0>
__global__ void
__launch_bounds__(THREADS, BLOCKS)
    elements_kernel(const __grid_constant__ Operation operation, int64_t count)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

    wait_for_last_kernel();
    if (i < count) {
        operation(i);
    }
}

/* operation(row, i) for 0 <= row < rows and 0 <= i < count. Grid: for each row, `tiles`
 * blocks. */
template <int THREADS, typename Operation>
__global__ void
__launch_bounds__(THREADS)
    rows_of_elements_kernel(const __grid_constant__ Operation operation, int64_t count,
                            unsigned tiles)
{
    const unsigned row = blockIdx.x / tiles;
    const int64_t i =
        static_cast<int64_t>(blockIdx.x - row * tiles) * THREADS + threadIdx.x;

    wait_for_last_kernel();
    if (i < count) {
        operation(row, i);
    }
}

/* operation() in every thread of a grid, for operations whose threads work together, in warps
 * or in blocks, BLOCKS of which a multiprocessor holds at least. The operation calls
 * wait_for_last_kernel() itself, so that it can load before. */
template <int THREADS, typename Operation, int BLOCKS = 0>
__global__ void
__launch_bounds__(THREADS, BLOCKS)
    threads_kernel(const __grid_constant__ Operation operation)
{
    operation();
}

/* In `blocks` blocks of `threads` threads, at most THREADS. */
template <int THREADS = element_threads, int BLOCKS = 0, typename Operation>
inline ps_status
for_threads(int64_t blocks, dim3 threads, cudaStream_t stream, const Operation &operation)
{
    return launch_closely(threads_kernel<THREADS, Operation, BLOCKS>, blocks, threads, 0,
                          stream, operation);
}

template <int THREADS = element_threads, int BLOCKS = 0, typename Operation>
inline ps_status
for_threads(int64_t blocks, cudaStream_t stream, const Operation &operation)
{
    return for_threads<THREADS, BLOCKS>(blocks, dim3(THREADS), stream, operation);
}

/* In blocks of `threads` threads, at most THREADS. */
template <int THREADS = element_threads, int BLOCKS = 0, typename Operation>
inline ps_status
for_elements(int64_t count, cudaStream_t stream, const Operation &operation,
             int threads = THREADS)
{
    return count == 0 ? PS_OK
                      : launch_closely(elements_kernel<THREADS, Operation, BLOCKS>,
                                       divided_up(count, threads), threads, 0, stream,
                                       operation, count);
}

template <int THREADS = element_threads, typename Operation>
inline ps_status
for_rows_of_elements(int64_t rows, int64_t count, cudaStream_t stream,
                     const Operation &operation)
{
    const int64_t tiles = divided_up(count, THREADS);

    return rows * tiles == 0 ? PS_OK
                             : launch_closely(rows_of_elements_kernel<THREADS, Operation>,
                                              rows * tiles, THREADS, 0, stream, operation,
                                              count, static_cast<unsigned>(tiles));
}

} // namespace pysolvers::runtime

#endif
