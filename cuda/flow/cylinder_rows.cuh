/* cylinder_rows.cuh - the rows of the lines of the cylinder, for line_sweep.cuh.
 *
 * A node of the body has the row of the identity. The formulas are those of
 * pysolvers/flow/cylinder/_steps.py; half is the right side of the second half step,
 * 2 w* minus the right side of the first one.
 */
#ifndef PS_CUDA_FLOW_CYLINDER_ROWS_CUH
#define PS_CUDA_FLOW_CYLINDER_ROWS_CUH

#include "flow/cylinder_grid.cuh"
#include "flow/line_sweep.cuh"

namespace pysolvers::flow {

/* The numbers of the half steps and of the factors of the steady step. */
template <typename Real> struct OmegaLines {
    using Number = Real;

    CylinderGrid<Real> grid;
    Real along_x, along_y; /* nu dt/h^2, with the length dt of the (half) step */
    Real swirl;            /* dt/(4 hx hy) */
    Real share;            /* dt/(2 dt_old) of the whole step; 0 if steady */
    const Real *psi, *psi_old, *omega;
    Real *half;
    Real *new_omega; /* contains omega one step before until it is written */

    /* psi at the middle of the step. */
    __device__ __forceinline__ Real star(int p) const
    {
        return psi[p] + share * (psi[p] - psi_old[p]);
    }

    /* Velocities times dt/(2 h). */
    __device__ __forceinline__ Real speed_x(int p) const
    {
        return swirl * (star(p + grid.nx) - star(p - grid.nx));
    }

    __device__ __forceinline__ Real speed_y(int p) const
    {
        return swirl * (star(p - 1) - star(p + 1));
    }

    /* omega on a wall or on the body at the middle of the step. */
    __device__ __forceinline__ Real held(int p) const
    {
        return omega[p] + share * (omega[p] - new_omega[p]);
    }

    /* On the body the identity: without diffusion, and the speed is 0. */
    static __device__ __forceinline__ Row<Real> row_of(bool is_body, Real diffusion,
                                                       Real speed, Real rhs)
    {
        diffusion = is_body ? Real(0) : diffusion;
        return {-(diffusion + speed), 1 + 2 * diffusion, speed - diffusion, rhs};
    }

    /* omega of the right side at a node; `plain` if it is not held. */
    __device__ __forceinline__ Real source(int p, int row, int column, bool plain) const
    {
        const bool is_held =
            !plain && (row == 0 || row == grid.ny - 1 || grid.in_body(row, column));

        return is_held ? held(p) : omega[p];
    }

    /* Whether no node of a row or of its neighbours is held. */
    __device__ __forceinline__ bool is_plain_row(int row) const
    {
        return row > 1 && row < grid.ny - 2 &&
               (row < grid.row_0 - 1 || row > grid.row_1 + 1);
    }

    __device__ __forceinline__ bool is_plain_column(int column) const
    {
        return column < grid.column_0 || column > grid.column_1;
    }

    __device__ __forceinline__ void adjust(int, int, int, Real *) const
    {
    }

    __device__ __forceinline__ void other(int64_t) const
    {
    }
};

/* (1 + dt/2 (u delta_x - nu delta_xx)) w* = (1 - dt/2 (v delta_y - nu delta_yy)) w, and
 * psi and omega at the outlet: omega is convected by u, psi by 1, with the scheme of
 * Warming and Beam. */
template <typename Real> struct HalfStepX : OmegaLines<Real> {
    static constexpr int words = 2, solution = 1, batch = 4;
    using Base = OmegaLines<Real>;
    using Base::grid, Base::omega, Base::psi, Base::along_x, Base::along_y;

    Real courant;   /* dt/hx */
    Real courant_u; /* dt/(2 hx hy) */
    Real *outlet;
    ps_cylinder box; /* for the flux of vorticity: hx, hy, viscosity and ranges */
    double *numbers;

    static __device__ __forceinline__ Real convected(const Real *at, Real c)
    {
        const Real last = at[0], near = at[-1], far = at[-2];

        return last - c / 2 * (3 * last - 4 * near + far) +
               c * c / 2 * (last - 2 * near + far);
    }

    /* omega at the outlet after the step; p is a node of the outlet. */
    __device__ __forceinline__ Real omega_at_outlet(int p) const
    {
        const Real u = this->star(p + grid.nx) - this->star(p - grid.nx);

        return convected(omega + p, courant_u * u);
    }

    /* What the neighbours at the inlet and at the outlet add to the right side. */
    __device__ __forceinline__ Real from_ends(int p, int column, Real a) const
    {
        Real more = 0;

        if (column == 1) {
            more += (along_x + a) * omega[p - 1];
        }
        if (column == grid.nx - 2) {
            more += (along_x - a) * (omega[p + 1] + omega_at_outlet(p + 1)) / 2;
        }
        return more;
    }

    __device__ __forceinline__ bool is_plain(int row) const
    {
        return this->is_plain_row(row);
    }

    __device__ __forceinline__ void node(int p, int row, int column, bool plain,
                                         Real *word) const
    {
        const bool is_body = !plain && grid.in_body(row, column);
        const Real a = this->speed_x(p), b = this->speed_y(p);
        const Real here = this->source(p, row, column, plain);
        const Real north = this->source(p + grid.nx, row + 1, column, plain);
        const Real south = this->source(p - grid.nx, row - 1, column, plain);
        const Real all =
            (1 - 2 * along_y) * here - (b - along_y) * north + (b + along_y) * south;

        word[0] = is_body ? here : all;
        word[1] = is_body ? Real(0) : a;
    }

    __device__ __forceinline__ void adjust(int p, int, int column, Real *word) const
    {
        if (column == 1 || column == grid.nx - 2) {
            word[0] += from_ends(p, column, word[1]);
        }
    }

    __device__ __forceinline__ Row<Real> row(int line, int column, const Real *word) const
    {
        return Base::row_of(grid.in_body(line, column), along_x, word[1], word[0]);
    }

    __device__ __forceinline__ void store(int p, int row, int column, bool unknown,
                                          Real x, const Real *word) const
    {
        if (unknown) {
            const bool is_end = column == 1 || column == grid.nx - 2;
            const Real rhs =
                is_end ? word[0] - from_ends(p, column, this->speed_x(p)) : word[0];

            this->half[p] = 2 * x - rhs;
        }
    }

    /* Block 0: the rate of change of the circulation around the box; block 1: the
     * outlet. */
    static constexpr int others = 2;

    __device__ __forceinline__ void other(int64_t block) const
    {
        if (block == 0) {
            change_circulation();
            return;
        }
        for (int row = 1 + static_cast<int>(threadIdx.x); row < grid.ny - 1;
             row += static_cast<int>(blockDim.x)) {
            const int p = (row + 1) * grid.nx - 1;

            outlet[row] = convected(psi + p, courant);
            this->new_omega[p] = omega_at_outlet(p);
        }
    }

    __device__ __forceinline__ void change_circulation() const
    {
        const int j0 = static_cast<int>(box.box_rows.first);
        const int j1 = static_cast<int>(box.box_rows.last);
        const int i0 = static_cast<int>(box.box_columns.first);
        const int i1 = static_cast<int>(box.box_columns.last);
        const int64_t nx = grid.nx;
        double total = 0;

        for (int j = j0 + static_cast<int>(threadIdx.x); j <= j1;
             j += static_cast<int>(blockDim.x)) {
            total += box.hy * (flux(j * nx + i1, 1, nx, box.hx, box.hy) -
                               flux(j * nx + i0 - 1, 1, nx, box.hx, box.hy));
        }
        for (int i = i0 + static_cast<int>(threadIdx.x); i <= i1;
             i += static_cast<int>(blockDim.x)) {
            total += box.hx * (flux(j1 * nx + i, nx, -1, box.hy, box.hx) -
                               flux((j0 - 1) * nx + i, nx, -1, box.hy, box.hx));
        }
        total = sum_of_block(total);
        if (threadIdx.x == 0) {
            numbers[STEP_RATE] = total;
        }
    }

    /* The vorticity that enters through the face between the nodes p and p + normal; the
     * velocity along the normal is the derivative of psi towards p + aside. */
    __device__ __forceinline__ double flux(int64_t p, int64_t normal, int64_t aside,
                                           double across, double along) const
    {
        const int64_t q = p + normal;
        const double speed = (static_cast<double>(psi[p + aside]) - psi[p - aside] +
                              psi[q + aside] - psi[q - aside]) /
                             (4 * along);
        const double w_0 = omega[p], w_1 = omega[q];

        return box.viscosity * (w_1 - w_0) / across - speed * (w_0 + w_1) / 2;
    }
};

/* Lines along y, whose right-hand side is `half`. */
template <typename Real> struct OmegaColumns : OmegaLines<Real> {
    static constexpr int words = 2, solution = 0, batch = 4;
    using Base = OmegaLines<Real>;
    using Base::grid;

    __device__ __forceinline__ bool is_plain(int column) const
    {
        return this->is_plain_column(column);
    }

    __device__ __forceinline__ void node(int p, int column, int row, bool plain,
                                         Real *word) const
    {
        const Real b = this->speed_y(p);

        word[0] = this->half[p];
        word[1] = !plain && grid.in_body(row, column) ? Real(0) : b;
    }
};

/* (1 + dt/2 (v delta_y - nu delta_yy)) w[n+1] = half */
template <typename Real> struct HalfStepY : OmegaColumns<Real> {
    using Base = OmegaColumns<Real>;
    using Base::grid, Base::along_y;

    __device__ __forceinline__ void adjust(int p, int, int row, Real *word) const
    {
        if (row == 1) {
            word[0] += (along_y + word[1]) * this->held(p - grid.nx);
        }
        if (row == grid.ny - 2) {
            word[0] += (along_y - word[1]) * this->held(p + grid.nx);
        }
    }

    __device__ __forceinline__ Row<Real> row(int line, int at, const Real *word) const
    {
        return Base::row_of(grid.in_body(at, line), along_y, word[1], word[0]);
    }

    __device__ __forceinline__ void store(int p, int, int, bool unknown, Real x,
                                          const Real *) const
    {
        if (unknown) {
            this->new_omega[p] = x;
        }
    }
};

/* (1 + dt (u delta_x - nu delta_xx)) D* = dt (nu lap w - u delta_x w - v delta_y w), with
 * zero gradient of D* at the outlet. */
template <typename Real> struct IncrementX : OmegaLines<Real> {
    static constexpr int words = 2, solution = 0, batch = 4;
    using Base = OmegaLines<Real>;
    using Base::grid, Base::omega, Base::along_x, Base::along_y;

    __device__ __forceinline__ bool is_plain(int row) const
    {
        return this->is_plain_row(row);
    }

    __device__ __forceinline__ void node(int p, int row, int column, bool plain,
                                         Real *word) const
    {
        const bool is_body = !plain && grid.in_body(row, column);
        const Real a = this->speed_x(p), b = this->speed_y(p);
        const Real all = -2 * (along_x + along_y) * omega[p] +
                         (along_x + a) * omega[p - 1] + (along_x - a) * omega[p + 1] +
                         (along_y + b) * omega[p - grid.nx] +
                         (along_y - b) * omega[p + grid.nx];

        word[0] = is_body ? Real(0) : all;
        word[1] = is_body ? Real(0) : a;
    }

    __device__ __forceinline__ Row<Real> row(int line, int column, const Real *word) const
    {
        Row<Real> found =
            Base::row_of(grid.in_body(line, column), along_x, word[1], word[0]);

        if (column == grid.nx - 2) {
            found.diag += found.upper;
        }
        return found;
    }

    __device__ __forceinline__ void store(int p, int, int, bool unknown, Real x,
                                          const Real *) const
    {
        if (unknown) {
            this->half[p] = x;
        }
    }
};

/* (1 + dt (v delta_y - nu delta_yy)) D = D*, w + D; the gradient at the outlet is zero.
 */
template <typename Real> struct IncrementY : OmegaColumns<Real> {
    using Base = OmegaColumns<Real>;
    using Base::grid, Base::along_y;

    __device__ __forceinline__ Row<Real> row(int line, int at, const Real *word) const
    {
        return Base::row_of(grid.in_body(at, line), along_y, word[1], word[0]);
    }

    __device__ __forceinline__ void store(int p, int column, int, bool unknown, Real x,
                                          const Real *) const
    {
        if (unknown) {
            const Real sum = this->omega[p] + x;

            this->new_omega[p] = sum;
            if (column == grid.nx - 2) {
                this->new_omega[p + 1] = sum;
            }
        }
    }
};

} // namespace pysolvers::flow

#endif
