/* five_turns.cuh - neighbouring systems of five diagonals by scalar rows (five_rows.cuh), whose last
 * eliminated rows are in shared memory.
 *
 * A warp has 16 systems, each with two lanes that eliminate from both ends. Two warps take turns: one
 * eliminates while the other substitutes. The eliminated rows of the next turn lie in reverse order, so
 * that each of them takes the memory of one that has just been substituted. 7 words for a row, and 6
 * more for each of the first rows, which are in global memory.
 *
 * In float64 256, 300, 400 and 512 rows take 0.92, 0.86, 0.93 and 0.94 of the time of five_rows.cuh, with
 * 13 words, 160 and 200 rows 1.03 of that of first rows in the L2 cache, by a kernel that this one replaced
 * (H200). 64 to 144 rows take 1.2 of the time of five_rows.cuh, float32 1.2 to 1.8: few warps load, and loads
 * of later rows to the L2 cache take 1.0 to 1.3. A kernel that loads such rows without eliminating them has
 * 0.64, 0.77, 0.79 and 0.92 of the speed of a copy with 2, 4, 8 and 16 warps on a multiprocessor.
 */
#ifndef PS_CUDA_LINES_FIVE_TURNS_CUH
#define PS_CUDA_LINES_FIVE_TURNS_CUH

#include "lines/five_rows.cuh"
#include "lines/turns.cuh"

namespace pysolvers::lines {

/* Grid: any number of blocks of two warps. */
template <typename Real>
__global__ void
__launch_bounds__(five_threads)
    five_turns_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Rows = FiveRows<Real>;
    constexpr int group = Rows::group, words = Rows::words;
    constexpr int pitch = group * words * kept_step;
    constexpr int slots = 3; /* groups in registers */
    extern __shared__ int4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool is_last = lane >= turn_systems;
    const int32_t most = five_half(job.rows, false).groups, far = job.far,
                  near = most - far;
    const int64_t systems = job.outer * job.inner;
    const bool is_reversed = warp == 1;
    Real *const memory =
        reinterpret_cast<Real *>(shared) + lane + (is_reversed ? (near - 1) * pitch : 0);
    const int32_t step = is_reversed ? -pitch : pitch;
    /* in global memory, of this warp */
    Real *const region =
        job.kept + (blockIdx.x + static_cast<int64_t>(warp) * gridDim.x) * most * pitch;
    const auto kept_at = [&](int32_t g) {
        return g < far ? Rows::kept_at(region + lane + g * pitch)
                       : Rows::kept_at(memory + (g - far) * step);
    };
    const auto keep = [&](int32_t g, const typename Rows::Kept &rows) {
        const auto put = [&](Real *to) {
#pragma unroll
            for (int w = 0; w < group * words; w++) {
                to[w * kept_step] = rows.at[w / words][w % words];
            }
        };

        if (g < far) {
            put(region + lane + g * pitch);
        }
        else {
            put(memory + (g - far) * step);
        }
    };

    constexpr int pieces = 7;
    const PiecesOfTurn<pieces> handed(near);
    const int32_t turns = turns_of_block((systems + turn_systems - 1) / turn_systems);

#pragma unroll 1
    for (int32_t turn = warp; turn < turns; turn += 2) {
        const int64_t part = blockIdx.x + static_cast<int64_t>(turn) * gridDim.x;
        const int64_t own = part * turn_systems + lane % turn_systems;

        /* lanes beyond the systems: the last one */
        const int64_t index = min(own, systems - 1);
        const BlockSource<Real, 2, true> source(job, index);
        Rows rows(job, source, is_last, five_half(job.rows, is_last));
        const int32_t count = rows.half.groups, first = rows.half.first;
        typename Rows::Group groups[slots] = {};

#pragma unroll
        for (int g = 0; g < slots; g++) {
            if (g < count) {
                rows.load(first + g * group, groups[g]);
            }
        }
#pragma unroll 1
        for (int32_t base = 0; base < most; base += slots) {
#pragma unroll
            for (int k = 0; k < slots; k++) {
                const int32_t g = base + k;

                if (g >= most) {
                    break;
                }
                if (turn > 0) {
                    handed.wait(g - far, (1 - warp) * pieces);
                }
                typename Rows::Kept done;

                if (g < count) {
                    rows.eliminate_to(groups[k], [&](int w, Real a) {
                        done.at[w / words][w % words] = a;
                    });
                    keep(g, done);
                }
                if (g + slots < count) {
                    rows.load(first + (g + slots) * group, groups[k]);
                }
            }
        }
        Real x1, x2;
        const bool is_met = rows.meet(rows.last, rows.before, rows.last.of(lane ^ 16),
                                      rows.before.of(lane ^ 16), x1, x2);
        const unsigned unsafe =
            __ballot_sync(all_lanes, !is_met || rows.guard.is_unsafe != 0);
        const bool is_found =
            ((unsafe | unsafe >> turn_systems) >> lane % turn_systems & 1u) == 0;

        if (own < systems && !is_last) {
            if (!is_found) {
                solve_by_blocks<turn_systems>(job, source, index, region + lane);
            }
            else if (job.info != nullptr) {
                job.info[job.is_swapped ? source.k * job.outer + source.j : index] = 0;
            }
        }
        __syncwarp();
        const bool is_stored = is_found && own < systems;
        constexpr int depth = 3; /* groups that are loaded at the same time */
        typename Rows::Kept kept[depth] = {};

#pragma unroll
        for (int k = 0; k < depth; k++) {
            if (most - 1 - k >= 0) {
                kept[k] = kept_at(most - 1 - k);
            }
        }
#pragma unroll 1
        for (int32_t base = most - 1; base >= 0; base -= depth) {
#pragma unroll
            for (int k = 0; k < depth; k++) {
                const int32_t g = base - k;

                if (g < 0) {
                    break;
                }
                if (is_stored && g < count) {
                    rows.store(first + g * group, Rows::substituted(kept[k], x1, x2));
                }
                if (g >= depth) {
                    kept[k] = kept_at(g - depth);
                }
                if (turn + 1 < turns) {
                    handed.release(g >= far ? most - 1 - g : -1, warp * pieces);
                }
            }
        }
    }
}

} // namespace pysolvers::lines

#endif
