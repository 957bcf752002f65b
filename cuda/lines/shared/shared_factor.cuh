/* shared_factor.cuh - one matrix in the registers of a team of threads.
 *
 * make() eliminates the matrix. The lanes of a warp, which are joined through shuffles, and
 * the warps of a team, through shared memory, are levels (join/driver.cuh) that apply the
 * multipliers to a right-hand side. Formulas and cost: shared_levels.cuh.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_FACTOR_CUH
#define PS_CUDA_LINES_SHARED_SHARED_FACTOR_CUH

#include "lines/join/driver.cuh"
#include "lines/join/exchange.cuh"
#include "lines/shared/shared.h"
#include "lines/shared/shared_levels.cuh"

namespace pysolvers::shared {

/* The place of a thread in its team, and the systems of a tile that it solves: slots
 * first + group, + step, and so on up to first + count. The slots of a warp or a team
 * are neighbours. */
struct SharedThreadPlace {
    int32_t team, chunk, lane, warp;
    int32_t first_lane; /* of the warp: the lane with row 0, or 0 */
    int32_t start;      /* first row of the chunk; negative if it begins with pads */
    int32_t source; /* first row to read; for a chunk of pads, a place in the zeros before
                       the system */
    int32_t chunks; /* of the team */
    int32_t first, group, step, count;

    __device__ __forceinline__ SharedThreadPlace(const ps_cuda_shared_shape &shape,
                                                 int rows)
    {
        chunks = shape.width * shape.warps;
        team = threadIdx.x / chunks;
        chunk = threadIdx.x % chunks;
        lane = chunk % shape.width;
        warp = chunk / shape.width;
        start = shape.rows - (chunks - chunk) * rows;
        source = max(start, -rows);
        first_lane = warp == 0 ? (chunks * rows - shape.rows) / rows : 0;
        step = shape.warps == 1 ? 32 / shape.width : 1;
        group = team % step;
        count = step * shape.rounds;
        first = crew() * count;
    }

    /* A crew is the teams of a warp, or a team of several warps: its index in the block, the place
     * of this thread in it, and its size. */
    __device__ __forceinline__ int32_t crew() const
    {
        return team / step;
    }
    __device__ __forceinline__ int32_t thread() const
    {
        return group * chunks + chunk;
    }
    __device__ __forceinline__ int32_t threads() const
    {
        return step * chunks;
    }
};

/* The exchange of the warps of a block during the elimination of a matrix, [team][warp];
 * the first note is that of the matrix. */
template <typename Number> using SharedExchange = BlockExchange<Frame<Number>, 16>;

/* The multipliers that join the warps of a team, [word][warp of a team]. */
template <typename Number>
using SharedLevel = Number[SharedLimits<Number>::level_words * 32];

/* The part of an eliminated matrix that belongs to a thread. The multipliers that join
 * the warps of a team are the same for all of them and stay in shared memory. */
template <typename Number, int ROWS = SharedLimits<Number>::rows> struct SharedFactor {
    using Limits = SharedLimits<Number>;
    using Level = LevelFactor<Number, Limits::steps>;
    static constexpr int rows = ROWS, words = Limits::words(rows);

    ChunkFactor<Number, rows> chunk;
    LevelFactor<Number, 5> lanes;
    CloseFactor<Number> close;

    /* Start the loads of a matrix: neighbouring threads of the first team load
     * neighbouring rows. Returns the last row of the thread. */
    __device__ __forceinline__ Row<Number> request(const SharedMatrix<Number> &matrix,
                                                   const SharedThreadPlace &self,
                                                   int32_t count)
    {
        const SharedRows<Number> all(matrix, count);

        return chunk.read(
            [&](int i) { return all.row(i * self.chunks + self.chunk, self.team == 0); });
    }

    /* Redistribute the rows so that each thread has its own, through `buffer` of
     * `count` numbers. */
    __device__ __forceinline__ void share(Number *buffer, const SharedThreadPlace &self,
                                          int32_t count, Row<Number> &last)
    {
        const auto swap = [&](Number(&word)[rows], Number pad) {
#pragma unroll
            for (int i = 0; i < rows; i++) {
                const int at = i * self.chunks + self.chunk;

                if (self.team == 0 && at < count) {
                    buffer[at] = word[i];
                }
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < rows; i++) {
                word[i] = self.start + i >= 0 ? buffer[self.start + i] : pad;
            }
            __syncthreads();
        };
        chunk.exchange(swap, last);
    }

    /* Eliminate the rows of this thread. The note is that of the matrix, in all
     * threads. */
    __device__ __forceinline__ StoredNote make(const Row<Number> &last_row, bool periodic,
                                               const ps_cuda_shared_shape &shape,
                                               const SharedThreadPlace &self,
                                               SharedExchange<Number> &exchange,
                                               SharedLevel<Number> &kept)
    {
        const bool dominant = chunk.is_dominant(last_row);
        BadPivot bad_pivot;

        if (threadIdx.x == 0) {
            exchange.note[0].bad_pivot = BadPivot::none;
        }
        const Frame<Number> own = chunk.make(last_row, self.start, bad_pivot);
        Frame<Number> s = lanes.make(own, self.lane, shape.width, shape.width,
                                     self.start + rows - 1, bad_pivot);

        s = whole_of(s, self.first_lane, shape.width - 1, shape.width);
        if (shape.warps > 1) {
            s = join_warps(
                s, shape, self, exchange.unit + self.team * shape.warps, kept,
                threadIdx.x < 32, [] { __syncthreads(); }, bad_pivot);
        }
        close.make(s, periodic, shape.rows - 1, bad_pivot);

        const int all_dominant = __syncthreads_and(dominant);
        if (bad_pivot.row != BadPivot::none) {
            atomicMin(&exchange.note[0].bad_pivot, bad_pivot.row);
        }
        __syncthreads();
        return {exchange.note[0].bad_pivot, all_dominant, {}};
    }

    /* The matrix of a team from those of its warps, which synchronize() through `units`; the
     * level of the warps goes to `kept` if `keeps` holds, in one warp. */
    template <typename Synchronize>
    static __device__ __forceinline__ Frame<Number>
    join_warps(const Frame<Number> &s, const ps_cuda_shared_shape &shape,
               const SharedThreadPlace &self, Frame<Number> *units, Number *kept,
               bool keeps, const Synchronize &synchronize, BadPivot &bad_pivot)
    {
        const int lane = self.lane, last = shape.warps - 1;
        const Frame<Number> neutral = {Number(0), Number(0), Number(0), Number(1),
                                       Number(0)};

        if (lane == 0) {
            units[self.warp] = s;
        }
        synchronize();

        const Frame<Number> own_frame = lane <= last ? units[lane] : neutral;
        const int32_t row = shape.rows - (last - lane) * 32 * rows - 1;
        Level level;
        Frame<Number> all = level.make(own_frame, lane, shape.warps, 32, row, bad_pivot);
        Number *word = kept + lane;

        if (keeps) {
            level.each([&](const Number &value) {
                *word = value;
                word += 32;
            });
        }

        return whole_of(all, 0, last, 32);
    }

    /* The load of the chunk for a right-hand side. */
    __device__ __forceinline__ Load<Number> load(const Number *system,
                                                 const SharedThreadPlace &self) const
    {
        Number rhs[rows];

        read(system, self, rhs);
        return chunk.reduce(rhs);
    }

    /* The level of the lanes of a warp, or of a group of `width` of them; y of the lane is
     * expressed in the ends of the group. */
    template <typename Next>
    __device__ __forceinline__ auto over_lanes(const Load<Number> &s, int width,
                                               const SharedThreadPlace &self, Number &y,
                                               const Next &next) const
    {
        return pass_down(next, lanes.reduce(s, width, y), [&](const Ends<Number> &all) {
            return ends_of_lane(y, width, self, all);
        });
    }

    /* From the ends of the group to those of the lane. */
    __device__ __forceinline__ Ends<Number> ends_of_lane(Number y, int width,
                                                         const SharedThreadPlace &self,
                                                         const Ends<Number> &all) const
    {
        y = lanes.at(y, all.y_left, all.y);

        const Number before = shuffle_up(y, 1, width);
        return {self.lane > 0 ? before : all.y_left, y};
    }

    /* The ends of a whole system; `first` is the lane with its first row, of `width` lanes
     * whose last one is `last`. */
    __device__ __forceinline__ Ends<Number> ends_of_system(const Load<Number> &s,
                                                           int first, int last, int width,
                                                           bool periodic) const
    {
        const Number y = close.solve(whole_of(s, first, last, width));

        return {periodic ? y : Number(0), y};
    }

    /* The warps of a team publish their loads. */
    __device__ __forceinline__ void publish(const Load<Number> &s,
                                            const SharedThreadPlace &self,
                                            Load<Number> *team) const
    {
        if (self.lane == self.first_lane) {
            team[self.warp].first = s.first;
        }
        if (self.lane == 31) {
            team[self.warp].d = s.d;
        }
    }

    /* The level of the warps of a team, one to a lane; `word` is that level of the factor. */
    template <typename Next>
    __device__ __forceinline__ Ends<Number>
    over_warps(const Load<Number> &s, const Number *word, const SharedThreadPlace &self,
               const Next &next) const
    {
        Level level;
        Number y;

        word += self.lane;
        level.each([&](Number &value) {
            value = *word;
            word += 32;
        });
        const Load<Number> team =
            level.reduce(s, 32, y, Level::steps_of(self.chunks / 32));
        const Ends<Number> all = next(team);

        y = level.at(y, all.y_left, all.y);

        const Number last = shuffle(all_lanes, y, self.warp, 32);
        const Number before = shuffle(all_lanes, y, max(self.warp - 1, 0), 32);
        return {self.warp > 0 ? before : all.y_left, last};
    }

    /* Replace the right-hand side by x. */
    __device__ __forceinline__ void substitute(Number *system,
                                               const SharedThreadPlace &self,
                                               const Ends<Number> &ends) const
    {
        Number x[rows];

        /* Loaded again: kept in registers since load(), the right-hand sides of float32 would
         * displace 20 others of 128 to local memory, whose loads wait for the copies. */
        if constexpr (sizeof(Number) == 4) {
            read(const_cast<const volatile Number *>(system), self, x);
        }
        else {
            read(system, self, x);
        }
        chunk.substitute(x, ends.y_left, ends.y);
        write(system + self.start, self.start, x);
    }

    template <typename Visit> __device__ __forceinline__ void each(const Visit &visit)
    {
        chunk.each(visit);
        lanes.each(visit);
        close.each(visit);
    }

  private:
    /* Pads read the zeros before the system. */
    template <typename Place>
    static __device__ __forceinline__ void
    read(Place *system, const SharedThreadPlace &self, Number (&rhs)[rows])
    {
        system += self.source;
#pragma unroll
        for (int i = 0; i < rows; i++) {
            rhs[i] = system[i];
        }
    }

    static __device__ __forceinline__ void write(Number *chunk_rows, int32_t start,
                                                 const Number (&x)[rows])
    {
        if (start >= 0) {
#pragma unroll
            for (int i = 0; i < rows; i++) {
                chunk_rows[i] = x[i];
            }
        }
        else if (start > -rows) {
#pragma unroll
            for (int i = 1; i < rows; i++) {
                if (i >= -start) {
                    chunk_rows[i] = x[i];
                }
            }
        }
    }
};

} // namespace pysolvers::shared

#endif
