/* Bound of a layout from the loads of its paths, with tasks divided; mig_opt/batch/loads/layout_bounds.py says what it does. */
#include <math.h>
#include <string.h>

#include "arrays.h"
#include "layout_nodes.h"
#include "subsets.h"

enum { WHOLE = 1 << 20 };

/* The weights of all nodes from those of the leaves, rounded to whole numbers; returns those of all leaves. */
static int64_t sum_weights(const IntegerRows *nodes, const double *weights, int64_t *whole)
{
    for (int64_t at = 0; at < nodes->rows; at++) {
        const int64_t *node = nodes->at + at * nodes->columns;
        whole[at] = node[KIND] == LEAF ? (int64_t)(weights[at] * WHOLE + 0.5) : whole[node[ONE]];
        if (node[KIND] == SPLIT)
            whole[at] += whole[node[TWO]];
    }
    return whole[nodes->rows - 1];
}

/* The weighted sum of all loads if each task runs where it adds least; the loads of stacks are noted. */
static int64_t weighted_loads(const IntegerRows *nodes, const TableRows *ticks, AscentWork *work)
{
    int64_t tasks = ticks->columns, profiles = ticks->rows, sum = 0;
    /* Of each profile only the stack with the least weight counts. */
    for (int64_t profile = 0; profile < profiles; profile++)
        work->choice.at[profile] = -1;
    for (int64_t at = 0; at < nodes->rows; at++) {
        const int64_t *node = nodes->at + at * nodes->columns;
        work->loads.at[at] = 0;
        if (node[KIND] == LEAF)
            sum += work->whole.at[at] * node[TICKS];
        else if (node[KIND] == STACK && (work->choice.at[node[PROFILE]] < 0 ||
                                         work->whole.at[at] < work->least_weight.at[node[PROFILE]])) {
            work->choice.at[node[PROFILE]] = at;
            work->least_weight.at[node[PROFILE]] = work->whole.at[at];
        }
    }
    for (int64_t task = 0; task < tasks; task++) {
        int64_t lightest = INT64_MAX, best = -1;
        for (int64_t profile = 0; profile < profiles; profile++) {
            int64_t at = work->choice.at[profile], time = ticks->at[profile * tasks + task];
            if (at >= 0 && time < NEVER && work->least_weight.at[profile] * time < lightest)
                lightest = work->least_weight.at[profile] * time, best = profile;
        }
        if (best < 0)
            return INT64_MAX;
        sum += lightest;
        work->loads.at[work->choice.at[best]] += (double)ticks->at[best * tasks + task];
    }
    return sum;
}

EXPORT int64_t fractional_bound(
    const IntegerRows *nodes, const TableRows *ticks, int64_t at_most, int64_t rounds, int64_t patience,
    const Ascent *ascent, AscentWork *work)
{
    int64_t lower = 0, failures = 0, leaves = 0;
    double *weights = work->weights.at, *loads = work->loads.at, *best = work->best.at, step = 1.0;
    for (int64_t at = 0; at < nodes->rows; at++)
        leaves += nodes->at[at * nodes->columns + KIND] == LEAF;
    for (int64_t at = 0; at < nodes->rows; at++)
        best[at] = weights[at] = nodes->at[at * nodes->columns + KIND] == LEAF ? 1.0 / (double)leaves : 0.0;
    for (int64_t round = 0; round < rounds && lower <= at_most; round++) {
        int64_t all = sum_weights(nodes, weights, work->whole.at), sum = weighted_loads(nodes, ticks, work);
        if (sum == INT64_MAX)
            return at_most + 1;
        int64_t bound = sum / all + (sum % all > 0);
        if (bound > lower) {
            lower = bound, failures = 0;
            memcpy(best, weights, (size_t)nodes->rows * sizeof *best);
        } else if (++failures == patience) {
            step *= ascent->shrinking, failures = 0;
            memcpy(weights, best, (size_t)nodes->rows * sizeof *best);
            continue;
        }
        /* The loads of leaves: all on their paths, from the root down. */
        double mean = 0, norm = 0, total = 0;
        for (int64_t at = nodes->rows - 1; at >= 0; at--) {
            const int64_t *node = nodes->at + at * nodes->columns;
            if (node[KIND] == LEAF) {
                loads[at] += (double)node[TICKS];
                mean += loads[at] / (double)leaves;
                continue;
            }
            loads[node[ONE]] += loads[at];
            if (node[KIND] == SPLIT)
                loads[node[TWO]] += loads[at];
        }
        for (int64_t at = 0; at < nodes->rows; at++)
            if (nodes->at[at * nodes->columns + KIND] == LEAF)
                norm += (loads[at] - mean) * (loads[at] - mean);
        if (norm <= 0)
            break;
        double goal = (double)at_most * (1 + ascent->above) - (double)sum / (double)all;
        for (int64_t at = 0; at < nodes->rows; at++)
            if (nodes->at[at * nodes->columns + KIND] == LEAF) {
                double weight = weights[at] + step * goal / norm * (loads[at] - mean);
                weights[at] = weight > 0 ? weight : 0;
                total += weights[at];
            }
        if (!(total > 0))
            break;
        for (int64_t at = 0; at < nodes->rows; at++)
            weights[at] /= total;
    }
    return lower;
}
