/* memory.h - memory, streams and copies of the CUDA backend: entries of its table,
 * called with the device of `exec` current. The rules are in pysolvers.h.
 */
#ifndef PS_CUDA_RUNTIME_MEMORY_H
#define PS_CUDA_RUNTIME_MEMORY_H

#include "pysolvers.h"

namespace pysolvers::runtime {

ps_status ps_cuda_allocate(size_t bytes, const ps_exec *exec, void **data);
ps_status ps_cuda_release(void *data, const ps_exec *exec);
ps_status ps_cuda_reserve(size_t bytes, void **data);
ps_status ps_cuda_discard(void *data);
bool ps_cuda_has_pool(const ps_exec *exec);
ps_status ps_cuda_trim(const ps_exec *exec);
ps_status ps_cuda_copy(void *to, const void *from, size_t bytes, const ps_exec *exec);

/* transfer.cu */
ps_status ps_cuda_upload(void *to, const void *from, size_t bytes, const ps_exec *exec);
ps_status ps_cuda_download(void *to, const void *from, size_t bytes, const ps_exec *exec);

ps_status ps_cuda_wait(const ps_exec *exec);
ps_status ps_cuda_wait_event(void *event, const ps_exec *exec);
ps_status ps_cuda_order(void *first, const ps_exec *exec);
ps_status ps_cuda_mark(const ps_exec *exec, void **mark);
ps_status ps_cuda_mark_passed(void *mark, int32_t *passed);
ps_status ps_cuda_mark_end(void *mark);

/* graph.cu */
ps_status ps_cuda_capture(const ps_exec *exec);
ps_status ps_cuda_capture_end(const ps_exec *exec, void **graph);
ps_status ps_cuda_graph_launch(void *graph, const ps_exec *exec);
ps_status ps_cuda_graph_end(void *graph);

} // namespace pysolvers::runtime

#endif
