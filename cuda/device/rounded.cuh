/* rounded.cuh - operations that are rounded one by one: the compiler does not make fused
 * operations of them. */
#ifndef PS_CUDA_DEVICE_ROUNDED_CUH
#define PS_CUDA_DEVICE_ROUNDED_CUH

namespace pysolvers::device {

__device__ __forceinline__ double
times(double a, double b)
{
    return __dmul_rn(a, b);
}

__device__ __forceinline__ float
times(float a, float b)
{
    return __fmul_rn(a, b);
}

__device__ __forceinline__ double
plus(double a, double b)
{
    return __dadd_rn(a, b);
}

__device__ __forceinline__ float
plus(float a, float b)
{
    return __fadd_rn(a, b);
}

__device__ __forceinline__ double
minus(double a, double b)
{
    return __dsub_rn(a, b);
}

__device__ __forceinline__ float
minus(float a, float b)
{
    return __fsub_rn(a, b);
}

} // namespace pysolvers::device

#endif
