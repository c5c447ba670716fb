"""Online schedulers for jobs that arrive over time.

Base classes are in ``base``, ``queueing`` (with simple rivals) and ``reconfiguring``; ``partitioning`` chooses the
instances of GPUs. Published schedulers are ``fragmentation_aware``, ``pcie_aware`` and ``memory_aware``;
``fragmentation_growth`` and ``baskets`` follow the abstracts of two others; the toolkit's
own is ``planner``, with the parts in ``planning``.
"""
