/* step_ends.cu - the first and the last row of each system that is inside a mask.
 *
 * A kernel of its own, because fluxes act on these rows, which a thread of the kernel of
 * step_rows.cuh cannot find without reading the mask of the whole system.
 */
#include "lines/step_rows.h"
#include "runtime/elements.cuh"

namespace pysolvers::lines {

namespace {

/* One system; neighbouring threads have neighbouring systems of the inner axis. */
struct StepEnds {
    ps_mask where;
    int64_t rows, inner, systems;
    int32_t *ends;

    __device__ __forceinline__ void operator()(int64_t system) const
    {
        const ps_stride &stride = where.stride;
        const int64_t j = quotient(system, inner), k = system - j * inner;
        const uint8_t *const own = where.data + j * stride.outer + k * stride.inner;
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
};

} // namespace

ps_status
ps_cuda_step_ends(const ps_mask &where, int64_t rows, int64_t outer, int64_t inner,
                  int32_t *ends, cudaStream_t stream)
{
    const int64_t systems = outer * inner;

    return for_elements(systems, stream, StepEnds{where, rows, inner, systems, ends});
}

} // namespace pysolvers::lines
