/* panel_table.cuh - one matrix eliminated for panels of columns.
 *
 * Rows are cut into groups of PANEL_CHUNKS chunks of so many places. Rows that copy their
 * left neighbour fill up the front of a group. What segment.cuh computes for matrix and
 * right-hand side at once is cut in two here: the multipliers are kept, for the rows of a
 * chunk, the chunks of a group and the groups of the system alike, and a right-hand side
 * is taken through them with 5 operations a row, no division. No pivoting: for dominant
 * matrices.
 */
#ifndef PS_CUDA_PANEL_TABLE_CUH
#define PS_CUDA_PANEL_TABLE_CUH

#include "launch.cuh"
#include "panel_shape.cuh"
#include "segment.cuh"

/* Of two numbers side by side, loaded at once. */
template <typename Number>
static constexpr size_t panel_alignment = sizeof(Number) < 8 ? 2 * sizeof(Number) : 16;

/* Row i of a chunk: x_i = g_i - u_i x_{i+1} with g_i = p_i rhs_i - m_i g_{i-1}. Of the
 * last row only m counts: its unknown is the chunk's y, and d = rhs - m g. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelRow {
    Number m, p;
};

/* What a right-hand side counts in the sums x_first and d of its chunk. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelSums {
    Number first, d;
};

/* The same for a unit, a chunk or a group, whose right-hand side is d - next x_first,
 * that of the unit behind: c = p (d - next x_first), g = c - m g_before, y = g - u
 * y_behind. */
template <typename Number> struct alignas(16) PanelUnit {
    Number m, p, next, u;
};

/* What the sums of a unit count in those of all: x_first in x_first and in d, and d. */
template <typename Number> struct alignas(16) PanelShare {
    PanelSums<Number> first, d;
};

/* The last unknown: p d - first x_first. */
template <typename Number> struct PanelClose {
    Number p, first;
};

/* The matrix of a Segment: x_first = .. - first_l y_left - first_u y. */
template <typename Number> struct PanelFrame {
    Number first_l, first_u, a, b, c;
};

struct PanelNote {
    int32_t fault;    /* row of the first bad pivot, or INT32_MAX */
    int32_t dominant; /* in every row */
    int32_t unused[2];
};

/* A group for its system. */
template <typename Number> struct PanelPart {
    PanelFrame<Number> frame;
    PanelNote note;
};

/* The parts of a table of `groups` groups. */
template <typename Number> struct PanelTable {
    PanelNote *note;
    PanelRow<Number> *rows; /* [groups][panel_group_rows], counts and u as well */
    PanelSums<Number> *counts;
    Number *u;
    PanelUnit<Number> *chunks; /* [groups][PANEL_CHUNKS] */
    PanelShare<Number> *shares;
    PanelSums<Number> *weights; /* [groups + 1][groups]: what the sums of all groups count
                                   in y before a group, which is that of the last one */
    PanelPart<Number> *parts;   /* [groups], while it is made */
};

/* The rows or units of a group, one after the other. */
template <typename Number> struct PanelElimination {
    Number above = Number(0), l = Number(-1), first_l = Number(0), first_u = Number(-1);

    /* v counts g in x_first. */
    __device__ __forceinline__ void inner(const Row<Number> &row, int32_t at,
                                          Fault &fault, PanelRow<Number> &r, Number &u,
                                          Number &v)
    {
        const Number pivot = row.diag - row.lower * above;

        fault.check(pivot, at);
        r.p = reciprocal(pivot);
        r.m = row.lower * r.p;
        u = row.upper * r.p;
        v = -first_u;
        l = -(r.m * l);
        first_l = first_l - first_u * l;
        first_u = -(first_u * u);
        above = u;
    }

    /* What came so far was in front of x_first. */
    __device__ __forceinline__ void begin(Number &v)
    {
        first_l = Number(0);
        first_u = Number(-1);
        v = Number(0);
    }

    __device__ __forceinline__ PanelFrame<Number> last(const Row<Number> &row) const
    {
        return {first_l, first_u, -(row.lower * l), row.diag - row.lower * above,
                row.upper};
    }
};

/* From the last row or unit to the first: counts of right-hand sides in the sums. */
template <typename Number> struct PanelCounts {
    Number m, first = Number(0), d = Number(1); /* m: of the row behind */

    __device__ __forceinline__ PanelSums<Number> next(const PanelRow<Number> &r, Number v)
    {
        first = v - m * first;
        d = -(m * d);
        m = r.m;
        return {r.p * first, r.p * d};
    }
};

/* Units with the frames frame[0 .. count-1] as one, of which unit `first` has the first
 * row; end(i) is the row of unit i's y. */
template <typename Number, typename End>
__device__ __forceinline__ PanelFrame<Number>
join_units(const PanelFrame<Number> *frame, PanelUnit<Number> *unit,
           PanelShare<Number> *share, int first, int count, const End &end, Fault &fault)
{
    PanelElimination<Number> e;
    PanelFrame<Number> own = frame[0];
    const Number first_l = frame[first].first_l, first_u = frame[first].first_u;

    for (int i = 0; i < count - 1; i++) {
        const PanelFrame<Number> next = frame[i + 1];
        const Row<Number> row = {own.a, own.b - own.c * next.first_l,
                                 -(own.c * next.first_u), Number(0)};
        PanelRow<Number> r;
        Number u, v;

        e.inner(row, end(i), fault, r, u, v);
        if (i < first) {
            e.begin(v);
        }
        unit[i] = {r.m, r.p, own.c, u};
        share[i].first.first = -(first_u * v);
        own = next;
    }
    const PanelFrame<Number> all = e.last({own.a, own.b, own.c, Number(0)});

    unit[count - 1] = {own.a, Number(0), Number(0), Number(0)};
    share[count - 1] = {{Number(0), Number(0)}, {Number(0), Number(1)}};
    PanelCounts<Number> counts = {own.a};
    for (int i = count - 2; i >= 0; i--) {
        const PanelUnit<Number> r = unit[i];
        const PanelSums<Number> d = counts.next({r.m, r.p}, share[i].first.first);

        share[i].d = d;
        share[i].first = {Number(0), Number(0)};
        share[i + 1].first = {-(r.next * d.first), -(r.next * d.d)};
    }
    share[first].first.first = Number(1);
    return {first_l - first_u * all.first_l, -(first_u * all.first_u), all.a, all.b,
            all.c};
}

/* A group while it is made, chunks in banks of their own. A row comes as lower, diag and
 * upper in m, p and u. */
template <typename Number> struct PanelGroup {
    static constexpr int places = panel_places<Number>, pitch = places + 1;
    PanelRow<Number> row[PANEL_CHUNKS][pitch];
    PanelSums<Number> count[PANEL_CHUNKS][pitch];
    Number u[PANEL_CHUNKS][pitch];
    PanelFrame<Number> frame[PANEL_CHUNKS];
    PanelUnit<Number> unit[PANEL_CHUNKS];
    PanelShare<Number> share[PANEL_CHUNKS];
    int32_t fault;

    /* Chunk c, whose first place is row `start`; the first `pads` have no row. */
    __device__ __forceinline__ PanelFrame<Number> join_rows(int c, int32_t start,
                                                            int pads, Fault &faults)
    {
        constexpr int last = places - 1;
        PanelElimination<Number> e;

        for (int k = 0; k < last; k++) {
            const Row<Number> r = {row[c][k].m, row[c][k].p, u[c][k], Number(0)};

            e.inner(r, start + k, faults, row[c][k], u[c][k], count[c][k].first);
            if (k < pads) {
                e.begin(count[c][k].first);
            }
        }
        const Row<Number> end = {row[c][last].m, row[c][last].p, u[c][last], Number(0)};
        PanelCounts<Number> counts = {end.lower};

        row[c][last].p = Number(0);
        u[c][last] = Number(0);
        count[c][last] = {Number(0), Number(1)};
        for (int k = last - 1; k >= 0; k--) {
            count[c][k] = counts.next(row[c][k], count[c][k].first);
        }
        return e.last(end);
    }
};

/* By a block for each group: its part of the table of rows(i), 0 <= i < count.
 */
template <typename Number, typename Rows>
__device__ __forceinline__ void
make_panel_group(const PanelTable<Number> &t, const Rows &rows, int32_t count,
                 int32_t groups)
{
    __shared__ __align__(16) char memory[sizeof(PanelGroup<Number>)];
    PanelGroup<Number> &own = *reinterpret_cast<PanelGroup<Number> *>(memory);
    constexpr int places = panel_places<Number>, all = panel_group_rows<Number>;
    const int thread = threadIdx.x, group = blockIdx.x;
    const int pads = panel_pads<Number>(group, groups, count);
    const int start = panel_end<Number>(group, groups, count) - all; /* of place 0 */
    const auto start_of = [&](int c) { return start + c * places; };
    bool dominant = true;
    Fault fault;

    if (thread == 0) {
        own.fault = Fault::none;
    }
    for (int k = thread; k < all; k += blockDim.x) {
        const int c = k / places, place = k % places;
        const Row<Number> r = k < pads ? copy_row<Number>() : rows(start + k);

        dominant = dominant && is_dominant(r.lower, r.diag, r.upper);
        own.row[c][place] = {r.lower, r.diag};
        own.u[c][place] = r.upper;
    }
    __syncthreads();
    if (thread < PANEL_CHUNKS) {
        own.frame[thread] =
            own.join_rows(thread, start_of(thread), pads - thread * places, fault);
    }
    __syncthreads();
    if (thread == 0) {
        t.parts[group].frame = join_units(
            own.frame, own.unit, own.share, pads / places, PANEL_CHUNKS,
            [&](int c) { return start_of(c + 1) - 1; }, fault);
    }
    if (fault.row != Fault::none) {
        atomicMin(&own.fault, fault.row);
    }
    const bool all_dominant = __syncthreads_and(dominant);

    if (thread == 0) {
        t.parts[group].note = {own.fault, all_dominant, {0, 0}};
    }
    for (int k = thread; k < all; k += blockDim.x) {
        const int c = k / places, place = k % places;
        const int at = group * all + k;

        t.rows[at] = own.row[c][place];
        t.counts[at] = own.count[c][place];
        t.u[at] = own.u[c][place];
    }
    if (thread < PANEL_CHUNKS) {
        t.chunks[group * PANEL_CHUNKS + thread] = own.unit[thread];
        t.shares[group * PANEL_CHUNKS + thread] = own.share[thread];
    }
}

/* The groups of a system as one unit. */
template <typename Number> struct PanelGroups {
    static constexpr int most = panel_groups<Number>;
    PanelFrame<Number> frame[most];
    PanelUnit<Number> unit[most];
    PanelShare<Number> share[most];
    PanelClose<Number> close;
    Number weight[most + 1][most][2];
    int32_t fault;

    /* y before and in all groups, where nothing is on the right but 1 in one sum of one
     * group: weight[g * step], g = 0 .. count. */
    __device__ __forceinline__ void weigh(int group, PanelSums<Number> sums, int count,
                                          bool periodic, Number *weight, int step) const
    {
        const PanelShare<Number> own = share[group];
        const int last = count - 1;
        const Number all_first = own.first.first * sums.first + own.d.first * sums.d;
        const Number all_d = own.first.d * sums.first + own.d.d * sums.d;
        Number y = close.p * all_d - close.first * all_first;
        Number g = periodic ? y : Number(0);

        weight[0] = g;
        weight[count * step] = y;
        for (int i = 0; i < last; i++) {
            const Number d = i == group ? sums.d : Number(0);
            const Number next = i + 1 == group ? sums.first : Number(0);

            g = unit[i].p * (d - unit[i].next * next) - unit[i].m * g;
            weight[(i + 1) * step] = g;
        }
        for (int i = last - 1; i >= 0; i--) {
            y = weight[(i + 1) * step] - unit[i].u * y;
            weight[(i + 1) * step] = y;
        }
    }
};

/* Then by one block of 2 panel_groups<Number> threads or more: the rest of the table. */
template <typename Number>
__device__ __forceinline__ void
join_panel_groups(const PanelTable<Number> &t, int32_t count, int32_t groups,
                  bool periodic)
{
    __shared__ __align__(16) char memory[sizeof(PanelGroups<Number>)];
    PanelGroups<Number> &all = *reinterpret_cast<PanelGroups<Number> *>(memory);
    const int thread = threadIdx.x;
    Fault fault;
    bool dominant = true;

    if (thread == 0) {
        all.fault = Fault::none;
    }
    if (thread < groups) {
        const PanelPart<Number> part = t.parts[thread];

        all.frame[thread] = part.frame;
        fault.row = part.note.fault;
        dominant = part.note.dominant;
    }
    __syncthreads();
    if (thread == 0) {
        const PanelFrame<Number> s = join_units(
            all.frame, all.unit, all.share, 0, groups,
            [&](int g) { return panel_end<Number>(g, groups, count) - 1; }, fault);
        const Number pivot = periodic ? s.a + s.b - s.c * (s.first_l + s.first_u) : s.b;

        fault.check(pivot, count - 1);
        all.close.p = reciprocal(pivot);
        all.close.first = periodic ? s.c * all.close.p : Number(0);
    }
    if (fault.row != Fault::none) {
        atomicMin(&all.fault, fault.row);
    }
    const bool all_dominant = __syncthreads_and(dominant);

    if (thread == 0) {
        *t.note = {all.fault, all_dominant, {0, 0}};
    }
    if (thread < 2 * groups) {
        const int group = thread / 2, is_d = thread % 2;
        const PanelSums<Number> one = {Number(1 - is_d), Number(is_d)};

        all.weigh(group, one, groups, periodic, &all.weight[0][group][is_d],
                  2 * all.most);
    }
    __syncthreads();
    for (int k = thread; k < (groups + 1) * groups; k += blockDim.x) {
        const Number(&weight)[2] = all.weight[k / groups][k % groups];

        t.weights[k] = {weight[0], weight[1]};
    }
}

#endif
