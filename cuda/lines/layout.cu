/* layout.cu - strided copies on the device, and NaN for the solutions of singular
 * systems.
 *
 * The axes of a copy are sorted by the strides of the target, and axes that are
 * contiguous with each other are merged. If the last axis of the target is also the
 * densest axis of the source, each thread copies elements along it; otherwise tiles of
 * the two axes are transposed in shared memory, so that reads and writes use whole
 * memory sectors.
 */
#include <cstdlib>

#include "device/operand.cuh"
#include "device/turned_tile.cuh"
#include "runtime/elements.cuh"
#include "runtime/memory.h"

#include "lines/layout.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

static constexpr int threads_a_block = 256, at_once = 4;
static constexpr int64_t most_blocks = 1 << 20; /* a loop processes the rest */

namespace {

struct Axis {
    int64_t count, to, from; /* length and strides */
};

/* The last axis changes fastest. In a transposing copy the axis before it is the
 * densest one of the source. */
struct Walk {
    int axes;
    Axis axis[PS_MAX_AXES];
    int64_t elements;
};

} // namespace

static void
sort_axes(Walk *w)
{
    for (int i = 1; i < w->axes; i++) {
        const Axis a = w->axis[i];
        int k = i;

        for (; k > 0 && std::abs(w->axis[k - 1].to) < std::abs(a.to); k--) {
            w->axis[k] = w->axis[k - 1];
        }
        w->axis[k] = a;
    }
}

static void
join_axes(Walk *w)
{
    int last = 0;

    for (int i = 1; i < w->axes; i++) {
        const Axis a = w->axis[i];
        Axis *const before = &w->axis[last];

        if (before->to == a.to * a.count && before->from == a.from * a.count) {
            *before = {before->count * a.count, a.to, a.from};
        }
        else {
            w->axis[++last] = a;
        }
    }
    w->axes = last + 1;
}

static Walk
walk_of(const ps_relayout *r)
{
    Walk w = {};

    w.elements = 1;
    for (int k = 0; k < r->axes; k++) {
        w.elements *= r->shape[k];
        if (r->shape[k] != 1) {
            w.axis[w.axes++] = {r->shape[k], r->to_stride[k], r->from_stride[k]};
        }
    }
    if (w.axes == 0) {
        w.axis[w.axes++] = {1, 1, 1};
    }
    sort_axes(&w);
    join_axes(&w);
    return w;
}

/* Move the densest axis of the source to the place before the last one, if tiles of the
 * two axes are faster. */
static bool
turn(Walk *w)
{
    const int last = w->axes - 1;
    int densest = last;

    for (int k = 0; k < last; k++) {
        if (w->axis[k].from != 0 &&
            std::abs(w->axis[k].from) < std::abs(w->axis[densest].from)) {
            densest = k;
        }
    }
    if (densest == last || w->axis[densest].count < tile_side / 4 ||
        w->axis[last].count < tile_side / 4) {
        return false;
    }
    const Axis a = w->axis[densest];
    for (int k = densest; k < last - 1; k++) {
        w->axis[k] = w->axis[k + 1];
    }
    w->axis[last - 1] = a;
    return true;
}

/* Offsets of element `index` of the first `axes` axes, in C order. */
static __device__ __forceinline__ void
locate(const Walk &w, int axes, int64_t index, int64_t *to, int64_t *from)
{
    *to = *from = 0;
    for (int k = axes - 1; k >= 0; k--) {
        const Axis &a = w.axis[k];
        const int64_t rest = quotient(index, a.count);
        const int64_t i = index - rest * a.count;

        index = rest;
        *to += i * a.to;
        *from += i * a.from;
    }
}

/* Each thread has several elements in flight. Grid: any number of blocks of
 * threads_a_block threads. */
template <typename Element> struct Copy {
    Element *to;
    const Element *from;
    Walk w;

    __device__ __forceinline__ void operator()() const
    {
        const int64_t step = int64_t(gridDim.x) * threads_a_block * at_once;

        wait_for_last_kernel();
        for (int64_t first =
                 int64_t(blockIdx.x) * threads_a_block * at_once + threadIdx.x;
             first < w.elements; first += step) {
            Element value[at_once];
            int64_t to_at[at_once];

#pragma unroll
            for (int k = 0; k < at_once; k++) {
                const int64_t index = first + k * threads_a_block;
                int64_t from_at;

                if (index < w.elements) {
                    locate(w, w.axes, index, &to_at[k], &from_at);
                    value[k] = from[from_at];
                }
            }
#pragma unroll
            for (int k = 0; k < at_once; k++) {
                if (first + k * threads_a_block < w.elements) {
                    to[to_at[k]] = value[k];
                }
            }
        }
    }
};

/* The last two axes are turned. Grid: any number of blocks. */
template <typename Element> struct TurnAxes {
    Element *to;
    const Element *from;
    Walk w;

    __device__ __forceinline__ void operator()() const
    {
        const Axis across = w.axis[w.axes - 2], along = w.axis[w.axes - 1];
        const int64_t a_tiles = divided_up(across.count, tile_side);
        const int64_t tiles = divided_up(along.count, tile_side) * a_tiles;
        const int64_t all = w.elements / (across.count * along.count) * tiles;

        wait_for_last_kernel();
        for (int64_t index = blockIdx.x; index < all; index += gridDim.x) {
            const int64_t others = quotient(index, tiles);
            const int64_t in_these = index - others * tiles;
            const int64_t b_tile = quotient(in_these, a_tiles);
            const int64_t a = (in_these - b_tile * a_tiles) * tile_side;
            const int64_t b = b_tile * tile_side;
            int64_t to_at, from_at;

            locate(w, w.axes - 2, others, &to_at, &from_at);
            turn_tile<Element>(
                [&](int i, int j, Element &value) {
                    const Element *const place =
                        from + from_at + (a + i) * across.from + (b + j) * along.from;
                    const bool exists = (a + i < across.count) & (b + j < along.count);

                    if (exists) {
                        value = *place;
                    }
                },
                [] {},
                [&](int j, int i, const Element &value) {
                    if (a + i < across.count && b + j < along.count) {
                        to[to_at + (a + i) * across.to + (b + j) * along.to] = value;
                    }
                });
        }
    }
};

static int64_t
blocks_for(int64_t count)
{
    return count < most_blocks ? count : most_blocks;
}

/* Whether the copy is one contiguous range of bytes. */
static bool
is_plain(const Walk *w)
{
    return w->axes == 1 && w->axis[0].to == 1 && w->axis[0].from == 1;
}

template <typename Element>
static ps_status
relayout(const ps_relayout *r, const ps_exec *exec)
{
    cudaStream_t const stream = ps_cuda_stream(exec);
    Element *const to = static_cast<Element *>(r->to);
    const Element *const from = static_cast<const Element *>(r->from);
    Walk w = walk_of(r);

    if (w.elements == 0) {
        return PS_OK;
    }
    if (is_plain(&w)) {
        return ps_cuda_copy(to, from, static_cast<size_t>(w.elements) * sizeof(Element),
                            exec);
    }
    if (turn(&w)) {
        constexpr int64_t of_tile = tile_side * tile_side;
        /* 4 blocks of a multiprocessor take 1.12 of the time of 5 with 4 bytes (H200). */
        constexpr int least_blocks = sizeof(Element) <= 4 ? 5 : 0;

        return for_threads<tile_side * tile_rows, least_blocks>(
            blocks_for(divided_up(w.elements, of_tile)), dim3(tile_side, tile_rows),
            stream, TurnAxes<Element>{to, from, w});
    }
    return for_threads<threads_a_block>(
        blocks_for(divided_up(w.elements, threads_a_block * at_once)), stream,
        Copy<Element>{to, from, w});
}

ps_status
ps_cuda_relayout(const ps_relayout *r, const ps_exec *exec)
{
    if (r->axes < 0 || r->axes > PS_MAX_AXES) {
        return PS_BAD_ARGUMENT;
    }
    switch (r->element) {
    case 1:
        return relayout<uint8_t>(r, exec);
    case 4:
        return relayout<uint32_t>(r, exec);
    case 8:
        return relayout<uint2>(r, exec);
    case 16:
        return relayout<uint4>(r, exec);
    default:
        return PS_BAD_ARGUMENT;
    }
}

static __device__ __forceinline__ void
make_nan(float *x)
{
    *x = __int_as_float(0x7fc00000);
}

static __device__ __forceinline__ void
make_nan(double *x)
{
    *x = __longlong_as_double(0x7ff8000000000000);
}

template <typename Real>
static __device__ __forceinline__ void
make_nan(Complex<Real> *x)
{
    make_nan(&x->re);
    make_nan(&x->im);
}

/* A warp reads the info of 32 systems, and all its lanes write the rows of x, and of the
 * arrays with its strides, of each singular one. Grid: any number of blocks of whole warps. */
template <typename Number> struct FillNan {
    Output<Number> x;
    const int32_t *info;
    ps_blank b;

    __device__ __forceinline__ void operator()() const
    {
        const int64_t systems = b.outer * b.inner;
        const int64_t step = int64_t(gridDim.x) * blockDim.x;
        const int lane = threadIdx.x % 32;

        wait_for_last_kernel();
        for (int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x - lane;
             first < systems; first += step) {
            const int64_t mine = first + lane, j = mine / b.inner, k = mine % b.inner;
            const bool bad =
                mine < systems && info[j * b.info_outer + k * b.info_inner] != 0;

            for (unsigned left = __ballot_sync(~0u, bad); left != 0; left &= left - 1) {
                const int64_t system = first + __ffs(static_cast<int>(left)) - 1;
                Number *const row = x.system(system / b.inner, system % b.inner);

                for (int64_t i = lane; i < b.rows; i += 32) {
                    make_nan(&row[i * x.row]);
                    for (void *const other : b.more) {
                        if (other != nullptr) {
                            make_nan(static_cast<Number *>(other) + (row - x.data) +
                                     i * x.row);
                        }
                    }
                }
            }
        }
    }
};

template <typename Number>
static ps_status
blank(const ps_blank *b, cudaStream_t stream)
{
    const int64_t blocks = blocks_for(divided_up(b->outer * b->inner, threads_a_block));

    return for_threads<threads_a_block>(
        blocks, stream, FillNan<Number>{output_of<Number>(b->x), b->info, *b});
}

ps_status
ps_cuda_blank(const ps_blank *b, const ps_exec *exec)
{
    if (b->outer == 0 || b->inner == 0) {
        return PS_OK;
    }
    return with_number(b->dtype, [&](auto number) {
        return blank<decltype(number)>(b, ps_cuda_stream(exec));
    });
}

} // namespace pysolvers::lines
