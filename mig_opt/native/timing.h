/* Times of the instances of one GPU; mig_opt/batch/timing.py says what the schedule is. */
#ifndef MIG_OPT_TIMING_H
#define MIG_OPT_TIMING_H

#include "state.h"

enum { MAX_PLACES = 62 };

/* The index of the lowest bit that is set. */
static inline int64_t lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }

/* Returns the makespan of the schedule that runs outer instances before inner ones, as GpuTimeline.times does, on a GPU
 * whose places are some in a row. */
int64_t gpu_makespan(const Operations *operations, const State *state, int64_t first, int64_t count);

#endif
