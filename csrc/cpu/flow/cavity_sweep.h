/* cavity_sweep.h - interface between the half-sweeps of the cavity and their kernels. */
#ifndef PS_CPU_CAVITY_SWEEP_H
#define PS_CPU_CAVITY_SWEEP_H

#include "flow/cavity_lines.h"

/* The kernels of one instruction set, for tiles [begin, end) of `lanes` lines each. */
typedef struct {
    int lanes;
    int team; /* tiles along y that are solved together; tiles along x are solved alone */

    /* Workspace of a thread in numbers, and solution. */
    int64_t (*kept)(const ps_sweep *s);
    void (*solve)(const ps_sweep *s, int64_t begin, int64_t end, double *kept);

    /* Store the rows of tiles: words lower, diag, upper, rhs of rows*pitch numbers each,
     * where lines are adjacent and rows are `pitch` apart. */
    void (*store)(const ps_sweep *s, int64_t begin, int64_t end, int64_t pitch,
                  double *words);

    /* Take the solution from one word. */
    void (*take)(const ps_sweep *s, int64_t begin, int64_t end, int64_t pitch,
                 const double *word);
} ps_cavity_kernels;

extern const ps_cavity_kernels ps_cavity_f64_baseline, ps_cavity_f64_avx2,
    ps_cavity_f64_avx512;

#endif
