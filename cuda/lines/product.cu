/* product.cu - the choice of the walk of a product. */
#include "lines/product.h"

namespace pysolvers::lines {

template <typename Number>
static ps_status
product(const ps_tridiag &t, const ps_product &p, cudaStream_t stream)
{
    ProductJob<Number> job = {};

    job.walk = row_walk_of<Number>(t, p.b);
    job.out = written_of<Number>(t, job.walk, p.out);
    job.scale = p.scale;
    job.weight = p.weight;
    job.has_sums = (p.flags & PS_ROW_SUMS) != 0;
    return launch_product(job, p.is_extended != 0, stream);
}

ps_status
ps_cuda_product(const ps_product *p, const ps_exec *exec)
{
    const ps_status status = ps_product_check(p);

    if (status != PS_OK || p->outer == 0 || p->inner == 0) {
        return status;
    }
    ps_tridiag t = device::batch_of(*p, p->x, p->out);

    t.flags = p->flags;
    t.lower = p->lower;
    t.diag = p->diag;
    t.upper = p->upper;
    return with_number(p->dtype, [&](auto number) {
        return product<decltype(number)>(t, *p, ps_cuda_stream(exec));
    });
}

} // namespace pysolvers::lines
