/* relax_kernels.cuh - the kernels of a rule as a Relaxation. */
#ifndef PS_CUDA_RELAX_KERNELS_CUH
#define PS_CUDA_RELAX_KERNELS_CUH

#include "relax_gauges.h"
#include "relax_march.cuh"
#include "relax_plain.cuh"
#include "relax_tile.cuh"

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
    ps_status iterate(void *u, const ps_cuda_gauges &gauges,
                      cudaStream_t stream) const override
    {
        const Plain<Rule> s = {rule_, grid_, static_cast<value *>(u),
                               plain_chunks<Rule>(grid_), gauges};

        return with_gauge(gauges.kind,
                          [&](auto kind) { return launch_plain<kind.value>(s, stream); });
    }
    ps_status pass(const void *, void *, const ps_cuda_gauges &,
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

/* Several iterations in a pass, and what is left of them as above: 8 where all tiles of
 * the grid find room on the device at once, else 4, if a march finds room. */
template <typename Rule> class BlockKernels final : public PlainKernels<Rule> {
  public:
    using typename PlainKernels<Rule>::value;

    BlockKernels(const Rule &rule, const ps_cuda_grid &grid, ps_cuda_gauge kind)
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
        return tiles_.warps > 0 ? PS_OK : prepare_march(device);
    }
    ps_status pass(const void *from, void *to, const ps_cuda_gauges &gauges,
                   cudaStream_t stream) const override
    {
        const value *const before = static_cast<const value *>(from);
        value *const after = static_cast<value *>(to);

        return with_gauge(gauges.kind, [&](auto kind) {
            if (tiles_.warps > 0) {
                const Tiles<Rule> m = {this->rule_, this->grid_, before,
                                       after,       tiles_,      gauges};

                return launch_tiles<in_tile, kind.value>(m, stream);
            }
            const March<Rule> m = {this->rule_, this->grid_, before,
                                   after,       march_,      gauges};

            return launch_march<in_march, kind.value>(m, stream);
        });
    }
    int block() const override
    {
        return tiles_.warps > 0 ? in_tile : march_.warps > 0 ? in_march : 0;
    }
    int64_t parts(int length) const override
    {
        if (length == 1) {
            return PlainKernels<Rule>::parts(length);
        }
        return tiles_.warps > 0 ? int64_t(tiles_.strips) * tiles_.parts
                                : int64_t(march_.strips) * march_.parts;
    }
    const char *kernel() const override
    {
        return tiles_.warps > 0   ? "8 iterations a tile"
               : march_.warps > 0 ? "4 iterations a march"
                                  : "a colour after the other";
    }

  private:
    static constexpr int in_tile = 8, in_march = 4;

    ps_status prepare_march(const ps_cuda_device *device)
    {
        return with_gauge(kind_, [&](auto kind) {
            cudaError_t error = allow_shared(march_kernel<Rule, in_march, PS_GAUGE_NONE>);

            if (error == cudaSuccess) {
                error = allow_shared(march_kernel<Rule, in_march, kind.value>);
            }
            if (error == cudaSuccess) {
                error =
                    shape_march<Rule, in_march, kind.value>(this->grid_, device, &march_);
            }
            return ps_cuda_status(error);
        });
    }

    const ps_cuda_gauge kind_;
    TileShape tiles_ = {};
    MarchShape march_ = {};
};

#endif
