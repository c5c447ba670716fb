/* List decoder and simulated annealing; mig_opt/heuristics/fleet/plans/list_decoder.py says what each structure and
 * function is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arrays.h"
#include "random.h"

/* Seconds that do not count. */
static const double EPSILON = 1e-9;

/* Share of the moves that change the order (the others change a mode), and of those that shift a job. */
static const double ORDER_MOVES = 0.65, SHIFTS = 0.6;

enum { MAX_SLICES = 64 };

/* Positions by which half of the moves in the order are limited. */
enum { NEAR = 3 };

/* Share of the mean completion time that counts at least where the last end is weighed against single ends. */
static const double LEAST_SHARE = 1e-3;

/* Temperature at the start, as a share of the best value; it falls linearly to 0. */
static const double TEMPERATURE = 0.003;

/* Run that a job may have, with its cost. */
typedef struct {
    int64_t gpu, place, mode;
    double begin, end, cost;
} Candidate;

static double plan_value(
    const Objective *objective, double ends, double areas, double weight, double last, double late)
{
    double value = (1 - objective->balance) * (ends + objective->later * areas) / weight + objective->balance * last;
    double excess = objective->excess * longest(0.0, last - objective->horizon);
    return value + excess + objective->tardiness * late / weight;
}

/* Returns true if of two placements that are free at the same time the first one is better: an instance that exists, then
 * the one that excludes the fewest placements. */
static bool is_handier(const Placements *placements, const bool *creates, int64_t one, int64_t two)
{
    if (creates[one] != creates[two])
        return creates[two];
    return placements->excludes.at[one] < placements->excludes.at[two];
}

/* Computes when another job can begin in each placement of a GPU, whether an instance is created for it, and the best
 * placement of each profile. */
static void update_gpu(const Placements *placements, Availability *available, int64_t gpu)
{
    int64_t slices = available->free.columns, places = placements->first.count;
    const int64_t *holder = available->holder.at + gpu * slices;
    const double *until = available->free.at + gpu * slices;
    double *begin = available->begin.at + gpu * places, driver = longest(0.0, available->driver.at[gpu]);
    bool *creates = available->creates.at + gpu * places;
    /* When slices are free of what is there now; models of GPUs have no more of them than that. */
    double cleared[MAX_SLICES];
    for (int64_t at = 0; at < slices && at < MAX_SLICES; at++)
        cleared[at] = holder[at] >= 0 ? until[at] + placements->destroy.at[holder[at]] : until[at];
    for (int64_t place = 0; place < places; place++) {
        int64_t first = placements->first.at[place];
        creates[place] = holder[first] != place;
        if (!creates[place]) {
            begin[place] = until[first];
            continue;
        }
        double clear = driver;
        for (int64_t at = first; at < first + placements->width.at[place]; at++)
            clear = longest(clear, cleared[at]);
        begin[place] = clear + placements->create.at[place];
    }
    int64_t profiles = available->earliest.columns;
    for (int64_t profile = 0; profile < profiles; profile++) {
        int64_t best = -1;
        for (int64_t at = placements->offsets.at[profile]; at < placements->offsets.at[profile + 1]; at++) {
            int64_t place = placements->members.at[at];
            if (best < 0 || begin[place] < begin[best] - EPSILON
                || (begin[place] <= begin[best] + EPSILON && is_handier(placements, creates, place, best)))
                best = place;
        }
        available->best.at[gpu * profiles + profile] = best;
        available->earliest.at[gpu * profiles + profile] = best < 0 ? INFINITY : begin[best];
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

/* Costs of a run beside its own end: of its area, and of each second by which it ends after a limit. */
typedef struct { double area, late, limit; } RunCosts;

/* Keeps a candidate if it is better than the best one so far, once what its late end costs is added. */
static void compare(
    const Placements *placements, const Availability *available, Candidate found, const RunCosts *costs, Candidate *best)
{
    found.cost += costs->late * longest(0.0, found.end - costs->limit);
    if (found.cost < best->cost - EPSILON
        || (found.cost <= best->cost + EPSILON && wins_tie(placements, available, &found, best)))
        *best = found;
}

/* Compares all placements for a PCIe-bound job in one mode: its speed there depends on the second of the begin. */
static void compare_bound(
    const DecoderProblem *problem, const Availability *available, int64_t mode, double fixed, double factor,
    const RunCosts *costs, Candidate *best)
{
    const Placements *placements = &problem->placements;
    int64_t gpus = available->begin.rows, places = placements->first.count, profile = problem->jobs.profile.at[mode];
    double seconds = problem->jobs.seconds.at[mode];
    for (int64_t index = placements->offsets.at[profile]; index < placements->offsets.at[profile + 1]; index++) {
        int64_t place = placements->members.at[index];
        for (int64_t gpu = 0; gpu < gpus; gpu++) {
            double begin = available->begin.at[gpu * places + place], cost = begin + fixed;
            if (cost > best->cost + EPSILON)
                continue;
            double delay, slowdown = contention(available, factor, gpu, begin, &delay);
            double end = begin + seconds * slowdown;
            cost += end - begin - seconds + delay;
            compare(placements, available, (Candidate){gpu, place, mode, begin, end, cost}, costs, best);
        }
    }
}

/* Returns the run that costs least for a job, in one mode or (-1) in any. */
static Candidate cheapest(
    const DecoderProblem *problem, const Availability *available, int64_t job, int64_t mode, const RunCosts *costs)
{
    const JobArrays *jobs = &problem->jobs;
    int64_t gpus = available->begin.rows, profiles = available->earliest.columns;
    Candidate best = {-1, -1, -1, 0.0, 0.0, INFINITY};
    int64_t first = jobs->offsets.at[job], stop = jobs->offsets.at[job + 1];
    if (mode >= 0) {
        first += mode;
        stop = first + 1;
    }
    for (int64_t at = first; at < stop; at++) {
        int64_t profile = jobs->profile.at[at];
        double seconds = jobs->seconds.at[at], fixed = seconds + costs->area * jobs->area.at[at];
        if (jobs->factor.at[job] > 0) {
            compare_bound(problem, available, at, fixed, jobs->factor.at[job], costs, &best);
            continue;
        }
        for (int64_t gpu = 0; gpu < gpus; gpu++) {
            double begin = available->earliest.at[gpu * profiles + profile], cost = begin + fixed;
            if (cost > best.cost + EPSILON)
                continue;
            int64_t place = available->best.at[gpu * profiles + profile];
            Candidate found = {gpu, place, at, begin, begin + seconds, cost};
            compare(&problem->placements, available, found, costs, &best);
        }
    }
    return best;
}

/* Copies what is known of some GPUs, from the first one on. */
static void copy_gpus(const Availability *from, int64_t source, Availability *to, int64_t target, int64_t count)
{
    int64_t slices = from->free.columns, places = from->begin.columns, profiles = from->earliest.columns;
    size_t gpus = (size_t)count;
    memcpy(to->holder.at + target * slices, from->holder.at + source * slices, gpus * slices * sizeof(int64_t));
    memcpy(to->free.at + target * slices, from->free.at + source * slices, gpus * slices * sizeof(double));
    memcpy(to->bound_until.at + target * slices, from->bound_until.at + source * slices, gpus * slices * sizeof(double));
    memcpy(to->bound_factor.at + target * slices, from->bound_factor.at + source * slices, gpus * slices * sizeof(double));
    memcpy(to->driver.at + target, from->driver.at + source, gpus * sizeof(double));
    memcpy(to->begin.at + target * places, from->begin.at + source * places, gpus * places * sizeof(double));
    memcpy(to->creates.at + target * places, from->creates.at + source * places, gpus * places * sizeof(bool));
    memcpy(to->earliest.at + target * profiles, from->earliest.at + source * profiles, gpus * profiles * sizeof(double));
    memcpy(to->best.at + target * profiles, from->best.at + source * profiles, gpus * profiles * sizeof(int64_t));
}

/* Sums over the jobs of a list up to some position: weights of the jobs behind it, their shortest times, ends, areas, the
 * last end, seconds by which jobs are late. */
typedef struct { double left, shortest, ends, areas, last, late; } Sums;

/* Decoder that keeps what it has decoded: before[at] is the state of GPU gpu[at] before the run at that position, so runs
 * can be taken back one by one. ready has for each GPU the second at which the next job could begin there. */
typedef struct {
    const DecoderProblem *problem;
    Workspace *work;
    double weight;
    int64_t done;
    Sums *sums;
    double *ready;
} Decoder;

static double value_of(const Decoder *decoder, const Sums *sums, double still)
{
    return plan_value(
        &decoder->problem->objective, sums->ends + still, sums->areas, decoder->weight, sums->last, sums->late);
}

/* Notes when the next job could begin on a GPU. */
static void note_ready(Decoder *decoder, int64_t gpu)
{
    const FloatRows *earliest = &decoder->work->available.earliest;
    double ready = INFINITY;
    for (int64_t at = gpu * earliest->columns; at < (gpu + 1) * earliest->columns; at++)
        ready = earliest->at[at] < ready ? earliest->at[at] : ready;
    decoder->ready[gpu] = ready;
}

static void begin_decoding(Decoder *decoder, const JobList *list)
{
    const JobArrays *jobs = &decoder->problem->jobs;
    const Availability *available = &decoder->problem->available;
    copy_gpus(available, 0, &decoder->work->available, 0, available->free.rows);
    Sums start = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (int64_t at = 0; at < list->order.count; at++) {
        start.left += jobs->weight.at[list->order.at[at]];
        start.shortest += jobs->least.at[list->order.at[at]];
    }
    for (int64_t gpu = 0; gpu < available->free.rows; gpu++)
        note_ready(decoder, gpu);
    decoder->weight = start.left;
    decoder->done = 0;
    decoder->sums[0] = start;
}

/* Gives a place to the job of the next position; the state of its GPU before that is kept. */
static void place_next(Decoder *decoder, int64_t job, int64_t gpu, int64_t place, double end)
{
    Workspace *work = decoder->work;
    Availability *available = &work->available;
    int64_t at = decoder->done++;
    copy_gpus(available, gpu, &work->before, at, 1);
    work->gpu.at[at] = gpu;
    work->place.at[at] = place;
    assign(&decoder->problem->placements, available, gpu, place, end);
    note_ready(decoder, gpu);
    double factor = decoder->problem->jobs.factor.at[job];
    if (factor > 0) {
        int64_t slice = gpu * available->free.columns + decoder->problem->placements.first.at[place];
        available->bound_until.at[slice] = end;
        available->bound_factor.at[slice] = factor;
    }
}

static void take_back(Decoder *decoder, int64_t position)
{
    while (decoder->done > position) {
        int64_t at = --decoder->done;
        copy_gpus(&decoder->work->before, at, &decoder->work->available, decoder->work->gpu.at[at], 1);
        note_ready(decoder, decoder->work->gpu.at[at]);
    }
}

/* Decodes the rest of a list; stops, and returns infinity, as soon as its value is sure to exceed the limit. */
static double decode_rest(Decoder *decoder, const JobList *list, double limit)
{
    const DecoderProblem *problem = decoder->problem;
    const JobArrays *jobs = &problem->jobs;
    const Objective *objective = &problem->objective;
    Workspace *work = decoder->work;
    double late = objective->excess * decoder->weight / longest(1 - objective->balance, LEAST_SHARE);
    while (decoder->done < list->order.count) {
        int64_t at = decoder->done, job = list->order.at[at];
        Sums sums = decoder->sums[at];
        sums.left -= jobs->weight.at[job];
        sums.shortest -= jobs->least.at[job];
        bool urgent = jobs->latest.at[job] < INFINITY;
        RunCosts costs = {
            urgent ? 0.0 : list->area_weight * (sums.left + objective->later) / jobs->weight.at[job],
            urgent ? 0.0 : late / jobs->weight.at[job],
            longest(objective->horizon, sums.last)};
        Candidate best = cheapest(problem, &work->available, job, list->modes.at[job], &costs);
        if (best.end > jobs->latest.at[job])
            return INFINITY;
        place_next(decoder, job, best.gpu, best.place, best.end);
        work->begin.at[at] = best.begin;
        work->end.at[at] = best.end;
        sums.ends += jobs->weight.at[job] * best.end;
        sums.areas += jobs->area.at[best.mode];
        sums.last = longest(sums.last, best.end);
        sums.late += jobs->weight.at[job] * longest(0.0, best.end - jobs->due.at[job]);
        decoder->sums[at + 1] = sums;
        if (limit == INFINITY)
            continue;
        /* None of the jobs that are left begins before the first GPU is ready. */
        double ready = INFINITY;
        for (int64_t gpu = 0; gpu < work->available.free.rows; gpu++)
            ready = decoder->ready[gpu] < ready ? decoder->ready[gpu] : ready;
        if (value_of(decoder, &sums, sums.shortest + (sums.left > 0 ? ready * sums.left : 0.0)) > limit)
            return INFINITY;
    }
    return value_of(decoder, &decoder->sums[list->order.count], 0.0);
}

/* Gets the memory for a list; returns false if there is none. */
static bool allocate(Decoder *decoder, int64_t count)
{
    size_t sums = (size_t)(count + 1) * sizeof(Sums), gpus = (size_t)decoder->problem->available.free.rows;
    decoder->sums = malloc(sums + gpus * sizeof(double));
    decoder->ready = (double *)(decoder->sums + count + 1);
    return decoder->sums;
}

/* Returns -1 if there is no memory. */
EXPORT double decode(const DecoderProblem *problem, const JobList *list, double limit, Workspace *workspace)
{
    Decoder decoder = {.problem = problem, .work = workspace};
    if (!allocate(&decoder, list->order.count))
        return -1.0;
    begin_decoding(&decoder, list);
    double value = decode_rest(&decoder, list, limit);
    free(decoder.sums);
    return value;
}

/* Returns 0 if there is no memory. */
EXPORT int64_t decode_each(
    const DecoderProblem *problem, const IntegerRows *orders, const IntegerRows *modes, const Floats *area_weights,
    FloatRows *sums, Workspace *workspace)
{
    int64_t count = orders->columns, jobs = modes->columns;
    Decoder decoder = {.problem = problem, .work = workspace};
    if (!allocate(&decoder, count))
        return 0;
    for (int64_t row = 0; row < orders->rows; row++) {
        JobList list = {{orders->at + row * count, count}, {modes->at + row * jobs, jobs}, area_weights->at[row]};
        begin_decoding(&decoder, &list);
        double value = decode_rest(&decoder, &list, INFINITY);
        const Sums *end = &decoder.sums[count];
        double found[] = {decoder.weight, end->ends, end->areas, end->late, value < INFINITY ? end->last : INFINITY};
        memcpy(sums->at + row * sums->columns, found, sizeof found);
    }
    free(decoder.sums);
    return 1;
}

/* Moves a random job to another position, or swaps it with the job there; returns the first position that changed. */
static int64_t move_job(Random *random, int64_t *order, int64_t count)
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
    return least(source, target);
}

static double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct { int64_t gpu, place; double end; } Placed;

/* Returns -1 if there is no memory. */
EXPORT double anneal(
    const DecoderProblem *problem, JobList *current, const AnnealingLimits *limits, Workspace *workspace)
{
    double seconds = limits->seconds;
    int64_t rounds = limits->rounds;
    const int64_t *offsets = problem->jobs.offsets.at;
    double begin = seconds < INFINITY ? seconds_now() : 0.0;
    int64_t count = current->order.count, jobs = current->modes.count, most_modes = 0;
    for (int64_t at = 0; at < count; at++) {
        int64_t job = current->order.at[at];
        most_modes = most(most_modes, offsets[job + 1] - offsets[job]);
    }
    if (count < 2 && most_modes < 2)
        return decode(problem, current, INFINITY, workspace);
    size_t orders = (size_t)count * sizeof(int64_t), modes = (size_t)jobs * sizeof(int64_t);
    size_t lists = 2 * (orders + modes), sums = (size_t)(count + 1) * sizeof(Sums);
    char *memory = malloc(lists + sums + (size_t)count * sizeof(Placed));
    Decoder decoder = {.problem = problem, .work = workspace};
    if (!memory || !allocate(&decoder, count)) {
        free(memory);
        return -1.0;
    }
    int64_t *best_order = (int64_t *)memory, *best_modes = best_order + count;
    JobList trial = {{best_modes + jobs, count}, {best_modes + jobs + count, jobs}, current->area_weight};
    Sums *kept_sums = (Sums *)(memory + lists);
    Placed *kept = (Placed *)(memory + lists + sums);
    begin_decoding(&decoder, current);
    double value = decode_rest(&decoder, current, INFINITY), best_value = value;
    /* The runs of the current list, of which the decoder has decoded the first ones. */
    for (int64_t at = 0; at < count; at++)
        kept[at] = (Placed){workspace->gpu.at[at], workspace->place.at[at], workspace->end.at[at]};
    memcpy(kept_sums, decoder.sums, sums);
    memcpy(best_order, current->order.at, orders);
    memcpy(best_modes, current->modes.at, modes);
    memcpy(trial.order.at, current->order.at, orders);
    memcpy(trial.modes.at, current->modes.at, modes);
    Random random;
    seed_random(&random, (uint32_t)limits->seed);
    for (int64_t round = 0; round < rounds; round++) {
        double cooled = 1.0 - (double)round / (double)rounds;
        if (seconds < INFINITY) {
            double left = 1.0 - (seconds_now() - begin) / seconds;
            if (left <= 0.0)
                break;
            cooled = cooled < left ? cooled : left;
        }
        int64_t changed = -1, moded = -1;
        if (count > 1 && (most_modes < 2 || random_share(&random) < ORDER_MOVES)) {
            changed = move_job(&random, trial.order.at, count);
        } else {
            int64_t position = random_below(&random, count);
            moded = current->order.at[position];
            trial.modes.at[moded] = random_below(&random, offsets[moded + 1] - offsets[moded] + 1) - 1;
            changed = position;
        }
        /* All before the change is as in the current list: what was decoded of it is taken back or put there again. */
        take_back(&decoder, changed);
        for (int64_t at = decoder.done; at < changed; at++)
            place_next(&decoder, current->order.at[at], kept[at].gpu, kept[at].place, kept[at].end);
        decoder.sums[changed] = kept_sums[changed];
        /* Metropolis rule: the rise that is accepted has an exponential distribution with the temperature as its mean. */
        double rise = TEMPERATURE * best_value * cooled * -log(1.0 - random_share(&random));
        double found = decode_rest(&decoder, &trial, value + rise);
        if (found > value + rise) {
            take_back(&decoder, changed);
            memcpy(trial.order.at + changed, current->order.at + changed, orders - (size_t)changed * sizeof(int64_t));
            if (moded >= 0)
                trial.modes.at[moded] = current->modes.at[moded];
            continue;
        }
        value = found;
        memcpy(current->order.at + changed, trial.order.at + changed, orders - (size_t)changed * sizeof(int64_t));
        if (moded >= 0)
            current->modes.at[moded] = trial.modes.at[moded];
        for (int64_t at = changed; at < count; at++)
            kept[at] = (Placed){workspace->gpu.at[at], workspace->place.at[at], workspace->end.at[at]};
        memcpy(kept_sums + changed, decoder.sums + changed, sums - (size_t)changed * sizeof(Sums));
        if (value < best_value) {
            best_value = value;
            memcpy(best_order, current->order.at, orders);
            memcpy(best_modes, current->modes.at, modes);
        }
    }
    memcpy(current->order.at, best_order, orders);
    memcpy(current->modes.at, best_modes, modes);
    begin_decoding(&decoder, current);
    value = decode_rest(&decoder, current, INFINITY);
    free(decoder.sums);
    free(memory);
    return value;
}
