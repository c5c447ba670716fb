"""GPUs: their profiles and placements, which of these exclude each other, partitions, packing, and tables of states."""
