"""The driver of NVIDIA's GPUs: MIG instances that exist, and their creation and destruction through NVML."""
