"""The registry of methods: what :func:`mig_opt.solve` can run, and where it comes from."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mig_opt.arguments import wrong_integer, wrong_number, wrong_type
from mig_opt.errors import InputError, Problem, UnknownMethodError, nearest

Runner = Callable[..., None]
"""Runs a method on a batch: it reports schedules and bounds to a control, and starts from what is known there.

Its arguments are the batch, the control, and by keyword what :attr:`Method.options` says.
"""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of :func:`solve`.

    Attributes
    ----------
    name : str
        What ``solve(method=...)`` and ``--method`` call it.
    kind : str
        ``exact`` methods end with a proof if they have the time for it, ``heuristic`` ones do not.
    summary : str
        One line.
    source : str
        Where the method comes from.
    entry : str
        Module and function that run it, imported when first used.
    warm_start : bool
        Whether a heuristic runs first, for the method to start from: FAR for schedules, ``search`` for deployments.
    packages : tuple of str
        Distributions whose versions belong to the result, as far as they are installed.
    options : tuple of str
        Arguments beside the problem and the control, as the entry point knows them: those of :func:`solve` that are for
        this method and that it needs, the relaxation of a demand, the deployment that is running.
    """

    name: str
    kind: Literal["exact", "heuristic"]
    summary: str
    source: str
    entry: str
    warm_start: bool = False
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def loaded(self) -> bool:
        """Whether the method is imported already."""
        return self.entry.split(":")[0] in sys.modules

    def load(self) -> Runner:
        """Import the method."""
        module, name = self.entry.split(":")
        runner: Runner = getattr(importlib.import_module(module), name)
        return runner


_FAR_PAPER = "Villarrubia et al., JPDC 204 (2025), doi:10.1016/j.jpdc.2025.105128"
_GRAHAM = "Graham, SIAM J. Appl. Math. 17 (1969), doi:10.1137/0117039"

_METHODS = (
    Method(
        "cp",
        "exact",
        "loads of the slices by dynamic programming and local search, block model by constraint programming",
        "this package, docs/batch/theory.md",
        "mig_opt.models.batch.cp:cp",
        warm_start=True,
        packages=("ortools", "numba", "numpy", "highspy"),
    ),
    Method(
        "milp",
        "exact",
        "block model by mixed-integer programming: milp-highs, or milp-cbc where HiGHS cannot be loaded",
        "this package, docs/batch/theory.md",
        "mig_opt.models.batch.milp:milp",
        warm_start=True,
        packages=("pulp", "highspy"),
    ),
    Method(
        "milp-highs",
        "exact",
        "block model by mixed-integer programming with HiGHS",
        "this package, docs/batch/theory.md",
        "mig_opt.models.batch.milp:milp_highs",
        warm_start=True,
        packages=("pulp", "highspy"),
    ),
    Method(
        "milp-cbc",
        "exact",
        "block model by mixed-integer programming with CBC, a process of its own",
        "this package, docs/batch/theory.md",
        "mig_opt.models.batch.milp:milp_cbc",
        warm_start=True,
        packages=("pulp",),
    ),
    Method(
        "brute-force",
        "exact",
        "every order of operations and every split of the tasks, for a handful of tasks",
        "this package, docs/batch/theory.md",
        "mig_opt.models.batch.brute_force:brute_force",
    ),
    Method(
        "far",
        "heuristic",
        "family of allocations, repartitioning, refinement by moves and swaps",
        _FAR_PAPER,
        "mig_opt.heuristics.batch.far:far",
        packages=("networkx",),
    ),
    Method(
        "far-unrefined",
        "heuristic",
        "far without the refinement: its phases 1 and 2",
        _FAR_PAPER,
        "mig_opt.heuristics.batch.far:far_unrefined",
        packages=("networkx",),
    ),
    Method(
        "search",
        "heuristic",
        "local search on the loads of the slices, about ten tasks at a time, from FAR's schedule",
        "this toolkit (docs/batch/search.md)",
        "mig_opt.heuristics.batch.local_search:search",
        warm_start=True,
        packages=("networkx", "numba", "numpy"),
    ),
    Method(
        "miso-opt",
        "heuristic",
        "partition after partition, each of the largest sum of speedups for the tasks that come next",
        f"Li et al., MISO (SoCC 2022), for batches as in {_FAR_PAPER}, section 6.5",
        "mig_opt.heuristics.batch.miso:miso_opt",
    ),
    Method(
        "fixpart",
        "heuristic",
        "one given partition for the whole batch, each task on the instance that is free first",
        f"{_FAR_PAPER}, section 6.5",
        "mig_opt.heuristics.batch.fixed_partition:fixpart",
        options=("partition",),
    ),
    Method(
        "fixpart-best",
        "heuristic",
        "fixpart with the partition for which it ends first",
        f"{_FAR_PAPER}, section 6.5",
        "mig_opt.heuristics.batch.fixed_partition:fixpart_best",
    ),
    Method(
        "lpt",
        "heuristic",
        "each task on the size of least work, where it begins first, longest tasks first",
        _GRAHAM,
        "mig_opt.heuristics.batch.list_scheduling:longest_first",
    ),
    Method(
        "list",
        "heuristic",
        "each task on the size of least work, where it begins first, in the order of the batch",
        _GRAHAM,
        "mig_opt.heuristics.batch.list_scheduling:list_scheduling",
    ),
)

_PARVAGPU_PAPER = "Lee et al., ParvaGPU, SC 2024"

_DEPLOY_METHODS = (
    Method(
        "exact",
        "exact",
        "patterns of instances and counts of segments by integer programming; then slices, then changes",
        "this package, docs/serving/deploy.md",
        "mig_opt.models.serving.exact:exact",
        warm_start=True,
        packages=("pulp", "highspy", "numpy"),
        options=("relaxation", "running"),
    ),
    Method(
        "search",
        "heuristic",
        "segments of each service by prices of instance sizes, then local search on their numbers",
        "this package, docs/serving/deploy.md",
        "mig_opt.heuristics.serving.search:search",
        packages=("numpy",),
        options=("relaxation",),
    ),
    Method(
        "parvagpu",
        "heuristic",
        "best triplets, demand matching, segment relocation, allocation optimisation",
        _PARVAGPU_PAPER,
        "mig_opt.heuristics.serving.parvagpu:parvagpu",
    ),
    Method(
        "parvagpu-single",
        "heuristic",
        "parvagpu with one process in each instance",
        _PARVAGPU_PAPER,
        "mig_opt.heuristics.serving.parvagpu:parvagpu_single",
    ),
    Method(
        "parvagpu-unoptimized",
        "heuristic",
        "parvagpu without its last stage",
        _PARVAGPU_PAPER,
        "mig_opt.heuristics.serving.parvagpu:parvagpu_unoptimized",
    ),
    Method(
        "mig-serving",
        "heuristic",
        "GPU after GPU, each in the configuration that serves most of what is left",
        "in the manner of the fast algorithm of Tan et al., MIG-serving, arXiv:2109.11067",
        "mig_opt.heuristics.serving.mig_serving:mig_serving",
    ),
    Method(
        "first-fit",
        "heuristic",
        "segments of the best throughput per slice, largest first, each where it fits first",
        "first-fit decreasing",
        "mig_opt.heuristics.serving.first_fit:first_fit",
    ),
)

AUTO = "auto"
_AUTO_CHOICE = "cp"
_AUTO_DEPLOY_CHOICE = "exact"


def methods() -> tuple[Method, ...]:
    """Return the methods that :func:`solve` knows; ``auto`` stands for ``cp``."""
    return _METHODS


def get_method(name: str) -> Method:
    """Return the method of :func:`solve` called ``name`` (``auto`` included).

    Raises
    ------
    UnknownMethodError
        If there is none; the message offers the nearest names.
    """
    return _find(name, _METHODS, _AUTO_CHOICE)


def deploy_methods() -> tuple[Method, ...]:
    """Return the methods that :func:`deploy` knows; ``auto`` stands for ``exact``."""
    return _DEPLOY_METHODS


def get_deploy_method(name: str) -> Method:
    """Return the method of :func:`deploy` called ``name`` (``auto`` included).

    Raises
    ------
    UnknownMethodError
        If there is none; the message offers the nearest names.
    """
    return _find(name, _DEPLOY_METHODS, _AUTO_DEPLOY_CHOICE)


def run_problems(
    method: object, find: Callable[[str], Method], time_limit: object, seed: object
) -> tuple[list[Problem], type[InputError]]:
    """Return what is wrong with the arguments that every run has, and the error to raise for it.

    Parameters
    ----------
    method : object
        Should be the name of a method.
    find : callable
        :func:`get_method` or :func:`get_deploy_method`.
    time_limit : object
        Should be None, or a finite number of seconds > 0.
    seed : object
        Should be a whole number from 0 to 2**31 - 1.
    """
    problems: list[Problem] = []
    error: type[InputError] = InputError
    if not isinstance(method, str):
        problems.append(wrong_type("method", method, "the name of a method"))
    else:
        try:
            find(method)
        except UnknownMethodError as unknown:
            error = UnknownMethodError
            problems += unknown.problems
    if time_limit is not None:
        problems += wrong_number("time_limit", time_limit, "a finite number of seconds > 0", above=0)
    problems += wrong_integer("seed", seed, 0, 2**31 - 1)
    return problems, error


def _find(name: str, known: tuple[Method, ...], auto: str) -> Method:
    wanted = auto if name == AUTO else name
    for method in known:
        if method.name == wanted:
            return method
    names = [AUTO, *(method.name for method in known)]
    raise UnknownMethodError([Problem("method", f"unknown method {name!r}; {nearest(name, names)}")])
