"""State of a fleet from what sources tell of it, with everything noted that contradicts itself or the hardware."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mig_opt.batch.batch import instance_problems
from mig_opt.files.documents import shown
from mig_opt.files.fleet.importing.kinds import kinds_of, profile_named
from mig_opt.files.fleet.importing.places import Layout, arrangements, fewest_gpus
from mig_opt.files.fleet.importing.sightings import SeenGpu, SeenInstance, Sightings
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.devices import devices_of
from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.texts import plural

Home = tuple[str, int]
"""Node, and index of a GPU in it."""

_MOST_SHOWN = 4


@dataclass(slots=True)
class _Known:
    """Instance whose profile is known."""

    seen: SeenInstance
    profile: Profile
    home: Home | None
    start: int | None


def assemble(seen: Sightings, gpu: GpuModel | None, *, assume_places: bool, name: str) -> FleetState | None:
    """Return the state that was seen; None if something is wrong, which is noted.

    ``gpu`` is the kind of GPU that the state is for, by default the only one that was seen.
    """
    for node in [*seen.counts, *seen.products]:
        product, where = seen.products.get(node, ("", ""))
        for index in range(seen.counts.get(node, 0)):
            seen.gpu(node, index, where, product=product)
    _leave_out(seen)
    model = gpu or _kind(seen)
    if model is None:
        return None
    _leave_out_others(seen, model)
    known = list(_known(seen, model))
    if seen.findings.problems:
        return None
    homes = _homes(seen, known, model)
    _place(seen, known, homes, model, assume_places=assume_places)
    if seen.findings.problems:
        return None
    return _state(seen, known, homes, model, name)


def _leave_out(seen: Sightings) -> None:
    """Leave out GPUs that are not partitioned, and say so."""
    whole: list[tuple[str, int | None]] = [home for home, gpu in seen.gpus.items() if gpu.mig is False]
    strange: list[tuple[str, int | None]] = [
        home for home, gpu in seen.gpus.items() if home not in whole and gpu.product and not kinds_of(gpu.product)
    ]
    for homes, reason in ((whole, "MIG is off"), (strange, "no GPU of the catalogue")):
        if homes:
            seen.notes.append(f"left out {plural(len(homes), 'GPU')} ({reason}): {_listed(homes)}")
    seen.gpus = {home: gpu for home, gpu in seen.gpus.items() if home not in (*whole, *strange)}
    for held in seen.instances:
        home: tuple[str, int | None] = (held.node, held.gpu)
        if home in whole:
            seen.wrong(held.where, f"is an instance on a GPU on which MIG is off ({_listed([home])})")
        elif home in strange:
            seen.wrong(
                held.where,
                f"is an instance on a GPU that is not in the catalogue; see: mig-opt gpus ({_listed([home])})",
            )


def _listed(homes: Iterable[tuple[str, int | None]]) -> str:
    names = [f"GPU {index} of {node}" if node else f"GPU {index}" for node, index in homes]
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more


def _kind(seen: Sightings) -> GpuModel | None:
    """Return the kind of the GPUs."""
    products = {gpu.product for gpu in seen.gpus.values()} | {product for product, _ in seen.products.values()}
    products.discard("")
    kinds = [gpu for gpu in catalogue() if all(gpu in kinds_of(product) for product in products)]
    fitting = [gpu for gpu in kinds if all(_profile(gpu, held) for held in seen.instances)]
    if len(fitting) == 1:
        return fitting[0]
    if seen.findings.problems:
        return None  # what is missing now may be what could not be read
    if not seen.gpus and not seen.instances:
        seen.wrong("", "tells of no GPU with MIG")
    elif not kinds:
        counted = Counter(gpu.product for gpu in seen.gpus.values() if gpu.product)
        several = ", ".join(f"{number} x {product}" for product, number in sorted(counted.items()))
        seen.wrong("gpu", f"a state is of GPUs of one kind, and there are {several}; choose one of them with --gpu")
    elif not fitting:
        # Told instance by instance, for the kind that has most of them.
        best = max(kinds, key=lambda gpu: sum(_profile(gpu, held) is not None for held in seen.instances))
        list(_known(seen, best))
    else:
        names = " or ".join(gpu.name for gpu in fitting[:_MOST_SHOWN])
        seen.wrong("gpu", f"the text does not tell the kind of GPU, which may be {names}; give it with --gpu")
    return None


def _leave_out_others(seen: Sightings, model: GpuModel) -> None:
    others = [home for home, gpu in seen.gpus.items() if gpu.product and model not in kinds_of(gpu.product)]
    if others:
        seen.notes.append(f"left out {plural(len(others), 'GPU')} (not {model.name}): {_listed(others)}")
        nodes = {node for node, _ in others}
        seen.instances = [
            held
            for held in seen.instances
            if (held.node, held.gpu) not in others and not (held.gpu is None and held.node in nodes)
        ]
        for home in others:
            del seen.gpus[home]


def _profile(gpu: GpuModel, held: SeenInstance) -> Profile | None:
    return profile_named(gpu, held.profile, held.profile_id, held.size)


def _known(seen: Sightings, model: GpuModel) -> Iterator[_Known]:
    """Yield the instances with their profiles; note those that the kind of GPU cannot have."""
    for held in seen.instances:
        profile = _profile(model, held)
        if profile is None:
            number = f" with the number {held.profile_id}" if held.profile_id is not None else ""
            what = (
                f"the profile {shown(held.profile)}{number}" if held.profile or number else "an instance of that size"
            )
            names = ", ".join(one.name for one in model.profiles)
            seen.wrong(held.where, f"{model.name} has not {what}; its profiles are {names}")
        elif held.slices is not None and held.slices != profile.memory_slices:
            message = f"{profile.name} has {plural(profile.memory_slices, 'memory slice')}, not {held.slices}"
            seen.wrong(held.where, message)
        elif held.start is not None and held.start not in profile.starts:
            legal = ", ".join(map(str, profile.starts))
            seen.wrong(held.where, f"{profile.name} cannot start at slice {held.start}; legal starts: {legal}")
        else:
            home = None if held.gpu is None else (held.node, held.gpu)
            yield _Known(held, profile, home, held.start)


def _homes(seen: Sightings, known: list[_Known], model: GpuModel) -> list[Home]:
    """Return the GPUs in the order of the state, with those of nodes of which only instances are counted."""
    counted: dict[str, Counter[Profile]] = defaultdict(Counter)
    for one in known:
        if one.home is None:
            counted[one.seen.node][one.profile] += 1
        elif one.home not in seen.gpus:
            seen.gpus[one.home] = SeenGpu(*one.home, one.seen.where)
    for node, wanted in counted.items():
        if not any(home[0] == node for home in seen.gpus):
            where = next(one.seen.where for one in known if one.seen.node == node)
            for index in range(fewest_gpus(model, wanted)):
                seen.gpus[node, index] = SeenGpu(node, index, where)
            seen.notes.append(f"{_node(node)} is taken to have the fewest GPUs on which its instances have room")
    return sorted(seen.gpus, key=lambda home: (_natural(home[0]), home[1]))


def _node(node: str) -> str:
    return f"node {node}" if node else "the node"


def _natural(name: str) -> list[tuple[int, str]]:
    # node-10 comes after node-9.
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"([0-9]{1,9})", name)]


def _place(seen: Sightings, known: list[_Known], homes: list[Home], model: GpuModel, *, assume_places: bool) -> None:
    """Give a place to the instances that have none."""
    open_groups: dict[tuple[str, int | None], list[_Known]] = defaultdict(list)
    fixed: dict[Home, list[Placement]] = defaultdict(list)
    for one in known:
        if one.home is None or one.start is None:
            open_groups[one.seen.node, one.home[1] if one.home else None].append(one)
        else:
            fixed[one.home].append(Placement(one.profile, one.start))
    assumed = 0
    for (node, index), group in open_groups.items():
        gpus = [home for home in homes if home[0] == node and index in (None, home[1])]
        held: list[Layout] = [tuple(fixed[home]) for home in gpus]
        ways = arrangements(model, Counter(one.profile for one in group), held)
        what = f"GPU {index}{f' of {node}' if node else ''}" if index is not None else _node(node)
        if not ways:
            names = ", ".join(f"{n} x {p.name}" for p, n in Counter(one.profile for one in group).items())
            seen.wrong(group[0].seen.where, f"there is no room on {what} for all of its instances ({names})")
            continue
        certain = len(ways) == 1 and not _mixed(group)
        if not certain and not assume_places:
            message = "the places of its instances are not in the text, and there are several ways to place them"
            hint = "add the output of nvidia-smi mig -lgi, or take any places with --assume-places"
            seen.wrong(group[0].seen.where, f"{what}: {message}; {hint}")
            continue
        assumed += 0 if certain else len(group)
        _put(group, dict(zip(gpus, ways[0], strict=True)))
        for home, layout in zip(gpus, ways[0], strict=True):
            fixed[home] += layout
    if assumed:
        seen.notes.append(f"the places of {plural(assumed, 'instance')} are assumed, they are not in the text")


def _mixed(group: list[_Known]) -> bool:
    """Return True if instances of one profile differ in what runs on them, so that it matters which is where."""
    looks: dict[Profile, set[object]] = defaultdict(set)
    for one in group:
        looks[one.profile].add((one.seen.name, one.seen.owner, bool(one.seen.idle)))
    return any(len(different) > 1 for different in looks.values())


def _put(group: list[_Known], way: dict[Home, Layout]) -> None:
    places: dict[Profile, list[tuple[Home, int]]] = defaultdict(list)
    for home, layout in way.items():
        for placement in layout:
            places[placement.profile].append((home, placement.start))
    several = {profile for profile, found in places.items() if len(found) > 1}
    for one in group:
        one.home, one.start = places[one.profile].pop(0)
        if one.profile in several:
            one.seen.uuid = ""  # which of them is where is not known


def _state(seen: Sightings, known: list[_Known], homes: list[Home], model: GpuModel, name: str) -> FleetState | None:
    """Return the state, unless instances overlap."""
    numbers = {home: number for number, home in enumerate(homes)}
    known.sort(key=lambda one: (numbers[one.home] if one.home else -1, one.start or 0))
    instances = tuple(
        HeldInstance(
            numbers[one.home] if one.home else 0,
            one.profile.name,
            one.start or 0,
            one.seen.name,
            owner=one.seen.owner,
            idle=bool(one.seen.idle),
            uuid=one.seen.uuid,
        )
        for one in known
    )
    for problem in instance_problems(model, len(homes), "instances", instances):
        found = re.match(r"instances\[(\d+)\]", problem.path)
        message = re.sub(r"instances\[(\d+)\]", lambda other: str(known[int(other[1])].seen.where), problem.message)
        seen.wrong(known[int(found[1])].seen.where if found else "", message)
    if seen.findings.problems:
        return None
    nodes = tuple(node for node, _ in homes)
    indices = tuple(index for _, index in homes)
    uuids = tuple(seen.gpus[home].uuid for home in homes)
    state = FleetState(model, len(homes), instances, name, manager=seen.manager, budgets=seen.budgets)
    state = replace(state, nodes=nodes if any(nodes) else (), uuids=uuids if any(uuids) else ())
    usual = tuple(device.index for device in devices_of(nodes, (), ()))
    return state if indices == usual else replace(state, indices=indices)
