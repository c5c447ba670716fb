/* Values and sets of tasks in the branches of a layout; mig_opt/loads/layout_values.py and layout_sets.py say what each
 * function does. */
#include <string.h>

#include "arrays.h"

enum { MOST_TASKS = 63 };

/* A depth-first search over the tasks: at each depth one more of them is taken or left. */
EXPORT int64_t extend_sets(
    const Integers *sets, const Table *lengths, const Table *values, const Table *ticks, const Table *prices,
    const TableRows *best, const int64_t limits[4], Integers *new_sets, Table *new_lengths, Table *new_values)
{
    int64_t tasks = ticks->count, grain = limits[0], at_most = limits[1], needed = limits[2], may_be_empty = limits[3];
    int64_t last = best->columns - 1, count = 0;
    int64_t set[MOST_TASKS + 1], length[MOST_TASKS + 1], value[MOST_TASKS + 1];
    char left[MOST_TASKS + 1];
    for (int64_t row = 0; row < sets->count; row++) {
        int64_t without = sets->at[row], depth = 0;
        set[0] = without, length[0] = lengths->at[row], value[0] = values->at[row], left[0] = 0;
        while (depth >= 0) {
            if (!left[depth]) {
                if (value[depth] + best->at[(tasks - depth) * best->columns + last - length[depth] / grain] < needed) {
                    depth--;
                    continue;
                }
                if (depth == tasks) {
                    if (may_be_empty || set[depth] != without) {
                        if (count == new_sets->count)
                            return -1;
                        new_sets->at[count] = set[depth];
                        new_lengths->at[count] = (int32_t)length[depth];
                        new_values->at[count] = (int32_t)value[depth];
                        count++;
                    }
                    depth--;
                    continue;
                }
                left[depth] = 1;
                if (!(without >> depth & 1) && length[depth] + ticks->at[depth] <= at_most) {
                    set[depth + 1] = set[depth] | (int64_t)1 << depth;
                    length[depth + 1] = length[depth] + ticks->at[depth];
                    value[depth + 1] = value[depth] + prices->at[depth];
                    left[++depth] = 0;
                    continue;
                }
            }
            if (left[depth] == 1) {
                left[depth] = 2;
                set[depth + 1] = set[depth], length[depth + 1] = length[depth], value[depth + 1] = value[depth];
                left[++depth] = 0;
                continue;
            }
            depth--;
        }
    }
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
