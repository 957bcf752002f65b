/* rates_packs.cuh - the passes of ps_rates.h along two axes, whose rows are those of
 * constant coefficients, and sums without rows.
 *
 * A lane has a pack of neighbouring nodes along x, which begins at a multiple of its
 * width in the field, and ROWS nodes along y. Rows along x have one weight for all y, and
 * rows along y one for all x: a thread needs 3 (WIDTH + ROWS) weights for ROWS * WIDTH
 * nodes, and nothing waits for a branch between the loads. With weights of any strides
 * (rates.cu) a pass of two words took 130 us, and a copy 63 (4096 x 4096, float64, H200).
 */
#ifndef PS_CUDA_LINES_RATES_PACKS_CUH
#define PS_CUDA_LINES_RATES_PACKS_CUH

#include "device/number.cuh"
#include "lines/rates_job.cuh"
#include "lines/row_walk.cuh"

namespace pysolvers::lines {

/* The nodes of a thread: in the field its first node is `own` elements from the first row
 * of its plane, in the box it has the indices y and x, which is negative before the box. */
struct RatesPack {
    int32_t plane, y, x, own;
    int rows; /* that are in the box */

    /* The values of an input of the plane. */
    template <typename Real>
    __device__ __forceinline__ const Real *of(const ps_rates_input &in) const
    {
        return static_cast<const Real *>(in.data) +
               plane * static_cast<int32_t>(in.stride[0]);
    }
    /* The index of a node in the box, or of the nearest one. */
    __device__ __forceinline__ int32_t along_x(const ps_rates &r, int i) const
    {
        return max(min(x + i, static_cast<int32_t>(r.count[3]) - 1), 0);
    }
    __device__ __forceinline__ int32_t along_y(int k) const
    {
        return y + min(k, rows - 1);
    }
    __device__ __forceinline__ bool has(const ps_rates &r, int i) const
    {
        return x + i >= 0 && x + i < static_cast<int32_t>(r.count[3]);
    }
};

/* The weights of the nodes of a thread along x and along y. */
template <int ROWS, int WIDTH, typename Real> struct RatesWeights {
    Real x[3][WIDTH], y[3][ROWS];

    __device__ __forceinline__ void load_x(const ps_rates &r, const RatesPack &p,
                                           const ps_rates_input (&in)[PS_RATES_SPACE][3])
    {
#pragma unroll
        for (int w = 0; w < 3; w++) {
            const Real *const from = p.of<Real>(in[0][w]);

#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                x[w][i] = __ldg(from + p.along_x(r, i) *
                                           static_cast<int32_t>(in[0][w].stride[3]));
            }
        }
    }
    __device__ __forceinline__ void load_y(const RatesPack &p,
                                           const ps_rates_input (&in)[PS_RATES_SPACE][3])
    {
#pragma unroll
        for (int w = 0; w < 3; w++) {
            const Real *const from = p.of<Real>(in[1][w]);

#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                y[w][k] =
                    __ldg(from + p.along_y(k) * static_cast<int32_t>(in[1][w].stride[2]));
            }
        }
    }
};

/* y = u + d in rows -1 to ROWS of a thread, node -1 along x first; the outer rows have the
 * nodes -1 and WIDTH if MIXED. */
template <int ROWS, int WIDTH, bool CHANGED, bool MIXED, typename Real>
struct RatesWindow {
    Real at[ROWS + 2][WIDTH + 2];
    int32_t before, behind; /* from the first node to the neighbours of the pack */

    /* Load the first two rows. */
    __device__ __forceinline__ RatesWindow(const ps_rates &r, const RatesPack &p)
    {
        const int32_t pitch = static_cast<int32_t>(r.size[3]);
        const int32_t in_row = p.x + static_cast<int32_t>(r.begin[3]);

        before = in_row > 0 ? -1 : r.periodic[0] ? pitch - 1 : 0;
        behind = in_row + WIDTH < pitch ? WIDTH : r.periodic[0] ? -in_row : WIDTH - 1;
        load<ROWS>(r, p, p.y - ROWS);
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
        load<2>(r, p, p.y);
    }

  private:
    /* Whether node i of row j is loaded with the rows from FIRST on. */
    template <int FIRST>
    static __device__ __forceinline__ constexpr bool has(int j, int i)
    {
        return (MIXED || (i > 0 && i <= WIDTH)) ? j >= FIRST
                                                : FIRST == 2 && j > 0 && j <= ROWS;
    }
    template <int FIRST>
    static __device__ __forceinline__ void
    load_field(const ps_rates &r, const RatesPack &p, int32_t y, const void *field,
               int32_t before, int32_t behind, Real (&to)[ROWS + 2][WIDTH + 2])
    {
        const int32_t height = static_cast<int32_t>(r.size[2]);

#pragma unroll
        for (int j = 0; j < ROWS + 2; j++) {
            int32_t row = y + static_cast<int32_t>(r.begin[2]) + j - 1;

            if (row < 0 || row >= height) { /* or a row that is not stored */
                row = (row < 0) == (r.periodic[1] != 0) ? height - 1 : 0;
            }
            const Real *const own = static_cast<const Real *>(field) +
                                    (p.own + row * static_cast<int32_t>(r.size[3]));

            if (has<FIRST>(j, 1)) {
                const auto pack = *reinterpret_cast<const Pack<Real, WIDTH> *>(own);

#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    to[j][i + 1] = pack.of[i];
                }
            }
            if (has<FIRST>(j, 0)) {
                to[j][0] = own[before];
                to[j][WIDTH + 1] = own[behind];
            }
        }
    }
    template <int FIRST>
    __device__ __forceinline__ void load(const ps_rates &r, const RatesPack &p, int32_t y)
    {
        load_field<FIRST>(r, p, y, r.u, before, behind, at);
        if constexpr (CHANGED) {
            Real d[ROWS + 2][WIDTH + 2];

            load_field<FIRST>(r, p, y, r.d, before, behind, d);
#pragma unroll
            for (int j = 0; j < ROWS + 2; j++) {
#pragma unroll
                for (int i = 0; i < WIDTH + 2; i++) {
                    if (has<FIRST>(j, i)) {
                        at[j][i] += d[j][i];
                    }
                }
            }
        }
    }
};

/* Add a value per node, or one for all of them, times value(k, i). */
template <int ROWS, int WIDTH, typename Real, typename Value>
__device__ __forceinline__ void
add_of_nodes(const ps_rates &r, const RatesPack &p, const ps_rates_input &in,
             Real (&sums)[ROWS][WIDTH], const Value &value)
{
    const Real *const from = p.of<Real>(in);
    const int32_t of_x = static_cast<int32_t>(in.stride[3]);
    const int32_t of_y = static_cast<int32_t>(in.stride[2]);
    Real factors[ROWS][WIDTH];

    if (of_x == 0 && of_y == 0) {
        const Real one = __ldg(from);

#pragma unroll
        for (int k = 0; k < ROWS; k++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                factors[k][i] = one;
            }
        }
    }
    else {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                factors[k][i] =
                    __ldg(from + (p.along_y(k) * of_y + p.along_x(r, i) * of_x));
            }
        }
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            sums[k][i] += factors[k][i] * value(k, i);
        }
    }
}

/* Write a result at the nodes of a thread. */
template <int ROWS, int WIDTH, typename Real>
__device__ __forceinline__ void
store_packs(const RatesJob &job, const RatesPack &p, int o,
            const Real (&lines)[ROWS][WIDTH], const Real (&parts)[ROWS][WIDTH])
{
    using P = Pack<Real, WIDTH>;
    const ps_rates &r = job.r;
    const int32_t pitch = static_cast<int32_t>(r.size[3]);
    const int32_t first = p.own + (p.y + static_cast<int32_t>(r.begin[2])) * pitch;
    const bool is_whole = p.has(r, 0) && p.has(r, WIDTH - 1);
    const Real line = static_cast<Real>(r.line[o]), part = static_cast<Real>(r.part[o]);
    Real *const out = static_cast<Real *>(r.out[o]);
    const Real *const fields[] = {out, static_cast<const Real *>(r.d),
                                  static_cast<const Real *>(r.u)};
    const Real factors[] = {static_cast<Real>(r.own[o]), static_cast<Real>(r.change[o]),
                            static_cast<Real>(r.base[o])};
    P added[3][ROWS], found[ROWS];

#pragma unroll
    for (int f = 0; f < 3; f++) {
        if (factors[f] != 0 && fields[f] != nullptr) {
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                added[f][k] = *reinterpret_cast<const P *>(
                    fields[f] + (first + min(k, p.rows - 1) * pitch));
            }
        }
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            found[k].of[i] = (job.with_lines ? line * lines[k][i] : 0) +
                             (job.with_parts ? part * parts[k][i] : 0);
        }
    }
#pragma unroll
    for (int f = 0; f < 3; f++) {
        if (factors[f] != 0 && fields[f] != nullptr) {
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
#pragma unroll
                for (int i = 0; i < WIDTH; i++) {
                    found[k].of[i] += factors[f] * added[f][k].of[i];
                }
            }
        }
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        Real *const to = out + (first + k * pitch);

        if (k < p.rows && is_whole) {
            *reinterpret_cast<P *>(to) = found[k];
        }
        else if (k < p.rows) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                if (p.has(r, i)) {
                    to[i] = found[k].of[i];
                }
            }
        }
    }
}

/* Whether a pass has L and M, or neither, whether it adds d, and has a mixed derivative. */
template <bool RATES, bool CHANGED, bool MIXED> struct RatesForm {
    static constexpr bool rates = RATES, changed = CHANGED, mixed = MIXED;
};

/* Add L and M at the nodes of a thread. */
template <int ROWS, int WIDTH, typename Form, typename Window, typename Real>
__device__ __forceinline__ void
add_rates(const RatesJob &job, const RatesPack &p, const Window &y,
          const RatesWeights<ROWS, WIDTH, Real> &rows,
          const RatesWeights<ROWS, WIDTH, Real> &slopes, Real (&lines)[ROWS][WIDTH],
          Real (&parts)[ROWS][WIDTH])
{
    const ps_rates &r = job.r;

#pragma unroll
    for (int k = 0; k < ROWS; k++) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
#pragma unroll
            for (int w = 0; w < 3; w++) {
                lines[k][i] += rows.x[w][i] * -y.at[k + 1][i + w];
            }
#pragma unroll
            for (int w = 0; w < 3; w++) {
                lines[k][i] += rows.y[w][k] * -y.at[k + w][i + 1];
            }
        }
    }
    if constexpr (Form::mixed) {
        add_of_nodes(r, p, r.mixed[0], parts, [&](int k, int i) {
            Real cross = 0;

#pragma unroll
            for (int w = 0; w < 3; w++) {
                cross += slopes.x[w][i] * (slopes.y[0][k] * y.at[k][i + w] +
                                           slopes.y[1][k] * y.at[k + 1][i + w] +
                                           slopes.y[2][k] * y.at[k + 2][i + w]);
            }
            return cross;
        });
    }
    if (job.with_lines && r.source.data != nullptr) {
        add_of_nodes(r, p, r.source, lines, [](int, int) { return Real(1); });
    }
    if (job.with_parts && r.extra.data != nullptr) {
        add_of_nodes(r, p, r.extra, parts, [](int, int) { return Real(1); });
    }
}

/* Block: (lanes, walks_a_block). A thread goes along y, ROWS nodes at a time. */
template <int ROWS, int WIDTH, typename Form, typename Real>
__global__ void
__launch_bounds__(lanes *walks_a_block, 2)
    rates_packs_kernel(const __grid_constant__ RatesJob job)
{
    const ps_rates &r = job.r;
    const int32_t tiles = static_cast<int32_t>(job.tiles);
    const int32_t chunks = static_cast<int32_t>(job.chunks);
    const int32_t block = static_cast<int32_t>(blockIdx.x), group = block / tiles;
    const int32_t walk = group * walks_a_block + static_cast<int32_t>(threadIdx.y);
    const int32_t in_row =
        ((block - group * tiles) * lanes + static_cast<int32_t>(threadIdx.x)) * WIDTH;
    RatesPack p;

    p.plane = walk < chunks ? 0 : walk / chunks;
    p.y = (walk - p.plane * chunks) * job.rows;
    p.x = in_row - static_cast<int32_t>(r.begin[3]);
    p.own = p.plane * static_cast<int32_t>(r.size[2] * r.size[3]) + in_row;
    if (p.x + WIDTH <= 0 || p.x >= static_cast<int32_t>(r.count[3]) ||
        walk >= job.walks) {
        return;
    }
    const int32_t end = min(p.y + job.rows, static_cast<int32_t>(r.count[2]));
    const auto store = [&](const Real(&lines)[ROWS][WIDTH],
                           const Real(&parts)[ROWS][WIDTH]) {
#pragma unroll
        for (int o = 0; o < PS_RATES_OUTS; o++) {
            if (r.out[o] != nullptr) {
                store_packs(job, p, o, lines, parts);
            }
        }
    };

    if constexpr (Form::rates) {
        RatesWeights<ROWS, WIDTH, Real> rows, slopes;
        RatesWindow<ROWS, WIDTH, Form::changed, Form::mixed, Real> y(r, p);

        rows.load_x(r, p, r.rows);
        if constexpr (Form::mixed) {
            slopes.load_x(r, p, r.slope);
        }
#pragma unroll 1
        for (; p.y < end; p.y += ROWS) {
            Real lines[ROWS][WIDTH] = {}, parts[ROWS][WIDTH] = {};

            p.rows = min(ROWS, end - p.y);
            rows.load_y(p, r.rows);
            if constexpr (Form::mixed) {
                slopes.load_y(p, r.slope);
            }
            y.advance(r, p);
            add_rates<ROWS, WIDTH, Form>(job, p, y, rows, slopes, lines, parts);
            store(lines, parts);
        }
    }
    else {
#pragma unroll 1
        for (; p.y < end; p.y += ROWS) {
            const Real nothing[ROWS][WIDTH] = {};

            p.rows = min(ROWS, end - p.y);
            store(nothing, nothing);
        }
    }
}

} // namespace pysolvers::lines

#endif
