/* diffusion_least.c - the least eigenvalue that conjugate gradients find, for all backends.
 *
 * L and v are those of ps_diffusion.h. L has sqrt(1/alpha) on its diagonal and
 * sqrt(beta/alpha before) below it. A new row of L^-1 is therefore -sqrt(beta alpha/alpha
 * before) times the last one, followed by sqrt(alpha). The new v is the combination of v
 * and this row, with factors whose squares have the sum 1, that is longest.
 */
#include <math.h>

#include "ps_diffusion.h"

void
ps_diffusion_least_add(ps_diffusion_least *least, double alpha, double beta)
{
    if (least->alpha == 0) {
        *least = (ps_diffusion_least){alpha, alpha, alpha, alpha};
        return;
    }
    const double share = beta * alpha / least->alpha;
    const double row = alpha + share * least->row;
    const double product = -sqrt(share) * least->product;
    const double half = 0.5 * (least->inverse - row);
    const double inverse =
        0.5 * (least->inverse + row) + sqrt(half * half + product * product);
    /* The factors of v and of the row, an eigenvector of their products. */
    double old = product, added = inverse - least->inverse;
    const double size = sqrt(old * old + added * added);

    old = size > 0 ? old / size : 1;
    added = size > 0 ? added / size : 0;
    *least = (ps_diffusion_least){inverse, old * product + added * row, row, alpha};
}

double
ps_diffusion_least_of(const ps_diffusion_least *least)
{
    return 1 / least->inverse;
}
