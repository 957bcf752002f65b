/* layout.h - strided copies, and arrays filled with NaN (layout.cu). */
#ifndef PS_CUDA_LINES_LAYOUT_H
#define PS_CUDA_LINES_LAYOUT_H

#include "pysolvers.h"

namespace pysolvers::lines {

ps_status ps_cuda_relayout(const ps_relayout *r, const ps_exec *exec);

ps_status ps_cuda_blank(const ps_blank *b, const ps_exec *exec);

} // namespace pysolvers::lines

#endif
