/* staggered_stages.c - the explicit stages of a step on the staggered grid.
 *
 * predict   f = u + dt (lap u/Re - (u u)_x - (u v)_y + f_x), g likewise. With a = u_P + u_E and
 *           b = u_W + u_P,
 *
 *             4 h (u u)_x = a^2 - b^2 + gamma (|a| (u_P - u_E) - |b| (u_W - u_P)),
 *
 *           and the other three products likewise (Hirt, Nichols and Romero 1975;
 *           Griebel, Dornseifer and Neunhoeffer 1998, ch. 3)
 * source    q = (f_x + g_y)/dt
 * correct   u = f - dt p_x,  v = g - dt p_y
 *
 * Words read and written per cell: 4 (6 with a force), 3 and 6 (7 with the pressure
 * "given"). About 75, 6
 * and 12 operations. All loops are explicit: an element does not read new values of
 * other elements. Stable, for gamma = 0, if dt <= Re h^2/4 and dt <= 2/(Re (u^2 + v^2))
 * (Hindmarsh, Gresho and Griffiths 1984).
 */
#include "flow/staggered_stages.h"

#include <math.h>

#include "ps_staggered_clock.h"
#include "runtime/threads.h"

typedef struct {
    const ps_staggered *s;
    const ps_coloured *coloured;
    double gamma;
    double *rows;
} pass;

static double
largest(double a, double b)
{
    return a > b ? a : b;
}

/* 4 h times the difference of the flux of `c`, carried by the sums of velocities `out`
 * and `in` of two adjacent faces, between neighbours with the values before, c, after. */
static double
flux(double out, double in, double before, double c, double after, double gamma)
{
    const double central = out * (c + after) - in * (before + c);

    return central + gamma * (fabs(out) * (c - after) - fabs(in) * (before - c));
}

/* Add dt times the force to `count` faces of a row, the first of them at 1. */
static void
add_force(double *f, const double *force, double dt, int64_t count)
{
    for (int64_t i = 1; i <= count; i++) {
        f[i] += dt * force[i];
    }
}

static void
predict_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const a = self;
    const ps_staggered *const s = a->s;
    const int64_t n = s->cells, m = n + 2;
    const double inverse = (double)n, gamma = a->gamma, dt = s->clock[PS_CLOCK_DT];
    const double diffusion = dt * inverse * inverse / s->reynolds;
    const double convection = dt * inverse / 4;
    (void)thread;

    for (int64_t j = begin + 1; j <= end; j++) {
        const double *const u = s->u + j * m, *const v = s->v + j * m;
        double *const f = s->f + j * m, *const g = s->g + j * m;

        for (int64_t i = 1; i < n; i++) {
            const double c = u[i], east = u[i + 1], west = u[i - 1];
            const double north = u[i + m], south = u[i - m];
            const double uu = flux(c + east, west + c, west, c, east, gamma);
            const double uv =
                flux(v[i] + v[i + 1], v[i - m] + v[i + 1 - m], south, c, north, gamma);
            const double lap = ((east + west) + (north + south)) - 4 * c;

            f[i] = c + (diffusion * lap - convection * (uu + uv));
        }
        for (int64_t i = 1; j < n && i <= n; i++) {
            const double c = v[i], east = v[i + 1], west = v[i - 1];
            const double north = v[i + m], south = v[i - m];
            const double vv = flux(c + north, south + c, south, c, north, gamma);
            const double uv =
                flux(u[i] + u[i + m], u[i - 1] + u[i - 1 + m], west, c, east, gamma);
            const double lap = ((east + west) + (north + south)) - 4 * c;

            g[i] = c + (diffusion * lap - convection * (uv + vv));
        }
        if (s->force_x != NULL) {
            add_force(f, s->force_x + j * m, dt, n - 1);
            add_force(g, s->force_y + j * m, dt, j < n ? n : 0);
        }
    }
}

void
ps_staggered_predict(const ps_staggered *s, int threads)
{
    pass a = {.s = s, .gamma = ps_staggered_gamma(s)};

    ps_parallel_for(threads, s->cells, predict_rows, &a);
}

/* Index of cell (i, j) of a coloured field with N = n. */
static int64_t
place(const ps_coloured *c, int64_t n, int64_t i, int64_t j)
{
    return c->interleaved ? j * 2 * c->pitch + i
                          : (((i + j) % 2) * (n + 2) + j) * c->pitch + i / 2;
}

static void
source_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const a = self;
    const ps_staggered *const s = a->s;
    const int64_t n = s->cells, m = n + 2;
    const double scale = (double)n / s->clock[PS_CLOCK_DT];
    (void)thread;

    for (int64_t j = begin + 1; j <= end; j++) {
        const double *const f = s->f + j * m, *const g = s->g + j * m;

        for (int64_t i = 1; i <= n; i++) {
            const double q = scale * ((f[i] - f[i - 1]) + (g[i] - g[i - m]));

            if (a->coloured == NULL) {
                s->q[(j - 1) * n + i - 1] = q;
            }
            else {
                a->coloured->data[place(a->coloured, n, i, j)] = -q;
            }
        }
    }
}

void
ps_staggered_source(const ps_staggered *s, const ps_coloured *source, int threads)
{
    pass a = {.s = s, .coloured = source};

    ps_parallel_for(threads, s->cells, source_rows, &a);
}

static void
colour_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const a = self;
    const int64_t n = a->s->cells;
    (void)thread;

    for (int64_t j = begin + 1; j <= end; j++) {
        for (int64_t i = 1; i <= n; i++) {
            a->coloured->data[place(a->coloured, n, i, j)] = a->s->p[(j - 1) * n + i - 1];
        }
    }
}

static void
uncolour_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const a = self;
    const int64_t n = a->s->cells;
    (void)thread;

    for (int64_t j = begin + 1; j <= end; j++) {
        for (int64_t i = 1; i <= n; i++) {
            a->s->p[(j - 1) * n + i - 1] = a->coloured->data[place(a->coloured, n, i, j)];
        }
    }
}

void
ps_staggered_colour(const ps_staggered *s, const ps_coloured *p, int threads)
{
    pass a = {.s = s, .coloured = p};

    ps_parallel_for(threads, s->cells, colour_rows, &a);
}

void
ps_staggered_uncolour(const ps_staggered *s, const ps_coloured *p, int threads)
{
    pass a = {.s = s, .coloured = p};

    ps_parallel_for(threads, s->cells, uncolour_rows, &a);
}

/* Values of one row: largest |u| (with the ghost above the lid), largest |v|, largest
 * change. A value that is not finite makes all of them NaN: x - x is 0 for finite x
 * only. */
static void
correct_row(const pass *a, int64_t j)
{
    const ps_staggered *const s = a->s;
    const int64_t n = s->cells, m = n + 2;
    double *const u = s->u + j * m, *const v = s->v + j * m;
    const double *const f = s->f + j * m, *const g = s->g + j * m;
    const double *const p = s->p + (j - 1) * n - 1; /* p[i] is cell (i, j) */
    const double factor = s->clock[PS_CLOCK_DT] * (double)n;
    double u_most = 0, v_most = 0, change = 0, not_finite = 0;

    for (int64_t i = 1; i < n; i++) {
        const double now = f[i] - factor * (p[i + 1] - p[i]);

        change = largest(fabs(now - u[i]), change);
        u_most = largest(fabs(now), u_most);
        not_finite += now - now;
        u[i] = now;
    }
    for (int64_t i = 1; j < n && i <= n; i++) {
        const double now = g[i] - factor * (p[i + n] - p[i]);

        change = largest(fabs(now - v[i]), change);
        v_most = largest(fabs(now), v_most);
        not_finite += now - now;
        v[i] = now;
    }
    v[0] = -v[1];
    v[n + 1] = -v[n];
    for (int64_t i = 0; j == 1 && i <= n; i++) {
        u[i - m] = -u[i];
    }
    for (int64_t i = 0; j == n && i <= n; i++) {
        u[i + m] = 2 * s->lid - u[i];
        u_most = largest(fabs(u[i + m]), u_most);
    }
    a->rows[3 * (j - 1)] = u_most + not_finite;
    a->rows[3 * (j - 1) + 1] = v_most + not_finite;
    a->rows[3 * (j - 1) + 2] = change + not_finite;
}

static void
correct_rows(void *self, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t j = begin + 1; j <= end; j++) {
        correct_row(self, j);
    }
}

/* The maximum over rows; a NaN remains. */
static double
largest_of_rows(const double *rows, int64_t n)
{
    double found = 0;

    for (int64_t j = 0; j < n; j++) {
        found = found >= rows[3 * j] || isnan(found) ? found : rows[3 * j];
    }
    return found;
}

void
ps_staggered_correct(const ps_staggered *s, double *rows, int threads)
{
    double *const clock = s->clock;
    pass a = {.s = s, .rows = rows};

    ps_parallel_for(threads, s->cells, correct_rows, &a);
    clock[PS_CLOCK_U] = largest_of_rows(rows, s->cells);
    clock[PS_CLOCK_V] = largest_of_rows(rows + 1, s->cells);
    clock[PS_CLOCK_CHANGE] = largest_of_rows(rows + 2, s->cells) / clock[PS_CLOCK_DT];
    clock[PS_CLOCK_TIME] = clock[PS_CLOCK_NEXT];
    clock[PS_CLOCK_STEPS] += 1;
}
