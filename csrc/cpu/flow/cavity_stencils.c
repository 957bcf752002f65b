/* cavity_stencils.c - local steps, wall vorticity and residuals of the cavity.
 *
 * All these computations are explicit: one pass over the field or its walls, in which a
 * node does not read new values of other nodes.
 */
#include "flow/cavity_stencils.h"

#include <math.h>

#include "runtime/threads.h"

typedef struct {
    const ps_cavity *c;
    const double *psi, *omega;
    double *out; /* the local steps, or the sums of rows */
} pass;

/* The velocities are constant during a step, so their reaction to a change of omega is
 * explicit. Its rate is about h |grad omega|, which is large below the lid and especially
 * in its corners. The local step is dt / (1 + dt rate). */
static void
row_steps(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;
    const int64_t n = p->c->nodes;
    const double step = p->c->step;
    (void)thread;

    for (int64_t j = begin + 1; j <= end; j++) {
        const double *const w = p->omega + j * n;
        double *const local = p->out + j * n;

        for (int64_t i = 1; i < n - 1; i++) {
            const double rate = fabs(w[i + 1] - w[i - 1]) + fabs(w[i + n] - w[i - n]);

            local[i] = step / (1 + step * rate);
        }
    }
}

void
ps_cavity_local_steps(const ps_cavity *c, const double *omega, double *step, int threads)
{
    pass p = {c, NULL, omega, step};

    ps_parallel_for(threads, c->nodes - 2, row_steps, &p);
}

static double
wall_formula(ps_wall wall, double h, double speed, double psi1, double psi2,
             double omega1)
{
    switch (wall) {
    case PS_WALL_THOM:
        return -2 * psi1 / (h * h) - 2 * speed / h;
    case PS_WALL_WOODS:
        return -3 * psi1 / (h * h) - omega1 / 2 - 3 * speed / h;
    default:
        return -(8 * psi1 - psi2) / (2 * h * h) - 3 * speed / h;
    }
}

/* A change of omega on a wall diffuses over the distance sqrt(dt nu) within a step and
 * acts back on the wall through psi with the factor -2 sqrt(dt nu)/h. The weight
 * compensates for this. */
static double
wall_weight(const ps_cavity *c, double h)
{
    return c->scheme == PS_SCHEME_ADI ? 1 / (1 + 2 * sqrt(c->step * c->viscosity) / h)
                                      : 1;
}

/* One wall: `corner` is the offset of its corner, `along` that to its next node,
 * `inward` that to the interior node. */
static void
relax_wall(const pass *p, int64_t corner, int64_t along, int64_t inward, double speed)
{
    const ps_cavity *const c = p->c;
    const double h = 1.0 / (double)(c->nodes - 1), weight = wall_weight(c, h);

    for (int64_t k = 1; k < c->nodes - 1; k++) {
        const int64_t w = corner + k * along, inner = w + inward;
        const double target = wall_formula(c->wall, h, speed, p->psi[inner],
                                           p->psi[inner + inward], p->out[inner]);

        p->out[w] += weight * (target - p->out[w]);
    }
}

void
ps_cavity_relax_walls(const ps_cavity *c, const double *psi, double *omega)
{
    const int64_t n = c->nodes;
    const pass p = {c, psi, NULL, omega};

    relax_wall(&p, 0, 1, n, 0);
    relax_wall(&p, (n - 1) * n, 1, -n, c->lid);
    relax_wall(&p, 0, n, 1, 0);
    relax_wall(&p, n - 1, n, -1, 0);
}

static void
row_residuals(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;
    const int64_t n = p->c->nodes;
    const double inverse = (double)((n - 1) * (n - 1)), nu = p->c->viscosity;
    (void)thread;

    for (int64_t j = begin + 1; j <= end; j++) {
        const double *const psi = p->psi + j * n, *const w = p->omega + j * n;
        double psi_sum = 0, omega_sum = 0;

        for (int64_t i = 1; i < n - 1; i++) {
            const double psi_x = psi[i + 1] - psi[i - 1], psi_y = psi[i + n] - psi[i - n];
            const double omega_x = w[i + 1] - w[i - 1], omega_y = w[i + n] - w[i - n];
            const double lap_psi =
                (psi[i + 1] + psi[i - 1]) + (psi[i + n] + psi[i - n]) - 4 * psi[i];
            const double lap_omega =
                (w[i + 1] + w[i - 1]) + (w[i + n] + w[i - n]) - 4 * w[i];
            const double poisson = inverse * lap_psi + w[i];
            const double convection = inverse / 4 * (psi_y * omega_x - psi_x * omega_y);
            const double transport = nu * inverse * lap_omega - convection;

            psi_sum += poisson * poisson;
            omega_sum += transport * transport;
        }
        p->out[2 * j] = psi_sum;
        p->out[2 * j + 1] = omega_sum;
    }
}

void
ps_cavity_residuals(const ps_cavity *c, const double *psi, const double *omega,
                    double *rows, int threads, double *psi_residual,
                    double *omega_residual)
{
    const int64_t interior = c->nodes - 2;
    const double nodes = (double)(interior * interior);
    double psi_sum = 0, omega_sum = 0;
    pass p = {c, psi, omega, rows};

    ps_parallel_for(threads, interior, row_residuals, &p);
    for (int64_t j = 1; j <= interior; j++) {
        psi_sum += rows[2 * j];
        omega_sum += rows[2 * j + 1];
    }
    *psi_residual = sqrt(psi_sum / nodes);
    *omega_residual = sqrt(omega_sum / nodes);
}
