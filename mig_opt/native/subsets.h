/* Loops over subsets of tasks; mig_opt/batch/loads/subsets.py says what each function does. */
#ifndef MIG_OPT_SUBSETS_H
#define MIG_OPT_SUBSETS_H

#include "arrays.h"

enum { NEVER = (1 << 30) - 1, SKIPPED = 1 << 30 };

typedef struct { int64_t same, busy_one, busy_two, wait_one, wait_two; } Siblings;

static inline int64_t joint_path(int64_t one, int64_t two, int64_t wait_one, int64_t wait_two) {
    return least(most(one + wait_one, two), most(one, two + wait_two));
}

EXPORT void split_tasks(
    const Table *one, const Table *two, const Table *subsets, const Siblings *siblings, int64_t at_most, Table *result);
EXPORT void add_tasks(Table *table, const Table *ticks, int64_t at_most);
EXPORT void subset_sums(const Table *amounts, Table *sums);
EXPORT void long_subset_sums(const Integers *amounts, Integers *sums);
EXPORT int64_t sets_within(
    const Integers *inside, const Integers *around, const Integers *beside, const int64_t room[3], Integers *work,
    Table *result);
void choose_use(Table *used, const Table *unused, int64_t used_ticks, int64_t clearing_ticks, int64_t at_most);

#endif
