#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "subsets.h"

/* Returns the state in which nothing runs; the memory has room for state_size(tree) entries. */
State empty_state(const FlatTree *tree, int64_t *memory)
{
    int64_t places = tree->gpu.count, nodes = tree->kind.count;
    memset(memory, 0, (size_t)state_size(tree) * sizeof *memory);
    return (State){memory, memory + places, memory + 2 * places, memory + 2 * places + nodes};
}

static int64_t joint_path(int64_t one, int64_t two, int64_t wait_one, int64_t wait_two)
{
    return least(most(one + wait_one, two), most(one, two + wait_two));
}

/* Finds the longest path through each branch of a GPU, and the number of tasks in it. */
void update_paths(const Costs *costs, const FlatTree *tree, State *state, int64_t gpu)
{
    int64_t *longest = state->longest, *busy = state->busy;
    for (int64_t node = tree->first.at[gpu]; node <= tree->last.at[gpu]; node++) {
        int64_t one = tree->one.at[node], two = tree->two.at[node], place = tree->place.at[node];
        bool around = tree->around.at[node];
        if (tree->kind.at[node] == LEAF) {
            longest[node] = busy[node] = 0;
        } else if (tree->kind.at[node] == STACK) {
            busy[node] = busy[one] + state->tasks[place];
            if (state->tasks[place])
                longest[node] = longest[tree->inside.at[node]] + state->load[place]
                    + used_ticks_of(costs, tree, state, node);
            else
                longest[node] = longest[one] + (busy[one] || around ? costs->clearing.at[place] : 0);
        } else {
            bool waits = around || (busy[one] > 0 && busy[two] > 0);
            busy[node] = busy[one] + busy[two];
            longest[node] = joint_path(
                longest[one], longest[two], waits ? tree->wait_one.at[node] : 0, waits ? tree->wait_two.at[node] : 0);
        }
    }
}

/* Marks the places on the longest path through a GPU. */
void mark_longest_path(const FlatTree *tree, const State *state, int64_t gpu, bool *on_path)
{
    memset(on_path, 0, (size_t)tree->gpu.count * sizeof *on_path);
    int64_t node = tree->last.at[gpu];
    while (tree->kind.at[node] != LEAF) {
        int64_t one = tree->one.at[node], two = tree->two.at[node];
        if (tree->kind.at[node] == STACK) {
            on_path[tree->place.at[node]] = true;
            node = state->tasks[tree->place.at[node]] ? tree->inside.at[node] : one;
        } else {
            node = state->longest[one] >= state->longest[two] ? one : two;
        }
    }
}

/* Finds for each branch of a GPU the sum of the paths to its leaves, in two parts: the sum over its leaves of the ticks
 * within the branch, and the ticks above it on each path. */
void path_sums(
    const Costs *costs, const FlatTree *tree, const State *state, int64_t gpu, int64_t *within, int64_t *above)
{
    int64_t first = tree->first.at[gpu], last = tree->last.at[gpu];
    memset(above, 0, (size_t)(last + 1 - first) * sizeof *above);
    for (int64_t node = first; node <= last; node++) {
        int64_t kind = tree->kind.at[node], place = tree->place.at[node], sum = 0;
        if (kind != LEAF)
            sum = within[tree->one.at[node] - first];
        if (kind == SPLIT)
            sum += within[tree->two.at[node] - first];
        else if (kind == STACK && state->tasks[place])
            sum += tree->leaves.at[node] * (state->load[place] + used_ticks_of(costs, tree, state, node));
        within[node - first] = sum;
    }
    for (int64_t node = last; node >= first; node--) {
        int64_t kind = tree->kind.at[node], place = tree->place.at[node], here = above[node - first];
        if (kind == LEAF)
            continue;
        if (kind == SPLIT)
            above[tree->two.at[node] - first] = here;
        else if (state->tasks[place])
            here += state->load[place] + used_ticks_of(costs, tree, state, node);
        above[tree->one.at[node] - first] = here;
        if (kind == STACK)
            above[tree->inside.at[node] - first] = here;
    }
}

typedef struct { double cost; int64_t task; } Rank;

static int by_cost(const void *one, const void *two)
{
    const Rank *first = one, *second = two;
    if (first->cost != second->cost)
        return first->cost > second->cost ? -1 : 1;
    return first->task < second->task ? -1 : 1;
}

/* Returns false if there is no memory. */
EXPORT int64_t greedy_assignment(const Costs *costs, const FlatTree *tree, Integers *places)
{
    int64_t tasks = costs->weighted.rows, number = costs->weighted.columns;
    int64_t *memory = malloc((size_t)state_size(tree) * sizeof *memory);
    Rank *ranks = malloc((size_t)tasks * sizeof *ranks);
    if (!memory || !ranks) {
        free(memory);
        free(ranks);
        return false;
    }
    State state = empty_state(tree, memory);
    for (int64_t task = 0; task < tasks; task++) {
        double cheapest = INFINITY;
        for (int64_t place = 0; place < number; place++)
            if (ticks_of(costs, task, place) < NEVER && weighted_ticks_of(costs, task, place) < cheapest)
                cheapest = weighted_ticks_of(costs, task, place);
        ranks[task] = (Rank){cheapest, task};
    }
    qsort(ranks, (size_t)tasks, sizeof *ranks, by_cost);
    for (int64_t rank = 0; rank < tasks; rank++) {
        int64_t task = ranks[rank].task, shortest = INT64_MAX, chosen = -1;
        for (int64_t place = 0; place < number; place++) {
            if (ticks_of(costs, task, place) >= NEVER)
                continue;
            int64_t gpu = tree->gpu.at[place];
            add_task(costs, &state, task, place, 1);
            update_paths(costs, tree, &state, gpu);
            int64_t length = state.longest[tree->last.at[gpu]];
            add_task(costs, &state, task, place, -1);
            if (length < shortest) {
                shortest = length;
                chosen = place;
            }
        }
        places->at[task] = chosen;
        add_task(costs, &state, task, chosen, 1);
    }
    free(memory);
    free(ranks);
    return true;
}
