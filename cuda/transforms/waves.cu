/* waves.cu - values of a field in the order in which cuFFT transforms them to cosine or
 * sine waves, and back: struct ps_waves.
 *
 * A thread moves pairs of neighbouring values. Neighbouring threads write neighbours at
 * both ends of a line. One word read and one written per value; load() of an extended
 * line writes two.
 *
 * Lines in parts (halved.cuh): a thread moves the values that determine each other, 4 to
 * 16 of a line. One word read and one written per value, and one word more per value of
 * the last part.
 *
 * Sums and differences of mirror places (PS_MIRRORED, mirrored.cuh): a thread moves 4 to 16
 * values of a plane. One word read and one written per value. The same of the rows with
 * the parts of lines (halved.cuh): 32 values of a plane (PS_MIRRORED_ROWS), or 64 with rows in
 * five parts (PS_MIRRORED_IN_FIVE).
 *
 * Fields of fewer values than the lines are continued while they are read, so that no
 * kernel copies them: mirrored values are in the cache.
 */
#include <type_traits>

#include "device/operand.cuh"
#include "runtime/backend.h"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"
#include "transforms/halved.cuh"
#include "transforms/mirrored.cuh"
#include "transforms/waves.cuh"

namespace pysolvers::transforms {

using namespace device;
using namespace runtime;

static constexpr int most_threads = 256;
static constexpr int batch = 4; /* lines of a block */

/* A value or two neighbouring ones of a line: their places in the order of the library.
 */
struct WavePair {
    int place[2];
    bool has_second, second_is_negative;

    __device__ __forceinline__ WavePair(ps_transform_kind kind, int i, int n)
    {
        place[0] = wave_place(kind, i, n);
        place[1] = wave_place(kind, i + 1, n);
        has_second = i + 1 < n;
        second_is_negative = kind == PS_DST2;
    }

    /* Write the mirror images of the values to the second half of an extended line. */
    template <typename Real>
    __device__ __forceinline__ void extend(ps_transform_kind kind, int n, Real *numbers,
                                           const Complex<Real> &y) const
    {
        const bool is_odd = kind == PS_DST1;
        const int half = is_odd ? n + 1 : n - 1;

        if (place[0] > 0 && place[0] < half) {
            numbers[2 * half - place[0]] = is_odd ? -y.re : y.re;
        }
        if (has_second && place[1] < half) {
            numbers[2 * half - place[1]] = is_odd ? -y.im : y.im;
        }
        if (is_odd && place[0] == 1) {
            numbers[0] = numbers[half] = Real(0);
        }
    }
};

/* Grid: for each `batch` lines, blocks of pairs of values. `by_pairs`: two values can be
 * moved at once. */
template <typename Real, bool LOADS> struct MoveLines {
    Output<Real> field;
    ps_waves w;
    int blocks_a_line;
    bool by_pairs;

    __device__ __forceinline__ void operator()() const
    {
        using Two = Complex<Real>;
        const int n = static_cast<int>(w.size), rows = static_cast<int>(w.rows);
        const int group = static_cast<int>(blockIdx.x) / blocks_a_line;
        const int part = static_cast<int>(blockIdx.x) - group * blocks_a_line;
        const int i = 2 * (part * static_cast<int>(blockDim.x) + threadIdx.x);
        const int64_t first = int64_t(group) * batch, lines = w.planes * rows;
        const int given = static_cast<int>(w.given);
        const WavePair pair(w.kind, i, n);
        const ContinuedPlace places[2] = {{w.kind, i, n, given},
                                          {w.kind, i + 1, n, given}};
        const bool both = by_pairs && i + 1 < given;
        int64_t plane = quotient(first, rows);
        int row = static_cast<int>(first - plane * rows);
        Real *values[batch], *numbers[batch];
        Two scales[batch], two[batch];

        if (i >= n) {
            return;
        }
        wait_for_last_kernel();
#pragma unroll
        for (int k = 0; k < batch; k++) {
            const bool is_negative = w.row_kind == PS_DST2 && row % 2 != 0;
            const Real scale = static_cast<Real>(is_negative ? -w.scale : w.scale);

            values[k] = field.system(plane, row);
            numbers[k] = static_cast<Real *>(w.waves) +
                         (plane * rows + wave_place(w.row_kind, row, rows)) * w.pitch;
            scales[k] = {scale, pair.second_is_negative ? -scale : scale};
            if (first + k < lines) {
                if (!LOADS) {
                    two[k].re = __ldcs(numbers[k] + pair.place[0]);
                    two[k].im =
                        pair.has_second ? __ldcs(numbers[k] + pair.place[1]) : Real(0);
                }
                else if (both) {
                    two[k] = *reinterpret_cast<const Two *>(values[k] + i * field.row);
                }
                else {
                    two[k].re = values[k][places[0].place * field.row];
                    two[k].im = values[k][places[1].place * field.row];
                }
            }
            row++;
            if (row == rows) {
                row = 0;
                plane++;
            }
        }
#pragma unroll
        for (int k = 0; k < batch; k++) {
            const Two own = {LOADS ? places[0].of(two[k].re) : two[k].re,
                             LOADS ? places[1].of(two[k].im) : two[k].im};
            const Two y = {scales[k].re * own.re, scales[k].im * own.im};

            if (first + k >= lines) {
                return;
            }
            if constexpr (LOADS) {
                numbers[k][pair.place[0]] = y.re;
                if (pair.has_second) {
                    numbers[k][pair.place[1]] = y.im;
                }
                if (is_extended(w.kind)) {
                    pair.extend(w.kind, n, numbers[k], y);
                }
            }
            else {
                if (both) {
                    *reinterpret_cast<Two *>(values[k] + i * field.row) = y;
                }
                else if (i < given) {
                    values[k][i * field.row] = y.re;
                    if (i + 1 < given) {
                        values[k][(i + 1) * field.row] = y.im;
                    }
                }
                if (w.edge != nullptr && i / 2 == w.edge_place / 2) {
                    static_cast<Real *>(w.edge)[first + k] =
                        w.edge_place == i ? y.re : y.im;
                }
            }
        }
    }
};

template <typename Real, bool LOADS>
static ps_status
move(const ps_waves *w, cudaStream_t stream)
{
    const Output<Real> field = output_of<Real>(w->field);
    const int pairs = static_cast<int>((w->size + 1) / 2);
    const int threads = pairs < most_threads ? rounded_up(pairs, 32) : most_threads;
    const int blocks_a_line = divided_up(pairs, threads);
    const int64_t blocks = divided_up(w->planes * w->rows, batch) * blocks_a_line;
    const bool by_pairs = field.row == 1 && field.outer % 2 == 0 &&
                          field.inner % 2 == 0 &&
                          reinterpret_cast<uintptr_t>(field.data) % sizeof(Real[2]) == 0;

    if (blocks > INT32_MAX) {
        return PS_BAD_ARGUMENT;
    }
    return for_threads<most_threads>(
        blocks, threads, stream,
        MoveLines<Real, LOADS>{field, *w, blocks_a_line, by_pairs});
}

/* Grid: for each `batch` lines, blocks of places t. */
template <typename Real, int LEVELS, bool LOADS> struct MoveHalved {
    Output<Real> field;
    ps_waves w;
    int blocks_a_line;

    __device__ __forceinline__ void operator()() const
    {
        using Line = HalvedLine<Real, LEVELS>;
        const bool sine = w.kind == PS_DST1;
        const int shift = sine ? 1 : 0; /* place of value 0 */
        const HalvedParts parts = {static_cast<int>(w.size) + 2 * shift - 1, LEVELS};
        const int n = parts.intervals, m = n >> LEVELS;
        const int size = static_cast<int>(w.size), given = static_cast<int>(w.given);
        const int group = static_cast<int>(blockIdx.x) / blocks_a_line;
        const int part = static_cast<int>(blockIdx.x) - group * blocks_a_line;
        const int t = part * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
        const int64_t first = int64_t(group) * batch;
        Real *starts[LEVELS + 1];

        if (t > m / 2) {
            return;
        }
        wait_for_last_kernel();
        const Line line(t, m);

#pragma unroll
        for (int p = 0; p <= LEVELS; p++) {
            starts[p] = static_cast<Real *>(w.waves) + w.planes * parts.before(p);
        }
#pragma unroll 1
        for (int k = 0; k < batch && first + k < w.planes; k++) {
            const int64_t plane = first + k;
            Real *const values = field.system(plane, 0);
            Real *const last = starts[0] + plane * parts.pitch(0);
            Real x[Line::slots];
            const auto numbers = [&](int level) {
                return reinterpret_cast<Complex<Real> *>(starts[level] +
                                                         plane * parts.pitch(level));
            };
            const auto value = [&](int i) { return values[i * field.row]; };

            if constexpr (LOADS) {
#pragma unroll
                for (int s = 0; s < Line::slots; s++) {
                    x[s] = value(
                        ContinuedPlace(w.kind, line.place(s) - shift, size, given).place);
                }
#pragma unroll
                for (int s = 0; s < Line::slots; s++) {
                    const ContinuedPlace own(w.kind, line.place(s) - shift, size, given);

                    x[s] = static_cast<Real>(w.scale) * own.of(x[s]);
                }
                line.split(sine, x,
                           [&](int level, int index, const Complex<Real> &number) {
                               numbers(level)[index] = number;
                           });
                last[t] = x[0];
                last[m - t] = x[1];
                if (t > 0) {
                    last[2 * m - t] = sine ? -x[0] : x[0];
                    last[m + t] = sine ? -x[1] : x[1];
                }
            }
            else {
                x[0] = __ldcs(last + t);
                x[1] = __ldcs(last + m - t);
                line.merge(sine, x, [&](int level, int index) {
                    const Real *const number = &numbers(level)[index].re;

                    return Complex<Real>(__ldcs(number), __ldcs(number + 1));
                });
#pragma unroll
                for (int s = 0; s < Line::slots; s++) {
                    const int i = line.place(s) - shift;
                    const Real y = static_cast<Real>(w.scale) * x[s];

                    if (i >= 0 && i < given) {
                        values[i * field.row] = y;
                    }
                    if (w.edge != nullptr && i == w.edge_place) {
                        static_cast<Real *>(w.edge)[plane] = y;
                    }
                }
            }
        }
    }
};

template <typename Real, bool LOADS>
static ps_status
move_halved(const ps_waves *w, cudaStream_t stream)
{
    const Output<Real> field = output_of<Real>(w->field);
    const int64_t intervals = w->kind == PS_DST1 ? w->size + 1 : w->size - 1;
    const int places = static_cast<int>((intervals >> w->halvings) / 2 + 1);
    const int blocks_a_line = divided_up(places, most_threads);
    const int threads = rounded_up(divided_up(places, blocks_a_line), 32);
    const int64_t blocks = divided_up(w->planes, batch) * blocks_a_line;

    if (blocks > INT32_MAX) {
        return PS_BAD_ARGUMENT;
    }
    const auto run = [&](auto levels) {
        return for_threads<most_threads, 2>(
            blocks, threads, stream,
            MoveHalved<Real, levels.value, LOADS>{field, *w, blocks_a_line});
    };

    return w->halvings == 1   ? run(std::integral_constant<int, 1>())
           : w->halvings == 2 ? run(std::integral_constant<int, 2>())
                              : run(std::integral_constant<int, 3>());
}

/* Grid: for each group of rows of a plane, blocks of groups of values. */
template <typename Real, bool LOADS> struct MoveMirrored {
    Output<Real> field;
    ps_waves w;
    int blocks_a_line;

    __device__ __forceinline__ void operator()() const
    {
        constexpr int slots = 4, most_between = 16; /* numbers between two parts */
        const Mirroring rows = {static_cast<int>(w.rows), w.row_kind};
        const Mirroring values = {static_cast<int>(w.size), w.kind};
        const int pitch = static_cast<int>(w.pitch);
        const int64_t group = static_cast<int64_t>(blockIdx.x) / blocks_a_line;
        const int block = static_cast<int>(blockIdx.x - group * blocks_a_line);
        const int t =
            block * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
        const int64_t plane = quotient(group, rows.groups());
        const int u = static_cast<int>(group - plane * rows.groups());
        const Real scale = static_cast<Real>(w.scale);
        const bool exists = t < values.groups();
        Real x[slots][slots];

        Real *starts[slots]; /* of the rows, and of the lines; NULL if there is none */
        Real *lines[slots];
        int from[slots],
            to[slots]; /* places in the rows, and in the lines; below 0: none */

#pragma unroll
        for (int s = 0; s < slots; s++) {
            const int j = rows.value(u, s), line = rows.number(u, s);
            const int number = exists ? values.number(t, s) : -1;

            starts[s] = j < 0 ? nullptr : field.system(plane, j);
            lines[s] =
                line < 0 ? nullptr
                         : static_cast<Real *>(w.waves) +
                               (plane * w.rows + rows.start(rows.part(s)) + line) * pitch;
            from[s] = exists ? values.value(t, s) : -1;
            to[s] = number < 0 ? -1 : values.start(values.part(s), pitch) + number;
        }
        /* All reads, of any place if there is none, before the first choice: see ContinuedPlace. */
        const Real *const any =
            LOADS ? field.system(plane, 0) : static_cast<Real *>(w.waves);

        wait_for_last_kernel();
#pragma unroll
        for (int r = 0; r < slots; r++) {
#pragma unroll
            for (int s = 0; s < slots; s++) {
                const Real *const start = LOADS ? starts[r] : lines[r];
                const int64_t place = LOADS ? from[s] * field.row : to[s];

                x[r][s] = __ldcs(start == nullptr || place < 0 ? any : start + place);
            }
        }
#pragma unroll
        for (int r = 0; r < slots; r++) {
#pragma unroll
            for (int s = 0; s < slots; s++) {
                const bool is_none = (LOADS ? starts[r] : lines[r]) == nullptr ||
                                     (LOADS ? from[s] : to[s]) < 0;

                x[r][s] = is_none ? Real(0) : scale * x[r][s];
            }
        }
#pragma unroll
        for (int r = 0; r < slots; r++) {
            if constexpr (LOADS) {
                values.load(x[r][0], x[r][1], x[r][2], x[r][3]);
            }
            else {
                values.store(x[r][0], x[r][1], x[r][2], x[r][3]);
            }
        }
#pragma unroll
        for (int s = 0; s < slots; s++) {
            if constexpr (LOADS) {
                rows.load(x[0][s], x[1][s], x[2][s], x[3][s]);
            }
            else {
                rows.store(x[0][s], x[1][s], x[2][s], x[3][s]);
            }
        }
#pragma unroll
        for (int r = 0; r < slots; r++) {
            Real *const start = LOADS ? lines[r] : starts[r];

            if (start == nullptr) {
                continue;
            }
#pragma unroll
            for (int s = 0; s < slots; s++) {
                if ((LOADS ? to[s] : from[s]) >= 0) {
                    start[LOADS ? to[s] : from[s] * field.row] = x[r][s];
                }
            }
            if (LOADS && t < most_between) {
                for (int p = 0; p < values.parts(); p++) {
                    const int between = values.start(p, pitch) + values.size(p) + t;

                    if (between < values.end(p, pitch)) {
                        start[between] = Real(0);
                    }
                }
            }
        }
    }
};

template <typename Real, bool LOADS>
static ps_status
move_mirrored(const ps_waves *w, cudaStream_t stream)
{
    const Mirroring rows = {static_cast<int>(w->rows), w->row_kind};
    const Mirroring values = {static_cast<int>(w->size), w->kind};
    const int blocks_a_line = divided_up(values.groups(), most_threads);
    const int threads = rounded_up(divided_up(values.groups(), blocks_a_line), 32);
    const int64_t blocks = w->planes * rows.groups() * blocks_a_line;

    return blocks > INT32_MAX ? PS_BAD_ARGUMENT
                              : for_threads<most_threads>(
                                    blocks, threads, stream,
                                    MoveMirrored<Real, LOADS>{output_of<Real>(w->field),
                                                              *w, blocks_a_line});
}

/* Small blocks, so that some read while others write. */
static constexpr int row_threads = 128;

/* Grid: for each plane, blocks of pairs of a group of rows and a group of values. `Rows`:
 * Mirroring, or MirroredRows, whose 64 values of a thread leave two blocks a multiprocessor. */
template <typename Real, bool LOADS, typename Rows> struct MoveMirroredRows {
    Output<Real> field;
    ps_waves w;
    int blocks_a_plane;

    __device__ __forceinline__ void operator()() const
    {
        using Line = HalvedLine<Real, HalvedRows::levels>;
        using Two = Complex<Real>;
        constexpr int lines = Rows::slots, slots = Line::slots;
        const bool sine = w.kind == PS_DST1;
        const int shift = sine ? 1 : 0; /* place of value 0 */
        const int size = static_cast<int>(w.size);
        const HalvedRows parts = {size + 2 * shift - 1, sine};
        const Rows rows = {static_cast<int>(w.rows), w.row_kind};
        const int64_t plane = static_cast<int64_t>(blockIdx.x) / blocks_a_plane;
        const int block = static_cast<int>(blockIdx.x - plane * blocks_a_plane);
        const int own =
            block * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
        const int groups = parts.groups(), u = own / groups, t = own - u * groups;

        if (u >= rows.groups()) {
            return;
        }
        wait_for_last_kernel();
        const Line line(t, parts.last());
        const Real scale = static_cast<Real>(w.scale);
        const int sum = parts.sum(t), rest = parts.rest(t);
        Real *starts[lines];   /* of the rows; NULL if there is none */
        int64_t places[lines]; /* of the lines; below 0: none */
        Real x[lines][slots];

#pragma unroll
        for (int r = 0; r < lines; r++) {
            const int j = rows.value(u, r), number = rows.number(u, r);

            starts[r] = j < 0 ? nullptr : field.system(plane, j);
            places[r] =
                number < 0 ? -1 : plane * w.rows + rows.start(rows.part(r)) + number;
        }
        const auto numbers = [&](int part, int64_t place) {
            return static_cast<Real *>(w.waves) + w.planes * w.rows * parts.before(part) +
                   place * parts.pitch(part);
        };

        if constexpr (LOADS) {
            /* All reads, of any place if there is none, before the first choice. */
            const Real *const any = field.system(plane, 0);

#pragma unroll
            for (int r = 0; r < lines; r++) {
#pragma unroll
                for (int s = 0; s < slots; s++) {
                    const int i = min(max(line.place(s) - shift, 0), size - 1);

                    x[r][s] =
                        __ldcs((starts[r] == nullptr ? any : starts[r]) + i * field.row);
                }
            }
#pragma unroll
            for (int r = 0; r < lines; r++) {
#pragma unroll
                for (int s = 0; s < slots; s++) {
                    const int i = line.place(s) - shift;
                    const bool is_none = starts[r] == nullptr || i < 0 || i >= size;

                    x[r][s] = is_none ? Real(0) : scale * x[r][s];
                }
            }
#pragma unroll
            for (int s = 0; s < slots; s++) {
                Real column[lines];

#pragma unroll
                for (int r = 0; r < lines; r++) {
                    column[r] = x[r][s];
                }
                rows.load(column);
#pragma unroll
                for (int r = 0; r < lines; r++) {
                    x[r][s] = column[r];
                }
            }
#pragma unroll
            for (int r = 0; r < lines; r++) {
                if (places[r] < 0) {
                    continue;
                }
                Real *const last = numbers(0, places[r]);

                line.split(sine, x[r], [&](int level, int index, const Two &number) {
                    reinterpret_cast<Two *>(numbers(level, places[r]))[index] = number;
                });
                if (sum >= 0) {
                    last[sum] = x[r][0] + x[r][1];
                }
                if (rest >= 0) {
                    last[parts.half() + rest] = x[r][0] - x[r][1];
                }
                for (int k = t; k < parts.between(true); k += groups) {
                    last[2 * parts.half() - 1 - k] = Real(0);
                    if (k < parts.between(false)) {
                        last[parts.half() - 1 - k] = Real(0);
                    }
                }
            }
        }
        else {
            constexpr int complexes = Line::numbers;
            Two given[lines][complexes], ends[lines];

#pragma unroll
            for (int r = 0; r < lines; r++) {
                const int64_t place = max(places[r], int64_t(0));
                const Real *const last = numbers(0, place);
                int k = 0;
                const auto read = [&](int level, int index) {
                    const Real *const number = numbers(level, place) + 2 * index;

                    given[r][k++] = {__ldcs(number), __ldcs(number + 1)};
                };

                ends[r] = {__ldcs(last + max(sum, 0)),
                           __ldcs(last + parts.half() + max(rest, 0))};
                /* In the order of merge(). */
                read(2, line.place(0));
                read(1, line.place(0));
                read(1, line.place(1));
            }
#pragma unroll
            for (int r = 0; r < lines; r++) {
                const Real even = sum < 0 ? Real(0) : ends[r].re;
                const Real odd = rest < 0 ? Real(0) : ends[r].im;
                int k = 0;

                x[r][0] = even + odd;
                x[r][1] = even - odd;
                line.merge(sine, x[r], [&](int, int) { return given[r][k++]; });
#pragma unroll
                for (int s = 0; s < slots; s++) {
                    x[r][s] = places[r] < 0 ? Real(0) : scale * x[r][s];
                }
            }
#pragma unroll
            for (int s = 0; s < slots; s++) {
                Real column[lines];

#pragma unroll
                for (int r = 0; r < lines; r++) {
                    column[r] = x[r][s];
                }
                rows.store(column);
#pragma unroll
                for (int r = 0; r < lines; r++) {
                    x[r][s] = column[r];
                }
            }
#pragma unroll
            for (int r = 0; r < lines; r++) {
                if (starts[r] == nullptr) {
                    continue;
                }
#pragma unroll
                for (int s = 0; s < slots; s++) {
                    const int i = line.place(s) - shift;

                    if (i >= 0 && i < size) {
                        starts[r][i * field.row] = x[r][s];
                    }
                }
            }
        }
    }
};

template <typename Real, bool LOADS, typename Rows>
static ps_status
move_mirrored_rows(const ps_waves *w, cudaStream_t stream)
{
    const bool sine = w->kind == PS_DST1;
    const HalvedRows parts = {static_cast<int>(w->size) + (sine ? 1 : -1), sine};
    const Rows rows = {static_cast<int>(w->rows), w->row_kind};
    const int64_t groups = int64_t(rows.groups()) * parts.groups();
    const int64_t blocks_a_plane = divided_up(groups, int64_t(row_threads));
    const int64_t blocks = w->planes * blocks_a_plane;
    constexpr int resident_blocks = Rows::slots == 4 ? 4 : 2;

    return blocks > INT32_MAX || groups > INT32_MAX - row_threads
               ? PS_BAD_ARGUMENT
               : for_threads<row_threads, resident_blocks>(
                     blocks, stream,
                     MoveMirroredRows<Real, LOADS, Rows>{
                         output_of<Real>(w->field), *w,
                         static_cast<int>(blocks_a_plane)});
}

template <bool LOADS>
static ps_status
run(const ps_waves *w, const ps_exec *exec)
{
    const ps_status status = ps_waves_check(w);

    if (status != PS_OK) {
        return status;
    }
    return with_real(w->dtype, [&](auto zero) {
        using Real = decltype(zero);
        cudaStream_t const stream = ps_cuda_stream(exec);

        return w->halvings == PS_MIRRORED ? move_mirrored<Real, LOADS>(w, stream)
               : w->halvings == PS_MIRRORED_ROWS
                   ? move_mirrored_rows<Real, LOADS, Mirroring>(w, stream)
               : w->halvings == PS_MIRRORED_IN_FIVE
                   ? move_mirrored_rows<Real, LOADS, MirroredRows>(w, stream)
               : w->halvings != 0 ? move_halved<Real, LOADS>(w, stream)
                                  : move<Real, LOADS>(w, stream);
    });
}

ps_status
ps_cuda_waves_load(const ps_waves *w, const ps_exec *exec)
{
    return run<true>(w, exec);
}

ps_status
ps_cuda_waves_store(const ps_waves *w, const ps_exec *exec)
{
    return run<false>(w, exec);
}

} // namespace pysolvers::transforms
