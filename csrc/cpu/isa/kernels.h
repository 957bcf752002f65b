/* kernels.h - compile the line kernels for one instruction set and one dtype.
 *
 * A file <dtype>_<set>.c defines PS_ISA and PS_VECTOR_BYTES, and <dtype>.h defines the
 * numbers; the compiler flags of the file select the instructions. Each such file is a
 * translation unit of its own, so that they compile in parallel.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lines/kernels.h"
#include "isa/vector.h"

#define PS_CAT_(a, b) a##b
#define PS_CAT(a, b) PS_CAT_(a, b)
#define PS_INLINE static inline __attribute__((always_inline))
#define PS_SEPARATE static __attribute__((noinline))

/* Define a function with code of its own for some constants: `call` calls an inline
 * function with them. */
#define PS_SPECIAL(result, name, parameters, call) \
    PS_SEPARATE result name parameters             \
    {                                              \
        return call;                               \
    }

#include "isa/engine.inc"
