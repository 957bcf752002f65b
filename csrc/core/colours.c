/* colours.c - common checks of the fields of red-black relaxations. */
#include "colours.h"

#include "ps_stop.h"

enum { PITCH_UNIT = 16 };

int
ps_colours_legal(ps_dtype dtype, int64_t nx, int64_t ny, int64_t pitch)
{
    if (!ps_is_real(dtype) || nx < 1 || ny < 1 || nx > INT32_MAX - 3 ||
        ny > INT32_MAX - 3) {
        return 0;
    }
    return pitch % PITCH_UNIT == 0 && pitch >= (nx + 3) / 2 &&
           pitch <= INT64_MAX / 16 / (ny + 2);
}

int
ps_colours_periodic(uint32_t periodic, int64_t nx, int64_t ny)
{
    return (periodic & ~(uint32_t)(PS_PERIODIC_X | PS_PERIODIC_Y)) == 0 &&
           !((periodic & PS_PERIODIC_X) && nx % 2 != 0) &&
           !((periodic & PS_PERIODIC_Y) && ny % 2 != 0);
}

int
ps_colours_apart(const void *to, int64_t bytes, const void *other, int64_t other_bytes)
{
    const uintptr_t a = (uintptr_t)to, b = (uintptr_t)other;

    return other == NULL || a + (uintptr_t)bytes <= b || b + (uintptr_t)other_bytes <= a;
}
