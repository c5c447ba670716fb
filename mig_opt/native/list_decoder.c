/* List decoder and simulated annealing; mig_opt/heuristics/fleet/planning/list_decoder.py says what each structure and
 * function is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "random.h"

/* Seconds that do not count. */
static const double EPSILON = 1e-9;

/* Share of the moves that change the order (the others change a mode), and of those that shift a job. */
static const double ORDER_MOVES = 0.65, SHIFTS = 0.6;

/* Positions by which half of the moves in the order are limited. */
enum { NEAR = 3 };

/* Temperature at the start, as a share of the best value; it falls linearly to 0. */
static const double TEMPERATURE = 0.003;

typedef struct {
    Integers first, width;
    Floats create, destroy;
    Integers excludes, offsets, members;
} Placements;

typedef struct {
    IntegerRows holder;
    FloatRows free, bound_until, bound_factor;
    Floats driver;
    FloatRows begin;
    FlagRows creates;
} Availability;

typedef struct {
    Floats weight, factor;
    Integers offsets, profile;
    Floats seconds, area, least;
} JobArrays;

typedef struct { double balance, later; } Objective;

typedef struct {
    Placements placements;
    Availability available;
    JobArrays jobs;
    Objective objective;
} DecoderProblem;

typedef struct {
    Integers order, modes;
    double area_weight;
} JobList;

typedef struct {
    Availability available;
    Integers gpu, place;
    Floats begin, end;
} Workspace;

/* Run that a job may have, with its cost. */
typedef struct {
    int64_t gpu, place, mode;
    double begin, end, cost;
} Candidate;

static double plan_value(const Objective *objective, double ends, double areas, double weight, double last)
{
    return (1 - objective->balance) * (ends + objective->later * areas) / weight + objective->balance * last;
}

/* Computes when another job can begin in each placement of a GPU, and whether an instance is created for it. */
static void update_gpu(const Placements *placements, Availability *available, int64_t gpu)
{
    int64_t slices = available->free.columns, places = placements->first.count;
    const int64_t *holder = available->holder.at + gpu * slices;
    const double *until = available->free.at + gpu * slices;
    double *begin = available->begin.at + gpu * places, driver = longest(0.0, available->driver.at[gpu]);
    bool *creates = available->creates.at + gpu * places;
    for (int64_t place = 0; place < places; place++) {
        int64_t first = placements->first.at[place];
        creates[place] = holder[first] != place;
        if (!creates[place]) {
            begin[place] = until[first];
            continue;
        }
        double clear = driver;
        for (int64_t at = first; at < first + placements->width.at[place]; at++)
            clear = longest(clear, holder[at] >= 0 ? until[at] + placements->destroy.at[holder[at]] : until[at]);
        begin[place] = clear + placements->create.at[place];
    }
}

EXPORT void update_begins(const Placements *placements, Availability *available)
{
    for (int64_t gpu = 0; gpu < available->begin.rows; gpu++)
        update_gpu(placements, available, gpu);
}

/* Gives an instance to a job until its end; instances in the way are destroyed. */
static void assign(const Placements *placements, Availability *available, int64_t gpu, int64_t place, double end)
{
    int64_t slices = available->free.columns, places = placements->first.count;
    int64_t *holder = available->holder.at + gpu * slices;
    double *until = available->free.at + gpu * slices;
    int64_t first = placements->first.at[place], stop = first + placements->width.at[place];
    if (available->creates.at[gpu * places + place]) {
        for (int64_t at = first; at < stop; at++) {
            int64_t there = holder[at];
            if (there < 0)
                continue;
            double clear = until[at] + placements->destroy.at[there];
            int64_t begin = placements->first.at[there];
            for (int64_t other = begin; other < begin + placements->width.at[there]; other++) {
                holder[other] = -1;
                until[other] = clear;
            }
        }
        /* Later on the driver is mostly free; at the start many creations queue. */
        double begin = available->begin.at[gpu * places + place];
        if (begin - placements->create.at[place] <= available->driver.at[gpu] + EPSILON)
            available->driver.at[gpu] = begin;
    }
    for (int64_t at = first; at < stop; at++) {
        holder[at] = place;
        until[at] = end;
    }
    update_gpu(placements, available, gpu);
}

/* Returns the slowdown of a PCIe-bound job on a GPU, and the seconds that it costs the PCIe-bound jobs there. */
static double contention(const Availability *available, double factor, int64_t gpu, double begin, double *delay)
{
    int64_t slices = available->free.columns, count = 1;
    const double *until = available->bound_until.at + gpu * slices;
    const double *factors = available->bound_factor.at + gpu * slices;
    for (int64_t at = 0; at < slices; at++)
        count += until[at] > begin;
    *delay = 0.0;
    for (int64_t at = 0; at < slices; at++) {
        double left = until[at] - begin;
        if (left > 0) {
            double before = longest(1.0, factors[at] * (double)(count - 1));
            *delay += left * (longest(1.0, factors[at] * (double)count) / before - 1.0);
        }
    }
    return longest(1.0, factor * (double)count);
}

/* Returns the slice-seconds for which a GPU is used after some second. */
static double load_after(const Availability *available, int64_t gpu, double begin)
{
    double load = 0.0;
    for (int64_t at = 0; at < available->free.columns; at++)
        load += longest(0.0, available->free.at[gpu * available->free.columns + at] - begin);
    return load;
}

/* Returns true if of two candidates of equal cost the first one is better: that with least free beside it, then one that
 * exists, then the one that excludes the fewest placements. */
static bool wins_tie(
    const Placements *placements, const Availability *available, const Candidate *one, const Candidate *two)
{
    double load = load_after(available, one->gpu, one->begin), other = load_after(available, two->gpu, two->begin);
    if (fabs(load - other) > EPSILON)
        return load > other;
    int64_t places = placements->first.count;
    bool creates = available->creates.at[one->gpu * places + one->place];
    bool existing = available->creates.at[two->gpu * places + two->place];
    if (creates != existing)
        return existing;
    return placements->excludes.at[one->place] < placements->excludes.at[two->place];
}

/* Returns the run that costs least for a job, in one mode or (-1) in any. */
static Candidate cheapest(
    const DecoderProblem *problem, const Availability *available, int64_t job, int64_t mode, double area_cost)
{
    const Placements *placements = &problem->placements;
    const JobArrays *jobs = &problem->jobs;
    int64_t gpus = available->begin.rows, places = placements->first.count;
    Candidate best = {-1, -1, -1, 0.0, 0.0, INFINITY};
    double factor = jobs->factor.at[job];
    int64_t first = jobs->offsets.at[job], stop = jobs->offsets.at[job + 1];
    if (mode >= 0) {
        first += mode;
        stop = first + 1;
    }
    for (int64_t at = first; at < stop; at++) {
        int64_t profile = jobs->profile.at[at];
        double seconds = jobs->seconds.at[at], fixed = seconds + area_cost * jobs->area.at[at];
        for (int64_t index = placements->offsets.at[profile]; index < placements->offsets.at[profile + 1]; index++) {
            int64_t place = placements->members.at[index];
            for (int64_t gpu = 0; gpu < gpus; gpu++) {
                double begin = available->begin.at[gpu * places + place], cost = begin + fixed;
                if (cost > best.cost + EPSILON)
                    continue;
                double end = begin + seconds;
                if (factor > 0) {
                    double delay, slowdown = contention(available, factor, gpu, begin, &delay);
                    end = begin + seconds * slowdown;
                    cost += end - begin - seconds + delay;
                }
                Candidate found = {gpu, place, at, begin, end, cost};
                if (cost < best.cost - EPSILON
                    || (cost <= best.cost + EPSILON && wins_tie(placements, available, &found, &best)))
                    best = found;
            }
        }
    }
    return best;
}

static void copy_availability(const Availability *from, Availability *to)
{
    size_t gpus = (size_t)from->free.rows, slices = (size_t)from->free.columns, places = (size_t)from->begin.columns;
    memcpy(to->holder.at, from->holder.at, gpus * slices * sizeof(int64_t));
    memcpy(to->free.at, from->free.at, gpus * slices * sizeof(double));
    memcpy(to->bound_until.at, from->bound_until.at, gpus * slices * sizeof(double));
    memcpy(to->bound_factor.at, from->bound_factor.at, gpus * slices * sizeof(double));
    memcpy(to->driver.at, from->driver.at, gpus * sizeof(double));
    memcpy(to->begin.at, from->begin.at, gpus * places * sizeof(double));
    memcpy(to->creates.at, from->creates.at, gpus * places * sizeof(bool));
}

EXPORT double decode(const DecoderProblem *problem, const JobList *list, double limit, Workspace *workspace)
{
    const JobArrays *jobs = &problem->jobs;
    Availability *available = &workspace->available;
    copy_availability(&problem->available, available);
    double weight = 0.0, shortest = 0.0, ends = 0.0, areas = 0.0, last = 0.0;
    for (int64_t at = 0; at < list->order.count; at++) {
        weight += jobs->weight.at[list->order.at[at]];
        shortest += jobs->least.at[list->order.at[at]];
    }
    double left = weight;
    for (int64_t at = 0; at < list->order.count; at++) {
        int64_t job = list->order.at[at];
        left -= jobs->weight.at[job];
        shortest -= jobs->least.at[job];
        double area_cost = list->area_weight * (left + problem->objective.later) / jobs->weight.at[job];
        Candidate best = cheapest(problem, available, job, list->modes.at[job], area_cost);
        workspace->gpu.at[at] = best.gpu;
        workspace->place.at[at] = best.place;
        workspace->begin.at[at] = best.begin;
        workspace->end.at[at] = best.end;
        assign(&problem->placements, available, best.gpu, best.place, best.end);
        if (jobs->factor.at[job] > 0) {
            int64_t slice = best.gpu * available->free.columns + problem->placements.first.at[best.place];
            available->bound_until.at[slice] = best.end;
            available->bound_factor.at[slice] = jobs->factor.at[job];
        }
        ends += jobs->weight.at[job] * best.end;
        areas += jobs->area.at[best.mode];
        last = longest(last, best.end);
        if (plan_value(&problem->objective, ends + shortest, areas, weight, last) > limit)
            return INFINITY;
    }
    return plan_value(&problem->objective, ends, areas, weight, last);
}

/* Moves a random job to another position, or swaps it with the job there. */
static void move_job(Random *random, int64_t *order, int64_t count)
{
    int64_t source = random_below(random, count), target;
    if (random_share(random) < 0.5) {
        target = random_below(random, count);
    } else {
        target = source - NEAR + random_below(random, 2 * NEAR + 1);
        target = least(count - 1, most(0, target));
    }
    int64_t moved = order[source];
    if (random_share(random) < SHIFTS) {
        int64_t step = source < target ? 1 : -1;
        for (int64_t at = source; at != target; at += step)
            order[at] = order[at + step];
    } else {
        order[source] = order[target];
    }
    order[target] = moved;
}

/* Returns -1 if there is no memory. */
EXPORT double anneal(
    const DecoderProblem *problem, JobList *current, int64_t rounds, int64_t seed, Workspace *workspace)
{
    const int64_t *offsets = problem->jobs.offsets.at;
    int64_t count = current->order.count, jobs = current->modes.count, most_modes = 0;
    double value = decode(problem, current, INFINITY, workspace);
    for (int64_t at = 0; at < count; at++) {
        int64_t job = current->order.at[at];
        most_modes = most(most_modes, offsets[job + 1] - offsets[job]);
    }
    if (count < 2 && most_modes < 2)
        return value;
    size_t orders = (size_t)count * sizeof(int64_t), modes = (size_t)jobs * sizeof(int64_t);
    int64_t *memory = malloc(2 * (orders + modes));
    if (!memory)
        return -1.0;
    int64_t *best_order = memory, *best_modes = memory + count;
    JobList trial = {{best_modes + jobs, count}, {best_modes + jobs + count, jobs}, current->area_weight};
    double best_value = value;
    memcpy(best_order, current->order.at, orders);
    memcpy(best_modes, current->modes.at, modes);
    Random random;
    seed_random(&random, (uint32_t)seed);
    for (int64_t at = 0; at < rounds; at++) {
        memcpy(trial.order.at, current->order.at, orders);
        memcpy(trial.modes.at, current->modes.at, modes);
        if (count > 1 && (most_modes < 2 || random_share(&random) < ORDER_MOVES)) {
            move_job(&random, trial.order.at, count);
        } else {
            int64_t job = current->order.at[random_below(&random, count)];
            trial.modes.at[job] = random_below(&random, offsets[job + 1] - offsets[job] + 1) - 1;
        }
        /* Metropolis rule: the rise that is accepted has an exponential distribution with the temperature as its mean. */
        double cooled = 1.0 - (double)at / (double)rounds;
        double rise = TEMPERATURE * best_value * cooled * -log(1.0 - random_share(&random));
        double found = decode(problem, &trial, value + rise, workspace);
        if (found > value + rise)
            continue;
        value = found;
        memcpy(current->order.at, trial.order.at, orders);
        memcpy(current->modes.at, trial.modes.at, modes);
        if (value < best_value) {
            best_value = value;
            memcpy(best_order, current->order.at, orders);
            memcpy(best_modes, current->modes.at, modes);
        }
    }
    memcpy(current->order.at, best_order, orders);
    memcpy(current->modes.at, best_modes, modes);
    free(memory);
    return decode(problem, current, INFINITY, workspace);
}
