/* cavity.h - the cavity of the CUDA backend: half-sweeps, walls and residuals.
 *
 * Fields are [nodes][nodes] in device memory. Everything enqueues on a stream.
 */
#ifndef PS_CUDA_FLOW_CAVITY_H
#define PS_CUDA_FLOW_CAVITY_H

#include "ps_cavity.h"
#include "runtime/engine.h"

namespace pysolvers::flow {

/* The rows of a half-sweep. The first three are those of the ADI scheme; line Jacobi
 * uses PS_SWEEP_PSI with shift 2 for psi. */
typedef enum {
    PS_SWEEP_OMEGA_FIRST,
    PS_SWEEP_OMEGA_SECOND,
    PS_SWEEP_PSI,
    PS_SWEEP_JACOBI_OMEGA,
    PS_SWEEP_COUNT
} ps_cuda_sweep_rows;

/* A half-sweep solves all lines along one axis (0: x, 1: y). It reads only values that
 * it does not change: `x` is none of the inputs. All nodes of `x` are written: psi is 0
 * on the walls, omega keeps its values there. */
typedef struct {
    ps_cuda_sweep_rows rows;
    int axis;
    int64_t nodes;
    double viscosity, step, shift;
    const double *psi, *omega, *half;
    double *x;
} ps_cuda_sweep;

/* omega_w += weight (formula - omega_w) on the walls of c without the corners; weight
 * is 1 for line Jacobi. */
typedef struct {
    const ps_cavity *c;
    const double *psi;
    double *omega;
} ps_cuda_walls;

ps_status ps_cuda_cavity_walls(const ps_cuda_walls *w, cudaStream_t stream);

/* Fused: the rows are computed in shared memory, solved by the partition method, and
 * not stored. `also` is null, or walls that additional blocks of the kernel relax; the
 * sweep neither reads nor writes them. */
int ps_cuda_fused_fits(int64_t nodes);
ps_status ps_cuda_fused_prepare(void); /* once per call, before the sweeps */
ps_status ps_cuda_fused_solve(const ps_cuda_sweep *s, const ps_cuda_walls *also,
                              cudaStream_t stream);

/* Unfused: the rows are written to exec->work and solved by a direct method. */
ps_status ps_cuda_unfused_work(int64_t nodes, const ps_options *options, size_t *bytes);
ps_status ps_cuda_unfused_solve(const ps_cuda_sweep *s, const ps_options *options,
                                const ps_exec *exec, ps_report *report);

/* Sums of the squared residuals of psi and omega over the interior nodes, to sums[0]
 * and sums[1]. `rows` is scratch memory of 2 * nodes values. */
ps_status ps_cuda_cavity_residuals(const ps_cavity *c, const double *psi,
                                   const double *omega, double *rows, double *sums,
                                   cudaStream_t stream);

} // namespace pysolvers::flow

#endif
