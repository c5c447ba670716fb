"""Figures beyond which a file is taken for a slip of the pen."""

MOST_GPUS = 1_000_000
"""GPUs of a batch: methods keep a record for each."""

MOST_SEEDS = 1_000_000
"""Batches of one kind in a study."""
