/* memory.h - memory, streams and copies of the CUDA backend: entries of its table,
 * called with the device of `exec` current. The rules are in pysolvers.h.
 */
#ifndef PS_CUDA_RUNTIME_MEMORY_H
#define PS_CUDA_RUNTIME_MEMORY_H

#include <cuda_runtime.h>

#include "pysolvers.h"

namespace pysolvers::runtime {

/* Sets the capture mode of this thread to relaxed, so that calls are allowed which a
 * capture in another stream would forbid. */
class Relaxed {
  public:
    Relaxed()
    {
        (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    }
    ~Relaxed()
    {
        (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    }
    Relaxed(const Relaxed &) = delete;
    Relaxed &operator=(const Relaxed &) = delete;

  private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

ps_status ps_cuda_allocate(size_t bytes, const ps_exec *exec, void **data);
ps_status ps_cuda_release(void *data, const ps_exec *exec);
ps_status ps_cuda_reserve(size_t bytes, void **data);
ps_status ps_cuda_discard(void *data);
bool ps_cuda_has_pool(const ps_exec *exec);
ps_status ps_cuda_trim(const ps_exec *exec);
ps_status ps_cuda_copy(void *to, const void *from, size_t bytes, const ps_exec *exec);

/* peer.cu */
ps_status ps_cuda_reach(int32_t other);
ps_status ps_cuda_share(void *data, void *name);
ps_status ps_cuda_open_shared(const void *name, void **data);
ps_status ps_cuda_close_shared(void *data);

/* transfer.cu */
ps_status ps_cuda_upload(void *to, const void *from, size_t bytes, const ps_exec *exec);
ps_status ps_cuda_download(void *to, const void *from, size_t bytes, const ps_exec *exec);

/* answer.cu */
ps_status ps_cuda_answer(void **data);
void ps_cuda_answer_end(void *data, int32_t is_complete);

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
