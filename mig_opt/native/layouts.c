/* Values, dual prices and sets of tasks in the branches of a layout; mig_opt/batch/loads/layout_values.py,
 * layout_bounds.py and task_sets.py say what each function does. */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "layout_nodes.h"
#include "task_sets.h"

EXPORT int64_t extend_sets(
    const Integers *sets, const Table *lengths, const Table *values, const Table *ticks, const Table *prices,
    const TableRows *best, const int64_t limits[4], Integers *new_sets, Table *new_lengths, Table *new_values)
{
    Extension how = {
        .ticks = ticks->at, .prices = prices->at, .best = best, .grain = limits[0], .at_most = limits[1],
        .needed = limits[2], .may_be_empty = limits[3], .steps_left = INT64_MAX};
    TaskSets found = {.most = new_sets->count};
    int64_t count = 0;
    for (int64_t row = 0; row < sets->count && count >= 0; row++) {
        TaskSet without = {(uint64_t)sets->at[row], lengths->at[row], values->at[row]};
        count = extend_set(&how, without, &found) ? found.count : -1;
    }
    for (int64_t at = 0; at < count; at++) {
        new_sets->at[at] = (int64_t)found.at[at].set;
        new_lengths->at[at] = (int32_t)found.at[at].length;
        new_values->at[at] = (int32_t)found.at[at].value;
    }
    free(found.at);
    return count;
}

EXPORT int64_t join_sets(
    const Integers *sets, const Integers *needed, const Integers *first, const Integers *end, const Integers *others,
    const Table *values, Integers *rows, Integers *other_rows)
{
    int64_t count = 0;
    for (int64_t row = 0; row < sets->count; row++) {
        int64_t set = sets->at[row], least_value = needed->at[row];
        for (int64_t other = first->at[row]; other < end->at[row]; other++) {
            if (others->at[other] & set || values->at[other] < least_value)
                continue;
            if (count == rows->count)
                return -1;
            rows->at[count] = row;
            other_rows->at[count] = other;
            count++;
        }
    }
    return count;
}

/* The work space has room for as many numbers as the values: those without the task that is added. */
VECTORISED EXPORT void add_to_values(const Table *times, const Table *prices, Table *values, Table *work)
{
    for (int64_t task = 0; task < times->count; task++) {
        int64_t time = times->at[task];
        int32_t price = prices->at[task];
        if (time >= values->count || price <= 0)
            continue;
        memcpy(work->at, values->at, (size_t)(values->count - time) * sizeof *work->at);
        int32_t *restrict longer = values->at + time;
        const int32_t *restrict shorter = work->at;
        for (int64_t at = 0; at < values->count - time; at++) {
            int32_t sum = shorter[at] + price;
            longer[at] = longer[at] > sum ? longer[at] : sum;
        }
    }
}

enum { MOST_NODES = 512 };

VECTORISED static void with_task(
    const int32_t *restrict without, int32_t *restrict with, bool *restrict taken, int64_t size, int64_t time,
    int32_t price)
{
    memcpy(with, without, (size_t)time * sizeof *with);
    memset(taken, 0, (size_t)time);
    const int32_t *restrict not_taken = without + time;
    int32_t *restrict longer = with + time;
    bool *restrict choice = taken + time;
    for (int64_t at = 0; at < size - time; at++) {
        int32_t sum = without[at] + price;
        choice[at] = sum > not_taken[at];
        longer[at] = sum > not_taken[at] ? sum : not_taken[at];
    }
}

VECTORISED static void both_branches(
    const int32_t *restrict one, const int32_t *restrict two, int32_t *restrict both, int64_t size)
{
    for (int64_t at = 0; at < size; at++) {
        int32_t sum = one[at] + two[at];
        both[at] = sum > NO_VALUE ? sum : NO_VALUE;
    }
}

/* The values of every node for every number of grains, and in taken, for each node and task, whether the task is in the
 * best pattern. */
static void fill_values(
    const IntegerRows *nodes, const TableRows *times, const int32_t *prices, int64_t grain, TableRows *values,
    bool *taken)
{
    int64_t size = values->columns, tasks = times->columns;
    int32_t *spare = values->at + nodes->rows * size;
    for (int64_t at = 0; at < nodes->rows; at++) {
        const int64_t *node = nodes->at + at * nodes->columns;
        int32_t *table = values->at + at * size;
        if (node[KIND] == LEAF) {
            int64_t start = least(node[TICKS] / grain, size);
            for (int64_t column = 0; column < size; column++)
                table[column] = column < start ? NO_VALUE : 0;
        } else if (node[KIND] == SPLIT) {
            both_branches(values->at + node[ONE] * size, values->at + node[TWO] * size, table, size);
        } else {
            const int32_t *task_times = times->at + node[PROFILE] * tasks, *without = values->at + node[ONE] * size;
            int32_t *with = table, *other = spare;
            for (int64_t task = 0; task < tasks; task++) {
                bool *choice = taken + (at * tasks + task) * size;
                if (task_times[task] >= size || prices[task] <= 0) {
                    memset(choice, 0, (size_t)size);
                    continue;
                }
                with_task(without, with, choice, size, task_times[task], prices[task]);
                without = with;
                with = with == table ? other : table;
            }
            if (without != table)
                memcpy(table, without, (size_t)size * sizeof *table);
        }
    }
}

/* How many times each task is in the best pattern within all grains. */
static void count_tasks(
    const IntegerRows *nodes, const TableRows *times, const TableRows *values, const bool *taken, Integers *counts)
{
    int64_t size = values->columns, tasks = times->columns, open = 1;
    int64_t node_of[MOST_NODES] = {nodes->rows - 1}, column_of[MOST_NODES] = {size - 1};
    memset(counts->at, 0, (size_t)tasks * sizeof *counts->at);
    while (open) {
        int64_t at = node_of[--open], column = column_of[open];
        const int64_t *node = nodes->at + at * nodes->columns;
        if (node[KIND] == LEAF)
            continue;
        if (node[KIND] == STACK)
            for (int64_t task = tasks - 1; task >= 0; task--)
                if (taken[(at * tasks + task) * size + column]) {
                    counts->at[task]++;
                    column -= times->at[node[PROFILE] * tasks + task];
                }
        node_of[open] = node[ONE], column_of[open++] = column;
        if (node[KIND] == SPLIT)
            node_of[open] = node[TWO], column_of[open++] = column;
    }
}

EXPORT int64_t subgradient_prices(
    const IntegerRows *nodes, const TableRows *times, Floats *best_prices, const int64_t limits[3], const Descent *descent,
    DescentWork *work)
{
    int64_t tasks = times->columns, grain = limits[0], rounds = limits[1], patience = limits[2];
    int64_t size = work->values.columns, lower = 0, failures = 0, round = 0;
    double *prices = work->prices.at, step = 1.0, best = 1e30;
    memcpy(prices, best_prices->at, (size_t)tasks * sizeof *prices);
    while (round < rounds) {
        double sum = 0;
        int64_t total = 0;
        for (int64_t task = 0; task < tasks; task++)
            sum += prices[task];
        if (!(sum > 0))
            break;
        for (int64_t task = 0; task < tasks; task++) {
            prices[task] /= sum;
            work->whole.at[task] = (int32_t)(prices[task] * descent->highest);
            total += work->whole.at[task];
        }
        fill_values(nodes, times, work->whole.at, grain, &work->values, work->taken.at);
        round++;
        const int32_t *root = work->values.at + (nodes->rows - 1) * size;
        int64_t grains = 0;
        for (int64_t end = size; grains < end;) {
            int64_t middle = (grains + end) / 2;
            if (root[middle] < total)
                grains = middle + 1;
            else
                end = middle;
        }
        lower = most(lower, grains);
        double excess = ((double)root[size - 1] - (double)total) / (double)total;
        if (excess < best) {
            best = excess, failures = 0;
            memcpy(best_prices->at, prices, (size_t)tasks * sizeof *prices);
        } else if (++failures == patience) {
            step *= descent->shrinking, failures = 0;
            memcpy(prices, best_prices->at, (size_t)tasks * sizeof *prices);
        }
        if (grains == size)
            break;
        count_tasks(nodes, times, &work->values, work->taken.at, &work->counts);
        double norm = 0;
        for (int64_t task = 0; task < tasks; task++)
            norm += (double)((work->counts.at[task] - 1) * (work->counts.at[task] - 1));
        if (norm == 0)
            break;
        for (int64_t task = 0; task < tasks; task++) {
            double price = prices[task] - step * (excess + descent->above) / norm * (double)(work->counts.at[task] - 1);
            prices[task] = price > 0 ? price : 0;
        }
    }
    work->counts.at[0] = round;
    return lower;
}
