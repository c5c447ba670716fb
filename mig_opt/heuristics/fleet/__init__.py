"""Online schedulers for jobs that arrive over time.

Base classes are in ``base``, ``queues`` (with simple rivals) and ``reconfiguration``; ``partitions`` chooses the
instances of GPUs. Published schedulers are ``fragmentation_aware``, ``pcie_aware`` and ``memory_aware``;
``fragmentation_growth`` and ``baskets`` follow the abstracts of two others; the toolkit's own is ``planner``, with the
parts in ``plans``.
"""
