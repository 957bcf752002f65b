/* step_tile.cuh - the rows of an implicit step in the kernels of tiles:
 * lines/join/step_terms.cuh.
 *
 * A thread reads u and the thicknesses of the neighbours of a row from the tile; those
 * next to its chunk may belong to another block of the cluster, which has not stored its x
 * yet. The bytes of a mask are loaded four at a time, one tile in advance, and become bits
 * when the rows are made. A row outside is a row of the identity with the right-hand side
 * 0; after the elimination u takes the place of its number g, which the substitution
 * stores, and the row before it continues with 0.
 */
#ifndef PS_CUDA_LINES_PARTITION_STEP_TILE_CUH
#define PS_CUDA_LINES_PARTITION_STEP_TILE_CUH

#include "lines/partition/partition.h"

namespace pysolvers::partition {

/* The operands of a tile in shared memory, from the first row of a chunk on. */
template <typename Number> struct TileRows {
    const Number *lower, *diag, *upper, *u;
    int pitch;
};

/* For a job whose rows are those in memory: nothing. */
template <typename AnyJob, int ROWS> struct StepTile {
    __device__ __forceinline__ explicit StepTile(const AnyJob &)
    {
    }
};

/* The bytes of a mask for a chunk and the rows next to it, in words that begin `skipped`
 * bytes before the row before the chunk. */
template <int ROWS> struct MaskRun {
    static constexpr int words = (ROWS + 2 + 3 + 3) / 4;
    uint32_t word[words];
    uint32_t last_row, row_0; /* of a periodic system, for its first and its last chunk */
    int skipped;

    /* `system` is row 0 of the system, `first` the row before the chunk. A word whose rows
     * are contiguous is loaded at once, with bytes of other systems if it has some. */
    __device__ __forceinline__ void load(const StepMask &mask, const uint8_t *system,
                                         int32_t first, int32_t rows, bool periodic)
    {
        const int64_t stride = mask.where.row;

        skipped = stride == 1
                      ? static_cast<int>(reinterpret_cast<uintptr_t>(system + first) % 4)
                      : 0;
#pragma unroll
        for (int k = 0; k < words; k++) {
            const int32_t row = first - skipped + 4 * k;
            const uint8_t *const at = system + row;

            word[k] = stride == 1 && at >= mask.begin && at + 4 <= mask.end
                          ? *reinterpret_cast<const uint32_t *>(at)
                          : single_bytes(system, stride, row, rows);
        }
        last_row = row_0 = 0;
        if (periodic && first < 0) {
            last_row = system[(rows - 1) * stride];
        }
        if (periodic && first + ROWS + 1 == rows) {
            row_0 = *system;
        }
    }
    /* Bit i: whether row `first` + i exists. */
    static __device__ __forceinline__ uint32_t existing(int32_t first, int32_t rows)
    {
        const uint32_t behind = first > -32 ? ~0u << max(-first, 0) : 0;
        const uint32_t before = rows - first < 32 ? ~(~0u << (rows - first)) : ~0u;

        return behind & before;
    }

    /* Bit i: whether row `first` + i is inside. */
    __device__ __forceinline__ uint32_t bits(int32_t first, int32_t rows) const
    {
        uint32_t all = 0;

#pragma unroll
        for (int k = 0; k < words; k++) {
            const uint32_t w = word[k];
            const uint32_t set =
                (((w & 0x7f7f7f7fu) + 0x7f7f7f7fu) | w) >> 7 & 0x01010101u;

            all |= (set * 0x01020408u >> 24) << (4 * k);
        }
        return (all >> skipped & existing(first, rows)) |
               (last_row != 0 ? 1u << (-1 - first) : 0) |
               (row_0 != 0 ? 1u << (ROWS + 1) : 0);
    }

  private:
    /* The bytes of four rows, 0 for rows that do not exist. */
    static __device__ __forceinline__ uint32_t single_bytes(const uint8_t *system,
                                                            int64_t stride, int32_t row,
                                                            int32_t rows)
    {
        uint32_t bytes = 0;

#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (row + i >= 0 && row + i < rows) {
                bytes |= uint32_t(system[(row + i) * stride]) << (8 * i);
            }
        }
        return bytes;
    }
};

/* What the rows of all steps have. */
template <typename AnyJob, typename Number, int ROWS> struct StepTileBase {
    __device__ __forceinline__ explicit StepTileBase(const AnyJob &j) : job(j)
    {
    }

    /* Start the loads for the next tile. */
    __device__ __forceinline__ void fetch(const ThreadPlace<ROWS> &self,
                                          const TileRange &next)
    {
        if constexpr (AnyJob::is_masked) {
            const StepMask &m = job.mask;

            if (m.where.data != nullptr && self.slot < next.systems) {
                const int64_t system = next.system + self.slot;
                const int64_t j = quotient(system, m.inner);

                run.load(m, m.where.system(j, system - j * m.inner), self.start - 1,
                         job.shape.rows, job.t.periodic);
            }
        }
    }

    /* After the elimination: u of the rows outside. */
    template <typename Chunk>
    __device__ __forceinline__ void keep_u(int32_t start, const Number *u, int pitch,
                                           Chunk &chunk)
    {
        if constexpr (AnyJob::is_masked) {
            if (job.mask.where.data == nullptr || start <= -ROWS) {
                return;
            }
#pragma unroll
            for (int i = 0; i < ROWS - 1; i++) {
                if (start + i >= 0 && keeps_u(inside, i)) {
                    chunk.g_of(i) = u[i * pitch];
                }
            }
            last_u = u[(ROWS - 1) * pitch];
        }
    }

    /* Substitution: what is stored in row i, and how the row before it continues. */
    template <typename X, typename Chunk>
    __device__ __forceinline__ Number stored(int i, X &x,
                                             [[maybe_unused]] Chunk &chunk) const
    {
        if constexpr (AnyJob::is_masked) {
            if (job.mask.where.data != nullptr) {
                const bool keeps = keeps_u(inside, i);
                const Number u = i < ROWS - 1 ? Number(chunk.g_of(i)) : last_u;
                const Number value = keeps ? u : Number(x);

                x = keeps ? X(0) : x;
                return value;
            }
        }
        return x;
    }

  protected:
    const AnyJob &job;
    uint32_t inside = ~0u;
    Number last_u;
    MaskRun<ROWS> run;

    __device__ __forceinline__ void begin_mask(int32_t start)
    {
        if constexpr (AnyJob::is_masked) {
            inside = job.mask.where.data != nullptr
                         ? run.bits(start - 1, job.shape.rows)
                         : MaskRun<ROWS>::existing(start - 1, job.shape.rows);
        }
    }

    /* The number of a row next to a chunk, whose numbers of the operand begin at `of`: from
     * the tile, or from memory if another block has it. */
    template <typename Tiles, typename Operand>
    __device__ __forceinline__ Number next_to(const ThreadPlace<ROWS> &self,
                                              const TileRange &range, const Tiles &tiles,
                                              const Number *of, int pitch,
                                              const Operand &in, int32_t row) const
    {
        return row >= range.begin && row < range.begin + range.rows
                   ? of[(row - self.start) * pitch]
                   : *tiles.at(in, range.system + self.slot, row);
    }

    /* The numbers of the rows before and after a chunk. */
    template <typename Tiles, typename Operand>
    __device__ __forceinline__ void
    neighbours(const ThreadPlace<ROWS> &self, const TileRange &range, const Tiles &tiles,
               const Number *of, int pitch, const Operand &in, Number &before,
               Number &behind) const
    {
        const int32_t first = max(self.start, 0), end = self.start + ROWS;
        const int32_t rows = job.shape.rows;

        before = behind = Number(0);
        if (end <= 0) { /* no rows */
            return;
        }
        if (first > 0 || job.t.periodic) {
            before = next_to(self, range, tiles, of, pitch, in,
                             first > 0 ? first - 1 : rows - 1);
        }
        if (end < rows || job.t.periodic) {
            behind = next_to(self, range, tiles, of, pitch, in, end < rows ? end : 0);
        }
    }
};

template <typename Number, bool IS_MASKED, int ROWS>
struct StepTile<StepJob<Number, IS_MASKED>, ROWS>
    : StepTileBase<StepJob<Number, IS_MASKED>, Number, ROWS> {
    using Base = StepTileBase<StepJob<Number, IS_MASKED>, Number, ROWS>;
    using Base::Base, Base::job, Base::inside;

    /* Before the rows of a chunk, whose tile has arrived. */
    template <typename Tiles>
    __device__ __forceinline__ void begin(const ThreadPlace<ROWS> &self,
                                          const TileRange &range, const Tiles &tiles,
                                          const TileRows<Number> &at)
    {
        this->begin_mask(self.start);
        this->neighbours(self, range, tiles, at.u, at.pitch, job.t.rhs, u_in_front,
                         behind);
    }

    /* Before the first row. */
    __device__ __forceinline__ void restart(int32_t start, const TileRows<Number> &at)
    {
        before = u_in_front;
        now = start >= 0 ? Number(at.u[0]) : Number(0);
    }

    /* Row i of the chunk: called for i = 0, 1, ... A pad is a row of the identity. */
    __device__ __forceinline__ Row<Number> row(int i, int32_t start, bool ends,
                                               bool periodic, const TileRows<Number> &at)
    {
        const bool is_there = start >= -i;
        const bool has_left = IS_MASKED || periodic ? is_there : start > -i;
        const bool has_right = is_there && (i < ROWS - 1 || !ends);
        const int at_i = i * at.pitch;
        const Number lower = has_left ? Number(at.lower[at_i]) : Number(0);
        const Number diag = is_there ? Number(at.diag[at_i]) : Number(0);
        const Number upper = has_right ? Number(at.upper[at_i]) : Number(0);
        const Number next = i == ROWS - 1       ? behind
                            : start >= -(i + 1) ? Number(at.u[at_i + at.pitch])
                                                : Number(0);
        Row<Number> made;

        if (periodic && start == -i) {
            before = u_in_front;
        }
        if constexpr (IS_MASKED) {
            made = job.terms.template row<false>(RowInside(inside, i), lower, diag, upper,
                                                 before, now, next, Number(0));
        }
        else {
            made = job.terms.row(lower, diag, upper, before, now, next);
        }
        before = now;
        now = next;
        return made;
    }

  private:
    Number u_in_front, behind; /* u of the rows next to the chunk; of the last row of a
                                  periodic system, if the chunk has row 0 */
    Number before, now;        /* u of the row before the next one, and of that */
};

template <typename Real, FluxKind KIND, int ROWS>
struct StepTile<FluxJob<Real, KIND>, ROWS>
    : StepTileBase<FluxJob<Real, KIND>, BySums<Real>, ROWS> {
    using Number = BySums<Real>;
    using Base = StepTileBase<FluxJob<Real, KIND>, Number, ROWS>;
    using Base::Base, Base::job, Base::inside;

    /* Called first, with the rows of the block: a thickness that holds for all systems is
     * loaded once, as one system. */
    template <typename Tiles>
    __device__ __forceinline__ void start(const Tiles &tiles, const TileRange &range)
    {
        shared_d = nullptr;
        if (!job.terms.has_one_thickness) {
            return;
        }
        Number *const to = tiles.memory + job.tiling.words;

        for (int r = threadIdx.x; r < range.rows; r += blockDim.x) {
            to[r] = *tiles.at(job.t.diag, 0, range.begin + r);
        }
        shared_d = to;
    }

    template <typename Tiles>
    __device__ __forceinline__ void begin(const ThreadPlace<ROWS> &self,
                                          const TileRange &range, const Tiles &tiles,
                                          const TileRows<Number> &at)
    {
        d_at = at.diag;
        d_pitch = at.pitch;
        if (shared_d != nullptr) { /* threads without rows read from its begin */
            d_at = shared_d + (self.start > -ROWS ? self.start - range.begin : 0);
            d_pitch = 1;
        }
        Number of_face(0);

        if (self.start > 0) {
            of_face = this->next_to(self, range, tiles, at.upper, at.pitch, job.t.upper,
                                    self.start - 1);
        }
        this->begin_mask(self.start);
        this->neighbours(self, range, tiles, at.u, at.pitch, job.t.rhs, u_in_front,
                         behind);
        this->neighbours(self, range, tiles, d_at, d_pitch, job.t.diag, d_in_front,
                         d_behind);
        in_front = {Real(0), Real(0)};
        if (self.start > 0) {
            in_front = face(0, job.terms.per_face(d_in_front, *d_at) * Real(of_face),
                            u_in_front, *at.u);
        }
        if (KIND != FluxKind::bare && job.terms.has_ends && self.start > -ROWS) {
            begin_ends(self, range, tiles, at);
        }
    }

    __device__ __forceinline__ void restart(int32_t start, const TileRows<Number> &at)
    {
        left = in_front;
        now = start >= 0 ? Real(at.u[0]) : Real(0);
        thickness = start >= 0 ? Real(d_at[0]) : Real(1);
    }

    /* No face of a pad has a diffusivity. */
    __device__ __forceinline__ Row<Number> row(int i, int32_t start, bool ends, bool,
                                               const TileRows<Number> &at)
    {
        const FluxNumbers<Real> &f = job.terms;
        const bool is_there = start >= -i, has_next = start >= -(i + 1);
        const int at_i = i * at.pitch;
        const Real of_face =
            is_there && (i < ROWS - 1 || !ends) ? Real(at.upper[at_i]) : Real(0);
        const Real next = i == ROWS - 1 ? Real(behind)
                          : has_next    ? Real(at.u[at_i + at.pitch])
                                        : Real(0);
        const Real next_d = i == ROWS - 1 ? Real(d_behind)
                            : has_next    ? Real(d_at[(i + 1) * d_pitch])
                                          : Real(1);
        const FluxFace<Real> right =
            face(i + 1, f.per_face(thickness, next_d) * of_face, now, next);
        const Row<Number> made = make(i, right);

        now = next;
        left = right;
        thickness = next_d;
        return made;
    }

  private:
    const Number *shared_d; /* null, or the thicknesses of all systems */
    const Number *d_at;     /* those from the first row of the chunk on */
    int d_pitch;
    /* of the rows next to the chunk, and the face before it */
    Number u_in_front, behind, d_in_front, d_behind;
    FluxFace<Real> in_front;
    /* of the next row that is made: u, the thickness, the face before it */
    Real now, thickness;
    FluxFace<Real> left;
    int32_t first, last;        /* the ends, counted from the first row of the chunk */
    Real sum_in[2], load_in[2]; /* what enters there */

    /* The face before row i of the chunk. */
    __device__ __forceinline__ FluxFace<Real> face(int i, Real k, Real u,
                                                   Real after) const
    {
        return job.terms.template face_before<KIND>(inside, i, k, u, after);
    }

    __device__ __forceinline__ Row<Number> make(int i, const FluxFace<Real> &right) const
    {
        const FluxNumbers<Real> &f = job.terms;
        Real sum = 0, load = 0;

        if constexpr (KIND == FluxKind::bare) {
            return f.row(left, thickness, right, now);
        }
        if (f.has_ends) {
            sum = i == first ? sum_in[0] : Real(0);
            load = i == first ? load_in[0] : Real(0);
            sum += i == last ? sum_in[1] : Real(0);
            load += i == last ? load_in[1] : Real(0);
        }
        return f.row(RowInside(inside, i).itself, left, thickness, right, now, Real(0),
                     sum, load);
    }

    template <typename Tiles>
    __device__ __forceinline__ void begin_ends(const ThreadPlace<ROWS> &self,
                                               const TileRange &range, const Tiles &tiles,
                                               const TileRows<Number> &at)
    {
        const FluxNumbers<Real> &f = job.terms;
        const int64_t systems = job.t.outer * job.t.inner;
        const int64_t system = range.system + self.slot;

        first = (f.ends != nullptr ? f.ends[system] : 0) - self.start;
        last =
            (f.ends != nullptr ? f.ends[systems + system] : job.t.rows - 1) - self.start;
#pragma unroll
        for (int end = 0; end < 2; end++) {
            const int32_t i = end == 0 ? first : last;

            sum_in[end] = load_in[end] = 0;
            if (i < max(-self.start, 0) || i >= ROWS) {
                continue;
            }
            const FluxEntry<Real> e = f.entry(
                f.flux[end].data != nullptr,
                [&] { return Real(*tiles.at(f.flux[end], system, 0)); },
                f.value[end].data != nullptr,
                [&] { return Real(*tiles.at(f.value[end], system, 0)); },
                [&] {
                    return Real(end == 0 ? *tiles.at(job.t.lower, system, self.start + i)
                                         : at.upper[i * at.pitch]);
                },
                [&] { return Real(d_at[i * d_pitch]); });

            sum_in[end] = e.sum;
            load_in[end] = e.load;
        }
    }
};

} // namespace pysolvers::partition

#endif
