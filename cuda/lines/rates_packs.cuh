/* rates_packs.cuh - the passes of ps_rates.h along two axes with constant coefficients,
 * and sums without rows.
 *
 * A lane has a pack of neighbouring nodes along x, which begins at a multiple of its
 * width in the field, and goes along y with three and more rows of y in registers. Rows
 * along x have one weight for all y, and rows along y one for all x. A pass of two words
 * takes 82 us, with weights of any strides (rates.cu) 130, and a copy 63 (4096 x 4096,
 * float64, H200): rates.cu has about 125 instructions for a node, this kernel 39.
 */
#ifndef PS_CUDA_LINES_RATES_PACKS_CUH
#define PS_CUDA_LINES_RATES_PACKS_CUH

#include "device/number.cuh"
#include "lines/rates_job.cuh"
#include "lines/row_walk.cuh"

namespace pysolvers::lines {

/* Whether a pass has L and M, or neither, whether it adds d, and has a mixed derivative. */
template <bool RATES, bool CHANGED, bool MIXED> struct RatesForm {
    static constexpr bool rates = RATES, changed = CHANGED, mixed = MIXED;
    static constexpr int rows = RATES ? 2 : 4; /* that a thread computes at a time */
    static constexpr int walk = MIXED ? 8 : 4; /* and in all */
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

/* y = u + d in rows -1 to ROWS of a thread, node -1 along x first; the outer rows have the
 * nodes -1 and WIDTH if MIXED. */
template <int ROWS, int WIDTH, typename Form, typename Real> struct RatesWindow {
    Real at[ROWS + 2][WIDTH + 2];
    int32_t before, behind; /* from the first node to the neighbours of the pack */

    /* Load the first two rows. */
    __device__ __forceinline__ RatesWindow(const ps_rates &r, const RatesPack &p)
    {
        const int32_t pitch = static_cast<int32_t>(r.size[3]);
        const int32_t in_row = p.x + static_cast<int32_t>(r.begin[3]);

        before = in_row > 0 ? -1 : r.periodic[0] ? pitch - 1 : 0;
        behind = in_row + WIDTH < pitch ? WIDTH : r.periodic[0] ? -in_row : WIDTH - 1;
        load<true>(r, p);
    }

    /* Go on to the rows from p.y on. */
    __device__ __forceinline__ void advance(const ps_rates &r, const RatesPack &p)
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
        return (Form::mixed || (i > 0 && i <= WIDTH)) ? j >= (AT_BEGIN ? ROWS : 2)
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
          const Real (&lines)[ROWS][WIDTH], const Real (&parts)[ROWS][WIDTH])
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
                if (fields.has(f) && !job.adds_y[o]) {
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
template <int WIDTH, typename Form, typename Real>
__global__ void
__launch_bounds__(lanes *walks_a_block, Form::blocks)
    rates_packs_kernel(const __grid_constant__ RatesJob job)
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
                  pitch +
              in_row;
    if (p.x + WIDTH <= 0 || p.x >= static_cast<int32_t>(r.count[3]) ||
        walk >= job.walks) {
        return;
    }
    const int32_t end = min(p.y + Form::walk, static_cast<int32_t>(r.count[2]));

    if constexpr (!Form::rates) {
#pragma unroll 1
        for (; p.y < end; p.y += ROWS, p.index += ROWS * pitch) {
            p.rows = min(ROWS, end - p.y);
            put_sums<ROWS, WIDTH, Real>(job, p);
        }
        return;
    }
    else {
        const RatesWeights<Real> along_y(r.rows[1], plane, r.rows[1][0].stride[2]);
        const RatesWeights<Real> across_y(r.slope[1], plane, r.slope[1][0].stride[2]);
        RatesWindow<ROWS, WIDTH, Form, Real> y(r, p);
        Real of_x[WIDTH][3], slope_x[WIDTH][3], mixed = 0;

#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            const int32_t at = max(min(p.x + i, static_cast<int32_t>(r.count[3]) - 1), 0);

            RatesWeights<Real>(r.rows[0], plane, r.rows[0][0].stride[3])
                .load(at, of_x[i]);
            if constexpr (Form::mixed) {
                RatesWeights<Real>(r.slope[0], plane, r.slope[0][0].stride[3])
                    .load(at, slope_x[i]);
            }
        }
        if constexpr (Form::mixed) {
            mixed = __ldg(static_cast<const Real *>(r.mixed[0].data) +
                          plane * static_cast<int32_t>(r.mixed[0].stride[0]));
        }
#pragma unroll 1
        for (; p.y < end; p.y += ROWS, p.index += ROWS * pitch) {
            Real lines[ROWS][WIDTH], parts[ROWS][WIDTH], of_y[ROWS][3], slope_y[ROWS][3];

            p.rows = min(ROWS, end - p.y);
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                const int32_t at = p.y + min(k, p.rows - 1);

                along_y.load(at, of_y[k]);
                if constexpr (Form::mixed) {
                    across_y.load(at, slope_y[k]);
                }
            }
            y.advance(r, p);
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
                        parts[k][i] = mixed * (slope_x[i][0] * across[i] +
                                               slope_x[i][1] * across[i + 1] +
                                               slope_x[i][2] * across[i + 2]);
                    }
                }
            }
            put_rates<Form>(job, p, y, lines, parts);
        }
    }
}

} // namespace pysolvers::lines

#endif
