/* relax_kernels.cuh - the kernels of a rule as a Relaxation. */
#ifndef PS_CUDA_RELAXATION_RELAX_KERNELS_CUH
#define PS_CUDA_RELAXATION_RELAX_KERNELS_CUH

#include "relaxation/relax.cuh"
#include "relaxation/relax_blocked_sweep.cuh"
#include "relaxation/relax_plain.cuh"
#include "relaxation/relax_tile.cuh"

namespace pysolvers::relaxation {

/* One colour after the other. */
template <typename Rule> class PlainKernels : public Relaxation {
  public:
    using value = typename Rule::value;

    PlainKernels(const Rule &rule, const ps_cuda_grid &grid, const char *name)
        : rule_(rule), grid_(grid), name_(name)
    {
    }

    ps_status prepare() override
    {
        return PS_OK;
    }
    ps_status iterate(void *u, const ps_cuda_norms &norms,
                      cudaStream_t stream) const override
    {
        const Plain<Rule> s = {rule_, grid_, static_cast<value *>(u),
                               plain_chunks<Rule>(grid_), norms};

        return with_norm(norms.kind,
                         [&](auto kind) { return launch_plain<kind.value>(s, stream); });
    }
    ps_status pass(const void *, void *, const ps_cuda_norms &,
                   cudaStream_t) const override
    {
        return PS_UNSUPPORTED;
    }
    int block() const override
    {
        return 0;
    }
    int64_t parts(int) const override
    {
        return 2 * plain_blocks<Rule>(grid_);
    }
    const char *kernel() const override
    {
        return name_;
    }

  protected:
    const Rule rule_;
    const ps_cuda_grid grid_;

  private:
    const char *const name_;
};

/* Several iterations per pass, and the remaining ones as above: 8 if all tiles of the
 * grid can be resident on the device, otherwise 4 if a blocked sweep can be. */
template <typename Rule> class BlockKernels final : public PlainKernels<Rule> {
  public:
    using typename PlainKernels<Rule>::value;

    BlockKernels(const Rule &rule, const ps_cuda_grid &grid, ps_cuda_norm kind)
        : PlainKernels<Rule>(rule, grid, nullptr), kind_(kind)
    {
    }

    ps_status prepare() override
    {
        const ps_cuda_device *const device = ps_cuda_device_get();

        if (device == nullptr) {
            return PS_DEVICE_FAILURE;
        }
        tiles_ = tile_shape<in_tile>(this->grid_, device->processors);
        return tiles_.warps > 0 ? PS_OK : prepare_blocked_sweep(device);
    }
    ps_status pass(const void *from, void *to, const ps_cuda_norms &norms,
                   cudaStream_t stream) const override
    {
        const value *const before = static_cast<const value *>(from);
        value *const after = static_cast<value *>(to);

        return with_norm(norms.kind, [&](auto kind) {
            if (tiles_.warps > 0) {
                const Tiles<Rule> m = {this->rule_, this->grid_, before,
                                       after,       tiles_,      norms};

                return launch_tiles<in_tile, kind.value>(m, stream);
            }
            const BlockedSweep<Rule> m = {this->rule_, this->grid_, before,
                                          after,       blocked_,    norms};

            return launch_blocked_sweep<in_sweep, kind.value>(m, stream);
        });
    }
    int block() const override
    {
        return tiles_.warps > 0 ? in_tile : blocked_.warps > 0 ? in_sweep : 0;
    }
    int64_t parts(int length) const override
    {
        if (length == 1) {
            return PlainKernels<Rule>::parts(length);
        }
        return tiles_.warps > 0 ? int64_t(tiles_.strips) * tiles_.parts
                                : int64_t(blocked_.strips) * blocked_.parts;
    }
    const char *kernel() const override
    {
        return tiles_.warps > 0     ? "8 iterations a tile"
               : blocked_.warps > 0 ? "4 iterations a blocked sweep"
                                    : "a colour after the other";
    }

  private:
    static constexpr int in_tile = 8, in_sweep = 4;

    ps_status prepare_blocked_sweep(const ps_cuda_device *device)
    {
        return with_norm(kind_, [&](auto kind) {
            cudaError_t error =
                allow_shared(blocked_sweep_kernel<Rule, in_sweep, PS_CUDA_NORM_NONE>);

            if (error == cudaSuccess) {
                error = allow_shared(blocked_sweep_kernel<Rule, in_sweep, kind.value>);
            }
            if (error == cudaSuccess) {
                error = shape_blocked_sweep<Rule, in_sweep, kind.value>(
                    this->grid_, device, &blocked_);
            }
            return ps_cuda_status(error);
        });
    }

    const ps_cuda_norm kind_;
    TileShape tiles_ = {};
    BlockedShape blocked_ = {};
};

} // namespace pysolvers::relaxation

#endif
