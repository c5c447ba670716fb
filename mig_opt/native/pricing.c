/* The pricing problem of column generation; mig_opt/batch/loads/columns.py says what each function does. */
#include <string.h>

#include "arrays.h"

VECTORISED EXPORT void fill_knapsack(const TableRows *times, const Table *prices, TableRows *table)
{
    int64_t columns = table->columns;
    for (int64_t task = 0; task < times->rows; task++) {
        const int32_t *before = table->at + task * columns;
        int32_t *after = table->at + (task + 1) * columns, price = prices->at[task];
        memcpy(after, before, (size_t)columns * sizeof *after);
        for (int64_t kind = 0; kind < times->columns && price > 0; kind++) {
            int64_t time = times->at[task * times->columns + kind];
            if (time >= columns)
                continue;
            int32_t *restrict longer = after + time;
            const int32_t *restrict shorter = before;
            for (int64_t at = 0; at < columns - time; at++) {
                int32_t sum = shorter[at] + price;
                longer[at] = longer[at] > sum ? longer[at] : sum;
            }
        }
    }
}

EXPORT void knapsack_choice(
    const TableRows *times, const Table *prices, const TableRows *table, int64_t room, Integers *kinds)
{
    int64_t columns = table->columns;
    for (int64_t task = times->rows - 1; task >= 0; task--) {
        const int32_t *before = table->at + task * columns, *after = before + columns;
        kinds->at[task] = -1;
        if (after[room] == before[room])
            continue;
        for (int64_t kind = 0; kind < times->columns; kind++) {
            int64_t time = times->at[task * times->columns + kind];
            if (time <= room && before[room - time] + prices->at[task] == after[room]) {
                kinds->at[task] = kind;
                room -= time;
                break;
            }
        }
    }
}

/* Each row of the orders ends with the first -1, if it has one. The work space has room for as many numbers as the best
 * values. */
VECTORISED EXPORT void combine_in_orders(
    const TableRows *tables, const IntegerRows *orders, int64_t wait, Table *best, Table *work)
{
    int32_t *restrict together = work->at, *restrict result = best->at;
    for (int64_t row = 0; row < orders->rows; row++) {
        memset(together, 0, (size_t)best->count * sizeof *together);
        for (int64_t place = 0; place < orders->columns; place++) {
            int64_t branch = orders->at[row * orders->columns + place], late = least(place * wait, best->count);
            if (branch < 0)
                break;
            const int32_t *restrict member = tables->at + branch * tables->columns;
            for (int64_t at = 0; at < late; at++)
                together[at] = -1;
            for (int64_t at = late; at < best->count; at++) {
                int32_t one = together[at], two = member[at - late];
                together[at] = (one | two) < 0 ? -1 : one + two; /* -1 as soon as one of the two is */
            }
        }
        for (int64_t at = 0; at < best->count; at++)
            result[at] = result[at] > together[at] ? result[at] : together[at];
    }
}
