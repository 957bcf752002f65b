/* upwind.h - a new solver on the line algebra: a row source and a row sink, nothing else.
 *
 * Convection and diffusion u_t + a u_x + b u_y = nu (u_xx + u_yy) on a square of nodes
 * with fixed values on its sides: first order upwind differences and backward Euler
 * steps, along x and then along y. A row of a sweep with the velocity a along it is
 *
 *   -w u_{i-1} + (1 + w + e) u_i - e u_{i+1} = old u_i
 *   w = dt (nu/h^2 + max(a, 0)/h),  e = dt (nu/h^2 + max(-a, 0)/h)
 */
#include "isa/simd.h"
#include "lines/line.h"
#include "lines/field.h"
#include "runtime/tuning.h"

/* The inner nodes of the lines of a sweep. */
typedef struct {
    int64_t rows;
    field u, velocity;
    double courant, diffusion; /* dt/h, dt nu/h^2 */
} line_source;

PS_INLINE void
source_rows(const line_source *s, int64_t row, int count, int64_t tile, single_row *to)
{
    vec u[LANES], velocity[LANES], side;

    field_load(&s->u, row, count, tile, u);
    field_load(&s->velocity, row, count, tile, velocity);
    for (int r = 0; r < count; r++) {
        const vec flow = s->courant * velocity[r], size = abs_vec(flow);
        const vec west = s->diffusion + 0.5 * (size + flow);
        const vec east = s->diffusion + 0.5 * (size - flow);

        to[r] = (single_row){-west, 1 + west + east, -east, u[r]};
    }
    if (row == 0) {
        field_load(&s->u, -1, 1, tile, &side);
        to[0].rhs -= to[0].lower * side;
        to[0].lower = (vec){0};
    }
    if (row + count == s->rows) {
        field_load(&s->u, s->rows, 1, tile, &side);
        to[count - 1].rhs -= to[count - 1].upper * side;
        to[count - 1].upper = (vec){0};
    }
}

PS_INLINE void
source_put(const line_source *s, int64_t row, int count, int64_t tile, vec *x)
{
    field_store(&s->u, row, count, tile, x);
}

#include "lines/source.inc"

/* The sweep along an axis (0: x) of a field of nodes x nodes. */
static line_source
upwind_sweep(int axis, int64_t nodes, double *velocity, double *u, double dt, double nu)
{
    const double h = 1.0 / (double)(nodes - 1);
    const field of_u = {u + nodes + 1, axis == 0 ? 1 : nodes, axis == 0 ? nodes : 1,
                        nodes - 2};
    field of_velocity = of_u;

    of_velocity.at = velocity + nodes + 1;
    return (line_source){nodes - 2, of_u, of_velocity, dt / h, dt * nu / (h * h)};
}
