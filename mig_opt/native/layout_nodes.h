/* Nodes of the tree of a layout: rows with these columns; the nodes below have smaller numbers. */
#ifndef MIG_OPT_LAYOUT_NODES_H
#define MIG_OPT_LAYOUT_NODES_H

enum { KIND, ONE, TWO, PROFILE, TICKS };
enum { LEAF, STACK, SPLIT };

/* Value of what cannot be; with any value of tasks it is still negative. */
enum { NO_VALUE = -(1 << 30) };

#endif
