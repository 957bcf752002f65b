/* heat_team_table.cuh - the weights of heat_teams.cuh, computed on the device.
 *
 * Let a line have n rows, and its groups rows s_h to e_h with the sums u_h and x_h.
 * Then u before row s is the sum of q^(s - e_h) u_h over the groups before it, and x of
 * row e is the sum of q^(s_h - e) x_h over the groups after it. u_h also contributes to
 * x of row e, with the weight
 *
 *   (q^|e - e_h| - q^(2n - e - e_h)) q / (1 + q)
 */
#ifndef PS_CUDA_HEAT_HEAT_TEAM_TABLE_CUH
#define PS_CUDA_HEAT_HEAT_TEAM_TABLE_CUH

#include "heat/heat_teams.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

/* Smaller weights do not count: the cube of the rounding error. */
template <typename Real>
constexpr double heat_negligible = sizeof(Real) == 4 ? 0x1p-69 : 0x1p-156;

/* The weight of one place of a line in another. */
struct HeatReach {
    const ps_cuda_heat_line &l;

    /* q / (1 + q) (q^a - q^(a + rows)) */
    __device__ __forceinline__ double response(double a, double rows) const
    {
        return l.q / (1 + l.q) * pow(l.q, a) * -expm1(rows * log1p(-l.p));
    }
    /* Weight of u after row e_h in x of row e. */
    __device__ __forceinline__ double back(double e, double e_h) const
    {
        return response(fabs(e - e_h), 2 * (static_cast<double>(l.rows) - fmax(e, e_h)));
    }
    /* Weights of U and Y in the boundary values of rows s to e. */
    __device__ __forceinline__ void close(double s, double e, double first, double behind,
                                          double &u, double &x) const
    {
        u += pow(l.q, s) * first;
        x += pow(l.q, static_cast<double>(l.rows) - e) * behind + back(e, 0) * first;
    }
    /* The weights of the sums of rows from to `to` in the boundary values of rows s to e, which are
     * the same rows or others. */
    template <typename Real>
    __device__ __forceinline__ HeatWeights<Real> weights(double s, double e, double from,
                                                         double to) const
    {
        const double n = static_cast<double>(l.rows);
        const double first_u = back(0, to), last_u = pow(l.q, n - to);
        const double first_x = pow(l.q, from);
        double uu = to <= s ? pow(l.q, s - to) : 0, ux = 0;
        double xu = back(e, to), xx = from >= e ? pow(l.q, from - e) : 0;

        close(s, e, l.u[0] * first_u + l.u[1] * last_u,
              l.y[0] * first_u + l.y[1] * last_u, uu, xu);
        close(s, e, l.u[0] * first_x, l.y[0] * first_x, ux, xx);
        return {static_cast<Real>(uu), static_cast<Real>(ux), static_cast<Real>(xu),
                static_cast<Real>(xx)};
    }
    /* The weights of the value of an end in these boundary values. */
    template <typename Real>
    __device__ __forceinline__ HeatWeights<Real> end_weights(double s, double e,
                                                             int end) const
    {
        double u = 0, x = 0;

        close(s, e, l.u[2 + end], l.y[2 + end], u, x);
        return {Real(0), static_cast<Real>(u), Real(0), static_cast<Real>(x)};
    }
    /* The constants of rows `row` to `next` within a unit that begins with row `first`.
     */
    template <typename Real>
    __device__ __forceinline__ HeatUnit<Real> unit(int row, int next, int first) const
    {
        return {static_cast<Real>(pow(l.q, next - row)),
                static_cast<Real>(response(0, 2 * (next - row))),
                static_cast<Real>(pow(l.q, row - first)), Real(0)};
    }
};

/* One block per group, with at least HEAT_TEAM_GROUPS threads. */
template <typename Real> struct MakeHeatTeamTable {
    ps_cuda_heat_line l;
    int32_t chunk_rows;
    HeatTeamTable<Real> *table;

    __device__ __forceinline__ void operator()() const
    {
        const int group = blockIdx.x, i = static_cast<int>(threadIdx.x);
        const int groups = gridDim.x, rows = static_cast<int>(l.rows);
        const HeatReach reach = {l};
        const HeatCut own(rows, chunk_rows, group);

        constexpr int part_chunks = HEAT_TEAM_CHUNKS / heat_parts<Real>;

        wait_for_last_kernel();
        if (i < groups) {
            const HeatCut other(rows, chunk_rows, i);

            table->weight[group][i] =
                reach.weights<Real>(own.first, own.end, other.first, other.end);
        }
        if (i < 2) {
            table->end[group][i] = reach.end_weights<Real>(own.first, own.end, i);
        }
        if (i < HEAT_TEAM_CHUNKS) {
            const int first = i / part_chunks * part_chunks;

            table->chunk[group][i] =
                reach.unit<Real>(own.chunk(i), own.chunk(i + 1), own.chunk(first));
        }
        if (i < heat_parts<Real>) {
            const int first = i * part_chunks;

            table->part[group][i] = reach.unit<Real>(
                own.chunk(first), own.chunk(first + part_chunks), own.first);
        }
    }
};

} // namespace pysolvers::heat

#endif
