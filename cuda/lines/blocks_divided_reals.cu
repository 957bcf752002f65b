/* blocks_divided_reals.cu - solves of few long systems by the chunks of factors (blocks_factor.cuh),
 * compiled once per real dtype.
 */
#include "lines/blocks_factor.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::lines {

template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED>
inline ps_status
launch_divided_level(const FactorJob<Real> &job, FactorPart part, cudaStream_t stream)
{
    const int64_t units = job.shape.matrices * job.shape.level[job.level].chunks;
    const auto eliminate = [&](int lanes, const auto &operation) {
        return for_threads<factor_threads, factor_blocks<Real>>(
            divided_up(units * lanes, int64_t(factor_threads)), stream, operation);
    };

    if (part == FACTOR_UP) {
        return for_threads<factor_threads>(
            divided_up(units, int64_t(factor_threads)), stream,
            ApplyFactor<Real, SIDE, IS_BANDS, IS_DIVIDED, false, true, true>{job});
    }
    if constexpr (SIDE == 2) {
        if (job.are_side_by_side) {
            return eliminate(
                1, FactorBlocks<Real, SIDE, IS_BANDS, IS_DIVIDED, true, true>{job});
        }
    }
    return eliminate(team_lanes(SIDE),
                     FactorBlocks<Real, SIDE, IS_BANDS, IS_DIVIDED, true>{job});
}

template <typename Real>
ps_status
launch_divided(const FactorJob<Real> &job, FactorPart part, cudaStream_t stream)
{
    const bool is_divided = job.level < job.shape.levels - 1;

    switch (job.rows.side) {
    case 0: /* never the last level, which has blocks */
        return launch_divided_level<Real, 2, true, true>(job, part, stream);
    case 2:
        return is_divided
                   ? launch_divided_level<Real, 2, false, true>(job, part, stream)
                   : launch_divided_level<Real, 2, false, false>(job, part, stream);
    case 3:
        return is_divided
                   ? launch_divided_level<Real, 3, false, true>(job, part, stream)
                   : launch_divided_level<Real, 3, false, false>(job, part, stream);
    default:
        return is_divided
                   ? launch_divided_level<Real, 4, false, true>(job, part, stream)
                   : launch_divided_level<Real, 4, false, false>(job, part, stream);
    }
}

template ps_status launch_divided(const FactorJob<PS_NUMBER> &, FactorPart, cudaStream_t);

} // namespace pysolvers::lines
