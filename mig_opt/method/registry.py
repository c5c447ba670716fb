"""Registries of the methods of :func:`mig_opt.solve` and :func:`mig_opt.deploy` and of the policies of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mig_opt.errors import InputError, Problem, UnknownMethodError, nearest, raise_any
from mig_opt.method.functions import imported, name_of, reporting
from mig_opt.rules import wrong_choice, wrong_type

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Method:
    """A method of :func:`solve` or :func:`deploy`, or a policy of :func:`simulate`.

    Attributes
    ----------
    name : str
        What ``solve(method=...)``, ``simulate(policy=...)`` and the command line call it.
    kind : str
        ``exact`` methods end with a proof if they have the time for it, ``heuristic`` ones do not; a ``policy`` decides
        on jobs as they arrive.
    summary : str
        One line.
    source : str
        Where the method comes from.
    entry : str
        Module and function that run it, module and class of the policy, or for a function of somebody else those of the
        plans that it has to return; imported when first used.
    warm_start : bool
        True if a heuristic runs first, for the method to start from: FAR for schedules, ``search`` for deployments.
    packages : tuple of str
        Distributions whose versions belong to the result, as far as they are installed.
    options : tuple of str
        Arguments beside the problem and the control, as the entry point knows them: those of :func:`solve` that are for
        this method and that it needs, the relaxation of a demand, the deployment that is running, what stays of it.
    function : callable or None
        Function of somebody else in place of the entry: it takes the problem, and if it wants the seconds that it has,
        and returns a plan or None.
    all_sizes : bool
        True if it gets all sizes of instances, also those that a short schedule cannot wait for.
    """

    name: str
    kind: Literal["exact", "heuristic", "policy"]
    summary: str
    source: str
    entry: str
    warm_start: bool = False
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    all_sizes: bool = False

    def load(self) -> Callable[..., Any]:
        """Import the method and return its function, or the class of the policy.

        The function takes the problem, a :class:`mig_opt.method.control.Control` and by keyword its ``options``. It
        reports plans and bounds to the control, and starts from what is known there.
        """
        function = self.function
        found: Callable[..., Any] = imported(self.entry)
        return found if function is None else reporting(function, found)


@dataclass(slots=True)
class Registry:
    """Methods or policies, to be found by name."""

    what: str  # ``method`` or ``policy``: the argument that takes the name
    entries: tuple[Method, ...]
    auto: str = ""  # name of the entry that ``auto`` stands for, if there is one
    plans: str = ""  # module and class of the plans, where functions of others may be methods

    @property
    def names(self) -> tuple[str, ...]:
        """All names, with ``auto`` where it stands for an entry."""
        return (*([AUTO] if self.auto else ()), *(entry.name for entry in self.entries))

    def find(self, name: object) -> Method:
        """Return the entry called ``name``, or one of a function in place of a name.

        Raises
        ------
        InputError
            If ``name`` is no text. If it is the name of no entry the message offers the nearest names, and for a method
            the error is an UnknownMethodError.
        """
        if callable(name) and self.plans:
            return _heuristic(name_of(name), "a function of your own", "", self.plans, function=name, all_sizes=True)
        if not isinstance(name, str):
            wanted = f"the name of a {self.what}{', or a function' * bool(self.plans)}"
            raise InputError([wrong_type(self.what, name, wanted)])
        wanted = self.auto if self.auto and name == AUTO else name
        for entry in self.entries:
            if entry.name == wanted:
                return entry
        error = UnknownMethodError if self.what == "method" else InputError
        raise error([Problem(self.what, f"unknown {self.what} {name!r}; {nearest(name, self.names)}")])


def _exact(name: str, summary: str, entry: str, packages: tuple[str, ...] = ()) -> Method:
    """Return a method for batches that ends with a proof."""
    source = "this package, docs/explanation/models.md"
    return Method(name, "exact", summary, source, entry, warm_start=True, packages=packages)


def _heuristic(name: str, summary: str, source: str, entry: str, **more: Any) -> Method:
    return Method(name, "heuristic", summary, source, entry, **more)


def _policy(name: str, summary: str, source: str, entry: str) -> Method:
    return Method(name, "policy", summary, source, entry)


_FAR_PAPER = "Villarrubia et al., JPDC 204 (2025), doi:10.1016/j.jpdc.2025.105128"
_GRAHAM = "Graham, SIAM J. Appl. Math. 17 (1969), doi:10.1137/0117039"

METHODS = Registry(
    "method",
    (
        _exact(
            "cp",
            "loads of the slices by dynamic programming and local search, block model by constraint programming",
            "mig_opt.models.batch.portfolio:cp",
            packages=("ortools", "numpy", "highspy"),
        ),
        _exact(
            "milp",
            "block model by mixed-integer programming: milp-highs, or milp-cbc where HiGHS cannot be loaded",
            "mig_opt.models.batch.milp:milp",
            packages=("pulp", "highspy"),
        ),
        _exact(
            "milp-highs",
            "block model by mixed-integer programming with HiGHS",
            "mig_opt.models.batch.milp:milp_highs",
            packages=("pulp", "highspy"),
        ),
        _exact(
            "milp-cbc",
            "block model by mixed-integer programming with CBC, a process of its own",
            "mig_opt.models.batch.milp:milp_cbc",
            packages=("pulp",),
        ),
        _exact(
            "brute-force",
            "every order of operations and every split of the tasks, for a handful of tasks",
            "mig_opt.models.batch.brute_force:brute_force",
        ),
        _heuristic(
            "far",
            "family of allocations, repartitioning, refinement by moves and swaps: the best of several readings",
            _FAR_PAPER,
            "mig_opt.heuristics.batch.far:far",
        ),
        _heuristic(
            "far-printed",
            "far with its refinement as printed, each step judged by its schedule",
            _FAR_PAPER,
            "mig_opt.heuristics.batch.far:far_printed",
            packages=("networkx",),
        ),
        _heuristic(
            "far-published",
            "far as the program of its authors carries it out",
            f"{_FAR_PAPER}, with github.com/artecs-group/RL_MIG_scheduler",
            "mig_opt.heuristics.batch.far:far_published",
            packages=("networkx",),
        ),
        _heuristic(
            "far-unrefined",
            "far without the refinement: its phases 1 and 2",
            _FAR_PAPER,
            "mig_opt.heuristics.batch.far:far_unrefined",
        ),
        _heuristic(
            "search",
            "local search on the loads of the slices, about ten tasks at a time, from FAR's schedule",
            "this toolkit (docs/explanation/search.md)",
            "mig_opt.heuristics.batch.local_search:search",
            warm_start=True,
            packages=("numpy",),
        ),
        _heuristic(
            "miso-opt",
            "partition after partition, each of the largest sum of speedups for the tasks that come next",
            f"Li et al., MISO (SoCC 2022), for batches as in {_FAR_PAPER}, section 6.5",
            "mig_opt.heuristics.batch.miso:miso_opt",
        ),
        _heuristic(
            "fixpart",
            "one given partition for the whole batch, each task on the instance that is free first",
            f"{_FAR_PAPER}, section 6.5",
            "mig_opt.heuristics.batch.fixed_partition:fixpart",
            options=("partition",),
            all_sizes=True,
        ),
        _heuristic(
            "fixpart-best",
            "fixpart with the partition for which it ends first",
            f"{_FAR_PAPER}, section 6.5",
            "mig_opt.heuristics.batch.fixed_partition:fixpart_best",
            all_sizes=True,
        ),
        _heuristic(
            "lpt",
            "each task on the size of least work, where it begins first, longest tasks first",
            _GRAHAM,
            "mig_opt.heuristics.batch.list_schedule:longest_first",
        ),
        _heuristic(
            "list",
            "each task on the size of least work, where it begins first, in the order of the batch",
            _GRAHAM,
            "mig_opt.heuristics.batch.list_schedule:list_scheduling",
        ),
    ),
    auto="cp",
    plans="mig_opt.batch.schedule:Schedule",
)

_PARVAGPU_PAPER = "Lee et al., ParvaGPU, SC 2024"

DEPLOY_METHODS = Registry(
    "method",
    (
        Method(
            "exact",
            "exact",
            "patterns of instances and counts of segments by integer programming; then slices, then changes",
            "this package, docs/explanation/deployments.md",
            "mig_opt.models.serving.exact:exact",
            warm_start=True,
            packages=("pulp", "highspy", "numpy"),
            options=("relaxation", "running"),
        ),
        _heuristic(
            "search",
            "segments of each service by dual prices of instance sizes, then local search on their numbers",
            "this package, docs/explanation/deployments.md",
            "mig_opt.heuristics.serving.search:search",
            packages=("numpy",),
            options=("relaxation",),
        ),
        _heuristic(
            "parvagpu",
            "best triplets, demand matching, segment relocation, allocation optimisation",
            _PARVAGPU_PAPER,
            "mig_opt.heuristics.serving.parvagpu:parvagpu",
            options=("retained",),
        ),
        _heuristic(
            "parvagpu-single",
            "parvagpu with one process in each instance",
            _PARVAGPU_PAPER,
            "mig_opt.heuristics.serving.parvagpu:parvagpu_single",
            options=("retained",),
        ),
        _heuristic(
            "parvagpu-unoptimized",
            "parvagpu without its last stage",
            _PARVAGPU_PAPER,
            "mig_opt.heuristics.serving.parvagpu:parvagpu_unoptimized",
            options=("retained",),
        ),
        _heuristic(
            "mig-serving",
            "GPU after GPU, each in the configuration that serves most of what is left",
            "after the fast algorithm of Tan et al., MIG-serving, arXiv:2109.11067, with a stronger score",
            "mig_opt.heuristics.serving.mig_serving:mig_serving",
        ),
        _heuristic(
            "mig-serving-fast",
            "GPU after GPU, each in the configuration of greatest utility, weighted by what services lack",
            "the fast algorithm of Tan et al., MIG-serving, arXiv:2109.11067",
            "mig_opt.heuristics.serving.mig_serving:mig_serving_fast",
        ),
        _heuristic(
            "gpulet",
            "at most two segments on a GPU, the second one with the rest of it",
            "Choi et al., USENIX ATC 2022, on instances in place of shares of MPS",
            "mig_opt.heuristics.serving.gpulet:gpulet",
        ),
        _heuristic(
            "igniter",
            "each service on the smallest instance that serves it, largest first, where it fits first",
            "Xu et al., iGniter, IEEE TPDS 34 (2023), on instances in place of shares of MPS",
            "mig_opt.heuristics.serving.igniter:igniter",
        ),
        _heuristic(
            "first-fit",
            "segments of the best throughput per slice, largest first, each where it fits first",
            "first-fit decreasing",
            "mig_opt.heuristics.serving.fill:first_fit",
        ),
    ),
    auto="exact",
    plans="mig_opt.serving.deployment:Deployment",
)

_FRAGMENTATION = "An Online Fragmentation-Aware Scheduler for Managing GPU-Sharing Workloads on Multi-Instance GPUs"

_MEMORY = "Managing Multi Instance GPUs for High Throughput and Energy Savings (MIGM)"
_PCIE = "PCIe Bandwidth-Aware Scheduling for Multi-Instance GPUs"

POLICIES = Registry(
    "policy",
    (
        _policy(
            "fragmentation-aware",
            "conditional load balancing, least fragmentation, reuse of instances, migration on departure",
            f"{_FRAGMENTATION}, section IV",
            "mig_opt.heuristics.fleet.fragmentation_aware:FragmentationAware",
        ),
        _policy(
            "first-fit",
            "the GPU of lowest index with room, its first placement",
            f"the baseline of: {_FRAGMENTATION}, section V, with repartitioning",
            "mig_opt.heuristics.fleet.queues:FirstFit",
        ),
        _policy(
            "best-fit",
            "the GPU with the least room that is enough, its first placement",
            "folklore",
            "mig_opt.heuristics.fleet.queues:BestFit",
        ),
        _policy(
            "load-balancing",
            "the GPU with the least load that has room, its first placement",
            "folklore",
            "mig_opt.heuristics.fleet.queues:LoadBalancing",
        ),
        _policy(
            "static",
            "first fit on partitions that never change",
            f"baseline of: {_FRAGMENTATION}, section V-C",
            "mig_opt.heuristics.fleet.queues:StaticPartition",
        ),
        _policy(
            "memory-aware-a",
            "tightest memory, jobs by size, placements by reachability, early restart by prediction",
            f"{_MEMORY}, scheme A",
            "mig_opt.heuristics.fleet.memory_aware:MemoryAwareBySize",
        ),
        _policy(
            "memory-aware-b",
            "tightest memory, jobs in order, placements by reachability, early restart by prediction",
            f"{_MEMORY}, scheme B",
            "mig_opt.heuristics.fleet.memory_aware:MemoryAwareInOrder",
        ),
        _policy(
            "whole-gpu",
            "one job at a time on each GPU, on its largest instance",
            f"the baseline of: {_MEMORY}, section 5",
            "mig_opt.heuristics.fleet.queues:WholeGpu",
        ),
        _policy(
            "pcie-aware",
            "the GPU where PCIe contention slows the job down least; reconfigures idle GPUs only",
            f"{_PCIE}, section 4",
            "mig_opt.heuristics.fleet.pcie_aware:PcieAware",
        ),
        _policy(
            "pcie-unaware",
            "the GPU of lowest index with an idle instance; reconfigures idle GPUs only",
            f"the baseline of: {_PCIE}, section 5.1",
            "mig_opt.heuristics.fleet.pcie_aware:PcieUnaware",
        ),
        _policy(
            "fragmentation-growth",
            "the GPU and placement with which fragmentation grows least",
            "after the abstract of Zambianco et al., arXiv 2511.18906; the metric is ours",
            "mig_opt.heuristics.fleet.fragmentation_growth:FragmentationGrowth",
        ),
        _policy(
            "baskets",
            "first fit in a basket of GPUs for large jobs or one for small ones, with quotas; migrations repair",
            "after the abstract of Siavashi and Momtazpour, GRMU, arXiv 2502.01909; the steps are ours",
            "mig_opt.heuristics.fleet.baskets:Baskets",
        ),
        _policy(
            "planner",
            "rolling plans for the jobs that wait, from the state of the fleet",
            "this toolkit (docs/explanation/planner.md)",
            "mig_opt.heuristics.fleet.planner:Planner",
        ),
    ),
)

get_method = METHODS.find
get_deploy_method = DEPLOY_METHODS.find
get_policy = POLICIES.find


def needs_more(method: object) -> Iterator[Problem]:
    """Yield a problem for a method of :func:`mig_opt.solve` that needs more than a batch, where it cannot be given."""
    for entry in METHODS.entries:
        if entry.name == method and entry.options:
            yield Problem("method", f"must work without a {entry.options[0]}, is {method!r}")


def methods(of: Literal["solve", "deploy", "simulate"] = "solve") -> tuple[Method, ...]:
    """Return the methods that :func:`mig_opt.solve`, :func:`mig_opt.deploy` or :func:`mig_opt.simulate` knows.

    ``auto`` stands for ``cp`` of ``solve``, and for ``exact`` of ``deploy``.

    Examples
    --------
    >>> [policy.name for policy in methods("simulate")][:5]
    ['fragmentation-aware', 'first-fit', 'best-fit', 'load-balancing', 'static']
    """
    registries = {"solve": METHODS, "deploy": DEPLOY_METHODS, "simulate": POLICIES}
    raise_any(wrong_choice("of", of, list(registries)))
    return registries[of].entries
