/* cavity_lines.c - row sources and row sinks of the half-sweeps of the cavity.
 *
 * No coefficient is stored: every row is computed from the stencil when the line solver
 * requests it. Neighbours along x are contiguous in memory, so a function of rows
 * always runs along x: over the rows of one line if the lines run along x, over the
 * lanes of one row if they run along y.
 */
#include "flow/cavity_lines.h"

ps_sweep
ps_sweep_along(int axis, int64_t nodes, double viscosity)
{
    return (ps_sweep){
        .nodes = nodes,
        .along = axis == 0 ? 1 : nodes,
        .across = axis == 0 ? nodes : 1,
        .swirl = axis == 0 ? 1.0 : -1.0,
        .spacing = 1.0 / (double)(nodes - 1),
        .viscosity = viscosity,
    };
}

/* Offset of row `row` of line `line`; both count interior nodes from 0. */
static int64_t
node_at(const ps_sweep *s, int64_t line, int64_t row)
{
    return (line + 1) * s->across + (row + 1) * s->along;
}

/* The first and the last row have no unknown on one side: the value on the wall is
 * moved to the right-hand side. */
static void
take_walls(const ps_sweep *s, int64_t p, int64_t row, double *const *at)
{
    if (row == 0) {
        *at[PS_RHS] -= *at[PS_LOWER] * s->walls[p - s->along];
    }
    if (row == s->nodes - 3) {
        *at[PS_RHS] -= *at[PS_UPPER] * s->walls[p + s->along];
    }
}

static void
rows_along_x(const void *self, int64_t first, int lanes, int width, int64_t row,
             int count, void *block)
{
    const ps_sweep *const s = self;

    for (int v = 0; v < lanes; v++) {
        double *const line = (double *)block + v * PS_BLOCK_ROWS;
        double *const at[PS_WORDS] = {line, line + width * PS_BLOCK_ROWS,
                                      line + 2 * width * PS_BLOCK_ROWS,
                                      line + 3 * width * PS_BLOCK_ROWS};
        const int64_t p = node_at(s, first + v, row);

        s->rows(s, p, count, at);
        if (s->walls != NULL) {
            double *const last[PS_WORDS] = {at[0] + count - 1, at[1] + count - 1,
                                            at[2] + count - 1, at[3] + count - 1};
            if (count > 1) {
                take_walls(s, p, row, at);
            }
            take_walls(s, p + count - 1, row + count - 1, last);
        }
    }
}

static void
rows_along_y(const void *self, int64_t first, int lanes, int width, int64_t row,
             int count, void *block)
{
    const ps_sweep *const s = self;
    const int word = PS_BLOCK_ROWS * width;

    for (int r = 0; r < count; r++) {
        double *const row_of = (double *)block + r * width;
        double *const at[PS_WORDS] = {row_of, row_of + word, row_of + 2 * word,
                                      row_of + 3 * word};
        const int64_t p = node_at(s, first, row + r);
        const int edge = row + r == 0 || row + r == s->nodes - 3;

        s->rows(s, p, lanes, at);
        for (int v = 0; edge && s->walls != NULL && v < lanes; v++) {
            double *const lane[PS_WORDS] = {at[0] + v, at[1] + v, at[2] + v, at[3] + v};
            take_walls(s, p + v, row + r, lane);
        }
    }
}

static void
put_nodes(const ps_sweep *s, int64_t p, int count, const double *x)
{
    double *const to = s->x + p;

    if (s->increment) {
        for (int k = 0; k < count; k++) {
            to[k] += x[k];
        }
    }
    else {
        for (int k = 0; k < count; k++) {
            to[k] = x[k];
        }
    }
}

static void
put_along_x(void *self, int64_t first, int lanes, int width, int64_t row, int count,
            const void *x)
{
    const ps_sweep *const s = self;
    (void)width;

    for (int v = 0; v < lanes; v++) {
        put_nodes(s, node_at(s, first + v, row), count,
                  (const double *)x + v * PS_BLOCK_ROWS);
    }
}

static void
put_along_y(void *self, int64_t first, int lanes, int width, int64_t row, int count,
            const void *x)
{
    const ps_sweep *const s = self;

    for (int r = 0; r < count; r++) {
        put_nodes(s, node_at(s, first, row + r), lanes, (const double *)x + r * width);
    }
}

ps_lines
ps_sweep_lines(ps_sweep *s)
{
    const int along_x = s->along == 1;

    return (ps_lines){
        .dtype = PS_F64,
        .rows = s->nodes - 2,
        .systems = s->nodes - 2,
        .source = {s, along_x, along_x ? rows_along_x : rows_along_y},
        .sink = {s, along_x, along_x ? put_along_x : put_along_y},
    };
}

void
ps_omega_first_rows(const ps_sweep *s, int64_t p, int count, double *const *row)
{
    const int64_t e = s->along, n = s->across;
    const double *const psi = s->psi + p, *const w = s->omega + p;
    double *restrict lower = row[PS_LOWER], *restrict diag = row[PS_DIAG];
    double *restrict upper = row[PS_UPPER], *restrict rhs = row[PS_RHS];
    const double *const step = s->step + p;
    const double h2 = s->spacing * s->spacing;
    const double diffusivity = s->viscosity / h2, swirl = s->swirl / (4 * h2);

    for (int k = 0; k < count; k++) {
        const double diffusion = step[k] * diffusivity, convection = step[k] * swirl;
        const double along = convection * (psi[k + n] - psi[k - n]);
        const double across = -convection * (psi[k + e] - psi[k - e]);

        lower[k] = -(diffusion + along);
        diag[k] = 1 + 2 * diffusion;
        upper[k] = along - diffusion;
        rhs[k] = diffusion * ((w[k + e] + w[k - e]) + (w[k + n] + w[k - n]) - 4 * w[k]) -
                 along * (w[k + e] - w[k - e]) - across * (w[k + n] - w[k - n]);
    }
}

void
ps_omega_second_rows(const ps_sweep *s, int64_t p, int count, double *const *row)
{
    const int64_t n = s->across;
    const double *const psi = s->psi + p, *const half = s->half + p;
    double *restrict lower = row[PS_LOWER], *restrict diag = row[PS_DIAG];
    double *restrict upper = row[PS_UPPER], *restrict rhs = row[PS_RHS];
    const double *const step = s->step + p;
    const double h2 = s->spacing * s->spacing;
    const double diffusivity = s->viscosity / h2, swirl = s->swirl / (4 * h2);

    for (int k = 0; k < count; k++) {
        const double diffusion = step[k] * diffusivity, convection = step[k] * swirl;
        const double along = convection * (psi[k + n] - psi[k - n]);

        lower[k] = -(diffusion + along);
        diag[k] = 1 + 2 * diffusion;
        upper[k] = along - diffusion;
        rhs[k] = half[k];
    }
}

void
ps_psi_rows(const ps_sweep *s, int64_t p, int count, double *const *row)
{
    const int64_t n = s->across;
    const double *const old = s->half + p, *const w = s->omega + p;
    double *restrict lower = row[PS_LOWER], *restrict diag = row[PS_DIAG];
    double *restrict upper = row[PS_UPPER], *restrict rhs = row[PS_RHS];
    const double r = s->shift, h2 = s->spacing * s->spacing;

    for (int k = 0; k < count; k++) {
        lower[k] = -1;
        diag[k] = 2 + r;
        upper[k] = -1;
        rhs[k] = (r - 2) * old[k] + (old[k + n] + old[k - n]) + h2 * w[k];
    }
}

void
ps_jacobi_psi_rows(const ps_sweep *s, int64_t p, int count, double *const *row)
{
    const int64_t n = s->across;
    const double *const old = s->half + p, *const w = s->omega + p;
    double *restrict lower = row[PS_LOWER], *restrict diag = row[PS_DIAG];
    double *restrict upper = row[PS_UPPER], *restrict rhs = row[PS_RHS];
    const double h2 = s->spacing * s->spacing;

    for (int k = 0; k < count; k++) {
        lower[k] = -1;
        diag[k] = 4;
        upper[k] = -1;
        rhs[k] = (old[k + n] + old[k - n]) + h2 * w[k];
    }
}

void
ps_jacobi_omega_rows(const ps_sweep *s, int64_t p, int count, double *const *row)
{
    const int64_t e = s->along, n = s->across;
    const double *const psi = s->psi + p, *const w = s->omega + p;
    double *restrict lower = row[PS_LOWER], *restrict diag = row[PS_DIAG];
    double *restrict upper = row[PS_UPPER], *restrict rhs = row[PS_RHS];
    const double convection = s->swirl / (4 * s->viscosity); /* h/(2 nu) times 1/(2 h) */

    for (int k = 0; k < count; k++) {
        const double along = convection * (psi[k + n] - psi[k - n]);
        const double across = -convection * (psi[k + e] - psi[k - e]);

        lower[k] = -(1 + along);
        diag[k] = 4;
        upper[k] = along - 1;
        rhs[k] = (1 - across) * w[k + n] + (1 + across) * w[k - n];
    }
}
