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
    int64_t grain, at_most, needed, may_be_empty, steps_left, pairs, columns, highest;
    int64_t of_branch, of_layout; /* sets that are kept, about; 0 if all are */
    int64_t *potentials;
    TaskSet *work_sets;  /* room for four times as many as are kept of a branch, twice */
    double grains;       /* of a tick, rounded down */
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

typedef struct { int64_t potential; TaskSet set; } Ranked;

static int by_potential(const void *one, const void *two)
{
    const Ranked *first = one, *second = two;
    return (first->potential < second->potential) - (first->potential > second->potential);
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

/* Fills the table of the best value of all else, for each number of the last tasks in the place of a stack. */
static void fill_best(Listing *listing, int64_t at)
{
    int64_t tasks = listing->prices->count, profile = node_of(listing, at)[PROFILE];
    for (int64_t task = 0; task < tasks; task++)
        listing->last_first.at[task] = listing->times[profile].at[tasks - 1 - task];
    TableRows times = {listing->last_first.at, tasks, 1};
    memcpy(listing->best.at, listing->outside[at].at, (size_t)listing->columns * sizeof(int32_t));
    fill_knapsack(&times, &listing->last_prices, &listing->best);
}

/* The value that a set can have, given the best value of all else for each number of grains that are left. */
static inline int64_t potential(const Listing *listing, const TaskSet *set, const int32_t *best)
{
    return set->value + best[listing->columns - 1 - (int32_t)((double)(int32_t)set->length * listing->grains)];
}

/* Returns the value of that rank, the highest one is the first, and reorders the values. */
static int64_t ranked(int64_t *values, int64_t count, int64_t rank)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t pivot = values[(low + high) / 2], up = low, down = high;
        while (up <= down) {
            while (values[up] > pivot)
                up++;
            while (values[down] < pivot)
                down--;
            if (up <= down) {
                int64_t value = values[up];
                values[up++] = values[down], values[down--] = value;
            }
        }
        if (rank - 1 <= down)
            high = down;
        else if (rank - 1 >= up)
            low = up;
        else
            break;
    }
    return values[rank - 1];
}

/* Moves the sets of a branch that can have most value to the front, and changes their number; returns the least value of
 * one of them. */
static int64_t keep_best(const Listing *listing, TaskSet *sets, int64_t *count, const int32_t *best)
{
    if (*count <= listing->of_branch)
        return listing->needed;
    for (int64_t at = 0; at < *count; at++)
        listing->potentials[at] = potential(listing, &sets[at], best);
    int64_t least_value = ranked(listing->potentials, *count, listing->of_branch), kept = 0;
    for (int64_t at = 0; at < *count && kept < listing->of_branch; at++)
        if (potential(listing, &sets[at], best) >= least_value)
            sets[kept++] = sets[at];
    *count = kept;
    return least_value;
}

/* Lists some sets of a stack: task by task, without it and with it, those that can have most value. */
static bool list_some_of_stack(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    const Set with_any = one_task << MOST_TASKS;
    int64_t tasks = listing->prices->count, count = listing->sets[node[ONE]].count, at_most = listing->at_most;
    const int32_t *ticks = listing->ticks->at + node[PROFILE] * tasks;
    TaskSet *sets = listing->work_sets, *next = sets + 4 * listing->of_branch;
    memcpy(sets, listing->sets[node[ONE]].at, (size_t)count * sizeof *sets);
    fill_best(listing, at);
    for (int64_t task = 0; task < tasks; task++) {
        const int32_t *best = listing->best.at + (tasks - 1 - task) * listing->columns;
        int64_t price = listing->prices->at[task], found = 0;
        Set bit = one_task << task;
        if (ticks[task] > at_most)
            continue;
        listing->steps_left -= count;
        for (int64_t row = 0; row < count; row++) {
            TaskSet here = sets[row], more = {here.set | bit | with_any, here.length + ticks[task], here.value + price};
            next[found] = here;
            found += potential(listing, &here, best) >= listing->needed;
            if (here.set & bit || more.length > at_most)
                continue;
            next[found] = more;
            found += potential(listing, &more, best) >= listing->needed;
        }
        if (found > listing->of_branch + listing->of_branch / 2)
            keep_best(listing, next, &found, best);
        TaskSet *last = sets;
        sets = next, next = last, count = found;
    }
    keep_best(listing, sets, &count, listing->outside[at].at);
    bool goes_on = true;
    for (int64_t row = 0; row < count && goes_on; row++)
        if (listing->may_be_empty || sets[row].set & with_any)
            goes_on = add_set(
                &listing->sets[at], (TaskSet){sets[row].set & ~with_any, sets[row].length, sets[row].value});
    return goes_on;
}

/* Lists the sets of a stack. */
static bool list_stack(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    int64_t tasks = listing->prices->count, profile = node[PROFILE];
    const TaskSets *below = &listing->sets[node[ONE]];
    fill_best(listing, at);
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

/* Sets in columns: both words of each, what it is worth, and what it can be worth with all else; room for some by index. */
typedef struct { uint64_t *first, *last; int64_t *values, *potentials, *some; } Columns;

/* Finds the sets that are disjoint from one set, of a value in some range, and returns their number. */
static int64_t disjoint(const Columns *sets, int64_t count, Set set, int64_t lowest, int64_t highest)
{
    uint64_t first = (uint64_t)set, last = (uint64_t)(set >> BITS);
    int64_t found = 0;
    for (int64_t at = 0; at < count; at++) {
        sets->some[found] = at;
        found += !((sets->first[at] & first) | (sets->last[at] & last))
            & (sets->values[at] >= lowest) & (sets->values[at] <= highest);
    }
    return found;
}

/* Sorts the sets of a branch by the value that they can have, the highest first. */
static bool sort_by_potential(const Listing *listing, TaskSets *sets, const int32_t *best)
{
    Ranked *ranks = malloc((size_t)most(1, sets->count) * sizeof *ranks);
    for (int64_t at = 0; ranks && at < sets->count; at++)
        ranks[at] = (Ranked){potential(listing, &sets->at[at], best), sets->at[at]};
    if (ranks && sets->count)
        qsort(ranks, (size_t)sets->count, sizeof *ranks, by_potential);
    for (int64_t at = 0; ranks && at < sets->count; at++)
        sets->at[at] = ranks[at].set;
    free(ranks);
    return ranks != NULL;
}

/* Adds a set of a split, and returns true if there is memory. Where not all are kept, it thins the sets out: those of a
 * branch by the value that they can have, which raises what is needed; those of the whole GPU, as their hashes fall. */
static bool add_of_split(Listing *listing, int64_t at, TaskSet set, int64_t *needed, uint64_t *thinned)
{
    TaskSets *sets = &listing->sets[at];
    const int32_t *outside = listing->outside[at].at;
    bool whole = at == listing->nodes->rows - 1, some = listing->of_branch > 0;
    if (potential(listing, &set, outside) < *needed || (whole && hash_of(set.set) >> 22 & *thinned))
        return true;
    if (!add_set(sets, set))
        return false;
    if (some && !whole && sets->count == 2 * listing->of_branch) {
        *needed = keep_best(listing, sets->at, &sets->count, outside) + 1;
    } else if (some && whole && sets->count == 2 * listing->of_layout) {
        int64_t kept = 0;
        *thinned = 2 * *thinned + 1;
        for (int64_t row = 0; row < sets->count; row++)
            if (!(hash_of(sets->at[row].set) >> 22 & *thinned))
                sets->at[kept++] = sets->at[row];
        sets->count = kept;
    }
    return true;
}

/* Lists the unions of disjoint sets of two branches. */
static bool list_split(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    TaskSets *one = &listing->sets[node[ONE]], *two = &listing->sets[node[TWO]];
    const int32_t *outside = listing->outside[at].at;
    int64_t last = listing->columns - 1, count = two->count, needed = listing->needed;
    int64_t highest = at == listing->nodes->rows - 1 ? listing->highest : INT64_MAX / 2;
    int64_t *room = malloc(5 * (size_t)most(1, count) * sizeof *room);
    Columns sets = {
        (uint64_t *)room, (uint64_t *)room + count, room + 2 * count, room + 3 * count, room + 4 * count};
    uint64_t thinned = 0;
    /* What is needed of those that are kept rises soon if the first ones can have most. */
    bool goes_on = room && sort_by_potential(listing, two, outside)
        && (!listing->of_branch || sort_by_potential(listing, one, outside));
    for (int64_t other = 0; goes_on && other < count; other++) {
        sets.first[other] = (uint64_t)two->at[other].set, sets.last[other] = (uint64_t)(two->at[other].set >> BITS);
        sets.values[other] = two->at[other].value;
        sets.potentials[other] = potential(listing, &two->at[other], outside);
    }
    for (int64_t row = 0; goes_on && row < one->count; row++) {
        TaskSet here = one->at[row];
        /* The longer path of the two leaves less for all else. */
        int64_t enough = needed - here.value, end = 0;
        for (int64_t step = (int64_t)1 << 40; step; step /= 2)
            if (end + step <= count && sets.potentials[end + step - 1] >= enough)
                end += step;
        listing->pairs += end;
        listing->steps_left -= end;
        goes_on = listing->steps_left >= 0 || listing->of_branch;
        enough -= outside[last - here.length / listing->grain];
        int64_t found = goes_on ? disjoint(&sets, end, here.set, enough, highest - here.value) : 0;
        for (int64_t index = 0; goes_on && index < found; index++) {
            const TaskSet *there = &two->at[sets.some[index]];
            TaskSet both = {here.set | there->set, most(here.length, there->length), here.value + there->value};
            goes_on = add_of_split(listing, at, both, &needed, &thinned);
        }
    }
    free(room);
    return goes_on;
}

static bool list_node(Listing *listing, int64_t at)
{
    const int64_t *node = node_of(listing, at);
    if (node[KIND] == LEAF)
        return node[TICKS] > listing->at_most || add_set(&listing->sets[at], (TaskSet){0, node[TICKS], 0});
    if (node[KIND] == SPLIT)
        return list_split(listing, at);
    return listing->of_branch ? list_some_of_stack(listing, at) : list_stack(listing, at);
}

/* Takes the next bytes of some memory for a table; without memory the sizes are added up. */
static Table table_in(char **memory, int64_t count)
{
    Table table = {(int32_t *)*memory, count};
    *memory += ((size_t)count * sizeof(int32_t) + 63) / 64 * 64;
    return table;
}

/* The steps are the sets and the pairs of sets that were looked at. Returns -1 if they, or the sets, are too many where all
 * are wanted. */
EXPORT int64_t gpu_sets(
    const IntegerRows *nodes, const TableRows *ticks, const Table *prices, const int64_t limits[9], IntegerRows *sets,
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
        .may_be_empty = limits[3], .steps_left = limits[4], .columns = columns, .highest = limits[6],
        .of_branch = limits[7], .of_layout = limits[8], .sets = listed};
    listing.potentials = malloc((size_t)(4 * limits[7] + 1) * sizeof *listing.potentials);
    listing.work_sets = malloc((size_t)(8 * limits[7] + 2) * sizeof *listing.work_sets);
    listing.grains = (1 - 1e-12) / (double)limits[0];
    if (headers && listed && memory && listing.potentials && listing.work_sets) {
        for (int64_t at = 0; at < count; at++)
            listed[at].most = limits[7] ? INT64_MAX : sets->rows;
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
            for (int64_t at = 0; at < least(root->count, sets->rows); at++) {
                write_set(sets, found, root->at[at].set), values->at[found] = root->at[at].value;
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
    free(listing.potentials);
    free(listing.work_sets);
    return found;
}
