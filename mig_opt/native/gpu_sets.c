/* Sets of tasks that a GPU with some layout can run; mig_opt/batch/loads/gpu_sets.py says which. */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "layout_nodes.h"
#include "task_sets.h"

typedef struct {
    const IntegerRows *nodes;
    const TableRows *ticks;
    const Table *prices;
    int64_t grain, at_most, needed, may_be_empty, steps_left, pairs, columns;
    Table *times;    /* grains of each task, for each profile */
    Table *inside;   /* of each node: best value of its branch within each number of grains */
    Table *outside;  /* of each node: best value of all else within each number of grains that the branch leaves */
    Table work;
    TableRows best;
    Table last_first; /* grains of tasks in reverse order; so are the next ones */
    Table last_prices;
    TaskSets *sets;  /* of each node */
} Listing;

static const int64_t *node_of(const Listing *listing, int64_t at)
{
    return listing->nodes->at + at * listing->nodes->columns;
}

static int by_value(const void *one, const void *two)
{
    const TaskSet *first = one, *second = two;
    return (first->value < second->value) - (first->value > second->value);
}

/* Keeps each set once, with its least length; returns false if there is no memory. */
static bool keep_shortest(TaskSets *sets)
{
    int64_t kept = 0, slots = 1;
    while (slots < 2 * sets->count)
        slots *= 2;
    int32_t *table = calloc((size_t)slots, sizeof *table); /* where a set is, from 1 on, at its hash or after that */
    for (int64_t at = 0; table && at < sets->count; at++) {
        uint64_t slot = hash_of(sets->at[at].set) & (uint64_t)(slots - 1);
        while (table[slot] && sets->at[table[slot] - 1].set != sets->at[at].set)
            slot = (slot + 1) & (uint64_t)(slots - 1);
        if (!table[slot])
            sets->at[kept++] = sets->at[at], table[slot] = (int32_t)kept;
        else if (sets->at[at].length < sets->at[table[slot] - 1].length)
            sets->at[table[slot] - 1] = sets->at[at];
    }
    sets->count = kept;
    free(table);
    return table != NULL;
}

static void fill_values(Listing *listing)
{
    int64_t size = listing->columns, count = listing->nodes->rows;
    for (int64_t at = 0; at < count; at++) {
        const int64_t *node = node_of(listing, at);
        int32_t *table = listing->inside[at].at;
        if (node[KIND] == LEAF) {
            for (int64_t column = 0; column < size; column++)
                table[column] = column < node[TICKS] / listing->grain ? NO_VALUE : 0;
        } else if (node[KIND] == STACK) {
            memcpy(table, listing->inside[node[ONE]].at, (size_t)size * sizeof *table);
            add_to_values(&listing->times[node[PROFILE]], listing->prices, &listing->inside[at], &listing->work);
        } else {
            const int32_t *one = listing->inside[node[ONE]].at, *two = listing->inside[node[TWO]].at;
            for (int64_t column = 0; column < size; column++)
                table[column] = (int32_t)most(NO_VALUE, (int64_t)one[column] + two[column]);
        }
    }
    memset(listing->outside[count - 1].at, 0, (size_t)size * sizeof(int32_t));
    for (int64_t at = count - 1; at >= 0; at--) {
        const int64_t *node = node_of(listing, at);
        const int32_t *around = listing->outside[at].at;
        if (node[KIND] == STACK) {
            Table *below = &listing->outside[node[ONE]];
            memcpy(below->at, around, (size_t)size * sizeof *around);
            add_to_values(&listing->times[node[PROFILE]], listing->prices, below, &listing->work);
        }
        for (int side = 0; node[KIND] == SPLIT && side < 2; side++) {
            int32_t *table = listing->outside[node[side ? TWO : ONE]].at;
            const int32_t *other = listing->inside[node[side ? ONE : TWO]].at;
            /* The other branch may take longer than this one. */
            int64_t highest = NO_VALUE;
            for (int64_t left = 0; left < size; left++) {
                highest = most(highest, (int64_t)around[left] + other[size - 1 - left]);
                table[left] = (int32_t)highest;
            }
        }
    }
}

/* Lists the sets of a stack. */
static bool list_stack(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    int64_t tasks = listing->prices->count, profile = node[PROFILE];
    const TaskSets *below = &listing->sets[node[ONE]];
    for (int64_t task = 0; task < tasks; task++)
        listing->last_first.at[task] = listing->times[profile].at[tasks - 1 - task];
    TableRows times = {listing->last_first.at, tasks, 1};
    memcpy(listing->best.at, listing->outside[at].at, (size_t)listing->columns * sizeof(int32_t));
    fill_knapsack(&times, &listing->last_prices, &listing->best);
    Extension how = {
        .ticks = listing->ticks->at + profile * tasks, .prices = listing->prices->at, .best = &listing->best,
        .grain = listing->grain, .at_most = listing->at_most, .needed = listing->needed,
        .may_be_empty = listing->may_be_empty, .steps_left = listing->steps_left};
    bool goes_on = true;
    for (int64_t row = 0; row < below->count && goes_on; row++)
        goes_on = extend_set(&how, below->at[row], &listing->sets[at]);
    listing->steps_left = how.steps_left;
    return goes_on;
}

/* Writes the sets that are disjoint from one set to the front of the result, by index; returns their number. */
static int64_t disjoint(const int64_t *sets, int64_t count, int64_t set, int64_t *result)
{
    int64_t found = 0;
    for (int64_t at = 0; at < count; at++) {
        result[found] = at;
        found += !(sets[at] & set);
    }
    return found;
}

/* Lists the unions of disjoint sets of two branches. */
static bool list_split(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    const TaskSets *one = &listing->sets[node[ONE]];
    TaskSets *two = &listing->sets[node[TWO]];
    const int32_t *outside = listing->outside[at].at;
    int64_t last = listing->columns - 1, grain = listing->grain, count = two->count;
    int64_t *sets = malloc(3 * (size_t)most(1, count) * sizeof *sets), *columns = sets + count, *some = columns + count;
    bool goes_on = sets != NULL;
    if (count)
        qsort(two->at, (size_t)count, sizeof *two->at, by_value);
    for (int64_t other = 0; goes_on && other < count; other++)
        sets[other] = two->at[other].set, columns[other] = two->at[other].length / grain;
    for (int64_t row = 0; goes_on && row < one->count; row++) {
        TaskSet here = one->at[row];
        /* The longer the path, the less is left for all else. */
        int64_t column = here.length / grain, enough = listing->needed - here.value - outside[last - column], end = 0;
        for (int64_t step = (int64_t)1 << 40; step; step /= 2)
            if (end + step <= count && two->at[end + step - 1].value >= enough)
                end += step;
        listing->pairs += end;
        listing->steps_left -= end;
        goes_on = listing->steps_left >= 0;
        int64_t found = goes_on ? disjoint(sets, end, here.set, some) : 0;
        for (int64_t index = 0; goes_on && index < found; index++) {
            TaskSet there = two->at[some[index]];
            int64_t value = here.value + there.value;
            if (value + outside[last - most(column, columns[some[index]])] >= listing->needed)
                goes_on = add_set(
                    &listing->sets[at], (TaskSet){here.set | there.set, most(here.length, there.length), value});
        }
    }
    free(sets);
    return goes_on;
}

static bool list_node(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    if (node[KIND] == LEAF)
        return node[TICKS] > listing->at_most || add_set(&listing->sets[at], (TaskSet){0, node[TICKS], 0});
    return node[KIND] == STACK ? list_stack(listing, at) : list_split(listing, at);
}

/* Takes the next bytes of some memory for a table; without memory the sizes are added up. */
static Table table_in(char **memory, int64_t count)
{
    Table table = {(int32_t *)*memory, count};
    *memory += ((size_t)count * sizeof(int32_t) + 63) / 64 * 64;
    return table;
}

/* The steps are the sets and the pairs of sets that were looked at. Returns -1 if they, or the sets, are too many. */
EXPORT int64_t gpu_sets(
    const IntegerRows *nodes, const TableRows *ticks, const Table *prices, const int64_t limits[7], Integers *sets,
    Integers *values, Integers *lengths, Integers *steps)
{
    int64_t count = nodes->rows, tasks = ticks->columns, profiles = ticks->rows, found = -1;
    if (limits[0] < 1 || limits[1] < 0 || tasks > MOST_TASKS || !count)
        return -1;
    int64_t columns = limits[1] / limits[0] + 1;
    size_t tables = (size_t)(2 * count + 1) * (((size_t)columns * 4 + 63) / 64 * 64)
        + ((size_t)(tasks + 1) * (size_t)columns * 4 + 64) + (size_t)(profiles + 2) * (((size_t)tasks * 4 + 63) / 64 * 64);
    Table *headers = calloc((size_t)(2 * count + profiles), sizeof *headers);
    TaskSets *listed = calloc((size_t)count, sizeof *listed);
    char *memory = malloc(tables), *end = memory;
    Listing listing = {
        .nodes = nodes, .ticks = ticks, .prices = prices, .grain = limits[0], .at_most = limits[1], .needed = limits[2],
        .may_be_empty = limits[3], .steps_left = limits[4], .columns = columns, .sets = listed};
    if (headers && listed && memory) {
        for (int64_t at = 0; at < count; at++)
            listed[at].most = sets->count;
        listing.inside = headers, listing.outside = headers + count, listing.times = headers + 2 * count;
        for (int64_t at = 0; at < 2 * count; at++)
            headers[at] = table_in(&end, columns);
        for (int64_t profile = 0; profile < profiles; profile++) {
            listing.times[profile] = table_in(&end, tasks);
            for (int64_t task = 0; task < tasks; task++)
                listing.times[profile].at[task] = (int32_t)((ticks->at[profile * tasks + task] + limits[5]) / limits[0]);
        }
        listing.work = table_in(&end, columns);
        listing.last_first = table_in(&end, tasks), listing.last_prices = table_in(&end, tasks);
        for (int64_t task = 0; task < tasks; task++)
            listing.last_prices.at[task] = prices->at[tasks - 1 - task];
        listing.best = (TableRows){table_in(&end, (tasks + 1) * columns).at, tasks + 1, columns};
        fill_values(&listing);
        bool goes_on = true;
        for (int64_t at = 0; at < count && goes_on; at++) {
            goes_on = list_node(&listing, at);
            goes_on = goes_on && keep_shortest(&listed[at]);
            if (!listed[at].count) /* nothing can run in this branch, so there are no sets */
                break;
        }
        const TaskSets *root = &listed[count - 1];
        if (goes_on) {
            found = 0;
            for (int64_t at = 0; at < root->count; at++) {
                sets->at[found] = root->at[at].set, values->at[found] = root->at[at].value;
                lengths->at[found] = root->at[at].length;
                found += root->at[at].value <= limits[6];
            }
        }
    }
    steps->at[0] = limits[4] - most(0, listing.steps_left) - listing.pairs;
    steps->at[1] = listing.pairs;
    for (int64_t at = 0; listed && at < count; at++)
        free(listed[at].at);
    free(memory);
    free(listed);
    free(headers);
    return found;
}
