/* narrow.c - the table of the line kernels for systems too long for full vectors: one
 * element of 8 bytes a vector.
 *
 * Few long systems use it, each as a whole: the eliminated rows of full vectors would not
 * fit the caches. The arithmetic is that of every other instruction set.
 */
#define PS_ISA narrow
#define PS_ISA_NAME "scalar"
#define PS_VECTOR_BYTES 8

#include "isa/table.h"
