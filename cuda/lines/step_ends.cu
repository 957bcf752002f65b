/* step_ends.cu - the first and the last row of each system that is inside a mask.
 *
 * A kernel of its own, because fluxes act on these rows, which a thread of the kernel of
 * step_rows.cuh cannot find without reading the mask of the whole system.
 */
#include "lines/step_rows.h"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

static constexpr int threads_a_block = 256;

/* A thread per system; neighbouring threads have neighbouring systems of the inner axis.
 */
static __global__ void
step_ends_kernel(const uint8_t *where, ps_stride stride, int64_t rows, int64_t inner,
                 int64_t systems, int32_t *ends)
{
    const int64_t system = int64_t(blockIdx.x) * threads_a_block + threadIdx.x;

    if (system >= systems) {
        return;
    }
    const int64_t j = quotient(system, inner), k = system - j * inner;
    const uint8_t *const own = where + j * stride.outer + k * stride.inner;
    int64_t first = 0, last = rows - 1;

    while (first < rows && own[first * stride.row] == 0) {
        first++;
    }
    while (last > first && own[last * stride.row] == 0) {
        last--;
    }
    ends[system] = static_cast<int32_t>(first);
    ends[systems + system] = static_cast<int32_t>(first < rows ? last : -1);
}

ps_status
ps_cuda_step_ends(const ps_mask &where, int64_t rows, int64_t outer, int64_t inner,
                  int32_t *ends, cudaStream_t stream)
{
    const int64_t systems = outer * inner;

    return Launch(divided_up(systems, threads_a_block), threads_a_block, 0, stream)
        .run(step_ends_kernel, where.data, where.stride, rows, inner, systems, ends);
}

} // namespace pysolvers::lines
