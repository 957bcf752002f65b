/* graph.cu - graphs of the work of a stream. */
#include "runtime/engine.h"
#include "runtime/memory.h"

namespace pysolvers::runtime {

/* Relaxed: a library may load its kernels during the capture. */
ps_status
ps_cuda_capture(const ps_exec *exec)
{
    return ps_cuda_status(
        cudaStreamBeginCapture(ps_cuda_stream(exec), cudaStreamCaptureModeRelaxed));
}

ps_status
ps_cuda_capture_end(const ps_exec *exec, void **graph)
{
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t ready = nullptr;
    cudaError_t error = cudaStreamEndCapture(ps_cuda_stream(exec), &captured);

    *graph = nullptr;
    if (error == cudaSuccess) {
        error = cudaGraphInstantiate(&ready, captured, 0);
    }
    if (captured != nullptr) {
        (void)cudaGraphDestroy(captured);
    }
    if (error == cudaSuccess) {
        *graph = ready;
    }
    return ps_cuda_status(error);
}

ps_status
ps_cuda_graph_launch(void *graph, const ps_exec *exec)
{
    return ps_cuda_status(
        cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), ps_cuda_stream(exec)));
}

ps_status
ps_cuda_graph_end(void *graph)
{
    return ps_cuda_status(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}

} // namespace pysolvers::runtime
