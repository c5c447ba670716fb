"""The verbs that a caller calls, one place each, with what only they need."""
