/* wave_lines.cu - the choice of shape and kernel for the systems of packed waves. */
#include "runtime/backend.h"
#include "transforms/wave_lines.h"

namespace pysolvers::transforms {

using namespace runtime;

/* The kernel needs less shared memory than those of columns. */
template <typename Real>
static bool
shape_of(int64_t planes, ColumnShape *shape)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return device != nullptr && planes > 1 &&
           ps_cuda_column_shape(number_traits<Real>::dtype, planes, 5, device, shape);
}

ps_status
ps_cuda_waves_fit(ps_dtype dtype, int64_t planes, int32_t *fit)
{
    ColumnShape shape;

    *fit = (dtype == PS_F32 || dtype == PS_F64) && with_real(dtype, [&](auto zero) {
               return shape_of<decltype(zero)>(planes, &shape);
           });
    return PS_OK;
}

template <typename Real>
static Row<Real>
row_of(const double (&row)[3], bool has_lower, bool has_upper)
{
    return {static_cast<Real>(has_lower ? row[0] : 0), static_cast<Real>(row[1]),
            static_cast<Real>(has_upper ? row[2] : 0), Real(0)};
}

template <typename Real>
static bool
job_of(const ps_wave_lines &l, WaveJob<Real> *job)
{
    const bool periodic = l.periodic != 0;
    const bool is_open = periodic || l.ends != nullptr || l.y != nullptr;
    /* A system of two rows has no inner one. */
    const double inner[3] = {l.planes > 2 ? l.inner[0] : l.first[2],
                             l.planes > 2 ? l.inner[1] : l.first[1],
                             l.planes > 2 ? l.inner[2] : l.first[2]};
    ColumnShape shape;

    if (inner[0] != inner[2] || inner[2] == 0 || l.first[2] == 0 ||
        !shape_of<Real>(l.planes, &shape)) {
        return false;
    }
    const double excess = -inner[1] / inner[2], factor = inner[2] / l.first[2];

    *job = {static_cast<Real *>(l.waves),
            l.rows * l.pitch,
            l.pitch,
            static_cast<const Real *>(l.shifts),
            static_cast<const Complex<Real> *>(l.turns),
            static_cast<const Complex<Real> *>(l.row_turns),
            row_of<Real>(l.first, is_open, true),
            row_of<Real>(inner, true, true),
            row_of<Real>(l.last, true, is_open),
            static_cast<Real>(l.null_sum),
            static_cast<Real>(-l.first[1] / l.first[2] - excess * factor),
            static_cast<Real>(-l.null_sum / l.first[2] - excess * factor),
            static_cast<Real>(excess),
            static_cast<Real>(1 / inner[2]),
            static_cast<Real>(1 / l.first[2]),
            static_cast<Real>(factor),
            periodic,
            {static_cast<int>(l.rows), static_cast<int>(l.length), 1 << shape.width},
            shape,
            static_cast<Real *>(l.ends),
            static_cast<Real *>(l.couplings),
            static_cast<const Real *>(l.y_left),
            static_cast<const Real *>(l.y)};
    return true;
}

/* Whether the systems fill the device with a thread each. */
template <typename Real>
static bool
are_many(const WaveJob<Real> &job)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const int64_t systems = int64_t(job.tiles.rows) * job.tiles.reals();

    return device != nullptr && systems >= int64_t(256) * device->processors;
}

ps_status
ps_cuda_wave_lines(const ps_wave_lines *l, const ps_exec *exec)
{
    const ps_status status = ps_wave_lines_check(l);
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (status != PS_OK) {
        return status;
    }
    return with_real(l->dtype, [&](auto zero) {
        WaveJob<decltype(zero)> job;

        if (!job_of(*l, &job)) {
            return PS_BAD_ARGUMENT;
        }
        if (!job.is_part()) {
            return launch_wave_lines<decltype(zero), false>(job, stream);
        }
        return job.ends != nullptr && are_many(job)
                   ? launch_wave_ends(job, stream)
                   : launch_wave_lines<decltype(zero), true>(job, stream);
    });
}

} // namespace pysolvers::transforms
