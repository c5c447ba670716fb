"""The catalogue: MIG-capable GPUs by name, and tables of what operations cost, by the program that does them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Annotated, Any

from mig_opt.errors import InputError, Problem, UnknownGpuError, nearest, raise_any
from mig_opt.gpu.model import KNOWN, WITHOUT_MIG, GpuModel, OperationCosts, Profile
from mig_opt.rules import wrong_type
from mig_opt.rules.vocabulary import OfType, Rule, other_type


@cache
def _data(name: str) -> Any:
    return json.loads(resources.files("mig_opt.gpu").joinpath(name).read_text(encoding="utf-8"))


@cache
def catalogue() -> tuple[GpuModel, ...]:
    """Return every GPU that the package knows."""
    return tuple(_model(entry["name"]) for entry in _data("gpus.json")["gpus"])


@cache
def _model(name: str) -> GpuModel:
    """Return one of them; it is made when it is first asked for, since its checks take a while."""
    data = _data("gpus.json")
    entry = next(entry for entry in data["gpus"] if entry["name"] == name)
    profiles = tuple(
        Profile(**{**profile, "starts": tuple(profile["starts"]), "attributes": tuple(profile["attributes"])})
        for profile in entry["profiles"]
    )
    if table := data["operation_costs"].get(entry["operation_costs"]):
        create, destroy = ({int(size): known for size, known in table[kind].items()} for kind in ("create", "destroy"))
        costs = OperationCosts(create, destroy, table["source"])
    else:
        costs = assumed_costs(profiles, name)
    return GpuModel(**{**entry, "profiles": profiles, "operation_costs": costs})


def gpu_noting(gpu: str | GpuModel, problems: list[Problem]) -> GpuModel | None:
    """Return a GPU or the one of that name; if there is none, note that among the problems and return None."""
    if isinstance(gpu, GpuModel):
        return gpu
    try:
        return get_gpu(gpu)
    except UnknownGpuError as error:
        problems += error.problems
        return None


def assumed_costs(profiles: Iterable[Profile], gpu: str) -> OperationCosts:
    """Return operation costs for a GPU that nobody has measured: those of an H100, marked as assumed.

    Of a size that an H100 does not have, those of the next larger one or the last.

    Examples
    --------
    >>> costs = assumed_costs(get_gpu("H100").profiles, "H400")
    >>> costs.create[1], costs.assumed, costs.source.partition("; ")[2]
    (0.16, True, 'assumed for H400, which nobody has measured')
    """
    costs = get_gpu("H100").operation_costs
    nearest_to = {
        profile.compute_slices: min(
            (size for size in costs.create if size >= profile.compute_slices), default=max(costs.create)
        )
        for profile in profiles
    }
    other = [f"{size}g taken as {known}g" for size, known in nearest_to.items() if known != size]
    return OperationCosts(
        {size: costs.create[known] for size, known in nearest_to.items()},
        {size: costs.destroy[known] for size, known in nearest_to.items()},
        f"{costs.source}; assumed for {gpu}, which nobody has measured{', ' * bool(other)}{', '.join(other)}",
        assumed=True,
    )


@cache
def _names() -> dict[str, str]:
    gpus = _data("gpus.json")["gpus"]
    return {name.casefold(): entry["name"] for entry in gpus for name in (entry["name"], *entry["aliases"])}


def known_gpu(name: str) -> GpuModel | None:
    """Return the GPU of that name or alias, of the catalogue or read in this program; None if there is none."""
    own = _names().get(name.casefold())
    found = _model(own) if own else KNOWN.get(name.casefold())
    if found is None and name.casefold().endswith(WITHOUT_MIG.casefold()):
        whole = known_gpu(name[: -len(WITHOUT_MIG)])
        return whole and without_mig(whole)
    return found


def with_mig(gpu: GpuModel) -> GpuModel:
    """Return a kind of GPU with MIG on."""
    return gpu if gpu.mig else known_gpu(gpu.name.removesuffix(WITHOUT_MIG)) or gpu


@cache
def without_mig(gpu: GpuModel) -> GpuModel:
    """Return a kind of GPU with MIG off: the whole GPU is its only instance, which nobody creates or destroys.

    Examples
    --------
    >>> without_mig(get_gpu("A30")).profiles[0].name, get_gpu("a30 without mig").sizes
    ('4g.24gb', (4,))
    """
    if not gpu.mig:
        return gpu
    largest = gpu.profiles_of("base")[0]
    whole = replace(largest, starts=(0,), max_count=1)
    none = OperationCosts({whole.compute_slices: 0.0}, {whole.compute_slices: 0.0}, "MIG is off")
    name, label = gpu.name + WITHOUT_MIG, gpu.label + WITHOUT_MIG
    return replace(gpu, name=name, label=label, profiles=(whole,), operation_costs=none, aliases=())


def taken_names(model: GpuModel) -> Iterator[Problem]:
    """Yield a problem for each name of a GPU that another one has: plans have nothing but the name."""
    names = ("name", model.name), *((f"aliases[{index}]", alias) for index, alias in enumerate(model.aliases or ()))
    for path, name in names:
        if name is not None and known_gpu(name) not in (None, model):
            yield Problem(path, f"{name!r} is the name of another GPU; choose another one")


def add_gpu(model: GpuModel) -> GpuModel:
    """Let a GPU that is not in the catalogue be known by its names, as long as the program runs, and return it.

    Raises
    ------
    InputError
        If a name is that of another GPU.

    Examples
    --------
    >>> import dataclasses
    >>> add_gpu(dataclasses.replace(get_gpu("A30"), label="another board", aliases=()))
    Traceback (most recent call last):
        ...
    mig_opt.errors.InputError: name: 'A30-24GB' is the name of another GPU; choose another one
    """
    raise_any(taken_names(model))
    for name in (model.name, *model.aliases):
        if known_gpu(name) is None:
            KNOWN[name.casefold()] = model
    return known_gpu(model.name) or model


def get_gpu(name: str) -> GpuModel:
    """Return the GPU with that name or alias (case does not matter): of the catalogue, or of a file that has been read.

    Raises
    ------
    UnknownGpuError
        If there is none; the message offers the nearest names.

    Examples
    --------
    >>> get_gpu("h100").name
    'H100-80GB'
    """
    if message := KnownName().wrong(name):
        raise UnknownGpuError([Problem("gpu", message)])
    found = known_gpu(name)
    assert found is not None
    return found


_IN_FILES = "Name of the GPU in the catalogue, or a short alias; its model; or the file of its model, from this folder."


class KnownName(Rule):
    """The name or an alias of a GPU."""

    __slots__ = ()

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a name, with the nearest ones; empty if there is such a GPU."""
        if not isinstance(value, str):
            return other_type(value, "the name of a GPU")
        if known_gpu(value) is not None:
            return ""
        models = dict.fromkeys([*catalogue(), *KNOWN.values()])
        known = [name for model in models for name in (model.name, *model.aliases)]
        return f"unknown GPU {value!r}; {nearest(value, known)}"

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema that lets files have a model, too."""
        return {"anyOf": [schema, {"$comment": "GpuModel"}], "description": _IN_FILES}


class KnownGpu(OfType):
    """A kind of GPU; a file has its name."""

    __slots__ = ()
    file_type = str

    def read(self, value: Any) -> GpuModel:
        """Return the GPU of a name."""
        if message := KnownName().wrong(value):
            raise InputError([Problem("", message)])
        return get_gpu(value)

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema that says what it is."""
        return KnownName().described(schema)


GpuName = Annotated[str, KnownName()]
Gpu = Annotated[GpuModel, KnownGpu(GpuModel, "a GpuModel, for example get_gpu('A100')")]


DRIVER = "nvml"  # the table with the driver's own times, which the operation_costs of a GpuModel are


@dataclass(frozen=True, slots=True)
class CostTable:
    """A table of operation costs in the catalogue."""

    name: str
    by: str  # the program that does the operations
    # seconds of any creation, and of any destruction; None for the driver's own, which differ by GPU and size
    create: float | None
    destroy: float | None
    source: str  # of the figures, and how they were made; empty for the driver's own, which have one for each GPU

    def on(self, gpu: GpuModel) -> OperationCosts:
        """Return the seconds for each size of a kind of GPU, with their source."""
        if self.create is None or self.destroy is None:
            return gpu.operation_costs
        create, destroy = (dict.fromkeys(gpu.sizes, seconds) for seconds in (self.create, self.destroy))
        return OperationCosts(create, destroy, f"{self.by}: {self.source}", assumed=True)


@cache
def cost_tables() -> Mapping[str, CostTable]:
    """Return the tables of operation costs in the catalogue, by name.

    Examples
    --------
    >>> list(cost_tables())
    ['nvml', 'nvidia-smi', 'kubernetes']
    """
    data = _data("costs.json")
    tables = (CostTable(**entry) for entry in data["tables"])
    return {table.name: table for table in tables}


def get_costs(name: str, gpu: str | GpuModel) -> OperationCosts:
    """Return the operation costs of a table of the catalogue.

    Parameters
    ----------
    name : str
        ``nvml``, ``nvidia-smi`` or ``kubernetes``.
    gpu : str or GpuModel
        The kind of GPU.

    Returns
    -------
    OperationCosts
        Seconds for each size of the GPU, with their source.

    Raises
    ------
    InputError
        If there is no such table, or no such GPU.

    Examples
    --------
    >>> get_costs("nvml", "A30").create
    {1: 0.11, 2: 0.12, 4: 0.13}
    >>> get_costs("nvidia-smi", "A30").create
    {1: 1.0, 2: 1.0, 4: 1.0}
    """
    if not isinstance(name, str):
        raise InputError([wrong_type("name", name, "a string")])
    model = gpu if isinstance(gpu, GpuModel) else get_gpu(gpu)
    if name not in cost_tables():
        raise InputError([Problem("name", f"no table of costs is called {name!r}; {nearest(name, cost_tables())}")])
    return cost_tables()[name].on(model)
