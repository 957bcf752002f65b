/* fp_mode.h - the floating-point mode of a thread: rounding and subnormal numbers.
 *
 * Every entry of the backend computes in the default mode of IEEE 754 (rounding to
 * nearest, gradual underflow, no traps) and restores the mode of the calling thread. The
 * result then depends neither on the mode of the process nor on the threads: a new thread
 * inherits the mode of the thread that starts it, and some programs flush subnormal
 * numbers to zero (XLA in its custom calls and callbacks, programs that are linked with
 * -ffast-math). The control word is written only if it differs: 1 to 2 ns per call.
 */
#ifndef PS_CPU_FP_MODE_H
#define PS_CPU_FP_MODE_H

#include <stdint.h>

#include "pysolvers.h"

#if defined(__x86_64__)

typedef uint32_t ps_fp_mode;

/* MXCSR: bit 6 denormals are zeros, 7 to 12 masks of exceptions, 13 and 14 rounding,
 * 15 flush to zero. The flags in bits 0 to 5 are not part of the mode. */
#define PS_FP_MODE_BITS_ 0xffc0u
#define PS_FP_MODE_DEFAULT_ 0x1f80u

static inline int
ps_fp_mode_is_default_(ps_fp_mode mode)
{
    return (mode & PS_FP_MODE_BITS_) == PS_FP_MODE_DEFAULT_;
}

/* Set the default mode in the calling thread; return the mode before. */
static inline ps_fp_mode
ps_fp_mode_enter(void)
{
    const ps_fp_mode mode = __builtin_ia32_stmxcsr();

    if (!ps_fp_mode_is_default_(mode)) {
        __builtin_ia32_ldmxcsr(PS_FP_MODE_DEFAULT_);
    }
    return mode;
}

/* Restore the mode that ps_fp_mode_enter() returned. */
static inline void
ps_fp_mode_leave(ps_fp_mode mode)
{
    if (!ps_fp_mode_is_default_(mode)) {
        __builtin_ia32_ldmxcsr(mode);
    }
}

#elif defined(__aarch64__)

/* FPCR: zero is the default of every field. */
typedef uint64_t ps_fp_mode;

static inline ps_fp_mode
ps_fp_mode_enter(void)
{
    ps_fp_mode mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode)::"memory");
    if (mode != 0) {
        __asm__ volatile("msr fpcr, %0" ::"r"((ps_fp_mode)0) : "memory");
    }
    return mode;
}

static inline void
ps_fp_mode_leave(ps_fp_mode mode)
{
    if (mode != 0) {
        __asm__ volatile("msr fpcr, %0" ::"r"(mode) : "memory");
    }
}

#else

#include <fenv.h>

typedef fenv_t ps_fp_mode;

static inline ps_fp_mode
ps_fp_mode_enter(void)
{
    ps_fp_mode mode;

    (void)fegetenv(&mode);
    (void)fesetenv(FE_DFL_ENV);
    return mode;
}

static inline void
ps_fp_mode_leave(ps_fp_mode mode)
{
    (void)fesetenv(&mode);
}

#endif

/* An entry of a table of the backend: a function in the default mode. */
#define PS_IN_DEFAULT_MODE(name, function, parameters, arguments) \
    static ps_status name parameters                              \
    {                                                             \
        const ps_fp_mode mode = ps_fp_mode_enter();               \
        const ps_status status = function arguments;              \
                                                                  \
        ps_fp_mode_leave(mode);                                   \
        return status;                                            \
    }

#endif
