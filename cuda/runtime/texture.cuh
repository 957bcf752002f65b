/* texture.cuh - arrays in linear memory that kernels read as textures.
 *
 * A texture is read through the texture cache, which sees a write of an earlier kernel of
 * the stream, but not one of a kernel that runs at the same time: a kernel that reads a
 * texture is launched without programmatic dependent launch.
 */
#ifndef PS_CUDA_RUNTIME_TEXTURE_CUH
#define PS_CUDA_RUNTIME_TEXTURE_CUH

#include "runtime/engine.h"

namespace pysolvers::runtime {

/* An array of float or double: texel i is element i behind `base`, which lies at or before
 * the first element, where a texture may begin. */
struct Texels {
    cudaTextureObject_t object;
    const void *base;
};

/* The texels of an array, and the number of a texel: there are no texels of double. */
template <typename Real> struct texel_of;

template <> struct texel_of<float> {
    using type = float;
    static __device__ __forceinline__ float number(float texel)
    {
        return texel;
    }
};

template <> struct texel_of<double> {
    using type = int2;
    static __device__ __forceinline__ double number(int2 texel)
    {
        return __hiloint2double(texel.y, texel.x);
    }
};

/* *at, for an address in the array. */
template <typename Real>
__device__ __forceinline__ Real
fetch(const Texels &texels, const Real *at)
{
    const int64_t i = at - static_cast<const Real *>(texels.base);

    return texel_of<Real>::number(
        tex1Dfetch<typename texel_of<Real>::type>(texels.object, static_cast<int>(i)));
}

/* Textures of a call. They are destroyed after the stream has completed the call. */
template <int most> class Textures {
  public:
    Textures() = default;
    Textures(const Textures &) = delete;
    Textures &operator=(const Textures &) = delete;

    ~Textures()
    {
        if (count_ > 0) {
            cudaStreamSynchronize(stream_);
        }
        for (int k = 0; k < count_; k++) {
            cudaDestroyTextureObject(bound_[k].object);
        }
    }

    /* The next texture: `count` numbers from `first` on. PS_UNSUPPORTED if a texture of
     * the device holds fewer. */
    template <typename Real>
    ps_status bind(const Real *first, int64_t count, cudaStream_t stream)
    {
        const cudaChannelFormatDesc format =
            cudaCreateChannelDesc<typename texel_of<Real>::type>();
        cudaResourceDesc resource = {};
        cudaTextureDesc how = {};
        size_t longest = 0;
        int device = 0, alignment = 1;
        cudaError_t error = cudaGetDevice(&device);

        if (error == cudaSuccess) {
            error =
                cudaDeviceGetAttribute(&alignment, cudaDevAttrTextureAlignment, device);
        }
        if (error == cudaSuccess) {
            error = cudaDeviceGetTexture1DLinearMaxWidth(&longest, &format, device);
        }
        if (error != cudaSuccess) {
            return ps_cuda_status(error);
        }
        const uintptr_t begin = reinterpret_cast<uintptr_t>(first);
        const size_t before = begin % static_cast<uintptr_t>(alignment) / sizeof(Real);
        const size_t texels = static_cast<size_t>(count) + before;

        if (texels > longest) {
            return PS_UNSUPPORTED;
        }
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = const_cast<Real *>(first - before);
        resource.res.linear.desc = format;
        resource.res.linear.sizeInBytes = texels * sizeof(Real);
        how.readMode = cudaReadModeElementType;
        stream_ = stream;
        error = cudaCreateTextureObject(&bound_[count_].object, &resource, &how, nullptr);
        bound_[count_].base = first - before;
        count_ += error == cudaSuccess;
        return ps_cuda_status(error);
    }

    const Texels &operator[](int k) const
    {
        return bound_[k];
    }

  private:
    Texels bound_[most] = {};
    int count_ = 0;
    cudaStream_t stream_ = nullptr;
};

} // namespace pysolvers::runtime

#endif
