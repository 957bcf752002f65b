/* heat_plane_order.cuh - the sections of heat_plane.h and of heat_resident.h, and their weights.
 */
#ifndef PS_CUDA_HEAT_HEAT_PLANE_ORDER_CUH
#define PS_CUDA_HEAT_HEAT_PLANE_ORDER_CUH

#include <algorithm>
#include <cmath>

#include "heat/heat_plane.h"
#include "heat/heat_run.h"
#include "heat/heat_team_table.cuh"

namespace pysolvers::heat {

/* Smaller weights do not count: the square of the rounding error. */
template <typename Real>
constexpr Real heat_plane_negligible = sizeof(Real) == 4 ? Real(0x1p-46) : Real(0x1p-104);

/* Whether steps are those of Peaceman and Rachford in a plane with one conductivity and without a source. */
inline bool
heat_is_uniform_plane(const ps_heat *h, const ps_cuda_device *device)
{
    return device != nullptr && device->capability >= 90 && h->axes == 2 &&
           h->scheme == PS_HEAT_PR && h->kernels == PS_HEAT_KERNELS_FUSED &&
           h->k == nullptr && h->source.data == nullptr;
}

/* Lines along an axis in chunks of `chunk` rows, in the order of decreasing rows or of increasing ones. */
inline ps_cuda_heat_line
heat_axis_line(const ps_heat *h, int axis, int chunk, bool is_downward = false)
{
    const HeatMatrix m = heat_matrix(h, axis);
    const ps_cuda_heat_end end[2] = {m.end[is_downward ? 1 : 0],
                                     m.end[is_downward ? 0 : 1]};

    return ps_cuda_heat_line_of(m.a, end, m.is_periodic, heat_unknowns(h, axis).count(),
                                chunk, h->dtype == PS_F32);
}

/* Lines along y that are cut into sections. */
inline ps_cuda_heat_line
heat_plane_line(const ps_heat *h, bool is_downward)
{
    return heat_axis_line(h, 1, 1, is_downward);
}

/* The sections of a line that each of `sections` reads; weights below `negligible` do not count. */
inline HeatPlaneSections
heat_plane_sections(const ps_cuda_heat_line &l, int sections, double negligible)
{
    const double size = static_cast<double>(l.rows / sections);
    const double reach = std::log(negligible) / std::log(l.q) / size;
    HeatPlaneSections s = {};

    s.rows = static_cast<int32_t>(l.rows);
    s.sections = sections;
    s.reach = static_cast<int32_t>(std::min<double>(1 + reach, sections));
    s.reads = std::min(2 * s.reach + 1, sections);
    return s;
}

/* The weights of ORDERS orders, increasing and decreasing, by one block per order and section. */
template <typename Real, int ORDERS> struct MakePlaneOrders {
    ps_cuda_heat_line line[ORDERS];
    HeatPlaneSections s;
    HeatPlaneOrder<Real> order[ORDERS];
    Real *power; /* q^n, or null */

    __device__ __forceinline__ void operator()() const
    {
        const int which = static_cast<int>(blockIdx.x) / s.sections,
                  section = static_cast<int>(blockIdx.x) - which * s.sections,
                  thread = static_cast<int>(threadIdx.x);
        const int threads = static_cast<int>(blockDim.x);
        const bool is_downward = which == 1;
        const HeatReach reach = {line[which]};
        const HeatPlaneOrder<Real> &own = order[which];
        /* of a section: first row, and the row after the last one */
        const auto first = [&](int k) {
            return is_downward ? s.rows - s.bound(k + 1) : s.bound(k);
        };
        const auto behind = [&](int k) {
            return is_downward ? s.rows - s.bound(k) : s.bound(k + 1);
        };

        wait_for_last_kernel();
        for (int k = thread; k < s.reads; k += threads) {
            const int from = s.read(section, k);

            own.weight[section * s.reads + k] = reach.weights<Real>(
                first(section), behind(section), first(from), behind(from));
        }
        if (thread < 2) {
            const int side = is_downward ? 1 - thread : thread;

            own.end[2 * section + side] =
                reach.end_weights<Real>(first(section), behind(section), thread);
        }
        for (int n = section + thread * s.sections;
             which == 0 && power != nullptr && n <= s.rows; n += threads * s.sections) {
            power[n] = static_cast<Real>(pow(line[0].q, n));
        }
    }
};

} // namespace pysolvers::heat

#endif
