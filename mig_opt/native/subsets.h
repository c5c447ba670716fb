/* Loops over subsets of tasks; mig_opt/models/batch/subset_proof.py says what each function does. */
#ifndef MIG_OPT_SUBSETS_H
#define MIG_OPT_SUBSETS_H

#include "arrays.h"

enum { NEVER = (1 << 30) - 1, SKIPPED = 1 << 30 };

void choose_use(Table *used, const Table *unused, int64_t used_ticks, int64_t clearing_ticks, int64_t at_most);

#endif
