/* test_diffusion_least.c - ps_diffusion_least_add() on matrices whose eigenvalues are known. */
#include "check.h"

#include <math.h>

#include "ps_diffusion.h"

enum { SIZE = 60 };

/* Conjugate gradients for a diagonal matrix: hold the estimates to its least eigenvalue,
 * from above at each step and closely at the end. */
static void
check_matrix(const double *eigenvalue, double smallest, const char *name)
{
    double x[SIZE] = {0}, r[SIZE], p[SIZE] = {0}, rz = 0, beta = 0, before = INFINITY;
    ps_diffusion_least least = {0};

    for (int i = 0; i < SIZE; i++) {
        r[i] = sin(i + 1.0);
        rz += r[i] * r[i];
    }
    CHECK(isinf(ps_diffusion_least_of(&least)), "%s: before the first iteration", name);
    for (int step = 0; step < 3 * SIZE && rz > 1e-24; step++) {
        double pq = 0, next = 0;

        for (int i = 0; i < SIZE; i++) {
            p[i] = r[i] + beta * p[i];
            pq += p[i] * eigenvalue[i] * p[i];
        }
        const double alpha = rz / pq;
        for (int i = 0; i < SIZE; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * eigenvalue[i] * p[i];
            next += r[i] * r[i];
        }
        ps_diffusion_least_add(&least, alpha, beta);
        beta = next / rz;
        rz = next;
        const double now = ps_diffusion_least_of(&least);
        CHECK(now >= smallest * (1 - 1e-9), "%s: %g after %d steps", name, now, step + 1);
        CHECK(now <= before * (1 + 1e-12), "%s: %g after %g", name, now, before);
        before = now;
    }
    CHECK(before <= 1.3 * smallest, "%s: %g at the end, not %g", name, before, smallest);
}

int
main(void)
{
    double eigenvalue[SIZE];

    for (int i = 0; i < SIZE; i++) {
        eigenvalue[i] = 1 - 0.9 * i / (SIZE - 1);
    }
    check_matrix(eigenvalue, 0.1, "even");
    eigenvalue[17] = 1e-5;
    check_matrix(eigenvalue, 1e-5, "one is small");
    eigenvalue[0] = 400;
    eigenvalue[40] = 3e-4;
    check_matrix(eigenvalue, 1e-5, "two are small, one is large");
    for (int i = 0; i < SIZE; i++) {
        eigenvalue[i] = 2;
    }
    check_matrix(eigenvalue, 2, "all are equal");
    return report();
}
