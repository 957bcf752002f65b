/* cylinder_transform.cu - the sine transform along y of all columns, as products of dense
 * matrices.
 *
 * With n = ny - 1 and the columns f[0..n], f[0] = f[n] = 0, the forward transform is
 *
 *   w[k] = hx^2 sum_j f[j] sin(pi j k/n),    f = omega, and psi/h^2 of the boundary nodes
 *                                            next to j; 0 on the body
 *
 * and the transform back psi[j] = 2/n sum_k w[k] sin(pi j k/n). The sines of odd k are
 * even about j = n/2, those of even k are odd, so that the even and the odd part of a
 * column, f[j] +- f[n-j], have transforms of half the length each: two products with
 * matrices of n/2 x n/2 (table PS_TABLE_SINES).
 *
 * Operations per node: n multiplications and additions, half of those of the full matrix;
 * words per node: one read and one written, and (n/2)(1/block_columns) of the table and
 * (n/2)/block_rows of the field from the L2 cache. At n = 400 a product is as fast as the
 * transform of cuFFT of the length 2n with its two passes around it, which moves 10 words
 * per node; at smaller n it is faster, because it is one kernel instead of three. The
 * errors grow as sqrt(n).
 *
 * A block has both parities of block_rows x block_columns results: half of its warps
 * each. A warp has fragments of 8 x 8, as the tensor cores for double (sm_80) return
 * them; lane l contains rows l / 4 and columns 2 (l % 4) and 2 (l % 4) + 1.
 */
#include "flow/cylinder_grid.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int block_threads = 128, parity_threads = block_threads / 2;
constexpr int resident_blocks = 3; /* of a multiprocessor */
constexpr int block_rows = 40, block_columns = 32, depth = 16;
constexpr int row_fragments = block_rows / 8, column_fragments = 2;
/* Pitches that avoid bank conflicts of both fragments. */
constexpr int table_pitch = depth + 4, field_pitch = block_columns + 4;

static_assert(column_fragments * 8 * 2 == block_columns, "two warps for each parity");

template <typename Real> struct Tile {
    Real table[2][block_rows][table_pitch];
    Real field[2][depth][field_pitch];
};

/* Results of a thread. */
template <typename Real> using Fragments = Real[row_fragments][column_fragments][2];

/* Whether the tensor cores of the architecture of this compilation multiply numbers of
 * this type. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <typename Real> constexpr bool has_tensor_cores = sizeof(Real) == 8;

/* c += a b for fragments of 8 x 4 and 4 x 8 on the tensor cores. */
__device__ __forceinline__ void
multiply_add(double (&c)[2], double a, double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}
#else
template <typename Real> constexpr bool has_tensor_cores = false;
#endif

/* Add the product of the tiles of a parity to the results; `first` is the first column of
 * the warp. */
template <typename Real>
__device__ __forceinline__ void
multiply_tiles(const Tile<Real> &tile, int parity, int first, Fragments<Real> &sum)
{
    const int lane = static_cast<int>(threadIdx.x) % 32, high = lane / 4, low = lane % 4;

    if constexpr (has_tensor_cores<Real>) {
#pragma unroll
        for (int k = 0; k < depth; k += 4) {
            Real b[column_fragments];

#pragma unroll
            for (int j = 0; j < column_fragments; j++) {
                b[j] = tile.field[parity][k + low][first + 8 * j + high];
            }
#pragma unroll
            for (int i = 0; i < row_fragments; i++) {
                const Real a = tile.table[parity][8 * i + high][k + low];

#pragma unroll
                for (int j = 0; j < column_fragments; j++) {
                    multiply_add(sum[i][j], a, b[j]);
                }
            }
        }
    }
    else {
#pragma unroll 4
        for (int k = 0; k < depth; k++) {
            Real b[column_fragments][2];

#pragma unroll
            for (int j = 0; j < column_fragments; j++) {
                b[j][0] = tile.field[parity][k][first + 8 * j + 2 * low];
                b[j][1] = tile.field[parity][k][first + 8 * j + 2 * low + 1];
            }
#pragma unroll
            for (int i = 0; i < row_fragments; i++) {
                const Real a = tile.table[parity][8 * i + high][k];

#pragma unroll
                for (int j = 0; j < column_fragments; j++) {
                    sum[i][j][0] += a * b[j][0];
                    sum[i][j][1] += a * b[j][1];
                }
            }
        }
    }
}

/* The right side of the equation of psi from omega, in pairs of rows. */
template <typename Real> struct FromOmega {
    CylinderGrid<Real> grid;
    const Real *omega, *psi;
    const Real *outlet; /* psi at the outlet, unless it is an unknown */
    Real *waves;
    Real over_x, over_y; /* 1/h^2 */

    /* The right side at a node divided by hx^2. */
    __device__ __forceinline__ Real at(int row, int column) const
    {
        const int64_t p = int64_t(row) * grid.nx + column;
        Real value = grid.in_body(row, column) ? Real(0) : omega[p];

        if (column == 1) {
            value += over_x * psi[p - 1];
        }
        if (column == grid.nx - 2 && !grid.free_outlet) {
            value += over_x * outlet[row];
        }
        if (row == 1) {
            value += over_y * psi[p - grid.nx];
        }
        if (row == grid.ny - 2) {
            value += over_y * psi[p + grid.nx];
        }
        return value;
    }

    /* Entry t of both parities of a column. */
    __device__ __forceinline__ void load(int t, int column, Real &even, Real &odd) const
    {
        const int half = (grid.ny - 1) / 2, row = t + 1;
        const Real below = at(row, column);

        even = below;
        odd = 0;
        if (row < half) {
            const Real above = at(grid.ny - 1 - row, column);

            even = below + above;
            odd = below - above;
        }
    }

    /* Entry m of both parities: waves 2m + 1 and 2m + 2. */
    __device__ __forceinline__ void store(int m, int column, Real even, Real odd) const
    {
        const int64_t p = int64_t(2 * m + 1) * grid.nx + column;

        if (column > grid.last) {
            return;
        }
        waves[p] = even;
        if (2 * m + 2 < grid.ny - 1) {
            waves[p + grid.nx] = odd;
        }
    }

    __device__ __forceinline__ void finish() const
    {
    }
};

/* psi from its waves. */
template <typename Real> struct ToPsi {
    CylinderGrid<Real> grid;
    const Real *waves, *psi;
    const Real *outlet;
    Real *new_psi;
    const double *numbers;
    double *history;
    mutable double largest, change; /* of the nodes of the thread */

    __device__ __forceinline__ void load(int m, int column, Real &even, Real &odd) const
    {
        const int64_t p = int64_t(2 * m + 1) * grid.nx + column;
        const bool is_wave = column <= grid.last;

        even = is_wave ? waves[p] : Real(0);
        odd = is_wave && 2 * m + 2 < grid.ny - 1 ? waves[p + grid.nx] : Real(0);
    }

    __device__ __forceinline__ void store(int t, int column, Real even, Real odd) const
    {
        const int row = t + 1, mirrored = grid.ny - 1 - row;

        put(row, column, even + odd);
        if (mirrored != row) {
            put(mirrored, column, even - odd);
        }
    }

    __device__ __forceinline__ void put(int row, int column, Real value) const
    {
        const int64_t p = int64_t(row) * grid.nx + column;

        if (column > grid.last) {
            new_psi[p] = outlet[row];
            return;
        }
        if (grid.in_body(row, column)) {
            value = static_cast<Real>(numbers[STEP_VALUE]);
        }
        new_psi[p] = value;
        raise(largest, fabs(static_cast<double>(value)));
        raise(change, fabs(static_cast<double>(value) - psi[p]));
    }

    /* The larger one; NaN if one of them is. */
    static __device__ __forceinline__ void raise(double &most, double value)
    {
        most = value <= most ? most : value;
    }

    /* The largest values of all blocks. The bits of numbers that are not negative compare
     * as the numbers do, and NaN is the largest. */
    __device__ __forceinline__ void finish() const
    {
        for (int reach = 16; reach > 0; reach /= 2) {
            raise(largest, __shfl_xor_sync(0xffffffffu, largest, reach));
            raise(change, __shfl_xor_sync(0xffffffffu, change, reach));
        }
        if (threadIdx.x % 32 == 0) {
            auto *const row = reinterpret_cast<unsigned long long *>(history);

            atomicMax(row + PS_COLUMN_LARGEST, bits_of(largest));
            atomicMax(row + PS_COLUMN_CHANGE, bits_of(change));
        }
    }

    static __device__ __forceinline__ unsigned long long bits_of(double value)
    {
        return static_cast<unsigned long long>(__double_as_longlong(value)) &
               0x7fffffffffffffffull;
    }
};

/* Entries of the tiles that a thread moves from global to shared memory. */
constexpr int table_entries = 2 * block_rows * depth / block_threads;
constexpr int field_entries = depth * block_columns / block_threads;

template <typename Real> struct Prefetched {
    Real table[table_entries];
    Real even[field_entries], odd[field_entries];

    template <typename Side>
    __device__ __forceinline__ void load(const Side &side, const Real *sines, int half,
                                         int first_row, int first_column, int begin)
    {
        const int thread = static_cast<int>(threadIdx.x);

#pragma unroll
        for (int e = 0; e < table_entries; e++) {
            const int at = thread + e * block_threads, parity = at / (block_rows * depth);
            const int row = first_row + at / depth % block_rows, k = begin + at % depth;

            table[e] = row < half && k < half
                           ? sines[(int64_t(parity) * half + row) * half + k]
                           : Real(0);
        }
#pragma unroll
        for (int e = 0; e < field_entries; e++) {
            const int at = thread + e * block_threads;
            const int k = begin + at / block_columns;
            const int column = first_column + at % block_columns;

            even[e] = odd[e] = 0;
            if (k < half && column < side.grid.nx) {
                side.load(k, column, even[e], odd[e]);
            }
        }
    }

    __device__ __forceinline__ void store(Tile<Real> &tile) const
    {
        const int thread = static_cast<int>(threadIdx.x);

#pragma unroll
        for (int e = 0; e < table_entries; e++) {
            const int at = thread + e * block_threads;

            tile.table[at / (block_rows * depth)][at / depth % block_rows][at % depth] =
                table[e];
        }
#pragma unroll
        for (int e = 0; e < field_entries; e++) {
            const int at = thread + e * block_threads;

            tile.field[0][at / block_columns][at % block_columns] = even[e];
            tile.field[1][at / block_columns][at % block_columns] = odd[e];
        }
    }
};

/* Grid: tiles of rows, then tiles of columns from column 1 on. */
template <typename Real, typename Side>
__global__ void
__launch_bounds__(block_threads, resident_blocks)
    product_kernel(const __grid_constant__ Side given, const Real *sines, int half,
                   int row_tiles)
{
    __shared__ Tile<Real> tile;
    const Side side = given;
    const int thread = static_cast<int>(threadIdx.x),
              block = static_cast<int>(blockIdx.x);
    const int first_row = block % row_tiles * block_rows;
    const int first_column = block / row_tiles * block_columns + 1;
    const int parity = thread / parity_threads, lane = thread % 32;
    const int first = thread % parity_threads / 32 * (8 * column_fragments);
    Fragments<Real> sum = {};
    Prefetched<Real> next;

    wait_for_last_kernel();
    next.load(side, sines, half, first_row, first_column, 0);
    for (int begin = 0; begin < half; begin += depth) {
        next.store(tile);
        __syncthreads(); /* the tiles are written */
        if (begin + depth < half) {
            next.load(side, sines, half, first_row, first_column, begin + depth);
        }
        multiply_tiles(tile, parity, first, sum);
        __syncthreads(); /* the tiles are read */
    }
    let_next_kernel_in();

    /* Both parities of a result are needed by one thread: those of parity 1 are exchanged
     * through the tile, in a half at a time. */
    auto *const exchange = &tile.table[0][0][0];
    static_assert(sizeof(tile.table) >= sizeof(Real) * block_rows * block_columns,
                  "the results of a parity fit into the tile of the table");
    const int at = first + 2 * (lane % 4);

    if (parity == 1) {
#pragma unroll
        for (int i = 0; i < row_fragments; i++) {
#pragma unroll
            for (int j = 0; j < column_fragments; j++) {
                Real *const to =
                    exchange + (8 * i + lane / 4) * block_columns + at + 8 * j;

                to[0] = sum[i][j][0];
                to[1] = sum[i][j][1];
            }
        }
    }
    __syncthreads(); /* the results of parity 1 are written */
    if (parity == 0) {
#pragma unroll
        for (int i = 0; i < row_fragments; i++) {
            const int row = first_row + 8 * i + lane / 4;

#pragma unroll
            for (int j = 0; j < column_fragments; j++) {
                const Real *const odd =
                    exchange + (8 * i + lane / 4) * block_columns + at + 8 * j;
                const int column = first_column + at + 8 * j;

                for (int q = 0; q < 2; q++) {
                    if (row < half && column + q < side.grid.nx) {
                        side.store(row, column + q, sum[i][j][q], odd[q]);
                    }
                }
            }
        }
        side.finish();
    }
}

template <typename Real, typename Side>
ps_status
multiply(const CylinderRun &r, const Side &side, bool forward)
{
    const int half = static_cast<int>(r.c->ny - 1) / 2;
    const int row_tiles = (half + block_rows - 1) / block_rows;
    const int64_t column_tiles = (r.c->nx - 1 + block_columns - 1) / block_columns;
    const Real *const tables = static_cast<const Real *>(r.c->tables[PS_TABLE_SINES]);
    const Real *const sines = tables + (forward ? 0 : 2 * int64_t(half) * half);

    return launch_closely(product_kernel<Real, Side>, row_tiles * column_tiles,
                          block_threads, 0, r.stream, side, sines, half, row_tiles);
}

} // namespace

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
            static_cast<Real>(1 / (r.c->hx * r.c->hx)),
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
                                  r.history,
                                  0,
                                  0};

        return multiply<Real>(r, side, false);
    });
}

} // namespace pysolvers::flow
