/* Views of numpy arrays, as mig_opt/native/__init__.py passes them: the address of the first entry, then the shape.
 *
 * Every field of every structure has eight bytes, so a named tuple of arrays and numbers is a structure of views and
 * numbers in the same order. Arrays are contiguous, row by row.
 */
#ifndef MIG_OPT_ARRAYS_H
#define MIG_OPT_ARRAYS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct { int64_t *at, count; } Integers;
typedef struct { int64_t *at, rows, columns; } IntegerRows;
typedef struct { int32_t *at; int64_t count; } Table;
typedef struct { int32_t *at; int64_t rows, columns; } TableRows;
typedef struct { double *at; int64_t count; } Floats;
typedef struct { double *at; int64_t rows, columns; } FloatRows;
typedef struct { bool *at; int64_t count; } Flags;
typedef struct { bool *at; int64_t rows, columns; } FlagRows;

/* A function that Python calls. */
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

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
