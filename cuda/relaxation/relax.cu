/* relax.cu - a call of red-black relaxation: iterations enqueued in groups.
 *
 * The device decides when the iteration ends: every kernel reads the norms before it
 * and does nothing after one that ends the call. The host therefore reads the norms
 * only once per group, and the number of iterations is exact nevertheless. A pass of
 * several iterations writes another field than it reads. If the end lies within the
 * pass, the field that was read is unchanged, and the iterations up to the end are
 * repeated one by one from it, with the same bits.
 *
 * The second field needs the boundary of the first one, which no pass writes, and its
 * padding: a pass relaxes the boundary and the padding next to it with the weight 0, and
 * a NaN in the padding would make the boundary a NaN. Both are copied before the first
 * pass: a few words of each row, because a copy of the field takes as long as one or two
 * iterations.
 */
#include "device/number.cuh"
#include "relaxation/relax.cuh"
#include "runtime/elements.cuh"

#include <math.h>

namespace pysolvers::relaxation {

using namespace device;
using namespace runtime;

namespace {

constexpr int most_slots = 1024, first_group = 64;

/* The root mean square from the parts of a sum, added in an order that depends on their
 * number only. One block per iteration. */
struct MeanOfParts {
    ps_cuda_norms norms;
    double nodes;

    __device__ __forceinline__ void operator()() const
    {
        const double *const part = norms.sums + blockIdx.x * norms.parts;
        NormAccumulator<double, PS_CUDA_NORM_SUM> all;

        wait_for_last_kernel();
        if (has_ended(norms)) {
            return;
        }
        for (int64_t k = threadIdx.x; k < norms.parts; k += relax_threads) {
            all.sum += part[k];
        }
        if (join_block(all)) {
            norms.slots[blockIdx.x] =
                static_cast<uint64_t>(__double_as_longlong(sqrt(all.sum / nodes)));
        }
    }
};

/* The elements of a field that no iteration changes: the first and the last row, and of
 * the other rows element 0 and those from `tail` on, which may have nodes among them. */
struct Frame {
    int64_t rows, pitch; /* of a colour, including the boundary */
    int64_t tail;

    __host__ __device__ int64_t in_row() const
    {
        return 1 + pitch - tail;
    }
    __host__ __device__ int64_t in_ends() const
    {
        return 4 * pitch;
    }
    int64_t count() const
    {
        return in_ends() + 2 * (rows - 2) * in_row();
    }
    /* The place of element k in a field. */
    __device__ int64_t place(int64_t k) const
    {
        if (k < in_ends()) {
            const int64_t end = k / pitch; /* of red, of red, of black, of black */

            return (end / 2 * rows + end % 2 * (rows - 1)) * pitch + k % pitch;
        }
        const int64_t row = (k - in_ends()) / in_row(), m = (k - in_ends()) % in_row();
        const int64_t colour = row / (rows - 2), j = 1 + row % (rows - 2);

        return (colour * rows + j) * pitch + (m == 0 ? 0 : tail + m - 1);
    }
};

template <typename T> struct CopyFrame {
    Frame frame;
    const T *from;
    T *to;

    __device__ __forceinline__ void operator()(int64_t k) const
    {
        const int64_t place = frame.place(k);

        to[place] = from[place];
    }
};

template <typename T>
ps_status
copy_frame(const ps_cuda_grid &g, const void *from, void *to, cudaStream_t stream)
{
    const Frame frame = {g.ny + 2, g.pitch, g.nx / 2};

    return for_elements(
        frame.count(), stream,
        CopyFrame<T>{frame, static_cast<const T *>(from), static_cast<T *>(to)});
}

size_t
field_bytes(const ps_cuda_field *f)
{
    return static_cast<size_t>(2 * f->grid.half) *
           static_cast<size_t>(ps_dtype_size(f->dtype));
}

bool
is_end(double measure, double tolerance)
{
    return !(measure > tolerance) || isinf(measure);
}

/* What is enqueued after `made` iterations. */
struct Move {
    int length;   /* iterations: those of a pass, or 1 */
    int measures; /* number of measured iterations, the last ones of `length` */
};

class Run {
  public:
    Run(const ps_cuda_field *f, const Relaxation &kernels, int64_t count,
        const ps_exec *exec, ps_relax_report *report)
        : f_(f), kernels_(kernels), count_(count), exec_(exec),
          stream_(ps_cuda_stream(exec)), report_(report), here_(f->u)
    {
        char *const base = static_cast<char *>(exec->work);
        const size_t copy = kernels.block() > 0 ? ps_cuda_padded(field_bytes(f)) : 0;

        there_ = base;
        slots_ = reinterpret_cast<uint64_t *>(base + copy);
        sums_ = reinterpret_cast<double *>(slots_ + most_slots);
    }

    ps_status run()
    {
        int64_t size = first_group;
        ps_status status = PS_OK;

        while (status == PS_OK && made_ < count_ && report_->end == PS_END_COUNT) {
            status = make_group(size);
            if (status == PS_OK && exec_->poll != nullptr &&
                exec_->poll(exec_->poll_self) != 0) {
                status = PS_INTERRUPTED;
            }
            size = size < largest_group() ? 2 * size : size;
        }
        report_->iterations = made_;
        const ps_status copied = copy_back();

        return status == PS_OK ? copied : status;
    }

    /* Enqueue all iterations, which are not measured. */
    ps_status enqueue_all()
    {
        ps_status status = PS_OK;

        while (status == PS_OK && made_ < count_) {
            const Move move = next(made_);

            status = enqueue(move);
            made_ += move.length;
            if (move.length > 1) {
                swap();
            }
        }
        return status == PS_OK && here_ != f_->u ? copy(f_->u, here_, field_bytes(f_))
                                                 : status;
    }

  private:
    /* Iterations that take a few milliseconds, estimated from the number of nodes. */
    int64_t largest_group() const
    {
        const int64_t nodes = int64_t(f_->grid.nx) * f_->grid.ny;
        const int64_t size = (int64_t(1) << 32) / (nodes + (1 << 20));

        return size < 1 ? 1 : size;
    }

    /* Copy the boundary and the padding to the other field before the first pass. */
    ps_status prepare_pass()
    {
        if (has_frame_) {
            return PS_OK;
        }
        has_frame_ = true;
        return with_real(f_->dtype, [&](auto zero) {
            return copy_frame<decltype(zero)>(f_->grid, here_, there_, stream_);
        });
    }

    ps_status copy(void *to, const void *from, size_t bytes)
    {
        return ps_cuda_status(
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
    }

    Move next(int64_t made) const
    {
        const int64_t every = f_->stop->every, block = kernels_.block();
        int64_t goal = count_;

        if (every > 1) {
            goal = (made / every + 1) * every;
            goal = goal < count_ ? goal : count_;
        }
        const int length =
            block > 0 && goal - made >= block ? static_cast<int>(block) : 1;

        return {length, every == 1 ? length : every > 1 && made + length == goal ? 1 : 0};
    }

    ps_cuda_norms norms_for(const Move &move) const
    {
        ps_cuda_norms g = {};

        g.kind = move.measures > 0 ? ps_cuda_norm_of(f_->stop) : PS_CUDA_NORM_NONE;
        g.criterion = f_->stop->criterion;
        g.first = move.length - move.measures;
        g.last = move.length;
        ps_cuda_norm_rows(&g, f_->stop, f_->grid.ny);
        g.slots = slots_ + measures_;
        g.sums = sums_;
        g.parts = kernels_.parts(move.length);
        g.watch = slots_ + measures_ - watched_;
        g.watched = watched_;
        g.tolerance = f_->stop->tolerance;
        return g;
    }

    void swap()
    {
        void *const kept = here_;

        here_ = there_;
        there_ = kept;
    }

    ps_status enqueue(const Move &move)
    {
        const ps_cuda_norms g = norms_for(move);
        ps_status status = move.length > 1 ? prepare_pass() : PS_OK;

        if (status == PS_OK) {
            status = move.length > 1 ? kernels_.pass(here_, there_, g, stream_)
                                     : kernels_.iterate(here_, g, stream_);
        }
        return status == PS_OK ? ps_cuda_relax_mean(&g, f_->grid.nx, stream_) : status;
    }

    ps_status make_group(int64_t size)
    {
        const int64_t begin = made_, goal = made_ + size < count_ ? made_ + size : count_;
        ps_status status = ps_cuda_status(
            cudaMemsetAsync(slots_, 0, most_slots * sizeof *slots_, stream_));

        first_here_ = here_;
        measures_ = watched_ = 0;
        while (status == PS_OK && made_ < goal &&
               measures_ + kernels_.block() < most_slots) {
            const Move move = next(made_);

            status = enqueue(move);
            made_ += move.length;
            measures_ += move.measures;
            watched_ = move.measures > 0 ? move.measures : watched_;
            if (move.length > 1) {
                swap();
            }
        }
        return status == PS_OK ? read_norms(begin) : status;
    }

    /* Wait for a group that began after `begin` iterations, and read its norms. */
    ps_status read_norms(int64_t begin)
    {
        double measures[most_slots];
        const size_t bytes = static_cast<size_t>(measures_) * sizeof *measures;
        ps_status status = copy(measures, slots_, bytes);
        int read = 0;

        if (status == PS_OK) {
            status = ps_cuda_status(cudaStreamSynchronize(stream_));
        }
        while (status == PS_OK && read < measures_ && report_->end == PS_END_COUNT) {
            const double measure = measures[read++];

            report_->measure = measure;
            if (is_end(measure, f_->stop->tolerance)) {
                report_->end = isfinite(measure) ? PS_END_TOLERANCE : PS_END_NOT_FINITE;
            }
        }
        if (status == PS_OK && f_->stop->history != nullptr && read > 0) {
            status = copy(f_->stop->history + report_->measures, slots_,
                          static_cast<size_t>(read) * sizeof(double));
        }
        report_->measures += read;
        if (status == PS_OK && report_->end != PS_END_COUNT) {
            status = restore(begin);
        }
        return status;
    }

    /* Restore the state of the iteration whose norm ended the call. After it, only the
     * rest of its pass was computed. */
    ps_status restore(int64_t begin)
    {
        const int64_t end = report_->measures * f_->stop->every;
        const int64_t goal = end < count_ ? end : count_;
        Move move = next(begin);
        ps_status status = PS_OK;

        if (here_ != first_here_) {
            swap();
        }
        made_ = begin;
        while (made_ + move.length <= goal && made_ < goal) {
            made_ += move.length;
            if (move.length > 1) {
                swap();
            }
            move = next(made_);
        }
        while (status == PS_OK && made_ < goal) {
            status = kernels_.iterate(here_, ps_cuda_norms{}, stream_);
            made_ += status == PS_OK;
        }
        return status;
    }

    ps_status copy_back()
    {
        ps_status status = here_ == f_->u ? PS_OK : copy(f_->u, here_, field_bytes(f_));
        const ps_status ended = ps_cuda_status(cudaStreamSynchronize(stream_));

        return status == PS_OK ? ended : status;
    }

    const ps_cuda_field *f_;
    const Relaxation &kernels_;
    const int64_t count_;
    const ps_exec *exec_;
    const cudaStream_t stream_;
    ps_relax_report *report_;
    /* the current field, the other one, and the current one at the begin of a group */
    void *here_, *there_, *first_here_ = nullptr;
    uint64_t *slots_;
    double *sums_;
    bool has_frame_ = false; /* whether both fields have the boundary */
    int64_t made_ = 0;
    int measures_ = 0, watched_ = 0; /* of this group; those of its last pass */
};

} // namespace

ps_status
ps_cuda_relax_mean(const ps_cuda_norms *norms, int nx, cudaStream_t stream)
{
    const double nodes = static_cast<double>(nx) * (norms->end_row - norms->first_row);

    return norms->kind != PS_CUDA_NORM_SUM
               ? PS_OK
               : for_threads<relax_threads>(norms->last - norms->first, stream,
                                            MeanOfParts{*norms, nodes});
}

size_t
ps_cuda_relax_work(const ps_cuda_field *f, const Relaxation &kernels)
{
    const bool sums = f->stop->every > 0 && f->stop->norm == PS_NORM_L2;
    const int block = kernels.block();
    const int64_t one = kernels.parts(1),
                  all = block > 0 ? block * kernels.parts(block) : 0;

    return (block > 0 ? ps_cuda_padded(field_bytes(f)) : 0) +
           most_slots * sizeof(uint64_t) +
           (sums ? static_cast<size_t>(one > all ? one : all) * sizeof(double) : 0);
}

ps_status
ps_cuda_relax(const ps_cuda_field *f, const Relaxation &kernels, int64_t count,
              const ps_exec *exec, ps_relax_report *report)
{
    if (exec->work_bytes < ps_cuda_relax_work(f, kernels)) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    report->measure = NAN;
    report->end = PS_END_COUNT;
    report->kernel = kernels.kernel();
    return Run(f, kernels, count, exec, report).run();
}

ps_status
ps_cuda_relax_enqueue(const ps_cuda_field *f, const Relaxation &kernels, int64_t count,
                      const ps_exec *exec)
{
    ps_relax_report report = {};

    if (f->stop->every != 0) {
        return PS_BAD_ARGUMENT;
    }
    return exec->work_bytes < ps_cuda_relax_work(f, kernels)
               ? PS_WORK_TOO_SMALL
               : Run(f, kernels, count, exec, &report).enqueue_all();
}

} // namespace pysolvers::relaxation
