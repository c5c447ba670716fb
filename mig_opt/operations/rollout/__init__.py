"""Plans for the tools that carry them out: ``nvidia-mig-parted``, ``nvidia-smi`` in a script, Kubernetes."""
