/* reduction.cuh - rows and systems of cyclic reduction, and one step of it.
 *
 * A step eliminates rows i - reach and i + reach from row i, so that only couplings at
 * distance 2 reach remain. Neighbours beyond the ends are absent, so that the number of
 * rows is arbitrary. A periodic system is bordered: without its last unknown it is
 * solved for the right-hand side and for the last column (`sides` = 2), and the last
 * row combines the two solutions.
 */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_CUH
#define PS_CUDA_LINES_REDUCTION_REDUCTION_CUH

#include "device/operand.cuh"
#include "lines/reduction/reduction.h"
#include "runtime/texture.cuh"

namespace pysolvers::reduction {

using namespace device;

template <typename Number, int sides> struct Equation {
    Number lower, diag, upper, rhs[sides];
};

/* A batch of systems in memory, without the last row of periodic ones. System (j, k)
 * has number j * inner + k. Each is divided into `classes` systems with the rows q, q +
 * classes, and so on. Row i is row (i + 1) * scale - 1 of the caller. */
template <typename Real, int SIDES> struct Equations {
    using Number = Real;
    static constexpr int sides = SIDES;
    Input<Number> lower, diag, upper, rhs[sides];
    Output<Number> x[sides];
    int64_t systems, inner;
    int32_t rows, classes, scale;
    bool given; /* operands of the caller; otherwise arrays of earlier steps */
    int32_t *info;

    /* Element `row` of an operand of system (j, k). */
    template <int which>
    __device__ __forceinline__ Number read(const Input<Number> &in, int64_t j, int64_t k,
                                           int64_t row) const
    {
        return in.system(j, k)[row * in.row];
    }
};

/* Operands of the caller that are read as textures. */
template <typename Real> struct TexturedEquations : Equations<Real, 1> {
    OperandTexels texels;

    template <int which>
    __device__ __forceinline__ Real read(const Input<Real> &in, int64_t j, int64_t k,
                                         int64_t row) const
    {
        return runtime::fetch(texels.of[which], in.system(j, k) + row * in.row);
    }
};

/* The equations that a step of pcr, or a level of cr, stored at `part`: `rows` of each
 * system, [system][lower, diag, upper, right-hand sides][row]. The caller sets x, and
 * scale or classes. */
template <typename Number, int sides>
__host__ __device__ __forceinline__ Equations<Number, sides>
kept_equations(const Equations<Number, sides> &e, const Number *part, int32_t rows)
{
    const int64_t pitch = (3 + sides) * static_cast<int64_t>(rows);
    const auto word = [&](int64_t w) {
        return Input<Number>{part + w * rows, 1, e.inner * pitch, pitch};
    };
    Equations<Number, sides> to = e;

    to.lower = word(0);
    to.diag = word(1);
    to.upper = word(2);
    for (int s = 0; s < sides; s++) {
        to.rhs[s] = word(3 + s);
    }
    to.rows = rows;
    to.given = false;
    return to;
}

/* Lower info[system] to `row` + 1; 0 counts as larger than all rows. */
__device__ inline void
record_bad_row(int32_t *info, int64_t system, int64_t row)
{
    if (info != nullptr) {
        unsigned *const entry = reinterpret_cast<unsigned *>(info) + system;
        const unsigned mine = static_cast<unsigned>(row) + 1u;
        unsigned seen = atomicCAS(entry, 0u, mine);

        while (seen > mine) {
            const unsigned before = atomicCAS(entry, seen, mine);

            if (before == seen) {
                break;
            }
            seen = before;
        }
    }
}

/* One class of one system. A part without a system has no rows. */
template <typename Batch> struct Part {
    using Number = typename Batch::Number;
    static constexpr int sides = Batch::sides;
    const Batch &e;
    int64_t system, j, k;
    int32_t first, rows;

    __device__ Part(const Batch &equations, int64_t task) : e(equations)
    {
        system = quotient(task, e.classes);
        j = quotient(system, e.inner);
        k = system - j * e.inner;
        first = static_cast<int32_t>(task - system * e.classes);
        rows = system < e.systems && first < e.rows ? (e.rows - 1 - first) / e.classes + 1
                                                    : 0;
    }

    __device__ __forceinline__ int64_t row_of(int64_t i) const
    {
        return i * e.classes + first;
    }

    template <int which>
    __device__ __forceinline__ Number word(const Input<Number> &in, int64_t row) const
    {
        return e.template read<which>(in, j, k, row);
    }

    __device__ __forceinline__ Equation<Number, sides> load(int64_t i) const
    {
        const int64_t row = row_of(i);
        Equation<Number, sides> r;

        r.diag = word<OF_DIAG>(e.diag, row);
        r.rhs[0] = word<OF_RHS>(e.rhs[0], row);
        if (!e.given) {
            r.lower = word<OF_LOWER>(e.lower, row);
            r.upper = word<OF_UPPER>(e.upper, row);
            if (sides == 2) {
                r.rhs[sides - 1] = word<OF_RHS>(e.rhs[sides - 1], row);
            }
            return r;
        }
        const bool top = row == 0, bottom = row == e.rows - 1;
        r.lower = top && sides == 1 ? Number(0) : word<OF_LOWER>(e.lower, row);
        r.upper = bottom && sides == 1 ? Number(0) : word<OF_UPPER>(e.upper, row);
        if (sides == 2) { /* the ends are coupled to the last unknown */
            r.rhs[sides - 1] =
                (top ? r.lower : Number(0)) + (bottom ? r.upper : Number(0));
            r.lower = top ? Number(0) : r.lower;
            r.upper = bottom ? Number(0) : r.upper;
        }
        return r;
    }

    __device__ __forceinline__ void store(int64_t i, int side, Number x) const
    {
        e.x[side].system(j, k)[row_of(i) * e.x[side].row] = x;
    }

    /* 1 / diag of row i; a bad pivot is recorded. */
    __device__ __forceinline__ Number invert(Number diag, int64_t i) const
    {
        if (is_bad_pivot(diag)) {
            record_bad_row(e.info, system, (row_of(i) + 1) * e.scale - 1);
        }
        return reciprocal(diag);
    }
};

/* Eliminate the neighbour above, or below, whose diagonal has the inverse `inverse`. */
template <typename Number, int sides>
__device__ __forceinline__ void
eliminate_above(Equation<Number, sides> &row, const Equation<Number, sides> &above,
                Number inverse)
{
    const Number m = row.lower * inverse;

    row.lower = -(m * above.lower);
    row.diag = row.diag - m * above.upper;
#pragma unroll
    for (int s = 0; s < sides; s++) {
        row.rhs[s] = row.rhs[s] - m * above.rhs[s];
    }
}

template <typename Number, int sides>
__device__ __forceinline__ void
eliminate_below(Equation<Number, sides> &row, const Equation<Number, sides> &below,
                Number inverse)
{
    const Number m = row.upper * inverse;

    row.upper = -(m * below.upper);
    row.diag = row.diag - m * below.lower;
#pragma unroll
    for (int s = 0; s < sides; s++) {
        row.rhs[s] = row.rhs[s] - m * below.rhs[s];
    }
}

} // namespace pysolvers::reduction

#endif
