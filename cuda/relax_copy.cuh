/* relax_copy.cuh - asynchronous copies of words that only their own thread reads. Plain
 * copies before sm_80.
 */
#ifndef PS_CUDA_RELAX_COPY_CUH
#define PS_CUDA_RELAX_COPY_CUH

#include "copy.cuh"
#include "relax.cuh"

/* Copy a lane's words, or write zeros. */
template <typename T>
__device__ __forceinline__ void
copy_or_clear(Pair<T> *to, const T *from, bool copies)
{
#if __CUDA_ARCH__ >= 800
    const unsigned place = shared_address(to);
    const int bytes = copies ? static_cast<int>(sizeof(Pair<T>)) : 0;

    if (sizeof(Pair<T>) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place),
                     "l"(from), "r"(bytes)
                     : "memory");
    }
    else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(place),
                     "l"(from), "r"(bytes)
                     : "memory");
    }
#else
    *to = copies ? *reinterpret_cast<const Pair<T> *>(from) : Pair<T>{};
#endif
}

#endif
