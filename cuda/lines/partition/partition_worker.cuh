/* partition_worker.cuh - the computations of a block of the partition kernels on one
 * tile.
 *
 * The block eliminates the tile from shared memory into registers, joins the segments
 * up to the level that closes the system, computes y_left and y of every chunk, and
 * substitutes.
 */
#ifndef PS_CUDA_LINES_PARTITION_PARTITION_WORKER_CUH
#define PS_CUDA_LINES_PARTITION_PARTITION_WORKER_CUH

#include "device/cluster.cuh"
#include "lines/partition/partition.h"
#include "lines/partition/step_tile.cuh"

namespace pysolvers::partition {

template <typename Number, int ROWS, Top TOP, bool BY_ROW, typename AnyJob = Job<Number>>
struct Worker {
    static constexpr bool in_parts = TOP == TOP_SEGMENT || TOP == TOP_KNOWN;
    static constexpr int sides = sides_of_number<Number>, inputs = 3 + sides;
    const AnyJob &job;
    const Shape &shape;
    Tiles<Number, BY_ROW, AnyJob::is_flux, TOP == TOP_DEVICES, AnyJob::in_passes> tiles;
    WarpExchange<Number> &exchange;
    uint8_t *skip;                 /* for each slot, whether its x is not stored */
    TileMessage<Number> *messages; /* of the blocks of a cluster, alternating by tile */
    DeviceMessage<Number> *device_messages; /* at the same place */
    uint64_t device_round = 0;
    int round = -1; /* number of tiles of the block, minus one */
    Levels<Number, ROWS> levels;
    StepTile<AnyJob, ROWS> step;

    /* Inverts the pivots of the rows of devices, which end with these rows of the system. */
    struct DeviceReciprocal {
        SafeReciprocal<Number> safe;
        const int32_t *last_row;

        __device__ __forceinline__ Number invert(Number pivot, int32_t device)
        {
            return safe.invert(pivot, last_row[max(device, 0)]);
        }
    };

    __device__ __forceinline__ Worker(const AnyJob &j, void *memory,
                                      TileStateOf<TOP == TOP_DEVICES, sides> &state,
                                      WarpExchange<Number> &place, uint8_t *not_stored)
        : job(j), shape(j.shape),
          tiles{j.t,   j.inputs,      j.tiling, static_cast<Number *>(memory),
                state, side_groups(j)},
          exchange(place), skip(not_stored),
          messages(reinterpret_cast<TileMessage<Number> *>(
              tiles.memory + (j.tiling.direct      ? inputs
                              : j.tiling.stage > 0 ? 9
                                                   : inputs + sides) *
                                 j.tiling.words)),
          device_messages(reinterpret_cast<DeviceMessage<Number> *>(messages)), step(j)
    {
        if (TOP == TOP_DEVICES) {
            device_round = job.devices.round();
        }
    }

    static __device__ __forceinline__ const SideGroups *side_groups(const AnyJob &job)
    {
        if constexpr (sides > 1) {
            return &job.groups;
        }
        return nullptr;
    }

    __device__ __forceinline__ int turn() const
    {
        return round & 1;
    }

    /* The number of tiles. */
    __device__ __forceinline__ int64_t tiles_count() const
    {
        return in_parts && job.parts.left != nullptr
                   ? static_cast<int64_t>(job.parts.left[0]) * shape.blocks
                   : job.tiling.tiles;
    }

    /* The systems of tile `tile` for block `rank` of a cluster; of several groups of right-hand
     * sides that the tile has, group `of_sides`. */
    __device__ __forceinline__ TileRange range_of(int64_t tile, int32_t rank,
                                                  int32_t of_sides = 0) const
    {
        if constexpr (AnyJob::has_halos) {
            return range_with_halos(tile);
        }
        if (sides > 1) {
            tile = tile * job.tiling.sharing + of_sides;
        }
        const int64_t group = in_parts ? quotient(tile, shape.blocks) : tile;
        const SystemRange systems =
            systems_of_tile(group, job.tiling.systems, in_parts ? 1 : job.tiling.sharing,
                            job.t.outer, job.t.inner);
        TileRange range;

        range.block = in_parts ? static_cast<int32_t>(tile - group * shape.blocks) : rank;
        const int32_t chunk = range.block * shape.warps * shape.lanes;
        const int32_t next = chunk + shape.warps * shape.lanes;
        range.group = of_sides;
        range.system = systems.first;
        range.systems = systems.count;
        range.begin = max(shape.template start_of<ROWS>(chunk), 0);
        range.rows = max(shape.template start_of<ROWS>(next), 0) - range.begin;
        range.stored = range.begin;
        if (in_parts && job.parts.left != nullptr && tile < tiles_count()) {
            range.system = job.parts.left[1 + group];
        }
        return range;
    }

    __device__ __forceinline__ TileRange range_with_halos(int64_t tile) const
    {
        if constexpr (AnyJob::has_halos) {
            const int64_t other = tile - job.t.outer * job.t.inner;
            const int32_t others = max(job.tiles_of_system - 1, 1);
            const int64_t system = other < 0 ? tile : quotient(other, others);
            const auto part =
                other < 0 ? 0 : static_cast<int32_t>(1 + other - system * others);
            const int32_t behind = job.tiles_of_system - 1 - part;
            const int32_t end = job.t.rows - behind * (shape.rows - 2 * job.halo);
            const int32_t begin = max(end - shape.rows, 0);

            return {system, part, 1, begin, end - begin, part > 0 ? begin + job.halo : 0,
                    0};
        }
        return {};
    }

    /* Row 0 of the tile, in the system; rows before row 0 of the system are rows of the
     * identity. */
    __device__ __forceinline__ int32_t base_of(const TileRange &range) const
    {
        return AnyJob::has_halos ? range.begin + range.rows - shape.rows : 0;
    }

    /* The rows whose x is stored. */
    __device__ __forceinline__ TileRange stored_of(const TileRange &range) const
    {
        TileRange stored = range;

        if constexpr (AnyJob::has_halos) {
            const bool is_last = range.block == job.tiles_of_system - 1;

            stored.rows =
                range.begin + range.rows - (is_last ? 0 : job.halo) - range.stored;
            stored.begin = range.stored;
        }
        return stored;
    }

    /* The index of a row of the system in a slot, in the arrays of a tile. */
    __device__ __forceinline__ int offset_of(int32_t slot, int32_t row,
                                             const TileRange &range) const
    {
        return slot * tiles.system_pitch() + (row - range.begin) * tiles.row_pitch();
    }

    /* From shared memory to registers. Warps without row 0 and without pads do not test
     * for them in every row; the values that idle lanes read there are not used. */
    __device__ __forceinline__ void eliminate(const ThreadPlace<ROWS> &self,
                                              const TileRange &range)
    {
        if constexpr (AnyJob::has_halos) {
            eliminate_with_halos(self, range);
            return;
        }
        const bool is_plain =
            __all_sync(all_lanes, self.start > 0 || self.lane >= shape.lanes);
        const int offset = offset_of(
            self.slot, is_plain ? max(self.start, range.begin) : self.start, range);
        const int pitch = tiles.row_pitch();
        const Number *const lower = tiles.array(0, turn()) + offset;
        const Number *const diag = tiles.array(1, turn()) + offset;
        const Number *const upper = tiles.array(2, turn()) + offset;
        const Number *const rhs = tiles.array(3, turn()) + offset;
        const bool ends = !job.has_next && self.start + ROWS == shape.rows;
        bool not_dominant = false;
        const Number *others[sides]; /* right-hand sides after the first one */
#pragma unroll
        for (int p = 1; p < sides; p++) {
            others[p] = tiles.array(3 + p, turn()) + offset;
        }
        const auto row_at = [&](int i) {
            Row<Number> row = {lower[i * pitch], diag[i * pitch], upper[i * pitch], {}};

            if constexpr (sides > 1) {
                row.rhs.at[0] = rhs[i * pitch].value;
#pragma unroll
                for (int p = 1; p < sides; p++) {
                    row.rhs.at[p] = others[p][i * pitch].value;
                }
            }
            else {
                row.rhs = rhs[i * pitch];
            }
            return row;
        };

        if constexpr (AnyJob::is_step) {
            eliminate_step(self, range, ends, {lower, diag, upper, rhs, pitch});
            return;
        }
        const auto inner = [&](int i) {
            Row<Number> row = row_at(i);
            if (i == ROWS - 1 && ends) {
                row.upper = Number(0);
            }
            check_dominance(row, not_dominant);
            return row;
        };
        const auto any = [&](int i) {
            Row<Number> row = copy_row<Number>();

            if (self.start + i >= 0) {
                row = row_at(i);
            }
            if (!job.has_left && self.start + i == 0) {
                row.lower = Number(0);
            }
            if (i == ROWS - 1 && ends) {
                row.upper = Number(0);
            }
            check_dominance(row, not_dominant);
            return row;
        };
        levels.bad_pivot = BadPivot();
        const bool right = is_plain ? levels.eliminate_fast(self, 0, inner)
                                    : levels.eliminate_fast(self, self.pads, any);
        if (!right) {
            levels.eliminate_safe(self, any);
        }
        levels.not_dominant = not_dominant && self.lane < shape.lanes;
    }

    /* The same for a tile with halos. Rows before row 0 are rows of the identity. */
    __device__ __forceinline__ void eliminate_with_halos(const ThreadPlace<ROWS> &self,
                                                         const TileRange &range)
    {
        const int32_t start = base_of(range) + self.start;
        const bool is_plain = __all_sync(all_lanes, start > 0);
        const int offset = offset_of(0, start, range);
        const Number *const lower = tiles.array(0, turn()) + offset;
        const Number *const diag = tiles.array(1, turn()) + offset;
        const Number *const upper = tiles.array(2, turn()) + offset;
        const Number *const rhs = tiles.array(3, turn()) + offset;
        const bool ends = start + ROWS == job.t.rows;
        bool not_dominant = false;
        const auto inner = [&](int i) {
            Row<Number> row = {lower[i], diag[i], upper[i], rhs[i]};

            if (i == ROWS - 1 && ends) {
                row.upper = Number(0);
            }
            check_dominance(row, not_dominant);
            return row;
        };
        const auto any = [&](int i) {
            Row<Number> row = {Number(0), Number(1), Number(0), Number(0)};

            if (start + i >= 0) {
                row = {start + i > 0 ? lower[i] : Number(0), diag[i],
                       i == ROWS - 1 && ends ? Number(0) : upper[i], rhs[i]};
            }
            check_dominance(row, not_dominant);
            return row;
        };

        levels.bad_pivot = BadPivot();
        if (!(is_plain ? levels.eliminate_fast(self, 0, inner)
                       : levels.eliminate_fast(self, 0, any))) {
            levels.eliminate_safe(self, any);
        }
        levels.not_dominant = not_dominant;
    }

    /* The same for the rows of a step. Pads are rows of the identity, which cost less than
     * copies of the row before them; those of a periodic system must be such copies. */
    __device__ __forceinline__ void eliminate_step(const ThreadPlace<ROWS> &self,
                                                   const TileRange &range, bool ends,
                                                   const TileRows<Number> &at)
    {
        const bool is_periodic = !AnyJob::is_flux && job.t.periodic;
        bool not_dominant = false;
        const auto row_at = [&](int i, bool periodic) {
            Row<Number> row = step.row(i, self.start, ends, periodic, at);

            if (periodic && self.start + i < 0) {
                row = copy_row<Number>();
            }
            check_dominance(row, not_dominant);
            return row;
        };

        step.begin(self, range, tiles, at);
        step.restart(self.start, at);
        levels.bad_pivot = BadPivot();
        const bool right =
            is_periodic
                ? levels.eliminate_fast(self, self.pads,
                                        [&](int i) { return row_at(i, true); })
                : levels.eliminate_fast(self, 0, [&](int i) { return row_at(i, false); });
        if (!right) {
            step.restart(self.start, at);
            levels.eliminate_safe(self, [&](int i) { return row_at(i, is_periodic); });
        }
        step.keep_u(self.start, at.u, at.pitch, levels.chunk);
        levels.not_dominant = not_dominant && self.lane < shape.lanes;
    }

    /* Moduli of complex numbers are expensive, so they are computed only if needed. */
    __device__ __forceinline__ void check_dominance(const Row<Number> &row,
                                                    bool &not_dominant) const
    {
        if (!number_traits<Number>::is_complex || job.marks != nullptr) {
            not_dominant = not_dominant | !is_dominant(row.lower, row.diag, row.upper);
        }
    }

    /* Write x to shared memory, from where the whole tile is stored. */
    __device__ __forceinline__ void substitute(const ThreadPlace<ROWS> &self,
                                               const TileRange &range,
                                               const Ends<Number> &ends)
    {
        const TileRange stored = stored_of(range);
        const int32_t start = base_of(range) + self.start;
        const int offset = offset_of(self.slot, start, stored);
        Number *const x = tiles.array(inputs, turn()) + offset;
        Number *others[sides];
#pragma unroll
        for (int p = 1; p < sides; p++) {
            others[p] = tiles.array(inputs + p, turn()) + offset;
        }

        levels.chunk.substitute(ends.y_left, ends.y, [&](int i, auto &value) {
            if (AnyJob::has_halos ? static_cast<uint32_t>(start + i - stored.begin) <
                                        static_cast<uint32_t>(stored.rows)
                                  : start + i >= 0) {
                if constexpr (AnyJob::is_step) {
                    x[i * tiles.row_pitch()] = step.stored(i, value, levels.chunk);
                }
                else if constexpr (sides > 1) {
                    x[i * tiles.row_pitch()] = value.at[0];
#pragma unroll
                    for (int p = 1; p < sides; p++) {
                        others[p][i * tiles.row_pitch()] = value.at[p];
                    }
                }
                else {
                    x[i * tiles.row_pitch()] = value;
                }
            }
        });
        tiles.written();

        const bool not_dominant = is_not_dominant(self, range);
        tiles.store(stored, turn(), __syncthreads_or(not_dominant) ? skip : nullptr);
    }

    /* Store x in global memory directly: the systems of a warp lie side by side and
     * fill sectors. */
    __device__ __forceinline__ void substitute_directly(const ThreadPlace<ROWS> &self,
                                                        const TileRange &range,
                                                        const Ends<Number> &ends) const
    {
        const bool there = self.slot < range.systems && !is_not_dominant(self, range);
        const int64_t row = job.t.x.row;
        Number *const x =
            tiles.at(job.t.x, range.system + (there ? self.slot : 0), self.start);

        levels.chunk.substitute(ends.y_left, ends.y, [&](int i, Number value) {
            if (there && self.start + i >= 0) {
                x[i * row] = value;
            }
        });
    }

    __device__ __forceinline__ bool is_not_dominant(const ThreadPlace<ROWS> &self,
                                                    const TileRange &range) const
    {
        return job.marks != nullptr && levels.not_dominant && self.slot < range.systems;
    }

    /* The ends of the system from its only segment; `last` is its last row. */
    __device__ __forceinline__ Ends<Number> close(const Segment<Number> &s, int32_t last)
    {
        return ends_of_system(s, job.t.periodic, last, levels.bad_pivot);
    }

    /* What y_left and y at the ends of this block add to y of the thread. */
    __device__ __forceinline__ ValueOf<Number> response(const ThreadPlace<ROWS> &self,
                                                        const Ends<Number> &block) const
    {
        Lanes<Number> warps = levels.warps, lanes = levels.lanes;

        warps.y.g = lanes.y.g = ValueOf<Number>(0);
        return ends_of_lane(lanes, self.group,
                            shape.warps > 1
                                ? ends_of_unit(warps, self.units(shape, shape.warps),
                                               self.warp, block)
                                : block)
            .y;
    }

    /* How much the unknowns next to a halo depend on those beyond, for CheckHalos; and whether the
     * system is given up. */
    __device__ __forceinline__ void check_halos(const ThreadPlace<ROWS> &self,
                                                const TileRange &range,
                                                const Segment<Number> &s)
    {
        if constexpr (AnyJob::has_halos) {
            const int32_t chunks = job.halo / ROWS;
            const int64_t tile = range.system * job.tiles_of_system + range.block;
            const Number inverse = reciprocal(s.b);
            const auto note = [&](int side, bool is_there, const Ends<Number> &block) {
                const double size = size_of(response(self, block));

                if (is_there) {
                    job.dependence[2 * tile + side] = size;
                    if (!(size <= job.most)) {
                        job.parts.fail(range.system);
                    }
                }
            };

            if (self.warp == 0 && range.begin > 0) {
                note(0, self.lane == chunks - 1, {ValueOf<Number>(1), inverse * -s.a});
            }
            if (self.warp == shape.warps - 1 && range.begin + range.rows < job.t.rows) {
                note(1, self.lane == shape.lanes - 1 - chunks,
                     {ValueOf<Number>(0), inverse * -s.c});
            }
            if (threadIdx.x == 0 && levels.bad_pivot.row != BadPivot::none) {
                job.parts.fail(range.system);
            }
            if (threadIdx.x == 0 && levels.not_dominant) {
                job.not_dominant[range.system] = 1;
            }
        }
    }

    /* Called by one thread: whether the system of a tile has been given up (not 0), and, if so,
     * the next ticket of another system, those of tile `first` and the following ones. */
    __device__ __forceinline__ uint32_t given_up(int64_t tile) const
    {
        if constexpr (AnyJob::has_halos) {
            const volatile uint32_t *const failed = job.parts.failed;

            return tile < job.tiling.tiles ? failed[range_with_halos(tile).system] : 0;
        }
        return 0;
    }
    __device__ __forceinline__ uint32_t next_ticket(int64_t first) const
    {
        if constexpr (AnyJob::has_halos) {
            const volatile uint32_t *const count = job.parts.left;
            const int64_t systems = job.t.outer * job.t.inner;

            while (*count < systems) {
                const uint32_t ticket = atomicAdd(job.work_queue, 1u);
                if (given_up(first + ticket) == 0) {
                    return ticket;
                }
            }
        }
        return INT32_MAX;
    }

    /* The level of the blocks of a cluster. */
    template <typename Next>
    __device__ __forceinline__ Ends<Number>
    over_cluster(const ThreadPlace<ROWS> &self, const TileRange &range,
                 const Segment<Number> &s, const Next &next)
    {
        const Group group = self.units(shape, shape.blocks);
        const bool there = self.slot < range.systems;
        const int slot = turn() * job.tiling.systems + (there ? self.slot : 0);
        const ClusterRounds rounds = {tiles.state.others, round};
        const int i = min(group.i, shape.blocks - 1);
        TileMessage<Number> *const place = messages + slot * shape.blocks;
        Lanes<Number> blocks;

        if (threadIdx.x == 0) {
            rounds.expect(range.systems * shape.blocks *
                          static_cast<uint32_t>(sizeof(TileMessage<Number>)));
        }
        if (self.warp == 0 && group.i < shape.blocks && there) {
            send(place + self.block, {s, levels.note()}, rounds.now(), group.i);
        }
        rounds.wait();

        const TileMessage<Number> message = place[i];
        const int32_t behind = (i + 1) * shape.warps * shape.lanes;
        levels.take(message.mark);
        return ends_of_unit(
            blocks, group, self.block,
            next(levels.reduce_up(blocks, self, group, message.unit,
                                  shape.template start_of<ROWS>(behind) - 1,
                                  self.first_block)));
    }

    /* Post the message of this device about the system, and write it to shared memory. */
    __device__ __forceinline__ void compose(const ThreadPlace<ROWS> &self,
                                            const TileRange &range,
                                            const Segment<Number> &s)
    {
        const DeviceExchange<Number> &devices = job.devices;

        if (self.warp != 0 || self.slot >= range.systems) {
            return;
        }
        const bool bad = levels.bad_pivot.row != BadPivot::none;
        DeviceMessage<Number> own;

        own.unit = s;
        own.mark = {bad ? devices.first_row + levels.bad_pivot.row : BadPivot::none,
                    levels.not_dominant};
        if (devices.step == PS_PART_WHOLE) {
            devices.post(own, range.system + self.slot, self.lane, shape.lanes,
                         device_round);
        }
        if (self.lane == 0) {
            device_messages[self.slot * devices.count + devices.part] = own;
        }
    }

    /* The level of the devices. Each thread eliminates the rows of the devices, one of each:
     * the lanes of a warp (reduce_up()) took 0.9 us longer for two. */
    template <typename Next>
    __device__ __forceinline__ Ends<Number>
    over_devices(const ThreadPlace<ROWS> &self, const TileRange &range,
                 const Segment<Number> &s, const Next &next)
    {
        const DeviceExchange<Number> &devices = job.devices;
        const int slot = self.slot < range.systems ? self.slot : 0;
        const DeviceMessage<Number> *const of = device_messages + slot * devices.count;

        compose(self, range, s);
        if (devices.step == PS_PART_SEND) {
            __syncthreads();
            devices.send(range, device_messages);
            return {};
        }
        devices.collect(range, device_messages, device_round);
        __syncthreads();

        for (int k = 0; k < devices.count; k++) {
            const Note mark = of[k].mark;

            levels.bad_pivot.row =
                k == 0 ? mark.bad_pivot : min(levels.bad_pivot.row, mark.bad_pivot);
            levels.not_dominant =
                (k > 0 && levels.not_dominant) || mark.not_dominant != 0;
        }
        return devices.count == 2   ? over_devices<2>(of, next)
               : devices.count <= 4 ? over_devices<4>(of, next)
                                    : over_devices<PS_MOST_PARTS>(of, next);
    }

    /* The same from the messages about the system, of at most MOST devices; the rows before
     * those of the first device are pads. */
    template <int MOST, typename Next>
    __device__ __forceinline__ Ends<Number> over_devices(const DeviceMessage<Number> *of,
                                                         const Next &next)
    {
        const DeviceExchange<Number> &devices = job.devices;
        const int last = devices.count - 1, pads = MOST - devices.count;
        DeviceReciprocal inverter = {{levels.bad_pivot}, devices.last_row};
        Chunk<Number, MOST> rows;
        Segment<Number> whole = rows.eliminate(
            [&](int i) {
                const int k = i - pads;

                return k < 0      ? copy_row<Number>()
                       : k < last ? of[k].unit.row_before(of[k + 1].unit.first)
                                  : of[k].unit.row();
            },
            -pads, pads, inverter);

        whole.first = of[0].unit.first.through(whole.first);

        const Ends<Number> all = next(whole);
        Ends<Number> ends = all;

        rows.substitute(all.y_left, all.y, [&](int i, const Number &y) {
            const int k = i - pads;

            ends.y = k == devices.part ? y : ends.y;
            ends.y_left = k >= 0 && k == devices.part - 1 ? y : ends.y_left;
        });
        return ends;
    }

    /* Store the segment of a part for the coarse system. */
    __device__ __forceinline__ void keep(const ThreadPlace<ROWS> &self,
                                         const TileRange &range,
                                         const Segment<Number> &s) const
    {
        if (self.lane == 0 && self.warp == 0 && self.slot < range.systems) {
            const int64_t at = (range.system + self.slot) * shape.blocks + self.block;
            job.parts.segment[at] = s;
            job.parts.note[at] = levels.note();
        }
    }

    /* Read the ends of a part from the coarse solution. */
    __device__ __forceinline__ Ends<Number> load_boundary(const ThreadPlace<ROWS> &self,
                                                          const TileRange &range)
    {
        const bool there = self.slot < range.systems;
        const int64_t system = range.system + (there ? self.slot : 0);
        const Number *const of_parts = job.parts.y + system * shape.blocks;
        const int32_t left = self.block > 0 ? self.block : shape.blocks;

        const Number y = of_parts[self.block];
        const Number y_left =
            self.block > 0 || job.t.periodic ? of_parts[left - 1] : Number(0);
        levels.not_dominant = there && job.marks != nullptr && job.marks[system] != 0;
        if (there && self.lane == 0 && self.warp == 0) {
            skip[self.slot] = levels.not_dominant;
        }
        return {y_left, y};
    }

    /* Write info and mark of the system; its x is not stored if it is to be solved with
     * pivoting. */
    __device__ __forceinline__ void report(const ThreadPlace<ROWS> &self,
                                           const TileRange &range) const
    {
        const bool not_dominant = job.marks != nullptr && levels.not_dominant;

        if (AnyJob::has_halos) {
            if (threadIdx.x == 0) {
                skip[0] = 0;
            }
            return;
        }
        if (self.lane != 0 || self.warp != 0 || self.slot >= range.systems) {
            return;
        }
        const int64_t system = range.system + self.slot;
        skip[self.slot] = not_dominant;
        if (TOP == TOP_CLUSTER && self.block != 0) {
            return;
        }
        const auto of_side = [&](int64_t of_batch) {
            if (job.t.info != nullptr) {
                const int32_t row = levels.bad_pivot.row;

                job.t.info[of_batch] = TOP == TOP_DEVICES && row < 0 ? -job.devices.late()
                                       : row == BadPivot::none       ? 0
                                                                     : row + 1;
            }
            if (job.marks != nullptr) {
                job.marks[of_batch] = not_dominant;
            }
        };
        if constexpr (sides > 1) {
            job.groups.each(system, job.t.inner, of_side);
        }
        else {
            of_side(system);
        }
        if (TOP == TOP_DEVICES &&
            (not_dominant || levels.bad_pivot.row != BadPivot::none)) {
            job.devices.fail(device_round);
        }
    }

    /* The steps after the elimination of a tile. */
    __device__ __forceinline__ void finish(const ThreadPlace<ROWS> &self,
                                           const TileRange &range)
    {
        const auto join = [&](const auto &close, const auto &...upper) {
            return levels.join_block(shape, self, exchange, close, upper...);
        };

        if constexpr (TOP == TOP_SEGMENT) {
            join([&](const Segment<Number> &s) { keep(self, range, s); });
        }
        else if constexpr (TOP == TOP_KNOWN) {
            store(self, range, join([&](const Segment<Number> &) {
                      return load_boundary(self, range);
                  }));
        }
        else if constexpr (TOP == TOP_DEVICES) {
            const Ends<Number> ends = join(
                [&](const Segment<Number> &s) {
                    return close(s, job.devices.last_row[job.devices.count - 1]);
                },
                [&](const Segment<Number> &s, const auto &next) {
                    return over_devices(self, range, s, next);
                });

            if (job.devices.step != PS_PART_SEND) {
                report(self, range);
                store(self, range, ends);
            }
        }
        else {
            const auto whole = [&](const Segment<Number> &s) {
                const Ends<Number> ends = close(s, shape.rows - 1);

                check_halos(self, range, s);
                return ends;
            };
            const auto reported = [&](const Segment<Number> &s, const auto &next) {
                const Ends<Number> ends = next(s);

                report(self, range);
                return ends;
            };

            if constexpr (TOP == TOP_CLUSTER) {
                store(self, range,
                      join(whole, reported,
                           [&](const Segment<Number> &s, const auto &next) {
                               return over_cluster(self, range, s, next);
                           }));
            }
            else {
                store(self, range, join(whole, reported));
            }
        }
    }

  private:
    /* x of the tile, from the ends of the chunks. */
    __device__ __forceinline__ void
    store(const ThreadPlace<ROWS> &self, const TileRange &range, const Ends<Number> &ends)
    {
        if constexpr (!BY_ROW) {
            if (job.tiling.direct) {
                substitute_directly(self, range, ends);
                return;
            }
        }
        substitute(self, range, ends);
    }
};

} // namespace pysolvers::partition

#endif
