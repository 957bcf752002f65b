/* rates_packs.cuh - the passes of ps_rates.h along two axes with constant coefficients,
 * and sums without rows.
 *
 * A lane has a pack of neighbouring nodes along x, which begins at a multiple of its
 * width in the field, and goes along y with three and more rows of y in registers. Rows
 * along x have one weight for all y, and rows along y one for all x. A pass of two words
 * takes 82 us, with weights of any strides (rates.cu) 130, and a copy 63 (4096 x 4096,
 * float64, H200): rates.cu has about 125 instructions for a node, this kernel 39.
 *
 * With a mixed derivative a lane gets the nodes next to its pack by shuffles and loads the
 * next rows while it computes: the pass of 4 words takes 161 us, 183 without. Other passes
 * have registers for more warps instead: with shuffles they took 1.03 to 1.09 of the time.
 */
#ifndef PS_CUDA_LINES_RATES_PACKS_CUH
#define PS_CUDA_LINES_RATES_PACKS_CUH

#include <type_traits>

#include "device/number.cuh"
#include "lines/rates_job.cuh"
#include "lines/row_walk.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::lines {

/* Whether a pass has L and M, or neither, whether it adds d, and has a mixed derivative. */
template <bool RATES, bool CHANGED, bool MIXED> struct RatesForm {
    static constexpr bool rates = RATES, changed = CHANGED, mixed = MIXED;
    static constexpr int rows = RATES ? 2 : 4;  /* that a thread computes at a time */
    static constexpr int walk = MIXED ? 32 : 4; /* and in all */
    /* of a multiprocessor: more limit the registers */
    static constexpr int blocks = MIXED || !RATES ? 2 : CHANGED ? 3 : 4;
};

/* The nodes of a thread: its first row in the box and its first node along x, which is
 * negative before the box; the index of this node in a field. */
struct RatesPack {
    int32_t y, x, index;
    int32_t rows; /* that are in the box */
};

/* Three weights of rows along an axis, which have the same stride. */
template <typename Real> struct RatesWeights {
    const Real *of[3];
    int32_t stride;

    __device__ __forceinline__ RatesWeights(const ps_rates_input (&in)[3], int32_t plane,
                                            int64_t step)
        : stride(static_cast<int32_t>(step))
    {
#pragma unroll
        for (int w = 0; w < 3; w++) {
            of[w] = static_cast<const Real *>(in[w].data) +
                    plane * static_cast<int32_t>(in[w].stride[0]);
        }
    }
    __device__ __forceinline__ void load(int32_t at, Real (&to)[3]) const
    {
#pragma unroll
        for (int w = 0; w < 3; w++) {
            to[w] = __ldg(of[w] + at * stride);
        }
    }
};

/* The neighbours of a pack along x are in the lanes next to it, except those of the first and
 * of the last lane, which load one node more. */
template <int WIDTH> struct RatesSides {
    int32_t outer; /* from the first node of the pack to the node that the lane loads */
    bool is_first, is_last;
    bool is_end; /* the node after the pack is the last one of the pack */

    __device__ __forceinline__ RatesSides(const ps_rates &r, int32_t in_row)
        : is_first(threadIdx.x == 0), is_last(threadIdx.x == lanes - 1)
    {
        const int32_t pitch = static_cast<int32_t>(r.size[3]);
        const bool is_inner = is_first ? in_row > 0 : in_row + WIDTH < pitch;

        is_end = in_row + WIDTH >= pitch && r.periodic[0] == 0;
        if (is_inner) {
            outer = is_first ? -1 : WIDTH;
        }
        else if (is_first) {
            outer = r.periodic[0] != 0 ? pitch - 1 : 0;
        }
        else {
            outer = r.periodic[0] != 0 ? -in_row : WIDTH - 1;
        }
    }
};

/* Rows of u, and of d, at a pack and at the outer node of a lane, that are being loaded. */
template <int COUNT, int WIDTH, typename Form, typename Real> struct RatesRows {
    Pack<Real, WIDTH> u[COUNT], d[COUNT];
    Real outer_u[COUNT], outer_d[COUNT];

    /* Rows from `first` on, counted from p.y. */
    __device__ __forceinline__ void load(const ps_rates &r, const RatesPack &p,
                                         const RatesSides<WIDTH> &sides, int32_t first)
    {
        const int32_t height = static_cast<int32_t>(r.size[2]);
        const int32_t row = p.y + static_cast<int32_t>(r.begin[2]);

#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            int32_t step = first + k;

            if (row + step >= height) { /* or a row that is not stored */
                step = (r.periodic[1] != 0 ? 0 : height - 1) - row;
            }
            else if (row + step < 0) {
                step = r.periodic[1] != 0 ? height - 1 : 0;
            }
            const int32_t at = p.index + step * static_cast<int32_t>(r.size[3]);

            load_row(static_cast<const Real *>(r.u) + at, sides, u[k], outer_u[k]);
            if constexpr (Form::changed) {
                load_row(static_cast<const Real *>(r.d) + at, sides, d[k], outer_d[k]);
            }
        }
    }

    /* y = u + d as rows of a window from `first` on; called by all lanes together. */
    template <int ROWS>
    __device__ __forceinline__ void put(const RatesSides<WIDTH> &sides,
                                        Real (&to)[ROWS][WIDTH + 2], int first) const
    {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            Real(&row)[WIDTH + 2] = to[first + k];
            Real outer = outer_u[k];

#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                row[i + 1] = u[k].of[i];
                if constexpr (Form::changed) {
                    row[i + 1] += d[k].of[i];
                }
            }
            if constexpr (Form::changed) {
                outer += outer_d[k];
            }
            const Real before = device::shuffle_up(row[WIDTH], 1, lanes);
            const Real behind = device::shuffle_down(row[1], 1, lanes);

            row[0] = sides.is_first ? outer : before;
            row[WIDTH + 1] = sides.is_last ? outer : sides.is_end ? row[WIDTH] : behind;
        }
    }

  private:
    static __device__ __forceinline__ void load_row(const Real *own,
                                                    const RatesSides<WIDTH> &sides,
                                                    Pack<Real, WIDTH> &pack, Real &outer)
    {
        pack = *reinterpret_cast<const Pack<Real, WIDTH> *>(own);
        outer = Real(0);
        if (sides.is_first || sides.is_last) {
            outer = own[sides.outer];
        }
    }
};

/* y = u + d in rows -1 to ROWS of a thread, node -1 along x first; the outer rows have no
 * nodes -1 and WIDTH. */
template <int ROWS, int WIDTH, typename Form, typename Real> struct RatesWindow {
    Real at[ROWS + 2][WIDTH + 2];
    int32_t before, behind; /* from the first node to the neighbours of the pack */

    /* Load the first two rows. */
    __device__ __forceinline__ RatesWindow(const ps_rates &r, const RatesPack &p,
                                           int32_t in_row)
    {
        const int32_t pitch = static_cast<int32_t>(r.size[3]);

        before = in_row > 0 ? -1 : r.periodic[0] ? pitch - 1 : 0;
        behind = in_row + WIDTH < pitch ? WIDTH : r.periodic[0] ? -in_row : WIDTH - 1;
        load<true>(r, p);
    }

    /* Go on to the rows from p.y on. */
    __device__ __forceinline__ void advance(const ps_rates &r, const RatesPack &p,
                                            int32_t)
    {
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int i = 0; i < WIDTH + 2; i++) {
                at[j][i] = at[ROWS + j][i];
            }
        }
        load<false>(r, p);
    }

  private:
    /* Whether node i of row j is loaded: AT_BEGIN the last two rows only. */
    template <bool AT_BEGIN>
    static __device__ __forceinline__ constexpr bool has(int j, int i)
    {
        return i > 0 && i <= WIDTH ? j >= (AT_BEGIN ? ROWS : 2)
                                   : !AT_BEGIN && j > 0 && j <= ROWS;
    }
    /* AT_BEGIN the last two rows are the one before p.y and that one. */
    template <bool AT_BEGIN>
    __device__ __forceinline__ void load_field(const ps_rates &r, const RatesPack &p,
                                               const void *field,
                                               Real (&to)[ROWS + 2][WIDTH + 2]) const
    {
        const int32_t pitch = static_cast<int32_t>(r.size[3]);
        const int32_t height = static_cast<int32_t>(r.size[2]);
        const int32_t row = p.y + static_cast<int32_t>(r.begin[2]);

#pragma unroll
        for (int j = 0; j < ROWS + 2; j++) {
            int32_t step = AT_BEGIN ? j - ROWS - 1 : j - 1;

            if (!AT_BEGIN && row + step >= height) { /* or a row that is not stored */
                step = (r.periodic[1] != 0 ? 0 : height - 1) - row;
            }
            if (AT_BEGIN && row + step < 0) {
                step = r.periodic[1] != 0 ? height - 1 : 0;
            }
            const Real *const own =
                static_cast<const Real *>(field) + (p.index + step * pitch);

            if (has<AT_BEGIN>(j, 1)) {
                const auto pack = *reinterpret_cast<const Pack<Real, WIDTH> *>(own);

#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    to[j][i + 1] = pack.of[i];
                }
            }
            if (has<AT_BEGIN>(j, 0)) {
                to[j][0] = own[before];
                to[j][WIDTH + 1] = own[behind];
            }
        }
    }
    template <bool AT_BEGIN>
    __device__ __forceinline__ void load(const ps_rates &r, const RatesPack &p)
    {
        load_field<AT_BEGIN>(r, p, r.u, at);
        if constexpr (Form::changed) {
            Real d[ROWS + 2][WIDTH + 2];

            load_field<AT_BEGIN>(r, p, r.d, d);
#pragma unroll
            for (int j = 0; j < ROWS + 2; j++) {
#pragma unroll
                for (int i = 0; i < WIDTH + 2; i++) {
                    if (has<AT_BEGIN>(j, i)) {
                        at[j][i] += d[j][i];
                    }
                }
            }
        }
    }
};

/* The same with all nodes, while the next rows are being loaded. */
template <int ROWS, int WIDTH, typename Form, typename Real> struct RatesWindowAhead {
    Real at[ROWS + 2][WIDTH + 2];
    RatesSides<WIDTH> sides;
    RatesRows<ROWS, WIDTH, Form, Real> next;

    __device__ __forceinline__ RatesWindowAhead(const ps_rates &r, const RatesPack &p,
                                                int32_t in_row)
        : sides(r, in_row)
    {
        RatesRows<2, WIDTH, Form, Real> begin;

        begin.load(r, p, sides, -1);
        next.load(r, p, sides, 1);
        begin.put(sides, at, ROWS);
    }
    /* Go on to the rows from p.y on; the walk ends before row `end`. */
    __device__ __forceinline__ void advance(const ps_rates &r, const RatesPack &p,
                                            int32_t end)
    {
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int i = 0; i < WIDTH + 2; i++) {
                at[j][i] = at[ROWS + j][i];
            }
        }
        next.put(sides, at, 2);
        if (p.y + ROWS < end) {
            next.load(r, p, sides, ROWS + 1);
        }
    }
};

/* The terms of a result that are fields: own out, change d and base u. */
template <typename Real> struct RatesFields {
    const Real *field[3];
    Real factor[3];

    __device__ __forceinline__ RatesFields(const ps_rates &r, int o)
        : field{static_cast<const Real *>(r.out[o]), static_cast<const Real *>(r.d),
                static_cast<const Real *>(r.u)},
          factor{static_cast<Real>(r.own[o]), static_cast<Real>(r.change[o]),
                 static_cast<Real>(r.base[o])}
    {
    }
    __device__ __forceinline__ bool has(int f) const
    {
        return factor[f] != 0 && field[f] != nullptr;
    }
    template <int ROWS, int WIDTH>
    __device__ __forceinline__ void load(int f, const RatesPack &p, int32_t pitch,
                                         Pack<Real, WIDTH> (&to)[ROWS]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            to[k] = *reinterpret_cast<const Pack<Real, WIDTH> *>(
                field[f] + (p.index + min(k, p.rows - 1) * pitch));
        }
    }
    template <int ROWS, int WIDTH>
    __device__ __forceinline__ void add(int f, const Pack<Real, WIDTH> (&values)[ROWS],
                                        Real (&found)[ROWS][WIDTH]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                found[k][i] += factor[f] * values[k].of[i];
            }
        }
    }
};

/* Write a result at the nodes of a thread. */
template <int ROWS, int WIDTH, typename Real>
__device__ __forceinline__ void
write_packs(const ps_rates &r, const RatesPack &p, void *out,
            const Real (&found)[ROWS][WIDTH])
{
    const int32_t count = static_cast<int32_t>(r.count[3]);
    const bool is_whole = p.x >= 0 && p.x + WIDTH <= count;

#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        Real *const to =
            static_cast<Real *>(out) + (p.index + k * static_cast<int32_t>(r.size[3]));

        if (k < p.rows) {
            if (is_whole) {
                Pack<Real, WIDTH> pack;

#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    pack.of[i] = found[k][i];
                }
                *reinterpret_cast<Pack<Real, WIDTH> *>(to) = pack;
            }
            else {
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    if (p.x + i >= 0 && p.x + i < count) {
                        to[i] = found[k][i];
                    }
                }
            }
        }
    }
}

/* Write the sums of fields. */
template <int ROWS, int WIDTH, typename Real>
__device__ __forceinline__ void
put_sums(const RatesJob &job, const RatesPack &p)
{
    const ps_rates &r = job.r;

#pragma unroll
    for (int o = 0; o < PS_RATES_OUTS; o++) {
        const RatesFields<Real> fields(r, o);
        Pack<Real, WIDTH> values[3][ROWS];
        Real found[ROWS][WIDTH] = {};

        if (r.out[o] == nullptr) {
            continue;
        }
#pragma unroll
        for (int f = 0; f < 3; f++) { /* all loads before the first sum */
            if (fields.has(f)) {
                fields.load(f, p, static_cast<int32_t>(r.size[3]), values[f]);
            }
        }
#pragma unroll
        for (int f = 0; f < 3; f++) {
            if (fields.has(f)) {
                fields.add(f, values[f], found);
            }
        }
        write_packs(r, p, r.out[o], found);
    }
}

/* Write the results from L, and M if the pass is mixed. */
template <typename Form, int ROWS, int WIDTH, typename Real, typename Window>
__device__ __forceinline__ void
put_rates(const RatesJob &job, const RatesPack &p, const Window &y,
          const Real (&lines)[ROWS][WIDTH], const Real (&parts)[ROWS][WIDTH],
          const Pack<Real, WIDTH> (&own)[ROWS])
{
    const ps_rates &r = job.r;

#pragma unroll
    for (int o = 0; o < PS_RATES_OUTS; o++) {
        const Real line = static_cast<Real>(r.line[o]);
        Real found[ROWS][WIDTH];

        if (r.out[o] == nullptr) {
            continue;
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                found[k][i] = line * lines[k][i];
                if constexpr (Form::mixed) {
                    found[k][i] += static_cast<Real>(r.part[o]) * parts[k][i];
                }
            }
        }
        if (job.adds_y[o]) {
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    found[k][i] += y.at[k + 1][i + 1];
                }
            }
        }
        if constexpr (Form::changed) {
            const RatesFields<Real> fields(r, o);

#pragma unroll
            for (int f = 0; f < 3; f++) {
                if (Form::mixed && f == 0 && o == 0 && fields.has(0)) {
                    fields.add(0, own, found);
                }
                else if (fields.has(f) && !job.adds_y[o]) {
                    Pack<Real, WIDTH> values[ROWS];

                    fields.load(f, p, static_cast<int32_t>(r.size[3]), values);
                    fields.add(f, values, found);
                }
            }
        }
        write_packs(r, p, r.out[o], found);
    }
}

/* Block: (lanes, walks_a_block). A thread goes along y. */
template <int WIDTH, typename Form, typename Real> struct RatesPacks {
    RatesJob job;

    __device__ __forceinline__ void operator()() const
    {
        constexpr int ROWS = Form::rows;
        const ps_rates &r = job.r;
        const int32_t tiles = static_cast<int32_t>(job.tiles);
        const int32_t chunks = static_cast<int32_t>(job.chunks);
        const int32_t block = static_cast<int32_t>(blockIdx.x), group = block / tiles;
        const int32_t walk = group * walks_a_block + static_cast<int32_t>(threadIdx.y);
        const int32_t plane = walk < chunks ? 0 : walk / chunks;
        const int32_t in_row =
            ((block - group * tiles) * lanes + static_cast<int32_t>(threadIdx.x)) * WIDTH;
        const int32_t pitch = static_cast<int32_t>(r.size[3]);
        RatesPack p;

        p.y = (walk - plane * chunks) * Form::walk;
        p.x = in_row - static_cast<int32_t>(r.begin[3]);
        p.index = (plane * static_cast<int32_t>(r.size[2]) + p.y +
                   static_cast<int32_t>(r.begin[2])) *
                  pitch;
        if (walk >= job.walks) {
            return;
        }
        wait_for_last_kernel();
        let_next_kernel_in();
        const int32_t end = min(p.y + Form::walk, static_cast<int32_t>(r.count[2]));

        if constexpr (!Form::rates) {
            p.index += in_row;
            if (p.x >= static_cast<int32_t>(r.count[3])) {
                return;
            }
#pragma unroll 1
            for (; p.y < end; p.y += ROWS, p.index += ROWS * pitch) {
                p.rows = min(ROWS, end - p.y);
                put_sums<ROWS, WIDTH, Real>(job, p);
            }
            return;
        }
        else {
            /* A lane after the row has the pack that follows the last one. */
            const int32_t from = in_row < pitch       ? in_row
                                 : r.periodic[0] != 0 ? 0
                                                      : pitch - WIDTH;
            const RatesWeights<Real> along_y(r.rows[1], plane, r.rows[1][0].stride[2]);
            const RatesWeights<Real> across_y(r.slope[1], plane, r.slope[1][0].stride[2]);
            using Window =
                std::conditional_t<Form::mixed, RatesWindowAhead<ROWS, WIDTH, Form, Real>,
                                   RatesWindow<ROWS, WIDTH, Form, Real>>;
            Real of_x[WIDTH][3], slope_x[WIDTH][3];

            p.index += from;
            if (!Form::mixed &&
                (p.x + WIDTH <= 0 || p.x >= static_cast<int32_t>(r.count[3]))) {
                return;
            }
            Window y(r, p, from);

#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                const int32_t at =
                    max(min(p.x + i, static_cast<int32_t>(r.count[3]) - 1), 0);

                RatesWeights<Real>(r.rows[0], plane, r.rows[0][0].stride[3])
                    .load(at, of_x[i]);
                if constexpr (Form::mixed) {
                    RatesWeights<Real>(r.slope[0], plane, r.slope[0][0].stride[3])
                        .load(at, slope_x[i]);
                }
            }
            if constexpr (Form::mixed) {
                const Real mixed =
                    __ldg(static_cast<const Real *>(r.mixed[0].data) +
                          plane * static_cast<int32_t>(r.mixed[0].stride[0]));

#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
#pragma unroll
                    for (int w = 0; w < 3; w++) {
                        slope_x[i][w] *= mixed;
                    }
                }
            }
#pragma unroll 1
            for (; p.y < end; p.y += ROWS, p.index += ROWS * pitch) {
                Real lines[ROWS][WIDTH], parts[ROWS][WIDTH], of_y[ROWS][3],
                    slope_y[ROWS][3];
                Pack<Real, WIDTH> own[ROWS];

                p.rows = min(ROWS, end - p.y);
                if constexpr (Form::mixed && Form::changed) {
                    const RatesFields<Real> fields(r, 0);

                    if (fields.has(0)) {
                        fields.load(0, p, pitch, own);
                    }
                }
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    const int32_t at = p.y + min(k, p.rows - 1);

                    along_y.load(at, of_y[k]);
                    if constexpr (Form::mixed) {
                        across_y.load(at, slope_y[k]);
                    }
                }
                y.advance(r, p, end);
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    Real across[WIDTH + 2];

                    if constexpr (Form::mixed) {
#pragma unroll
                        for (int i = 0; i < WIDTH + 2; i++) {
                            across[i] = slope_y[k][0] * y.at[k][i] +
                                        slope_y[k][1] * y.at[k + 1][i] +
                                        slope_y[k][2] * y.at[k + 2][i];
                        }
                    }
#pragma unroll
                    for (int i = 0; i < WIDTH; i++) {
                        lines[k][i] = of_x[i][0] * -y.at[k + 1][i];
                        lines[k][i] += of_x[i][1] * -y.at[k + 1][i + 1];
                        lines[k][i] += of_x[i][2] * -y.at[k + 1][i + 2];
                        lines[k][i] += of_y[k][0] * -y.at[k][i + 1];
                        lines[k][i] += of_y[k][1] * -y.at[k + 1][i + 1];
                        lines[k][i] += of_y[k][2] * -y.at[k + 2][i + 1];
                        if constexpr (Form::mixed) {
                            parts[k][i] = slope_x[i][0] * across[i] +
                                          slope_x[i][1] * across[i + 1] +
                                          slope_x[i][2] * across[i + 2];
                        }
                    }
                }
                put_rates<Form>(job, p, y, lines, parts, own);
            }
        }
    }
};

} // namespace pysolvers::lines

#endif
