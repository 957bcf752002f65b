/* cylinder_transform.cu - the sine transform along y of all columns, as products of dense
 * matrices.
 *
 * With n = ny - 1 and the columns f[0..n], f[0] = f[n] = 0, the forward transform is
 *
 *   w[k] = hx^2 sum_j f[j] sin(pi j k/n)
 *
 * and the transform back psi[j] = 2/n sum_k w[k] sin(pi j k/n). f is omega, plus psi/hy^2
 * of a wall next to row j, and 0 on the body. The columns of the inlet and of the outlet
 * have psi instead, unless it is an unknown there: the lines of waves add these waves to
 * their right sides. The sines of odd k are even about j = n/2,
 * those of even k are odd, so that the even and the odd part of a column, f[j] +- f[n-j],
 * have transforms of half the length each: two products with matrices of n/2 x n/2 (table
 * PS_TABLE_SINES).
 *
 * Operations per node: n multiplications and additions, half of those of the full matrix:
 * 5 us at 400 x 2000 at the rate of the tensor cores of an H200. Words per node: one read
 * and one written; a block with R results of each parity in C columns reads n (R + C)
 * words from the L2 cache, in all n (1/C + 1/R) for each node. The errors grow as
 * sqrt(n).
 *
 * A block has four warps: both parities of two groups of results, in block_columns
 * columns. Slices of `depth` terms of the sums pass through some buffers in shared
 * memory; the copies of the following ones are under way while a slice is multiplied.
 * Fields have odd pitches, so that their elements are copied one by one. A warp has
 * fragments of 16 columns x 8 results, as the tensor cores for double return them: lane l
 * contains columns l / 4 and l / 4 + 8 and results 2 (l % 4) and 2 (l % 4) + 1. Terms may
 * be added in any order: lane l takes terms 4 (l % 4) to 4 (l % 4) + 3 of a slice, so
 * that it reads neighbouring entries of the table.
 */
#include "flow/cylinder_grid.cuh"
#include "runtime/copy.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int block_threads = 128, block_columns = 32, column_groups = 2;
constexpr int depth = 16;
/* Odd, which avoids bank conflicts of the fragments. */
constexpr int field_pitch = block_columns + 1;
/* Fragments of results of a warp: for large grids, and for grids that would occupy less
 * than half of the multiprocessors with large tiles. */
constexpr int most_fragments = 7, least_fragments = 1;
/* Slices in shared memory; all of them of 64 terms, or two while one is multiplied. */
template <int FRAGMENTS> constexpr int stages = FRAGMENTS > 1 ? 3 : 4;

/* Entries that are copied at once. */
template <typename Real> constexpr int together = 16 / sizeof(Real);

/* `results` of each parity. With the pitch depth + 2 doubles of the table, the 8 threads
 * of a quarter of a warp read 16 bytes each from different banks. */
template <typename Real, int FRAGMENTS> struct Slice {
    static constexpr int results = 2 * 8 * FRAGMENTS;

    Real table[2][results][depth + together<Real>];
    Real field[2][depth][field_pitch]; /* both rows of each term */
};

/* Results of a thread. */
template <typename Real, int FRAGMENTS>
using Fragments = Real[column_groups][FRAGMENTS][4];

/* Whether the tensor cores of the architecture of this compilation multiply numbers of
 * this type. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <typename Real> constexpr bool has_tensor_cores = sizeof(Real) == 8;

/* c += a b for fragments of 16 x 16 and 16 x 8 on the tensor cores. */
__device__ __forceinline__ void
multiply_add(double (&c)[4], const double (&a)[8], const double (&b)[4])
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
          "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
#pragma unroll
    for (int i = 0; i < 8; i++) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
            "{%0, %1};"
            : "+d"(c[i % 2 * 2]), "+d"(c[i % 2 * 2 + 1])
            : "d"(a[i]), "d"(b[i / 2]));
    }
#endif
}
#else
template <typename Real> constexpr bool has_tensor_cores = false;
#endif

/* The nodes of a column, or its waves, in the order of the terms: term k is at[k * step]
 * for k < terms, and 0 behind. */
template <typename Real> struct Column {
    const Real *at;
    int step, terms;
};

/* The right side of the equation of psi from omega. A term consists of a node and its
 * mirror image. */
template <typename Real> struct FromOmega {
    static constexpr bool folds = true; /* the terms are sums and differences of nodes */

    CylinderGrid<Real> grid;
    const Real *omega, *psi;
    const Real *outlet; /* psi at the outlet, unless it is an unknown */
    Real *waves;
    Real over_y; /* 1/hy^2 */

    /* The nodes of a column (which = 0), or their images. The body contains row n/2. */
    __device__ __forceinline__ Column<Real> column_of(int which, int column) const
    {
        const bool is_inlet = column == 0, is_outlet = column > grid.last;
        const bool is_body = column >= grid.column_0 && column <= grid.column_1;
        const int half = (grid.ny - 1) / 2, pitch = is_outlet ? 1 : grid.nx;
        const int before_body = which == 0 ? grid.row_0 - 1 : grid.ny - 2 - grid.row_1;
        const Real *const base = is_inlet ? psi : is_outlet ? outlet : omega + column;
        const int terms = is_body ? before_body : half - which;

        return {base + (which == 0 ? 1 : grid.ny - 2) * pitch,
                which == 0 ? pitch : -pitch, column < grid.nx ? terms : 0};
    }

    /* What the wall adds to the first term. */
    __device__ __forceinline__ Real wall(int which, int column) const
    {
        const int row = which == 0 ? 0 : grid.ny - 1;

        return column > 0 && column <= grid.last ? over_y * psi[row * grid.nx + column]
                                                 : Real(0);
    }

    /* Result m of a parity is wave 2m + 1 + parity. */
    __device__ __forceinline__ void store(int m, int parity, int column, Real value) const
    {
        const int wave = 2 * m + 1 + parity;

        if (wave < grid.ny - 1 && column < grid.nx) {
            waves[wave * grid.nx + column] = value;
        }
    }
};

/* The largest absolute value and the largest change of psi. */
struct Bounds {
    double largest, change;

    __device__ __forceinline__ void add(double value, double difference)
    {
        raise(largest, fabs(value));
        raise(change, fabs(difference));
    }

    /* Those of all blocks. */
    __device__ __forceinline__ void store(double *history)
    {
        raise_all(history + PS_COLUMN_LARGEST, largest);
        raise_all(history + PS_COLUMN_CHANGE, change);
    }
};

/* psi from its waves. A term consists of waves 2m + 1 and 2m + 2. */
template <typename Real> struct ToPsi {
    static constexpr bool folds = false;

    CylinderGrid<Real> grid;
    const Real *waves, *psi;
    const Real *outlet;
    Real *new_psi;
    const double *numbers;
    double *history;

    __device__ __forceinline__ Column<Real> column_of(int which, int column) const
    {
        const int terms = (grid.ny - 1) / 2 - which;

        return {waves + (1 + which) * grid.nx + column, 2 * grid.nx,
                column > 0 && column <= grid.last ? terms : 0};
    }

    /* Place of row t + 1 or of its mirror image; row n/2 is its own image. */
    __device__ __forceinline__ int place(int t, int image, int column) const
    {
        return (image == 0 ? t + 1 : grid.ny - 2 - t) * grid.nx + column;
    }

    /* The value at the node of result t or at its image: on the body that of the body. */
    __device__ __forceinline__ Real on_body_or(Real value, int t, int image, int column,
                                               Real on_body) const
    {
        return grid.in_body(image == 0 ? t + 1 : grid.ny - 2 - t, column) ? on_body
                                                                          : value;
    }

    /* Set psi at the outlet in the rows of results `first` to `end` - 1. */
    __device__ __forceinline__ void store_outlet(int first, int end) const
    {
        const int column = grid.nx - 1;

        for (int t = first + static_cast<int>(threadIdx.x);
             t < min(end, (grid.ny - 1) / 2); t += block_threads) {
            new_psi[place(t, 0, column)] = outlet[t + 1];
            new_psi[place(t, 1, column)] = outlet[grid.ny - 2 - t];
        }
    }
};

/* The place of a thread: its warp has `group` of the results of `parity`. */
struct Place {
    int thread, parity, group, high, low;

    __device__ __forceinline__ Place()
        : thread(static_cast<int>(threadIdx.x)), parity(thread / 32 % 2),
          group(thread / 64), high(thread % 32 / 4), low(thread % 4)
    {
    }

    /* Column and result of element i of a fragment. */
    __device__ __forceinline__ int column(int columns, int i) const
    {
        return 16 * columns + high + i / 2 * 8;
    }

    __device__ __forceinline__ int result(int fragments, int fragment, int i) const
    {
        return 8 * (group * fragments + fragment) + 2 * low + i % 2;
    }
};

/* Term k of a parity in a column. */
template <typename Side, typename Real, int FRAGMENTS>
__device__ __forceinline__ Real
term_of(const Slice<Real, FRAGMENTS> &slice, int parity, int k, int column)
{
    if constexpr (Side::folds) {
        const Real node = slice.field[0][k][column], image = slice.field[1][k][column];

        return parity == 0 ? node + image : node - image;
    }
    return slice.field[parity][k][column];
}

/* Entries of row `result` of the table for the terms of the lane. */
template <typename Real, int FRAGMENTS>
__device__ __forceinline__ void
entries_of(const Slice<Real, FRAGMENTS> &slice, const Place &self, int result,
           Real (&b)[4])
{
    const Real *const row = &slice.table[self.parity][result][4 * self.low];
    const auto b_0 = reinterpret_cast<const double2 *>(row)[0];
    const auto b_1 = reinterpret_cast<const double2 *>(row)[1];

    b[0] = b_0.x;
    b[1] = b_0.y;
    b[2] = b_1.x;
    b[3] = b_1.y;
}

/* Add the products of a slice to the results; between(f) is called behind fragment f. */
template <typename Side, typename Real, int FRAGMENTS, typename Between>
__device__ __forceinline__ void
multiply_slice(const Slice<Real, FRAGMENTS> &slice, const Place &self,
               Fragments<Real, FRAGMENTS> &sum, const Between &between)
{
    const int first = self.group * 8 * FRAGMENTS;

    if constexpr (has_tensor_cores<Real>) {
        Real a[column_groups][8], b[2][4];

        entries_of(slice, self, first + self.high, b[0]);
#pragma unroll
        for (int c = 0; c < column_groups; c++) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                a[c][i] = term_of<Side>(slice, self.parity, 4 * self.low + i / 2,
                                        self.column(c, i % 2 * 2));
            }
        }
#pragma unroll
        for (int f = 0; f < FRAGMENTS; f++) {
            if (f + 1 < FRAGMENTS) {
                entries_of(slice, self, first + 8 * (f + 1) + self.high, b[(f + 1) % 2]);
            }
#pragma unroll
            for (int c = 0; c < column_groups; c++) {
                multiply_add(sum[c][f], a[c], b[f % 2]);
            }
            between(f);
        }
    }
    else {
#pragma unroll 2
        for (int k = 0; k < depth; k++) {
            Real a[column_groups][2];

#pragma unroll
            for (int c = 0; c < column_groups; c++) {
                a[c][0] = term_of<Side>(slice, self.parity, k, self.column(c, 0));
                a[c][1] = term_of<Side>(slice, self.parity, k, self.column(c, 2));
            }
#pragma unroll
            for (int f = 0; f < FRAGMENTS; f++) {
                const int at = first + 8 * f + 2 * self.low;
                const Real b[2] = {slice.table[self.parity][at][k],
                                   slice.table[self.parity][at + 1][k]};

#pragma unroll
                for (int c = 0; c < column_groups; c++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        sum[c][f][i] += a[c][i / 2] * b[i % 2];
                    }
                }
            }
        }
#pragma unroll
        for (int f = 0; f < FRAGMENTS; f++) {
            between(f);
        }
    }
}

/* The copies of a thread to the slices. Between two fragments the warps start a part of
 * them, because a warp that multiplies can issue other instructions. */
template <typename Real, int FRAGMENTS> struct Copies {
    using Own = Slice<Real, FRAGMENTS>;
    static constexpr int per_row = depth / together<Real>; /* of the table */
    static constexpr int rows = block_threads / per_row;   /* of the table at once */
    static constexpr int of_parity = (Own::results + rows - 1) / rows;
    static constexpr int terms = block_threads / block_columns; /* of a column at once */
    static constexpr int of_field = 2 * depth / terms;

    Column<Real> column[2];
    const Real *table; /* entry of the thread for parity 0 and term 0 */
    int half, row, k;  /* of this entry, from the first result and term on */
    int left;          /* rows of the table from this one on */
    int own_column, own_term;

    template <typename Side>
    __device__ __forceinline__ Copies(const Side &side, const Real *sines, int half,
                                      int first_result, int first_column)
        : half(half), row(static_cast<int>(threadIdx.x) / per_row),
          k(static_cast<int>(threadIdx.x) % per_row * together<Real>),
          left(half - first_result - row),
          own_column(static_cast<int>(threadIdx.x) % block_columns),
          own_term(static_cast<int>(threadIdx.x) / block_columns)
    {
        table = sines + (first_result + row) * half + k;
        column[0] = side.column_of(0, first_column + own_column);
        column[1] = side.column_of(1, first_column + own_column);
    }

    /* Part e of the table, for the terms from `begin` on. */
    __device__ __forceinline__ void copy_table(Own &slice, int begin, int e) const
    {
        const int parity = e / of_parity, more = e % of_parity * rows;

        if (Own::results % rows == 0 || row + more < Own::results) {
            copy_async_or_clear<16>(&slice.table[parity][row + more][k],
                                    table + ((parity * half + more) * half + begin),
                                    more < left && begin + k < half);
        }
    }

    __device__ __forceinline__ void copy_field(Own &slice, int begin, int e) const
    {
        const Column<Real> &from = column[e / (of_field / 2)];
        const int at = own_term + e % (of_field / 2) * terms, term = begin + at;

        copy_async_or_clear<sizeof(Real)>(
            &slice.field[e / (of_field / 2)][at][own_column], from.at + term * from.step,
            term < from.terms);
    }

    __device__ __forceinline__ void copy_table(Own &slice, int begin) const
    {
#pragma unroll
        for (int e = 0; e < 2 * of_parity; e++) {
            copy_table(slice, begin, e);
        }
    }

    __device__ __forceinline__ void copy_field(Own &slice, int begin) const
    {
#pragma unroll
        for (int e = 0; e < of_field; e++) {
            copy_field(slice, begin, e);
        }
    }

    /* Part f of FRAGMENTS of both. */
    __device__ __forceinline__ void copy_part(Own &slice, int begin, int f) const
    {
        constexpr int all = 2 * of_parity + of_field;

#pragma unroll
        for (int e = 0; e < all; e++) {
            if (e * FRAGMENTS / all != f) {
                continue;
            }
            if (e < 2 * of_parity) {
                copy_table(slice, begin, e);
            }
            else {
                copy_field(slice, begin, e - 2 * of_parity);
            }
        }
    }
};

template <typename Real, int FRAGMENTS>
__device__ __forceinline__ void
store_results(const FromOmega<Real> &side, const Place &self, int first_result,
              int first_column, const Fragments<Real, FRAGMENTS> &sum, char *)
{
#pragma unroll
    for (int f = 0; f < FRAGMENTS; f++) {
#pragma unroll
        for (int c = 0; c < column_groups; c++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                side.store(first_result + self.result(FRAGMENTS, f, i), self.parity,
                           first_column + self.column(c, i), sum[c][f][i]);
            }
        }
    }
}

/* A node has both parities: each of the two warps takes a group of columns, and gives the
 * other one to the other warp through shared memory. */
template <typename Real, int FRAGMENTS>
__device__ __forceinline__ void
store_results(const ToPsi<Real> &side, const Place &self, int first_result,
              int first_column, const Fragments<Real, FRAGMENTS> &sum, char *memory)
{
    using Given = Real[4 * FRAGMENTS][32];
    auto *const given = reinterpret_cast<Given *>(memory) + 2 * self.group;
    const int lane = self.thread % 32;
    const int end_column = first_column + block_columns, half = (side.grid.ny - 1) / 2;
    const Real on_body = static_cast<Real>(side.numbers[STEP_VALUE]);
    const Real sign = self.parity == 0 ? Real(1) : Real(-1); /* of own - other */
    Bounds bounds = {0, 0};

    if (side.grid.last < side.grid.nx - 1 && side.grid.nx <= end_column) {
        side.store_outlet(first_result, first_result + 16 * FRAGMENTS);
    }
    __syncthreads(); /* the last slice is read */
#pragma unroll
    for (int e = 0; e < 4 * FRAGMENTS; e++) {
        given[self.parity][e][lane] =
            self.parity == 0 ? sum[1][e / 4][e % 4] : sum[0][e / 4][e % 4];
    }
    __syncthreads(); /* the results are given */
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int column = first_column + self.column(self.parity, 2 * h);
        const bool is_body = column >= side.grid.column_0 && column <= side.grid.column_1;
        Real old[FRAGMENTS][2][2];

        if (column == 0 || column > side.grid.last) {
            continue;
        }
#pragma unroll
        for (int e = 0; e < 2 * FRAGMENTS; e++) {
            const int t = first_result + self.result(FRAGMENTS, e / 2, e % 2);

            if (t < half) {
                old[e / 2][e % 2][0] = __ldg(side.psi + side.place(t, 0, column));
                old[e / 2][e % 2][1] = __ldg(side.psi + side.place(t, 1, column));
            }
        }
#pragma unroll
        for (int e = 0; e < 2 * FRAGMENTS; e++) {
            const int f = e / 2, i = 2 * h + e % 2;
            const int t = first_result + self.result(FRAGMENTS, f, i);
            const Real own = self.parity == 0 ? sum[0][f][i] : sum[1][f][i];
            const Real other = given[1 - self.parity][4 * f + i][lane];
            Real value[2] = {own + other, sign * own - sign * other};

            if (t >= half) {
                continue;
            }
            if (is_body) {
                value[0] = side.on_body_or(value[0], t, 0, column, on_body);
                value[1] = side.on_body_or(value[1], t, 1, column, on_body);
            }
            for (int image = 0; image < 2; image++) {
                side.new_psi[side.place(t, image, column)] = value[image];
                bounds.add(value[image],
                           static_cast<double>(value[image]) - old[f][e % 2][image]);
            }
        }
    }
    bounds.store(side.history);
}

/* Grid: tiles of results, then tiles of columns. */
template <typename Real, int FRAGMENTS, typename Side>
__global__ void
__launch_bounds__(block_threads, FRAGMENTS > 1 ? 1 : 4)
    product_kernel(const __grid_constant__ Side side, const Real *sines, int half,
                   int result_tiles)
{
    extern __shared__ __align__(16) char memory[];
    using Own = Slice<Real, FRAGMENTS>;
    constexpr int buffers = stages<FRAGMENTS>;
    auto *const slices = reinterpret_cast<Own *>(memory);
    const int block = static_cast<int>(blockIdx.x), count = (half + depth - 1) / depth;
    const int first_result = block % result_tiles * Own::results;
    const int first_column = block / result_tiles * block_columns;
    const Place self;
    Fragments<Real, FRAGMENTS> sum = {};
    Real wall[2] = {0, 0};

    const Copies<Real, FRAGMENTS> copies(side, sines, half, first_result, first_column);

    let_next_kernel_in();
    for (int s = 0; s < buffers - 1; s++) {
        copies.copy_table(slices[s], s * depth);
    }
    wait_for_last_kernel();
    for (int s = 0; s < buffers - 1; s++) {
        copies.copy_field(slices[s], s * depth);
        copies_committed();
    }
    if constexpr (Side::folds) {
        if (self.thread < block_columns) {
            wall[0] = side.wall(0, first_column + self.thread);
            wall[1] = side.wall(1, first_column + self.thread);
        }
    }
    for (int s = 0; s < count; s++) {
        const int coming = s + buffers - 1;
        Own &slice = slices[s % buffers], &next = slices[coming % buffers];

        copies_done_but<buffers - 2>();
        if (Side::folds && s == 0 && self.thread < block_columns) {
            slice.field[0][0][self.thread] += wall[0]; /* copied by this thread */
            slice.field[1][0][self.thread] += wall[1];
        }
        __syncthreads(); /* the slice is copied, the one before it is multiplied */
        multiply_slice<Side>(slice, self, sum, [&](int f) {
            if (coming < count) {
                copies.copy_part(next, coming * depth, f);
            }
        });
        copies_committed();
    }
    store_results(side, self, first_result, first_column, sum, memory);
}

template <typename Real, int FRAGMENTS>
constexpr size_t shared_bytes = stages<FRAGMENTS> * sizeof(Slice<Real, FRAGMENTS>);

struct Tiles {
    int64_t results, columns;
};

template <int FRAGMENTS>
Tiles
tiles_of(const ps_cylinder &c)
{
    const int64_t rows = 16 * FRAGMENTS;

    return {((c.ny - 1) / 2 + rows - 1) / rows,
            (c.nx + block_columns - 1) / block_columns};
}

template <int FRAGMENTS, typename Real, typename Side>
ps_status
launch(const CylinderRun &r, const Side &side, const Real *sines)
{
    const Tiles t = tiles_of<FRAGMENTS>(*r.c);

    return launch_closely(product_kernel<Real, FRAGMENTS, Side>, t.results * t.columns,
                          block_threads, shared_bytes<Real, FRAGMENTS>, r.stream, side,
                          sines, static_cast<int>(r.c->ny - 1) / 2,
                          static_cast<int>(t.results));
}

template <typename Real, typename Side>
ps_status
multiply(const CylinderRun &r, const Side &side, bool forward)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const int64_t half = (r.c->ny - 1) / 2;
    const Real *const sines = static_cast<const Real *>(r.c->tables[PS_TABLE_SINES]) +
                              (forward ? 0 : 2 * half * half);
    const Tiles large = tiles_of<most_fragments>(*r.c);

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const bool is_large =
        2 * large.results * large.columns >= device->processors &&
        shared_bytes<Real, most_fragments> <= static_cast<size_t>(device->shared_bytes);

    return is_large ? launch<most_fragments>(r, side, sines)
                    : launch<least_fragments>(r, side, sines);
}

template <typename Real, typename Side>
cudaError_t
prepare_side()
{
    const cudaError_t error = share_cache(product_kernel<Real, most_fragments, Side>);

    return error == cudaSuccess ? share_cache(product_kernel<Real, least_fragments, Side>)
                                : error;
}

} // namespace

ps_status
ps_cuda_cylinder_prepare_transform(const ps_cylinder *c)
{
    return with_real(c->dtype, [](auto real) {
        using Real = decltype(real);
        const cudaError_t error = prepare_side<Real, FromOmega<Real>>();

        return ps_cuda_status(error == cudaSuccess ? prepare_side<Real, ToPsi<Real>>()
                                                   : error);
    });
}

ps_status
ps_cuda_cylinder_to_waves(const CylinderRun &r)
{
    return with_real(r, [&](auto real) {
        using Real = decltype(real);
        const FromOmega<Real> side = {
            grid_of<Real>(r),
            static_cast<const Real *>(r.omega_old), /* the new omega */
            static_cast<const Real *>(r.psi),
            static_cast<const Real *>(r.outlet),
            static_cast<Real *>(r.waves),
            static_cast<Real>(1 / (r.c->hy * r.c->hy))};

        return multiply<Real>(r, side, true);
    });
}

ps_status
ps_cuda_cylinder_from_waves(const CylinderRun &r)
{
    return with_real(r, [&](auto real) {
        using Real = decltype(real);
        const ToPsi<Real> side = {grid_of<Real>(r),
                                  static_cast<const Real *>(r.half),
                                  static_cast<const Real *>(r.psi),
                                  static_cast<const Real *>(r.outlet),
                                  static_cast<Real *>(r.psi_old), /* the new psi */
                                  r.numbers,
                                  r.history};

        return multiply<Real>(r, side, false);
    });
}

} // namespace pysolvers::flow
