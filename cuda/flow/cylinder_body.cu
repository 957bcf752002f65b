/* cylinder_body.cu - psi and omega on the body and on the walls, velocities at the
 * probes, forces.
 *
 * psi without charges at the surface nodes is the transform back of a few columns. The
 * charges that make psi constant on the body are a linear function of it (capacitance
 * matrix: Buzbee, Dorr, George and Golub 1971), and so is what they add to the right
 * sides of the waves: one product of a dense matrix and a vector of the surface nodes.
 * All sums are in double precision, in an order that depends on the sizes only.
 */
#include "flow/cylinder_grid.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int block_threads = 256, block_warps = block_threads / 32;

int64_t
blocks_for(int64_t count, int per_block)
{
    return divided_up(count, per_block);
}

/* Sum of term(k), begin <= k < end, over the warp, in all lanes. The loads of `ahead`
 * terms of a lane are under way together. */
template <typename Term>
__device__ __forceinline__ double
sum_of_terms(int begin, int end, const Term &term)
{
    constexpr int ahead = 8;
    double sum = 0;

    for (int k = begin + static_cast<int>(threadIdx.x) % 32; k < end; k += 32 * ahead) {
        double found[ahead];

#pragma unroll
        for (int e = 0; e < ahead; e++) {
            found[e] = k + 32 * e < end ? term(k + 32 * e) : 0;
        }
#pragma unroll
        for (int e = 0; e < ahead; e++) {
            sum += found[e];
        }
    }
    return sum_of_warp(sum);
}

/* psi without charges at the surface nodes, and sums of omega over the rows of the box.
 */
template <typename Real> struct Surface {
    CylinderGrid<Real> grid;
    int surface_nodes, box_row_0, box_rows, box_column_0, box_column_1;
    const int32_t *places; /* row and column in the body */
    const double *body_sines, *lines;
    const Real *omega;
    double *psi_0, *boxed;

    /* Grid: a warp for each surface node and each row of the box. */
    __device__ __forceinline__ void operator()() const
    {
        const int warp = static_cast<int>(blockIdx.x * block_warps + threadIdx.x / 32);
        const bool writes = threadIdx.x % 32 == 0;
        const int node = min(warp, surface_nodes - 1);

        let_next_kernel_in();
        const double *const sines = body_sines + places[2 * node] * grid.ny;
        const double *const line = lines + places[2 * node + 1] * grid.ny;

        wait_for_last_kernel();
        if (warp < surface_nodes) {
            const double sum =
                sum_of_terms(1, grid.ny - 1, [&](int k) { return sines[k] * line[k]; });

            if (writes) {
                psi_0[warp] = sum;
            }
        }
        else if (warp < surface_nodes + box_rows) {
            const int at = warp - surface_nodes, row = box_row_0 + at;
            const Real *const values = omega + int64_t(row) * grid.nx;
            const double sum = sum_of_terms(box_column_0, box_column_1 + 1, [&](int i) {
                return grid.in_body(row, i) ? 0 : static_cast<double>(values[i]);
            });

            if (writes) {
                boxed[at] = sum;
            }
        }
    }
};

struct Charges {
    int surface_nodes, box_rows, results;
    bool is_free;
    double area, unit_sum, dt, share; /* share: dt/(2 dt_old) */
    const double *psi_0, *boxed, *unit, *response;
    const double *scalars;
    double *charged, *numbers, *history;
};

/* psi on the body and the new circulation; in all threads. */
__device__ __forceinline__ double2
value_and_circulation(const Charges &c)
{
    const double circulation = new_circulation(c.numbers, c.scalars, c.dt, c.share);
    const int step = static_cast<int>(blockDim.x);
    double found = 0;

    if (!c.is_free) {
        return {0, circulation};
    }
    for (int k = static_cast<int>(threadIdx.x); k < c.surface_nodes; k += step) {
        found += c.unit[k] * c.psi_0[k];
    }
    for (int k = static_cast<int>(threadIdx.x); k < c.box_rows; k += step) {
        found += c.boxed[k];
    }
    /* The circulation is area (sum of omega - sum of charges), and the sum of charges is
     * unit_sum value - (sum of unit psi_0). */
    return {(sum_of_block(found) - circulation / c.area) / c.unit_sum, circulation};
}

/* Grid: a warp for each result, which is the sum of response (value - psi_0). */
struct SolveCharges {
    Charges c;

    __device__ __forceinline__ void operator()() const
    {
        const int warp = static_cast<int>(blockIdx.x * block_warps + threadIdx.x / 32);
        const double *const row = c.response + int64_t(warp) * c.surface_nodes;
        const int nodes = warp < c.results ? c.surface_nodes : 0;

        let_next_kernel_in();
        const double of_value = sum_of_terms(0, nodes, [&](int k) { return row[k]; });

        wait_for_last_kernel();
        const double of_psi =
            sum_of_terms(0, nodes, [&](int k) { return row[k] * c.psi_0[k]; });
        const double2 now = value_and_circulation(c);

        if (warp < c.results && threadIdx.x % 32 == 0) {
            c.charged[warp] = of_value * now.x - of_psi;
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            c.numbers[STEP_VALUE] = now.x;
            c.numbers[STEP_CIRCULATION] = now.y;
            c.history[PS_COLUMN_VALUE] = now.x;
            c.history[PS_COLUMN_CIRCULATION] = now.y;
        }
    }
};

template <typename Real> struct CylinderWalls {
    CylinderGrid<Real> grid;
    Real psi_1, psi_2, omega_1; /* factors of the formula */
    Real over_x, over_y;        /* 1/h^2 */
    Real weight;
    const Real *psi;
    const Real *base; /* omega one step before */
    Real *omega;
    const double *numbers;
    double *scalars, *history;
    int64_t probes;
    const int32_t *probe_nodes;
    const double *probe_weights;

    __device__ __forceinline__ Real formula(int64_t p, int64_t inward, Real over) const
    {
        const Real wall = psi[p];
        Real found = psi_1 * over * (psi[p + inward] - wall);

        if (psi_2 != 0) {
            found += psi_2 * over * (psi[p + 2 * inward] - wall);
        }
        if (omega_1 != 0) {
            found += omega_1 * omega[p + inward];
        }
        return found;
    }

    __device__ __forceinline__ void put(int64_t p, Real found) const
    {
        omega[p] = base[p] + weight * (found - base[p]);
    }

    /* Node number k of both walls of the channel, without the inlet. */
    __device__ __forceinline__ void channel(int k) const
    {
        const int per_wall = grid.nx - 1;
        const bool is_top = k >= per_wall;
        const int64_t column = 1 + (is_top ? k - per_wall : k), nx = grid.nx;

        put((is_top ? (grid.ny - 1) * nx : 0) + column,
            formula((is_top ? (grid.ny - 1) * nx : 0) + column, is_top ? -nx : nx,
                    over_y));
    }

    /* Node number k of the bounding box of the body, row by row: those of the faces. */
    __device__ __forceinline__ void body(int k) const
    {
        const int width = grid.column_1 - grid.column_0 + 1;
        const int row = grid.row_0 + k / width, column = grid.column_0 + k % width;
        const int64_t nx = grid.nx, p = row * nx + column;
        const int along_x = column == grid.column_0 ? -1 : column == grid.column_1;
        const int64_t along_y = row == grid.row_0 ? -nx : row == grid.row_1 ? nx : 0;

        if (along_x != 0 && along_y != 0) {
            /* the mean of the formulas of Thom of both faces */
            put(p, -(over_x * (psi[p + along_x] - psi[p]) +
                     over_y * (psi[p + along_y] - psi[p])));
        }
        else if (along_x != 0) {
            put(p, formula(p, along_x, over_x));
        }
        else if (along_y != 0) {
            put(p, formula(p, along_y, over_y));
        }
    }

    __device__ __forceinline__ void probe(int64_t k) const
    {
        double sum[2] = {0, 0};

        for (int corner = 0; corner < 4; corner++) {
            const double north = psi[probe_nodes[corner * probes + k]];
            const double south = psi[probe_nodes[(4 + corner) * probes + k]];
            const double west = psi[probe_nodes[(8 + corner) * probes + k]];
            const double east = psi[probe_nodes[(12 + corner) * probes + k]];

            sum[0] += probe_weights[corner * probes + k] * (north - south);
            sum[1] += probe_weights[(4 + corner) * probes + k] * (west - east);
        }
        history[PS_CYLINDER_COLUMNS + 2 * k] = sum[0];
        history[PS_CYLINDER_COLUMNS + 2 * k + 1] = sum[1];
    }

    /* Grid: a thread for each node of the walls, of the body and for each probe. */
    __device__ __forceinline__ void operator()() const
    {
        const int64_t thread = int64_t(blockIdx.x) * block_threads + threadIdx.x;
        const int64_t channel_nodes = 2 * int64_t(grid.nx - 1);
        const int64_t body_nodes =
            int64_t(grid.row_1 - grid.row_0 + 1) * (grid.column_1 - grid.column_0 + 1);

        let_next_kernel_in();
        wait_for_last_kernel();
        if (thread < channel_nodes) {
            channel(static_cast<int>(thread));
        }
        else if (thread < channel_nodes + body_nodes) {
            body(static_cast<int>(thread - channel_nodes));
        }
        else if (thread < channel_nodes + body_nodes + probes) {
            probe(thread - channel_nodes - body_nodes);
        }
        if (thread < 3) {
            scalars[thread] = numbers[thread];
        }
    }
};

/* Forces; see cylinder.h. */
template <typename Real> struct Forces {
    CylinderGrid<Real> grid;
    int64_t nodes;
    double hx, hy, viscosity, dt;
    const int32_t *places;
    const double *weights;
    const Real *psi, *psi_old, *omega, *omega_old;
    double *sums;
    unsigned *arrived;
    double *history;

    __device__ __forceinline__ double mean_psi(int64_t p) const
    {
        return 0.5 * (static_cast<double>(psi[p]) + psi_old[p]);
    }

    __device__ __forceinline__ double psi_t(int64_t p) const
    {
        return (static_cast<double>(psi[p]) - psi_old[p]) / dt;
    }

    __device__ __forceinline__ double mean_omega(int64_t p) const
    {
        return 0.5 * (static_cast<double>(omega[p]) + omega_old[p]);
    }

    __device__ __forceinline__ void quantities(int64_t p,
                                               double (&q)[PS_FORCE_QUANTITIES]) const
    {
        const int64_t nx = grid.nx;
        const int row = static_cast<int>(p / nx), column = static_cast<int>(p - row * nx);
        const double w = mean_omega(p), north = mean_psi(p + nx),
                     south = mean_psi(p - nx);
        double u = 0, v = 0, u_t = 0, v_t = 0;

        if (!grid.in_body(row, column)) {
            u = (north - south) / (2 * hy);
            v = (mean_psi(p - 1) - mean_psi(p + 1)) / (2 * hx);
            u_t = (psi_t(p + nx) - psi_t(p - nx)) / (2 * hy);
            v_t = (psi_t(p - 1) - psi_t(p + 1)) / (2 * hx);
        }
        const double omega_x = (mean_omega(p + 1) - mean_omega(p - 1)) / (2 * hx);
        const double omega_y = (mean_omega(p + nx) - mean_omega(p - nx)) / (2 * hy);
        const double u_y = (north - 2 * mean_psi(p) + south) / (hy * hy);
        const double u_x = (mean_psi(p + nx + 1) - mean_psi(p + nx - 1) -
                            mean_psi(p - nx + 1) + mean_psi(p - nx - 1)) /
                           (4 * hx * hy);
        const double head = (u * u + v * v) / 2, stretch = 2 * viscosity * u_x;

        q[0] = -u_t + v * w - viscosity * omega_y;
        q[1] = -v_t - u * w + viscosity * omega_x;
        q[2] = stretch - u * u + head;
        q[3] = -stretch - v * v + head;
        q[4] = viscosity * (2 * u_y + w) - u * v;
        q[5] = psi_t(p);
        q[6] = w;
    }

    /* Grid: force_blocks blocks; the last one that ends adds up their sums. */
    __device__ __forceinline__ void operator()() const
    {
        __shared__ bool is_last;
        double sum[PS_FORCE_RESULTS] = {};

        let_next_kernel_in();
        wait_for_last_kernel();
        for (int64_t k = int64_t(blockIdx.x) * block_threads + threadIdx.x; k < nodes;
             k += int64_t(force_blocks) * block_threads) {
            double q[PS_FORCE_QUANTITIES];

            quantities(places[k], q);
#pragma unroll
            for (int i = 0; i < PS_FORCE_RESULTS; i++) {
#pragma unroll
                for (int j = 0; j < PS_FORCE_QUANTITIES; j++) {
                    sum[i] += weights[(i * PS_FORCE_QUANTITIES + j) * nodes + k] * q[j];
                }
            }
        }
        for (int i = 0; i < PS_FORCE_RESULTS; i++) {
            sum[i] = sum_of_block(sum[i]);
        }
        if (threadIdx.x == 0) {
            for (int i = 0; i < PS_FORCE_RESULTS; i++) {
                sums[blockIdx.x * PS_FORCE_RESULTS + i] = sum[i];
            }
            __threadfence(); /* the sums are visible before the block is counted */
            is_last = atomicAdd(arrived, 1u) == force_blocks - 1;
        }
        __syncthreads();
        if (is_last && threadIdx.x < PS_FORCE_RESULTS) {
            const volatile double *const parts = sums;
            double total = 0;

            __threadfence(); /* the sums are read after the count */
            for (int block = 0; block < force_blocks; block++) {
                total += parts[block * PS_FORCE_RESULTS + threadIdx.x];
            }
            history[PS_COLUMN_DRAG + threadIdx.x] = total;
        }
        if (is_last && threadIdx.x == 0) {
            *arrived = 0;
        }
    }
};

template <typename Real>
ps_status
charges_of(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const int nodes = static_cast<int>(c.surface_nodes);
    const int box_rows = static_cast<int>(c.box_rows.last - c.box_rows.first + 1);
    const int width = static_cast<int>(c.columns.last - c.columns.first + 1);
    const Surface<Real> surface = {
        grid_of<Real>(r),
        nodes,
        static_cast<int>(c.box_rows.first),
        box_rows,
        static_cast<int>(c.box_columns.first),
        static_cast<int>(c.box_columns.last),
        static_cast<const int32_t *>(c.tables[PS_TABLE_SURFACE]),
        static_cast<const double *>(c.tables[PS_TABLE_BODY_SINES]),
        r.lines,
        static_cast<const Real *>(r.omega_old), /* the new omega */
        r.psi_0,
        r.boxed};
    const Charges charges = {nodes,
                             box_rows,
                             2 * static_cast<int>(c.ny) + 2 * width,
                             c.free != 0 && c.steady == 0,
                             c.hx * c.hy,
                             c.unit_sum,
                             c.dt,
                             c.dt / (2 * r.dt_old),
                             r.psi_0,
                             r.boxed,
                             static_cast<const double *>(c.tables[PS_TABLE_UNIT]),
                             static_cast<const double *>(c.tables[PS_TABLE_RESPONSE]),
                             c.scalars,
                             r.charged,
                             r.numbers,
                             r.history};
    const ps_status status = for_threads<block_threads>(
        blocks_for(nodes + box_rows, block_warps), r.stream, surface);

    return status != PS_OK
               ? status
               : for_threads<block_threads>(blocks_for(charges.results, block_warps),
                                            r.stream, SolveCharges{charges});
}

template <typename Real>
ps_status
walls_of(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const CylinderWalls<Real> walls = {
        grid_of<Real>(r),
        static_cast<Real>(c.wall[0]),
        static_cast<Real>(c.wall[1]),
        static_cast<Real>(c.wall[2]),
        static_cast<Real>(1 / (c.hx * c.hx)),
        static_cast<Real>(1 / (c.hy * c.hy)),
        static_cast<Real>(c.weight),
        static_cast<const Real *>(r.psi_old), /* the new psi and omega */
        static_cast<const Real *>(r.omega),
        static_cast<Real *>(r.omega_old),
        r.numbers,
        c.scalars,
        r.history,
        c.probes,
        static_cast<const int32_t *>(c.tables[PS_TABLE_PROBE_NODES]),
        static_cast<const double *>(c.tables[PS_TABLE_PROBE_WEIGHTS])};
    const int64_t body =
        (c.rows.last - c.rows.first + 1) * (c.columns.last - c.columns.first + 1);

    return for_threads<block_threads>(
        blocks_for(2 * (c.nx - 1) + body + c.probes, block_threads), r.stream, walls);
}

template <typename Real>
ps_status
forces_of(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const Forces<Real> forces = {
        grid_of<Real>(r),
        c.force_nodes,
        c.hx,
        c.hy,
        c.viscosity,
        c.dt,
        static_cast<const int32_t *>(c.tables[PS_TABLE_FORCE_NODES]),
        static_cast<const double *>(c.tables[PS_TABLE_FORCE_WEIGHTS]),
        static_cast<const Real *>(r.psi_old), /* the new psi and omega */
        static_cast<const Real *>(r.psi),
        static_cast<const Real *>(r.omega_old),
        static_cast<const Real *>(r.omega),
        r.sums,
        r.arrived,
        r.history};

    return for_threads<block_threads>(force_blocks, r.stream, forces);
}

template <typename Real>
cudaError_t
prepare_kernels()
{
    cudaError_t error = share_cache(threads_kernel<block_threads, SolveCharges>);

    error = error == cudaSuccess
                ? share_cache(threads_kernel<block_threads, Surface<Real>>)
                : error;
    error = error == cudaSuccess
                ? share_cache(threads_kernel<block_threads, CylinderWalls<Real>>)
                : error;
    return error == cudaSuccess ? share_cache(threads_kernel<block_threads, Forces<Real>>)
                                : error;
}

} // namespace

ps_status
ps_cuda_cylinder_prepare_body(const ps_cylinder *c)
{
    return with_real(c->dtype, [](auto real) {
        return ps_cuda_status(prepare_kernels<decltype(real)>());
    });
}

ps_status
ps_cuda_cylinder_charges(const CylinderRun &r)
{
    return with_real(r, [&](auto real) { return charges_of<decltype(real)>(r); });
}

ps_status
ps_cuda_cylinder_walls(const CylinderRun &r)
{
    return with_real(r, [&](auto real) { return walls_of<decltype(real)>(r); });
}

ps_status
ps_cuda_cylinder_forces(const CylinderRun &r)
{
    return with_real(r, [&](auto real) { return forces_of<decltype(real)>(r); });
}

} // namespace pysolvers::flow
