/* Sets of tasks that a branch of a layout can run; mig_opt/batch/loads/task_sets.py says what they are. */
#ifndef MIG_OPT_TASK_SETS_H
#define MIG_OPT_TASK_SETS_H

#include "arrays.h"

/* A set of tasks as bits, with the ticks of the longest path and the sum of the dual prices. */
typedef struct { int64_t set, length, value; } TaskSet;

/* Sets in memory that grows; there are at most so many of them. */
typedef struct { TaskSet *at; int64_t count, room, most; } TaskSets;

/* Tasks in one more placement, and the value that everything else can have: of the last tasks in the placement and all
 * outside of it, for each number of these tasks and of the grains that are left. */
typedef struct {
    const int32_t *ticks, *prices;
    const TableRows *best;
    int64_t grain, at_most, needed, may_be_empty, steps_left;
} Extension;

/* Adds a set; returns false if there are too many, or no memory. */
bool add_set(TaskSets *sets, TaskSet set);

/* Adds a set with any tasks in one more placement, as long as it can be worth enough; returns false if there are too many
 * of them, or steps. */
bool extend_set(Extension *how, TaskSet without, TaskSets *found);

#endif
