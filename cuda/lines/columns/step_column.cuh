/* step_column.cuh - the rows of an implicit step in the kernel of columns:
 * lines/join/step_terms.cuh.
 *
 * The ring copies u[i + 1] with row i, so that a thread has u[i - 1] and u[i] in
 * registers, and the source as a fifth operand. The two numbers of u before the first
 * row that the ring brings, and the word of the mask, are loaded one tile in advance. A
 * tile is read before any of its x is written, so that x may be u.
 */
#ifndef PS_CUDA_LINES_COLUMNS_STEP_COLUMN_CUH
#define PS_CUDA_LINES_COLUMNS_STEP_COLUMN_CUH

#include "lines/columns/column_stage.cuh"

namespace pysolvers::columns {

/* For a job whose rows are those in memory: nothing. */
template <typename Job, int ROWS> struct StepColumn {
    __device__ __forceinline__ StepColumn(const Job &, const ColumnThreadPlace<ROWS> &)
    {
    }
    __device__ __forceinline__ void fetch(int64_t)
    {
    }
    __device__ __forceinline__ void begin()
    {
    }
};

template <typename Number, int ROWS> struct StepColumn<StepColumnJob<Number>, ROWS> {
    __device__ __forceinline__ StepColumn(const StepColumnJob<Number> &j,
                                          const ColumnThreadPlace<ROWS> &place)
        : job(j), self(place)
    {
    }

    /* Load what the rows of `system` need besides those of the ring. */
    __device__ __forceinline__ void fetch(int64_t system)
    {
        const int64_t systems = job.t.outer * job.t.inner;
        const int64_t safe = min(system, systems - 1);
        const ColumnPlace place(job.t, safe);
        const int32_t row = max(self.start, 0);

        next.now = *place.at(job.t.rhs, row);
        next.before = Number(0);
        if (row > 0 || job.t.periodic) {
            next.before = *place.at(job.t.rhs, row > 0 ? row - 1 : job.t.rows - 1);
        }
        next.inside = ~0u;
        if (job.terms.words != nullptr) {
            next.inside = job.terms.words[chunk() * systems + safe];
        }
    }

    /* Before the rows of the system that was fetched. */
    __device__ __forceinline__ void begin()
    {
        has = next;
    }

    /* Row i of the chunk, from what the ring has brought: called for i = 0, 1, ... */
    __device__ __forceinline__ Row<Number> row(int i, bool is_padded, bool has_lower,
                                               bool has_upper, const Row<Number> &from,
                                               Number source, int64_t system)
    {
        Number behind = has_upper ? from.rhs : Number(0);

        if (i == ROWS - 1 && job.t.periodic && self.start + ROWS == job.t.rows) {
            const int64_t last = job.t.outer * job.t.inner - 1;

            behind = *ColumnPlace(job.t, min(system, last)).at(job.t.rhs, 0);
        }
        const Row<Number> made =
            make(i, has_lower ? from.lower : Number(0), from.diag,
                 has_upper ? from.upper : Number(0), has.before, has.now, behind, source);

        if (!is_padded || i >= self.pads) {
            has.before = has.now;
            has.now = behind;
        }
        return made;
    }

    /* The same row from memory. */
    __device__ __forceinline__ Row<Number> row_in_memory(int i, int64_t system) const
    {
        const Systems<Number> &t = job.t;
        const int32_t row = self.start + i, last = t.rows - 1;

        if (system >= t.outer * t.inner) {
            return copy_row<Number>();
        }
        const ColumnPlace place(t, system);
        const bool has_lower = t.periodic || row > 0;
        const bool has_upper = t.periodic || row < last;
        const auto u_at = [&](int32_t r) { return *place.at(t.rhs, r); };

        return make(i, has_lower ? *place.at(t.lower, row) : Number(0),
                    *place.at(t.diag, row),
                    has_upper ? *place.at(t.upper, row) : Number(0),
                    has_lower ? u_at(row > 0 ? row - 1 : last) : Number(0), u_at(row),
                    has_upper ? u_at(row < last ? row + 1 : 0) : Number(0),
                    job.terms.has_source ? *place.at(job.inputs[4], row) : Number(0));
    }

    /* Whether x of row i is stored: not that of a row outside, which is u. */
    __device__ __forceinline__ bool is_inside(int i) const
    {
        return !job.terms.keeps_u(has.inside, i);
    }

    /* Store u in the rows outside, if x, which begins with row 0 of the chunk, has not
     * its place. */
    __device__ __forceinline__ void keep_outside(Number *x,
                                                 const ColumnPlace &place) const
    {
        if (job.is_in_place || job.terms.words == nullptr) {
            return;
        }
#pragma unroll 1
        for (int i = self.pads; i < ROWS; i++) {
            if (!is_inside(i)) {
                x[i * job.t.x.row] = *place.at(job.t.rhs, self.start + i);
            }
        }
    }

  private:
    const StepColumnJob<Number> &job;
    const ColumnThreadPlace<ROWS> &self;
    /* u of the row before the next one that is made, and of that row; the word of the
     * mask */
    struct Kept {
        Number before, now;
        uint32_t inside;
    } has, next;

    __device__ __forceinline__ int64_t chunk() const
    {
        return (self.block * job.shape.warps + self.warp) * job.shape.parts() + self.part;
    }

    __device__ __forceinline__ Row<Number> make(int i, Number lower, Number diag,
                                                Number upper, Number before, Number u,
                                                Number behind, Number source) const
    {
        return job.terms.row(has.inside >> i, lower, diag, upper, before, u, behind,
                             source);
    }
};

} // namespace pysolvers::columns

#endif
