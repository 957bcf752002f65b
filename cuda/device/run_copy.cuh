/* run_copy.cuh - copies of contiguous numbers between global and shared memory.
 *
 * Bulk copies and vectors have 16-byte boundaries. Numbers outside of these, fewer than 16
 * bytes at each end, are copied one by one. Both sides have the same distance from a
 * boundary.
 */
#ifndef PS_CUDA_DEVICE_RUN_COPY_CUH
#define PS_CUDA_DEVICE_RUN_COPY_CUH

#include "runtime/copy.cuh"

namespace pysolvers::device {

using namespace runtime;

/* Numbers between the last 16-byte boundary and `at`. */
template <typename Number>
__device__ __forceinline__ int
skew_of(const Number *at)
{
    constexpr int vector = 16 / sizeof(Number);
    return static_cast<int>(reinterpret_cast<uintptr_t>(at) / sizeof(Number)) &
           (vector - 1);
}

/* A contiguous range, divided at 16-byte boundaries: `head` numbers, vectors, `tail`
 * numbers. Its first number lies `place` numbers after some boundary. */
template <typename Number> struct Run {
    static constexpr int vector = 16 / sizeof(Number);
    int head, vectors, tail;

    __host__ __device__ __forceinline__ Run(int place, int count)
    {
        const int aligned = (vector - place) & (vector - 1);

        head = aligned < count ? aligned : count;
        vectors = (count - head) / vector;
        tail = count - head - vectors * vector;
    }

    /* The number after the last vector. */
    __host__ __device__ __forceinline__ int last() const
    {
        return head + vectors * vector;
    }

    __device__ __forceinline__ uint32_t bytes() const
    {
        return static_cast<uint32_t>(vectors) * 16;
    }

    /* Start the bulk copy of the vectors, if there are any, by one thread. */
    __device__ __forceinline__ void load(Number *shared, const Number *global,
                                         Arrivals &arrivals) const
    {
        if (vectors > 0) {
            copy_bulk(shared + head, global + head, bytes(), arrivals);
        }
    }

    __device__ __forceinline__ void store(Number *global, const Number *shared) const
    {
        if (vectors > 0) {
            store_bulk(global + head, shared + head, bytes());
        }
    }

    /* visit(i) for the numbers outside of the vectors, by one thread. */
    template <typename Visit>
    __host__ __device__ __forceinline__ void for_rest(const Visit &visit) const
    {
#pragma unroll 1
        for (int i = 0; i < head + tail; i++) {
            visit(i < head ? i : i + vectors * vector);
        }
    }
};

/* visit(i) for the numbers outside of the vectors, by lane `lane` of eight; lane 7 has none. */
template <typename Number, typename Visit>
__device__ __forceinline__ void
visit_rest(const Run<Number> &run, int lane, const Visit &visit)
{
    if (Run<Number>::vector > 1) {
        if (lane < run.head) {
            visit(lane);
        }
        if (lane >= 4 && lane - 4 < run.tail) {
            visit(run.last() + lane - 4);
        }
    }
}

} // namespace pysolvers::device

#endif
