/* diffusion.cu - implicit diffusion that is not split: conjugate gradients,
 * preconditioned by multigrid with alternating line relaxation (ps_diffusion.h).
 *
 * The sequence is that of the host (csrc/cpu/heat/diffusion.c), which has the formulas
 * and the sources. Differences: a relaxation adds its correction when the next residual
 * is computed, so that it takes two kernels, a residual and a line solve; transfers
 * between levels do all axes at once; and the numbers of the iteration stay on the
 * device. The host reads them once per iteration, between an advance and a V-cycle that
 * may not be needed, and decides on the end. The device decides itself whether the V-cycle
 * before was the last one: x does not advance then. The products of a basis are taken in
 * one pass, and read once.
 *
 * Cost of an iteration with two axes: 2 line solves of 5 words and 2 residuals of 8 words
 * along each axis, times 4/3 for the coarser levels, and 20 words of conjugate gradients:
 * about 90 words per unknown. A level has 10 kernels with two axes and 14 with three. The
 * coarse levels, up to 65^2 or 17^3 nodes in float32, have one kernel together
 * (diffusion_coarse.cuh): a V-cycle has 11 kernels on 129^2 nodes, 31 on 513^2 and 29 on
 * 65^3. Levels of less than some 10^5 nodes take the time of these launches; a V-cycle is
 * therefore launched as one graph.
 */
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "heat/diffusion_coarse.cuh"
#include "runtime/backend.h"
#include "runtime/memory.h"

namespace pysolvers::heat {

namespace {

constexpr size_t content_bytes = node_sums * sum_blocks * sizeof(double);
constexpr size_t parts_bytes = span_sums * sum_blocks * sizeof(double);

int64_t
nodes_of(const ps_diffusion_level &l)
{
    return l.nodes[0] * l.nodes[1] * l.nodes[2];
}

NodeBox
box_of(const ps_diffusion *d, const ps_diffusion_level &l)
{
    NodeBox box = {};

    box.axes = d->axes;
    for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
        box.nodes[axis] = l.nodes[axis];
        box.first[axis] = l.first[axis];
        box.count[axis] = l.end[axis] - l.first[axis];
        box.periodic[axis] = d->periodic[axis];
    }
    return box;
}

NodeVolumes
volumes_of(const ps_diffusion *d)
{
    NodeVolumes volumes = {};

    for (int axis = 0; axis < d->axes; axis++) {
        volumes.half[axis][0] = d->half[axis][0];
        volumes.half[axis][1] = d->half[axis][1];
    }
    return volumes;
}

template <typename Real>
DiffusionOperator<Real>
operator_of(const ps_diffusion *d, const ps_diffusion_level &l)
{
    DiffusionOperator<Real> a = {box_of(d, l), static_cast<const Real *>(l.sum), {}};

    for (int axis = 0; axis < d->axes; axis++) {
        a.face[axis] = static_cast<const Real *>(l.conductance[axis]);
    }
    return a;
}

/* Strides of the lines along an axis over the unknown nodes, and the first of these. */
ps_stride
line_stride_of(const ps_diffusion_level &l, int axis, int64_t *start)
{
    const int64_t strides[] = {1, l.nodes[0], l.nodes[0] * l.nodes[1]};
    const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;

    *start = 0;
    for (int a = 0; a < PS_DIFFUSION_AXES; a++) {
        *start += l.first[a] * strides[a];
    }
    return {strides[axis], strides[outer], strides[inner]};
}

/* The nodes of a coarse level. */
BoxOf<int32_t>
coarse_box_of(const ps_diffusion *d, const ps_diffusion_level &l)
{
    const NodeBox box = box_of(d, l);
    BoxOf<int32_t> coarse = {};

    coarse.axes = box.axes;
    for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
        coarse.nodes[axis] = static_cast<int32_t>(box.nodes[axis]);
        coarse.first[axis] = static_cast<int32_t>(box.first[axis]);
        coarse.count[axis] = static_cast<int32_t>(box.count[axis]);
        coarse.periodic[axis] = box.periodic[axis];
    }
    return coarse;
}

/* Whether a block can have a level. */
bool
is_coarse(const ps_diffusion *d, const ps_diffusion_level &l)
{
    const NodeBox box = box_of(d, l);
    bool fits = box.unknowns() <= coarse_nodes;

    for (int axis = 0; axis < d->axes; axis++) {
        fits = fits && box.count[axis] <= 32 * coarse_rows &&
               (l.line[axis].flags & PS_ROW_SUMS) != 0;
    }
    return fits;
}

template <typename Real>
CoarseLines<Real>
coarse_lines_of(const ps_diffusion_level &l, int axis)
{
    const ps_tridiag t = ps_cuda_factor_matrices(&l.line[axis]);
    const auto stride_of = [](const ps_stride &s) {
        return CoarseStride{static_cast<int32_t>(s.row), static_cast<int32_t>(s.outer),
                            static_cast<int32_t>(s.inner)};
    };
    int64_t start;
    CoarseLines<Real> lines = {};

    lines.lower = static_cast<const Real *>(t.lower.data);
    lines.sum = static_cast<const Real *>(t.diag.data);
    lines.matrix = stride_of(t.diag.stride);
    lines.field = stride_of(line_stride_of(l, axis, &start));
    lines.first = static_cast<int32_t>(start);
    lines.rows = static_cast<int32_t>(t.rows);
    lines.inner = static_cast<int32_t>(t.inner);
    lines.lines = static_cast<int32_t>(t.outer * t.inner);
    lines.lanes = (lines.rows + coarse_rows - 1) / coarse_rows;
    lines.groups = 32 / lines.lanes;
    lines.part = (1 << 16) / lines.lanes + 1;
    return lines;
}

template <typename Real>
CoarseLevel<Real>
coarse_level_of(const ps_diffusion *d, const ps_diffusion_level &l)
{
    CoarseLevel<Real> level = {};

    level.a.box = coarse_box_of(d, l);
    level.a.sum = static_cast<const Real *>(l.sum);
    for (int axis = 0; axis < d->axes; axis++) {
        level.a.face[axis] = static_cast<const Real *>(l.conductance[axis]);
        level.weight[axis] = static_cast<const Real *>(l.weight[axis]);
        level.lines[axis] = coarse_lines_of<Real>(l, axis);
    }
    return level;
}

/* Blocks with one node per thread. */
int64_t
blocks_for(const NodeBox &box)
{
    return (box.unknowns() + node_threads - 1) / node_threads;
}

/* Blocks that take sums. */
int
sum_blocks_for(const NodeBox &box)
{
    const int64_t blocks = blocks_for(box);

    return static_cast<int>(blocks < sum_blocks ? blocks : sum_blocks);
}

template <typename Operation>
ps_status
launch_nodes(const Operation &operation, cudaStream_t stream)
{
    const NodeBox &box = operation.nodes();

    return for_threads<node_threads>(Operation::sums > 0 ? sum_blocks_for(box)
                                                         : blocks_for(box),
                                     stream, OverNodes<Operation>{operation});
}

template <typename Real>
ps_status
apply(const ps_diffusion *d, void *out, cudaStream_t stream)
{
    const Residual<Real, false> r = {operator_of<Real>(d, d->system),
                                     static_cast<const Real *>(d->x),
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     static_cast<Real *>(out)};

    return launch_nodes(r, stream);
}

template <typename Real>
ps_status
centre(const ps_diffusion *d, double mean, double *parts, cudaStream_t stream)
{
    const NodeBox box = box_of(d, d->system);
    Real *const x = static_cast<Real *>(d->x);
    double volume = 1;

    for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
        volume *= static_cast<double>(box.count[axis]) -
                  0.5 * (d->half[axis][0] + d->half[axis][1]);
    }
    const Content<Real> content = {box, volumes_of(d), x, parts};
    const ps_status status = launch_nodes(content, stream);

    return status != PS_OK ? status
                           : launch_nodes(Centre<Real>{box, x, parts, sum_blocks_for(box),
                                                       mean, volume},
                                          stream);
}

/* What the launches of a V-cycle depend on, as bytes. */
using CycleKey = std::vector<unsigned char>;

template <typename Part>
void
append(CycleKey *key, const Part &part)
{
    const unsigned char *const bytes = reinterpret_cast<const unsigned char *>(&part);

    key->insert(key->end(), bytes, bytes + sizeof part);
}

CycleKey
key_of(const ps_diffusion *d, const ps_exec *exec)
{
    CycleKey key;

    append(&key, exec->device);
    append(&key, exec->work);
    append(&key, d->dtype);
    append(&key, d->cycle);
    append(&key, d->axes);
    append(&key, d->periodic);
    append(&key, d->half);
    append(&key, d->system);
    for (int level = 0; level < d->levels; level++) {
        append(&key, d->level[level]);
    }
    return key;
}

/* The graphs of the last V-cycles of a thread: solves with the same operator and the same
 * workspace have the same one. Equal keys mean equal launches, even if memory was
 * released and allocated again in between; padding in a key can at worst cost a capture.
 */
class CycleGraphs {
  public:
    CycleGraphs() = default;
    CycleGraphs(const CycleGraphs &) = delete;
    CycleGraphs &operator=(const CycleGraphs &) = delete;
    ~CycleGraphs()
    {
        for (const Known &known : known_) {
            end(known.graph);
        }
    }

    /* Null if there is none. */
    void *find(const CycleKey &key) const
    {
        for (const Known &known : known_) {
            if (known.graph != nullptr && known.key == key) {
                return known.graph;
            }
        }
        return nullptr;
    }

    /* Add a graph, which is destroyed here, in place of the oldest one. */
    void add(CycleKey &&key, void *graph)
    {
        Known &oldest = known_[next_];

        end(oldest.graph);
        oldest = {std::move(key), graph};
        next_ = (next_ + 1) % count;
    }

  private:
    static constexpr int count = 4;

    struct Known {
        CycleKey key;
        void *graph = nullptr;
    };

    static void end(void *graph)
    {
        if (graph != nullptr) {
            (void)ps_cuda_graph_end(graph);
        }
    }

    Known known_[count];
    int next_ = 0;
};

CycleGraphs &
cycle_graphs()
{
    static thread_local CycleGraphs graphs;

    return graphs;
}

/* A solve in progress. The residual and the directions are in Real, the levels in Cycle.
 * All functions enqueue; after an error they do nothing. */
template <typename Real, typename Cycle> class Solve {
  public:
    Solve(const ps_diffusion *d, const ps_exec *exec)
        : d_(d), exec_(exec), stream_(ps_cuda_stream(exec)), box_(box_of(d, d->system)),
          volumes_(volumes_of(d)), a_(operator_of<Real>(d, d->system)),
          limits_{d->rtol, d->ratio}
    {
        for (int level = 0; level < d->levels; level++) {
            operators_[level] = operator_of<Cycle>(d, d->level[level]);
        }
        set_coarse();
    }

    /* Set the parts of the workspace from `work` on; return its size. What must be 0
     * comes first. A basis needs no workspace: A times each of its fields is not stored.
     */
    ps_status lay_out(char *work, size_t *bytes)
    {
        const size_t whole =
            ps_cuda_padded(static_cast<size_t>(nodes_of(d_->system)) * sizeof(Real));
        char *at = work;
        const auto take = [&at](size_t size) {
            char *const start = at;

            at += size;
            return start;
        };

        r_ = reinterpret_cast<Real *>(take(whole));
        p_ = reinterpret_cast<Real *>(take(whole));
        q_ = reinterpret_cast<Real *>(take(whole));
        for (int level = 0; level <= coarse_ && level < d_->levels; level++) {
            const size_t size = ps_cuda_padded(
                static_cast<size_t>(nodes_of(d_->level[level])) * sizeof(Cycle));
            Fields &f = fields_[level];

            f.x = reinterpret_cast<Cycle *>(take(size));
            if (level < coarse_) {
                Cycle **const fields[] = {&f.y, &f.t, &f.s};
                for (Cycle **field : fields) {
                    *field = reinterpret_cast<Cycle *>(take(size));
                }
            }
            if (level == 0 && !is_mixed) {
                f.r = reinterpret_cast<Cycle *>(r_);
            }
            else {
                f.r = reinterpret_cast<Cycle *>(take(size));
            }
        }
        cleared_ = static_cast<size_t>(at - work);
        parts_ = reinterpret_cast<double *>(take(parts_bytes));
        numbers_ = reinterpret_cast<DiffusionNumbers *>(
            take(ps_cuda_padded(sizeof(DiffusionNumbers))));
        lines_ = *exec_;
        lines_.work = at;
        lines_.work_bytes = 0;

        ps_status status = PS_OK;
        for (int level = 0; level < coarse_ && status == PS_OK; level++) {
            for (int axis = 0; axis < d_->axes && status == PS_OK; axis++) {
                status = need_lines(level, axis);
            }
        }
        *bytes = static_cast<size_t>(at - work) + lines_.work_bytes;
        return status;
    }

    ps_status run(ps_diffusion_report *report)
    {
        DiffusionNumbers now = {};
        CycleKey key = key_of(d_, exec_);

        graph_ = cycle_graphs().find(key);
        begin();
        while (judge(&now, report)) {
            if (exec_->poll != nullptr && exec_->poll(exec_->poll_self) != 0) {
                return PS_INTERRUPTED;
            }
            if (graph_ == nullptr && !is_tried_) {
                capture(std::move(key));
            }
            make_z(Stage::next_z);
        }
        return status_;
    }

  private:
    static constexpr bool is_mixed = sizeof(Real) != sizeof(Cycle);

    /* Fields of a level: the correction is x + t, or x if t is not pending; y and s take
     * their places at the next residual. r is the right-hand side. The first one of the
     * coarse levels has x and r only, those after it lie in shared memory. */
    struct Fields {
        Cycle *x, *y, *r, *t, *s;
        bool is_pending;
    };

    /* Kernels of one level, or of the system. */
    template <typename Operation> void launch(const Operation &operation)
    {
        if (status_ == PS_OK) {
            status_ = launch_nodes(operation, stream_);
        }
    }

    template <typename Total> void launch_total(const Total &total)
    {
        if (status_ == PS_OK) {
            status_ = for_threads<node_threads>(
                1, stream_, AddBlocks<Total>{parts_, sum_blocks_for(box_), total});
        }
    }

    void total(Stage stage)
    {
        launch_total(StageTotal{stage, limits_, numbers_});
    }

    void read(DiffusionNumbers *now)
    {
        if (status_ == PS_OK) {
            status_ = ps_cuda_status(cudaMemcpyAsync(now, numbers_, sizeof *now,
                                                     cudaMemcpyDeviceToHost, stream_));
        }
        if (status_ == PS_OK) {
            status_ = ps_cuda_wait(exec_);
        }
    }

    /* Advance x by the last z, unless z is small enough; return whether to go on. */
    bool judge(DiffusionNumbers *now, ps_diffusion_report *report)
    {
        const bool advances = report->iterations < d_->most;

        if (advances) {
            advance();
        }
        read(now);
        if (status_ != PS_OK) {
            return false;
        }
        report->norm = std::sqrt(now->xx);
        report->limit = now->limit(limits_);
        report->error = std::sqrt(now->zz);
        report->converged = now->ended != 0 ? 1 : 0;
        if (report->converged != 0 || !advances || now->stops != 0) {
            return false;
        }
        report->iterations++;
        ps_diffusion_least_add(&least_, now->alpha, now->beta);
        report->least = ps_diffusion_least_of(&least_);
        report->error = PS_DIFFUSION_MARGIN * now->share * std::sqrt(now->rr);
        report->converged = report->error <= report->limit ? 1 : 0;
        return report->converged == 0;
    }

    /* The norm of a field, to `stage`. */
    void square(const void *v, Stage stage)
    {
        Real *const field = static_cast<Real *>(const_cast<void *>(v));

        launch(
            Products<Real, Real>{box_, volumes_, field, field, nullptr, nullptr, parts_});
        total(stage);
    }

    void begin()
    {
        status_ = ps_cuda_status(cudaMemsetAsync(r_, 0, cleared_, stream_));
        span();
        square(d_->x, Stage::of_x);
        if (d_->scale != nullptr) {
            square(d_->scale, Stage::of_given);
        }
        launch(Residual<Real, false>{a_, static_cast<const Real *>(d_->x), nullptr,
                                     static_cast<const Real *>(d_->rhs), nullptr, r_});
        square(r_, Stage::residual);
        if (is_mixed) {
            launch(Entry<Real, Cycle>{box_, r_, fields_[0].r, numbers_});
        }
        make_z(Stage::first_z);
    }

    /* Move x to the nearest point of x + span of the basis. */
    void span()
    {
        double g[PS_DIFFUSION_BASIS][PS_DIFFUSION_BASIS + 1], y[PS_DIFFUSION_BASIS];
        DiffusionNumbers now = {};
        Real *const x = static_cast<Real *>(d_->x);
        Span<Real> sums = {a_, x,          static_cast<const Real *>(d_->rhs),
                           {}, d_->fields, parts_};
        Move<Real> move = {box_, x, {}, {}};

        if (d_->fields == 0) {
            return;
        }
        for (int i = 0; i < d_->fields; i++) {
            sums.basis[i] = move.basis[i] = static_cast<const Real *>(d_->basis[i]);
        }
        launch(sums);
        launch_total(SpanTotal{numbers_});
        read(&now);
        if (status_ != PS_OK) {
            return;
        }
        for (int i = 0; i < d_->fields; i++) {
            std::copy_n(&now.span[span_row(i)], i + 2, g[i]);
        }
        ps_diffusion_combine(d_, g, y);
        for (int i = 0; i < d_->fields; i++) {
            move.factor[i] = static_cast<Real>(y[i]);
        }
        launch(move);
    }

    /* x and r along the next direction, and their sums. */
    void advance()
    {
        launch(Direction<Real, Cycle>{box_, fields_[0].x, p_, numbers_, is_mixed});
        launch(SummedResidual<Real>{{a_, p_, nullptr, nullptr, nullptr, q_}, parts_});
        total(Stage::direction);
        launch(Advance<Real, Cycle>{box_, volumes_, static_cast<Real *>(d_->x), r_, p_,
                                    q_, is_mixed ? fields_[0].r : nullptr, numbers_,
                                    parts_});
        total(Stage::advance);
    }

    /* z = P r in x of the first level, and its sums to `stage`. */
    void make_z(Stage stage)
    {
        if (graph_ == nullptr) {
            enqueue_z();
        }
        else if (status_ == PS_OK) {
            status_ = ps_cuda_graph_launch(graph_, exec_);
        }
        total(stage);
    }

    /* Make the graph of enqueue_z(), which has run before: its kernels are loaded. The
     * captured stream does not wait for the legacy default stream: other threads could
     * not use that one during the capture. CUDA can still refuse the capture, for example
     * because another thread waits for the device: the V-cycles then have no graph. */
    void capture(CycleKey &&key)
    {
        const Relaxed relaxed;
        cudaStream_t const outer = stream_;
        cudaStream_t inner = nullptr;
        ps_exec own = *exec_;
        void *graph = nullptr;

        is_tried_ = true;
        if (status_ != PS_OK ||
            cudaStreamCreateWithFlags(&inner, cudaStreamNonBlocking) != cudaSuccess) {
            return;
        }
        own.stream = lines_.stream = stream_ = inner;
        status_ = ps_cuda_capture(&own);
        if (status_ == PS_OK) {
            enqueue_z();
            const ps_status ended = ps_cuda_capture_end(&own, &graph);
            status_ = status_ == PS_OK ? ended : status_;
        }
        (void)cudaStreamDestroy(inner);
        stream_ = outer;
        lines_.stream = exec_->stream;
        if (status_ == PS_OK) {
            graph_ = graph;
            cycle_graphs().add(std::move(key), graph);
            return;
        }
        if (graph != nullptr) {
            (void)ps_cuda_graph_end(graph);
        }
        (void)cudaGetLastError();
        status_ = PS_OK;
    }

    /* z = P r, and the sums of its blocks. Does the same work each time: x and y of the
     * first level are exchanged an even number of times, and what else the fields of the
     * levels contain is not used. */
    void enqueue_z()
    {
        precondition();
        Fields &f = fields_[0];

        launch(Products<Real, Cycle>{box_, volumes_, r_, f.x,
                                     f.is_pending ? f.t : nullptr,
                                     is_mixed ? numbers_ : nullptr, parts_});
        f.is_pending = false;
    }

    void precondition()
    {
        const auto list = cycle_of<PS_DIFFUSION_LEVELS>(0, d_->levels, d_->axes);
        bool is_below = false; /* whether the step before was one of a coarse level */

        for (int i = 0; i < list.count; i++) {
            const CycleOperation &o = list.operation[i];
            const bool was_below = is_below;

            is_below = o.level >= coarse_;
            if (!is_below) {
                execute(o);
            }
            else if (!was_below) {
                run_coarse();
            }
        }
    }

    void execute(const CycleOperation &o)
    {
        Fields &f = fields_[o.level];

        switch (o.step) {
        case CycleStep::solve:
            solve_lines(o.level, o.axis, f.r, f.x);
            f.is_pending = false;
            break;
        case CycleStep::relax:
            relax(o.level, o.axis);
            break;
        case CycleStep::restrict:
            residual(o.level);
            launch(Restriction<Cycle>{two_levels(o.level), f.t, fields_[o.level + 1].r});
            break;
        case CycleStep::interpolate: {
            const Fields &c = fields_[o.level + 1];

            launch(Interpolation<Cycle>{two_levels(o.level), c.x,
                                        c.is_pending ? c.t : nullptr, f.x});
            break;
        }
        }
    }

    /* Set the first level of those that a block has, and what its kernel needs. */
    void set_coarse()
    {
        const ps_cuda_device *const device = ps_cuda_device_get();
        const size_t whole =
            device != nullptr ? static_cast<size_t>(device->shared_bytes) : 0;
        const size_t table = sizeof cycle_.level; /* in the same memory */
        int32_t words = 0;

        coarse_ = d_->levels;
        while (coarse_ > 0 && d_->levels - coarse_ < coarse_levels &&
               is_coarse(d_, d_->level[coarse_ - 1])) {
            CoarseLevel<Cycle> level = coarse_level_of<Cycle>(d_, d_->level[coarse_ - 1]);
            const int32_t end = level.place(words);

            if (static_cast<size_t>(end) * sizeof(Cycle) + table > whole) {
                break;
            }
            words = end;
            coarse_--;
            std::move_backward(cycle_.level, cycle_.level + cycle_.levels,
                               cycle_.level + cycle_.levels + 1);
            cycle_.level[0] = level;
            cycle_.levels++;
        }
        coarse_bytes_ = static_cast<size_t>(words) * sizeof(Cycle);
        cycle_.list = cycle_of<coarse_levels>(0, cycle_.levels, d_->axes);
    }

    /* The V-cycle of the coarse levels. */
    void run_coarse()
    {
        Fields &f = fields_[coarse_];

        cycle_.r = f.r;
        cycle_.x = f.x;
        f.is_pending = false;
        if (status_ == PS_OK) {
            status_ = ps_cuda_status(allow_shared(coarse_kernel<Cycle>));
        }
        if (status_ == PS_OK) {
            status_ = launch_closely(coarse_kernel<Cycle>, 1, coarse_threads<Cycle>,
                                     coarse_bytes_, stream_, cycle_);
        }
    }

    /* Add T^-1 (r - A x) along an axis. */
    void relax(int level, int axis)
    {
        Fields &f = fields_[level];

        residual(level);
        solve_lines(level, axis, f.t, f.t);
        f.is_pending = true;
    }

    /* x += t if it is pending; t = r - A x. */
    void residual(int level)
    {
        Fields &f = fields_[level];
        const DiffusionOperator<Cycle> &a = operators_[level];

        if (f.is_pending) {
            launch(Residual<Cycle, true>{a, f.x, f.t, f.r, f.y, f.s});
            std::swap(f.x, f.y);
        }
        else {
            launch(Residual<Cycle, false>{a, f.x, nullptr, f.r, nullptr, f.s});
        }
        std::swap(f.t, f.s);
        f.is_pending = false;
    }

    TwoLevels<Cycle> two_levels(int level) const
    {
        TwoLevels<Cycle> two = {operators_[level].box, operators_[level + 1].box, {}};

        for (int axis = 0; axis < d_->axes; axis++) {
            two.weight[axis] = static_cast<const Cycle *>(d_->level[level].weight[axis]);
        }
        return two;
    }

    /* The right-hand sides and solutions along an axis over the unknown nodes. */
    ps_factor_rhs lines_of(int level, int axis, const Cycle *from, Cycle *to) const
    {
        const ps_factor &f = d_->level[level].line[axis];
        int64_t start;
        const ps_stride stride = line_stride_of(d_->level[level], axis, &start);
        ps_factor_rhs b = {};

        b.trans = PS_TRANS_NONE;
        b.outer = f.outer;
        b.inner = f.inner;
        b.outer_step = b.inner_step = 1;
        b.rhs = {from + start, stride};
        b.x = {to + start, stride};
        return b;
    }

    void solve_lines(int level, int axis, const Cycle *from, Cycle *to)
    {
        if (status_ == PS_OK) {
            const ps_factor_rhs b = lines_of(level, axis, from, to);

            status_ = ps_cuda_factor_solve(&d_->level[level].line[axis], &b, &lines_);
        }
    }

    /* Let the workspace of line solves be large enough for those of a level: all its
     * fields are aligned alike. */
    ps_status need_lines(int level, int axis)
    {
        const Fields &f = fields_[level];
        const Cycle *const both[] = {f.r, f.t};
        ps_status status = PS_OK;

        for (const Cycle *from : both) {
            const ps_factor_rhs b = lines_of(level, axis, from, f.t);
            size_t bytes = 0;

            status = status == PS_OK ? ps_cuda_factor_work(&d_->level[level].line[axis],
                                                           &b, exec_, &bytes)
                                     : status;
            lines_.work_bytes = bytes > lines_.work_bytes ? bytes : lines_.work_bytes;
        }
        return status;
    }

    const ps_diffusion *const d_;
    const ps_exec *const exec_;
    cudaStream_t stream_; /* the caller's, but for a capture */
    const NodeBox box_;
    const NodeVolumes volumes_;
    const DiffusionOperator<Real> a_;
    const DiffusionLimits limits_;
    ps_diffusion_least least_ = {};
    DiffusionOperator<Cycle> operators_[PS_DIFFUSION_LEVELS];
    Fields fields_[PS_DIFFUSION_LEVELS] = {};
    int coarse_ = 0; /* the first one of the levels that one block has */
    CoarseCycle<Cycle> cycle_ = {};
    size_t coarse_bytes_ = 0;
    Real *r_ = nullptr, *p_ = nullptr, *q_ = nullptr;
    double *parts_ = nullptr;
    DiffusionNumbers *numbers_ = nullptr;
    ps_exec lines_ = {};
    void *graph_ = nullptr; /* of enqueue_z(); null if there is none yet */
    bool is_tried_ = false; /* whether a capture of it was tried */
    size_t cleared_ = 0;
    ps_status status_ = PS_OK;
};

/* call(solve) for a Solve of the dtypes of `d`. */
template <typename Call>
ps_status
with_solve(const ps_diffusion *d, const ps_exec *exec, const Call &call)
{
    if (d->dtype == PS_F32) { /* and so the cycle */
        return call(Solve<float, float>(d, exec));
    }
    return with_real(d->cycle, [&](auto zero) {
        return call(Solve<double, decltype(zero)>(d, exec));
    });
}

/* An address for the layout of a workspace that does not exist yet. */
char *
any_address()
{
    return reinterpret_cast<char *>(uintptr_t(256));
}

} // namespace

ps_status
ps_cuda_diffusion_apply(const ps_diffusion *d, void *out, const ps_exec *exec)
{
    const ps_status status = out == nullptr ? PS_BAD_ARGUMENT : ps_diffusion_check(d, 0);

    if (status != PS_OK) {
        return status;
    }
    return with_real(d->dtype, [&](auto zero) {
        return apply<decltype(zero)>(d, out, ps_cuda_stream(exec));
    });
}

ps_status
ps_cuda_diffusion_centre_work(const ps_diffusion *, size_t *bytes)
{
    *bytes = content_bytes;
    return PS_OK;
}

ps_status
ps_cuda_diffusion_centre(const ps_diffusion *d, double mean, const ps_exec *exec)
{
    const ps_status status = ps_diffusion_check(d, 0);
    double *const parts = static_cast<double *>(exec->work);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < content_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    return with_real(d->dtype, [&](auto zero) {
        return centre<decltype(zero)>(d, mean, parts, ps_cuda_stream(exec));
    });
}

ps_status
ps_cuda_diffusion_work(const ps_diffusion *d, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_diffusion_check(d, 1);

    *bytes = 0;
    return status != PS_OK ? status : with_solve(d, exec, [&](auto &&solve) {
        return solve.lay_out(any_address(), bytes);
    });
}

ps_status
ps_cuda_diffusion_solve(const ps_diffusion *d, const ps_exec *exec,
                        ps_diffusion_report *report)
{
    const ps_status status = ps_diffusion_check(d, 1);

    if (status != PS_OK) {
        return status;
    }
    *report = {};
    report->least = std::numeric_limits<double>::infinity();
    report->kernel = "multigrid lines";
    return with_solve(d, exec, [&](auto &&solve) {
        size_t bytes = 0;
        const ps_status laid_out = solve.lay_out(static_cast<char *>(exec->work), &bytes);

        return laid_out != PS_OK          ? laid_out
               : bytes > exec->work_bytes ? PS_WORK_TOO_SMALL
                                          : solve.run(report);
    });
}

} // namespace pysolvers::heat
