/* Partitions of tasks into sets that are known; mig_opt/batch/loads/partitions.py says which. */
#include <stdlib.h>

#include "task_sets.h"

/* Words of bits at a time; and those that could be looked at in the time in which one is put into columns. */
enum { WORDS_AT_A_TIME = 512, STEPS_OF_INDEX = 500 };

typedef struct {
    const IntegerRows *sets; /* all that are known */
    int32_t *slots; /* where a set is, from 1 on, at its hash or after that */
    uint64_t last_slot;
    const volatile int64_t *over; /* not 0 once the search is to end */
    int64_t count, steps_left; /* parts; words of bits that are looked at */
    Set parts[MOST_TASKS];
} Search;

/* The slot of a set that is known, or where it would be. */
static int32_t *slot_of(const Search *search, Set set)
{
    uint64_t slot = hash_of(set) & search->last_slot;
    while (search->slots[slot] && set_at(search->sets, search->slots[slot] - 1) != set)
        slot = (slot + 1) & search->last_slot;
    return search->slots + slot;
}

/* Sets with their values, by the first task of each; where those begin that have a task as their first; and for each task
 * which of the sets do without it, as bits. */
typedef struct {
    Set *sets;
    int64_t *values, begin[MOST_TASKS + 1], count, best, words, halves; /* of the bits of a set */
    uint64_t *without;
} Listed;

/* Makes room for some sets; returns false if there is no memory. */
static bool make_room(Listed *list, int64_t count, int64_t halves)
{
    size_t bytes = (size_t)(count / BITS + 1) * BITS * (size_t)halves * sizeof *list->without;
    list->halves = halves;
    list->sets = malloc((size_t)count * (sizeof *list->sets + sizeof *list->values) + bytes);
    list->values = (int64_t *)(list->sets + count), list->without = (uint64_t *)(list->values + count);
    return list->sets != NULL;
}

/* Turns rows of bits into columns (Warren, Hacker's Delight, 2012, 7-3). */
static void transpose(uint64_t rows[BITS])
{
    uint64_t mask = 0xffffffff;
    for (int width = BITS / 2; width; width /= 2, mask ^= mask << width)
        for (int row = 0; row < BITS; row = ((row | width) + 1) & ~width) {
            uint64_t moved = (rows[row] >> width ^ rows[row | width]) & mask;
            rows[row] ^= moved << width, rows[row | width] ^= moved;
        }
}

/* Completes a list whose sets come in the order of their first task. */
static void index_sets(Search *search, Listed *list, int64_t count)
{
    int64_t at = 0;
    for (int64_t task = 0; task <= MOST_TASKS; task++) {
        list->begin[task] = at;
        while (at < count && first_of(list->sets[at]) == task)
            at++;
    }
    list->count = count, list->words = count / BITS + 1;
    search->steps_left -= STEPS_OF_INDEX * list->halves * list->words;
    list->best = 0;
    for (int64_t one = 0; one < count; one++)
        list->best = most(list->best, list->values[one]);
    for (int64_t word = 0; word < list->words; word++)
        for (int64_t half = 0; half < list->halves; half++) {
            uint64_t rows[BITS];
            for (int64_t bit = 0; bit < BITS; bit++)
                rows[bit] = word * BITS + bit < count ? ~(uint64_t)(list->sets[word * BITS + bit] >> half * BITS) : 0;
            transpose(rows);
            for (int64_t task = 0; task < BITS; task++)
                list->without[(half * BITS + task) * list->words + word] = rows[task];
        }
}

/* Finds the sets of a list, in some of its words, that have none of some tasks; returns the words that were looked at. */
VECTORISED static int64_t find_disjoint(
    const uint64_t *without, int64_t words, Set tasks, int64_t word, int64_t count, uint64_t *result)
{
    int64_t looked = 0;
    for (int64_t at = 0; at < count; at++)
        result[at] = ~(uint64_t)0;
    for (; tasks; tasks &= tasks - 1) {
        const uint64_t *row = without + first_of(tasks) * words + word;
        for (int64_t at = 0; at < count; at++)
            result[at] &= row[at];
        looked += count;
    }
    return looked;
}

/* Lists the sets that are disjoint from one set; the result has room for all. */
static void list_disjoint(Search *search, const Listed *from, Set set, Listed *result)
{
    uint64_t bits[WORDS_AT_A_TIME];
    int64_t found = 0;
    for (int64_t word = 0; word < from->words; word += WORDS_AT_A_TIME) {
        int64_t count = least(WORDS_AT_A_TIME, from->words - word);
        search->steps_left -= find_disjoint(from->without, from->words, set, word, count, bits);
        for (int64_t at = 0; at < count; at++)
            for (uint64_t left = bits[at]; left; left &= left - 1) {
                int64_t one = (word + at) * BITS + __builtin_ctzll(left);
                result->sets[found] = from->sets[one], result->values[found++] = from->values[one];
            }
    }
    index_sets(search, result, found);
}

/* The one of some tasks that the fewest sets of a list have; -1 if none has it. */
VECTORISED static int64_t rarest(Search *search, const Listed *list, Set tasks)
{
    int64_t most_without = -1, found = -1;
    for (; tasks; tasks &= tasks - 1) {
        const uint64_t *row = list->without + first_of(tasks) * list->words;
        int64_t without = 0;
        search->steps_left -= list->words;
        for (int64_t word = 0; word < list->words; word++)
            without += __builtin_popcountll(row[word]);
        if (without > most_without)
            most_without = without, found = first_of(tasks);
    }
    return most_without < list->count ? found : -1;
}

static int64_t divide(Search *search, Set left, Set used, int64_t value, const Listed *list, int64_t part);

/* Looks for such a partition into more than three parts; the list has the sets that are within what is left. The task
 * that is in the fewest of them is in the next part. */
static int64_t divide_listed(Search *search, Set left, int64_t value, const Listed *list, int64_t part)
{
    int64_t others = search->count - part - 1, found = 0, task = rarest(search, list, left);
    Listed next = {0};
    if (task < 0 || value > (others + 1) * list->best)
        return 0;
    if (!make_room(&next, list->count, list->halves))
        return -1;
    for (int64_t word = 0; word < list->words && !found; word++)
        for (uint64_t some = ~list->without[task * list->words + word]; some && !found; some &= some - 1) {
            int64_t one = word * BITS + __builtin_ctzll(some);
            if (one >= list->count)
                break;
            if (value - list->values[one] > others * list->best)
                continue;
            if (search->steps_left-- <= 0 || *search->over)
                return free(next.sets), -1;
            search->parts[part] = list->sets[one];
            list_disjoint(search, list, list->sets[one], &next);
            found = divide(search, left ^ list->sets[one], 0, value - list->values[one], &next, part + 1);
        }
    free(next.sets);
    return found;
}

/* Looks for a partition of what is left into the last of the parts, of some value together. The list has all sets that
 * may be parts, and some that are not within what is left: they have some task that is used. Returns 1 if there is one,
 * 0 if not, -1 after too many steps. */
static int64_t divide(Search *search, Set left, Set used, int64_t value, const Listed *list, int64_t part)
{
    int64_t others = search->count - part - 1, found = 0;
    if (!others || !left)
        return search->parts[part] = left, !others && *slot_of(search, left);
    if (others > 2)
        return divide_listed(search, left, value, list, part);
    int64_t first = first_of(left), begin = list->begin[first], end = list->begin[first + 1];
    for (int64_t word = begin / BITS; word * BITS < end && !found; word += WORDS_AT_A_TIME) {
        uint64_t bits[WORDS_AT_A_TIME];
        int64_t count = least(WORDS_AT_A_TIME, (end - 1) / BITS + 1 - word);
        search->steps_left -= find_disjoint(list->without, list->words, used, word, count, bits);
        if (word * BITS < begin)
            bits[0] &= ~(uint64_t)0 << begin % BITS;
        if ((word + count) * BITS > end)
            bits[count - 1] &= ~(uint64_t)0 >> (BITS - end % BITS);
        for (int64_t at = 0; at < count; at++)
            for (uint64_t some = bits[at]; some && !found; some &= some - 1) {
                int64_t one = (word + at) * BITS + __builtin_ctzll(some), rest = value - list->values[one];
                Set set = list->sets[one];
                if (search->steps_left-- <= 0 || *search->over)
                    found = -1;
                /* The others are worth no more than the best one each. */
                if (found || rest > others * list->best)
                    return found;
                search->parts[part] = set;
                found = divide(search, left ^ set, used | set, rest, list, part + 1);
            }
    }
    return found;
}

/* Looks for a partition that has one of the first sets, and counts the steps: there are as many at most, and with each of
 * the first sets no more than the last limit. The sets come by their first task, then in falling order of value. Another
 * thread ends it by writing to the second of the steps. */
EXPORT int64_t partition_of_sets(
    const IntegerRows *sets, const Integers *values, const Integers *firsts, const int64_t limits[3], Integers *steps,
    IntegerRows *parts)
{
    int64_t most_steps = steps->at[0], count = sets->rows, halves = least(2, sets->columns), slots = 2, found = 0;
    bool complete = true;
    if (limits[0] > MOST_TASKS || parts->rows > MOST_TASKS)
        return -1;
    while (slots < 2 * count)
        slots *= 2;
    Search search = {
        .sets = sets, .slots = calloc((size_t)slots, sizeof *search.slots), .last_slot = (uint64_t)slots - 1,
        .over = steps->at + 1, .count = parts->rows, .steps_left = most_steps};
    Listed all = {0}, some = {0};
    if (!search.slots || !make_room(&all, count, halves) || !make_room(&some, count, halves))
        return free(all.sets), free(search.slots), -1;
    for (int64_t at = 0; at < count; at++) {
        all.sets[at] = set_at(sets, at), all.values[at] = values->at[at];
        *slot_of(&search, all.sets[at]) = (int32_t)at + 1;
    }
    index_sets(&search, &all, count);
    for (int64_t at = 0; at < firsts->count && !found; at++) {
        Set first = all.sets[firsts->at[at]], everything = (one_task << limits[0]) - 1;
        int64_t kept = most(0, search.steps_left - limits[2]);
        list_disjoint(&search, &all, first, &some);
        search.parts[0] = first;
        search.steps_left -= kept;
        found = divide(&search, everything ^ first, 0, limits[1] - all.values[firsts->at[at]], &some, 1);
        search.steps_left += kept;
        if (found < 0 && search.steps_left > 0 && !*search.over)
            found = 0, complete = false;
    }
    for (int64_t part = 0; part < parts->rows; part++)
        write_set(parts, part, search.parts[part]);
    free(all.sets);
    free(some.sets);
    free(search.slots);
    steps->at[0] = most_steps - search.steps_left;
    return found || complete ? found : -1;
}
