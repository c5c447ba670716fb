"""Studies of tasks on GPUs."""
