/* diffusion_combine.c - the combination of the fields of a basis, for all backends. */
#include <math.h>

#include "ps_diffusion.h"

void
ps_diffusion_combine(const ps_diffusion *d, double g[][PS_DIFFUSION_BASIS + 1], double *y)
{
    const int n = d->fields;
    /* Smaller pivots, in multiples of their entry on the diagonal, are rounding errors of
     * fields of this dtype. */
    const double least = d->dtype == PS_F32 ? 0x1p-17 : 0x1p-40;

    for (int i = 0; i < n; i++) {
        double pivot = g[i][i], right = g[i][i + 1];
        const double size = pivot;

        for (int j = 0; j < i; j++) {
            double v = g[i][j];

            for (int k = 0; k < j; k++) {
                v -= g[i][k] * g[j][k];
            }
            g[i][j] = v = g[j][j] > 0 ? v / g[j][j] : 0;
            pivot -= v * v;
            right -= v * y[j];
        }
        g[i][i] = pivot > least * size ? sqrt(pivot) : 0;
        y[i] = g[i][i] > 0 ? right / g[i][i] : 0;
    }
    for (int i = n - 1; i >= 0; i--) {
        double v = y[i];

        for (int k = i + 1; k < n; k++) {
            v -= g[k][i] * y[k];
        }
        y[i] = g[i][i] > 0 ? v / g[i][i] : 0;
    }
    for (int i = 0; i < n; i++) {
        y[i] = isfinite(y[i]) ? y[i] : 0;
    }
}
