/* heat_plane.h - steps of Peaceman and Rachford in a plane with one kernel each: 2 words per node.
 *
 * A block, or a cluster if rows are long, has whole rows of nodes of a section of y
 * (heat_sections.h), and advances along y. In each row it substitutes along y what the last step
 * has eliminated, solves along x, and eliminates along y. The next step advances in the other
 * direction, so that what one step has eliminated is substituted from its last row to its first
 * one. The first step of a call begins with the solution along x, and a last kernel substitutes.
 *
 * Between the steps w contains u of y, from 0 before each section. The right-hand side along y,
 * which a half-step needs in addition to its solution, follows from it:
 *
 *   b_j = (u_j - q u_{j-1}) / p
 *
 * with a rounding error of 1/p: for p >= 1/4 only.
 *
 * A section reads the sums of those within its reach on either side. A sum that is m rows away has
 * a weight of at most q^m, and the reach is that of q^m <= eps^2: what is left out is less than
 * 16 eps^2 of the largest u. If a line has no more sections than that, all of them are read,
 * whatever q is. Along x only the adjacent groups of chunks are added under the same bound for the
 * rows of a group, and otherwise all. 27 operations per node.
 *
 * Why not the two kernels of heat_sweeps.h, which move 4 words per node: a step of 3000 x 5000 nodes in
 * float64 takes 107 us in place of 138, of 4096^2 102 in place of 146, in float32 of 8192^2 230 in place of
 * 283 (H200). Where the two kernels are faster they are used (is_faster in heat_plane.cu).
 */
#ifndef PS_CUDA_HEAT_HEAT_PLANE_H
#define PS_CUDA_HEAT_HEAT_PLANE_H

#include "heat/heat_sections.h"
#include "heat/heat_stencils.h"
#include "heat/heat_sweeps.h"

namespace pysolvers::heat {

/* The sections of y, and their weights, in the order of rows in which they are eliminated: for
 * increasing rows and for decreasing ones. */
template <typename Real> struct HeatPlaneOrder {
    HeatWeights<Real> *weight; /* [section][reads] */
    HeatWeights<Real> *end;    /* [section][2] */
};

/* The sections of a line along y and those that each of them reads. */
struct HeatPlaneSections {
    int32_t rows, sections;
    int32_t reach; /* sections on either side that count, cyclically */
    int32_t reads; /* 2 reach + 1 sections, or all */

    __host__ __device__ __forceinline__ int32_t bound(int64_t section) const
    {
        return static_cast<int32_t>(section * rows / sections);
    }

    /* The section that a section reads as number k, one after the other, cyclically. */
    __host__ __device__ __forceinline__ int32_t read(int32_t section, int32_t k) const
    {
        const int32_t at = section - reach + k;

        return at < 0 ? at + sections : at >= sections ? at - sections : at;
    }
};

/* A kernel: w is row 0 of the unknowns along y, from node 0 of x on, with rows that begin at 16 bytes
 * and have the distance w_pitch; `own`, which may be the same, and t have the distance `nodes`. The first
 * kernel of a call reads `own`, the last one stores to it. The sums of section k have column i + k nodes. */
template <typename Real> struct HeatPlane : HeatPlaneSections {
    Real *w, *own, *t;
    int64_t nodes, w_pitch;
    int32_t parts,
        idle; /* blocks of a row, and warps of the first one that have no nodes */
    int32_t begin, end;  /* unknowns of x */
    int32_t pitch, ring; /* elements of a row in shared memory; its rows */
    bool is_downward;
    bool is_near;                 /* along x only adjacent groups of chunks count */
    Real q, p, weight[2], add[2]; /* of y */
    Real inverse, end_inverse[2]; /* 1/p, in the rows of the ends divided by the weight */
    HeatValues<Real> x_side[2];   /* of row 0 on */
    HeatValues<Real> side[2], last_side[2]; /* of y, in this step and the last one */
    HeatPlaneOrder<Real> order;             /* of the last step */
    const Real *power;                      /* q^n */
    const HeatPair<Real> *last_sums;
    HeatPair<Real> *sums;
};

/* The constants of all steps of a call: a form of a step (heat_run.h). */
template <typename Real> struct HeatPlanePlan {
    static constexpr const char *name = "plane";
    bool is_used = false;
    HeatPlane<Real> plane;
    HeatLine<Real> line;
    HeatPlaneOrder<Real> order[2];
    HeatPair<Real> *sums[2];
    int32_t chunk, warps; /* nodes of x that a thread has; of a block */
    size_t shared;

    static size_t bytes(const ps_heat *h, const ps_cuda_device *device);
    ps_status make(const ps_heat *h, const ps_cuda_device *device, void *memory,
                   cudaStream_t stream);
};

/* The kernel of step s; after that of the last step, the kernel that substitutes along y. */
template <typename Real>
ps_status heat_plane_step(const ps_heat *h, const HeatPlanePlan<Real> &plan, int64_t s,
                          cudaStream_t stream);
template <typename Real>
ps_status heat_plane_end(const ps_heat *h, const HeatPlanePlan<Real> &plan, int64_t s,
                         cudaStream_t stream);

} // namespace pysolvers::heat

#endif
