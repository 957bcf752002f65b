/* cavity_stages.cu - the stages of an iteration of the cavity as sweeps.
 *
 * The schemes, their formulas and their stability are described in
 * csrc/cpu/flow/cavity.c. An iteration has 2 + 2 K half-sweeps with adi and 2 with line
 * Jacobi.
 */
#include <math.h>

#include <utility>

#include "flow/cavity_run.h"

namespace pysolvers::flow {

namespace {

constexpr double pi = 3.14159265358979323846;

ps_cuda_sweep
sweep_along(const CavityRun &r, int axis, ps_cuda_sweep_rows rows)
{
    ps_cuda_sweep s = {};

    s.rows = rows;
    s.axis = axis;
    s.nodes = r.c->nodes;
    s.viscosity = r.c->viscosity;
    s.step = r.c->step;
    s.psi = r.psi;
    s.omega = r.omega;
    return s;
}

ps_status
make_sweep(CavityRun &r, const ps_cuda_sweep &s, const ps_cuda_walls *walls = nullptr)
{
    if (!r.fused) {
        return ps_cuda_unfused_solve(&s, r.options, &r.exec, &r.report->lines);
    }
    r.report->lines.method = PS_PARTITION;
    r.report->lines.kernel = "partition fused";
    return ps_cuda_fused_solve(&s, walls, r.stream);
}

ps_status
step_omega(CavityRun &r)
{
    ps_cuda_sweep first = sweep_along(r, 0, PS_SWEEP_OMEGA_FIRST);
    ps_cuda_sweep second = sweep_along(r, 1, PS_SWEEP_OMEGA_SECOND);

    second.half = first.x = r.half;
    second.x = r.other;
    const ps_status status = make_sweep(r, first);
    std::swap(r.omega, r.other);
    return status == PS_OK ? make_sweep(r, second) : status;
}

/* Parameter k of `count`: geometric sequence between the extreme eigenvalues of the
 * operator 2 -1 -1 on the interior nodes of a line. */
double
peaceman_rachford_shift(int64_t nodes, int k, int count)
{
    const double angle = pi / static_cast<double>(nodes - 1);
    const double smallest = 2 - 2 * cos(angle);
    const double largest = 2 - 2 * cos(static_cast<double>(nodes - 2) * angle);

    return largest * pow(smallest / largest, (2 * k + 1) / (2.0 * count));
}

ps_status
solve_psi(CavityRun &r)
{
    ps_cuda_sweep first = sweep_along(r, 0, PS_SWEEP_PSI);
    ps_cuda_sweep second = sweep_along(r, 1, PS_SWEEP_PSI);
    ps_status status = PS_OK;

    first.half = second.x = r.psi;
    second.half = first.x = r.half;
    for (int k = 0; status == PS_OK && k < r.c->psi_sweeps; k++) {
        first.shift = second.shift =
            peaceman_rachford_shift(r.c->nodes, k, r.c->psi_sweeps);
        status = make_sweep(r, first);
        status = status == PS_OK ? make_sweep(r, second) : status;
    }
    return status;
}

int
jacobi_axis(const CavityRun &r)
{
    if (r.c->direction == PS_DIRECTION_ALTERNATE) {
        return static_cast<int>((r.c->iteration + r.report->iterations) % 2);
    }
    return r.c->direction == PS_DIRECTION_Y;
}

ps_status
relax_psi(CavityRun &r)
{
    const ps_cuda_walls walls = {r.c, r.psi, r.omega};
    const bool with_walls = r.walls_wait;
    ps_cuda_sweep s = sweep_along(r, jacobi_axis(r), PS_SWEEP_PSI);

    s.shift = 2;
    s.half = r.psi;
    s.x = r.half;
    r.walls_wait = false;
    std::swap(r.psi, r.half);
    return make_sweep(r, s, with_walls ? &walls : nullptr);
}

ps_status
relax_omega(CavityRun &r)
{
    ps_cuda_sweep s = sweep_along(r, jacobi_axis(r), PS_SWEEP_JACOBI_OMEGA);

    s.x = r.other;
    std::swap(r.omega, r.other);
    return make_sweep(r, s);
}

} // namespace

ps_status
ps_cuda_relax_walls(CavityRun &r)
{
    const ps_cuda_walls walls = {r.c, r.psi, r.omega};
    const bool wait = r.walls_wait;

    r.walls_wait = false;
    return wait ? ps_cuda_cavity_walls(&walls, r.stream) : PS_OK;
}

ps_stage
ps_cuda_stage_at(const CavityRun &r, int k)
{
    const bool adi = r.c->scheme == PS_SCHEME_ADI;

    return k == 2 ? PS_STAGE_WALLS : (k == 0) == adi ? PS_STAGE_OMEGA : PS_STAGE_PSI;
}

ps_status
ps_cuda_make_stage(CavityRun &r, ps_stage stage)
{
    const bool adi = r.c->scheme == PS_SCHEME_ADI;

    if ((r.c->stages & 1u << stage) == 0) {
        return PS_OK;
    }
    switch (stage) {
    case PS_STAGE_OMEGA:
        return adi ? step_omega(r) : relax_omega(r);
    case PS_STAGE_PSI:
        return adi ? solve_psi(r) : relax_psi(r);
    default:
        r.walls_wait = true;
        return r.fused && !adi && r.c->stages & 1u << PS_STAGE_PSI
                   ? PS_OK
                   : ps_cuda_relax_walls(r);
    }
}

} // namespace pysolvers::flow
