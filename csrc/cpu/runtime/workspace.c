/* workspace.c - alignment of the parts of a workspace. */
#include "runtime/workspace.h"

size_t
ps_aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}
