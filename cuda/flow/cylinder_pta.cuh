/* cylinder_pta.cuh - the lines of the cylinder by the parallel Thomas algorithm: one
 * thread per line, and the coefficients in global memory (Souri et al. 2020).
 *
 * Three kernels replace the one of line_sweep.cuh and take the same class of rows. The
 * first one stores lower, diag, upper and rhs of each unknown, lines/thomas.cu solves the
 * lines, the third one stores the solution as the sweep does. Words moved per node, in
 * addition to those of the sweep: 4 written, 9 by Thomas elimination, 1 or 2 read. Of the
 * words of a node, store() reads word 0 only, which is the right-hand side.
 *
 * No gain asked for these kernels: they are the method of the paper, which the experiment
 * of its Fig. 19 compares with the faster kernel of line_sweep.cuh.
 */
#ifndef PS_CUDA_FLOW_CYLINDER_PTA_CUH
#define PS_CUDA_FLOW_CYLINDER_PTA_CUH

#include "flow/line_sweep.cuh"
#include "lines/methods.h"
#include "runtime/elements.cuh"

namespace pysolvers::flow {

constexpr int pta_threads = 256; /* of a block of the first and the third kernel */

/* Fields of all nodes. */
template <typename Real> struct PtaFields {
    Real *lower, *diag, *upper, *rhs, *x;
};

/* Bytes of the fields, and of c of Thomas elimination, for a grid of so many nodes. */
inline size_t
pta_bytes(int64_t nodes, size_t word)
{
    return 6 * ps_cuda_padded(static_cast<size_t>(nodes) * word);
}

/* A node of the field, one for each thread: columns lie side by side in memory. */
template <int AXIS> struct PtaNode {
    int p, line, at;
    bool exists, unknown;

    __device__ __forceinline__ PtaNode(const SweepTiles &t, int row, int column)
    {
        const int columns = t.lines_of_field.pitch;

        line = AXIS == 0 ? row : column;
        at = AXIS == 0 ? column : row;
        p = row * columns + column;
        exists = column < columns && line < t.lines_of_field.count;
        unknown = exists && line >= t.lines_of_field.first &&
                  line < t.lines_of_field.end && at >= t.begin && at < t.rows_end;
    }
};

/* Grid: `more` blocks of other work, then those of the nodes. */
template <int AXIS, typename Rows> struct PtaRows {
    using Number = typename Rows::Number;
    Rows rows;
    SweepTiles t;
    PtaFields<Number> to;
    int more;

    __device__ __forceinline__ void operator()() const
    {
        const int block = static_cast<int>(blockIdx.x);

        wait_for_last_kernel();
        if (block < more) {
            rows.other(block);
            return;
        }
        const int per_row = divided_up(t.lines_of_field.pitch, pta_threads);
        const int part = (block - more) % per_row;
        const PtaNode<AXIS> node(t, (block - more) / per_row,
                                 part * pta_threads + static_cast<int>(threadIdx.x));
        Number word[Rows::words];

        if (!node.unknown) {
            return;
        }
        rows.node(node.p, node.line, node.at, rows.is_plain(node.line), word);
        rows.adjust(node.p, node.line, node.at, word);
        const Row<Number> row = rows.row(node.line, node.at, word);

        to.lower[node.p] = row.lower;
        to.diag[node.p] = row.diag;
        to.upper[node.p] = row.upper;
        to.rhs[node.p] = row.rhs;
    }
};

/* Store the solution at node `column` of row `row` of the field. */
template <int AXIS, typename Rows> struct PtaStore {
    using Number = typename Rows::Number;
    Rows rows;
    SweepTiles t;
    PtaFields<Number> from;

    __device__ __forceinline__ void operator()(unsigned row, int64_t column) const
    {
        const PtaNode<AXIS> node(t, static_cast<int>(row), static_cast<int>(column));

        if (node.exists) {
            rows.store(node.p, node.line, node.at, node.unknown,
                       node.unknown ? from.x[node.p] : Number(0), from.rhs + node.p);
        }
    }
};

/* The unknowns of a sweep as systems. */
template <int AXIS, typename Real>
inline ps_tridiag
pta_systems(const SweepTiles &t, const PtaFields<Real> &f, ps_dtype dtype)
{
    const SweepLines &lines = t.lines_of_field;
    const ps_stride stride = {AXIS == 0 ? 1 : lines.pitch, 0,
                              AXIS == 0 ? lines.pitch : 1};
    const int64_t first = lines.first * stride.inner + t.begin * stride.row;
    ps_tridiag s = {};

    s.dtype = dtype;
    s.rows = t.rows_end - t.begin;
    s.outer = 1;
    s.inner = lines.end - lines.first;
    s.lower = {f.lower + first, stride};
    s.diag = {f.diag + first, stride};
    s.upper = {f.upper + first, stride};
    s.rhs = {f.rhs + first, stride};
    s.x = {f.x + first, stride};
    return s;
}

/* A sweep with the tiles `t`, of which only the lines are used, and `more` blocks of
 * other work; `work` has pta_bytes(). */
template <int AXIS, typename Rows>
ps_status
pta_sweep(const Rows &rows, const SweepTiles &t, int64_t more, ps_dtype dtype,
          int32_t block, void *work, cudaStream_t stream)
{
    using Number = typename Rows::Number;
    const SweepLines &lines = t.lines_of_field;
    const int64_t along_y = AXIS == 0 ? lines.count : t.nodes;
    const int64_t blocks = along_y * divided_up(lines.pitch, pta_threads);
    const size_t bytes = pta_bytes(along_y * lines.pitch, sizeof(Number)) / 6;
    const auto field = [&](size_t k) {
        return reinterpret_cast<Number *>(static_cast<char *>(work) + k * bytes);
    };
    const PtaFields<Number> f = {field(0), field(1), field(2), field(3), field(4)};
    const ps_tridiag systems = pta_systems<AXIS>(t, f, dtype);
    const ps_options options = {PS_THOMAS, PS_PIVOT_NEVER, block};
    ps_exec exec = {};
    ps_report report = {};

    exec.stream = stream;
    exec.work = field(5);
    exec.work_bytes = bytes;
    ps_status status = for_threads<pta_threads>(
        blocks + more, stream, PtaRows<AXIS, Rows>{rows, t, f, static_cast<int>(more)});

    if (status == PS_OK) {
        status = lines::ps_cuda_thomas.solve(&systems, &options, &exec, &report);
    }
    return status == PS_OK ? for_rows_of_elements(along_y, lines.pitch, stream,
                                                  PtaStore<AXIS, Rows>{rows, t, f})
                           : status;
}

} // namespace pysolvers::flow

#endif
