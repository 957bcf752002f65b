/* heat.c - implicit heat conduction in a rod, written in C.
 *
 * Prints the largest error against the exact factor of the slowest sine mode, and what the
 * functions say of a singular matrix.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <pysolvers_api.h>

enum { ROWS = 50, RODS = 7, STEPS = 20 };

static int
fail(const char *what, pysolvers_status status)
{
    fprintf(stderr, "%s: %s\n", what, pysolvers_status_text(status));
    return EXIT_FAILURE;
}

/* Steps with the matrix of one rod, factored once, for all rods. */
static pysolvers_status
run_rods(double r, double *u)
{
    const double off = -r, diag = 1 + 2 * r;
    const pysolvers_systems matrix = {
        .dtype = PYSOLVERS_F64,
        .rows = ROWS,
        .outer = 1,
        .inner = 1,
        .lower = {&off, 0, 0, 0},
        .diag = {&diag, 0, 0, 0},
        .upper = {&off, 0, 0, 0},
    };
    const pysolvers_input rhs = {u, 1, 0, ROWS};
    const pysolvers_output x = {u, 1, 0, ROWS};
    pysolvers_factors *factors;
    pysolvers_status status = pysolvers_factor(&matrix, NULL, &factors);

    for (int step = 0; step < STEPS && status == PYSOLVERS_OK; step++) {
        status = pysolvers_factor_solve(factors, 'N', 1, RODS, &rhs, &x, 1);
    }
    pysolvers_factor_free(factors);
    return status;
}

int
main(void)
{
    const double pi = acos(-1), r = 0.7, angle = pi / (ROWS + 1);
    const double factor = 1 / (1 + 4 * r * pow(sin(angle / 2), 2));
    double u[RODS * ROWS], error = 0;

    for (int k = 0; k < RODS; k++) {
        for (int i = 0; i < ROWS; i++) {
            u[k * ROWS + i] = (k + 1) * sin(angle * (i + 1));
        }
    }
    pysolvers_status status = run_rods(r, u);
    if (status != PYSOLVERS_OK) {
        return fail("steps", status);
    }
    for (int k = 0; k < RODS; k++) {
        for (int i = 0; i < ROWS; i++) {
            const double exact = (k + 1) * sin(angle * (i + 1)) * pow(factor, STEPS);

            error = fmax(error, fabs(u[k * ROWS + i] - exact));
        }
    }
    printf("error %.3e\n", error);

    double lower[4] = {0, 1, 0, 0}, diag[4] = {1, 1, 2, 4}, upper[4] = {1, 0, 0, 0};
    double x[4] = {1, 1, 2, 4};

    status = pysolvers_dsolve(2, 2, lower, diag, upper, x, x);
    printf("status %d, %.0f %.0f %.0f %.0f\n", (int)status, x[0], x[1], x[2], x[3]);
    return EXIT_SUCCESS;
}
