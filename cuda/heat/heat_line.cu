/* heat_line.cu - the constants of heat_line.h.
 */
#include <math.h>

#include "heat/heat_line.h"
#include "runtime/math.cuh"

namespace pysolvers::heat {

/* U and Y as linear functions of x_0 and u_last, which are computed with U = Y = 0, for
 * m rows:
 *
 *   x_0 = x + s U + t Y,   u_last = u + t U,   t = q^m,  s = q (1 - t^2) / (1 + q)
 *   p U = (theta_0 - q) x_0 + take_0 value_0,   x_last = p u_last + q Y,
 *   Y = theta_1 x_last + take_1 value_1;   periodic: U = u_last, Y = x_0 */
static void
close_line(ps_cuda_heat_line *l, const ps_cuda_heat_end end[2], bool periodic, double m)
{
    const double q = l->q, p = l->p, t = pow(q, m), s = q * (1 - t * t) / (1 + q);
    const double by_a = p * p / q; /* 1/a for the rounded q */
    const double lead = end[0].theta + end[0].theta_by_a * by_a - q;
    const double theta = end[1].theta + end[1].theta_by_a * by_a;
    const double a = p - lead * s, b = -lead * t, c = -theta * p * t, d = 1 - theta * q;
    const double f = 1 / (a * d - b * c);
    const double right[2][4] = {{lead, 0, end[0].take, 0},
                                {0, theta * p, 0, end[1].take}};

    for (int k = 0; k < 4; k++) {
        l->u[k] = (d * right[0][k] - b * right[1][k]) * f;
        l->y[k] = (a * right[1][k] - c * right[0][k]) * f;
    }
    if (periodic) {
        const double inverse = 1 / (1 - t);

        for (int k = 0; k < 4; k++) {
            l->u[k] = k == 1 ? inverse : 0;
            l->y[k] = k == 0 ? inverse : k == 1 ? s * inverse * inverse : 0;
        }
    }
}

ps_cuda_heat_line
ps_cuda_heat_line_of(double a, const ps_cuda_heat_end end[2], bool periodic, int64_t rows,
                     int chunk, bool single)
{
    const int32_t group = HEAT_CHUNKS * chunk;
    ps_cuda_heat_line l = {};

    l.q = 2 * a / (1 + 2 * a + sqrt(1 + 4 * a));
    l.p = 1 - l.q;
    if (single && l.q >= 0.5) {
        l.q = static_cast<double>(static_cast<float>(l.q));
        l.p = 1 - l.q;
    }
    else if (single) {
        l.p = static_cast<double>(static_cast<float>(l.p));
        l.q = 1 - l.p;
    }
    l.rows = rows;
    l.end[0] = end[0];
    l.end[1] = end[1];
    l.chunk = chunk;
    l.groups = static_cast<int32_t>(runtime::divided_up(rows, group));
    l.pads = static_cast<int32_t>(l.groups * static_cast<int64_t>(group) - rows);
    l.first_chunk = l.pads / chunk;
    l.power = pow(l.q, chunk);
    l.group_power = pow(l.q, group);
    l.spread = l.q * (1 - l.power * l.power) / (1 + l.q);
    l.group_spread = l.q * (1 - l.group_power * l.group_power) / (1 + l.q);
    l.first_power = pow(l.q, group - l.pads);
    l.first_reach = pow(l.q, chunk - l.pads % chunk);
    close_line(&l, end, periodic, static_cast<double>(rows));
    return l;
}

} // namespace pysolvers::heat
