/* cavity_stencils.c - local steps, wall vorticity and residuals of the cavity.
 *
 * All these computations are explicit: one pass over the field or its walls, in which a
 * node does not read new values of other nodes.
 */
#include "flow/cavity_stencils.h"

#include <math.h>

#include "ps_cavity_math.h"
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

/* One wall: `corner` is the offset of its corner, `along` that to its next node,
 * `inward` that to the interior node. */
static void
relax_wall(const pass *p, int64_t corner, int64_t along, int64_t inward, double speed)
{
    const ps_cavity *const c = p->c;
    const double h = 1.0 / (double)(c->nodes - 1), weight = ps_cavity_wall_weight(c, h);

    for (int64_t k = 1; k < c->nodes - 1; k++) {
        const int64_t w = corner + k * along, inner = w + inward;
        const double target = ps_cavity_wall(c->wall, h, speed, p->psi[inner],
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
            const ps_cavity_residual r =
                ps_cavity_residual_at(psi + i, w + i, n, inverse, nu);

            psi_sum += r.poisson * r.poisson;
            omega_sum += r.transport * r.transport;
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
