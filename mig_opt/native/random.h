/* The Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8, 1998), with draws as in numpy's RandomState. */
#ifndef MIG_OPT_RANDOM_H
#define MIG_OPT_RANDOM_H

#include <stdint.h>

enum { RANDOM_WORDS = 624, RANDOM_SHIFT = 397 };

typedef struct {
    uint32_t words[RANDOM_WORDS];
    int next;
} Random;

static inline void seed_random(Random *random, uint32_t seed) {
    for (int at = 0; at < RANDOM_WORDS; at++) {
        random->words[at] = seed;
        seed = 1812433253u * (seed ^ (seed >> 30)) + (uint32_t)at + 1u;
    }
    random->next = RANDOM_WORDS;
}

static inline uint32_t random_word(Random *random) {
    uint32_t *words = random->words;
    if (random->next >= RANDOM_WORDS) {
        for (int at = 0; at < RANDOM_WORDS; at++) {
            uint32_t mixed = (words[at] & 0x80000000u) | (words[(at + 1) % RANDOM_WORDS] & 0x7fffffffu);
            words[at] = words[(at + RANDOM_SHIFT) % RANDOM_WORDS] ^ (mixed >> 1) ^ (mixed & 1u ? 0x9908b0dfu : 0u);
        }
        random->next = 0;
    }
    uint32_t word = words[random->next++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    return word ^ (word >> 18);
}

/* A number in [0, 1). */
static inline double random_share(Random *random) {
    uint32_t high = random_word(random) >> 5, low = random_word(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* A whole number in [0, count), for a count of at least 1; without a choice nothing is drawn. */
static inline int64_t random_below(Random *random, int64_t count) {
    if (count == 1)
        return 0;
    uint32_t mask = (uint32_t)(count - 1);
    for (int shift = 1; shift < 32; shift *= 2)
        mask |= mask >> shift;
    int64_t drawn;
    do
        drawn = random_word(random) & mask;
    while (drawn >= count);
    return drawn;
}

#endif
