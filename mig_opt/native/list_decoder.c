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

/* What is known of a GPU after some of the jobs, but for the memory of its arrays. By slice: the placement of the instance
 * there or -1, when it is free, and until when a PCIe-bound job runs from there on and slows others down. By placement:
 * when another job can begin there, whether an instance is created for it, and if that job is PCIe-bound, how many such
 * jobs run then and the seconds that it costs the others. By profile: the placement where a job can begin first, and
 * when. */
typedef struct {
    int64_t *holder;
    double *free, *bound_until, *bound_factor, *begin;
    bool *creates;
    int64_t *bound_jobs;
    double *delay;
    double *earliest;
    int64_t *best;
    double driver;
} GpuState;

/* Returns true if of two placements that are free at the same time the first one is better: an instance that exists, then
 * the one that excludes the fewest placements. */
static bool is_handier(const Placements *placements, const bool *creates, int64_t one, int64_t two)
{
    if (creates[one] != creates[two])
        return creates[two];
    return placements->excludes.at[one] < placements->excludes.at[two];
}

/* Computes when another job can begin in each placement of a GPU that touches some slices, whether an instance is created
 * for it, and the best placement of each profile. */
static void update(const Placements *placements, GpuState *state, int64_t slices, int64_t from, int64_t stop)
{
    double *begin = state->begin, driver = longest(0.0, state->driver);
    bool *creates = state->creates;
    /* When slices are free of what is there now; models of GPUs have no more of them than that. */
    double cleared[MAX_SLICES];
    for (int64_t at = 0; at < slices && at < MAX_SLICES; at++)
        cleared[at] = state->holder[at] >= 0 ? state->free[at] + placements->destroy.at[state->holder[at]] : state->free[at];
    for (int64_t place = 0; place < placements->first.count; place++) {
        int64_t first = placements->first.at[place], end = first + placements->width.at[place];
        if (first >= stop || end <= from)
            continue;
        creates[place] = state->holder[first] != place;
        if (!creates[place]) {
            begin[place] = state->free[first];
            continue;
        }
        double clear = driver;
        for (int64_t at = first; at < end; at++)
            clear = longest(clear, cleared[at]);
        begin[place] = clear + placements->create.at[place];
    }
    for (int64_t profile = 0; profile < placements->offsets.count - 1; profile++) {
        int64_t best = -1;
        for (int64_t at = placements->offsets.at[profile]; at < placements->offsets.at[profile + 1]; at++) {
            int64_t place = placements->members.at[at];
            if (best < 0 || begin[place] < begin[best] - EPSILON
                || (begin[place] <= begin[best] + EPSILON && is_handier(placements, creates, place, best)))
                best = place;
        }
        state->best[profile] = best;
        state->earliest[profile] = best < 0 ? INFINITY : begin[best];
    }
}

/* Gives an instance to a job until its end; instances in the way are destroyed. */
static void assign(const Placements *placements, GpuState *state, int64_t slices, int64_t place, double end)
{
    int64_t first = placements->first.at[place], stop = first + placements->width.at[place], from = first, to = stop;
    if (state->creates[place]) {
        for (int64_t at = first; at < stop; at++) {
            int64_t there = state->holder[at];
            if (there < 0)
                continue;
            double clear = state->free[at] + placements->destroy.at[there];
            int64_t begin = placements->first.at[there], past = begin + placements->width.at[there];
            for (int64_t other = begin; other < past; other++) {
                state->holder[other] = -1;
                state->free[other] = clear;
            }
            from = least(from, begin);
            to = most(to, past);
        }
        /* Later on the driver is mostly free; at the start many creations queue. */
        double begin = state->begin[place];
        if (begin - placements->create.at[place] <= state->driver + EPSILON) {
            state->driver = begin;
            from = 0;
            to = slices;
        }
    }
    for (int64_t at = first; at < stop; at++) {
        state->holder[at] = place;
        state->free[at] = end;
    }
    update(placements, state, slices, from, to);
}

/* Sums over the jobs of a list up to some position: weights of the jobs behind it, ends, areas, the last end, seconds by
 * which jobs are late. */
typedef struct { double left, ends, areas, last, late; } Sums;

/* Decoder that keeps what it has decoded. states has what is known of each GPU now, soonest for each profile when the next
 * job could begin. before has for each position what was known of its GPU before that run, so runs can be taken back. */
typedef struct {
    const DecoderProblem *problem;
    Workspace *work;
    int64_t slices, gpus;
    bool contention; /* true if any job is PCIe-bound */
    double weight;
    int64_t done;
    Sums *sums;
    GpuState *pool, **states, **before;
    double *soonest;
} Decoder;

/* Notes for each placement of a GPU what another PCIe-bound job meets there, and costs others. */
static void note_contention(const Decoder *decoder, GpuState *state)
{
    const double *until = state->bound_until, *factors = state->bound_factor;
    for (int64_t place = 0; place < decoder->problem->placements.first.count; place++) {
        double begin = state->begin[place], delay = 0.0;
        int64_t count = 1;
        for (int64_t at = 0; at < decoder->slices; at++)
            count += until[at] > begin;
        for (int64_t at = 0; at < decoder->slices; at++) {
            double left = until[at] - begin;
            if (left > 0) {
                double before = longest(1.0, factors[at] * (double)(count - 1));
                delay += left * (longest(1.0, factors[at] * (double)count) / before - 1.0);
            }
        }
        state->bound_jobs[place] = count;
        state->delay[place] = delay;
    }
}

/* Returns the slice-seconds for which a GPU is used after some second. */
static double load_after(const GpuState *state, int64_t slices, double begin)
{
    double load = 0.0;
    for (int64_t at = 0; at < slices; at++)
        load += longest(0.0, state->free[at] - begin);
    return load;
}

/* Returns true if of two candidates of equal cost the first one is better: that with least free beside it, then one that
 * exists, then the one that excludes the fewest placements. */
static bool wins_tie(const Decoder *decoder, const Candidate *one, const Candidate *two)
{
    const GpuState *here = decoder->states[one->gpu], *there = decoder->states[two->gpu];
    double load = load_after(here, decoder->slices, one->begin), other = load_after(there, decoder->slices, two->begin);
    if (fabs(load - other) > EPSILON)
        return load > other;
    bool creates = here->creates[one->place], existing = there->creates[two->place];
    if (creates != existing)
        return existing;
    const int64_t *excludes = decoder->problem->placements.excludes.at;
    return excludes[one->place] < excludes[two->place];
}

/* Costs of a run beside its own end: of its area, and of each second by which it ends after a limit. */
typedef struct { double area, late, limit; } RunCosts;

/* Keeps a candidate if it is better than the best one so far, once what its late end costs is added. */
static void compare(const Decoder *decoder, Candidate found, const RunCosts *costs, Candidate *best)
{
    found.cost += costs->late * longest(0.0, found.end - costs->limit);
    if (found.cost < best->cost - EPSILON
        || (found.cost <= best->cost + EPSILON && wins_tie(decoder, &found, best)))
        *best = found;
}

static bool is_same(Candidate one, Candidate two)
{
    return one.gpu == two.gpu && one.place == two.place && one.mode == two.mode && one.end == two.end;
}

/* Compares all placements for a PCIe-bound job in one mode: its speed there depends on the second of the begin. */
static void compare_bound(
    const Decoder *decoder, int64_t mode, double fixed, double factor, const RunCosts *costs, Candidate *best)
{
    const Placements *placements = &decoder->problem->placements;
    int64_t profile = decoder->problem->jobs.profile.at[mode];
    double seconds = decoder->problem->jobs.seconds.at[mode];
    for (int64_t index = placements->offsets.at[profile]; index < placements->offsets.at[profile + 1]; index++) {
        int64_t place = placements->members.at[index];
        for (int64_t gpu = 0; gpu < decoder->gpus; gpu++) {
            const GpuState *state = decoder->states[gpu];
            double begin = state->begin[place], cost = begin + fixed;
            if (cost > best->cost + EPSILON)
                continue;
            double end = begin + seconds * longest(1.0, factor * (double)state->bound_jobs[place]);
            cost += end - begin - seconds + state->delay[place];
            compare(decoder, (Candidate){gpu, place, mode, begin, end, cost}, costs, best);
        }
    }
}

/* Returns the run that costs least for a job, in one mode or (-1) in any. */
static Candidate cheapest(const Decoder *decoder, int64_t job, int64_t mode, const RunCosts *costs)
{
    const JobArrays *jobs = &decoder->problem->jobs;
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
            compare_bound(decoder, at, fixed, jobs->factor.at[job], costs, &best);
            continue;
        }
        double soonest = decoder->soonest[profile], late = soonest + seconds - costs->limit;
        if (soonest + fixed + costs->late * longest(0.0, late) > best.cost + EPSILON)
            continue;
        for (int64_t gpu = 0; gpu < decoder->gpus; gpu++) {
            double begin = decoder->states[gpu]->earliest[profile], cost = begin + fixed;
            if (begin > soonest + 2 * EPSILON || cost > best.cost + EPSILON)
                continue;
            int64_t place = decoder->states[gpu]->best[profile];
            compare(decoder, (Candidate){gpu, place, at, begin, begin + seconds, cost}, costs, &best);
        }
    }
    return best;
}

/* Returns the memory of an array of some bytes, a multiple of eight, and goes on behind it. */
static void *taken(char **memory, size_t bytes)
{
    char *at = *memory;
    *memory += bytes;
    return at;
}

/* Copies what is known of a GPU. */
static void copy_state(const Decoder *decoder, const GpuState *from, GpuState *to)
{
    size_t slices = (size_t)decoder->slices, places = (size_t)decoder->problem->placements.first.count;
    /* By slice all is in one piece, and so is what assign needs by placement. */
    memcpy(to->holder, from->holder, 4 * slices * sizeof(double));
    memcpy(to->begin, from->begin, places * (sizeof(double) + sizeof(bool)));
    to->driver = from->driver;
}

static void begin_decoding(Decoder *decoder, const JobList *list)
{
    const JobArrays *jobs = &decoder->problem->jobs;
    Sums start = {0.0, 0.0, 0.0, 0.0, 0.0};
    for (int64_t at = 0; at < list->order.count; at++)
        start.left += jobs->weight.at[list->order.at[at]];
    for (int64_t gpu = 0; gpu < decoder->gpus; gpu++)
        decoder->states[gpu] = decoder->pool + gpu;
    decoder->weight = start.left;
    decoder->done = 0;
    decoder->sums[0] = start;
}

/* Lets the next position have a run, after which something else is known of its GPU. */
static void put_next(Decoder *decoder, int64_t gpu, GpuState *after)
{
    int64_t at = decoder->done++;
    decoder->work->gpu.at[at] = gpu;
    decoder->before[at] = decoder->states[gpu];
    decoder->states[gpu] = after;
}

static void take_back(Decoder *decoder, int64_t position)
{
    while (decoder->done > position) {
        int64_t at = --decoder->done;
        decoder->states[decoder->work->gpu.at[at]] = decoder->before[at];
    }
}

/* Gives a place to the job of the next position. after is the memory for what is known of its GPU then; without it what
 * was known before is forgotten. */
static void place_next(Decoder *decoder, int64_t job, const Candidate *run, GpuState *after)
{
    const Placements *placements = &decoder->problem->placements;
    after = after ? after : decoder->pool + decoder->gpus + run->gpu;
    if (after != decoder->states[run->gpu])
        copy_state(decoder, decoder->states[run->gpu], after);
    assign(placements, after, decoder->slices, run->place, run->end);
    double factor = decoder->problem->jobs.factor.at[job];
    if (factor > 0) {
        after->bound_until[placements->first.at[run->place]] = run->end;
        after->bound_factor[placements->first.at[run->place]] = factor;
    }
    if (decoder->contention)
        note_contention(decoder, after);
    decoder->work->place.at[decoder->done] = run->place;
    decoder->work->begin.at[decoder->done] = run->begin;
    decoder->work->end.at[decoder->done] = run->end;
    put_next(decoder, run->gpu, after);
}

/* Notes for each profile when the next job could begin. */
static void note_soonest(Decoder *decoder)
{
    int64_t profiles = decoder->problem->placements.offsets.count - 1;
    double *restrict soonest = decoder->soonest;
    for (int64_t at = 0; at < profiles; at++)
        soonest[at] = INFINITY;
    for (int64_t gpu = 0; gpu < decoder->gpus; gpu++) {
        const double *restrict earliest = decoder->states[gpu]->earliest;
        for (int64_t at = 0; at < profiles; at++)
            soonest[at] = earliest[at] < soonest[at] ? earliest[at] : soonest[at];
    }
}

/* Returns the run of the next job of a list. */
static Candidate next_run(Decoder *decoder, const JobList *list)
{
    const JobArrays *jobs = &decoder->problem->jobs;
    const Objective *objective = &decoder->problem->objective;
    int64_t job = list->order.at[decoder->done];
    const Sums *sums = &decoder->sums[decoder->done];
    double weight = jobs->weight.at[job], left = sums->left - weight;
    double late = objective->excess * decoder->weight / longest(1 - objective->balance, LEAST_SHARE);
    bool urgent = jobs->latest.at[job] < INFINITY;
    RunCosts costs = {
        urgent ? 0.0 : list->area_weight * (left + objective->later) / weight,
        urgent ? 0.0 : late / weight,
        longest(objective->horizon, sums->last)};
    note_soonest(decoder);
    return cheapest(decoder, job, list->modes.at[job], &costs);
}

/* Decodes the rest of a list, and returns the value of the plan; infinity, and no more is decoded, if a job ends too
 * late. fresh has for each position the memory for what is known of its GPU after it; without it nothing can be taken
 * back. */
static double decode_rest(Decoder *decoder, const JobList *list, GpuState **fresh)
{
    const JobArrays *jobs = &decoder->problem->jobs;
    const Objective *objective = &decoder->problem->objective;
    while (decoder->done < list->order.count) {
        int64_t at = decoder->done, job = list->order.at[at];
        double weight = jobs->weight.at[job];
        Sums sums = decoder->sums[at];
        Candidate run = next_run(decoder, list);
        if (run.end > jobs->latest.at[job])
            return INFINITY;
        place_next(decoder, job, &run, fresh ? fresh[at] : NULL);
        sums.left -= weight;
        sums.ends += weight * run.end;
        sums.areas += jobs->area.at[run.mode];
        sums.last = longest(sums.last, run.end);
        sums.late += weight * longest(0.0, run.end - jobs->due.at[job]);
        decoder->sums[at + 1] = sums;
    }
    const Sums *sums = &decoder->sums[list->order.count];
    double value = (1 - objective->balance) * (sums->ends + objective->later * sums->areas) / decoder->weight
        + objective->balance * sums->last;
    double excess = objective->excess * longest(0.0, sums->last - objective->horizon);
    return value + excess + objective->tardiness * sums->late / decoder->weight;
}

/* Gets the memory for a list of jobs, and for what is known of GPUs: as it is, and after so many runs more; returns false
 * if there is none. */
static bool allocate(Decoder *decoder, int64_t count, int64_t runs)
{
    const DecoderProblem *problem = decoder->problem;
    const Availability *available = &problem->available;
    decoder->gpus = available->free.rows;
    decoder->slices = available->free.columns;
    for (int64_t job = 0; job < problem->jobs.factor.count; job++)
        decoder->contention |= problem->jobs.factor.at[job] > 0;
    size_t gpus = (size_t)decoder->gpus, slices = (size_t)decoder->slices, pool = gpus + (size_t)runs;
    size_t places = (size_t)problem->placements.first.count, profiles = (size_t)problem->placements.offsets.count - 1;
    size_t flags = (places + 7) / 8;
    size_t state = 4 * slices + 3 * places + flags + 2 * profiles, room = (size_t)count;
    size_t others = gpus + room + profiles;
    decoder->sums = malloc(
        (room + 1) * sizeof(Sums) + pool * sizeof(GpuState) + (pool * state + others) * sizeof(double));
    if (!decoder->sums)
        return false;
    char *memory = (char *)(decoder->sums + room + 1);
    decoder->pool = taken(&memory, pool * sizeof(GpuState));
    decoder->states = taken(&memory, gpus * sizeof(GpuState *));
    decoder->before = taken(&memory, room * sizeof(GpuState *));
    decoder->soonest = taken(&memory, profiles * sizeof(double));
    for (size_t at = 0; at < pool; at++) {
        GpuState *each = decoder->pool + at;
        each->holder = taken(&memory, slices * sizeof(int64_t));
        each->free = taken(&memory, slices * sizeof(double));
        each->bound_until = taken(&memory, slices * sizeof(double));
        each->bound_factor = taken(&memory, slices * sizeof(double));
        each->begin = taken(&memory, places * sizeof(double));
        each->creates = taken(&memory, flags * sizeof(double));
        each->bound_jobs = taken(&memory, places * sizeof(int64_t));
        each->delay = taken(&memory, places * sizeof(double));
        each->earliest = taken(&memory, profiles * sizeof(double));
        each->best = taken(&memory, profiles * sizeof(int64_t));
        if (at >= gpus)
            continue;
        memcpy(each->holder, available->holder.at + at * slices, slices * sizeof(int64_t));
        memcpy(each->free, available->free.at + at * slices, slices * sizeof(double));
        memcpy(each->bound_until, available->bound_until.at + at * slices, slices * sizeof(double));
        memcpy(each->bound_factor, available->bound_factor.at + at * slices, slices * sizeof(double));
        each->driver = available->driver.at[at];
        update(&problem->placements, each, decoder->slices, 0, decoder->slices);
        if (decoder->contention)
            note_contention(decoder, each);
    }
    return true;
}

/* Returns 0 if there is no memory. */
EXPORT int64_t decode_each(
    const DecoderProblem *problem, const IntegerRows *orders, const IntegerRows *modes, const Floats *area_weights,
    FloatRows *sums, Workspace *workspace)
{
    int64_t count = orders->columns, jobs = modes->columns;
    Decoder decoder = {.problem = problem, .work = workspace};
    if (!allocate(&decoder, count, problem->available.free.rows))
        return 0;
    for (int64_t row = 0; row < orders->rows; row++) {
        JobList list = {{orders->at + row * count, count}, {modes->at + row * jobs, jobs}, area_weights->at[row]};
        begin_decoding(&decoder, &list);
        double value = decode_rest(&decoder, &list, NULL);
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

/* GPU of a run, and what is known of it afterwards. */
typedef struct { int64_t gpu; GpuState *after; } Placed;

/* Keeps the runs of the current list from a position on; the memory of those before is free for other lists. */
static void keep(const Decoder *decoder, int64_t from, int64_t count, Placed *kept, GpuState **fresh)
{
    for (int64_t at = from; at < count; at++) {
        GpuState *free_now = kept[at].after;
        kept[at] = (Placed){decoder->work->gpu.at[at], fresh[at]};
        fresh[at] = free_now;
    }
}

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
    size_t orders = (size_t)count * sizeof(int64_t), modes = (size_t)jobs * sizeof(int64_t);
    size_t lists = 2 * (orders + modes), sums = (size_t)(count + 1) * sizeof(Sums);
    size_t runs = (size_t)count * sizeof(Placed);
    char *memory = malloc(lists + sums + runs + (size_t)count * sizeof(GpuState *));
    Decoder decoder = {.problem = problem, .work = workspace};
    if (!memory || !allocate(&decoder, count, 2 * count)) {
        free(memory);
        return -1.0;
    }
    int64_t *best_order = (int64_t *)memory, *best_modes = best_order + count;
    JobList trial = {{best_modes + jobs, count}, {best_modes + jobs + count, jobs}, current->area_weight};
    Sums *kept_sums = (Sums *)(memory + lists);
    Placed *kept = (Placed *)(memory + lists + sums);
    GpuState **fresh = (GpuState **)(memory + lists + sums + runs);
    for (int64_t at = 0; at < count; at++) {
        fresh[at] = decoder.pool + decoder.gpus + at;
        kept[at].after = fresh[at] + count;
    }
    begin_decoding(&decoder, current);
    double value = decode_rest(&decoder, current, fresh), best_value = value;
    if (decoder.done < count || (count < 2 && most_modes < 2))
        rounds = 0;
    /* The runs of the current list, of which the decoder has decoded the first ones. */
    keep(&decoder, 0, decoder.done, kept, fresh);
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
        int64_t changed, moded = -1;
        if (count > 1 && (most_modes < 2 || random_share(&random) < ORDER_MOVES)) {
            changed = move_job(&random, trial.order.at, count);
        } else {
            changed = random_below(&random, count);
            moded = current->order.at[changed];
            trial.modes.at[moded] = random_below(&random, offsets[moded + 1] - offsets[moded] + 1) - 1;
        }
        /* Metropolis rule: the rise that is accepted has an exponential distribution with the temperature as its mean. */
        double rise = TEMPERATURE * best_value * cooled * -log(1.0 - random_share(&random));
        if (moded < 0 && trial.order.at[changed] == current->order.at[changed])
            continue;
        /* All before the change is as in the current list: what was decoded of it is taken back or put there again. */
        take_back(&decoder, changed);
        for (int64_t at = decoder.done; at < changed; at++)
            put_next(&decoder, kept[at].gpu, kept[at].after);
        decoder.sums[changed] = kept_sums[changed];
        /* With another mode a job often has the same run, and then all others have theirs. */
        if (moded >= 0 && is_same(next_run(&decoder, &trial), next_run(&decoder, current))) {
            current->modes.at[moded] = trial.modes.at[moded];
            continue;
        }
        double found = decode_rest(&decoder, &trial, fresh);
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
        keep(&decoder, changed, count, kept, fresh);
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
    value = decode_rest(&decoder, current, fresh);
    free(decoder.sums);
    free(memory);
    return value;
}
