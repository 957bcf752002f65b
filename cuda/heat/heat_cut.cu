/* heat_cut.cu - what the nodes of other ranks change of T: ps_heat_cut of ps_heat.h.
 *
 * A thread has the nodes of a line in a few planes. Words moved per line: 3 in the first part; in
 * the second one those of the changes of its cuts, 5 more, and 2 for each plane that they reach. As
 * single copies and products these were 11 kernels a step. With two, and without the nodes of the
 * sides in every step (36 us), a step of 512^3 nodes on each of two H200 takes 2.005 ms, and
 * 1.886 ms on one: 0.94, before 0.89. The two kernels take 3 and 36 us.
 */
#include "device/number.cuh"
#include "ps_heat.h"
#include "runtime/backend.h"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

using namespace device;
using namespace runtime;

namespace {

constexpr int planes_of_thread = 4;

template <typename Real> struct HeatCut {
    ps_heat_cut c;
    int64_t rows; /* of threads that begin with the nodes after the first cut */

    /* end[e] of this rank: how much T was larger before the step. */
    __device__ __forceinline__ void operator()(int64_t p) const
    {
        const Real *const t = static_cast<const Real *>(c.t);
        const Real *const before = static_cast<const Real *>(c.before);
        Real *const ends = static_cast<Real *>(c.ends) + 2 * c.rank * c.plane;

#pragma unroll
        for (int e = 0; e < 2; e++) {
            if (c.end[e] >= 0) {
                ends[e * c.plane + p] =
                    before[e * c.plane + p] - t[c.end[e] * c.plane + p];
            }
        }
    }

    /* The planes of row `row` of the threads, and what does not depend on them in row 0. */
    __device__ __forceinline__ void operator()(unsigned row, int64_t p) const
    {
        const int k = row < rows ? 0 : 1;
        const int64_t begin = (row - (k == 0 ? 0 : rows)) * planes_of_thread;
        const Real change[2] = {change_of(0, p), change_of(1, p)};

        if (row == 0) {
            change_outside(change, p);
        }
#pragma unroll
        for (int64_t i = begin; i < begin + planes_of_thread; i++) {
            const int64_t plane = c.spike[k].first + i;

            if (i < c.spike[k].count && !(k == 1 && is_near(0, plane))) {
                change_plane(plane, change, p);
            }
        }
    }

  private:
    __device__ __forceinline__ bool is_near(int k, int64_t plane) const
    {
        return plane >= c.spike[k].first && plane < c.spike[k].first + c.spike[k].count;
    }

    /* x - g of the node beyond cut k of a line. */
    __device__ __forceinline__ Real change_of(int k, int64_t p) const
    {
        const Real *const weights =
            static_cast<const Real *>(c.weights) + 2 * k * c.ranks * c.plane;
        const Real *const ends = static_cast<const Real *>(c.ends);
        Real sum = 0;

        for (int j = c.from[k]; j < c.to[k]; j++) {
            const Real weight = weights[j * c.plane + p];

            if (weight != Real(0)) {
                sum += weight * ends[j * c.plane + p];
            }
        }
        return sum;
    }

    __device__ __forceinline__ void change_outside(const Real (&change)[2],
                                                   int64_t p) const
    {
        Real *const t = static_cast<Real *>(c.t);
        Real *const outer = static_cast<Real *>(c.outer);

        for (int k = 0; k < 2; k++) {
            if (c.beyond[k] >= 0) {
                const Real sum = outer[k * c.plane + p] + change[k];

                outer[k * c.plane + p] = sum;
                t[c.beyond[k] * c.plane + p] = sum;
            }
        }
        for (int e = 0; e < 2; e++) {
            if (c.end[e] >= 0 && !is_near(0, c.end[e]) && !is_near(1, c.end[e])) {
                static_cast<Real *>(c.before)[e * c.plane + p] =
                    t[c.end[e] * c.plane + p];
            }
        }
    }

    __device__ __forceinline__ void change_plane(int64_t plane, const Real (&change)[2],
                                                 int64_t p) const
    {
        Real *const t = static_cast<Real *>(c.t) + plane * c.plane + p;
        Real sum = *t;

        for (int k = 0; k < 2; k++) {
            const ps_heat_spike &s = c.spike[k];

            if (is_near(k, plane)) {
                const int64_t i = plane - s.first;
                const int64_t at = s.node_step == 0 ? i : i * c.plane + p;

                sum += static_cast<const Real *>(s.data)[at] * change[k];
            }
        }
        *t = sum;
        for (int e = 0; e < 2; e++) {
            if (c.end[e] == plane) {
                static_cast<Real *>(c.before)[e * c.plane + p] = sum;
            }
        }
    }
};

} // namespace

ps_status
ps_cuda_heat_cut(const ps_heat_cut *c, bool applies, const ps_exec *exec)
{
    return with_real(c->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const int64_t rows = divided_up(c->spike[0].count, planes_of_thread);
        const int64_t all = rows + divided_up(c->spike[1].count, planes_of_thread);
        const HeatCut<Real> cut = {*c, rows};

        return applies ? for_rows_of_elements(all > 0 ? all : 1, c->plane,
                                              ps_cuda_stream(exec), cut)
                       : for_elements(c->plane, ps_cuda_stream(exec), cut);
    });
}

} // namespace pysolvers::heat
