/* gceidd_strips.cuh - short strips, each solved by one thread in registers.
 *
 * A warp has one strip of 32 neighbouring lines. A block has `own` neighbouring strips
 * and, for the corrections, also the strip after them, which the next block computes as
 * well. A thread predicts the value at the interface after its strip and eliminates
 * from there to the first row of the strip,
 *
 *   V[p] = d[k] + c[k] V[p-1],   p = end - 1 - k,
 *
 * in row-sum form (Grassmann, Taksar and Heyman 1985) for differences from the
 * right-hand side z, so that a constant keeps its bits for any dt: with S = 1 and h = 0
 * at a known value z = V, and with left of p+1/2 and right of p-1/2,
 *
 *   sigma = 1 + q + left S[p+1]    c = right/(sigma + right)    S = sigma/(sigma + right)
 *   h = (left (h[p+1] + S[p+1] (z[p+1] - z)) - q z)/(sigma + right)    d = z + h - c z
 *
 * d is one fused operation, and so is V: their rounding errors cancel in a constant.
 * Errors are of the size of z, which contains dt f/2. The file does not use the units of
 * lines/: a thread has a whole strip, and d needs no word more than before elimination.
 *
 * It reads the prediction at the interface before the strip from its neighbour,
 * substitutes for increasing row numbers and corrects the interface after the strip. On
 * lines with constant coefficients (STEADY) all strips have the same pivots and feet,
 * which are stored in a table. 2 words per node.
 */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_STRIPS_CUH
#define PS_CUDA_TRANSPORT_GCEIDD_STRIPS_CUH

#include "device/pivot.cuh"
#include "runtime/copy.cuh"
#include "runtime/launch.cuh"
#include "transport/gceidd_rows.cuh"
#include "transport/gceidd_strips.h"

namespace pysolvers::transport {

using namespace runtime;

constexpr int warp_lanes = 32, strip_warps = 12;

/* Blocks per multiprocessor, limited by registers and threads. */
constexpr int
strip_blocks(int most, bool steady)
{
    const int by_registers = most > 16 ? 1 : (steady ? 3 : 2) - (most > 8 ? 1 : 0);
    const int by_threads = resident_threads / (strip_warps * warp_lanes);

    return by_registers < by_threads ? by_registers : by_threads;
}

template <typename Real> using Lanes32 = Real[warp_lanes];

/* The rows of the table of a steady line; they are followed by the inverses of the
 * pivots, from the end of a strip on. */
enum {
    LINE_RIGHT, /* flow to the right */
    LINE_LEFT,
    LINE_DIFFUSION, /* dt a/h^2 */
    LINE_SHIFT,     /* the foot of node p lies after node p + shift, */
    LINE_PART,      /* by this fraction of h */
    LINE_INVERSE
};
static_assert(LINE_INVERSE + PS_CUDA_GCEIDD_MOST_CELLS - 1 == PS_CUDA_GCEIDD_TABLE_ROWS,
              "a table has room for the longest strips");

/* The numbers of one line, in shared memory or in the table. */
template <typename Real> struct LineNumbers {
    const Real *data;
    int64_t step;

    __device__ __forceinline__ Real at(int32_t row) const
    {
        return data[row * step];
    }
};

/* What the warps of a block exchange, in shared memory. */
template <typename Real> struct StripArrays {
    /* [warps + 1]: value before strip k, and after the last strip */
    Lanes32<Real> *known;
    Lanes32<Real> *first; /* [2 warps]: V of the first two rows of strip k */
    /* [LINE_INVERSE + most]: the table, if STEADY; other data follow */
    Lanes32<Real> *line;

    static __host__ __device__ __forceinline__ int32_t rows(int32_t warps)
    {
        return 3 * warps + 1;
    }
    __device__ __forceinline__ StripArrays(unsigned char *shared, int32_t warps)
    {
        known = reinterpret_cast<Lanes32<Real> *>(shared);
        first = known + warps + 1;
        line = first + 2 * warps;
    }
};

/* The strip of a thread: rows begin + 1 .. end - 1. */
struct StripThreadPlace {
    int32_t warp, lane;
    int32_t strip, begin, end, rows;
    bool is_there, is_last, is_owner;

    template <typename Real>
    __device__ __forceinline__ StripThreadPlace(const Sweep<Real> &s, int32_t first,
                                                int32_t own)
    {
        warp = __shfl_sync(0xffffffffu, static_cast<int32_t>(threadIdx.x) / 32, 0);
        lane = threadIdx.x % 32;
        strip = first + warp;
        is_there = strip < s.strips;
        strip = is_there ? strip : s.strips - 1;
        begin = s.interface(strip);
        end = s.interface(strip + 1);
        rows = is_there ? end - begin - 1 : 0;
        is_last = strip == s.strips - 1;
        is_owner = is_there && warp < own;
    }
};

/* The node after the last strip: its value is known, or it has a row with the
 * derivative at the end. Returns its link. */
template <typename Real, bool STEADY, typename Values>
__device__ __forceinline__ Link<Real>
high_end(const Sweep<Real> &s, const Values &values, int32_t l, Eliminated<Real> &end)
{
    const int32_t n = s.cells;

    if (STEADY || !s.high.neumann) {
        end = {s.high.at(l), Real(0), Real(1)};
        return {end.z, Real(0)};
    }
    const Flow<Real> before = flow_at(s, n - 1, l), beyond = flow_at(s, n, l);
    const Real q = divergence(s, n, l), z = right_side(s, values, n, l);
    const Real lower = before.right + beyond.left;
    const Real p = fast_reciprocal(1 + q + lower);
    const Real added = beyond.left * (2 * s.h * s.high.at(l));

    end = {z, fma(-q, z, added) * p, (1 + q) * p};
    return link_of(z, end.h, lower * p);
}

/* V of node 0 with a given derivative, from row 1. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
low_end(const Sweep<Real> &s, const Values &values, int32_t l,
        const Eliminated<Real> &next)
{
    const Flow<Real> beyond = flow_at(s, -1, l), behind = flow_at(s, 0, l);
    const Real q = divergence(s, 0, l), z = right_side(s, values, 0, l);
    const Real upper = beyond.right + behind.left;
    const Real sigma = fma(upper, next.share, 1 + q);
    const Real added = beyond.right * (2 * s.h * s.low.at(l));
    const Real carried = fma(next.share, next.z - z, next.h);

    return fma(fma(upper, carried, fma(-q, z, added)), fast_reciprocal(sigma), z);
}

/* The constants of the predictions on a steady line. */
template <typename Real> struct LineStep {
    int32_t shift;
    Real part, diffusion;
};

template <typename Real>
__device__ __forceinline__ LineStep<Real>
line_step(const LineNumbers<Real> &line)
{
    return {static_cast<int32_t>(line.at(LINE_SHIFT)), line.at(LINE_PART),
            line.at(LINE_DIFFUSION)};
}

/* The prediction at interface p of a steady line, from U there and at the adjacent
 * nodes. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
steady_prediction(const Sweep<Real> &s, const Values &values, int32_t p, int32_t l,
                  const Real (&u)[3], const LineStep<Real> &line)
{
    if (s.scheme == PS_GCEIDD_MU) {
        return earlier_prediction(s, p, l, u[1]);
    }
    const int32_t k = p + line.shift;
    const Real up = u[2] - u[1], down = u[1] - u[0], diffused = up - down;
    const Real foot = line.shift == -1        ? fma(line.part, down, u[0])
                      : line.shift == 0       ? fma(line.part, up, u[1])
                      : k >= 0 && k < s.cells ? value_between(values, k, line.part)
                                              : foot_value(s, values, p, l);
    const Real moved = s.terms == 0 ? foot : foot + source_at(s, p, l);

    return fma(line.diffusion, diffused, moved);
}

/* make(k) for the rows of a strip, k < rows <= MOST, with BACK in reverse order;
 * without tests if rows == MOST. */
template <int MOST, bool BACK = false, typename Make>
__device__ __forceinline__ void
each_row(int32_t rows, const Make &make)
{
    if (rows == MOST) {
#pragma unroll
        for (int k = 0; k < MOST; k++) {
            make(BACK ? MOST - 1 - k : k);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        if ((BACK ? MOST - 1 - k : k) < rows) {
            make(BACK ? MOST - 1 - k : k);
        }
    }
}

/* At most MOST rows. `values` provides U: get(p, ...) for any node, as in Field;
 * row(p), with distance step(), and load_once() for the rows of the own strip. */
template <typename Real, int MOST, bool STEADY, bool FEET> struct Strip {
    Real d[MOST], c[STEADY ? 1 : MOST];
    Link<Real> end;        /* of the node after the strip */
    Eliminated<Real> next; /* the row that was eliminated last, unless STEADY */

    template <typename Values>
    __device__ __forceinline__ void load(const Sweep<Real> &s, const Values &values,
                                         const StripThreadPlace &self, int32_t l)
    {
        const Real *const from = values.row(self.end);
        const int32_t step = static_cast<int32_t>(values.step());

        each_row<MOST>(self.rows, [&](int k) {
            d[k] = FEET ? foot_value(s, values, self.end - 1 - k, l)
                        : values.load_once(from + static_cast<int64_t>(step) * -(k + 1));
        });
#pragma unroll 1
        for (int t = 0; t < s.terms; t++) {
#pragma unroll
            for (int k = 0; k < MOST; k++) {
                if (k < self.rows) {
                    d[k] = fma(s.factor[t], s.source[t].at(self.end - 1 - k, l), d[k]);
                }
            }
        }
    }

    /* Compute and publish the value after the strip, and for the first strip of the
     * block also that before it. The loads of both are issued before one of them is
     * used. */
    template <typename Values>
    __device__ __forceinline__ void predict(const Sweep<Real> &s, const Values &values,
                                            const StripThreadPlace &self, int32_t l,
                                            const LineNumbers<Real> &numbers,
                                            const StripArrays<Real> &exchange)
    {
        const bool ends = self.is_there && !self.is_last;
        const bool begins = self.warp == 0 && self.strip > 0;
        Real behind[3] = {}, front[3] = {};

        if (STEADY && ends) {
            values.get(self.end - 1, behind);
        }
        if (STEADY && begins) {
            values.get(self.begin - 1, front);
        }
        const LineStep<Real> line = STEADY ? line_step(numbers) : LineStep<Real>();

        end = {};
        next = {};
        if (ends) {
            end.d = STEADY ? steady_prediction(s, values, self.end, l, behind, line)
                           : prediction(s, values, self.end, l);
            next = {end.d, Real(0), Real(1)};
        }
        else if (self.is_there) {
            end = high_end<Real, STEADY>(s, values, l, next);
        }
        if (self.is_there) {
            exchange.known[self.warp + 1][self.lane] = end.d;
        }
        if (begins) {
            exchange.known[0][self.lane] =
                STEADY ? steady_prediction(s, values, self.begin, l, front, line)
                       : prediction(s, values, self.begin, l);
        }
        else if (self.warp == 0 && (STEADY || !s.low.neumann)) {
            exchange.known[0][self.lane] = s.low.at(l);
        }
    }

    __device__ __forceinline__ void eliminate(const Sweep<Real> &s,
                                              const StripThreadPlace &self, int32_t l,
                                              const StripArrays<Real> &exchange)
    {
        if (STEADY) {
            const Real left = exchange.line[LINE_LEFT][self.lane];
            const Real right = exchange.line[LINE_RIGHT][self.lane];
            const Real *const inverse = &exchange.line[LINE_INVERSE][self.lane];
            Eliminated<Real> after = {end.d, Real(0), Real(1)};

#pragma unroll
            for (int k = 0; k < MOST; k++) {
                const Real r = inverse[k * warp_lanes], c = right * r, z = d[k];
                const Real h = left * r * fma(after.share, after.z - z, after.h);

                d[k] = link_of(z, h, c).d;
                after = {z, h, 1 - c};
            }
            return;
        }
        Flow<Real> behind = flow_at(s, self.end - 1, l);

#pragma unroll
        for (int k = 0; k < MOST; k++) {
            if (k < self.rows) {
                const Link<Real> own = link(s, self.end - 1 - k, l, behind, d[k]);

                c[STEADY ? 0 : k] = own.c;
                d[k] = own.d;
            }
        }
    }

    /* V replaces d. */
    __device__ __forceinline__ void substitute(const StripThreadPlace &self, Real front,
                                               const StripArrays<Real> &exchange)
    {
        const Real right = STEADY ? exchange.line[LINE_RIGHT][self.lane] : Real(0);
        const Real *const inverse = &exchange.line[LINE_INVERSE][self.lane];
        Real *const first = &exchange.first[2 * self.warp][self.lane];
        Real v = front;

        each_row<MOST, true>(self.rows, [&](int k) {
            v = fma(STEADY ? right * inverse[k * warp_lanes] : c[STEADY ? 0 : k], v,
                    d[k]);
            d[k] = v;
            if (k >= self.rows - 2) {
                first[(self.rows - 1 - k) * warp_lanes] = v;
            }
        });
    }

    /* V of the node after the strip. */
    __device__ __forceinline__ Real close(const StripThreadPlace &self,
                                          const StripArrays<Real> &exchange) const
    {
        return self.is_last
                   ? fma(end.c, d[0], end.d)
                   : correction(d[0], d[1], exchange.first[2 * self.warp + 2][self.lane],
                                exchange.first[2 * self.warp + 3][self.lane]);
    }

  private:
    /* The link of row p, which becomes `next`; `behind` becomes the flow between p - 1
     * and p. */
    __device__ __forceinline__ Link<Real> link(const Sweep<Real> &s, int32_t p, int32_t l,
                                               Flow<Real> &behind, Real z)
    {
        const Flow<Real> before = flow_at(s, p - 1, l);
        const Real q = divergence(s, p, l), left = behind.left;

        behind = before;
        return eliminated_row(next, left, before.right, 1 + q, z, -q * z);
    }
};

/* From an eliminated strip, when all warps have published their predictions, to V in
 * strip.d without the corrections. Returns V before the strip. */
template <typename Real, int MOST, bool STEADY, bool FEET, typename Values>
__device__ __forceinline__ Real
solve_strip(Strip<Real, MOST, STEADY, FEET> &strip, const Sweep<Real> &s,
            const StripThreadPlace &self, int32_t l, const Values &values,
            const StripArrays<Real> &exchange)
{
    const bool open = !STEADY && self.strip == 0 && s.low.neumann;
    const Real front =
        open ? low_end(s, values, l, strip.next) : exchange.known[self.warp][self.lane];

    strip.substitute(self, front, exchange);
    return front;
}

/* Start the copies of the numbers of the lines l of the lanes to `to`. */
template <typename Real, int MOST>
__device__ __forceinline__ void
fetch_table(const Real *table, int32_t pitch, int32_t l, Lanes32<Real> *to)
{
    const int32_t warps = static_cast<int32_t>(blockDim.x) / warp_lanes;

#pragma unroll 1
    for (int32_t k = static_cast<int32_t>(threadIdx.x) / warp_lanes;
         k < LINE_INVERSE + MOST; k += warps) {
        copy_async<sizeof(Real)>(&to[k][threadIdx.x % warp_lanes],
                                 table + static_cast<int64_t>(k) * pitch + l);
    }
}

} // namespace pysolvers::transport

#endif
