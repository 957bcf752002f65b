/* workspace.h - alignment of the parts of a workspace. */
#ifndef PS_CPU_WORKSPACE_H
#define PS_CPU_WORKSPACE_H

#include <stddef.h>

/* Round up to a multiple of 64 bytes, the alignment of a workspace. */
size_t ps_aligned(size_t bytes);

#endif
