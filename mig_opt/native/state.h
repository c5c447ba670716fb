/* State of the local search; mig_opt/batch/loads/neighbourhood.py says what each array is. */
#ifndef MIG_OPT_STATE_H
#define MIG_OPT_STATE_H

#include "arrays.h"

enum { LEAF = 0, STACK = 1, SPLIT = 2 };

/* Load and number of tasks of each place; longest path and number of tasks of each branch. */
typedef struct { int64_t *load, *tasks, *longest, *busy; } State;

static inline int64_t ticks_of(const Costs *costs, int64_t task, int64_t place) {
    return costs->ticks.at[task * costs->ticks.columns + place];
}

static inline double weighted_ticks_of(const Costs *costs, int64_t task, int64_t place) {
    return costs->weighted.at[task * costs->weighted.columns + place];
}

static inline void add_task(const Costs *costs, State *state, int64_t task, int64_t place, int64_t sign) {
    state->load[place] += sign * ticks_of(costs, task, place);
    state->tasks[place] += sign;
}

/* Ticks of the place of a stack, besides its tasks, if it is used. Its destruction is spared if nothing comes after it. */
static inline int64_t used_ticks_of(const Costs *costs, const FlatTree *tree, const State *state, int64_t node) {
    int64_t place = tree->place.at[node];
    bool last = !tree->around.at[node] && !state->busy[tree->inside.at[node]];
    return costs->used.at[place] - (last ? costs->spared.at[place] : 0);
}

/* Number of entries of the memory of a state. */
static inline int64_t state_size(const FlatTree *tree) { return 2 * (tree->gpu.count + tree->kind.count); }

State empty_state(const FlatTree *tree, int64_t *memory);
void update_paths(const Costs *costs, const FlatTree *tree, State *state, int64_t gpu);
void mark_longest_path(const FlatTree *tree, const State *state, int64_t gpu, bool *on_path);
void path_sums(
    const Costs *costs, const FlatTree *tree, const State *state, int64_t gpu, int64_t *within, int64_t *above);

#endif
