/* reduction_solve.cuh - the launches of a plan, for one dtype. */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_SOLVE_CUH
#define PS_CUDA_LINES_REDUCTION_REDUCTION_SOLVE_CUH

#include "lines/reduction/reduction_chunks.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::reduction {

using namespace runtime;

/* operation(i) for 0 <= i < count, without programmatic dependent launch: rows may be read
 * as textures, whose cache has the values of before the launch. */
template <typename Operation>
static inline ps_status
launch_elements(int64_t count, cudaStream_t stream, const Operation &operation)
{
    return Launch(divided_up(count, element_threads), element_threads, 0, stream)
        .run(elements_kernel<element_threads, Operation>, operation, count);
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

    template <typename Any> ps_status on_chip(const Any &e) const
    {
        const ps_cuda_on_chip &p = plan.on_chip;
        const size_t bytes = sizeof(Number) * p.pitch * p.systems;
        const int64_t blocks = divided_up(e.systems * e.classes, p.systems);

        return allow_shared(reduction_kernel<Any>) == cudaSuccess
                   ? Launch(blocks, dim3(p.lanes, p.systems), bytes, stream)
                         .run(reduction_kernel<Any>, e, p)
                   : PS_DEVICE_FAILURE;
    }

    template <typename Any>
    ps_status in_chunks(const Any &e, Number *to, Number *other) const
    {
        const ps_cuda_on_chip &p = plan.on_chip;
        const size_t bytes = sizeof(Number) * p.pitch;

        return allow_shared(chunk_kernel<Any>) == cudaSuccess
                   ? Launch(e.systems, p.lanes, bytes, stream)
                         .run(chunk_kernel<Any>, e, to, other, p, plan.global)
                   : PS_DEVICE_FAILURE;
    }

    /* Step `step` of pcr through the workspace. */
    template <typename Any> ps_status reduce(const Any &e, Number *to, int step) const
    {
        return launch_elements(e.systems * e.rows, stream,
                               Reduce<Any>{e, to, e.rows, 1, 1 << step});
    }

    /* Steps of pcr between two parts of the workspace, then all classes in shared
     * memory. */
    template <typename Any> ps_status pcr(const Any &given)
    {
        if (plan.global == 0) {
            return on_chip(given);
        }
        Number *const part = reserve(given, 1);
        Number *const other = plan.global > 1 ? reserve(given, 1) : nullptr;

        if (plan.chunked) {
            return in_chunks(given, part, other);
        }
        ps_status status = reduce(given, part, 0);
        Batch e = kept_equations<Number, sides>(given, part, given.rows);

        for (int step = 1; status == PS_OK && step < plan.global; step++) {
            Number *const to = step % 2 == 1 ? other : part;

            status = reduce(e, to, step);
            e = kept_equations(e, to, e.rows);
        }
        e.classes = 1 << plan.global;
        return status == PS_OK ? on_chip(e) : status;
    }

    /* The levels of cr from `level` on, and the back substitution. */
    ps_status cr(const Batch &e, int level)
    {
        if (level == plan.global) {
            return on_chip(e);
        }
        const int32_t rows = e.rows / 2;
        Number *const part = reserve(e, level + 1);
        Batch coarse = kept_equations(e, part, rows);

        coarse.scale = 2 * e.scale;
        for (int s = 0; s < sides; s++) {
            const Input<Number> &rhs = coarse.rhs[s];

            coarse.x[s] = {part + kept_at<sides>(0, 3 + s, rows), rhs.row, rhs.outer,
                           rhs.inner};
        }
        ps_status status =
            launch_elements(e.systems * rows, stream, Reduce<Batch>{e, part, rows, 2, 1});
        if (status == PS_OK) {
            status = cr(coarse, level + 1);
        }
        return status == PS_OK ? launch_elements(e.systems * ((e.rows + 1) / 2), stream,
                                                 Expand<Batch>{e, part})
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
        status = launch_elements(systems, stream, SolveLastRow<Number>{s, work});
    }
    return status == PS_OK && plan.rows > 0
               ? launch_elements(coupled, stream, AddLastUnknown<Number>{s, work})
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
    const Equations<Number, 1> e = equations_of<Number, 1>(s, *plan, nullptr);

    if constexpr (!number_traits<Number>::is_complex) {
        if (plan->texels != nullptr) {
            return reduction.pcr(TexturedEquations<Number>{e, *plan->texels});
        }
    }
    return reduction.solve(e);
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
