/* shared_arrays.h - the size of arrays that lie one after the other in shared memory.
 */
#ifndef PS_CUDA_DEVICE_SHARED_ARRAYS_H
#define PS_CUDA_DEVICE_SHARED_ARRAYS_H

#include <cstddef>
#include <cstdint>

namespace pysolvers::device {

/* The bytes of Arrays(shape, memory), whose last array ends at `end`. */
template <typename Arrays, typename Shape>
inline size_t
bytes_of_arrays(const Shape &shape)
{
    const Arrays empty(shape, nullptr);

    return reinterpret_cast<uintptr_t>(empty.end);
}

} // namespace pysolvers::device

#endif
