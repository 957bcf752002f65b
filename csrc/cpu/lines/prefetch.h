/* prefetch.h - software prefetch of addresses that may be beyond the arrays. */
#ifndef PS_CPU_LINES_PREFETCH_H
#define PS_CPU_LINES_PREFETCH_H

#include <stdint.h>

/* Prefetch the cache lines of `bytes` bytes into the second-level cache. */
PS_INLINE void
prefetch_run(uintptr_t at, unsigned bytes)
{
#pragma GCC unroll 8
    for (unsigned k = 0; k < bytes; k += 64) {
        __builtin_prefetch((const void *)(at + k), 0, 2);
    }
}

/* Prefetch a cache line that is used soon into the first-level cache. */
PS_INLINE void
prefetch_near(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 3);
}

#endif
