/* pack.cuh - neighbouring numbers that one load or store moves. */
#ifndef PS_CUDA_DEVICE_PACK_CUH
#define PS_CUDA_DEVICE_PACK_CUH

namespace pysolvers::device {

template <typename Number, int WIDTH> struct alignas(WIDTH * sizeof(Number)) Pack {
    Number of[WIDTH];
};

} // namespace pysolvers::device

#endif
