/* Large neighbourhoods searched exactly; mig_opt/batch/loads/neighbourhood.py says what the search is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "state.h"
#include "subsets.h"
#include "timing.h"

/* Number of best assignments that are drawn; the one of least weighted cost is taken. */
enum { DRAWS = 8 };

/* With more tasks than these, a place has more of them than can move. */
enum { FEW = 200 };

/* Frequency with which tasks in the same places move together: else the tasks that stay decide what fits there. */
static const double TOGETHER = 0.5;

/* Frequency with which a round shortens other GPUs than the longest, which can then take its tasks later. */
static const double ANYWHERE = 0.33;

/* Frequency with which a round shortens the longest GPU further than to the length of the others. */
static const double DEEP = 0.3;

/* Everything that a round reads or writes. */
typedef struct {
    const Costs *costs;
    const FlatTree *tree;
    const LeastLoads *least;
    Random random;
    State state;
    const Operations *operations;
    int64_t *lengths;       /* makespan of each GPU */
    int64_t *paths;         /* longest path of each GPU, which live instances can make longer than its makespan */
    int64_t *free;          /* the tasks that may move */
    int64_t count;          /* their number */
    int64_t sets;           /* number of their subsets */
    int32_t *tables;        /* the shortest longest path, for each node and each subset of them */
    int32_t *leaf;          /* the same for a leaf, where nothing runs */
    int64_t *sums;          /* work space of sets_within */
    int32_t *subsets;       /* its result */
    int32_t *work;          /* work space of split_tasks */
    int32_t *member_sums;   /* sums over the subsets of some free tasks */
    int64_t *within, *above;
    int64_t *path, *rest;   /* tasks on the longest path, and elsewhere */
    int64_t *ranks;         /* of the places */
    int64_t *order, *sorted;
    int64_t *waiting;       /* branches to draw, with their tasks and limits */
    bool *on_path;
} Search;

/* Two GPUs that a round works on, or one that is both; the length down to which they need not get, and the slack. */
typedef struct { int64_t longer, shorter, others, slack; } Round;

typedef struct { int64_t used, unused, idle, spared, below; } StackTicks;

static Table table_of(const Search *search, int64_t node)
{
    bool leaf = search->tree->kind.at[node] == LEAF;
    return (Table){leaf ? search->leaf : search->tables + node * search->sets, search->sets};
}

static void choose_gpus(Search *search, Round *round)
{
    int64_t gpus = search->tree->last.count, longer = 0, others = 0;
    const int64_t *lengths = search->lengths;
    *round = (Round){0, 0, 0, round->slack};
    if (gpus == 1)
        return;
    for (int64_t gpu = 1; gpu < gpus; gpu++)
        if (lengths[gpu] > lengths[longer])
            longer = gpu;
    if (gpus > 2 && random_share(&search->random) < ANYWHERE)
        longer = (longer + 1 + random_below(&search->random, gpus - 1)) % gpus;
    int64_t shorter = (longer + 1 + random_below(&search->random, gpus - 1)) % gpus;
    if (lengths[shorter] > lengths[longer]) {
        int64_t swapped = longer;
        longer = shorter;
        shorter = swapped;
    }
    for (int64_t gpu = 0; gpu < gpus; gpu++)
        if (gpu != longer && gpu != shorter)
            others = most(others, lengths[gpu]);
    if (others > lengths[longer] || random_share(&search->random) < DEEP)
        others = 0;
    *round = (Round){longer, shorter, others, round->slack};
}

/* Draws some of the first values at random, and moves them to the front. */
static void shuffle_first(Random *random, int64_t *values, int64_t count, int64_t drawn)
{
    for (int64_t at = 0; at < drawn; at++) {
        int64_t pick = at + random_below(random, count - at), value = values[at];
        values[at] = values[pick];
        values[pick] = value;
    }
}

/* Sorts tasks elsewhere by a random order of their places; the tasks of a place keep their order. */
static void group_by_place(Search *search, const int64_t *places, int64_t count)
{
    int64_t number = search->tree->gpu.count, *ranks = search->ranks, *first = search->order, before = 0;
    for (int64_t place = 0; place < number; place++)
        ranks[place] = place;
    for (int64_t at = number - 1; at > 0; at--) {
        int64_t pick = random_below(&search->random, at + 1), rank = ranks[at];
        ranks[at] = ranks[pick];
        ranks[pick] = rank;
    }
    memset(first, 0, (size_t)number * sizeof *first);
    for (int64_t at = 0; at < count; at++)
        first[ranks[places[search->rest[at]]]]++;
    for (int64_t rank = 0; rank < number; rank++) {
        int64_t here = first[rank];
        first[rank] = before;
        before += here;
    }
    for (int64_t at = 0; at < count; at++)
        search->sorted[first[ranks[places[search->rest[at]]]]++] = search->rest[at];
    memcpy(search->rest, search->sorted, (size_t)count * sizeof *search->rest);
}

/* Chooses the tasks that may move: some from the longest path, the others from anywhere on the GPUs. */
static void choose_tasks(Search *search, const Integers *places, const Round *round, int64_t at_most)
{
    int64_t on = 0, off = 0;
    for (int64_t task = 0; task < places->count; task++) {
        int64_t place = places->at[task], gpu = search->tree->gpu.at[place];
        if (search->on_path[place])
            search->path[on++] = task;
        else if (gpu == round->longer || gpu == round->shorter)
            search->rest[off++] = task;
    }
    int64_t number = least(at_most, on + off), lowest = most(1, at_most / 4), drawn = 0;
    int64_t wanted = lowest + random_below(&search->random, at_most / 2 + 2 - lowest);
    wanted = most(least(least(wanted, on), number), number - off);
    if (off <= FEW && random_share(&search->random) < TOGETHER)
        group_by_place(search, places->at, off);
    else
        drawn = number - wanted;
    shuffle_first(&search->random, search->path, on, wanted);
    shuffle_first(&search->random, search->rest, off, drawn);
    memcpy(search->free, search->path, (size_t)wanted * sizeof *search->free);
    memcpy(search->free + wanted, search->rest, (size_t)(number - wanted) * sizeof *search->free);
    search->count = number;
    search->sets = (int64_t)1 << number;
}

/* Writes the sets of free tasks that can run in a branch of the first of two GPUs, or of one that is both. */
static Table sets_of(Search *search, int64_t node, int64_t other, bool alone, const int64_t room[3])
{
    const LeastLoads *loads = search->least;
    int64_t row = loads->row.at[node], columns = loads->inside.columns;
    int64_t there = loads->row.at[search->tree->last.at[other]];
    int64_t inside[64], around[64], beside[64];
    for (int64_t index = 0; index < search->count; index++) {
        int64_t task = search->free[index];
        inside[index] = loads->inside.at[row * columns + task];
        around[index] = loads->around.at[row * columns + task];
        beside[index] = loads->beside.at[row * columns + task];
        if (!alone) {
            int64_t elsewhere = loads->inside.at[there * columns + task];
            around[index] = least(around[index], elsewhere);
            beside[index] = least(beside[index], elsewhere);
        }
    }
    Integers one = {inside, search->count}, two = {around, search->count}, three = {beside, search->count};
    Integers sums = {search->sums, 3 * search->sets};
    Table result = {search->subsets, search->sets};
    result.count = sets_within(&one, &two, &three, room, &sums, &result);
    return result;
}

/* The relation of the branches of a split. */
static Siblings siblings_of(const Search *search, int64_t node)
{
    const FlatTree *tree = search->tree;
    bool around = tree->around.at[node];
    return (Siblings){
        false, around || search->state.busy[tree->one.at[node]] > 0, around || search->state.busy[tree->two.at[node]] > 0,
        tree->wait_one.at[node], tree->wait_two.at[node]};
}

/* The ticks of the place of a stack, and the node below if no free task runs there. The ticks are for three cases: a
 * free task runs there; one runs below only; none runs at or below the place. In the first one, some are spared if all
 * free tasks run there. */
static StackTicks stack_ticks(const Search *search, int64_t node)
{
    const FlatTree *tree = search->tree;
    int64_t place = tree->place.at[node], below = tree->one.at[node];
    int64_t used = search->costs->used.at[place] + search->state.load[place];
    int64_t last = used_ticks_of(search->costs, tree, &search->state, node) + search->state.load[place];
    if (search->state.tasks[place])
        return (StackTicks){used, used, last, used - last, tree->inside.at[node]};
    int64_t clearing = search->costs->clearing.at[place];
    return (StackTicks){
        used, clearing, search->state.busy[below] || tree->around.at[node] ? clearing : 0, used - last, below};
}

/* Finds the shortest longest path through each branch of a GPU for every subset of the free tasks; the others run on
 * the second GPU, if that is another one. */
static void fill_tables(Search *search, int64_t gpu, int64_t other, int64_t limit)
{
    const FlatTree *tree = search->tree;
    int64_t first = tree->first.at[gpu], last = tree->last.at[gpu], leaves = tree->leaves.at[last], elsewhere = 0;
    bool alone = gpu == other;
    if (!alone) {
        path_sums(search->costs, tree, &search->state, other, search->within, search->above);
        leaves += tree->leaves.at[tree->last.at[other]];
        elsewhere = search->within[tree->last.at[other] - tree->first.at[other]];
    }
    path_sums(search->costs, tree, &search->state, gpu, search->within, search->above);
    int64_t all = search->within[last - first];
    for (int64_t node = first; node <= last; node++) {
        Table table = table_of(search, node);
        if (tree->kind.at[node] == SPLIT) {
            Table one = table_of(search, tree->one.at[node]), two = table_of(search, tree->two.at[node]);
            Siblings siblings = siblings_of(search, node);
            int64_t paths = tree->leaves.at[node];
            int64_t own = search->within[node - first] + paths * search->above[node - first];
            int64_t room[3] = {
                paths * limit - own, (leaves - paths) * limit - (all - own) - elsewhere, leaves * limit - all - elsewhere};
            for (int64_t subset = 0; subset < search->sets; subset++)
                table.at[subset] = SKIPPED;
            Table subsets = sets_of(search, node, other, alone, room);
            Table work = {search->work, search->sets};
            split_tasks(&one, &two, &subsets, &siblings, limit, &work, &table);
        } else if (tree->kind.at[node] == STACK) {
            int32_t here[64];
            for (int64_t index = 0; index < search->count; index++)
                here[index] = (int32_t)ticks_of(search->costs, search->free[index], tree->place.at[node]);
            Table ticks = {here, search->count}, inside = table_of(search, tree->inside.at[node]);
            StackTicks stack = stack_ticks(search, node);
            memcpy(table.at, inside.at, (size_t)search->sets * sizeof *table.at);
            table.at[0] -= (int32_t)stack.spared;
            add_tasks(&table, &ticks, limit);
            Table below = table_of(search, stack.below);
            choose_use(&table, &below, stack.used, stack.unused, limit);
            int64_t length = below.at[0] + stack.idle;
            table.at[0] = (int32_t)(length <= limit ? length : NEVER);
        }
    }
}

/* Finds the parts of the free tasks with which the first of two GPUs gives the least length of both; returns it. */
static int64_t divide(const Table *one, const Table *two, int64_t limit, Table *best)
{
    int64_t shortest = limit;
    best->count = 0;
    for (int64_t part = 0; part < one->count; part++) {
        int64_t length = most(one->at[part], two->at[(one->count - 1) ^ part]);
        if (length > shortest)
            continue;
        if (length < shortest)
            best->count = 0;
        shortest = length;
        best->at[best->count++] = (int32_t)part;
    }
    return best->count ? shortest : INT64_MAX;
}

/* Returns the weighted cost of a choice of places for the free tasks. */
static double weighted_cost(const Search *search, const int64_t *choice)
{
    double total = 0.0;
    for (int64_t index = 0; index < search->count; index++) {
        int64_t place = choice[index], before = 0;
        total += weighted_ticks_of(search->costs, search->free[index], place);
        while (before < index && choice[before] != place)
            before++;
        if (!search->state.tasks[place] && before == index)
            total += search->costs->weighted_used.at[place];
    }
    return total;
}

/* Draws the part of some tasks that runs in the first of two siblings, and the limits of both. */
static int64_t draw_split(
    Search *search, const Table *one, const Table *two, const Siblings *siblings, int64_t whole, int64_t limit,
    int64_t limits[2])
{
    int64_t seen = 0, drawn = -1;
    limits[0] = limits[1] = limit;
    for (int64_t part = whole;; part = (part - 1) & whole) {
        int64_t rest = whole ^ part;
        if (one->at[part] <= limit && two->at[rest] <= limit) {
            bool both = (part || siblings->busy_one) && (rest || siblings->busy_two);
            int64_t waits[2][2] = {{0, both ? siblings->wait_two : 0}, {both ? siblings->wait_one : 0, 0}};
            for (int order = 0; order < 2; order++)
                if (one->at[part] + waits[order][0] <= limit && two->at[rest] + waits[order][1] <= limit
                    && random_below(&search->random, ++seen) == 0) {
                    drawn = part;
                    limits[0] = limit - waits[order][0];
                    limits[1] = limit - waits[order][1];
                }
        }
        if (!part)
            return drawn;
    }
}

/* Draws the part of some tasks that runs in the place of a stack; returns it, and the ticks of the place. The tables are
 * those below it, if it is not used and if it is. */
static int64_t draw_stack(
    Search *search, const Table *unused, const Table *used, const int32_t *here, const StackTicks *ticks, int64_t whole,
    int64_t limit, int64_t *taken)
{
    int32_t members[64];
    int64_t count = 0, seen = 0, drawn = -1, part = whole;
    for (int64_t index = 0; index < search->count; index++)
        if (whole >> index & 1)
            members[count++] = here[index];
    /* The parts of a whole come in the order of the subsets of its members. */
    Table amounts = {members, count}, sums = {search->member_sums, (int64_t)1 << count};
    subset_sums(&amounts, &sums);
    *taken = 0;
    for (int64_t subset = sums.count - 1; subset >= 0; subset--, part = (part - 1) & whole) {
        int64_t below = part ? used->at[whole ^ part] : unused->at[whole];
        if (sums.at[subset] >= NEVER || below >= NEVER)
            continue;
        int64_t own = part ? ticks->used + sums.at[subset] : whole ? ticks->unused : ticks->idle;
        own -= part && part == whole ? ticks->spared : 0;
        if (own + below <= limit && random_below(&search->random, ++seen) == 0) {
            drawn = part;
            *taken = own;
        }
    }
    return drawn;
}

/* Draws an assignment of some of the free tasks to places of a GPU with no path longer than the limit; returns false if
 * there is none. Nothing of the free tasks runs anywhere in the state. */
static bool draw_assignment(Search *search, int64_t gpu, int64_t tasks, int64_t limit, int64_t *choice)
{
    const FlatTree *tree = search->tree;
    int64_t (*waiting)[3] = (int64_t (*)[3])search->waiting, depth = 0;
    int32_t here[64];
    waiting[depth][0] = tree->last.at[gpu];
    waiting[depth][1] = tasks;
    waiting[depth++][2] = limit;
    while (depth) {
        depth--;
        int64_t node = waiting[depth][0], whole = waiting[depth][1], at_most = waiting[depth][2];
        if (tree->kind.at[node] == SPLIT) {
            int64_t limits[2], one_node = tree->one.at[node], two_node = tree->two.at[node];
            Table one = table_of(search, one_node), two = table_of(search, two_node);
            Siblings siblings = siblings_of(search, node);
            int64_t part = draw_split(search, &one, &two, &siblings, whole, at_most, limits);
            if (part < 0)
                return false;
            waiting[depth][0] = one_node;
            waiting[depth][1] = part;
            waiting[depth++][2] = limits[0];
            waiting[depth][0] = two_node;
            waiting[depth][1] = whole ^ part;
            waiting[depth++][2] = limits[1];
        } else if (tree->kind.at[node] == STACK) {
            int64_t place = tree->place.at[node], inside = tree->inside.at[node], taken;
            for (int64_t index = 0; index < search->count; index++)
                here[index] = (int32_t)ticks_of(search->costs, search->free[index], place);
            StackTicks ticks = stack_ticks(search, node);
            Table unused = table_of(search, ticks.below), used = table_of(search, inside);
            int64_t part = draw_stack(search, &unused, &used, here, &ticks, whole, at_most, &taken);
            if (part < 0)
                return false;
            for (int64_t index = 0; index < search->count; index++)
                if (part >> index & 1)
                    choice[index] = place;
            waiting[depth][0] = part ? inside : ticks.below;
            waiting[depth][1] = whole ^ part;
            waiting[depth++][2] = at_most - taken;
        }
    }
    return true;
}

/* Returns the makespan of a GPU; its longest path where it has too many places, which its state then has as well. */
static int64_t makespan_of(Search *search, int64_t gpu)
{
    const Operations *operations = search->operations;
    if (operations->places.at[gpu] <= MAX_PLACES)
        return gpu_makespan(operations, &search->state, operations->first.at[gpu], operations->places.at[gpu]);
    update_paths(search->costs, search->tree, &search->state, gpu);
    return search->state.longest[search->tree->last.at[gpu]];
}

static void place_free(Search *search, const int64_t *choice, int64_t sign)
{
    for (int64_t index = 0; index < search->count; index++)
        add_task(search->costs, &search->state, search->free[index], choice[index], sign);
}

/* Finds the best places for the free tasks: of some draws that are short, the shortest, and of these the one of least
 * weighted cost. Returns the makespan of the two GPUs. */
static int64_t reassign(Search *search, const Round *round, int64_t *best)
{
    const FlatTree *tree = search->tree;
    int64_t path = most(search->paths[round->longer], search->paths[round->shorter]);
    int64_t limit = most(search->lengths[round->longer], path) + round->slack, everything = search->sets - 1, drawn[64];
    int64_t gpus[2] = {round->longer, round->shorter};
    bool alone = round->longer == round->shorter;
    double cheapest = INFINITY;
    int64_t shortest = INT64_MAX;
    for (int at = 0; at < (alone ? 1 : 2); at++)
        update_paths(search->costs, tree, &search->state, gpus[at]);
    for (int at = 0; at < (alone ? 1 : 2); at++)
        fill_tables(search, gpus[at], gpus[1 - at], limit);
    Table one = table_of(search, tree->last.at[round->longer]), two = table_of(search, tree->last.at[round->shorter]);
    Table best_parts = {search->work, search->sets};
    int64_t length = alone ? one.at[everything] : divide(&one, &two, limit, &best_parts);
    if (length > limit)
        return INT64_MAX; /* there is none, which must not be: the tasks stay where they were */
    int64_t room = most(length, round->others) + round->slack;
    for (int draw = 0; draw < DRAWS; draw++) {
        int64_t here = alone ? everything : best_parts.at[random_below(&search->random, best_parts.count)];
        if (!draw_assignment(search, round->longer, here, room, drawn)
            || !(alone || draw_assignment(search, round->shorter, everything ^ here, room, drawn)))
            return INT64_MAX; /* must not be, either */
        double cost = weighted_cost(search, drawn);
        place_free(search, drawn, 1);
        int64_t makespan = most(makespan_of(search, round->longer), makespan_of(search, round->shorter));
        place_free(search, drawn, -1);
        for (int at = 0; at < (alone ? 1 : 2); at++)
            if (search->operations->places.at[gpus[at]] > MAX_PLACES)
                update_paths(search->costs, tree, &search->state, gpus[at]);
        int64_t counts = most(makespan, round->others);
        if (counts < shortest || (counts == shortest && cost < cheapest)) {
            memcpy(best, drawn, (size_t)search->count * sizeof *best);
            cheapest = cost;
            shortest = counts;
        }
    }
    return shortest;
}

static void measure(Search *search, int64_t gpu)
{
    update_paths(search->costs, search->tree, &search->state, gpu);
    search->paths[gpu] = search->state.longest[search->tree->last.at[gpu]];
    search->lengths[gpu] = makespan_of(search, gpu);
}

static int64_t longest_of(const Search *search)
{
    int64_t length = search->lengths[0];
    for (int64_t gpu = 1; gpu < search->tree->last.count; gpu++)
        length = most(length, search->lengths[gpu]);
    return length;
}

/* Takes the next bytes of some memory for an array; without memory the sizes are added up. */
static void *take(char **memory, int64_t count, size_t size)
{
    char *taken = *memory;
    *memory += ((size_t)count * size + 63) / 64 * 64;
    return taken;
}

/* Lays out the arrays of a search in memory; returns the bytes that they take. */
static size_t lay_out(Search *search, int64_t tasks, int64_t at_most, char *memory)
{
    const FlatTree *tree = search->tree;
    int64_t nodes = tree->kind.count, places = tree->gpu.count, sets = (int64_t)1 << least(at_most, tasks);
    char *end = memory;
    int64_t *state = take(&end, state_size(tree), sizeof(int64_t));
    search->lengths = take(&end, tree->last.count, sizeof(int64_t));
    search->paths = take(&end, tree->last.count, sizeof(int64_t));
    search->free = take(&end, at_most, sizeof(int64_t));
    search->tables = take(&end, nodes * sets, sizeof(int32_t));
    search->leaf = take(&end, sets, sizeof(int32_t));
    search->sums = take(&end, 3 * sets, sizeof(int64_t));
    search->subsets = take(&end, sets, sizeof(int32_t));
    search->work = take(&end, sets, sizeof(int32_t));
    search->member_sums = take(&end, sets, sizeof(int32_t));
    search->within = take(&end, nodes, sizeof(int64_t));
    search->above = take(&end, nodes, sizeof(int64_t));
    search->path = take(&end, tasks, sizeof(int64_t));
    search->rest = take(&end, tasks, sizeof(int64_t));
    search->sorted = take(&end, tasks, sizeof(int64_t));
    search->ranks = take(&end, places, sizeof(int64_t));
    search->order = take(&end, places, sizeof(int64_t));
    search->waiting = take(&end, 3 * (nodes + 2), sizeof(int64_t));
    search->on_path = take(&end, places, sizeof(bool));
    if (memory)
        search->state = empty_state(tree, state);
    return (size_t)(end - memory);
}

/* Returns -1 if there is no memory. */
EXPORT int64_t improve(
    const Costs *costs, const FlatTree *tree, const LeastLoads *least_loads, const Operations *operations,
    Integers *places, int64_t at_most, int64_t rounds, int64_t seed, int64_t target, int64_t slack)
{
    Search search = {.costs = costs, .tree = tree, .least = least_loads, .operations = operations};
    char *memory = malloc(lay_out(&search, places->count, at_most, NULL));
    if (!memory)
        return -1;
    lay_out(&search, places->count, at_most, memory);
    for (int64_t subset = 0; subset < (int64_t)1 << least(at_most, places->count); subset++)
        search.leaf[subset] = subset ? NEVER : 0;
    seed_random(&search.random, (uint32_t)seed);
    for (int64_t task = 0; task < places->count; task++)
        add_task(costs, &search.state, task, places->at[task], 1);
    for (int64_t gpu = 0; gpu < tree->last.count; gpu++)
        measure(&search, gpu);
    for (int64_t at = 0; at < rounds && longest_of(&search) > target; at++) {
        Round round = {.slack = slack};
        int64_t chosen[64], before[64];
        choose_gpus(&search, &round);
        mark_longest_path(tree, &search.state, round.longer, search.on_path);
        choose_tasks(&search, places, &round, at_most);
        for (int64_t index = 0; index < search.count; index++)
            before[index] = places->at[search.free[index]];
        place_free(&search, before, -1);
        int64_t makespan = reassign(&search, &round, chosen);
        bool better = makespan <= search.lengths[round.longer] + slack;
        for (int64_t index = 0; index < search.count; index++)
            places->at[search.free[index]] = better ? chosen[index] : before[index];
        place_free(&search, better ? chosen : before, 1);
        measure(&search, round.longer);
        measure(&search, round.shorter);
    }
    int64_t length = longest_of(&search);
    free(memory);
    return length;
}
