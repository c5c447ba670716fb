/* Partitions of tasks into sets that are known; mig_opt/batch/loads/partitions.py says which. */
#include <stdlib.h>

#include "arrays.h"
#include "layout_nodes.h"

enum { BITS = 64, WORDS_AT_A_TIME = 512, FILTER_SIZE = 1 << 24 };

typedef struct {
    const Integers *rising;
    Integers *parts;
    uint64_t *filter; /* a bit for each known set, at its hash */
    const volatile int64_t *over; /* not 0 once the search is to end */
    int64_t steps_left, best; /* words of bits that are looked at; the best value of a set */
} Search;

static bool is_known(const Search *search, int64_t set)
{
    const Integers *rising = search->rising;
    int64_t low = 0, high = rising->count;
    uint64_t bit = hash_of(set) % FILTER_SIZE;
    if (!(search->filter[bit / BITS] >> bit % BITS & 1))
        return false;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rising->at[middle] < set)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rising->count && rising->at[low] == set;
}

/* Sets with their values, by the first task of each; where those begin that have a task as their first; and for each task
 * which of the sets do without it, as bits. */
typedef struct {
    int64_t *sets, *values, begin[MOST_TASKS + 2], words;
    uint64_t *without;
} Listed;

/* Makes room for some sets; returns false if there is no memory. */
static bool make_room(Listed *list, int64_t count)
{
    int64_t words = count / BITS + 1;
    list->sets = malloc(((size_t)count * 2 + (size_t)words * BITS) * sizeof *list->sets);
    list->values = list->sets + count, list->without = (uint64_t *)(list->values + count);
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
static void index_sets(Listed *list, int64_t count)
{
    int64_t at = 0;
    for (int64_t task = 0; task <= MOST_TASKS; task++) {
        list->begin[task] = at;
        while (at < count && __builtin_ctzll((uint64_t)list->sets[at]) == task)
            at++;
    }
    list->begin[MOST_TASKS + 1] = count;
    list->words = count / BITS + 1;
    for (int64_t word = 0; word < list->words; word++) {
        uint64_t rows[BITS];
        for (int64_t bit = 0; bit < BITS; bit++)
            rows[bit] = word * BITS + bit < count ? ~(uint64_t)list->sets[word * BITS + bit] : 0;
        transpose(rows);
        for (int64_t task = 0; task < MOST_TASKS; task++)
            list->without[task * list->words + word] = rows[task];
    }
}

/* Finds the sets of a list, in some of its words, that have none of some tasks; returns the words that were looked at. */
VECTORISED static int64_t find_disjoint(
    const uint64_t *without, int64_t words, int64_t tasks, int64_t word, int64_t count, uint64_t *result)
{
    int64_t looked = 0;
    for (int64_t at = 0; at < count; at++)
        result[at] = ~(uint64_t)0;
    for (uint64_t left = (uint64_t)tasks; left; left &= left - 1) {
        const uint64_t *row = without + __builtin_ctzll(left) * words + word;
        for (int64_t at = 0; at < count; at++)
            result[at] &= row[at];
        looked += count;
    }
    return looked;
}

/* Lists the sets that are disjoint from one set and have a later first task; the result has room for all. */
static void list_disjoint(Search *search, const Listed *from, int64_t set, Listed *result)
{
    uint64_t bits[WORDS_AT_A_TIME];
    int64_t found = 0, begin = from->begin[__builtin_ctzll((uint64_t)set) + 1];
    for (int64_t word = begin / BITS; word < from->words; word += WORDS_AT_A_TIME) {
        int64_t count = least(WORDS_AT_A_TIME, from->words - word);
        search->steps_left -= find_disjoint(from->without, from->words, set, word, count, bits);
        for (int64_t at = 0; at < count; at++)
            for (uint64_t left = bits[at]; left; left &= left - 1) {
                int64_t one = (word + at) * BITS + __builtin_ctzll(left);
                result->sets[found] = from->sets[one], result->values[found] = from->values[one];
                found += one >= begin;
            }
    }
    index_sets(result, found);
}

/* Looks for a partition of what is left into the last of the parts, of some value together. The list has all sets that
 * may be parts, and some that are not within what is left: they have some task that is used. Returns 1 if there is one,
 * 0 if not, -1 after too many steps. */
static int64_t divide(Search *search, int64_t left, int64_t used, int64_t value, const Listed *list, int64_t part)
{
    int64_t others = search->parts->count - part - 1, found = 0;
    if (!others || !left)
        return search->parts->at[part] = left, !others && is_known(search, left);
    int64_t first = __builtin_ctzll((uint64_t)left), begin = list->begin[first], end = list->begin[first + 1];
    bool listed = others > 2; /* once for all parts that follow */
    Listed next = {0};
    if (listed && !make_room(&next, list->begin[MOST_TASKS + 1] - end))
        return -1;
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
                int64_t one = (word + at) * BITS + __builtin_ctzll(some), set = list->sets[one];
                int64_t rest = value - list->values[one];
                if (search->steps_left-- <= 0 || *search->over)
                    found = -1;
                /* The others are worth no more than the best one each. */
                if (found || rest > others * search->best)
                    return free(next.sets), found;
                search->parts->at[part] = set;
                if (listed)
                    list_disjoint(search, list, set, &next);
                found = divide(search, left ^ set, listed ? 0 : used | set, rest, listed ? &next : list, part + 1);
            }
    }
    free(next.sets);
    return found;
}

/* Looks for a partition that has one of the first sets, and counts the steps: there are as many at most. The sets come by
 * their first task, then in falling order of value. Another thread ends it by writing to the second of the steps. */
EXPORT int64_t partition_of_sets(
    const Integers *sets, const Integers *values, const Integers *rising, const Integers *firsts,
    const int64_t limits[2], Integers *steps, Integers *parts)
{
    int64_t most_steps = steps->at[0], found = 0;
    Search search = {rising, parts, calloc(FILTER_SIZE / BITS, sizeof *search.filter), steps->at + 1, most_steps, 0};
    Listed all = {0}, some = {0};
    if (!search.filter || !make_room(&all, sets->count) || !make_room(&some, sets->count))
        return free(all.sets), free(search.filter), -1;
    for (int64_t at = 0; at < sets->count; at++) {
        uint64_t bit = hash_of(sets->at[at]) % FILTER_SIZE;
        search.filter[bit / BITS] |= (uint64_t)1 << bit % BITS;
        all.sets[at] = sets->at[at], all.values[at] = values->at[at];
        search.best = most(search.best, values->at[at]);
    }
    index_sets(&all, sets->count);
    for (int64_t at = 0; at < firsts->count && !found; at++) {
        int64_t first = firsts->at[at], rest = limits[1] - values->at[first];
        list_disjoint(&search, &all, sets->at[first], &some);
        parts->at[0] = sets->at[first];
        found = divide(&search, limits[0] ^ sets->at[first], 0, rest, &some, 1);
    }
    free(all.sets);
    free(some.sets);
    free(search.filter);
    steps->at[0] = most_steps - search.steps_left;
    return found;
}
