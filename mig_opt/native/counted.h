/* What is counted of a request; mig_opt/simulation/serving/service.py says what each array holds. */
#ifndef MIG_OPT_COUNTED_H
#define MIG_OPT_COUNTED_H

#include <math.h>
#include <stdbool.h>

#include "arrays.h"

static inline double shortest(double one, double two) { return one < two ? one : two; }

/* The segment that opens next, or else the one that has closed last: where requests go while none is open. */
static inline int64_t next_open(const Floats *opens, const Floats *closes, double now)
{
    int64_t chosen = 0;
    double highest = -INFINITY;
    for (int64_t segment = 0; segment < opens->count; segment++) {
        double rank = opens->at[segment] > now ? 1.0 / (opens->at[segment] - now) : closes->at[segment] - now;
        if (rank > highest) {
            chosen = segment;
            highest = rank;
        }
    }
    return chosen;
}

/* Parts of the counted time for each second. */
static inline double parts_per_second(const Counted *counted)
{
    return (double)counted->blocks.rows / (counted->limits.at[1] - counted->limits.at[0]);
}

static inline void count_request(Counted *counted, double per_second, double arrived, double latency, bool late)
{
    static const double bins_per_unit = 1000.0, least_latency = 1e-7;
    double *totals = counted->totals.at;
    if (counted->histogram.count > 0) {
        int64_t bin = (int64_t)(log(longest(latency / least_latency, 1.0)) * bins_per_unit);
        counted->histogram.at[least(bin, counted->histogram.count - 1)]++;
    }
    int64_t block = least((int64_t)((arrived - counted->limits.at[0]) * per_second), counted->blocks.rows - 1);
    double *part = counted->blocks.at + 3 * block;
    part[0] += 1.0;
    part[1] += late;
    part[2] += latency;
    totals[0] += latency;
    totals[1] += latency * latency;
    totals[2] = shortest(totals[2], latency);
    totals[3] = longest(totals[3], latency);
}

/* Columns of what is counted for each segment. */
enum { BATCHES, REQUESTS, LATE_BATCHES, SLOW_BATCHES, LATE_REQUESTS, COUNTS };

#endif
