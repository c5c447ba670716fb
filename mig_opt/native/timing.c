#include "timing.h"

#include <string.h>

/* Operation that the driver may serve: when it may begin, the work behind it, which one it is, and of which place. */
typedef struct { int64_t begin, behind, destroys, at; } Operation;

/* True if the driver serves one operation before another, both of which may begin. */
static bool is_before(const Operation *one, const Operation *two)
{
    if (one->behind != two->behind)
        return one->behind > two->behind;
    if (one->destroys != two->destroys)
        return one->destroys < two->destroys;
    return one->at < two->at;
}

/* Removes the operation that the driver serves next, and returns it. */
static Operation next_of(Operation *ready, int64_t *count, int64_t now, bool in_turn)
{
    int64_t chosen = 0;
    for (int64_t at = 1; at < *count; at++) {
        const Operation *one = ready + at, *best = ready + chosen;
        /* Operations that may begin come first, then the ones that may begin soonest. */
        int64_t begin = in_turn ? most(one->begin, now) : one->begin;
        int64_t best_begin = in_turn ? most(best->begin, now) : best->begin;
        if (begin != best_begin ? begin < best_begin : is_before(one, best))
            chosen = at;
    }
    Operation next = ready[chosen];
    ready[chosen] = ready[--*count];
    return next;
}

int64_t gpu_makespan(const Operations *operations, const State *state, int64_t first, int64_t count)
{
    int64_t behind[MAX_PLACES], waiting[MAX_PLACES] = {0}, cleared[MAX_PLACES] = {0}, ready_count = 0, makespan = 0, now = 0;
    uint64_t loaded = 0, used = 0, live = 0;
    Operation ready[MAX_PLACES];
    const int64_t *load = state->load + first, *create = operations->create.at + first;
    const int64_t *destroy = operations->destroy.at + first, *free_at = operations->free.at + first;
    const int64_t *later = operations->later.at + first;
    bool in_turn = !operations->parallel;
    for (int64_t at = 0; at < count; at++) {
        if (state->tasks[first + at])
            loaded |= UINT64_C(1) << at;
        if (free_at[at] >= 0)
            live |= UINT64_C(1) << at;
    }
    used = loaded | live;
    /* Live instances come before all others. */
    for (int pass = 0; pass < 2; pass++)
        for (int64_t at = count - 1; at >= 0; at--) {
            uint64_t bit = UINT64_C(1) << at, after = (uint64_t)later[at] & loaded;
            if (!(used & bit) || (pass == 0) == ((live & bit) != 0))
                continue;
            int64_t rest = -1;
            for (uint64_t left = after; left; left &= left - 1) {
                int64_t other = lowest_bit(left);
                waiting[other]++;
                rest = most(rest, create[other] + behind[other]);
            }
            behind[at] = load[at] + (after ? destroy[at] + rest : 0);
        }
    for (uint64_t left = used; left; left &= left - 1) {
        int64_t at = lowest_bit(left);
        if (free_at[at] >= 0) {
            int64_t end = free_at[at] + load[at];
            if (loaded >> at & 1)
                makespan = most(makespan, end);
            if ((uint64_t)later[at] & loaded)
                ready[ready_count++] = (Operation){end, behind[at] - load[at], true, at};
        } else if (!waiting[at]) {
            ready[ready_count++] = (Operation){0, behind[at], false, at};
        }
    }
    while (ready_count) {
        Operation next = next_of(ready, &ready_count, now, in_turn);
        int64_t at = next.at, begin = in_turn ? most(next.begin, now) : next.begin;
        uint64_t after = (uint64_t)later[at] & loaded;
        if (!next.destroys) {
            now = begin + create[at];
            int64_t end = now + load[at];
            makespan = most(makespan, end);
            if (after)
                ready[ready_count++] = (Operation){end, behind[at] - load[at], true, at};
            continue;
        }
        now = begin + destroy[at];
        for (uint64_t left = after; left; left &= left - 1) {
            int64_t other = lowest_bit(left);
            cleared[other] = most(cleared[other], now);
            if (!--waiting[other])
                ready[ready_count++] = (Operation){cleared[other], behind[other], false, other};
        }
    }
    return makespan;
}
