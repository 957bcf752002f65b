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

/* How many systems of the outer axis have one matrix, if all of them do and their
 * right-hand sides differ; otherwise 1. Kernels process these systems one after the other,
 * so that all but the first find the matrix in the cache: 2 + 3 / k words per unknown from
 * memory instead of 5, for k right-hand sides. */
inline int32_t
sharing_of(const ps_tridiag &t)
{
    const bool shares = t.lower.stride.outer == 0 && t.diag.stride.outer == 0 &&
                        t.upper.stride.outer == 0 && t.outer <= INT32_MAX;

    return shares ? static_cast<int32_t>(t.outer) : 1;
}

/* Neighbours on the inner axis. */
struct SystemRange {
    int64_t first;
    int32_t count; /* less than 1 beyond the last tile */
};

/* The systems of tile `tile`, at most `most`. */
__device__ __forceinline__ SystemRange
systems_of_tile(int64_t tile, int32_t most, int32_t sharing, int64_t outer, int64_t inner)
{
    int64_t first = tile * most, end = outer * inner;

    if (sharing > 1) {
        const int64_t part = quotient(tile, sharing), j = tile - part * sharing;

        first = j * inner + part * most;
        end = (j + 1) * inner;
    }
    return {first,
            static_cast<int32_t>(max(min(end - first, int64_t(most)), int64_t(0)))};
}

/* The number of such tiles. */
inline int64_t
count_of_tiles(const ps_tridiag &t, int32_t most, int32_t sharing)
{
    const int64_t systems = t.outer * t.inner / sharing;

    return (systems + most - 1) / most * sharing;
}

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

/* A batch with the dtype and the sizes of a call and two of its operands, without a matrix. */
template <typename Call>
inline ps_tridiag
batch_of(const Call &c, const ps_input &rhs, const ps_output &x)
{
    ps_tridiag t = {};

    t.dtype = c.dtype;
    t.rows = c.rows;
    t.outer = c.outer;
    t.inner = c.inner;
    t.rhs = rhs;
    t.x = x;
    return t;
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
