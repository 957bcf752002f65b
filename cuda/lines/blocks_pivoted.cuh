/* blocks_pivoted.cuh - the systems of blocks.cuh as bands, with partial pivoting of scalar
 * rows: one thread per system.
 *
 * A matrix of blocks of side k has BAND = 2 k - 1 diagonals on each side of the main one,
 * five diagonals have 2. A window of BAND + 1 rows in registers begins at the column that is
 * eliminated; the row with the largest first entry is the pivot row, which is stored with
 * 2 BAND + 1 entries and its right-hand side, and read once by the back substitution. Each
 * of the other rows loses its first entry, and the next row of the matrix follows. Stable as
 * partial pivoting is (Higham 2002, Theorem 9.11; growth at most 2^(2 BAND - 1)).
 *
 * Why not the row exchanges of lines/pivoted: its chunks have rows of three numbers, and
 * blocks as these numbers would exchange block rows, which is no partial pivoting.
 *
 * Threads compute one system after the other, so that the pivot rows take memory for a fixed
 * number of systems. If the systems are checked, only those that blocks.cuh marks with info
 * -1. x is written after all of rhs is read.
 */
#ifndef PS_CUDA_LINES_BLOCKS_PIVOTED_CUH
#define PS_CUDA_LINES_BLOCKS_PIVOTED_CUH

#include "lines/blocks.cuh"

namespace pysolvers::lines {

/* Rows begin .. begin + BAND from column `begin`, which is in none of the rows before. */
template <typename Real, int BAND> struct BandWindow {
    static constexpr int WIDTH = 2 * BAND + 1;
    Real at[BAND + 1][WIDTH], rhs[BAND + 1];

    /* Rows of the identity. */
    __device__ __forceinline__ BandWindow()
    {
#pragma unroll
        for (int r = 0; r <= BAND; r++) {
#pragma unroll
            for (int c = 0; c < WIDTH; c++) {
                at[r][c] = r == c ? 1 : 0;
            }
            rhs[r] = 0;
        }
    }

    /* Exchange rows so that the first entry of the first one is the largest. */
    __device__ __forceinline__ void choose()
    {
#pragma unroll
        for (int r = 1; r <= BAND; r++) {
            const bool is_larger = fabs(at[r][0]) > fabs(at[0][0]);

#pragma unroll
            for (int c = 0; c < WIDTH; c++) {
                exchange(is_larger, at[0][c], at[r][c]);
            }
            exchange(is_larger, rhs[0], rhs[r]);
        }
    }

    /* Eliminate the first column, and go on to the next one. */
    __device__ __forceinline__ void eliminate(Real inverse)
    {
        const Real right = rhs[0];
        Real pivots[WIDTH];

#pragma unroll
        for (int c = 1; c < WIDTH; c++) {
            pivots[c] = at[0][c];
        }
#pragma unroll
        for (int r = 1; r <= BAND; r++) {
            const Real m = at[r][0] * inverse;

#pragma unroll
            for (int c = 1; c < WIDTH; c++) {
                at[r - 1][c - 1] = at[r][c] - m * pivots[c];
            }
            at[r - 1][WIDTH - 1] = 0;
            rhs[r - 1] = rhs[r] - m * right;
        }
    }

  private:
    __device__ __forceinline__ static void exchange(bool does, Real &a, Real &b)
    {
        const Real first = a;

        a = does ? b : a;
        b = does ? first : b;
    }
};

template <typename Real, int SIDE, bool IS_BANDS> struct BandedSystem {
    static constexpr int BAND = IS_BANDS ? 2 : 2 * SIDE - 1, WIDTH = 2 * BAND + 1;
    static constexpr int PARTS = IS_BANDS ? 1 : SIDE; /* scalar rows that are alike */
    using Window = BandWindow<Real, BAND>;
    const BlocksJob<Real> &job;
    const BlockSource<Real, SIDE, IS_BANDS> source;

    /* Set row BAND of a window to scalar row i * PARTS + part, 0 beyond the matrix. */
    __device__ __forceinline__ void load(int32_t i, int part, Real (&row)[WIDTH],
                                         Real &rhs) const
    {
        const bool is_there = i >= 0 && i < job.rows;

#pragma unroll
        for (int c = 0; c < WIDTH; c++) {
            row[c] = 0;
        }
        rhs = is_there ? source.at(job.rhs, i)[IS_BANDS ? 0 : part * job.rhs.down] : 0;
        if (!is_there) {
            return;
        }
        if constexpr (IS_BANDS) {
#pragma unroll
            for (int d = 0; d < WIDTH; d++) {
                row[d] = source.band(d, i);
            }
        }
        else {
            put(job.lower, i, part, i > 0, SIDE - 1 - part, row);
            put(job.diag, i, part, true, 2 * SIDE - 1 - part, row);
            put(job.upper, i, part, i < job.rows - 1, 3 * SIDE - 1 - part, row);
        }
    }

    __device__ __forceinline__ Real *x_at(int32_t i, int part) const
    {
        return source.at(job.x, i) + (IS_BANDS ? 0 : part * job.x.down);
    }

  private:
    /* Put row `part` of a block into columns `first` and up of a window. */
    __device__ __forceinline__ void put(const BlockOperand<Real> &d, int32_t i, int part,
                                        bool is_there, int first,
                                        Real (&row)[WIDTH]) const
    {
#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            row[first + q] = is_there ? source.at(d, i)[part * d.down + q * d.across] : 0;
        }
    }
};

/* Grid: any number of threads, each with memory for the pivot rows of a system. */
template <typename Real, int SIDE, bool IS_BANDS>
__global__ void
__launch_bounds__(blocks_threads, SIDE == 4 ? 1 : 0)
    blocks_pivoted_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using System = BandedSystem<Real, SIDE, IS_BANDS>;
    constexpr int BAND = System::BAND, WIDTH = System::WIDTH, PARTS = System::PARTS;
    constexpr int before = (BAND + 1) / PARTS; /* blocks of the identity */
    const int64_t slot = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t slots = static_cast<int64_t>(gridDim.x) * blockDim.x;

#pragma unroll 1
    for (int64_t index = slot; index < job.outer * job.inner; index += slots) {
        const System system = {job, {job, index}};
        int32_t *const info =
            job.info == nullptr
                ? nullptr
                : job.info + (job.is_swapped
                                  ? system.source.k * job.outer + system.source.j
                                  : index);
        typename System::Window window;
        Real *kept = job.kept + slot;
        int32_t bad = 0;

        if (job.checks && *info != -1) {
            continue;
        }
#pragma unroll 1
        for (int32_t i = -before; i < job.rows; i++) {
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                Real row[WIDTH], rhs;

                system.load(i + before, part, row, rhs);
                if (!job.is_definite) {
                    window.choose();
                }
                const Real pivot = window.at[0][0], inverse = reciprocal(pivot);

                if (bad == 0 && (is_bad_pivot(pivot) || (job.is_definite && pivot < 0))) {
                    bad = i + 1;
                }
                if (i >= 0) {
                    kept[0] = inverse;
#pragma unroll
                    for (int c = 1; c < WIDTH; c++) {
                        kept[c * slots] = window.at[0][c];
                    }
                    kept[WIDTH * slots] = window.rhs[0];
                    kept += (WIDTH + 1) * slots;
                }
                window.eliminate(inverse);
#pragma unroll
                for (int c = 0; c < WIDTH; c++) {
                    window.at[BAND][c] = row[c];
                }
                window.rhs[BAND] = rhs;
            }
        }
        if (info != nullptr) {
            *info = bad;
        }
        Real later[WIDTH - 1] = {}; /* x of the next rows */

#pragma unroll 1
        for (int32_t i = job.rows - 1; i >= 0; i--) {
#pragma unroll
            for (int part = PARTS - 1; part >= 0; part--) {
                kept -= (WIDTH + 1) * slots;
                Real x = kept[WIDTH * slots];

#pragma unroll
                for (int c = WIDTH - 1; c > 0; c--) {
                    x -= kept[c * slots] * later[c - 1];
                }
                x *= kept[0];
#pragma unroll
                for (int c = WIDTH - 2; c > 0; c--) {
                    later[c] = later[c - 1];
                }
                later[0] = x;
                *system.x_at(i, part) = x;
            }
        }
    }
}

} // namespace pysolvers::lines

#endif
