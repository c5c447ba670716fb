/* Partitions of tasks into sets that are known; mig_opt/batch/loads/partitions.py says which. */
#include <stdlib.h>

#include "arrays.h"

typedef struct {
    const Integers *sets, *values, *rising;
    Integers *parts;
    const volatile int64_t *over; /* not 0 once the search is to end */
    int64_t steps_left;
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

/* Looks for a partition of what is left into the last of the parts, of some value together: sets of the list, which is in
 * falling order of value. Returns 1 if there is one, 0 if not, -1 after too many steps. */
static int64_t divide(Search *search, int64_t left, int64_t value, const int64_t *list, int64_t count, int64_t part)
{
    const int64_t *sets = search->sets->at, *values = search->values->at;
    int64_t others = search->parts->count - part - 1, lowest = left & -left;
    if (!others)
        return search->parts->at[part] = left, is_known(search->rising, left);
    int64_t *next = others > 1 && count ? malloc((size_t)count * sizeof *next) : NULL;
    int64_t found = others > 1 && count && !next ? -1 : 0;
    for (int64_t at = 0; at < count && !found; at++) {
        int64_t set = sets[list[at]], rest = value - values[list[at]], some = 0;
        if (search->steps_left-- <= 0 || *search->over)
            found = -1;
        /* The others are worth no more than the best one each. */
        if (rest > others * values[list[0]])
            break;
        if (found || !(set & lowest))
            continue;
        search->parts->at[part] = set;
        for (int64_t other = 0; others > 1 && other < count; other++) {
            if (values[list[other]] + (others - 1) * values[list[0]] < rest)
                break;
            search->steps_left--;
            if (!(sets[list[other]] & set))
                next[some++] = list[other];
        }
        found = divide(search, left ^ set, rest, next, some, part + 1);
    }
    free(next);
    return found;
}

/* Looks for a partition that has one of the first sets, and counts the steps: there are as many at most. Another thread
 * ends it by writing to the second of the steps. */
EXPORT int64_t partition_of_sets(
    const Integers *sets, const Integers *values, const Integers *rising, const Integers *firsts,
    const int64_t limits[2], Integers *steps, Integers *parts)
{
    int64_t most_steps = steps->at[0];
    Search search = {sets, values, rising, parts, steps->at + 1, most_steps};
    int64_t found = 0, *list = malloc((size_t)most(1, sets->count) * sizeof *list);
    if (!list)
        return -1;
    for (int64_t at = 0; at < firsts->count && !found; at++) {
        int64_t first = firsts->at[at], some = 0, rest = limits[1] - values->at[first], others = parts->count - 1;
        for (int64_t other = 0; other < sets->count; other++) {
            if (values->at[other] + (others - 1) * values->at[0] < rest)
                break;
            if (!(sets->at[other] & sets->at[first]))
                list[some++] = other;
        }
        search.steps_left -= sets->count;
        parts->at[0] = sets->at[first];
        found = divide(&search, limits[0] ^ sets->at[first], rest, list, some, 1);
    }
    free(list);
    steps->at[0] = most_steps - search.steps_left;
    return found;
}
