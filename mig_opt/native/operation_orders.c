/* Orders of the operations of a layout; mig_opt/batch/loads/operation_orders.py says what they are. */
#include "arrays.h"

/* Columns of a move: the instances that are live after it, by index; the bit of the one that it creates, 0 if it
 * destroys one; its ticks; the set of paths that have no instance meanwhile; and bits that have to be created before. */
enum { TO, CREATED, TICKS, IDLE, NEEDED };

static const int64_t UNKNOWN = INT64_MAX / 2;

/* Lets a state take the best of those moves that create something for the first time, or of all others; true if it is
 * better than before. */
static bool take_best(
    int64_t at, int64_t created, bool fresh, const Integers *first, const IntegerRows *moves, const Integers *weights,
    IntegerRows *ahead, TableRows *choice)
{
    int64_t *own = ahead->at + at * ahead->columns + created, before = *own;
    for (int64_t number = first->at[at]; number < first->at[at + 1]; number++) {
        const int64_t *move = moves->at + number * moves->columns;
        int64_t then = created | move[CREATED];
        if ((then != created) != fresh || move[NEEDED] & ~created)
            continue;
        int64_t idle = move[TICKS] * weights->at[move[IDLE]] + ahead->at[move[TO] * ahead->columns + then];
        if (idle < *own) {
            *own = idle;
            choice->at[at * choice->columns + created] = (int32_t)number;
        }
    }
    return *own < before;
}

/* Returns true if some instances can be those that were created so far: nothing is live in the first state. */
static bool can_be_created(int64_t created, const Integers *first, const IntegerRows *moves)
{
    for (int64_t number = first->at[0]; number < first->at[1]; number++) {
        const int64_t *move = moves->at + number * moves->columns;
        if (created & move[CREATED] && move[NEEDED] & ~created)
            return false;
    }
    return true;
}

EXPORT void least_idle(
    const Integers *live, const Integers *first, const IntegerRows *moves, const Integers *weights, IntegerRows *ahead,
    TableRows *choice)
{
    int64_t everything = ahead->columns - 1;
    for (int64_t created = everything; created >= 0; created--) {
        bool better = created < everything;
        if (!can_be_created(created, first, moves))
            continue;
        for (int64_t at = 0; at < live->count; at++) {
            choice->at[at * choice->columns + created] = -1;
            ahead->at[at * ahead->columns + created] = better ? UNKNOWN : 0;
            if (better && !(live->at[at] & ~created))
                take_best(at, created, true, first, moves, weights, ahead, choice);
        }
        while (better) {
            better = false;
            for (int64_t at = 0; at < live->count; at++)
                if (!(live->at[at] & ~created))
                    better |= take_best(at, created, false, first, moves, weights, ahead, choice);
        }
    }
}
