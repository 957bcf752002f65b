/* cylinder_lines.cu - the lines of the vorticity: both half steps, or both factors of the
 * steady step (Peaceman and Rachford 1955; formulas in cylinder_rows.cuh).
 *
 * One kernel for each axis (line_sweep.cuh): 4 words per node, 17 operations and one
 * division per row for the partition method and those of the stencils. No row exchanges:
 * the rows are dominant for steps of the order of the spacing. With c->thomas the lines
 * are solved by one thread each (cylinder_pta.cuh).
 */
#include "flow/cylinder_pta.cuh"
#include "flow/cylinder_rows.cuh"

namespace pysolvers::flow {

namespace {

constexpr int most_words = 2;
/* Rows of a chunk of small grids: those that would occupy less than a quarter of the
 * threads of the device with chunk_rows. */
constexpr int few_rows = 4;

/* Lines along x with the unknowns 1 to last; along y those of the interior nodes. */
template <typename Real>
SweepTiles
tiles_of(const ps_cylinder &c, int axis, int last, int words,
         const ps_cuda_device *device, int of_chunk = chunk_rows)
{
    const int ny = static_cast<int>(c.ny), nx = static_cast<int>(c.nx);

    return axis == 0 ? sweep_tiles<Real>({1, ny - 1, ny, nx}, nx, 1, last + 1, 0, words,
                                         device, of_chunk)
                     : sweep_tiles<Real>({1, nx - 1, nx, nx}, ny, 1, ny - 1, 1, words,
                                         device, of_chunk);
}

template <int AXIS, typename Rows>
ps_status
sweep(const CylinderRun &r, const Rows &rows, int last, int64_t more = 0)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    using Number = typename Rows::Number;
    const SweepTiles large = tiles_of<Number>(*r.c, AXIS, last, Rows::words, device);
    if (r.c->thomas != 0) {
        return pta_sweep<AXIS>(rows, large, more, r.c->dtype, r.c->block, r.pta,
                               r.stream);
    }
    const SweepTiles small =
        tiles_of<Number>(*r.c, AXIS, last, Rows::words, device, few_rows);
    const bool is_small = small.threads <= largest_block &&
                          small.shared <= line_tile_bytes<Number>(device) &&
                          large.blocks * large.threads <= device->processors * 512;

    return is_small ? launch_sweep<AXIS, few_rows>(rows, small, more, r.stream)
                    : launch_sweep<AXIS>(rows, large, more, r.stream);
}

template <typename Real>
OmegaLines<Real>
omega_lines(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const double dt = c.steady != 0 ? c.dt : c.dt / 2;

    return {grid_of<Real>(r),
            static_cast<Real>(c.viscosity * dt / (c.hx * c.hx)),
            static_cast<Real>(c.viscosity * dt / (c.hy * c.hy)),
            static_cast<Real>(dt / (4 * c.hx * c.hy)),
            static_cast<Real>(c.steady != 0 ? 0 : c.dt / (2 * r.dt_old)),
            static_cast<const Real *>(r.psi),
            static_cast<const Real *>(r.psi_old),
            static_cast<const Real *>(r.omega),
            static_cast<Real *>(r.half),
            static_cast<Real *>(r.omega_old)};
}

template <typename Real>
ps_status
unsteady(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const OmegaLines<Real> lines = omega_lines<Real>(r);
    const int last = lines.grid.nx - 2;
    HalfStepX<Real> first = {};

    static_cast<OmegaLines<Real> &>(first) = lines;
    first.courant = static_cast<Real>(c.dt / c.hx);
    first.courant_u = static_cast<Real>(c.dt / (2 * c.hx * c.hy));
    first.outlet = static_cast<Real *>(r.outlet);
    first.box = c;
    first.numbers = r.numbers;
    const ps_status status = sweep<0>(r, first, last, first.others);

    return status == PS_OK ? sweep<1>(r, HalfStepY<Real>{lines}, last) : status;
}

template <typename Real>
ps_status
steady(const CylinderRun &r)
{
    const OmegaLines<Real> lines = omega_lines<Real>(r);
    const int last = lines.grid.nx - 2;
    const ps_status status = sweep<0>(r, IncrementX<Real>{lines}, last);

    return status == PS_OK ? sweep<1>(r, IncrementY<Real>{lines}, last) : status;
}

template <typename Real>
bool
fits(const ps_cylinder &c, const ps_cuda_device *device)
{
    const int last = static_cast<int>(c.nx) - 1;
    const int64_t most_rows = largest_block * chunk_rows;
    const size_t most = line_tile_bytes<Real>(device);

    return last <= most_rows && c.ny - 2 <= most_rows &&
           tiles_of<Real>(c, 0, last, most_words, device).shared <= most &&
           tiles_of<Real>(c, 1, last, most_words, device).shared <= most;
}

template <int AXIS, typename Rows>
cudaError_t
prepare_sweep()
{
    const cudaError_t error = set_up_sweep<AXIS, Rows>();

    return error == cudaSuccess ? set_up_sweep<AXIS, Rows, few_rows>() : error;
}

template <typename Real>
cudaError_t
prepare(bool is_steady)
{
    const cudaError_t error = is_steady ? prepare_sweep<0, IncrementX<Real>>()
                                        : prepare_sweep<0, HalfStepX<Real>>();

    if (error != cudaSuccess) {
        return error;
    }
    return is_steady ? prepare_sweep<1, IncrementY<Real>>()
                     : prepare_sweep<1, HalfStepY<Real>>();
}

} // namespace

int
ps_cuda_cylinder_fits(const ps_cylinder *c)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return device != nullptr && with_real(c->dtype, [&](auto zero) {
               return fits<decltype(zero)>(*c, device);
           });
}

ps_status
ps_cuda_cylinder_prepare(const ps_cylinder *c)
{
    const bool is_steady = c->steady != 0;

    return with_real(c->dtype, [&](auto zero) {
        return ps_cuda_status(prepare<decltype(zero)>(is_steady));
    });
}

ps_status
ps_cuda_cylinder_omega(const CylinderRun &r)
{
    return with_real(r, [&](auto real) {
        using Real = decltype(real);

        return r.c->steady != 0 ? steady<Real>(r) : unsteady<Real>(r);
    });
}

} // namespace pysolvers::flow
