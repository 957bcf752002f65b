/* shared_matrix.cu - the choice of the batch axis that runs within a tile of systems
 * with one matrix.
 */
#include <cstdlib>

#include "lines/join/shared_matrix.cuh"

namespace pysolvers::join {

static ps_stride
turned(ps_stride s)
{
    return {s.row, s.inner, s.outer};
}

ps_cuda_shared_batch
ps_cuda_shared_batch_of(const ps_tridiag *t)
{
    const ps_stride r = t->rhs.stride, x = t->x.stride;
    const bool merges = r.outer == t->inner * r.inner && x.outer == t->inner * x.inner;

    if (t->outer == 1 || t->inner == 1 || merges) {
        const bool outer = t->inner == 1;

        return {t->outer * t->inner,  1, 1, 0, outer ? turned(r) : r,
                outer ? turned(x) : x};
    }
    const bool scattered = std::abs(x.row) > 1;
    if (scattered ? std::abs(x.inner) <= std::abs(x.outer) : t->inner >= t->outer) {
        return {t->inner, t->outer, 1, t->inner, r, x};
    }
    return {t->outer, t->inner, t->inner, 1, turned(r), turned(x)};
}

} // namespace pysolvers::join
