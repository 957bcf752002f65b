/* math.cuh - arithmetic of whole numbers, for sizes and counts. */
#ifndef PS_CUDA_RUNTIME_MATH_CUH
#define PS_CUDA_RUNTIME_MATH_CUH

#include <cstdint>
#include <type_traits>

namespace pysolvers::runtime {

/* a / b, rounded up, for a >= 0 and b > 0. */
template <typename A, typename B>
__host__ __device__ constexpr std::common_type_t<A, B>
divided_up(A a, B b)
{
    return (a + b - 1) / b;
}

/* The smallest multiple of `unit` that is not less than `value`. */
template <typename A, typename B>
__host__ __device__ constexpr std::common_type_t<A, B>
rounded_up(A value, B unit)
{
    return divided_up(value, unit) * unit;
}

/* The smallest number whose power of two is not less than `count`. */
constexpr int32_t
log2_up(int32_t count)
{
    int32_t log = 0;

    while ((1 << log) < count) {
        log++;
    }
    return log;
}

} // namespace pysolvers::runtime

#endif
