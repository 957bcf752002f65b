/* tile.cuh - tiles of neighbouring systems between global and shared memory.
 *
 * A tile consists of rows begin .. begin + rows - 1 of some neighbouring systems. It is
 * stored in shared memory as one array per operand, with element (row, system) at row *
 * row_pitch + system * system_pitch. Loads are asynchronous on sm_80 and later and run
 * along the contiguous axis. Tiles that are contiguous in memory are copied by 16
 * bytes, with the alignment of global memory. So are the off-diagonals of a transposed
 * matrix: they are those of the matrix, shifted by one row.
 */
#ifndef PS_CUDA_LINES_PARTITION_TILE_CUH
#define PS_CUDA_LINES_PARTITION_TILE_CUH

#include "device/sides.cuh"
#include "device/run_copy.cuh"
#include "device/tile_copy.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::partition {

using namespace device;
using namespace runtime;

/* The layout and the copies of tiles, chosen by the host. Bit q stands for operand q:
 * lower, diag, upper, rhs, x. */
struct Tiling {
    int64_t tiles;
    int32_t systems;                 /* per tile */
    int32_t sharing;                 /* sharing_of(), 1 for parts of systems */
    int32_t row_pitch, system_pitch; /* in shared memory; one of them is 1 */
    int32_t words;      /* size of the array of an operand: a multiple of 16 bytes */
    int32_t fast, wide; /* log2 of the threads along the contiguous axis, for elements and
                           for 16 bytes per thread */
    uint32_t runs;      /* operands whose tiles are contiguous in memory */
    uint32_t vectors; /* operands that are copied by 16 bytes along the contiguous axis */
    uint32_t dense;   /* vectors whose systems follow each other without gaps */
    uint32_t divisor; /* 2^20 / vectors of a system, rounded up */
    bool direct;      /* x is stored from registers: there are four arrays */
    bool aligned;     /* contiguous systems begin and end at 16-byte boundaries */
    uint32_t shorts;  /* lower without row 0, upper without the last row */
    int32_t
        stage; /* from the inputs of a tile to those of the next one; 0: their place is
                      the same */
};

/* The part of the batch that a tile contains. */
struct TileRange {
    int64_t system; /* the first one */
    int32_t block;  /* index of the part of the systems */
    int32_t systems, begin, rows;
    int32_t stored; /* the first row whose x is stored */
    int32_t group; /* of right-hand sides: the first one comes with the matrices, but of a
                      tile in passes the matrices are group -1 */
};

/* Data about the tiles that the threads of a block share. */
template <int ARRAYS = 8, int TURNS = 2> struct TileState {
    Arrivals arrivals;
    Arrivals others[2]; /* for the messages of the other blocks of a cluster, for this
                           tile and the next one */
    int32_t skew[TURNS]
                [ARRAYS]; /* offsets of the arrays, of this tile and the next one */
};

/* The same for tiles that may be aligned; 128 bytes more. Apart, and four numbers longer than
 * needed: with 64 bytes more, by which the arrays of a tile lie elsewhere between two multiples
 * of 128 bytes, the same machine code took 1.09 of the time on an H200. */
struct AlignedTileState : TileState<> {
    struct {
        const void *data;
        int64_t inner;
    } origin[8]; /* of the four inputs */
};

template <bool MAY_BE_ALIGNED, int SIDES>
using TileStateOf =
    std::conditional_t<MAY_BE_ALIGNED, AlignedTileState,
                       TileState<(SIDES > 1 ? 3 + 2 * SIDES : 8), (SIDES > 1 ? 3 : 2)>>;

/* The tiles of a kernel. BY_ROW: rows are contiguous in shared memory. HAS_ABSENT: inputs
 * with null data are not copied. MAY_BE_ALIGNED: whether Tiling::aligned may be set. Then four
 * threads start the copies without the 1 us of load_runs(), which only the kernel of parts,
 * whose blocks wait for other devices, does not hide. With several right-hand sides of each
 * system, `groups` has them; there is an array for each of them, and one for each x; aligned
 * tiles are copied in the same way. IN_PASSES: a tile is loaded and stored in passes, matrices and
 * groups of right-hand sides, each in one of three turns; x takes the place of its right-hand
 * side. */
template <typename Number, bool BY_ROW, bool HAS_ABSENT = false,
          bool MAY_BE_ALIGNED = false, bool IN_PASSES = false>
struct Tiles {
    static constexpr int sides = sides_of_number<Number>;
    static constexpr int vector = 16 / sizeof(Number), inputs_count = 3 + sides;
    static constexpr uint32_t all_operands = 31;
    const Systems<Number> &t;
    const Input<Number> *inputs; /* lower, diag, upper, and the right-hand sides */
    const Tiling &how;
    Number *memory; /* arrays of how.words elements; the last ones are those of x */
    TileStateOf<MAY_BE_ALIGNED, sides> &state;
    const SideGroups *groups; /* null for one right-hand side */

    __device__ __forceinline__ int row_pitch() const
    {
        return BY_ROW ? 1 : how.row_pitch;
    }
    __device__ __forceinline__ int system_pitch() const
    {
        return BY_ROW ? how.system_pitch : 1;
    }

    /* Called first, by all threads; __syncthreads() must follow. */
    __device__ __forceinline__ void init() const
    {
        if (threadIdx.x == 0) {
            state.arrivals.init(inputs_count);
            join::ClusterRounds{state.others, 0}.init();
        }
        if constexpr (MAY_BE_ALIGNED) {
            if (is_aligned() && threadIdx.x < 8) {
                if (threadIdx.x < inputs_count) {
                    const Input<Number> &in = inputs[threadIdx.x];

                    state.origin[threadIdx.x] = {in.data, in.inner};
                }
                state.skew[0][threadIdx.x] = state.skew[1][threadIdx.x] = 0;
            }
        }
        if constexpr (sides > 1) {
            if (is_aligned() && threadIdx.x < inputs_count + sides) {
                state.skew[0][threadIdx.x] = state.skew[1][threadIdx.x] = 0;
                state.skew[2][threadIdx.x] = 0;
            }
        }
    }

    /* Input q of the current tile, or the array for x of side q - inputs_count. */
    __device__ __forceinline__ Number *array(int q, int turn) const
    {
        if constexpr (IN_PASSES) {
            return place_of(q < 3 ? 0 : 1, turn) + q * how.words + state.skew[turn][q];
        }
        return (q < inputs_count ? inputs_of(turn) : memory) + q * how.words +
               state.skew[turn][q];
    }

    /* Start the loads of the inputs of a tile; its arrays are no longer read. `turn`
     * alternates between 0 and 1. */
    __device__ __forceinline__ void load(const TileRange &range, int turn) const
    {
        load_contiguous(range, turn);
        if (is_aligned()) {
            return;
        }
        if (how.vectors == all_operands && how.dense == 0) {
            load_walking<vector>(range, how.wide, inputs_of(turn, range));
        }
        else if ((how.runs | how.vectors) == 0) {
            load_walking<1>(range, how.fast, inputs_of(turn, range));
        }
        else {
            load_mixed(range, inputs_of(turn, range));
        }
    }

    /* The contiguous ones of them: all of a tile on devices with bulk copies, if all operands
     * are contiguous. */
    __device__ __forceinline__ void load_contiguous(const TileRange &range,
                                                    int turn) const
    {
        if (threadIdx.x < 32) {
            bulk_fence();
            if constexpr (MAY_BE_ALIGNED || sides > 1) {
                if (is_aligned()) {
                    load_aligned(range, turn);
                    return;
                }
            }
            load_runs(range, turn);
        }
    }

    /* Wait until the tile is loaded and its array for x is free; a __syncthreads() must
     * follow. */
    __device__ __forceinline__ void wait(int turn) const
    {
        copies_done();
        stores_read();
        if (has_bulk) {
            state.arrivals.wait(turn);
        }
    }

    /* The same for pass `pass` of all; the memory of the pass before the last one is free. */
    __device__ __forceinline__ void wait_for_pass(int pass) const
    {
        copies_done();
        stores_read_but<1>();
        if (has_bulk) {
            state.arrivals.wait(pass & 1);
        }
    }

    /* This thread has written its x; called before the barrier that precedes store(). */
    __device__ __forceinline__ void written() const
    {
        if (has(how.runs, 4)) {
            bulk_fence();
        }
    }

    /* Store x, except for systems with skip set; skip may be null. */
    __device__ __forceinline__ void store(const TileRange &range, int turn,
                                          const uint8_t *skip) const
    {
        if constexpr (sides > 1) {
            if (is_aligned() && skip == nullptr) {
                store_aligned(range, turn);
                return;
            }
            if constexpr (IN_PASSES) {
                store_pass(range, turn, skip);
                return;
            }
            const int32_t count = sides_of(range);
            Output<Number> to = t.x;

#pragma unroll 1
            for (int p = 0; p < count; p++) {
                store_side(to, array(inputs_count + p, turn), range, skip);
                to.data += groups->x;
            }
        }
        else {
            store_side(t.x, array(4, turn), range, skip);
        }
    }

  private:
    __device__ __forceinline__ void store_side(const Output<Number> &out, const Number *x,
                                               const TileRange &range,
                                               const uint8_t *skip) const
    {
        if (skip == nullptr && has(how.runs, 4)) {
            store_run(at(out, range.system, range.begin), x, range.systems * range.rows);
        }
        else if (BY_ROW && skip == nullptr && has(how.dense, 4)) {
            Number *const to = at(out, range.system, range.begin);

            walk_dense(range, [&](int along, int offset) {
                *reinterpret_cast<int4 *>(to + along) =
                    *reinterpret_cast<const int4 *>(x + offset);
            });
        }
        else if (skip == nullptr && has(how.vectors, 4)) {
            walk<vector>(out, range, how.wide, [&](int, int, Number *to, int offset) {
                *reinterpret_cast<int4 *>(to) =
                    *reinterpret_cast<const int4 *>(x + offset);
            });
        }
        else {
            walk<1>(out, range, how.fast, [&](int, int s, Number *to, int offset) {
                if (skip == nullptr || skip[s] == 0) {
                    *to = x[offset];
                }
            });
        }
    }

  public:
    template <typename Operand>
    __device__ __forceinline__ auto at(const Operand &operand, int64_t system,
                                       int32_t row) const -> decltype(operand.data)
    {
        int64_t j = 0, k = system;

        if (t.outer > 1) {
            j = quotient(system, t.inner);
            k = system - j * t.inner;
        }
        return operand.data + j * operand.outer + k * operand.inner + row * operand.row;
    }

  private:
    /* How many right-hand sides the systems of a tile have. */
    __device__ __forceinline__ int32_t sides_of(const TileRange &range) const
    {
        return sides > 1 ? groups->sides_of(range.group) : 1;
    }
    /* The operand of Tiling that input q is. */
    static __device__ __forceinline__ int operand_of(int q)
    {
        return sides > 1 ? min(q, 3) : q;
    }
    /* The arrays of the inputs of a tile; of a tile in passes those of its pass. */
    __device__ __forceinline__ Number *inputs_of(int turn) const
    {
        return memory + turn * how.stage;
    }
    __device__ __forceinline__ Number *inputs_of(int turn, const TileRange &range) const
    {
        return IN_PASSES ? place_of(range.group < 0 ? 0 : 1, turn) : inputs_of(turn);
    }
    /* The arrays of three operands in turn `turn`: of the matrices, or of right-hand sides, which
     * are operands 3 to 5. */
    __device__ __forceinline__ Number *place_of(int of_sides, int turn) const
    {
        return memory + 3 * (turn - of_sides) * how.words;
    }

    static __device__ __forceinline__ bool has(uint32_t operands, int q)
    {
        return (operands >> q & 1u) != 0;
    }

    /* How a contiguous operand is copied; row 0 of the first system lies `skew` elements
     * after the beginning of the array. */
    struct RunCopy {
        const Number *from;
        Number *to;
        int skew;
        Run<Number> run;
    };

    /* A short operand does not have the first or the last element of the range. */
    __device__ __forceinline__ RunCopy run_copy(int q, const TileRange &range,
                                                Number *to) const
    {
        const Number *const from = at(inputs[q], range.system, range.begin);
        const int32_t absent = absent_row(q) - range.begin;
        const int first = q == 0 && absent == 0 ? 1 : 0;
        const int last = q == 2 && absent == range.rows - 1 ? 1 : 0;
        const int count = max(range.systems * range.rows - first - last, 0);
        const int skew = skew_of(from);

        return {from + first, to + q * how.words + skew + first, skew,
                Run<Number>(skew_of(from + first), count)};
    }

    /* How a dense operand is copied: element 0 to element `to` of its array, where row 0
     * of the first system lies at `skew`. The vectors of a short operand may begin one
     * row after row 0, which lower does not have, or one row before it. */
    struct DenseCopy {
        const Number *from;
        int to, skew;
    };

    __device__ __forceinline__ DenseCopy dense_copy(int q, const TileRange &range) const
    {
        const Number *const row_0 = at(inputs[q], range.system, 0);

        if (skew_of(row_0) == 0) {
            return {row_0, 0, 0};
        }
        return q == 0 ? DenseCopy{row_0 + 1, vector, vector - 1}
                      : DenseCopy{row_0 - 1, 0, 1};
    }

    /* Copy the contiguous operands: lane 8 q + k is the k-th of operand q. */
    __device__ __forceinline__ void load_runs(const TileRange &range, int turn) const
    {
#pragma unroll
        for (int first = 0; first < inputs_count; first += 4) {
            const int q = first + threadIdx.x / 8;

            if (inputs_count % 4 == 0 || q < inputs_count) {
                load_runs(q, range, turn);
            }
        }
        if (threadIdx.x == 1) { /* any thread that is not lane 0 of eight */
#pragma unroll
            for (int p = 0; p < sides; p++) {
                const Number *const x = at(t.x, range.system, range.stored);

                state.skew[turn][inputs_count + p] =
                    has(how.runs, 4) ? skew_of(sides > 1 ? x + p * groups->x : x) : 0;
            }
        }
    }

    __device__ __forceinline__ void load_runs(int q, const TileRange &range,
                                              int turn) const
    {
        const int lane = threadIdx.x % 8;
        uint32_t bytes = 0;
        int skew = 0;

        if (has(how.runs, operand_of(q))) {
            const RunCopy copy = run_copy(q, range, inputs_of(turn, range));
            const Run<Number> run =
                is_wanted(q, range) ? copy.run : Run<Number>(copy.run.head, 0);

            skew = copy.skew;
            bytes = run.vectors * 16;
            if (has_bulk && lane == 0 && bytes > 0) {
                copy_bulk(copy.to + run.head, copy.from + run.head, bytes,
                          state.arrivals);
            }
            visit_rest(run, lane, [&](int i) {
                copy_async<sizeof(Number)>(copy.to + i, copy.from + i);
            });
        }
        else if (BY_ROW && has(how.dense, operand_of(q))) {
            skew = dense_copy(q, range).skew;
        }
        if (lane == 0) {
            state.skew[turn][q] = skew;
            state.arrivals.expect(bytes);
        }
    }

    __device__ __forceinline__ bool is_aligned() const
    {
        return (MAY_BE_ALIGNED || sides > 1) && BY_ROW && has_bulk && how.aligned;
    }

    /* The same for aligned tiles of all rows. */
    __device__ __forceinline__ void load_aligned(const TileRange &range, int turn) const
    {
        if constexpr (sides > 1) {
            const int q = threadIdx.x;

            if (q < inputs_count) {
                const uint32_t bytes = is_wanted(q, range) ? bytes_of(range) : 0;

                state.arrivals.expect(bytes);
                if (bytes > 0) {
                    copy_bulk(inputs_of(turn, range) + q * how.words,
                              of_group(inputs[q], range), bytes, state.arrivals);
                }
            }
        }
        else {
            const int q = threadIdx.x / 8;

            if (threadIdx.x % 8 == 0) {
                const uint32_t bytes = bytes_of(range);
                const Number *const from =
                    static_cast<const Number *>(state.origin[q].data) +
                    range.system * state.origin[q].inner;

                state.arrivals.expect(bytes);
                copy_bulk(inputs_of(turn) + q * how.words, from, bytes, state.arrivals);
            }
        }
    }

    static __device__ __forceinline__ uint32_t bytes_of(const TileRange &range)
    {
        return static_cast<uint32_t>(range.systems * range.rows * sizeof(Number));
    }

    /* The first system of a range of a group of right-hand sides. */
    template <typename Operand>
    __device__ __forceinline__ auto of_group(const Operand &operand,
                                             const TileRange &range) const
        -> decltype(operand.data)
    {
        const int32_t group = max(range.group, 0);

        return operand.data + group * operand.outer +
               (range.system - group * t.inner) * operand.inner;
    }

    __device__ __forceinline__ void store_aligned(const TileRange &range, int turn) const
    {
        const int p = threadIdx.x;

        if (p < groups->sides_of(range.group)) {
            store_bulk(of_group(t.x, range) + p * groups->x,
                       array((IN_PASSES ? 3 : inputs_count) + p, turn), bytes_of(range));
            if (!IN_PASSES) {
                commit_stores();
            }
        }
    }

    /* x is in the place of the right-hand sides, from where it is copied as they are if it has
     * their alignment. */
    __device__ __forceinline__ void store_pass(const TileRange &range, int turn,
                                               const uint8_t *skip) const
    {
        const int32_t count = groups->sides_of(range.group);
        Output<Number> to = t.x;

#pragma unroll 1
        for (int p = 0; p < count; p++) {
            const Number *const x = array(3 + p, turn);
            const int skew = state.skew[turn][3 + p];
            Number *const first = at(to, range.system, range.begin);

            if (skip == nullptr && has(how.runs, 4) && skew_of(first) == skew) {
                const Run<Number> run(skew, range.systems * range.rows);

                if (has_bulk && threadIdx.x == p) {
                    run.store(first, x);
                }
                for (int v = threadIdx.x; !has_bulk && v < run.vectors; v += blockDim.x) {
                    const int i = run.head + v * vector;
                    *reinterpret_cast<int4 *>(first + i) =
                        *reinterpret_cast<const int4 *>(x + i);
                }
                if (threadIdx.x < 8) {
                    visit_rest(run, threadIdx.x, [&](int i) { first[i] = x[i]; });
                }
            }
            else if (skip == nullptr && has(how.vectors, 4) && skew == 0) {
                walk<vector>(to, range, how.wide,
                             [&](int, int, Number *address, int offset) {
                                 *reinterpret_cast<int4 *>(address) =
                                     *reinterpret_cast<const int4 *>(x + offset);
                             });
            }
            else {
                walk<1>(to, range, how.fast,
                        [&](int, int s, Number *address, int offset) {
                            if (skip == nullptr || skip[s] == 0) {
                                *address = x[offset];
                            }
                        });
            }
            to.data += groups->x;
        }
    }

    /* The vectors of a range, without bulk copies. */
    __device__ __forceinline__ void load_run(int q, const TileRange &range,
                                             Number *to) const
    {
        const RunCopy copy = run_copy(q, range, to);

        for (int v = threadIdx.x; v < copy.run.vectors; v += blockDim.x) {
            const int i = copy.run.head + v * vector;
            copy_async<16>(copy.to + i, copy.from + i);
        }
    }

    __device__ __forceinline__ void store_run(Number *to, const Number *from,
                                              int count) const
    {
        const Run<Number> run(skew_of(to), count);

        if (has_bulk && threadIdx.x == 0 && run.vectors > 0) {
            store_bulk(to + run.head, from + run.head, run.vectors * 16);
            commit_stores();
        }
        for (int v = threadIdx.x; !has_bulk && v < run.vectors; v += blockDim.x) {
            const int i = run.head + v * vector;
            *reinterpret_cast<int4 *>(to + i) = *reinterpret_cast<const int4 *>(from + i);
        }
        if (threadIdx.x < 8) {
            visit_rest(run, threadIdx.x, [&](int i) { to[i] = from[i]; });
        }
    }

    __device__ __forceinline__ bool is_there(int q, const TileRange &range) const
    {
        return (!HAS_ABSENT || inputs[q].data != nullptr) && is_wanted(q, range);
    }
    /* Whether input q is copied for this group: not matrices that are there already, nor sides
     * that the last group does not have. */
    __device__ __forceinline__ bool is_wanted(int q, const TileRange &range) const
    {
        if (IN_PASSES) {
            return q < 3 ? range.group < 0
                         : range.group >= 0 && q - 3 < groups->sides_of(range.group);
        }
        return sides == 1 || (q < 3 ? range.group == 0 : q - 3 < sides_of(range));
    }

    /* The row that a short operand does not have. */
    __device__ __forceinline__ int32_t absent_row(int q) const
    {
        return !has(how.shorts, q) ? -1 : q == 0 ? 0 : t.rows - 1;
    }

    /* Operands with different kinds of copies. */
    __device__ __forceinline__ void load_mixed(const TileRange &range, Number *all) const
    {
#pragma unroll 1
        for (int q = 0; q < inputs_count; q++) {
            Number *const to = all + q * how.words;
            const int32_t absent = absent_row(q);

            if (has(how.runs, operand_of(q))) {
                if (!has_bulk && is_wanted(q, range)) {
                    load_run(q, range, all);
                }
            }
            else if (!is_there(q, range)) {
                continue;
            }
            else if (BY_ROW && has(how.dense, operand_of(q))) {
                const DenseCopy copy = dense_copy(q, range);

                walk_dense(range, [&](int along, int offset) {
                    copy_async_cached(to + copy.to + offset, copy.from + along);
                });
            }
            else {
                walk<1>(inputs[q], range, how.fast,
                        [&](int i, int, const Number *from, int offset) {
                            if (i != absent) {
                                copy_async_of_line<sizeof(Number)>(to + offset, from);
                            }
                        });
            }
        }
    }

    /* All four operands together, by WIDTH elements along the contiguous axis. */
    template <int WIDTH>
    __device__ __forceinline__ void load_walking(const TileRange &range, int fast,
                                                 Number *to) const
    {
        const int along = (threadIdx.x & ((1 << fast) - 1)) * WIDTH;
        const int across = threadIdx.x >> fast, step = blockDim.x >> fast;
        const int row0 = BY_ROW ? along : across;
        const int row_step = BY_ROW ? WIDTH << fast : step;
        const int system_step = BY_ROW ? step : range.systems;

#pragma unroll 1
        for (int s = BY_ROW ? across : along; s < range.systems; s += system_step) {
            const Number *from[inputs_count];
            int offset = row0 * row_pitch() + s * system_pitch();

#pragma unroll
            for (int q = 0; q < inputs_count; q++) {
                from[q] = at(inputs[q], range.system + s, range.begin + row0);
            }
#pragma unroll 1
            for (int i = row0; i < range.rows; i += row_step) {
#pragma unroll
                for (int q = 0; q < inputs_count; q++) {
                    if (is_there(q, range) &&
                        (q == 1 || q > 2 || range.begin + i != absent_row(q))) {
                        copy_async_of_line<WIDTH * sizeof(Number)>(
                            to + q * how.words + offset, from[q]);
                    }
                    from[q] += row_step * inputs[q].row;
                }
                offset += row_step * row_pitch();
            }
        }
    }

    /* The vectors of dense systems that this thread copies: visit(offset in global
     * memory, offset in shared memory). */
    template <typename Visit>
    __device__ __forceinline__ void walk_dense(const TileRange &range,
                                               const Visit &visit) const
    {
        const uint32_t count = range.systems * t.rows / vector;
        const int gap = how.system_pitch - t.rows;

#pragma unroll 1
        for (uint32_t v = threadIdx.x; v < count; v += blockDim.x) {
            const int system = static_cast<int>(v * how.divisor >> 20);
            visit(v * vector, v * vector + system * gap);
        }
    }

    /* The groups of WIDTH elements along the contiguous axis that this thread copies:
     * visit(row, system of the tile, address in global memory, offset in shared
     * memory). */
    template <int WIDTH, typename Operand, typename Visit>
    __device__ __forceinline__ void walk(const Operand &operand, const TileRange &range,
                                         int fast, const Visit &visit) const
    {
        const int along = (threadIdx.x & ((1 << fast) - 1)) * WIDTH;
        const int across = threadIdx.x >> fast, step = blockDim.x >> fast;

        if (BY_ROW) {
#pragma unroll 1
            for (int s = across; s < range.systems; s += step) {
                auto address = at(operand, range.system + s, range.begin + along);
                int offset = along + s * how.system_pitch;

#pragma unroll 1
                for (int i = along; i < range.rows; i += WIDTH << fast) {
                    visit(range.begin + i, s, address, offset);
                    address += (WIDTH << fast) * operand.row;
                    offset += WIDTH << fast;
                }
            }
        }
        else if (along < range.systems) {
            auto address = at(operand, range.system + along, range.begin + across);
            int offset = along + across * how.row_pitch;

#pragma unroll 1
            for (int i = across; i < range.rows; i += step) {
                visit(range.begin + i, along, address, offset);
                address += step * operand.row;
                offset += step * how.row_pitch;
            }
        }
    }
};

} // namespace pysolvers::partition

#endif
