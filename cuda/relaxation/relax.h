/* relax.h - red-black relaxation on the GPU: the parameters of its kernels, and the
 * execution of a call (relax.cu).
 */
#ifndef PS_CUDA_RELAXATION_RELAX_H
#define PS_CUDA_RELAXATION_RELAX_H

#include "ps_stop.h"
#include "runtime/engine.h"

namespace pysolvers::relaxation {

/* The norm that a kernel computes: the maximum of one criterion, or the sum of squares
 * of any. */
typedef enum {
    PS_CUDA_NORM_NONE,
    PS_CUDA_NORM_RESIDUAL,
    PS_CUDA_NORM_CHANGE,
    PS_CUDA_NORM_SOLUTION,
    PS_CUDA_NORM_SUM
} ps_cuda_norm;

/* The iterations that a kernel measures, and the norms for which it does nothing.
 * Iteration k, first <= k < last, has slot k - first, which contains the bits of a
 * double, initially 0. With PS_CUDA_NORM_SUM the parts of the sum are stored instead,
 * in sums[(k - first) parts + ...]. The norms are those of the rows first_row <= j <
 * end_row, which are all interior rows or some. A kernel does nothing if one of the
 * `watched` slots before it ends the iteration: if it is at most the tolerance, or not
 * finite. */
typedef struct {
    ps_cuda_norm kind;
    ps_criterion criterion;
    int first, last;
    int first_row, end_row;
    uint64_t *slots;
    double *sums;
    int64_t parts;
    const uint64_t *watch;
    int watched;
    double tolerance;
} ps_cuda_norms;

/* The interior nodes and the layout of a field. */
typedef struct {
    int nx, ny;
    int64_t pitch, half; /* half = (ny + 2) pitch: index of the first black node */
} ps_cuda_grid;

static inline ps_cuda_grid
ps_cuda_grid_of(int64_t nx, int64_t ny, int64_t pitch)
{
    return {static_cast<int>(nx), static_cast<int>(ny), pitch, (ny + 2) * pitch};
}

/* Set the rows of the norms of a call. */
static inline void
ps_cuda_norm_rows(ps_cuda_norms *norms, const ps_stop *stop, int ny)
{
    norms->first_row = stop->rows == 0 ? 1 : static_cast<int>(stop->first_row);
    norms->end_row = norms->first_row + static_cast<int>(ps_stop_rows(stop, ny));
}

/* The norm of the measured iterations of a call. */
static inline ps_cuda_norm
ps_cuda_norm_of(const ps_stop *stop)
{
    if (stop->every == 0) {
        return PS_CUDA_NORM_NONE;
    }
    return stop->norm == PS_NORM_L2                   ? PS_CUDA_NORM_SUM
           : stop->criterion == PS_CRITERION_RESIDUAL ? PS_CUDA_NORM_RESIDUAL
           : stop->criterion == PS_CRITERION_CHANGE   ? PS_CUDA_NORM_CHANGE
                                                      : PS_CUDA_NORM_SOLUTION;
}

/* The kernels of a relaxation. */
class Relaxation {
  public:
    /* Called once before the others, on the device of the call. */
    virtual ps_status prepare() = 0;
    /* One iteration in place. */
    virtual ps_status iterate(void *u, const ps_cuda_norms &norms,
                              cudaStream_t stream) const = 0;
    /* block() iterations from one field to another; both contain the boundary. */
    virtual ps_status pass(const void *from, void *to, const ps_cuda_norms &norms,
                           cudaStream_t stream) const = 0;
    /* Iterations of a pass; 0 if there are no passes. */
    virtual int block() const = 0;
    /* The parts of a sum of one of `length` iterations made together: length is 1 or
     * block(). */
    virtual int64_t parts(int length) const = 0;
    virtual const char *kernel() const = 0;

  protected:
    ~Relaxation() = default;
};

typedef struct {
    ps_cuda_grid grid;
    ps_dtype dtype;
    void *u;
    const ps_stop *stop;
} ps_cuda_field;

/* Store the norms of sums in the slots; other kinds of norms need no work. `nx` is the
 * number of nodes of a row. */
ps_status ps_cuda_relax_mean(const ps_cuda_norms *norms, int nx, cudaStream_t stream);

size_t ps_cuda_relax_work(const ps_cuda_field *f, const Relaxation &kernels);
/* Execute at most `count` iterations and wait for their end. */
ps_status ps_cuda_relax(const ps_cuda_field *f, const Relaxation &kernels, int64_t count,
                        const ps_exec *exec, ps_relax_report *report);
/* Enqueue `count` iterations; f->stop->every is 0. */
ps_status ps_cuda_relax_enqueue(const ps_cuda_field *f, const Relaxation &kernels,
                                int64_t count, const ps_exec *exec);

} // namespace pysolvers::relaxation

#endif
