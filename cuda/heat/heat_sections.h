/* heat_sections.h - lines along y of a box, cut into sections of consecutive rows.
 *
 * The recurrences of heat_line.h on a section with boundary values 0 give two sums, u of its
 * last row and x of its first row. Its boundary values, u of the row before it and x of the
 * row after it, are sums of those of all sections and of the values of the ends with constant
 * weights (heat_team_table.cuh). So the blocks of one kernel eliminate the sections of a line,
 * and those of the next kernel substitute:
 *
 *   u_j = q u_{j-1} + p b_j                             from 0
 *   x_j = q x_{j+1} + p (u_j + q^(n+1) u_before)        in row n of the section
 *
 * 9 operations per node; 3 numbers per section and line are stored in addition to u.
 */
#ifndef PS_CUDA_HEAT_HEAT_SECTIONS_H
#define PS_CUDA_HEAT_HEAT_SECTIONS_H

#include "heat/heat_teams.h"

namespace pysolvers::heat {

template <typename Real> struct HeatPair;

/* The largest number of sections of a line. */
enum { HEAT_MOST_SECTIONS = 16 };

/* The weights of the sums of a section, and of the values of the ends, in the boundary
 * values of another, and q^n for 0 <= n <= size of a section, or 0 where it does not count. */
template <typename Real> struct HeatSectionTable {
    HeatWeights<Real> weight[HEAT_MOST_SECTIONS]
                            [HEAT_MOST_SECTIONS]; /* [section][from] */
    HeatWeights<Real> end[HEAT_MOST_SECTIONS][2];
    Real power[1];
};

/* The rows of a section. */
struct HeatSectionRows {
    int count, first;

    __host__ __device__ __forceinline__ int row(int n) const
    {
        return first + n;
    }
};

/* All sections. The sums of section k lie from k columns on, one pair per column. */
template <typename Real> struct HeatSections {
    Real q, p, weight[2], add[2]; /* as in HeatLine */
    int32_t rows, count,
        size; /* of a line, its sections, the rows of each but the last */
    int64_t columns;
    HeatSectionTable<Real> *table;
    HeatPair<Real> *sums;
    Real *before; /* u before each section, likewise */

    __host__ __device__ __forceinline__ HeatSectionRows section(int k) const
    {
        const int first = k * size;

        return {rows - first < size ? rows - first : size, first};
    }
};

} // namespace pysolvers::heat

#endif
