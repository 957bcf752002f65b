/* blocks_factor_reals.cu - the kernels of blocks_factor.cuh, compiled once per real dtype. */
#include "lines/blocks_factor.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::lines {

template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED>
inline ps_status
launch_level(const FactorJob<Real> &job, FactorPart part, cudaStream_t stream)
{
    const int64_t systems = part == FACTOR_DOWN || part == FACTOR_UP
                                ? job.rows.outer * job.rows.inner
                                : job.shape.matrices;
    const int64_t units = systems * job.shape.level[job.level].chunks;
    const auto blocks_of = [&](int lanes) {
        return divided_up(units * lanes, int64_t(factor_threads));
    };
    const auto apply = [&](const auto &operation) {
        return for_threads<factor_threads>(blocks_of(1), stream, operation);
    };

    switch (part) {
    case FACTOR_MATRIX:
        return for_threads<factor_threads, factor_blocks<Real>>(
            blocks_of(team_lanes(SIDE)), stream,
            FactorBlocks<Real, SIDE, IS_BANDS, IS_DIVIDED>{job});
    case FACTOR_DOWN:
        return apply(
            ApplyFactor<Real, SIDE, IS_BANDS, IS_DIVIDED, true, !IS_DIVIDED>{job});
    case FACTOR_UP:
        return apply(
            ApplyFactor<Real, SIDE, IS_BANDS, IS_DIVIDED, !IS_DIVIDED, true>{job});
    default:
        return for_threads<factor_threads, inverse_blocks>(
            blocks_of(team_lanes(SIDE)), stream,
            InverseBlocks<Real, SIDE, IS_DIVIDED>{job});
    }
}

template <typename Real>
ps_status
launch_factor(const FactorJob<Real> &job, FactorPart part, cudaStream_t stream)
{
    const bool is_divided = job.level < job.shape.levels - 1;

    switch (job.rows.side) {
    case 0:
        return is_divided ? launch_level<Real, 2, true, true>(job, part, stream)
                          : launch_level<Real, 2, true, false>(job, part, stream);
    case 2:
        return is_divided ? launch_level<Real, 2, false, true>(job, part, stream)
                          : launch_level<Real, 2, false, false>(job, part, stream);
    case 3:
        return is_divided ? launch_level<Real, 3, false, true>(job, part, stream)
                          : launch_level<Real, 3, false, false>(job, part, stream);
    default:
        return is_divided ? launch_level<Real, 4, false, true>(job, part, stream)
                          : launch_level<Real, 4, false, false>(job, part, stream);
    }
}

template ps_status launch_factor(const FactorJob<PS_NUMBER> &, FactorPart, cudaStream_t);

} // namespace pysolvers::lines
