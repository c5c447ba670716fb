"""Charts of schedules, and of what came of them on GPUs."""
