/* cylinder_psi_lines.cu - psi of the cylinder by cycles of Peaceman and Rachford.
 *
 * The iteration, its parameters and its convergence are described in
 * flow/cylinder/_line_poisson.py; the equations of a half step are multiplied by the
 * square of the spacing along its lines. The host reads the residual after every cycle.
 * Words moved per node: 3 in each sweep (psi, omega; the new psi), 2 for the residual of
 * a cycle. With c->thomas the lines are solved by one thread each (cylinder_pta.cuh).
 */
#include "flow/cylinder_grid.cuh"
#include "flow/cylinder_pta.cuh"
#include "flow/line_sweep.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::flow {

namespace {

constexpr int most_cycles = 100, block_threads = 256;

/* A cycle that leaves more than this share of the residual is the last one: the rest is
 * rounding. */
constexpr double stagnation = 0.9;

template <typename Real, int AXIS> struct PsiLines {
    using Number = Real;
    static constexpr int words = 1, solution = 0, batch = 8;

    CylinderGrid<Real> grid;
    Real shift, cross, area; /* r h^2, h^2 / (spacing across)^2, h^2 */
    const Real *omega, *from;
    Real *to;

    __device__ __forceinline__ bool is_plain(int line) const
    {
        return AXIS == 0 ? line < grid.row_0 || line > grid.row_1
                         : line < grid.column_0 || line > grid.column_1;
    }

    __device__ __forceinline__ void node(int p, int line, int at, bool plain,
                                         Real *word) const
    {
        const int row = AXIS == 0 ? line : at, column = AXIS == 0 ? at : line;
        const int across = AXIS == 0 ? grid.nx : 1;
        /* The node behind a free outlet is that before it. */
        const bool is_outlet = AXIS == 1 && column == grid.nx - 1;
        const Real centre = from[p], next = from[is_outlet ? p - across : p + across];
        const Real all = shift * centre + cross * (next - 2 * centre + from[p - across]) +
                         area * omega[p];

        word[0] = !plain && grid.in_body(row, column) ? centre : all;
    }

    __device__ __forceinline__ void adjust(int p, int, int at, Real *word) const
    {
        const int along = AXIS == 0 ? 1 : grid.nx;

        if (at == 1) {
            word[0] += from[p - along];
        }
        if (at == (AXIS == 0 ? grid.nx : grid.ny) - 2 &&
            !(AXIS == 0 && grid.free_outlet)) {
            word[0] += from[p + along];
        }
    }

    __device__ __forceinline__ Row<Real> row(int line, int at, const Real *word) const
    {
        const bool in_body = AXIS == 0 ? grid.in_body(line, at) : grid.in_body(at, line);

        if (in_body) {
            return {Real(0), Real(1), Real(0), word[0]};
        }
        return {AXIS == 0 && at == grid.nx - 1 ? Real(-2) : Real(-1), 2 + shift, Real(-1),
                word[0]};
    }

    __device__ __forceinline__ void store(int p, int, int, bool unknown, Real x,
                                          const Real *) const
    {
        to[p] = unknown ? x : from[p];
    }

    __device__ __forceinline__ void other(int64_t) const
    {
    }
};

/* The fields of the kernels of all nodes. */
template <typename Real> struct PsiField {
    CylinderGrid<Real> grid;
    Real ahead;   /* dt/dt_old; 0 if steady */
    bool is_free; /* psi on the body, which is 0 otherwise */
    double hx, hy;
    const Real *psi, *omega, *outlet, *unit;
    Real *new_psi;    /* contains psi one step before at first */
    double *residual; /* and the largest omega */
    double *numbers, *history;
};

/* The first estimate of the new psi at a node of a row. */
template <typename Real> struct Estimate {
    PsiField<Real> f;

    __device__ __forceinline__ void operator()(unsigned row_number, int64_t at) const
    {
        const int row = static_cast<int>(row_number), column = static_cast<int>(at);
        const int64_t p = int64_t(row) * f.grid.nx + column;
        const bool inside = row > 0 && row < f.grid.ny - 1 && column > 0;
        const Real now = f.psi[p];

        if (inside && column > f.grid.last) {
            f.new_psi[p] = f.outlet[row];
        }
        else {
            const bool is_zero = !f.is_free && f.grid.in_body(row, column);
            const Real estimate = inside ? now + f.ahead * (now - f.new_psi[p]) : now;

            f.new_psi[p] = is_zero ? Real(0) : estimate;
        }
    }
};

/* The node of a thread of field_blocks() blocks. */
struct FieldNode {
    int row, column;
    int64_t at;     /* in a field */
    bool is_inside; /* whether psi is solved there or given by the body */

    template <typename Real>
    __device__ __forceinline__ explicit FieldNode(const CylinderGrid<Real> &grid)
    {
        const int per_row = divided_up(grid.nx, block_threads);

        row = static_cast<int>(blockIdx.x) / per_row;
        column = static_cast<int>(blockIdx.x) % per_row * block_threads +
                 static_cast<int>(threadIdx.x);
        at = int64_t(row) * grid.nx + column;
        is_inside = row > 0 && row < grid.ny - 1 && column > 0 && column <= grid.last;
    }
};

/* All lanes of a warp take the maximum. */
template <typename Real> struct MeasurePsi {
    PsiField<Real> f;

    __device__ __forceinline__ void operator()() const
    {
        const FieldNode node(f.grid);
        double residual = 0, largest = 0;

        wait_for_last_kernel();
        if (node.is_inside && !f.grid.in_body(node.row, node.column)) {
            const int nx = f.grid.nx;
            const Real *const at = f.new_psi + node.at;
            const double centre = at[0], east = at[node.column == nx - 1 ? -1 : 1];
            const double along_x = (east - 2 * centre + at[-1]) / (f.hx * f.hx);
            const double along_y = (at[nx] - 2 * centre + at[-nx]) / (f.hy * f.hy);

            residual = fabs(along_x + along_y + f.omega[node.at]);
            largest = fabs(static_cast<double>(f.omega[node.at]));
        }
        raise_all(f.residual, residual);
        raise_all(f.residual + 1, largest);
    }
};

/* psi += d unit, where d gives the circulation; the largest psi and its largest change.
 */
template <typename Real> struct FinishPsi {
    PsiField<Real> f;

    __device__ __forceinline__ void operator()() const
    {
        const FieldNode node(f.grid);
        double largest = 0, change = 0;

        wait_for_last_kernel();
        if (node.is_inside) {
            const Real more = static_cast<Real>(f.numbers[STEP_SHIFT]);
            const Real value = f.grid.in_body(node.row, node.column)
                                   ? static_cast<Real>(f.numbers[STEP_VALUE])
                                   : f.new_psi[node.at] + more * f.unit[node.at];

            f.new_psi[node.at] = value;
            largest = fabs(static_cast<double>(value));
            change = fabs(static_cast<double>(value) - f.psi[node.at]);
        }
        raise_all(f.history + PS_COLUMN_LARGEST, largest);
        raise_all(f.history + PS_COLUMN_CHANGE, change);
    }
};

template <typename Real> struct BoxFlux {
    CylinderGrid<Real> grid;
    int j0, j1, i0, i1; /* of the box */
    bool is_free;
    double hx, hy, dt, share, unit_circulation;
    const Real *psi; /* the new one */
    const double *scalars;
    double *numbers, *history;

    /* Grid: one block. */
    __device__ __forceinline__ void operator()() const
    {
        const int64_t nx = grid.nx;
        const auto out = [&](int row, int column,
                             int64_t step) { /* psi behind the face */
                                             const Real *const at =
                                                 psi + row * nx + column;

                                             return static_cast<double>(at[step]) - at[0];
        };
        double sum = 0;

        wait_for_last_kernel();
        for (int j = j0 + static_cast<int>(threadIdx.x); j <= j1; j += block_threads) {
            sum -= (out(j, i1, 1) + out(j, i0, -1)) * (hy / hx);
        }
        for (int i = i0 + static_cast<int>(threadIdx.x); i <= i1; i += block_threads) {
            sum -= (out(j1, i, nx) + out(j0, i, -nx)) * (hx / hy);
        }
        sum = sum_of_block(sum);
        if (threadIdx.x == 0) {
            const double circulation = new_circulation(numbers, scalars, dt, share);
            const double shift = is_free ? (circulation - sum) / unit_circulation : 0;
            const double value = psi[grid.row_0 * nx + grid.column_0] + shift;

            numbers[STEP_SHIFT] = shift;
            numbers[STEP_VALUE] = value;
            numbers[STEP_CIRCULATION] = circulation;
            history[PS_COLUMN_VALUE] = value;
            history[PS_COLUMN_CIRCULATION] = circulation;
        }
    }
};

template <typename Real>
PsiField<Real>
field_of(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;

    return {grid_of<Real>(r),
            static_cast<Real>(c.steady != 0 ? 0 : c.dt / r.dt_old),
            c.free != 0 && c.steady == 0,
            c.hx,
            c.hy,
            static_cast<const Real *>(r.psi),
            static_cast<const Real *>(r.omega_old), /* the new omega */
            static_cast<const Real *>(r.outlet),
            static_cast<const Real *>(c.tables[PS_TABLE_UNIT_PSI]),
            static_cast<Real *>(r.psi_old), /* the new psi */
            r.sums,
            r.numbers,
            r.history};
}

template <typename Real>
int64_t
field_blocks(const PsiField<Real> &f)
{
    return int64_t(f.grid.ny) * divided_up(f.grid.nx, block_threads);
}

template <typename Real, int AXIS>
ps_status
half_step(const CylinderRun &r, double shift, const Real *from, Real *to)
{
    const ps_cylinder &c = *r.c;
    const ps_cuda_device *const device = ps_cuda_device_get();
    const CylinderGrid<Real> grid = grid_of<Real>(r);
    const double h = AXIS == 0 ? c.hx : c.hy, across = AXIS == 0 ? c.hy : c.hx;
    const PsiLines<Real, AXIS> rows = {grid,
                                       static_cast<Real>(shift * h * h),
                                       static_cast<Real>(h * h / (across * across)),
                                       static_cast<Real>(h * h),
                                       static_cast<const Real *>(r.omega_old),
                                       from,
                                       to};

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const SweepTiles t = AXIS == 0
                             ? sweep_tiles<Real>({1, grid.ny - 1, grid.ny, grid.nx},
                                                 grid.nx, 1, grid.last + 1, 0, 1, device)
                             : sweep_tiles<Real>({1, grid.last + 1, grid.nx, grid.nx},
                                                 grid.ny, 1, grid.ny - 1, 1, 1, device);

    return c.thomas != 0 ? pta_sweep<AXIS>(rows, t, 0, c.dtype, c.block, r.pta, r.stream)
                         : launch_sweep<AXIS>(rows, t, 0, r.stream);
}

template <typename Real>
ps_status
make_cycle(const CylinderRun &r)
{
    Real *const psi = static_cast<Real *>(r.psi_old), *const half =
                                                          static_cast<Real *>(r.half);
    ps_status status = PS_OK;

    for (int k = 0; status == PS_OK && k < r.c->shift_count; k++) {
        status = half_step<Real, 0>(r, r.c->shifts[k], psi, half);
        status =
            status == PS_OK ? half_step<Real, 1>(r, r.c->shifts[k], half, psi) : status;
    }
    return status;
}

/* The residual and the largest omega, read by the host. */
template <typename Real>
ps_status
measure(const CylinderRun &r, const PsiField<Real> &f, double (&found)[2])
{
    cudaError_t error = cudaMemsetAsync(r.sums, 0, sizeof(found), r.stream);

    if (error != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    const ps_status status =
        for_threads<block_threads>(field_blocks(f), r.stream, MeasurePsi<Real>{f});

    if (status != PS_OK) {
        return status;
    }
    error =
        cudaMemcpyAsync(found, r.sums, sizeof(found), cudaMemcpyDeviceToHost, r.stream);
    return ps_cuda_status(error == cudaSuccess ? cudaStreamSynchronize(r.stream) : error);
}

template <typename Real>
ps_status
iterate(const CylinderRun &r)
{
    const PsiField<Real> f = field_of<Real>(r);
    double now[2] = {}, before = 0;
    ps_status status =
        for_rows_of_elements(f.grid.ny, f.grid.nx, r.stream, Estimate<Real>{f});

    status = status == PS_OK ? measure(r, f, now) : status;
    for (int k = 0; status == PS_OK && k < most_cycles; k++) {
        /* NaN fails the comparisons. */
        if (!(now[0] > r.c->psi_tol * now[1]) ||
            (k > 0 && !(now[0] < stagnation * before))) {
            break;
        }
        before = now[0];
        status = make_cycle<Real>(r);
        status = status == PS_OK ? measure(r, f, now) : status;
    }
    return status;
}

template <typename Real>
ps_status
solve(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const PsiField<Real> f = field_of<Real>(r);
    const BoxFlux<Real> box = {f.grid,
                               static_cast<int>(c.box_rows.first),
                               static_cast<int>(c.box_rows.last),
                               static_cast<int>(c.box_columns.first),
                               static_cast<int>(c.box_columns.last),
                               f.is_free,
                               c.hx,
                               c.hy,
                               c.dt,
                               c.dt / (2 * r.dt_old),
                               c.unit_circulation,
                               f.new_psi,
                               c.scalars,
                               r.numbers,
                               r.history};
    ps_status status = iterate<Real>(r);

    if (status == PS_OK) {
        status = for_threads<block_threads>(1, r.stream, box);
    }
    return status == PS_OK
               ? for_threads<block_threads>(field_blocks(f), r.stream, FinishPsi<Real>{f})
               : status;
}

template <typename Real>
cudaError_t
prepare()
{
    const cudaError_t error = set_up_sweep<0, PsiLines<Real, 0>>();

    return error == cudaSuccess ? set_up_sweep<1, PsiLines<Real, 1>>() : error;
}

} // namespace

ps_status
ps_cuda_cylinder_prepare_lines(const ps_cylinder *c)
{
    return with_real(c->dtype,
                     [](auto zero) { return ps_cuda_status(prepare<decltype(zero)>()); });
}

ps_status
ps_cuda_cylinder_psi_lines(const CylinderRun &r)
{
    return with_real(r, [&](auto real) { return solve<decltype(real)>(r); });
}

} // namespace pysolvers::flow
