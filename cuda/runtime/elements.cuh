/* elements.cuh - the kernels for elements, or nodes of a field, that need nothing of each
 * other: an operation is a struct with the operands, and its operator() computes one
 * element.
 *
 * One thread per element, and no loop: the number of blocks of a grid is not a limit.
 */
#ifndef PS_CUDA_RUNTIME_ELEMENTS_CUH
#define PS_CUDA_RUNTIME_ELEMENTS_CUH

#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::runtime {

constexpr int element_threads = 256;

/* operation(i) for 0 <= i < count. */
template <int THREADS, typename Operation>
__global__ void
__launch_bounds__(THREADS)
    elements_kernel(const __grid_constant__ Operation operation, int64_t count)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;

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

template <int THREADS = element_threads, typename Operation>
inline ps_status
for_elements(int64_t count, cudaStream_t stream, const Operation &operation)
{
    return count == 0 ? PS_OK
                      : launch_closely(elements_kernel<THREADS, Operation>,
                                       divided_up(count, THREADS), THREADS, 0, stream,
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
