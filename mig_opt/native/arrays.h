/* What all loops need. */
#ifndef MIG_OPT_ARRAYS_H
#define MIG_OPT_ARRAYS_H

#include "loops.h"

_Static_assert(sizeof(void *) == 8, "every field of a structure has eight bytes");

/* Loops over tables gain from instructions that not every processor has: the best version is taken when the library is
 * loaded. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define VECTORISED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif

static inline int64_t least(int64_t one, int64_t two) { return one < two ? one : two; }
static inline int64_t most(int64_t one, int64_t two) { return one > two ? one : two; }
static inline double longest(double one, double two) { return one > two ? one : two; }

#endif
