"""Files of batches, schedules, certificates, and mixed-integer programs."""
