/* mirrored_tile.cuh - the lines of PS_MIRRORED_ROWS and PS_MIRRORED_IN_FIVE from values of a
 * field, and back, for one block.
 *
 * A tile has the values of a group of rows (mirrored.cuh) and of `width` groups of places of
 * the lines (HalvedLine), 8 of each line: all that determine each other. A thread combines the
 * rows in one place of the lines, and then 8 numbers of a line, or the other order: in between
 * they are exchanged in shared memory, so that a thread has 8 numbers at a time. Both steps
 * read or write neighbours with neighbouring threads.
 */
#ifndef PS_CUDA_TRANSFORMS_MIRRORED_TILE_CUH
#define PS_CUDA_TRANSFORMS_MIRRORED_TILE_CUH

#include "device/operand.cuh"
#include "transforms/halved.cuh"
#include "transforms/mirrored.cuh"

namespace pysolvers::transforms {

using device::Output;
using device::quotient;

/* `Rows`: Mirroring or MirroredRows. Shared memory: numbers() numbers. */
template <typename Real, typename Rows> struct MirroredTile {
    using Line = HalvedLine<Real, HalvedRows::levels>;
    using Two = Complex<Real>;
    static constexpr int lines = Rows::slots, slots = Line::slots;
    const Output<Real> &field;
    const ps_waves &w;
    HalvedRows parts;
    Rows rows;
    int64_t plane;
    int u;        /* the group of rows */
    int t, which; /* the group of places, and the slot of the line, or of the rows */
    int i;        /* the place in the field, if which is the slot of a line */
    int width;
    Real *own; /* the number of this thread in the first row */

    __host__ __device__ static int numbers(int width)
    {
        return lines * slots * width;
    }

    /* Blocks of a group of rows are next to each other. */
    __device__ __forceinline__ MirroredTile(const Output<Real> &values,
                                            const ps_waves &waves, int64_t block,
                                            int thread, int blocks_a_group, int groups,
                                            Real *shared)
        : field(values), w(waves),
          parts{static_cast<int>(w.size) + (w.kind == PS_DST1 ? 1 : -1),
                w.kind == PS_DST1},
          rows{static_cast<int>(w.rows), w.row_kind}, width(groups), own(shared + thread)
    {
        const int64_t group = quotient(block, blocks_a_group);

        plane = quotient(group, rows.groups());
        u = static_cast<int>(group - plane * rows.groups());
        which = thread / width;
        t = static_cast<int>(block - group * blocks_a_group) * width + thread -
            which * width;
        i = Line::place(which, t, parts.last()) - parts.is_sine;
    }

    /* Values of the field to lines: between load_rows() and write_lines() all threads of the
     * block wait for each other. */
    __device__ __forceinline__ void load_rows() const
    {
        Real x[lines];

        if (!exists()) {
            return;
        }
        /* All reads, of any place if there is none, before the first choice. */
        const int size = static_cast<int>(w.size);
        const int64_t from = (i < 0 ? 0 : i < size ? i : size - 1) * field.row;

#pragma unroll
        for (int r = 0; r < lines; r++) {
            const int j = rows.value(u, r);

            x[r] = __ldcs(field.system(plane, j < 0 ? 0 : j) + from);
        }
#pragma unroll
        for (int r = 0; r < lines; r++) {
            x[r] = has_value() && rows.value(u, r) >= 0 ? scale() * x[r] : Real(0);
        }
        rows.load(x);
#pragma unroll
        for (int r = 0; r < lines; r++) {
            own[r * slots * width] = x[r];
        }
    }
    __device__ __forceinline__ void write_lines() const
    {
        const int64_t place = line();
        Real x[slots];

        if (place < 0) {
            return;
        }
        const Line own_line(t, parts.last());
        const int sum = parts.sum(t), rest = parts.rest(t);
        Real *const last = numbers_of(0, place);

#pragma unroll
        for (int s = 0; s < slots; s++) {
            x[s] = number(s);
        }
        own_line.split(parts.is_sine, x, [&](int level, int index, const Two &y) {
            reinterpret_cast<Two *>(numbers_of(level, place))[index] = y;
        });
        if (sum >= 0) {
            last[sum] = x[0] + x[1];
        }
        if (rest >= 0) {
            last[parts.half() + rest] = x[0] - x[1];
        }
        for (int k = t; k < parts.between(true); k += parts.groups()) {
            last[2 * parts.half() - 1 - k] = Real(0);
            if (k < parts.between(false)) {
                last[parts.half() - 1 - k] = Real(0);
            }
        }
    }

    /* Lines to values of the field: likewise read_lines() and store_rows(). */
    __device__ __forceinline__ void read_lines() const
    {
        const int64_t place = line();
        Real x[slots] = {};

        if (!exists() || which >= lines) {
            return;
        }
        if (place >= 0) {
            const Line own_line(t, parts.last());
            const int sum = parts.sum(t), rest = parts.rest(t);
            const Real *const last = numbers_of(0, place);
            const Real even = __ldcs(last + (sum < 0 ? 0 : sum));
            const Real odd = __ldcs(last + parts.half() + (rest < 0 ? 0 : rest));
            Two given[Line::numbers];
            int k = 0;
            const auto read = [&](int level, int index) {
                const Real *const from = numbers_of(level, place) + 2 * index;

                given[k++] = {__ldcs(from), __ldcs(from + 1)};
            };

            /* In the order of merge(). */
            read(2, own_line.place(0));
            read(1, own_line.place(0));
            read(1, own_line.place(1));
            x[0] = (sum < 0 ? Real(0) : even) + (rest < 0 ? Real(0) : odd);
            x[1] = (sum < 0 ? Real(0) : even) - (rest < 0 ? Real(0) : odd);
            k = 0;
            own_line.merge(parts.is_sine, x, [&](int, int) { return given[k++]; });
        }
#pragma unroll
        for (int s = 0; s < slots; s++) {
            number(s) = scale() * x[s];
        }
    }
    __device__ __forceinline__ void store_rows() const
    {
        Real x[lines];

        if (!has_value()) {
            return;
        }
#pragma unroll
        for (int r = 0; r < lines; r++) {
            x[r] = own[r * slots * width];
        }
        rows.store(x);
#pragma unroll
        for (int r = 0; r < lines; r++) {
            const int j = rows.value(u, r);

            if (j >= 0) {
                field.system(plane, j)[i * field.row] = x[r];
            }
        }
    }

  private:
    __device__ __forceinline__ bool exists() const
    {
        return which < slots && t < parts.groups();
    }
    __device__ __forceinline__ bool has_value() const
    {
        return exists() && i >= 0 && i < w.size;
    }
    __device__ __forceinline__ Real scale() const
    {
        return static_cast<Real>(w.scale);
    }
    /* Number s of the line of this thread, of row `which`. */
    __device__ __forceinline__ Real &number(int s) const
    {
        return own[(which * (slots - 1) + s) * width];
    }
    /* The place of the line of row `which`, or -1. */
    __device__ __forceinline__ int64_t line() const
    {
        const int k = exists() && which < lines ? rows.number(u, which) : -1;

        return k < 0 ? -1 : plane * w.rows + rows.start(rows.part(which)) + k;
    }
    __device__ __forceinline__ Real *numbers_of(int part, int64_t place) const
    {
        return static_cast<Real *>(w.waves) + w.planes * w.rows * parts.before(part) +
               place * parts.pitch(part);
    }
};

} // namespace pysolvers::transforms

#endif
