/* Requests of one service at its segments; mig_opt/simulation/serving/service.py says what each structure holds. */
#include "counted.h"

/* The process of a segment that is free first. */
static double *first_free(const Segments *segments, int64_t segment)
{
    double *free = segments->free.at + segment * segments->free.columns, *first = free;
    for (double *other = free + 1; other < free + segments->processes.at[segment]; other++)
        if (*other < *first)
            first = other;
    return first;
}

/* Requests of a segment that are in no batch yet, and when the oldest of them has come. */
static int64_t unformed(const Segments *segments, int64_t segment, double *oldest)
{
    int64_t formed = segments->formed_requests.at[segment], room = segments->rings.columns;
    *oldest = segments->rings.at[segment * room + ((segments->heads.at[segment] + formed) & (room - 1))];
    return segments->lengths.at[segment] - formed;
}

/* Whether another batch may be formed ahead, or the last one may grow: while two for each process wait, none may. */
static bool has_slot(const Segments *segments, int64_t segment)
{
    return segments->formed_batches.at[segment] < 2 * segments->processes.at[segment];
}

/* When the first of the batches that are formed ahead begins. */
static double next_begin(const Segments *segments, int64_t segment)
{
    if (segments->formed_batches.at[segment] == 0)
        return INFINITY;
    return longest(*first_free(segments, segment), segments->looked.at[segment]);
}

/* When the next batch of a segment begins, or batches are formed ahead, if no further request comes. */
static double next_start(const Segments *segments, int64_t segment)
{
    if (segments->looks.at[segment] > 0.0)
        return shortest(next_begin(segments, segment), segments->wakes.at[segment]);
    int64_t length = segments->lengths.at[segment], enough = segments->enough.at[segment];
    int64_t head = segments->heads.at[segment], room = segments->rings.columns;
    const double *ring = segments->rings.at + segment * room;
    if (length == 0)
        return INFINITY;
    double ready = ring[head] + segments->waits.at[segment];
    if (length >= enough)
        ready = shortest(ready, ring[(head + enough - 1) & (room - 1)]);
    return longest(ready, *first_free(segments, segment));
}

/* Count the oldest requests of a segment, which are answered at the end of their batch. */
static void count_batch(
    const Segments *segments, int64_t segment, int64_t count, double end, double answer, Counted *counted)
{
    double begun = counted->limits.at[0], limit = counted->limits.at[2], per_second = parts_per_second(counted);
    int64_t room = segments->rings.columns, head = segments->heads.at[segment], requests = 0, late = 0;
    const double *ring = segments->rings.at + segment * room;
    for (int64_t at = 0; at < count; at++) {
        double arrived = ring[(head + at) & (room - 1)];
        if (arrived < begun)
            continue;
        double latency = end - arrived;
        count_request(counted, per_second, arrived, latency, latency > limit);
        requests++;
        late += latency > limit;
    }
    int64_t *row = counted->batches.at + COUNTS * segment;
    row[BATCHES] += requests > 0;
    row[REQUESTS] += requests;
    row[LATE_BATCHES] += late > 0;
    row[SLOW_BATCHES] += requests > 0 && answer > limit;
    row[LATE_REQUESTS] += late;
}

/* Note that some requests are open until their answer, in the place of those that were answered first. */
static void note_open(Segments *segments, int64_t segment, int64_t count, double end)
{
    int64_t places = segments->ends.columns, place = 0;
    double *ends = segments->ends.at + segment * places;
    for (int64_t other = 1; other < places; other++)
        if (ends[other] < ends[place])
            place = other;
    ends[place] = end;
    segments->open.at[segment * places + place] = count;
}

/* Form batches ahead as the dynamic batcher of Triton does at a look: what has come joins the last batch as long as that
   may grow ("growing"), else another one, until there is nothing left, no slot, or a delay to wait for. It looks again
   when a batch begins, when "lacking" requests wait, or when it "wakes". */
static void look(Segments *segments, int64_t segment, double now)
{
    int64_t size = segments->sizes.at[segment], enough = segments->enough.at[segment], left;
    int64_t *growing = segments->growing.at + segment, *lacking = segments->lacking.at + segment;
    int64_t *batches = segments->formed_batches.at + segment;
    int64_t *formed = segments->formed.at + segment * segments->formed.columns;
    const int64_t *taken = segments->taken.at + segment * segments->taken.columns;
    double delay = segments->waits.at[segment], oldest;
    segments->looked.at[segment] = now;
    segments->wakes.at[segment] = INFINITY;
    while ((left = unformed(segments, segment, &oldest)) > 0 && has_slot(segments, segment)) {
        int64_t had = *growing ? formed[*batches - 1] : 0, reached = least(had + left, size);
        int64_t preferred = reached >= enough ? taken[reached] : 0;
        bool over = delay > 0.0 && now >= oldest + delay, full = false;
        if (had == size) {
            *growing = *lacking = 0;
            continue;
        }
        if (preferred > had && !over) {
            reached = preferred;
            full = delay == 0.0;
        } else if (over || delay == 0.0)
            full = reached == size;
        else {
            int64_t next = most(reached + 1, enough);
            while (taken[next] != next)
                next++;
            *lacking = next - had;
            if (had == 0 || (had >= enough && taken[had] == had)) {
                segments->wakes.at[segment] = oldest + delay;
                return;
            }
        }
        if (!*growing)
            formed[(*batches)++] = 0;
        formed[*batches - 1] = reached;
        segments->formed_requests.at[segment] += reached - had;
        *growing = !full;
        if (full)
            *lacking = 0;
        if (*first_free(segments, segment) <= now)
            return;
    }
}

/* Take the first of the batches that are formed ahead, and return its requests. With a delay, those after it whose delay
   is over join it if there is room, as Triton has it; the one that has no room any more grows no further, either. */
static int64_t begin_formed(Segments *segments, int64_t segment, double now)
{
    int64_t batches = segments->formed_batches.at[segment], room = segments->rings.columns, joined = 1;
    int64_t head = segments->heads.at[segment], *formed = segments->formed.at + segment * segments->formed.columns;
    const double *ring = segments->rings.at + segment * room;
    double delay = segments->waits.at[segment];
    int64_t count = formed[0];
    bool last = batches == 1;
    while (delay > 0.0 && joined < batches && now > ring[(head + count) & (room - 1)] + delay) {
        last = joined == batches - 1;
        if (count + formed[joined] > segments->sizes.at[segment])
            break;
        count += formed[joined++];
    }
    if (last)
        segments->growing.at[segment] = segments->lacking.at[segment] = 0;
    for (int64_t at = joined; at < batches; at++)
        formed[at - joined] = formed[at];
    segments->formed_batches.at[segment] -= joined;
    segments->formed_requests.at[segment] -= count;
    return count;
}

/* Let a request come to a segment that forms batches ahead. */
static void come(Segments *segments, int64_t segment, double now)
{
    double oldest, every = segments->looks.at[segment], since = now - segments->looked.at[segment];
    int64_t left = unformed(segments, segment, &oldest);
    if (left >= segments->lacking.at[segment] && has_slot(segments, segment))
        look(segments, segment, now);
    else if (left == 1)
        segments->wakes.at[segment] = segments->looked.at[segment] + every * ceil(since / every);
}

/* Begin the next batch of a segment, and return true; or look at those that it forms ahead, if that comes first. */
static bool begin_batch(Segments *segments, int64_t segment, double factor, Counted *counted)
{
    double begin = segments->starts.at[segment];
    bool ahead = segments->looks.at[segment] > 0.0;
    if (ahead && segments->wakes.at[segment] < next_begin(segments, segment)) {
        look(segments, segment, begin);
        segments->starts.at[segment] = next_start(segments, segment);
        return false;
    }
    int64_t count = least(segments->lengths.at[segment], segments->sizes.at[segment]);
    double oldest = segments->rings.at[segment * segments->rings.columns + segments->heads.at[segment]];
    if (ahead)
        count = begin_formed(segments, segment, begin);
    else if (begin < oldest + segments->waits.at[segment])
        count = segments->taken.at[segment * segments->taken.columns + count];
    double busy = segments->busy.at[segment * segments->busy.columns + count] * factor;
    double answer = segments->answer.at[segment * segments->answer.columns + count] * factor;
    *first_free(segments, segment) = begin + busy;
    count_batch(segments, segment, count, begin + answer, answer, counted);
    if (segments->ends.columns > 0)
        note_open(segments, segment, count, begin + answer);
    double within = shortest(begin + busy, counted->limits.at[1]) - longest(begin, counted->limits.at[0]);
    counted->busy_seconds.at[segment] += longest(within, 0.0);
    segments->heads.at[segment] = (segments->heads.at[segment] + count) & (segments->rings.columns - 1);
    segments->lengths.at[segment] -= count;
    if (ahead)
        look(segments, segment, begin);
    segments->starts.at[segment] = next_start(segments, segment);
    return true;
}

static bool is_open(const Segments *segments, int64_t segment, double now)
{
    return segments->opens.at[segment] <= now && now < segments->closes.at[segment];
}

/* The segment with the fewest requests, and this one, for its throughput; of several idle ones that whose turn it is. */
static int64_t least_connections(Segments *segments, double now, int64_t turn)
{
    int64_t chosen = -1, places = segments->ends.columns;
    double fewest = INFINITY;
    for (int64_t segment = 0; segment < segments->sizes.count; segment++) {
        if (!is_open(segments, segment, now))
            continue;
        int64_t open = segments->lengths.at[segment];
        for (int64_t place = segment * places; place < (segment + 1) * places; place++)
            if (segments->ends.at[place] > now)
                open += segments->open.at[place];
        double rank = open ? (double)(open + 1) * segments->costs.at[segment] : 0.0;
        if (rank < fewest || (rank == fewest && segments->turns.at[segment] < segments->turns.at[chosen])) {
            chosen = segment;
            fewest = rank;
        }
    }
    if (chosen < 0)
        return next_open(&segments->opens, &segments->closes, now);
    segments->turns.at[chosen] = turn;
    return chosen;
}

/* The segment that needs the fewest seconds for its requests and one more. */
static int64_t least_work(const Segments *segments, double now)
{
    int64_t chosen = -1;
    double fewest = INFINITY;
    for (int64_t segment = 0; segment < segments->sizes.count; segment++) {
        if (!is_open(segments, segment, now))
            continue;
        double queued = (double)(segments->lengths.at[segment] + 1) * segments->costs.at[segment];
        if (queued >= fewest)
            continue;
        const double *free = segments->free.at + segment * segments->free.columns;
        int64_t processes = segments->processes.at[segment];
        double ahead = 0.0;
        for (int64_t process = 0; process < processes; process++)
            ahead += longest(free[process] - now, 0.0);
        double work = queued + ahead / (double)processes;
        if (work < fewest) {
            chosen = segment;
            fewest = work;
        }
    }
    return chosen < 0 ? next_open(&segments->opens, &segments->closes, now) : chosen;
}

static double least_of(const double *values, int64_t count)
{
    double found = INFINITY;
    for (int64_t at = 0; at < count; at++)
        found = shortest(found, values[at]);
    return found;
}

EXPORT int64_t serve(
    const Floats *arrivals, const Integers *assigned, const Floats *factors, int64_t begin, int64_t last, int64_t before,
    Segments *segments, Counted *counted)
{
    int64_t count = segments->sizes.count, room = segments->rings.columns, used = 0;
    double *starts = segments->starts.at, soonest = least_of(starts, count);
    for (int64_t index = begin; index < arrivals->count; index++) {
        double now = arrivals->at[index];
        if (soonest < now) {
            for (int64_t segment = 0; segment < count; segment++)
                while (starts[segment] < now)
                    used += begin_batch(segments, segment, factors->at[(begin + used) % factors->count], counted);
            soonest = least_of(starts, count);
        }
        int64_t chosen = assigned->count ? assigned->at[index]
            : segments->ends.columns     ? least_connections(segments, now, before + index + 1)
                                         : least_work(segments, now);
        int64_t length = segments->lengths.at[chosen];
        if (length == room)
            return index;
        segments->rings.at[chosen * room + ((segments->heads.at[chosen] + length) & (room - 1))] = now;
        segments->lengths.at[chosen] = ++length;
        if (segments->looks.at[chosen] > 0.0)
            come(segments, chosen, now);
        if (length == 1 || length == segments->enough.at[chosen] || segments->looks.at[chosen] > 0.0) {
            starts[chosen] = next_start(segments, chosen);
            soonest = shortest(soonest, starts[chosen]);
        }
    }
    for (int64_t segment = 0; last && segment < count; segment++)
        while (segments->lengths.at[segment] > 0)
            used += begin_batch(segments, segment, factors->at[(begin + used) % factors->count], counted);
    return arrivals->count;
}
