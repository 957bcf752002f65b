/* step_rows.cuh - the kernels of step_rows.h for one dtype: forms of row_walk.cuh. */
#ifndef PS_CUDA_LINES_STEP_ROWS_CUH
#define PS_CUDA_LINES_STEP_ROWS_CUH

#include "lines/row_walk.cuh"
#include "lines/step_rows.h"

namespace pysolvers::lines {

/* The address of the entry of row `row` for number j of a pack. */
template <typename T>
__device__ __forceinline__ T *
entry_at(const Walked<T> &a, bool by_row, const WalkPlace &at, int j, int64_t row)
{
    return by_row ? a.at(row, at.step, at.other) : a.at(at.along + j, row, at.other);
}

/* Whether a row is inside. Rows beyond the ends are, because the coefficients that
 * couple to them are 0. */
template <typename Number>
__device__ __forceinline__ bool
is_inside(const Walked<const uint8_t> &where, const RowWalk<Number> &w,
          const WalkPlace &at, int j, int64_t row)
{
    if (where.data == nullptr) {
        return true;
    }
    if (row < 0 || row >= w.rows) {
        if (!w.periodic) {
            return true;
        }
        row = row < 0 ? w.rows - 1 : 0;
    }
    return *entry_at(where, w.by_row, at, j, row) != 0;
}

/* The rows of the solve. */
template <typename Number> struct StepRowsForm {
    static constexpr int at_once = 1;
    using Made = join::Row<Number>;
    StepRowsJob<Number> job;

    template <int WIDTH>
    __device__ __forceinline__ void put(const WalkPlace &at,
                                        const PackOfRows<Number, WIDTH> &p) const
    {
        Pack<Number, WIDTH> lower, diag, upper, rhs;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const int64_t row = job.walk.by_row ? at.row + j : at.row;
            Made made = {Number(0), Number(job.outside), Number(0), Number(0)};

            if (inside(at, j, row)) {
                const bool left = inside(at, j, row - 1), right = inside(at, j, row + 1);

                made = {left ? p.lower.of[j] : Number(0), p.diag.of[j],
                        right ? p.upper.of[j] : Number(0), p.u.of[j]};
                make(at, j, row, left ? p.before.of[j] : Number(0),
                     right ? p.behind.of[j] : Number(0), p.added.of[j], made);
            }
            lower.of[j] = made.lower;
            diag.of[j] = made.diag;
            upper.of[j] = made.upper;
            rhs.of[j] = made.rhs;
        }
        store(job.lower, at, lower);
        store(job.diag, at, diag);
        store(job.upper, at, upper);
        store(job.rhs, at, rhs);
        store(job.kept, at, p.u);
    }

  private:
    template <int WIDTH>
    __device__ __forceinline__ void store(const Walked<Number> &to, const WalkPlace &at,
                                          const Pack<Number, WIDTH> &pack) const
    {
        if (to.data != nullptr) {
            store_pack<WIDTH>(to, at, pack);
        }
    }

    __device__ __forceinline__ bool inside(const WalkPlace &at, int j, int64_t row) const
    {
        return is_inside(job.where, job.walk, at, j, row);
    }

    /* From a row of the operands to that of the solve. */
    __device__ __forceinline__ void make(const WalkPlace &at, int j, int64_t row,
                                         Number before, Number behind, Number source,
                                         Made &made) const
    {
        const Number u = made.rhs;

        if constexpr (!number_traits<Number>::is_complex) {
            if (job.is_flux) {
                make_flux(at, j, row, before, behind, source, made);
                return;
            }
        }
        const Number left = job.has_sums ? before - u : before;
        const Number right = job.has_sums ? behind - u : behind;

        made = job.terms.row(made.lower, made.diag, made.upper, u,
                             made.lower * left + made.diag * u + made.upper * right);
        made.rhs = made.rhs + join::scaled(job.terms.weight, source);
    }

    __device__ __forceinline__ void make_flux(const WalkPlace &at, int j, int64_t row,
                                              Number before, Number behind, Number source,
                                              Made &made) const
    {
        const join::FluxRows<Number> &f = job.fluxes;
        const Number u = made.rhs, d = made.diag;
        const Number lower = conductance(at, j, row - 1, made.lower, d);
        const Number upper = conductance(at, j, row + 1, made.upper, d);
        Number sum = 0, load = 0;
        const auto number = [&](const auto &operand, int64_t of_row) {
            return *entry_at(operand, job.walk.by_row, at, j, of_row);
        };

        for (int end = 0; end < 2; end++) {
            if (row == end_row(at, j, end)) {
                const join::FluxEntry<Number> e = f.entry(
                    job.flux[end].data != nullptr,
                    [&] { return number(job.flux[end], 0); },
                    job.value[end].data != nullptr,
                    [&] { return number(job.value[end], 0); },
                    [&] {
                        return number(end == 0 ? job.walk.lower : job.walk.upper, row);
                    },
                    [&] { return d; });

                sum += e.sum;
                load += e.load;
            }
        }
        const auto flux = f.row(true, f.face(lower, before, u), d,
                                f.face(upper, u, behind), u, source, sum, load);

        made = {flux.lower, flux.diag, flux.upper, flux.rhs};
    }

    /* h K 2 / (d + d of the neighbour); K is 0 where there is none. */
    __device__ __forceinline__ Number conductance(const WalkPlace &at, int j, int64_t row,
                                                  Number face, Number d) const
    {
        if (row < 0 || row >= job.walk.rows || face == 0) {
            return 0;
        }
        return job.fluxes.step * face * 2 /
               (d + *entry_at(job.walk.diag, job.walk.by_row, at, j, row));
    }

    __device__ __forceinline__ int64_t end_row(const WalkPlace &at, int j, int end) const
    {
        if (job.ends.data == nullptr) {
            return end == 0 ? 0 : job.walk.rows - 1;
        }
        return *entry_at(job.ends, job.walk.by_row, at, j, end);
    }
};

/* What comes after the solve. */
template <typename Number> struct StepBlendForm {
    static constexpr int at_once = 2;
    StepBlendJob<Number> job;

    template <int WIDTH>
    __device__ __forceinline__ void put(const WalkPlace &at,
                                        const PackOfRows<Number, WIDTH> &p) const
    {
        Pack<Number, WIDTH> x;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const int64_t row = job.walk.by_row ? at.row + j : at.row;
            const Number u = p.u.of[j], y = p.added.of[j];

            x.of[j] = !is_inside(job.where, job.walk, at, j, row) ? u
                      : job.gain == 0                             ? y
                                      : u + join::scaled(job.gain, y - u);
        }
        store_pack<WIDTH>(job.x, at, x);
    }
};

template <typename Number>
ps_status
launch_step_rows(const StepRowsJob<Number> &job, cudaStream_t stream)
{
    const StepRowsForm<Number> form = {job};

    return job.marked.marks != nullptr ? launch_marked(job.walk, job.marked, form, stream)
                                       : launch_walk<1>(job.walk, form, stream);
}

template <typename Number>
ps_status
launch_step_blend(const StepBlendJob<Number> &job, cudaStream_t stream)
{
    const StepBlendForm<Number> form = {job};

    return job.marked.marks != nullptr ? launch_marked(job.walk, job.marked, form, stream)
                                       : run_walk(job.walk, form, stream);
}

} // namespace pysolvers::lines

#endif
