/* The pricing problem of column generation; mig_opt/batch/loads/columns.py says what each function does. */
#include <string.h>

#include "arrays.h"

VECTORISED EXPORT void fill_knapsack(const TableRows *times, const Table *prices, TableRows *table)
{
    int64_t columns = table->columns;
    for (int64_t task = 0; task < times->rows; task++) {
        const int32_t *restrict before = table->at + task % table->rows * columns;
        int32_t *after = table->at + (task + 1) % table->rows * columns, price = prices->at[task];
        int filled = 0;
        for (int64_t kind = 0; kind < times->columns && price > 0; kind++) {
            int64_t time = times->at[task * times->columns + kind];
            if (time >= columns)
                continue;
            int32_t *restrict longer = after + time;
            if (!filled) { /* in one pass */
                memcpy(after, before, (size_t)time * sizeof *after);
                for (int64_t at = 0; at < columns - time; at++) {
                    int32_t sum = before[at] + price, without = before[at + time];
                    longer[at] = without > sum ? without : sum;
                }
            } else {
                for (int64_t at = 0; at < columns - time; at++) {
                    int32_t sum = before[at] + price;
                    longer[at] = longer[at] > sum ? longer[at] : sum;
                }
            }
            filled = 1;
        }
        if (!filled)
            memcpy(after, before, (size_t)columns * sizeof *after);
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

/* Each row of the orders ends with the first -1, if it has one. Row i of the work space has the joint value of the first
 * i members; rows that begin alike share them. */
VECTORISED EXPORT void combine_in_orders(
    const TableRows *tables, const IntegerRows *orders, int64_t wait, Table *best, TableRows *work)
{
    int64_t count = best->count;
    int32_t *restrict result = best->at;
    memset(work->at, 0, (size_t)count * sizeof *work->at);
    for (int64_t row = 0; row < orders->rows; row++) {
        const int64_t *order = orders->at + row * orders->columns;
        bool alike = row > 0;
        int64_t place = 0;
        for (; place < orders->columns && order[place] >= 0; place++) {
            alike = alike && order[place] == order[place - orders->columns];
            if (alike)
                continue;
            int64_t late = least(place * wait, count);
            const int32_t *restrict before = work->at + place * count;
            const int32_t *restrict member = tables->at + order[place] * tables->columns;
            int32_t *restrict together = work->at + (place + 1) * count;
            for (int64_t at = 0; at < late; at++)
                together[at] = -1;
            for (int64_t at = late; at < count; at++) {
                int32_t one = before[at], two = member[at - late];
                together[at] = (one | two) < 0 ? -1 : one + two; /* -1 as soon as one of the two is */
            }
        }
        const int32_t *restrict all = work->at + place * count;
        for (int64_t at = 0; at < count; at++)
            result[at] = result[at] > all[at] ? result[at] : all[at];
    }
}
