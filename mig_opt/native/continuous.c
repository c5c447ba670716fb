/* Requests that join a running batch; mig_opt/simulation/serving/continuous.py says what each structure holds. */
#include <string.h>

#include "counted.h"

enum { TARGET, ARRIVAL, BEGIN, TOKENS, FIRST_TOKEN, SHARE, PARTS };

/* Let requests that wait begin, while there is room for them. */
static void admit(Flights *flights, int64_t segment)
{
    int64_t room = flights->rings.columns, *head = flights->heads.at + segment, *flying = flights->flying.at + segment;
    double *state = flights->state.at + 3 * segment;
    while (flights->waiting.at[segment] > 0 && *flying < flights->most.at[segment] && state[0] >= flights->opens.at[segment]) {
        double *flight = flights->flights.at + segment * flights->flights.columns + PARTS * (*flying)++;
        flight[TARGET] = state[1] + flights->works.at[segment * room + *head];
        flight[ARRIVAL] = flights->rings.at[segment * room + *head];
        flight[BEGIN] = state[0];
        flight[TOKENS] = state[2];
        flight[FIRST_TOKEN] = flights->ttft.at[segment * flights->ttft.columns + *flying];
        flight[SHARE] = shortest(flights->processes.at[segment] / (double)*flying, 1.0);
        *head = (*head + 1) & (room - 1);
        flights->waiting.at[segment]--;
    }
}

/* Count a request that is done; as large a share of a batch as it was at its begin. */
static void count_flight(const Flights *flights, int64_t segment, const double *flight, double end, Counted *counted)
{
    const double *limits = flights->limits.at + 3 * segment;
    double first = counted->limits.at[0], last = counted->limits.at[1], took = end - flight[BEGIN];
    counted->busy_seconds.at[segment] += longest(shortest(end, last) - longest(flight[BEGIN], first), 0.0);
    if (flight[ARRIVAL] < first)
        return;
    double overhead = flights->overheads.at[segment], latency = end - flight[ARRIVAL] + overhead;
    double ttft = flight[BEGIN] - flight[ARRIVAL] + flight[FIRST_TOKEN] + overhead;
    double tokens = flights->state.at[3 * segment + 2] - flight[TOKENS];
    bool late = latency > limits[0] || ttft > limits[1] || (took > 0.0 && tokens / took > limits[2]);
    double share = flight[SHARE], *shares = flights->shares.at + 3 * segment;
    shares[0] += share;
    shares[1] += late * share;
    shares[2] += (took + overhead > limits[0]) * share;
    counted->batches.at[COUNTS * segment + REQUESTS]++;
    counted->batches.at[COUNTS * segment + LATE_REQUESTS] += late;
    count_request(counted, parts_per_second(counted), flight[ARRIVAL], latency, late);
}

/* Go on to a moment: what is done by then leaves, what waits begins. */
static void advance(Flights *flights, int64_t segment, double moment, Counted *counted)
{
    double *state = flights->state.at + 3 * segment, opens = flights->opens.at[segment];
    double *own = flights->flights.at + segment * flights->flights.columns;
    const double *speeds = flights->speeds.at + segment * flights->speeds.columns;
    const double *itl = flights->itl.at + segment * flights->itl.columns;
    int64_t *flying = flights->flying.at + segment;
    if (state[0] < opens && opens <= moment) {
        state[0] = opens;
        admit(flights, segment);
    }
    while (*flying > 0) {
        double *first = own;
        for (double *other = own + PARTS; other < own + PARTS * *flying; other += PARTS)
            if (other[TARGET] < first[TARGET])
                first = other;
        double end = state[0] + longest(first[TARGET] - state[1], 0.0) / speeds[*flying];
        state[2] += (shortest(end, moment) - state[0]) * itl[*flying];
        if (end > moment) {
            state[1] += (moment - state[0]) * speeds[*flying];
            break;
        }
        state[0] = end;
        state[1] = first[TARGET];
        count_flight(flights, segment, first, end, counted);
        memmove(first, own + PARTS * --*flying, PARTS * sizeof *own);
        admit(flights, segment);
    }
    if (isfinite(moment))
        state[0] = longest(state[0], moment);
}

/* The open segment with the fewest requests, and this one, for its throughput; else the one that opens next. */
static int64_t least_waiting(const Flights *flights, double now)
{
    int64_t chosen = -1, count = flights->most.count;
    double fewest = INFINITY;
    for (int64_t segment = 0; segment < count; segment++) {
        if (flights->opens.at[segment] <= now && now < flights->closes.at[segment]) {
            int64_t there = flights->waiting.at[segment] + flights->flying.at[segment];
            double rank = (double)(there + 1) * flights->costs.at[segment];
            if (rank < fewest) {
                fewest = rank;
                chosen = segment;
            }
        }
    }
    return chosen < 0 ? next_open(&flights->opens, &flights->closes, now) : chosen;
}

EXPORT void serve_continuously(
    const Floats *arrivals, const Floats *works, const Integers *assigned, int64_t last, Flights *flights, Counted *counted)
{
    int64_t room = flights->rings.columns, count = flights->most.count;
    for (int64_t index = 0; index < arrivals->count; index++) {
        double now = arrivals->at[index];
        for (int64_t segment = 0; segment < count; segment++)
            advance(flights, segment, now, counted);
        int64_t chosen = assigned->count ? assigned->at[index] : least_waiting(flights, now);
        int64_t place = (flights->heads.at[chosen] + flights->waiting.at[chosen]++) & (room - 1);
        flights->rings.at[chosen * room + place] = now;
        flights->works.at[chosen * room + place] = works->at[index];
        admit(flights, chosen);
    }
    for (int64_t segment = 0; last && segment < count; segment++)
        advance(flights, segment, INFINITY, counted);
}
