/* reduction_solve.cuh - the launches of a plan, for one dtype. */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_SOLVE_CUH
#define PS_CUDA_LINES_REDUCTION_REDUCTION_SOLVE_CUH

#include "lines/reduction/reduction_block.cuh"
#include "lines/reduction/reduction_global.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::reduction {

using namespace runtime;

/* A launch of at least `threads` threads. */
static inline Launch
launch_of(int64_t threads, cudaStream_t stream)
{
    return {divided_up(threads, global_threads), global_threads, 0, stream};
}

/* Executes a plan for systems with `sides` right-hand sides; `next` is the unused part
 * of the workspace. */
template <typename Number, int sides> struct Reduction {
    using Batch = Equations<Number, sides>;
    const ps_cuda_reduction_plan &plan;
    cudaStream_t stream;
    Number *next;

    /* Memory for the rows of every system after global step `step`. */
    Number *reserve(const Batch &e, int step)
    {
        Number *const part = next;

        next += ps_cuda_reduction_kept(&plan, step) * e.systems;
        return part;
    }

    /* The rows after reduce(); the caller sets x, and scale or classes. */
    static Batch kept(const Batch &e, const Number *part, int32_t rows)
    {
        const int64_t pitch = (3 + sides) * static_cast<int64_t>(rows);
        const auto word = [&](int w) {
            return Input<Number>{part + kept_at<sides>(0, w, rows), 1, e.inner * pitch,
                                 pitch};
        };
        Batch to = e;

        to.lower = word(0);
        to.diag = word(1);
        to.upper = word(2);
        for (int s = 0; s < sides; s++) {
            to.rhs[s] = word(3 + s);
        }
        to.rows = rows;
        to.given = to.read_only = false;
        return to;
    }

    ps_status on_chip(const Batch &e) const
    {
        const ps_cuda_on_chip &p = plan.on_chip;
        const auto kernel = reduction_kernel<Number, sides>;
        const size_t bytes = sizeof(Number) * p.pitch * p.systems;
        const int64_t blocks = divided_up(e.systems * e.classes, p.systems);

        return allow_shared(kernel) == cudaSuccess
                   ? Launch(blocks, dim3(p.lanes, p.systems), bytes, stream)
                         .run(kernel, e, p)
                   : PS_DEVICE_FAILURE;
    }

    /* Steps of pcr between two parts of the workspace, then all classes in shared
     * memory. */
    ps_status pcr(Batch e)
    {
        Number *parts[2];

        for (int step = 0; step < plan.global; step++) {
            if (step < 2) {
                parts[step] = reserve(e, 1);
            }
            Number *const to = parts[step % 2];

            const ps_status status =
                launch_of(e.systems * e.rows, stream)
                    .run(reduce_kernel<Number, sides>, e, to, e.rows, 1, 1 << step);
            if (status != PS_OK) {
                return status;
            }
            e = kept(e, to, e.rows);
        }
        e.classes = 1 << plan.global;
        return on_chip(e);
    }

    /* The levels of cr from `level` on, and the back substitution. */
    ps_status cr(const Batch &e, int level)
    {
        if (level == plan.global) {
            return on_chip(e);
        }
        const int32_t rows = e.rows / 2;
        Number *const part = reserve(e, level + 1);
        Batch coarse = kept(e, part, rows);

        coarse.scale = 2 * e.scale;
        for (int s = 0; s < sides; s++) {
            const Input<Number> &rhs = coarse.rhs[s];

            coarse.x[s] = {part + kept_at<sides>(0, 3 + s, rows), rhs.row, rhs.outer,
                           rhs.inner};
        }
        ps_status status = launch_of(e.systems * rows, stream)
                               .run(reduce_kernel<Number, sides>, e, part, rows, 2, 1);
        if (status == PS_OK) {
            status = cr(coarse, level + 1);
        }
        return status == PS_OK ? launch_of(e.systems * ((e.rows + 1) / 2), stream)
                                     .run(expand_kernel<Number, sides>, e, part)
                               : status;
    }

    ps_status solve(const Batch &e)
    {
        return plan.by_cr ? cr(e, 0) : pcr(e);
    }
};

template <typename Number, int sides>
static Equations<Number, sides>
equations_of(const Systems<Number> &s, const ps_cuda_reduction_plan &plan, Number *far)
{
    Equations<Number, sides> e = {};

    e.lower = s.lower;
    e.diag = s.diag;
    e.upper = s.upper;
    e.rhs[0] = s.rhs;
    e.x[0] = s.x;
    if (sides == 2) {
        e.x[sides - 1] = {far, 1, s.inner * plan.rows, plan.rows};
    }
    e.systems = s.outer * s.inner;
    e.inner = s.inner;
    e.rows = plan.rows;
    e.classes = e.scale = 1;
    e.given = true;
    e.read_only = plan.read_only;
    e.info = s.info;
    return e;
}

/* y is written to x, z to the workspace, then the last rows are solved. */
template <typename Number>
static ps_status
solve_periodic(const Systems<Number> &s, const ps_cuda_reduction_plan &plan, Number *work,
               cudaStream_t stream)
{
    const int64_t systems = s.outer * s.inner, coupled = systems * plan.rows;
    ps_status status = PS_OK;

    if (plan.rows > 0) {
        Reduction<Number, 2> reduction = {plan, stream, work + coupled};

        status = reduction.solve(equations_of<Number, 2>(s, plan, work));
    }
    if (status == PS_OK) {
        status = launch_of(systems, stream).run(last_row_kernel<Number>, s, work);
    }
    return status == PS_OK && plan.rows > 0
               ? launch_of(coupled, stream).run(join_kernel<Number>, s, work)
               : status;
}

template <typename Number>
static ps_status
solve_reduction(const ps_tridiag *t, const ps_cuda_reduction_plan *plan,
                const ps_exec *exec)
{
    const Systems<Number> s = systems_of<Number>(*t);
    Number *const work = static_cast<Number *>(exec->work);
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (s.info != nullptr) {
        const size_t bytes = sizeof *s.info * static_cast<size_t>(s.outer * s.inner);

        if (cudaMemsetAsync(s.info, 0, bytes, stream) != cudaSuccess) {
            return PS_DEVICE_FAILURE;
        }
    }
    if (s.periodic) {
        return solve_periodic(s, *plan, work, stream);
    }
    Reduction<Number, 1> reduction = {*plan, stream, work};
    return reduction.solve(equations_of<Number, 1>(s, *plan, nullptr));
}

template <typename Number>
ps_cuda_reduction_type
reduction_type()
{
    return {sizeof(Number), block_threads<Number>, rows_a_thread<Number>,
            solve_reduction<Number>};
}

} // namespace pysolvers::reduction

#endif
