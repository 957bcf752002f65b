/* scan.cuh - first-order recurrences from lane to lane, the join of chunks with a constant
 * ratio.
 *
 * A chunk adds `own` to what leaves it and multiplies what enters it by its decay: x_i = own_i
 * + decay x_{i-1}. After step k each lane has the sum over 2^(k+1) lanes: 5 shuffles and 5
 * fused operations (Hillis and Steele 1986). In ascending or in descending order of the lanes.
 */
#ifndef PS_CUDA_LINES_JOIN_SCAN_CUH
#define PS_CUDA_LINES_JOIN_SCAN_CUH

#include "device/number.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::join {

using namespace device;

/* The lanes of a warp in the order of a recurrence. */
template <bool ASCENDS> struct LaneScan {
    int lane;

    /* Whether there is a lane `reach` lanes before this one. */
    __device__ __forceinline__ bool has_before(int reach) const
    {
        return ASCENDS ? lane >= reach : lane + reach < 32;
    }
    /* Number of lanes before this one. */
    __device__ __forceinline__ int rank() const
    {
        return ASCENDS ? lane : 31 - lane;
    }

    template <typename Real>
    static __device__ __forceinline__ Real from_before(Real value, int reach)
    {
        return ASCENDS ? shuffle_up(value, reach, 32) : shuffle_down(value, reach, 32);
    }

    /* What leaves the lane if nothing enters the first one. decay(k) is that of 2^k lanes,
     * and is called for k = 0, 1, ... Called by all lanes together. */
    template <typename Real, typename Decay>
    __device__ __forceinline__ Real leaving(Real own, const Decay &decay) const
    {
#pragma unroll
        for (int k = 0; k < 5; k++) {
            const Real before = from_before(own, 1 << k);
            const Real factor = decay(k);

            own = has_before(1 << k) ? fma(factor, before, own) : own;
        }
        return own;
    }

    /* The same for units with decays of their own: the lanes up to this one. */
    template <typename Unit> __device__ __forceinline__ Unit leaving(Unit own) const
    {
#pragma unroll
        for (int reach = 1; reach < 32; reach *= 2) {
            const Unit before = {from_before(own.sum, reach),
                                 from_before(own.decay, reach)};

            if (has_before(reach)) {
                own = own.behind(before);
            }
        }
        return own;
    }

    /* What enters the lane, from what leaves all of them. */
    template <typename Real> __device__ __forceinline__ Real entering(Real leaving) const
    {
        const Real before = from_before(leaving, 1);

        return has_before(1) ? before : Real(0);
    }
};

} // namespace pysolvers::join

#endif
