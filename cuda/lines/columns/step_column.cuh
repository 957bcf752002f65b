/* step_column.cuh - the rows of an implicit step in the kernel of columns:
 * lines/join/step_terms.cuh.
 *
 * The ring copies u[i + 1] with row i, so that a thread has u[i - 1] and u[i] in
 * registers. What else a chunk needs, the numbers before its first row and the word of its
 * mask, is copied to shared memory with the first rows of the tile, behind the numbers g
 * of the chunk. A tile is read before any of its x is written, so that x may be u.
 *
 * A row outside of a mask is a row of the identity with the right-hand side 0. Its number
 * g, which the elimination of the next row does not read from shared memory, is replaced
 * by u, which the substitution stores; the row before it continues with 0. No row is read
 * twice, and all rows are stored.
 */
#ifndef PS_CUDA_LINES_COLUMNS_STEP_COLUMN_CUH
#define PS_CUDA_LINES_COLUMNS_STEP_COLUMN_CUH

#include "lines/columns/column_stage.cuh"

namespace pysolvers::columns {

/* For a job whose rows are those in memory: nothing. */
template <typename Job, int ROWS> struct StepColumn {
    template <typename Number>
    __device__ __forceinline__ StepColumn(const Job &, const ColumnThreadPlace<ROWS> &,
                                          Number *)
    {
    }
};

/* What the rows of all steps have. `g` has the numbers of the chunk; behind the last row
 * are those that are copied one tile in advance. */
template <typename Job, typename Number, int ROWS> struct StepColumnBase {
    __device__ __forceinline__ StepColumnBase(const Job &j,
                                              const ColumnThreadPlace<ROWS> &place,
                                              Number *of_lane)
        : job(j), self(place), g{of_lane}
    {
    }

    /* Substitution: what is stored in row i, and how the row before it continues. */
    template <typename X> __device__ __forceinline__ Number stored(int i, X &x) const
    {
        if constexpr (Job::keeps_u) {
            if (is_masked()) {
                const bool keeps = keeps_u(inside, i);
                const Number value = keeps ? Number(g[i]) : Number(x);

                x = keeps ? X(0) : x;
                return value;
            }
        }
        return x;
    }

  protected:
    const Job &job;
    const ColumnThreadPlace<ROWS> &self;
    const LaneWords<Number> g;
    MaskBits<ROWS> inside = ~MaskBits<ROWS>(0); /* of the mask */

    __device__ __forceinline__ bool is_masked() const
    {
        return Job::is_masked || job.terms.words != nullptr;
    }
    template <typename T>
    __device__ __forceinline__ void fetch_word(int k, const T *from) const
    {
        copy_async<sizeof(T)>(&g[ROWS + k], from);
    }
    __device__ __forceinline__ uint32_t word(int k) const
    {
        return *reinterpret_cast<const uint32_t *>(&g[ROWS + k]);
    }
    /* The words of the mask, as number k and the next one. */
    __device__ __forceinline__ void fetch_mask(int k, int64_t system,
                                               int64_t systems) const
    {
        if (is_masked()) {
            const int64_t chunk =
                (self.block * job.shape.warps + self.warp) * job.shape.parts() +
                self.part;

#pragma unroll
            for (int h = 0; h < mask_words(ROWS); h++) {
                fetch_word(k + h, job.terms.words +
                                      (chunk * mask_words(ROWS) + h) * systems + system);
            }
        }
    }
    /* A system beyond the batch has no rows inside. */
    __device__ __forceinline__ void begin_mask(int k, int64_t system)
    {
        if (is_masked()) {
            const bool is_there = system < job.t.outer * job.t.inner;

            inside = is_there ? word(k) : 0;
            if constexpr (mask_words(ROWS) > 1) {
                inside |= MaskBits<ROWS>(is_there ? word(k + 1) : 0) << 32;
            }
        }
    }
    /* Before row i is made, when g of the row before it is stored: u of that row. */
    __device__ __forceinline__ void keep_u(int i, Number before) const
    {
        if (i > 0 && keeps_u(inside, i - 1)) {
            g[i - 1] = before;
        }
    }
    __device__ __forceinline__ void keep_last_u(int i, Number u) const
    {
        if (i == ROWS - 1 && keeps_u(inside, i)) {
            g[i] = u;
        }
    }
};

template <typename Number, StepKind KIND, int ROWS>
struct StepColumn<StepColumnJob<Number, KIND>, ROWS>
    : StepColumnBase<StepColumnJob<Number, KIND>, Number, ROWS> {
    using Job = StepColumnJob<Number, KIND>;
    using Base = StepColumnBase<Job, Number, ROWS>;
    using Base::Base, Base::job, Base::self, Base::g, Base::inside;

    /* Start the copies of what the rows of `system` need apart from those of the ring. */
    __device__ __forceinline__ void fetch(int64_t system) const
    {
        const int64_t systems = job.t.outer * job.t.inner;
        const int64_t safe = min(system, systems - 1);
        const ColumnPlace place(job.t, safe);
        const int32_t row = max(self.start, 0);

        this->fetch_word(0, place.at(job.t.rhs, row));
        if (row > 0 || job.t.periodic) {
            this->fetch_word(1, place.at(job.t.rhs, row > 0 ? row - 1 : job.t.rows - 1));
        }
        if constexpr (Job::keeps_u) {
            this->fetch_mask(2, safe, systems);
        }
    }

    /* Called first. */
    __device__ __forceinline__ void start() const
    {
    }

    /* Before the rows of the system that was fetched, whose copies have arrived. */
    __device__ __forceinline__ void begin([[maybe_unused]] int64_t system)
    {
        now = self.start >= 0 || job.t.periodic ? Number(g[ROWS]) : Number(0);
        before = self.start > 0 || job.t.periodic ? Number(g[ROWS + 1]) : Number(0);
        if constexpr (Job::keeps_u) {
            this->begin_mask(2, system);
        }
    }

    /* Row i of the chunk, from what the ring has brought: called for i = 0, 1, ...
     * is_padded: row 0 of a periodic system follows the pads. */
    __device__ __forceinline__ Row<Number>
    row(int i, bool is_padded, const Row<Number> &from, Number source, int64_t system)
    {
        Number behind = from.rhs;

        if (i == ROWS - 1 && job.t.periodic && self.start + ROWS == job.t.rows) {
            const int64_t last = job.t.outer * job.t.inner - 1;

            behind = *ColumnPlace(job.t, min(system, last)).at(job.t.rhs, 0);
        }
        const Row<Number> made =
            make(i, from.lower, from.diag, from.upper, before, now, behind, source);

        if (!is_padded || i >= self.pads) {
            before = now;
            now = behind;
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
        Number source(0);

        if constexpr (Job::has_source) {
            source = *place.at(job.inputs[4], row);
        }
        return make(i, has_lower ? *place.at(t.lower, row) : Number(0),
                    *place.at(t.diag, row),
                    has_upper ? *place.at(t.upper, row) : Number(0),
                    has_lower ? u_at(row > 0 ? row - 1 : last) : Number(0), u_at(row),
                    has_upper ? u_at(row < last ? row + 1 : 0) : Number(0), source);
    }

  private:
    Number before, now; /* u of the row before the next one that is made, and of that */

    __device__ __forceinline__ Row<Number> make(int i, Number lower, Number diag,
                                                Number upper, Number left, Number u,
                                                Number right,
                                                [[maybe_unused]] Number source) const
    {
        if constexpr (Job::keeps_u) {
            if (this->is_masked()) {
                this->keep_u(i, left);
                this->keep_last_u(i, u);
            }
            return job.terms.template row<Job::has_source>(
                RowInside(inside, i), lower, diag, upper, left, u, right, source);
        }
        else {
            return job.terms.row(lower, diag, upper, left, u, right);
        }
    }
};

/* The rows of fluxes. Numbers that all systems share are computed once, in a table. */
template <typename Real, FluxKind KIND, int ROWS>
struct StepColumn<FluxColumnJob<Real, KIND>, ROWS>
    : StepColumnBase<FluxColumnJob<Real, KIND>, BySums<Real>, ROWS> {
    using Number = BySums<Real>;
    using Job = FluxColumnJob<Real, KIND>;
    using Base = StepColumnBase<Job, Number, ROWS>;
    using Base::job, Base::self, Base::g, Base::inside;

    __device__ __forceinline__ StepColumn(const Job &j,
                                          const ColumnThreadPlace<ROWS> &place,
                                          Number *of_lane)
        : Base(j, place, of_lane),
          table(of_lane - threadIdx.x % 32 + 32 * (ROWS + Job::fetched) +
                self.part * (2 * ROWS + 1))
    {
    }

    __device__ __forceinline__ void start() const
    {
        if (!has_one_thickness()) {
            return;
        }
        const ColumnPlace place(job.t, 0);
        const auto d_at = [&](int32_t row) {
            return Real(*place.at(job.t.diag, min(max(row, 0), job.t.rows - 1)));
        };

#pragma unroll 1
        for (int i = self.column; i <= ROWS; i += 1 << job.shape.width) {
            const int32_t row = self.start + i;
            const Real d = d_at(row), per_face = job.terms.per_face(d_at(row - 1), d);

            table[i] = per_face;
            if (has_one_diffusivity()) { /* the outer faces have none */
                table[i] = row > 0 && row < job.t.rows
                               ? per_face * Real(*place.at(job.t.upper, row - 1))
                               : Real(0);
            }
            if (i < ROWS) {
                table[ROWS + 1 + i] = d;
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void fetch(int64_t system) const
    {
        const FluxNumbers<Real> &f = job.terms;
        const Systems<Number> &t = job.t;
        const int64_t systems = t.outer * t.inner;
        const int64_t safe = min(system, systems - 1);
        const ColumnPlace place(t, safe);
        const int32_t row = max(self.start, 0);
        const bool has_before = self.start > 0;

        this->fetch_word(at_u, place.at(t.rhs, row));
        if (has_before) {
            this->fetch_word(at_u + 1, place.at(t.rhs, row - 1));
            if (!has_one_diffusivity()) {
                this->fetch_word(at_face, place.at(t.upper, row - 1));
            }
        }
        if (!has_one_thickness()) {
            this->fetch_word(at_d, place.at(t.diag, row));
            if (has_before) {
                this->fetch_word(at_d + 1, place.at(t.diag, row - 1));
            }
        }
        if constexpr (KIND == FluxKind::more) {
            fetch_more(place, safe, systems);
        }
    }

    __device__ __forceinline__ void begin([[maybe_unused]] int64_t system)
    {
        const FluxNumbers<Real> &f = job.terms;
        const bool has_before = self.start > 0;

        now = self.start >= 0 ? Real(g[ROWS + at_u]) : Real(0);
        before = has_before ? Real(g[ROWS + at_u + 1]) : Real(0);
        d = self.pads < 1 ? Real(g[ROWS + at_d]) : Real(1);
        if constexpr (KIND == FluxKind::more) {
            this->begin_mask(at_mask, system);
        }
        if constexpr (KIND != FluxKind::bare) {
            if (f.has_ends) {
                begin_ends(system);
            }
        }
        left = {Real(0), Real(0)};
        if (has_before) {
            const Real per_face = has_one_thickness()
                                      ? Real(table[0])
                                      : f.per_face(g[ROWS + at_d + 1], g[ROWS + at_d]);
            const Real k =
                has_one_diffusivity() ? per_face : per_face * Real(g[ROWS + at_face]);

            left = face(0, k, before, now);
        }
    }

    /* The thickness of pads, for which the ring has zeros, is 1. */
    __device__ __forceinline__ Row<Number> row(int i, bool, const Row<Number> &from,
                                               Number, int64_t)
    {
        const FluxNumbers<Real> &f = job.terms;
        const Real behind = from.rhs;
        Real k, next_d = 0;

        if (has_one_thickness()) {
            d = table[ROWS + 1 + i];
            k = table[i + 1];
        }
        else {
            next_d = i + 1 < self.pads ? Real(1) : Real(from.diag);
            k = f.per_face(d, next_d);
        }
        if (!has_one_diffusivity()) {
            k *= Real(from.upper);
        }
        const FluxFace<Real> right = face(i + 1, k, now, behind);
        const Row<Number> made = make(i, left, d, right, before, now, from.lower);

        before = now;
        now = behind;
        left = right;
        d = next_d;
        return made;
    }

    __device__ __forceinline__ Row<Number> row_in_memory(int i, int64_t system) const
    {
        const Systems<Number> &t = job.t;
        const FluxNumbers<Real> &f = job.terms;
        const int32_t row = self.start + i;

        if (system >= t.outer * t.inner) {
            return copy_row<Number>();
        }
        const ColumnPlace place(t, system);
        const Real own = *place.at(t.diag, row), u = *place.at(t.rhs, row);
        const auto face_between = [&](int32_t r) {
            const Real k = f.per_face(*place.at(t.diag, r), *place.at(t.diag, r + 1)) *
                           Real(*place.at(t.upper, r));

            return face(r + 1 - self.start, k, *place.at(t.rhs, r),
                        *place.at(t.rhs, r + 1));
        };
        FluxFace<Real> lower = {Real(0), Real(0)}, upper = {Real(0), Real(0)};
        Real u_left = 0, source = 0;

        if (row > 0) {
            u_left = *place.at(t.rhs, row - 1);
            lower = face_between(row - 1);
        }
        if (row < t.rows - 1) {
            upper = face_between(row);
        }
        if (f.has_source) {
            source = *place.at(job.inputs[0], row);
        }
        return make(i, lower, own, upper, u_left, u, source);
    }

  private:
    /* The numbers behind those of the chunk: two of u, the face, two of d, the word of the
     * mask, flux, value, and d and K of the outer faces, what follows from these, the ends
     * of the mask; those of the last end after those of the first one. */
    static constexpr int at_u = 0, at_face = 2, at_d = 3, at_mask = 5, at_flux = 6,
                         at_value = 8, at_sum = 10, at_load = 12, at_outer_d = 14,
                         at_ends = 14, at_outer_face = 16;
    Number *const table; /* 2 h / (d[i - 1] + d[i]), i = 0 .. ROWS, then d */
    /* of the next row that is made: u of the row before it and of itself, the face before
     * it, its thickness */
    Real before, now, d;
    FluxFace<Real> left;
    int32_t first, last; /* the ends, counted from row 0 of the chunk */

    __device__ __forceinline__ bool has_one_thickness() const
    {
        return job.terms.has_one_thickness;
    }
    __device__ __forceinline__ bool has_one_diffusivity() const
    {
        return job.terms.has_one_diffusivity;
    }

    /* The operand with the outer face at an end. */
    __device__ __forceinline__ const Input<Number> &faces(int end) const
    {
        return end == 0 ? job.t.lower : job.t.upper;
    }

    __device__ __forceinline__ void fetch_more(const ColumnPlace &place, int64_t system,
                                               int64_t systems) const
    {
        const FluxNumbers<Real> &f = job.terms;

        this->fetch_mask(at_mask, system, systems);
        if (f.ends != nullptr) {
            this->fetch_word(at_ends, f.ends + system);
            this->fetch_word(at_ends + 1, f.ends + systems + system);
        }
        else {
            fetch_ends(place);
        }
    }

    __device__ __forceinline__ void fetch_ends(const ColumnPlace &place) const
    {
        if (job.terms.has_ends) {
            if (self.start <= 0) {
                fetch_end(place, 0, 0);
            }
            if (self.start + ROWS == job.t.rows) {
                fetch_end(place, 1, job.t.rows - 1);
            }
        }
    }

    __device__ __forceinline__ void fetch_end(const ColumnPlace &place, int end,
                                              int32_t row) const
    {
        const FluxNumbers<Real> &f = job.terms;

        if (f.flux[end].data != nullptr) {
            this->fetch_word(at_flux + end, place.at(f.flux[end], 0));
        }
        if (f.value[end].data != nullptr) {
            this->fetch_word(at_value + end, place.at(f.value[end], 0));
            this->fetch_word(at_outer_d + end, place.at(job.t.diag, row));
            this->fetch_word(at_outer_face + end, place.at(faces(end), row));
        }
    }

    /* What enters through the outer faces of this chunk. Ends of a mask are known only
     * here, so that their numbers are loaded. */
    __device__ __forceinline__ void begin_ends(int64_t system)
    {
        const FluxNumbers<Real> &f = job.terms;
        const bool is_masked = KIND == FluxKind::more && f.ends != nullptr;
        const int64_t systems = job.t.outer * job.t.inner;
        const ColumnPlace place(job.t, min(system, systems - 1));

        first = (is_masked ? static_cast<int32_t>(this->word(at_ends)) : 0) - self.start;
        last =
            (is_masked ? static_cast<int32_t>(this->word(at_ends + 1)) : job.t.rows - 1) -
            self.start;
#pragma unroll 1
        for (int end = 0; end < 2; end++) {
            const int32_t i = end == 0 ? first : last, row = self.start + i;

            if (i < self.pads || i >= ROWS) {
                (end == 0 ? first : last) = -1;
                continue;
            }
            const auto number = [&](int k, const auto &operand, int32_t at) {
                return is_masked ? Real(*place.at(operand, at)) : Real(g[ROWS + k + end]);
            };

            const FluxEntry<Real> e = f.entry(
                f.flux[end].data != nullptr,
                [&] { return number(at_flux, f.flux[end], 0); },
                f.value[end].data != nullptr,
                [&] { return number(at_value, f.value[end], 0); },
                [&] { return number(at_outer_face, faces(end), row); },
                [&] { return number(at_outer_d, job.t.diag, row); });

            g[ROWS + at_sum + end] = e.sum;
            g[ROWS + at_load + end] = e.load;
        }
    }

    /* The face before row i of the chunk. */
    __device__ __forceinline__ FluxFace<Real> face(int i, Real k, Real u,
                                                   Real behind) const
    {
        return job.terms.template face_before<KIND>(inside, i, k, u, behind);
    }

    __device__ __forceinline__ Row<Number> make(int i, const FluxFace<Real> &lower,
                                                Real own, const FluxFace<Real> &upper,
                                                [[maybe_unused]] Real u_left, Real u,
                                                [[maybe_unused]] Real source) const
    {
        const FluxNumbers<Real> &f = job.terms;

        if constexpr (KIND == FluxKind::bare) {
            return f.row(lower, own, upper, u);
        }
        Real sum = 0, load = 0;

        if (f.has_ends) {
            if (i == first) {
                sum = g[ROWS + at_sum];
                load = g[ROWS + at_load];
            }
            if (i == last) {
                sum += g[ROWS + at_sum + 1];
                load += g[ROWS + at_load + 1];
            }
        }
        if (this->is_masked()) {
            this->keep_u(i, u_left);
            this->keep_last_u(i, u);
        }
        return f.row(RowInside(inside, i).itself, lower, own, upper, u, source, sum,
                     load);
    }
};

} // namespace pysolvers::columns

#endif
