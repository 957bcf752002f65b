/* operand.cuh - the operands of the contract as the kernels use them.
 *
 * Element i of system (j, k) lies at data[i*row + j*outer + k*inner]. The pointer of a
 * lower diagonal that is stored without row 0 is shifted here, so that the formula
 * holds for every operand. Kernels take Systems by value as a __grid_constant__
 * parameter.
 */
#ifndef PS_CUDA_DEVICE_OPERAND_CUH
#define PS_CUDA_DEVICE_OPERAND_CUH

#include "device/number.cuh"

namespace pysolvers::device {

/* a / b for a >= 0, b > 0. A division of 32 bits replaces that of 64 bits if both
 * numbers are small. */
__device__ __forceinline__ int64_t
quotient(int64_t a, int64_t b)
{
    return (a | b) >> 32 == 0 ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b)
                              : a / b;
}

template <typename Number> struct Input {
    const Number *data;
    int64_t row, outer, inner;

    __device__ __forceinline__ const Number *system(int64_t j, int64_t k) const
    {
        return data + j * outer + k * inner;
    }
};

template <typename Number> struct Output {
    Number *data;
    int64_t row, outer, inner;

    __device__ __forceinline__ Number *system(int64_t j, int64_t k) const
    {
        return data + j * outer + k * inner;
    }
};

template <typename Number> struct Systems {
    Input<Number> lower, diag, upper, rhs;
    Output<Number> x;
    int64_t outer, inner;
    int32_t rows;
    bool periodic;
    int32_t *info; /* null, or one entry per system */
};

template <typename Number>
inline Input<Number>
input_of(const ps_input &in)
{
    return {static_cast<const Number *>(in.data), in.stride.row, in.stride.outer,
            in.stride.inner};
}

template <typename Number>
inline Output<Number>
output_of(const ps_output &out)
{
    return {static_cast<Number *>(out.data), out.stride.row, out.stride.outer,
            out.stride.inner};
}

template <typename Number>
inline Systems<Number>
systems_of(const ps_tridiag &t)
{
    Systems<Number> s = {input_of<Number>(t.lower),
                         input_of<Number>(t.diag),
                         input_of<Number>(t.upper),
                         input_of<Number>(t.rhs),
                         output_of<Number>(t.x),
                         t.outer,
                         t.inner,
                         static_cast<int32_t>(t.rows),
                         (t.flags & PS_PERIODIC) != 0,
                         t.info};

    if (t.flags & PS_SHORT_LOWER) {
        s.lower.data -= s.lower.row;
    }
    return s;
}

} // namespace pysolvers::device

#endif
