/* Sets of tasks that a branch of a layout can run; mig_opt/batch/loads/task_sets.py says what they are. */
#ifndef MIG_OPT_TASK_SETS_H
#define MIG_OPT_TASK_SETS_H

#include "arrays.h"

/* A set of tasks as bits, the last of which is no task; and how many tasks it has at most. */
typedef unsigned __int128 Set;
enum { BITS = 64, MOST_TASKS = 127 };

static const Set one_task = 1;

/* The set in a row of an array: the first word has the first tasks. */
static inline Set set_at(const IntegerRows *sets, int64_t row)
{
    const int64_t *words = sets->at + row * sets->columns;
    return sets->columns > 1 ? (Set)(uint64_t)words[1] << BITS | (uint64_t)words[0] : (uint64_t)words[0];
}

static inline void write_set(IntegerRows *sets, int64_t row, Set set)
{
    for (int64_t word = 0; word < least(2, sets->columns); word++, set >>= BITS)
        sets->at[row * sets->columns + word] = (int64_t)set;
}

/* The first task of a set that has any. */
static inline int64_t first_of(Set set)
{
    return (uint64_t)set ? __builtin_ctzll((uint64_t)set) : BITS + __builtin_ctzll((uint64_t)(set >> BITS));
}

/* Number of a set that hardly two sets have in their last bits. */
static inline uint64_t hash_of(Set set)
{
    return ((uint64_t)set ^ (uint64_t)(set >> BITS) * 0xbf58476d1ce4e5b9) * 0x9e3779b97f4a7c15 >> 24;
}

/* A set with the ticks of the longest path and the sum of the dual prices. */
typedef struct { Set set; int64_t length, value; } TaskSet;

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
