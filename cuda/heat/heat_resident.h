/* heat_resident.h - steps of Peaceman and Rachford in a plane that the multiprocessors hold: many steps
 * of one kernel, no words of a node.
 *
 * Each block has whole rows of nodes, a section of y (heat_sections.h), in shared memory from the first
 * step of a kernel to its last one. A step solves the rows along x, a group of 32 chunks by a warp, and
 * eliminates the columns of the section along y. The sums of a section, two numbers per column, are
 * posted to global memory; a block takes the boundary values of its section from the sums of those
 * within its reach (heat_plane.h), and substitutes. 27 operations per node; in a step a block stores 2
 * numbers per column and loads 4 reach.
 *
 * In float32 a step of 1024^2 nodes takes 5.8 us in place of the 11.0 of two sweeps, of 512^2 3.9 in place of 8.2, of
 * 1500 x 900 7.8 (r = 0.5, H200). In float64 1024^2 nodes take 11.5 us in place of 13.6, 512^2 5.8 in place of 8.5,
 * 256^2 5.1 in place of 9.5, 1900 x 100 5.7 in place of 10.4. Half of a step is the exchange: 4500 cycles from the
 * sums of a section to the boundary values of another one, in float64 400 more for each section that is read: 512^2
 * nodes with r = 3, where a section reads 16 others, take 8.0 us in place of 8.4, 1024^2 15.6 in place of 13.4.
 */
#ifndef PS_CUDA_HEAT_HEAT_RESIDENT_H
#define PS_CUDA_HEAT_HEAT_RESIDENT_H

#include "heat/heat_plane.h"

namespace pysolvers::device {

struct MailboxSlot;

} // namespace pysolvers::device

namespace pysolvers::heat {

/* The rows of a section, at most, and the sections that one reads. */
enum { HEAT_RESIDENT_ROWS = 16, HEAT_RESIDENT_READS = 17 };

/* A kernel of some steps: w and t are the first unknown, with rows that have the distance `nodes`. */
template <typename Real> struct HeatResident : HeatPlaneSections {
    Real *w, *t; /* t is null unless the last step of a call is one of the kernel */
    int64_t nodes;
    int32_t columns,
        pitch; /* unknowns of a row, and elements of a row in shared memory */
    int32_t steps;
    bool is_near;                       /* along x only adjacent groups of chunks count */
    Real q, p, weight[2], add[2];       /* of y */
    Real power[HEAT_RESIDENT_ROWS + 1]; /* q^n */
    HeatValues<Real> x_side[2], y_side[2];  /* of the first unknown, in the first step */
    int64_t x_side_step[2], y_side_step[2]; /* to the next step */
    const HeatWeights<Real> *of_section;    /* [section][reads] */
    const HeatWeights<Real> *of_end;        /* [section][2] */
    MailboxSlot *mailbox;                   /* [round & 1][section][columns of a word] */
    uint64_t posted_before;                 /* rounds of the earlier kernels of a call */
};

/* The constants of all steps of a call: a form of a step (heat_run.h). */
template <typename Real> struct HeatResidentPlan {
    static constexpr const char *name = "resident";
    bool is_used = false;
    HeatResident<Real> resident;
    HeatLine<Real> line;
    int32_t warps, chunk; /* warps of a block; nodes along x of a thread */
    int32_t most_rows;    /* of a section */
    size_t shared;

    static size_t bytes(const ps_heat *h, const ps_cuda_device *device);
    ps_status make(const ps_heat *h, const ps_cuda_device *device, void *memory,
                   cudaStream_t stream);
};

/* The kernel of `count` steps from step s on, the last ones of the call or not. */
template <typename Real>
ps_status heat_resident_steps(const ps_heat *h, const HeatResidentPlan<Real> &plan,
                              int64_t s, int64_t count, bool last, cudaStream_t stream);

} // namespace pysolvers::heat

#endif
