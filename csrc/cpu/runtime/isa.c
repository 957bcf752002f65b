/* isa.c - choice of the instruction set at run time. */
#include "runtime/isa.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const ps_isa *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Whether PYSOLVERS_ISA allows instruction sets of this rank: 1 AVX2, 2 AVX-512. Unknown
 * names set no limit. */
static int
allowed(int rank)
{
    static const char *const limits[] = {"baseline", "avx2"};
    const char *const limit = getenv("PYSOLVERS_ISA");

    for (int most = 0; limit != NULL && most < 2; most++) {
        if (strcmp(limit, limits[most]) == 0) {
            return rank <= most;
        }
    }
    return 1;
}

static void
choose(void)
{
    chosen = &ps_isa_baseline;
#if defined(PS_HAVE_AVX2) || defined(PS_HAVE_AVX512)
    __builtin_cpu_init();
#endif
#ifdef PS_HAVE_AVX2
    if (allowed(1) && __builtin_cpu_supports("avx2")) {
        chosen = &ps_isa_avx2;
    }
#endif
#ifdef PS_HAVE_AVX512
    if (allowed(2) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        chosen = &ps_isa_avx512;
    }
#endif
    (void)allowed;
}

const ps_isa *
ps_isa_get(void)
{
    pthread_once(&once, choose);
    return chosen;
}
