/* rates_job.cuh - a pass of ps_rates.h and its division among threads. */
#ifndef PS_CUDA_LINES_RATES_JOB_CUH
#define PS_CUDA_LINES_RATES_JOB_CUH

#include "lines/rates.h"

namespace pysolvers::lines {

constexpr int lanes = 32, walks_a_block = 8; /* threads of a block along x and y */

struct RatesJob {
    ps_rates r;
    int64_t tiles, walks; /* warps along x; threads along all other axes */
    int64_t chunks;       /* of these along y */
    bool with_lines, with_parts;
    bool adds_y[PS_RATES_OUTS]; /* whether base u + change d of a result is y */
};

} // namespace pysolvers::lines

#endif
