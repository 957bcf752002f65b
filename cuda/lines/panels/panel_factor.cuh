/* panel_factor.cuh - the elimination of a matrix for panels of columns.
 *
 * A block eliminates the rows of a group, chunk by chunk, and joins the chunks to one
 * unit; the groups are joined in the same way. The joins are sequences of dependent
 * divisions in one thread; everything that does not depend on them is computed by other
 * threads.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_FACTOR_CUH
#define PS_CUDA_LINES_PANELS_PANEL_FACTOR_CUH

#include "lines/panels/panel_table.cuh"

namespace pysolvers::panels {

using namespace device;

/* The elimination of the rows or units of a group, one after the other. */
template <typename Number> struct PanelElimination {
    Number above = Number(0), l = Number(-1), first_l = Number(0), first_u = Number(-1);

    /* v is the coefficient of g in x_first. */
    __device__ __forceinline__ void inner(const Row<Number> &row, int32_t at,
                                          BadPivot &bad_pivot, PanelRow<Number> &r,
                                          Number &u, Number &v)
    {
        SafeReciprocal<Number> safe_inverter = {bad_pivot};

        r.p = safe_inverter.invert(row.diag - row.lower * above, at);
        r.m = row.lower * r.p;
        u = row.upper * r.p;
        v = -first_u;
        l = -(r.m * l);
        first_l = first_l - first_u * l;
        first_u = -(first_u * u);
        above = u;
    }

    /* All rows so far are pads before x_first. */
    __device__ __forceinline__ void begin(Number &v)
    {
        first_l = Number(0);
        first_u = Number(-1);
        v = Number(0);
    }

    __device__ __forceinline__ Frame<Number> last(const Row<Number> &row) const
    {
        return Frame<Number>::closed(first_l, first_u, l, above, row);
    }
};

/* The weights of right-hand sides in the sums, from the last row or unit to the first. */
template <typename Number> struct PanelCounts {
    Number m, first = Number(0), d = Number(1); /* m: of the next row */

    __device__ __forceinline__ PanelSums<Number> next(const PanelRow<Number> &r, Number v)
    {
        first = v - m * first;
        d = -(m * d);
        m = r.m;
        return {r.p * first, r.p * d};
    }
};

/* Join units with the matrices frame[0 .. count-1] to one. Unit `first` contains the
 * first row; end(i) is the row of y of unit i. */
template <typename Number, typename End>
__device__ __forceinline__ Frame<Number>
join_units(const Frame<Number> *frame, PanelUnit<Number> *unit, PanelShare<Number> *share,
           int first, int count, const End &end, BadPivot &bad_pivot)
{
    PanelElimination<Number> e;
    Frame<Number> own = frame[0], next = frame[count > 1];
    const Frame<Number> front = frame[first];

    for (int i = 0; i < count - 1; i++) {
        const Frame<Number> coming = frame[min(i + 2, count - 1)];
        const Row<Number> row = own.row_before(next.first_l, next.first_u);
        PanelRow<Number> r;
        Number u, v;

        e.inner(row, end(i), bad_pivot, r, u, v);
        if (i < first) {
            e.begin(v);
        }
        unit[i] = {r.m, r.p, own.c, u};
        share[i].first.first = front.first_u_through(v);
        own = next;
        next = coming; /* loaded before the division */
    }
    const Frame<Number> all = e.last(own.row());

    unit[count - 1] = {own.a, Number(0), Number(0), Number(0)};
    return {front.first_l_through(all.first_l), front.first_u_through(all.first_u), all.a,
            all.b, all.c};
}

/* The weights of the sums of each unit in those of the whole; after join_units(). */
template <typename Number>
__device__ __forceinline__ void
share_units(const PanelUnit<Number> *unit, PanelShare<Number> *share, int first,
            int count)
{
    PanelCounts<Number> counts = {unit[count - 1].m};

    share[count - 1] = {{Number(0), Number(0)}, {Number(0), Number(1)}};
    for (int i = count - 2; i >= 0; i--) {
        const PanelUnit<Number> r = unit[i];
        const PanelSums<Number> d = counts.next({r.m, r.p}, share[i].first.first);

        share[i].d = d;
        share[i].first = {Number(0), Number(0)};
        share[i + 1].first = {-(r.next * d.first), -(r.next * d.d)};
    }
    share[first].first.first = Number(1);
}

/* Temporary memory of a block while it eliminates a group. */
template <typename Number> struct PanelScratch {
    static constexpr int places = panel_places<Number>;
    Frame<Number> frame[PANEL_CHUNKS];
    PanelPart<Number> part; /* the result */
    int32_t bad_pivot;

    /* Eliminate chunk c, whose first place is row `start`; the first `pads` places have
     * no row. */
    static __device__ __forceinline__ Frame<Number> join_rows(PanelGroup<Number> &own,
                                                              int c, int32_t start,
                                                              int pads,
                                                              BadPivot &bad_pivots)
    {
        constexpr int last = places - 1;
        PanelElimination<Number> e;
        Row<Number> rows[last]; /* loaded together */

#pragma unroll
        for (int k = 0; k < last; k++) {
            rows[k] = {own.row[c][k].m, own.row[c][k].p, own.u[c][k], Number(0)};
        }
#pragma unroll
        for (int k = 0; k < last; k++) {
            e.inner(rows[k], start + k, bad_pivots, own.row[c][k], own.u[c][k],
                    own.count[c][k].first);
            if (k < pads) {
                e.begin(own.count[c][k].first);
            }
        }
        const Row<Number> end = {own.row[c][last].m, own.row[c][last].p, own.u[c][last],
                                 Number(0)};

        own.row[c][last].p = Number(0);
        own.u[c][last] = Number(0);
        return e.last(end);
    }

    /* The weights of the right-hand sides of chunk c in its sums; after join_rows(). */
    static __device__ __forceinline__ void count_rows(PanelGroup<Number> &own, int c)
    {
        constexpr int last = places - 1;
        PanelCounts<Number> counts = {own.row[c][last].m};

        own.count[c][last] = {Number(0), Number(1)};
        for (int k = last - 1; k >= 0; k--) {
            own.count[c][k] = counts.next(own.row[c][k], own.count[c][k].first);
        }
    }
};

/* The row of the matrix for a place of the group, in each of the first threads of a
 * block. */
template <typename Number, typename Rows>
__device__ __forceinline__ Row<Number>
panel_row_of(const Rows &rows, int group, int32_t groups, int32_t count)
{
    const int thread = threadIdx.x;
    const int end = panel_end<Number>(group, groups, count);

    return thread < panel_pads<Number>(group, groups, count) ||
                   thread >= panel_group_rows<Number>
               ? copy_row<Number>()
               : rows.row(end - panel_group_rows<Number> + thread, true);
}

/* Store the row in its place; returns false if it is not dominant. */
template <typename Number>
__device__ __forceinline__ bool
put_panel_row(const Row<Number> &row, PanelGroup<Number> &own)
{
    constexpr int places = panel_places<Number>;
    const int thread = threadIdx.x, c = thread / places, place = thread % places;

    if (thread >= panel_group_rows<Number>) {
        return true;
    }
    own.row[c][place] = {row.lower, row.diag};
    own.u[c][place] = row.upper;
    return is_dominant(row.lower, row.diag, row.upper);
}

/* Called by a block when all rows of a group are stored: computes the multipliers, and
 * in `scratch` the part of the group for reduce_panel_groups(). share_group() must
 * follow. */
template <typename Number>
__device__ __forceinline__ void
factor_panel_group(bool dominant, int group, int32_t groups, int32_t count,
                   PanelGroup<Number> &own, PanelScratch<Number> &scratch)
{
    constexpr int places = panel_places<Number>, all = panel_group_rows<Number>;
    const int thread = threadIdx.x;
    const int pads = panel_pads<Number>(group, groups, count);
    const int start = panel_end<Number>(group, groups, count) - all; /* of place 0 */
    const auto start_of = [&](int c) { return start + c * places; };
    BadPivot bad_pivot;

    if (thread == 0) {
        scratch.bad_pivot = BadPivot::none;
    }
    __syncthreads();
    if (thread < PANEL_CHUNKS) {
        scratch.frame[thread] = scratch.join_rows(own, thread, start_of(thread),
                                                  pads - thread * places, bad_pivot);
    }
    __syncthreads();
    if (thread == 0) {
        scratch.part.unit = join_units(
            scratch.frame, own.unit, own.share, pads / places, PANEL_CHUNKS,
            [&](int c) { return start_of(c + 1) - 1; }, bad_pivot);
    }
    else if (thread >= 32 && thread < 32 + PANEL_CHUNKS) {
        scratch.count_rows(own, thread - 32);
    }
    if (bad_pivot.row != BadPivot::none) {
        atomicMin(&scratch.bad_pivot, bad_pivot.row);
    }
    const bool all_dominant = __syncthreads_and(dominant);

    if (thread == 0) {
        scratch.part.mark = {scratch.bad_pivot, all_dominant, {0, 0}};
    }
    __syncthreads();
}

/* Called by one thread. */
template <typename Number>
__device__ __forceinline__ void
share_group(int group, int32_t groups, int32_t count, PanelGroup<Number> &own)
{
    const int pads = panel_pads<Number>(group, groups, count);

    share_units(own.unit, own.share, pads / panel_places<Number>, PANEL_CHUNKS);
}

/* The groups of a system, joined to one unit. */
template <typename Number> struct PanelGroups {
    static constexpr int most = panel_groups<Number>;
    Frame<Number> frame[most];
    PanelUnit<Number> unit[most];
    PanelShare<Number> share[most];
    CloseFactor<Number> close;
    Number weight[most + 1][most][2];
    int32_t bad_pivot;

    /* y before the first group and at the end of every group for right-hand sides that
     * are 0 except that one sum of one group is 1: weight[g * step], g = 0 .. count. */
    __device__ __forceinline__ void weigh(int group, PanelSums<Number> sums, int count,
                                          bool periodic, Number *to, int step) const
    {
        const PanelShare<Number> own = share[group];
        const int last = count - 1;
        const Number all_first = own.first.first * sums.first + own.d.first * sums.d;
        const Number all_d = own.first.d * sums.first + own.d.d * sums.d;
        Number y = close.solve({all_first, all_d});
        Number g = periodic ? y : Number(0);

        to[0] = g;
        to[count * step] = y;
        for (int i = 0; i < last; i++) {
            const Number d = i == group ? sums.d : Number(0);
            const Number next = i + 1 == group ? sums.first : Number(0);

            g = unit[i].p * (d - unit[i].next * next) - unit[i].m * g;
            to[(i + 1) * step] = g;
        }
        for (int i = last - 1; i >= 0; i--) {
            y = to[(i + 1) * step] - unit[i].u * y;
            to[(i + 1) * step] = y;
        }
    }
};

/* Join the groups, by a block of at least 2 panel_groups<Number> threads: their weights
 * in all.weight, and the note of the matrix. meanwhile() is executed by all threads;
 * its work should avoid the first thread. */
template <typename Number, typename Meanwhile>
__device__ __forceinline__ StoredNote
reduce_panel_groups(const PanelPart<Number> *parts, int32_t groups, int32_t count,
                    bool periodic, PanelGroups<Number> &all, const Meanwhile &meanwhile)
{
    const int thread = threadIdx.x;
    BadPivot bad_pivot;
    bool dominant = true;

    if (thread == 0) {
        all.bad_pivot = BadPivot::none;
    }
    if (thread < groups) {
        const PanelPart<Number> part = parts[thread];

        all.frame[thread] = part.unit;
        bad_pivot.row = part.mark.bad_pivot;
        dominant = part.mark.dominant;
    }
    __syncthreads();
    if (thread == 0) {
        const Frame<Number> s = join_units(
            all.frame, all.unit, all.share, 0, groups,
            [&](int g) { return panel_end<Number>(g, groups, count) - 1; }, bad_pivot);

        all.close.make(s, periodic, count - 1, bad_pivot);
        share_units(all.unit, all.share, 0, groups);
    }
    meanwhile();
    if (bad_pivot.row != BadPivot::none) {
        atomicMin(&all.bad_pivot, bad_pivot.row);
    }
    const bool all_dominant = __syncthreads_and(dominant);

    if (thread < 2 * groups) {
        const int group = thread / 2, is_d = thread % 2;
        const PanelSums<Number> one = {Number(1 - is_d), Number(is_d)};

        all.weigh(group, one, groups, periodic, &all.weight[0][group][is_d],
                  2 * all.most);
    }
    __syncthreads();
    return {all.bad_pivot, all_dominant, {0, 0}};
}

} // namespace pysolvers::panels

#endif
