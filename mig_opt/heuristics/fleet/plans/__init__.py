"""Plans for jobs that wait: what there is, which order and sizes are best, and how a plan is carried out."""
