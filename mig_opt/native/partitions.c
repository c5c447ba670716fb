/* Partitions of tasks into sets that are known; mig_opt/batch/loads/partitions.py says which. */
#include <stdlib.h>

#include "arrays.h"
#include "layout_nodes.h"

typedef struct {
    const Integers *rising;
    Integers *parts;
    const volatile int64_t *over; /* not 0 once the search is to end */
    int64_t steps_left, best; /* the best value of a set */
} Search;

static bool is_known(const Integers *rising, int64_t set)
{
    int64_t low = 0, high = rising->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rising->at[middle] < set)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rising->count && rising->at[low] == set;
}

/* Sets with their values, by the first task of each; where those begin that have a task as their first. */
typedef struct { int64_t *sets, *values, begin[MOST_TASKS + 2]; } Listed;

/* Says where the sets of a list begin that have a task as their first; they come in the order of that task. */
static void set_begins(Listed *list, int64_t count)
{
    int64_t at = 0;
    for (int64_t task = 0; task <= MOST_TASKS; task++) {
        list->begin[task] = at;
        while (at < count && __builtin_ctzll((uint64_t)list->sets[at]) == task)
            at++;
    }
    list->begin[MOST_TASKS + 1] = count;
}

/* Lists the sets that are disjoint from one set and have a later first task; the result has room for all. */
static void list_disjoint(Search *search, const Listed *from, int64_t set, Listed *result)
{
    int64_t found = 0, count = from->begin[MOST_TASKS + 1];
    int64_t begin = from->begin[__builtin_ctzll((uint64_t)set) + 1];
    for (int64_t at = begin; at < count; at++) {
        result->sets[found] = from->sets[at], result->values[found] = from->values[at];
        found += !(from->sets[at] & set);
    }
    search->steps_left -= count - begin;
    set_begins(result, found);
}

/* Looks for a partition of what is left into the last of the parts, of some value together. The list has all sets that
 * may be parts, and some that are not within what is left. Returns 1 if there is one, 0 if not, -1 after too many
 * steps. */
static int64_t divide(Search *search, int64_t left, int64_t value, const Listed *list, int64_t part)
{
    int64_t others = search->parts->count - part - 1, found = 0;
    if (!others || !left)
        return search->parts->at[part] = left, !others && is_known(search->rising, left);
    int64_t first = __builtin_ctzll((uint64_t)left), end = list->begin[first + 1];
    int64_t room = others > 2 ? list->begin[MOST_TASKS + 1] - end : 0;
    int64_t *memory = room ? malloc(2 * (size_t)room * sizeof *memory) : NULL;
    if (room && !memory)
        return -1;
    Listed next = {memory, memory + room, {0}};
    for (int64_t at = list->begin[first]; at < end && !found; at++) {
        int64_t set = list->sets[at], rest = value - list->values[at];
        if (search->steps_left-- <= 0 || *search->over)
            found = -1;
        /* The others are worth no more than the best one each. */
        if (rest > others * search->best)
            break;
        if (found || set & ~left)
            continue;
        search->parts->at[part] = set;
        if (room)
            list_disjoint(search, list, set, &next);
        found = divide(search, left ^ set, rest, room ? &next : list, part + 1);
    }
    free(memory);
    return found;
}

/* Looks for a partition that has one of the first sets, and counts the steps: there are as many at most. The sets come by
 * their first task, then in falling order of value. Another thread ends it by writing to the second of the steps. */
EXPORT int64_t partition_of_sets(
    const Integers *sets, const Integers *values, const Integers *rising, const Integers *firsts,
    const int64_t limits[2], Integers *steps, Integers *parts)
{
    int64_t most_steps = steps->at[0], found = 0, *memory = malloc(2 * (size_t)most(1, sets->count) * sizeof *memory);
    Search search = {rising, parts, steps->at + 1, most_steps, 0};
    Listed all = {sets->at, values->at, {0}}, some = {memory, memory + sets->count, {0}};
    if (!memory)
        return -1;
    set_begins(&all, sets->count);
    for (int64_t at = 0; at < sets->count; at++)
        search.best = most(search.best, values->at[at]);
    for (int64_t at = 0; at < firsts->count && !found; at++) {
        int64_t first = firsts->at[at], rest = limits[1] - values->at[first];
        list_disjoint(&search, &all, sets->at[first], &some);
        parts->at[0] = sets->at[first];
        found = divide(&search, limits[0] ^ sets->at[first], rest, &some, 1);
    }
    free(memory);
    steps->at[0] = most_steps - search.steps_left;
    return found;
}
