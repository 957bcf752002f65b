/* dlpack.h - the structs of DLPack 1.x that the binding reads
 * (https://dmlc.github.io/dlpack).
 *
 * A library offers an array as a DLTensor: in a capsule that its method __dlpack__()
 * returns, or through the functions of DLPackExchangeAPI, which its type offers in the
 * attribute __dlpack_c_exchange_api__.
 */
#ifndef PS_PYTHON_DLPACK_H
#define PS_PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_MAJOR_VERSION = 1 };

/* Device types and type codes. */
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_MANAGED = 13 };
enum { DL_FLOAT = 2, DL_COMPLEX = 5, DL_BOOL = 6 };

/* Bit of DLManagedTensorVersioned.flags. */
enum { DL_READ_ONLY = 1 };

typedef struct {
    uint32_t major, minor;
} DLPackVersion;

typedef struct {
    int32_t type, id;
} DLDevice;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

/* Strides count elements; null for C order. */
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor tensor;
} DLManagedTensorVersioned;

/* Each function returns 0, or -1 with an exception. borrow() fills a DLTensor that is
 * valid while the caller has a reference to the object, and orders no streams. */
typedef struct DLPackExchangeAPI {
    DLPackVersion version;
    struct DLPackExchangeAPI *previous;
    void (*allocate)(void);
    void (*lend)(void);
    void (*wrap)(void);
    int (*borrow)(void *object, DLTensor *tensor);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} DLPackExchangeAPI;

#endif
