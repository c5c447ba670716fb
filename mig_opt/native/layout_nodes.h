/* Nodes of the tree of a layout: rows with these columns; the nodes below have smaller numbers. */
#ifndef MIG_OPT_LAYOUT_NODES_H
#define MIG_OPT_LAYOUT_NODES_H

enum { KIND, ONE, TWO, PROFILE, TICKS };
enum { LEAF, STACK, SPLIT };

/* Value of what cannot be; with any value of tasks it is still negative. Tasks of a set, at most. */
enum { NO_VALUE = -(1 << 30), MOST_TASKS = 63 };

/* Number of a set of tasks that hardly two sets have in their last bits. */
static inline uint64_t hash_of(int64_t set) { return (uint64_t)set * 0x9e3779b97f4a7c15 >> 24; }

#endif
