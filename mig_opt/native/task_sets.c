#include "task_sets.h"

#include <stdlib.h>

#include "layout_nodes.h"

bool add_set(TaskSets *sets, TaskSet set)
{
    if (sets->count == sets->most)
        return false;
    if (sets->count == sets->room) {
        int64_t room = most(64, 2 * sets->room);
        TaskSet *larger = realloc(sets->at, (size_t)room * sizeof *larger);
        if (!larger)
            return false;
        sets->at = larger, sets->room = room;
    }
    sets->at[sets->count++] = set;
    return true;
}

/* A depth-first search over the tasks: at each depth one more of them is taken or left. */
bool extend_set(Extension *how, TaskSet without, TaskSets *found)
{
    const TableRows *best = how->best;
    int64_t tasks = best->rows - 1, last = best->columns - 1, depth = 0;
    TaskSet path[MOST_TASKS + 1];
    char left[MOST_TASKS + 1];
    if (without.length > how->at_most)
        return true;
    path[0] = without, left[0] = 0;
    while (depth >= 0) {
        const TaskSet *here = path + depth;
        if (!left[depth]) {
            if (how->steps_left-- <= 0)
                return false;
            int64_t rest = best->at[(tasks - depth) * best->columns + last - here->length / how->grain];
            if (here->value + rest < how->needed) {
                depth--;
                continue;
            }
            if (depth == tasks) {
                if ((how->may_be_empty || here->set != without.set) && !add_set(found, *here))
                    return false;
                depth--;
                continue;
            }
            left[depth] = 1;
            Set bit = one_task << depth;
            int64_t length = here->length + how->ticks[depth];
            if (!(without.set & bit) && length <= how->at_most) {
                path[depth + 1] = (TaskSet){here->set | bit, length, here->value + how->prices[depth]};
                left[++depth] = 0;
                continue;
            }
        }
        if (left[depth] == 1) {
            left[depth] = 2;
            path[depth + 1] = *here;
            left[++depth] = 0;
            continue;
        }
        depth--;
    }
    return true;
}
