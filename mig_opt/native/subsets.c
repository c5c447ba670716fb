#include "subsets.h"

EXPORT void split_tasks(
    const Table *one, const Table *two, const Table *subsets, const Siblings *siblings, int64_t at_most, Table *result)
{
    for (int64_t at = 0; at < subsets->count; at++) {
        uint32_t whole = (uint32_t)subsets->at[at], fixed = 0;
        if (siblings->same) {
            fixed = whole;
            while (fixed & (fixed - 1))
                fixed &= fixed - 1;
        }
        uint32_t rest = whole ^ fixed, part = rest;
        int64_t shortest = at_most + 1;
        for (;;) {
            int64_t first = one->at[part | fixed], second = two->at[rest ^ part];
            int64_t length = most(first, second);
            if (length < shortest) {
                if (((part | fixed) || siblings->busy_one) && ((rest ^ part) || siblings->busy_two))
                    length = joint_path(first, second, siblings->wait_one, siblings->wait_two);
                shortest = least(shortest, length);
            }
            if (!part)
                break;
            part = (part - 1) & rest;
        }
        result->at[whole] = (int32_t)(shortest <= at_most ? shortest : NEVER);
    }
}

VECTORISED EXPORT void add_tasks(Table *table, const Table *ticks, int64_t at_most)
{
    for (int64_t task = 0; task < ticks->count; task++) {
        int32_t longer = ticks->at[task];
        if (longer > at_most)
            continue;
        int64_t bit = (int64_t)1 << task;
        for (int64_t block = bit; block < table->count; block += 2 * bit) {
            const int32_t *restrict without = table->at + block - bit;
            int32_t *restrict including = table->at + block;
            for (int64_t at = 0; at < bit; at++) {
                int32_t sum = without[at] + longer;
                including[at] = including[at] < sum ? including[at] : sum;
            }
        }
    }
}

VECTORISED void choose_use(
    Table *used, const Table *unused, int64_t used_ticks, int64_t clearing_ticks, int64_t at_most)
{
    for (int64_t subset = 0; subset < used->count; subset++) {
        int64_t length = least(used->at[subset] + used_ticks, unused->at[subset] + clearing_ticks);
        used->at[subset] = (int32_t)(length <= at_most ? length : NEVER);
    }
}

EXPORT void subset_sums(const Table *amounts, Table *sums)
{
    sums->at[0] = 0;
    for (int64_t task = 0; task < amounts->count; task++) {
        int64_t bit = (int64_t)1 << task;
        int32_t amount = (int32_t)least(amounts->at[task], NEVER);
        for (int64_t part = 0; part < bit; part++)
            sums->at[bit | part] = (int32_t)least(sums->at[part] + amount, NEVER);
    }
}

EXPORT void long_subset_sums(const Integers *amounts, Integers *sums)
{
    sums->at[0] = 0;
    for (int64_t task = 0; task < amounts->count; task++) {
        int64_t bit = (int64_t)1 << task, amount = amounts->at[task];
        for (int64_t part = 0; part < bit; part++)
            sums->at[bit | part] = sums->at[part] + amount;
    }
}

/* Writes the sets to the front of the result and returns their number; the work space has room for three sums of each
 * set. */
EXPORT int64_t sets_within(
    const Integers *inside, const Integers *around, const Integers *beside, const int64_t room[3], Integers *work,
    Table *result)
{
    int64_t sets = (int64_t)1 << inside->count, found = 0;
    Integers in_branch = {work->at, sets}, outside = {work->at + sets, sets}, in_all = {work->at + 2 * sets, sets};
    long_subset_sums(inside, &in_branch);
    long_subset_sums(around, &outside);
    long_subset_sums(beside, &in_all);
    for (int64_t subset = 0; subset < sets; subset++) {
        int64_t rest = (sets - 1) ^ subset, within = in_branch.at[subset];
        if (within <= room[0] && outside.at[rest] <= room[1] && within + in_all.at[rest] <= room[2])
            result->at[found++] = (int32_t)subset;
    }
    return found;
}
