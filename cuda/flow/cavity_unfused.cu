/* cavity_unfused.cu - a half-sweep of the cavity through arrays of rows.
 *
 * The rows of all lines are written to four fields of the workspace and solved there by
 * a direct method, then the solution is stored: 9 to 12 words of memory traffic per
 * node. The papers proceed in this way, and any method can be measured so.
 */
#include <type_traits>

#include "flow/cavity_rows.cuh"
#include "lines/methods.h"
#include "runtime/elements.cuh"

namespace pysolvers::flow {

using namespace lines;
using namespace partition;
using namespace pivoted;
using namespace reduction;
using namespace runtime;

namespace {

struct Diagonals {
    double *lower, *diag, *upper, *rhs;
};

/* The rows of the nodes: node i of row j along x. The wall nodes of x get their values. */
template <typename Source> struct Rows {
    Source source;
    Diagonals out;
    double *x;
    int axis;
    int64_t nodes;

    __device__ __forceinline__ void operator()(unsigned row, int64_t i) const
    {
        const int64_t j = row, last = nodes - 1;
        const int64_t p = j * nodes + i, at = axis == 0 ? i : j;
        double word[Source::words];

        if (i == 0 || i == last || j == 0 || j == last) {
            x[p] = source.result(p, source.wall(p));
            return;
        }
        source.node(p, word);
        if (at == 1) {
            source.apply_wall(p, -1, word);
        }
        if (at == last - 1) {
            source.apply_wall(p, 1, word);
        }
        const Row<double> found = source.row(word);
        out.lower[p] = found.lower;
        out.diag[p] = found.diag;
        out.upper[p] = found.upper;
        out.rhs[p] = found.rhs;
    }
};

/* x = omega + change at the interior nodes. */
struct Sum {
    const double *omega, *change;
    double *x;
    int64_t nodes;

    __device__ __forceinline__ void operator()(unsigned row, int64_t i) const
    {
        const int64_t p = (int64_t(row) + 1) * nodes + i + 1;

        x[p] = omega[p] + change[p];
    }
};

const ps_cuda_method *
method_of(const ps_options *options)
{
    switch (options->method) {
    case PS_THOMAS:
        return &ps_cuda_thomas;
    case PS_CR:
    case PS_PCR:
    case PS_CR_PCR:
    case PS_PCR_THOMAS:
        return &ps_cuda_reduction;
    case PS_PIVOTED:
        return &ps_cuda_pivoted;
    default:
        return &ps_cuda_partition;
    }
}

ps_options
concrete(const ps_options *options)
{
    ps_options o = *options;

    o.method = o.method == PS_AUTO ? PS_PARTITION : o.method;
    o.pivot = o.method == PS_PIVOTED ? PS_PIVOT_ALWAYS : PS_PIVOT_NEVER;
    return o;
}

size_t
field_bytes(int64_t nodes)
{
    return ps_cuda_padded(static_cast<size_t>(nodes * nodes) * sizeof(double));
}

Diagonals
carve(void *work, int64_t nodes)
{
    char *const base = static_cast<char *>(work);
    const size_t bytes = field_bytes(nodes);

    return {reinterpret_cast<double *>(base), reinterpret_cast<double *>(base + bytes),
            reinterpret_cast<double *>(base + 2 * bytes),
            reinterpret_cast<double *>(base + 3 * bytes)};
}

/* The interior nodes as lines along an axis. */
ps_tridiag
lines_of(const Diagonals &d, int axis, int64_t nodes, double *x)
{
    const ps_stride stride = {axis == 0 ? 1 : nodes, 0, axis == 0 ? nodes : 1};
    const int64_t inside = nodes + 1;
    ps_tridiag t = {};

    t.dtype = PS_F64;
    t.rows = t.inner = nodes - 2;
    t.outer = 1;
    t.lower = {d.lower + inside, stride};
    t.diag = {d.diag + inside, stride};
    t.upper = {d.upper + inside, stride};
    t.rhs = {d.rhs + inside, stride};
    t.x = {x + inside, stride};
    return t;
}

} // namespace

ps_status
ps_cuda_unfused_work(int64_t nodes, const ps_options *options, size_t *bytes)
{
    const ps_options chosen = concrete(options);
    size_t most = 0;
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        double *const none = nullptr;
        const ps_tridiag t = lines_of({none, none, none, none}, axis, nodes, none);
        size_t needed = 0;

        status = method_of(&chosen)->work(&t, &chosen, &needed);
        most = needed > most ? needed : most;
    }
    *bytes = 4 * field_bytes(nodes) + most;
    return status;
}

ps_status
ps_cuda_unfused_solve(const ps_cuda_sweep *s, const ps_options *options,
                      const ps_exec *exec, ps_report *report)
{
    const int adds = s->rows == PS_SWEEP_OMEGA_SECOND;
    const cudaStream_t stream = ps_cuda_stream(exec);
    const ps_options chosen = concrete(options);
    const Diagonals d = carve(exec->work, s->nodes);
    const size_t used = 4 * field_bytes(s->nodes);
    const ps_tridiag t = lines_of(d, s->axis, s->nodes, adds ? d.rhs : s->x);
    ps_exec rest = *exec;
    ps_status status = with_source(*s, [&](const auto &source) {
        using Source = std::decay_t<decltype(source)>;

        return for_rows_of_elements(s->nodes, s->nodes, stream,
                                    Rows<Source>{source, d, s->x, s->axis, s->nodes});
    });

    rest.work = static_cast<char *>(exec->work) + used;
    rest.work_bytes = exec->work_bytes - used;
    if (status == PS_OK) {
        status = method_of(&chosen)->solve(&t, &chosen, &rest, report);
    }
    if (status == PS_OK && adds) {
        status = for_rows_of_elements(s->nodes - 2, s->nodes - 2, stream,
                                      Sum{s->omega, d.rhs, s->x, s->nodes});
    }
    report->method = chosen.method;
    return status;
}

} // namespace pysolvers::flow
