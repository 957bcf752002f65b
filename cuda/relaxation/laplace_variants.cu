/* laplace_variants.cu - the plate as in Niemeyer and Sung (2014): one thread per cell,
 * one kernel per colour. The host reads the residual after every measured iteration.
 *
 *            fields        lanes            the host reads
 *   naive      interleaved   across the rows   one number per cell
 *   coalesced  interleaved   along the rows    one number per cell
 *   split      one array per colour, along rows   one number per cell
 *   shared     as split                        one number per block
 *   atomic     as split                        one number
 *
 * The coefficients are those of the tables and two constants, or six arrays of all cells
 * as in the survey, which the call fills, in global memory or as textures: 6 words more
 * per cell and iteration. No gain asked for the arrays: they are those of the survey, with
 * which the kernels of solvers are compared.
 */
#include <math.h>

#include <type_traits>

#include "device/number.cuh"
#include "relaxation/laplace.h"
#include "relaxation/relax.cuh"
#include "runtime/elements.cuh"
#include "runtime/texture.cuh"

namespace pysolvers::relaxation {

using namespace device;
using namespace runtime;

namespace {

/* Cells of a tile of threads, which is a block. */
constexpr int tile_along = 32, tile_across = relax_threads / tile_along;
constexpr size_t chunk_bytes = size_t(1) << 16; /* bytes that the host reads at a time */

/* The arrays of coefficients; b is the right side. */
enum { A_P, A_W, A_E, A_S, A_N, RIGHT, COEFFICIENTS };

template <typename T> struct Plate {
    T *t, *coefficient[COEFFICIENTS];
    Texels texels[COEFFICIENTS];
    const T *diag, *gain, *source;
    T ax, ay;
    ps_cuda_grid grid;
    unsigned across; /* tiles in a row of tiles */
    T *cells;        /* memory for one residual per cell, or null */
    ps_cuda_norms norms;
};

template <bool INTERLEAVED>
__device__ __forceinline__ int64_t
place_of(const ps_cuda_grid &g, int i, int j)
{
    return INTERLEAVED ? 2 * j * g.pitch + i
                       : ((i + j) & 1 ? g.half : 0) + j * g.pitch + i / 2;
}

template <bool INTERLEAVED>
__device__ __forceinline__ int64_t
table_place(const ps_cuda_grid &g, int i, int j)
{
    const int row = j == 1 ? 0 : j == g.ny ? 2 : 1;

    return INTERLEAVED ? 2 * row * g.pitch + i : (2 * row + (i & 1)) * g.pitch + i / 2;
}

/* An entry of an array of coefficients. */
template <int FROM, typename T>
__device__ __forceinline__ T
coefficient(const Plate<T> &s, int which, int64_t at)
{
    if constexpr (FROM == PS_LAPLACE_TEXTURE) {
        return fetch(s.texels[which], s.coefficient[which] + at);
    }
    else {
        return s.coefficient[which][at];
    }
}

template <int FROM, bool INTERLEAVED, typename T>
__device__ __forceinline__ Relaxed<T>
relax_cell(const Plate<T> &s, int i, int j)
{
    const ps_cuda_grid &g = s.grid;
    const int64_t at = place_of<INTERLEAVED>(g, i, j);
    const int64_t table = table_place<INTERLEAVED>(g, i, j);
    const T west = s.t[place_of<INTERLEAVED>(g, i - 1, j)];
    const T east = s.t[place_of<INTERLEAVED>(g, i + 1, j)];
    const T south = s.t[place_of<INTERLEAVED>(g, i, j - 1)];
    const T north = s.t[place_of<INTERLEAVED>(g, i, j + 1)], own = s.t[at];
    T all, diag;

    if constexpr (FROM == PS_LAPLACE_TABLES) {
        const T flow =
            plus(times(s.ax, plus(west, east)), times(s.ay, plus(north, south)));

        all = s.source != nullptr ? plus(flow, s.source[at]) : flow;
        diag = s.diag[table];
    }
    else {
        const T across = plus(times(coefficient<FROM>(s, A_W, at), west),
                              times(coefficient<FROM>(s, A_E, at), east));
        const T along = plus(times(coefficient<FROM>(s, A_N, at), north),
                             times(coefficient<FROM>(s, A_S, at), south));

        all = plus(plus(across, along), coefficient<FROM>(s, RIGHT, at));
        diag = coefficient<FROM>(s, A_P, at);
    }
    const T residual = minus(all, times(diag, own));
    const T after = plus(own, times(s.gain[table], residual));

    s.t[at] = after;
    return {residual, own, after};
}

/* The cell of a thread: number m of its colour in row j. */
template <int FROM, bool INTERLEAVED, bool ACROSS, typename T, int KIND>
__device__ __forceinline__ void
relax_colour(const Plate<T> &s, int colour, NormAccumulator<T, KIND> &norm)
{
    const int x = threadIdx.x % tile_along, y = threadIdx.x / tile_along;
    const int column = static_cast<int>(blockIdx.x % s.across);
    const int row = static_cast<int>(blockIdx.x / s.across);
    const int m = column * (ACROSS ? tile_across : tile_along) + (ACROSS ? y : x);
    const int j = row * (ACROSS ? tile_along : tile_across) + (ACROSS ? x : y) + 1;
    const int i = 2 * m + ((j + colour) & 1);

    if (i < 1 || i > s.grid.nx || j > s.grid.ny) {
        return;
    }
    const Relaxed<T> cell = relax_cell<FROM, INTERLEAVED>(s, i, j);

    const bool counts = j >= s.norms.first_row && j < s.norms.end_row;

    norm.add(cell, s.norms.criterion, counts);
    if (s.cells != nullptr && counts) {
        s.cells[place_of<INTERLEAVED>(s.grid, i, j)] = measured(cell, s.norms.criterion);
    }
}

/* Relax a colour. With a norm of KIND, reduce to one number per block, or, if ONE, to one
 * number in all if the norm is a maximum. */
template <int FROM, bool INTERLEAVED, bool ACROSS, typename T, int KIND, bool ONE>
struct RelaxColour {
    Plate<T> s;
    int colour;

    __device__ __forceinline__ void operator()() const
    {
        const int64_t place = colour * static_cast<int64_t>(gridDim.x) + blockIdx.x;
        NormAccumulator<T, KIND> norm;

        wait_for_last_kernel();
        relax_colour<FROM, INTERLEAVED, ACROSS>(s, colour, norm);
        if (join_block(norm)) {
            if (ONE) {
                norm.commit(s.norms, 0, place);
            }
            else {
                s.norms.sums[place] = norm.value();
            }
        }
    }
};

/* The arrays from the tables, the constants, the ghost cells and the source. */
template <bool INTERLEAVED, typename T> struct Fill {
    Plate<T> s;

    __device__ __forceinline__ void operator()(unsigned row, int64_t column) const
    {
        const ps_cuda_grid &g = s.grid;
        const int j = static_cast<int>(row) + 1, i = static_cast<int>(column) + 1;
        const int64_t at = place_of<INTERLEAVED>(g, i, j);
        T right = s.source != nullptr ? s.source[at] : T(0);
        /* The coefficient of a neighbour; what a ghost cell adds is in the right side. */
        const auto neighbour = [&](T a, bool is_ghost, int x, int y) {
            if (is_ghost) {
                right = plus(right, times(a, s.t[place_of<INTERLEAVED>(g, x, y)]));
            }
            return is_ghost ? T(0) : a;
        };

        s.coefficient[A_W][at] = neighbour(s.ax, i == 1, i - 1, j);
        s.coefficient[A_E][at] = neighbour(s.ax, i == g.nx, i + 1, j);
        s.coefficient[A_S][at] = neighbour(s.ay, j == 1, i, j - 1);
        s.coefficient[A_N][at] = neighbour(s.ay, j == g.ny, i, j + 1);
        s.coefficient[A_P][at] = s.diag[table_place<INTERLEAVED>(g, i, j)];
        s.coefficient[RIGHT][at] = right;
    }
};

/* Tiles in a row of tiles, and rows of tiles. */
struct Blocks {
    int64_t across, rows;
};

Blocks
blocks_of(const ps_laplace *l)
{
    const bool across = l->variant == PS_LAPLACE_NAIVE;
    const int64_t x = across ? tile_across : tile_along;
    const int64_t y = across ? tile_along : tile_across;

    return {(l->nx / 2 + x) / x, divided_up(l->ny, y)};
}

bool
is_by_cell(const ps_laplace *l)
{
    return l->variant != PS_LAPLACE_SHARED && l->variant != PS_LAPLACE_ATOMIC;
}

int64_t
parts_of(const ps_laplace *l)
{
    const Blocks blocks = blocks_of(l);

    return 2 * blocks.across * blocks.rows;
}

size_t
cell_bytes(const ps_laplace *l)
{
    return static_cast<size_t>(2 * (l->ny + 2) * l->pitch * ps_dtype_size(l->dtype));
}

/* One number per cell or block. */
size_t
number_bytes(const ps_laplace *l)
{
    return ps_cuda_padded(is_by_cell(l)
                              ? cell_bytes(l)
                              : static_cast<size_t>(parts_of(l)) * sizeof(double));
}

/* A call. Its workspace is one slot, then one number per cell or block, then the arrays of
 * coefficients. */
template <typename T> class Variant {
  public:
    Variant(const ps_laplace *l, const ps_exec *exec)
        : l_(l), stream_(ps_cuda_stream(exec)), blocks_(blocks_of(l))
    {
        char *const base = static_cast<char *>(exec->work);

        plate_.t = static_cast<T *>(l->t);
        plate_.diag = static_cast<const T *>(l->diag);
        plate_.gain = static_cast<const T *>(l->gain);
        plate_.source = static_cast<const T *>(l->source);
        plate_.ax = static_cast<T>(l->ax);
        plate_.ay = static_cast<T>(l->ay);
        plate_.grid = ps_cuda_grid_of(l->nx, l->ny, l->pitch);
        plate_.across = static_cast<unsigned>(blocks_.across);
        room_ = base + ps_cuda_padded(sizeof(double));
        plate_.norms.criterion = l->stop.criterion;
        plate_.norms.last = 1;
        ps_cuda_norm_rows(&plate_.norms, &l->stop, plate_.grid.ny);
        plate_.norms.slots = reinterpret_cast<uint64_t *>(base);
        plate_.norms.sums = reinterpret_cast<double *>(room_);
        plate_.norms.parts = parts_of(l);
        for (int k = 0; k < COEFFICIENTS && l->coefficients != PS_LAPLACE_TABLES; k++) {
            plate_.coefficient[k] = reinterpret_cast<T *>(
                room_ + number_bytes(l) + k * ps_cuda_padded(cell_bytes(l)));
        }
    }

    /* Set the places between the cells, and those of rows that do not count, to 0. */
    ps_status prepare()
    {
        const ps_status status =
            is_by_cell(l_)
                ? ps_cuda_status(cudaMemsetAsync(room_, 0, cell_bytes(l_), stream_))
                : PS_OK;

        return status == PS_OK && l_->coefficients != PS_LAPLACE_TABLES ? fill() : status;
    }

    ps_status iterate(bool measures)
    {
        plate_.norms.kind = measures ? ps_cuda_norm_of(&l_->stop) : PS_CUDA_NORM_NONE;
        plate_.cells = measures ? reinterpret_cast<T *>(room_) : nullptr;
        switch (l_->variant) {
        case PS_LAPLACE_NAIVE:
            return launch_cells<true, true>();
        case PS_LAPLACE_COALESCED:
            return launch_cells<true, false>();
        case PS_LAPLACE_SPLIT:
            return launch_cells<false, false>();
        case PS_LAPLACE_SHARED:
            plate_.cells = nullptr;
            return launch_blocks<false>();
        default:
            plate_.cells = nullptr;
            return launch_blocks<true>();
        }
    }

    /* Wait for the norm of the last iteration and read it. */
    ps_status read(double *measure) const
    {
        if (l_->variant != PS_LAPLACE_ATOMIC) {
            return is_by_cell(l_) ? read_all<T>(cell_bytes(l_) / sizeof(T), measure)
                                  : read_all<double>(parts_of(l_), measure);
        }
        const ps_status status =
            ps_cuda_relax_mean(&plate_.norms, plate_.grid.nx, stream_);

        return status == PS_OK ? fetch(measure, plate_.norms.slots, sizeof *measure)
                               : status;
    }

  private:
    template <int FROM, bool INTERLEAVED, bool ACROSS, int KIND, bool ONE>
    ps_status relax_both()
    {
        const auto relax = [&](int colour) {
            return for_threads<relax_threads>(
                blocks_.across * blocks_.rows, stream_,
                RelaxColour<FROM, INTERLEAVED, ACROSS, T, KIND, ONE>{plate_, colour});
        };
        const ps_status status = relax(0);

        return status == PS_OK ? relax(1) : status;
    }

    /* use(integral_constant<int, l_->coefficients>) */
    template <typename Use> ps_status with_coefficients(const Use &use)
    {
        switch (l_->coefficients) {
        case PS_LAPLACE_ARRAYS:
            return use(std::integral_constant<int, PS_LAPLACE_ARRAYS>());
        case PS_LAPLACE_TEXTURE:
            return use(std::integral_constant<int, PS_LAPLACE_TEXTURE>());
        default:
            return use(std::integral_constant<int, PS_LAPLACE_TABLES>());
        }
    }

    template <bool INTERLEAVED, bool ACROSS> ps_status launch_cells()
    {
        return with_coefficients([&](auto from) {
            return relax_both<from.value, INTERLEAVED, ACROSS, PS_CUDA_NORM_NONE,
                              false>();
        });
    }

    ps_status fill()
    {
        const bool is_interleaved =
            l_->variant == PS_LAPLACE_NAIVE || l_->variant == PS_LAPLACE_COALESCED;
        const int64_t rows = plate_.grid.ny, cells = plate_.grid.nx;
        ps_status status =
            is_interleaved
                ? for_rows_of_elements(rows, cells, stream_, Fill<true, T>{plate_})
                : for_rows_of_elements(rows, cells, stream_, Fill<false, T>{plate_});

        for (int k = 0; status == PS_OK && k < COEFFICIENTS &&
                        l_->coefficients == PS_LAPLACE_TEXTURE;
             k++) {
            const int64_t count = static_cast<int64_t>(cell_bytes(l_) / sizeof(T));

            status = textures_.bind<T>(plate_.coefficient[k], count, stream_);
            plate_.texels[k] = textures_[k];
        }
        return status;
    }

    template <bool ONE> ps_status launch_blocks()
    {
        const ps_status status =
            ps_cuda_status(cudaMemsetAsync(plate_.norms.slots, 0, 8, stream_));

        return status != PS_OK ? status : with_norm(plate_.norms.kind, [&](auto kind) {
            return with_coefficients([&](auto from) {
                return relax_both<from.value, false, false, kind.value, ONE>();
            });
        });
    }

    ps_status fetch(void *to, const void *from, size_t bytes) const
    {
        const cudaError_t error =
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_);

        return ps_cuda_status(error == cudaSuccess ? cudaStreamSynchronize(stream_)
                                                   : error);
    }

    /* The maximum, NaN if one number is NaN, or the root mean square of numbers on the
     * device; parts of a sum are squared already. */
    template <typename Number> ps_status read_all(size_t count, double *measure) const
    {
        constexpr size_t chunk = chunk_bytes / sizeof(Number);
        const bool sums = l_->stop.norm == PS_NORM_L2, squares = !is_by_cell(l_);
        const Number *const from = reinterpret_cast<const Number *>(room_);
        Number number[chunk];
        double most = 0, sum = 0;

        for (size_t first = 0; first < count; first += chunk) {
            const size_t length = count - first < chunk ? count - first : chunk;
            const ps_status status = fetch(number, from + first, length * sizeof(Number));

            if (status != PS_OK) {
                return status;
            }
            for (size_t k = 0; k < length; k++) {
                const double x = number[k];

                sum += squares ? x : x * x;
                most = fabs(x) <= most ? most : fabs(x);
            }
        }
        const int rows = plate_.norms.end_row - plate_.norms.first_row;

        *measure = sums         ? sqrt(sum / (static_cast<double>(l_->nx) * rows))
                   : isnan(sum) ? sum
                                : most;
        return PS_OK;
    }

    const ps_laplace *const l_;
    const cudaStream_t stream_;
    const Blocks blocks_;
    char *room_;
    Plate<T> plate_ = {};
    Textures<COEFFICIENTS> textures_;
};

/* Record a norm; the history is in device memory. */
ps_status
record_norm(const ps_stop *stop, double measure, cudaStream_t stream,
            ps_relax_report *report)
{
    double *const entry = stop->history + report->measures;

    report->measure = measure;
    report->measures++;
    if (!(measure > stop->tolerance) || isinf(measure)) {
        report->end = isfinite(measure) ? PS_END_TOLERANCE : PS_END_NOT_FINITE;
    }
    return stop->history == nullptr
               ? PS_OK
               : ps_cuda_status(cudaMemcpyAsync(entry, &report->measure, sizeof *entry,
                                                cudaMemcpyHostToDevice, stream));
}

template <typename T>
ps_status
run(const ps_laplace *l, int64_t count, const ps_exec *exec, ps_relax_report *report)
{
    const cudaStream_t stream = ps_cuda_stream(exec);
    const int64_t every = l->stop.every;
    Variant<T> variant(l, exec);
    ps_status status = variant.prepare();

    while (status == PS_OK && report->iterations < count && report->end == PS_END_COUNT) {
        const int64_t number = report->iterations + 1;
        const bool measures = every > 0 && (number % every == 0 || number == count);
        double measure = NAN;

        status = variant.iterate(measures);
        if (status == PS_OK && measures) {
            status = variant.read(&measure);
        }
        if (status == PS_OK) {
            report->iterations = number;
            status = measures ? record_norm(&l->stop, measure, stream, report) : PS_OK;
        }
        if (status == PS_OK && exec->poll != nullptr &&
            exec->poll(exec->poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
    }
    const ps_status ended = ps_cuda_status(cudaStreamSynchronize(stream));

    return status == PS_OK ? ended : status;
}

} // namespace

size_t
ps_cuda_laplace_variant_work(const ps_laplace *l)
{
    const size_t arrays = l->coefficients == PS_LAPLACE_TABLES ? 0 : COEFFICIENTS;

    return ps_cuda_padded(sizeof(double)) + number_bytes(l) +
           arrays * ps_cuda_padded(cell_bytes(l));
}

ps_status
ps_cuda_laplace_variant(const ps_laplace *l, int64_t count, const ps_exec *exec,
                        ps_relax_report *report)
{
    static const char *const names[] = {"auto",  "naive",  "coalesced",
                                        "split", "shared", "atomic"};

    if (exec->work_bytes < ps_cuda_laplace_variant_work(l)) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    report->measure = NAN;
    report->end = PS_END_COUNT;
    report->kernel = names[l->variant];
    return with_real(
        l->dtype, [&](auto zero) { return run<decltype(zero)>(l, count, exec, report); });
}

} // namespace pysolvers::relaxation
