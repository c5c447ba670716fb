#include "subsets.h"

#include <string.h>

/* Tables are read in blocks: the sets that differ in their first three tasks only, as many as fit into a register. */
enum { LANES = 8, LANE_TASKS = 3 };
typedef int32_t Lanes __attribute__((vector_size(32)));

/* Macros, as no compiler has to hand vectors over between functions for other processors; clang refuses to. */
#define ALL_LANES(entry) ((int32_t)(entry) - (Lanes){0})
#define TAKE(one, order, two) \
    for (int lane = 0; lane < LANES; lane++) \
        one[lane] = one[lane] order two[lane] ? one[lane] : two[lane]

/* The tables of two branches, the least entry of each of their blocks, and a copy of the first block of the second with
 * as much room before it. */
typedef struct {
    const int32_t *one, *two;
    int32_t *least_one, *least_two, first_two[2 * LANES], wait_one, wait_two, at_most;
} Split;

/* Finds the shortest joint paths of the sets of a block, as if the branches always waited for each other. The fixed
 * tasks, above the lanes, run in the first branch. */
VECTORISED static void split_block(const Split *split, uint32_t block, uint32_t fixed, int32_t found[LANES])
{
    const int32_t *least_one = split->least_one, *least_two = split->least_two, at_most = split->at_most;
    const Lanes wait_one = ALL_LANES(split->wait_one), wait_two = ALL_LANES(split->wait_two);
    Lanes shortest[LANES]; /* for each set of the first tasks that runs in the first branch */
    for (int taken = 0; taken < LANES; taken++)
        shortest[taken] = ALL_LANES(NEVER);
    uint32_t rest = block ^ fixed, part = rest;
    for (;;) {
        uint32_t here = part | fixed, there = rest ^ part;
        if (least_one[here] <= at_most && least_two[there] <= at_most) {
            const int32_t *first = split->one + LANES * here;
            const int32_t *second = there ? split->two + LANES * there : split->first_two + LANES;
#pragma GCC unroll 8
            for (int taken = 0; taken < LANES; taken++) {
                /* A lane that has all these tasks finds what is left of it so many entries before. */
                Lanes joint = ALL_LANES(first[taken]), two, least = shortest[taken];
                memcpy(&two, second - taken, sizeof two);
                Lanes late = joint + wait_one, late_two = two + wait_two;
                TAKE(late, <, late_two);
                TAKE(joint, >, two);
                TAKE(joint, >, late);
                TAKE(least, <, joint);
                shortest[taken] = least;
            }
        }
        if (!part)
            break;
        part = (part - 1) & rest;
    }
    for (int lane = 0; lane < LANES; lane++) {
        found[lane] = NEVER;
        for (int taken = 0; taken < LANES; taken++)
            if ((lane & taken) == taken && shortest[taken][lane] < found[lane])
                found[lane] = shortest[taken][lane];
    }
}

/* Writes the least entry of each block of a table. */
VECTORISED static void least_of_blocks(const int32_t *table, int64_t blocks, int32_t *found)
{
    for (int64_t block = 0; block < blocks; block++) {
        found[block] = table[LANES * block];
        for (int lane = 1; lane < LANES; lane++)
            found[block] = found[block] < table[LANES * block + lane] ? found[block] : table[LANES * block + lane];
    }
}

/* The work space is for the least entries of blocks. */
EXPORT void split_tasks(
    const Table *one, const Table *two, const Table *subsets, const Siblings *siblings, int64_t at_most, Table *work,
    Table *result)
{
    int64_t blocks = most(1, one->count / LANES), block = -1;
    int32_t small[2][LANES], least_entries[2], found[LANES];
    /* The sum of any entry and a wait fits into 32 bits, since no wait is longer than NEVER. */
    int32_t wait_one = (int32_t)least(siblings->wait_one, NEVER), wait_two = (int32_t)least(siblings->wait_two, NEVER);
    Split split = {
        one->at, two->at, work->at, work->at + blocks, {0}, wait_one, wait_two, (int32_t)least(at_most, NEVER)};
    if (one->count < LANES) { /* a block that is not full */
        for (int64_t lane = 0; lane < LANES; lane++) {
            small[0][lane] = lane < one->count ? one->at[lane] : NEVER;
            small[1][lane] = lane < one->count ? two->at[lane] : NEVER;
        }
        split.one = small[0], split.two = small[1];
        split.least_one = least_entries, split.least_two = least_entries + 1;
    }
    least_of_blocks(split.one, blocks, split.least_one);
    least_of_blocks(split.two, blocks, split.least_two);
    memcpy(split.first_two + LANES, split.two, sizeof(Lanes));
    for (int64_t at = 0; at < subsets->count; at++) {
        int32_t whole = subsets->at[at], lane = whole % LANES;
        if (whole / LANES != block) {
            block = whole / LANES;
            uint32_t fixed = siblings->same ? (uint32_t)block : 0;
            while (fixed & (fixed - 1))
                fixed &= fixed - 1;
            split_block(&split, (uint32_t)block, fixed, found);
        }
        int64_t length = found[lane];
        if (!siblings->busy_one)
            length = least(length, most(split.one[0], split.two[whole]));
        if (!siblings->busy_two)
            length = least(length, most(split.one[whole], split.two[0]));
        result->at[whole] = (int32_t)(length <= at_most ? length : NEVER);
    }
}

VECTORISED EXPORT void add_tasks(Table *table, const Table *ticks, int64_t at_most)
{
    int32_t *entries = table->at;
    Lanes first[LANE_TASKS]; /* ticks of the first tasks, for the lanes that have them */
    for (int task = 0; task < LANE_TASKS; task++) {
        int32_t longer = task < ticks->count && ticks->at[task] <= at_most ? ticks->at[task] : NEVER;
        for (int lane = 0; lane < LANES; lane++)
            first[task][lane] = lane >> task & 1 ? longer : 0;
    }
    for (int64_t block = 0; block + LANES <= table->count; block += LANES) {
        Lanes found, without;
        memcpy(&found, entries + block, sizeof found);
        for (int task = 0; task < LANE_TASKS; task++) {
            for (int lane = 0; lane < LANES; lane++)
                without[lane] = found[lane & ~(1 << task)];
            without += first[task];
            TAKE(found, <, without);
        }
        memcpy(entries + block, &found, sizeof found);
    }
    for (int64_t task = table->count < LANES ? 0 : LANE_TASKS; task < ticks->count; task++) {
        int32_t longer = ticks->at[task];
        if (longer > at_most)
            continue;
        int64_t bit = (int64_t)1 << task;
        for (int64_t block = bit; block < table->count; block += 2 * bit) {
            const int32_t *restrict without = entries + block - bit;
            int32_t *restrict including = entries + block;
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
    int32_t longer = (int32_t)least(used_ticks, NEVER), clearing = (int32_t)least(clearing_ticks, NEVER);
    int32_t limit = (int32_t)least(at_most, NEVER);
    int32_t *restrict entries = used->at;
    const int32_t *restrict others = unused->at;
    for (int64_t subset = 0; subset < used->count; subset++) {
        int32_t one = entries[subset] + longer, two = others[subset] + clearing, length = one < two ? one : two;
        entries[subset] = length <= limit ? length : NEVER;
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

VECTORISED static void long_subset_sums(const Integers *amounts, Integers *sums)
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
        result->at[found] = (int32_t)subset;
        found += (within <= room[0]) & (outside.at[rest] <= room[1]) & (within + in_all.at[rest] <= room[2]);
    }
    return found;
}
