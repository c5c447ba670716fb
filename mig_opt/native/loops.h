/* The loops that Python calls, and what they take: declared here alone.
 *
 * The C compiler holds the functions to it. The library contains this text, and mig_opt/native/__init__.py checks by
 * it what Python passes; a line that is written in another way than those here is refused. Every field has eight bytes, so
 * structures have no gaps.
 *
 * OF gives the sizes of an array, or of all arrays of a declaration. The same name is the same size in the whole call,
 * also within structures; "a | b" is one of two. For a number or a structure it is what has to hold; "a = b" is another
 * name for a size within the structure. Arrays behind pointers to constants are read only.
 */
#ifndef MIG_OPT_LOOPS_H
#define MIG_OPT_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#define OF(...)

/* A function that Python calls. */
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

/* Views of numpy arrays: the address of the first entry, then the shape. Arrays are contiguous, row by row. */
typedef struct { int64_t *at, count; } Integers;
typedef struct { int64_t *at, rows, columns; } IntegerRows;
typedef struct { int32_t *at; int64_t count; } Table;
typedef struct { int32_t *at; int64_t rows, columns; } TableRows;
typedef struct { double *at; int64_t count; } Floats;
typedef struct { double *at; int64_t rows, columns; } FloatRows;
typedef struct { bool *at; int64_t count; } Flags;

/* Subsets of tasks: mig_opt/models/batch/subset_proof.py. */

typedef struct { int64_t same, busy_one, busy_two, wait_one, wait_two; } Siblings;

EXPORT void split_tasks(
    OF(sets) const Table *one, OF(sets) const Table *two, OF(some) const Table *subsets, const Siblings *siblings,
    int64_t at_most, OF(sets) Table *work, OF(sets) Table *result);
EXPORT void add_tasks(OF(1 << tasks) Table *table, OF(tasks) const Table *ticks, int64_t at_most);
EXPORT void subset_sums(OF(tasks) const Table *amounts, OF(1 << tasks) Table *sums);
EXPORT int64_t sets_within(
    OF(tasks) const Integers *inside, OF(tasks) const Integers *around, OF(tasks) const Integers *beside,
    const int64_t room[3], OF(3 << tasks) Integers *work, OF(1 << tasks) Table *result);

/* The pricing problem of column generation: mig_opt/batch/loads/columns.py. */

EXPORT void fill_knapsack(
    OF(tasks, kinds) const TableRows *times, OF(tasks) const Table *prices, OF(2 | tasks + 1, grains) TableRows *table);
EXPORT void knapsack_choice(
    OF(tasks, kinds) const TableRows *times, OF(tasks) const Table *prices, OF(tasks + 1, grains) const TableRows *table,
    OF(0 <= room < grains) int64_t room, OF(tasks) Integers *kinds);
EXPORT void combine_in_orders(
    OF(branches, grains) const TableRows *tables, OF(orders, places) const IntegerRows *orders, int64_t wait,
    OF(grains) Table *best, OF(places + 1, grains) TableRows *work);

/* Layouts: mig_opt/batch/loads/layout_values.py, layout_bounds.py, task_sets.py, gpu_sets.py and
 * partitions.py. */

typedef struct { double highest, above, shrinking; } Descent;
typedef struct {
    OF(nodes + 1, grains) TableRows values;
    OF(nodes * tasks * grains) Flags taken;
    OF(tasks) Table whole;
    OF(tasks) Floats prices;
    OF(tasks) Integers counts;
} DescentWork;

typedef struct { double above, shrinking; } Ascent;
typedef struct {
    OF(nodes) Floats weights, best, loads;
    OF(nodes) Integers whole;
    OF(profiles) Integers least_weight, choice;
} AscentWork;

EXPORT void add_to_values(
    OF(tasks) const Table *times, OF(tasks) const Table *prices, OF(grains) Table *values, OF(grains) Table *work);
EXPORT int64_t extend_sets(
    OF(sets) const Integers *sets, OF(sets) const Table *lengths, OF(sets) const Table *values,
    OF(tasks) const Table *ticks, OF(tasks) const Table *prices, OF(tasks + 1, grains) const TableRows *best,
    const int64_t limits[4], OF(room) Integers *new_sets, OF(room) Table *new_lengths, OF(room) Table *new_values);
EXPORT int64_t gpu_sets(
    OF(nodes, 5) const IntegerRows *nodes, OF(profiles, tasks) const TableRows *ticks, OF(tasks) const Table *prices,
    const int64_t limits[9], OF(room, words) IntegerRows *sets, OF(room) Integers *values,
    OF(room) Integers *lengths, OF(2) Integers *steps);
EXPORT int64_t partition_of_sets(
    OF(sets, words) const IntegerRows *sets, OF(sets) const Integers *values, OF(firsts) const Integers *firsts,
    const int64_t limits[3], OF(2) Integers *steps, OF(parts, words) IntegerRows *parts);
EXPORT int64_t join_sets(
    OF(sets) const Integers *sets, OF(sets) const Integers *needed, OF(sets) const Integers *first,
    OF(sets) const Integers *end, OF(others) const Integers *others, OF(others) const Table *values,
    OF(room) Integers *rows, OF(room) Integers *other_rows);
EXPORT int64_t subgradient_prices(
    OF(nodes, 5) const IntegerRows *nodes, OF(profiles, tasks) const TableRows *times, OF(tasks) Floats *best_prices,
    const int64_t limits[3], const Descent *descent, DescentWork *work);
EXPORT int64_t fractional_bound(
    OF(nodes, 5) const IntegerRows *nodes, OF(profiles, tasks) const TableRows *ticks, int64_t at_most, int64_t rounds,
    int64_t patience, const Ascent *ascent, AscentWork *work);

/* Orders of operations: mig_opt/batch/loads/operation_orders.py. */

EXPORT void least_idle(
    OF(live) const Integers *live, OF(live + 1) const Integers *first, OF(moves, 5) const IntegerRows *moves,
    OF(sets) const Integers *weights, OF(live, created) IntegerRows *ahead, OF(live, created) TableRows *choice);

/* The local search: mig_opt/batch/loads/neighbourhood.py. */

typedef struct {
    OF(tasks, places) TableRows ticks;
    OF(places) Integers used, spared, clearing;
    OF(tasks, places) FloatRows weighted;
    OF(places) Floats weighted_used;
} Costs;

typedef struct {
    OF(places) Integers create, destroy, free, later;
    OF(gpus) Integers first, places;
    int64_t parallel;
} Operations;

typedef struct {
    OF(nodes) Integers kind, origin, place, one, two, inside;
    OF(nodes) Flags around;
    OF(gpus) Integers first, last;
    OF(places) Integers gpu;
    OF(nodes) Integers wait_one, wait_two, leaves;
} FlatTree;

typedef struct {
    OF(nodes) Integers row;
    OF(branches, tasks) IntegerRows inside, around, beside;
} LeastLoads;

EXPORT int64_t greedy_assignment(const Costs *costs, const FlatTree *tree, OF(tasks) Integers *places);
EXPORT int64_t improve(
    const Costs *costs, const FlatTree *tree, const LeastLoads *least_loads, const Operations *operations,
    OF(tasks) Integers *places, OF(0 <= at_most < 63) int64_t at_most, int64_t rounds, int64_t seed, int64_t target, int64_t slack);

/* Requests of one service: mig_opt/simulation/serving/service.py. */

typedef struct {
    OF(segments) Integers sizes, processes, enough;
    OF(segments, batches) IntegerRows taken;
    OF(segments) Floats waits, costs, opens, closes;
    OF(segments, batches) FloatRows busy, answer;
    OF(segments, most_processes) FloatRows free;
    OF(segments, ring) FloatRows rings;
    OF(segments) Integers heads, lengths;
    OF(segments) Floats starts;
    OF(segments, open) FloatRows ends;
    OF(segments, open) IntegerRows open;
    OF(segments) Integers turns;
    OF(segments) Floats looks;
    OF(segments, formed) IntegerRows formed;
    OF(segments) Integers formed_batches, formed_requests, growing, lacking;
    OF(segments) Floats looked, wakes;
} Segments;

typedef struct {
    OF(3) Floats limits;
    OF(segments, 5) IntegerRows batches;
    OF(segments) Floats busy_seconds;
    OF(bins) Integers histogram;
    OF(blocks, 3) FloatRows blocks;
    OF(4) Floats totals;
} Counted;

EXPORT int64_t serve(
    OF(requests) const Floats *arrivals, OF(0 | requests) const Integers *assigned, OF(factors) const Floats *factors,
    OF(0 <= begin <= requests) int64_t begin, int64_t last, int64_t before, Segments *segments, Counted *counted);

/* Requests of models that are batched continuously: mig_opt/simulation/serving/continuous.py. */

typedef struct {
    OF(segments) Integers most;
    OF(segments) Floats costs, processes, opens, closes, overheads;
    OF(segments, 3) FloatRows limits;
    OF(segments, numbers) FloatRows speeds, ttft, itl;
    OF(segments, 3) FloatRows state;
    OF(segments, parts) FloatRows flights;
    OF(segments) Integers flying;
    OF(segments, ring) FloatRows rings, works;
    OF(segments) Integers heads, waiting;
    OF(segments, 3) FloatRows shares;
} Flights;

EXPORT void serve_continuously(
    OF(requests) const Floats *arrivals, OF(requests) const Floats *works, OF(0 | requests) const Integers *assigned,
    int64_t last, Flights *flights, Counted *counted);

/* The decoder of lists of jobs: mig_opt/heuristics/fleet/plans/list_decoder.py. */

typedef struct {
    OF(places) Integers first, width;
    OF(places) Floats create, destroy;
    OF(places) Integers excludes;
    OF(ends) Integers offsets;
    OF(members) Integers members;
} Placements;

typedef struct {
    OF(gpus, slices) IntegerRows holder;
    OF(gpus, slices) FloatRows free, bound_until, bound_factor;
    OF(gpus) Floats driver;
} Availability;

typedef struct {
    OF(jobs) Floats weight, factor, due, latest;
    OF(jobs + 1) Integers offsets;
    OF(modes) Integers profile;
    OF(modes) Floats seconds, area;
} JobArrays;

typedef struct { double balance, later, horizon, excess, tardiness; } Objective;

typedef struct {
    Placements placements;
    Availability available;
    JobArrays jobs;
    Objective objective;
} DecoderProblem;

typedef struct {
    int64_t rounds;
    double seconds;
    int64_t seed;
} AnnealingLimits;

typedef struct {
    OF(queued) Integers order;
    OF(jobs) Integers modes;
    double area_weight;
} JobList;

typedef struct {
    OF(room) Integers gpu, place;
    OF(room) Floats begin, end;
} Workspace;

EXPORT int64_t decode_each(
    const DecoderProblem *problem, OF(lists, queued) const IntegerRows *orders, OF(lists, jobs) const IntegerRows *modes,
    OF(lists) const Floats *area_weights, OF(lists, 5) FloatRows *sums, OF(queued <= room) Workspace *workspace);
EXPORT double anneal(
    const DecoderProblem *problem, JobList *current, const AnnealingLimits *limits,
    OF(queued <= room) Workspace *workspace);

#endif
