"""Import of fleet states from the texts of other programs."""
