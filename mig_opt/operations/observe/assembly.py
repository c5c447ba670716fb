"""State of a fleet from what sources tell of it, with everything noted that contradicts itself or the hardware."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from mig_opt.batch.problems import instance_problems
from mig_opt.files.documents import shown
from mig_opt.files.values import natural_order, with_places
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.devices import devices_of
from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.gpu.states import placed_states
from mig_opt.operations.observe.gpu_models import kinds_of, profile_named
from mig_opt.operations.observe.sightings import Home, SeenGpu, SeenInstance, Sightings, gpu_name
from mig_opt.operations.observe.slurm import add_gpus, take_places
from mig_opt.texts import plural

_MOST_SHOWN = 4
_MOST_WORK = 20_000
"""Layouts that a search tries before it takes a matter for open."""

Layout = tuple[Placement, ...]


def assemble(seen: Sightings, gpu: GpuModel | None, *, assume_places: bool, name: str) -> FleetState:
    """Return the state that was seen.

    ``gpu`` is the kind of GPU that the state is for, by default all that were seen.

    Raises
    ------
    InputError
        If something is wrong with it.
    """
    there = seen.there
    if there is not None:
        add_gpus(seen, there)
    _check_uuids(seen)
    for held in seen.instances:
        on = None if held.home is None else seen.gpus.get(held.home)
        held.product = (on.product if on else "") or held.product or _product_of(seen, held.node)
    if gpu is not None:
        _name_the_unknown(seen, gpu)
    _leave_out(seen, chosen=gpu is not None)
    parts = {gpu: seen} if gpu is not None else _by_kind(seen)
    if gpu is not None:
        _leave_out_others(seen, gpu)
        if not seen.gpus and not seen.instances and not seen.findings.problems:
            seen.wrong("", _nothing(seen, f"{gpu.name} with MIG"))
    for model, part in parts.items():
        _find_profiles(part, part.instances, model)
        if there is not None:
            own = [held for held in there.instances if held.home in part.gpus]
            _find_profiles(part, own, model)
            part.findings.check()
            take_places(part, own, assume=assume_places)
    seen.findings.check()
    for model, part in parts.items():
        _add_homes(part, model)
    seen.findings.check()
    for model, part in parts.items():
        _place(part, model, assume_places=assume_places)
    seen.findings.check()
    seen.notes[:0] = seen.what_is_left_out()
    return _state(seen, parts, name)


def _product_of(seen: Sightings, node: str) -> str:
    """Return the product of the GPUs of a node, if they have the same."""
    found = {gpu.product for home, gpu in seen.gpus.items() if home[0] == node and gpu.mig is not False}
    return found.pop() if len(found) == 1 else ""


def _check_uuids(seen: Sightings) -> None:
    """Note GPUs that are seen twice, under two names of their node or two indices."""
    known: dict[str, SeenGpu] = {}
    for gpu in seen.gpus.values():
        other = known.setdefault(gpu.uuid, gpu) if gpu.uuid else gpu
        if other is not gpu:
            same = gpu_name(other.node, other.index)
            seen.wrong(gpu.where, f"{gpu_name(gpu.node, gpu.index)} has the UUID of {same}: it is the same GPU")


def _nothing(seen: Sightings, what: str) -> str:
    return "; ".join([f"tells of no {what}", *seen.what_is_left_out()])


def _name_the_unknown(seen: Sightings, model: GpuModel) -> None:
    """Take the only product that the catalogue does not know for the chosen GPU, unless another one is that."""
    products = {gpu.product for gpu in seen.gpus.values() if gpu.mig} | {held.product for held in seen.instances}
    products.discard("")
    unknown = [product for product in products if not kinds_of(product)]
    others = {gpu.product for gpu in seen.gpus.values() if gpu.mig is not False} | products
    if len(unknown) != 1 or any(model in kinds_of(product) for product in others):
        return
    for one in seen.every:
        one.product = model.name if one.product == unknown[0] else one.product
    seen.notes.append(f"{unknown[0]} is no GPU of the catalogue; it is taken for {model.name}, as --gpu says")


_UNKNOWN = (
    "no GPU of the catalogue; if nvidia-smi mig -lgip lists the profiles of one that is, name that with --gpu, else a "
    "file that mig-opt gpus import makes"
)


def _leave_out(seen: Sightings, *, chosen: bool) -> None:
    """Leave out GPUs that are not partitioned, or of which that is not known, and say so."""
    holding = {(held.node, held.gpu) for held in seen.instances}
    off: set[Home] = set()
    for home, gpu in list(seen.gpus.items()):
        if gpu.mig is False:
            off.add(home)
            reason = "MIG is off"
        elif gpu.product and not kinds_of(gpu.product):
            reason = f"{gpu.product} is {_UNKNOWN}" if gpu.mig or home in holding else "no GPU of the catalogue"
        elif gpu.mig is None and not holding & {home, (gpu.node, None)}:
            reason = "whether MIG is on is not told" + (seen.tells_modes and f"; {seen.tells_modes} tells it")
        else:
            continue
        seen.leave_out(reason, gpu_name(*home))
        del seen.gpus[home]
    unknown: dict[str, list[SeenInstance]] = defaultdict(list)
    for held in seen.instances:
        if held.home and held.home in off:
            seen.wrong(held.where, f"is an instance on a GPU on which MIG is off ({gpu_name(*held.home)})")
        elif held.product and not kinds_of(held.product):
            unknown[held.product].append(held)
    for product, instances in unknown.items():
        if chosen:
            _drop(seen, instances, f"{product} is {_UNKNOWN}")
        else:
            message = f"is on a GPU of the kind {product}, which is {_UNKNOWN}; to leave it out, name another one"
            seen.wrong(instances[0].where, message)


def _drop(seen: Sightings, instances: Iterable[SeenInstance], reason: str) -> None:
    """Leave out instances, and say of which nodes they are unless their GPUs are known."""
    dropped = list(instances)
    for node in dict.fromkeys(held.node for held in dropped if held.gpu is None):
        seen.leave_out(reason, node or "this machine", None)
    gone = set(map(id, dropped))
    seen.instances = [held for held in seen.instances if id(held) not in gone]


def _by_kind(seen: Sightings) -> dict[GpuModel, Sightings]:
    """Return what was seen of each kind of GPU; InputError if the kind of some is not told."""
    products = {one.product for one in seen.every} - {""}
    kinds_by_name = [kinds_of(product) for product in products] or [catalogue()]
    together = [gpu for gpu in kinds_by_name[0] if all(gpu in kinds for kinds in kinds_by_name)]
    fitting = _fitting(together, seen.instances)
    if len(products) < 2 or fitting:
        return {_kind(seen, together, fitting): seen}
    kinds: dict[str, GpuModel] = {}
    for product in sorted(products):
        own = [held for held in seen.instances if held.product == product]
        fitting = _fitting(kinds_of(product), own)
        if len(fitting) == 1:
            kinds[product] = fitting[0]
        elif fitting:
            message = f"the text does not tell whether {product} is {_may_be(fitting)}; name the only one with --gpu"
            seen.wrong("gpu", message)
        else:
            for model in kinds_of(product)[:1]:  # of an unknown one it is said already
                _find_profiles(seen, own, model)
    for one in seen.every:
        if not one.product:
            message = "is on a GPU whose kind is not told, and there are several; name the only one with --gpu"
            seen.wrong(one.where, message)
    seen.findings.check()
    found: dict[GpuModel, Sightings] = {}
    for model in dict.fromkeys(kinds.values()):
        own = [held for held in seen.instances if kinds[held.product] == model]
        gpus = {home: gpu for home, gpu in seen.gpus.items() if kinds[gpu.product] == model}
        found[model] = replace(seen, gpus=gpus, instances=own)
    return found


def _kind(seen: Sightings, kinds: Sequence[GpuModel], fitting: Sequence[GpuModel]) -> GpuModel:
    """Return the only kind of the GPUs that fits; InputError if there is none."""
    if len(fitting) == 1:
        return fitting[0]
    seen.findings.check()  # what is missing now may be what could not be read
    if not seen.gpus and not seen.instances:
        seen.wrong("", _nothing(seen, "GPU with MIG"))
    elif not fitting:
        # Told instance by instance, for the kind that has most of them.
        best = max(kinds, key=lambda gpu: sum(_profile(gpu, held) is not None for held in seen.instances))
        _find_profiles(seen, seen.instances, best)
    else:
        message = f"the text does not tell the kind of GPU, which may be {_may_be(fitting)}; give it with --gpu"
        seen.wrong("gpu", message)
    seen.findings.check()
    raise AssertionError


def _fitting(kinds: Iterable[GpuModel], instances: Sequence[SeenInstance]) -> list[GpuModel]:
    """Return the kinds that can have all of some instances."""
    return [gpu for gpu in kinds if all(_profile(gpu, held) for held in instances)]


def _may_be(kinds: Sequence[GpuModel]) -> str:
    return " or ".join(gpu.name for gpu in kinds[:_MOST_SHOWN])


def _leave_out_others(seen: Sightings, model: GpuModel) -> None:
    reason = f"not {model.name}"
    for home, gpu in list(seen.gpus.items()):
        if gpu.product and model not in kinds_of(gpu.product):
            seen.leave_out(reason, gpu_name(*home))
            del seen.gpus[home]
    _drop(seen, (held for held in seen.instances if held.product and model not in kinds_of(held.product)), reason)


def _profile(gpu: GpuModel, held: SeenInstance) -> Profile | None:
    return profile_named(gpu, held.profile, held.profile_id, held.size)


def _find_profiles(seen: Sightings, instances: Iterable[SeenInstance], model: GpuModel) -> None:
    """Let instances know their profiles; note those that the kind of GPU cannot have."""
    for held in instances:
        profile = _profile(model, held)
        if profile is None:
            number = f" with the number {held.profile_id}" if held.profile_id is not None else ""
            named = held.profile or number
            what = f"the profile {shown(held.profile)}{number}" if named else "an instance of that size"
            names = ", ".join(one.name for one in model.profiles)
            seen.wrong(held.where, f"{model.name} has not {what}; its profiles are {names}")
        elif held.slices is not None and held.slices != profile.memory_slices:
            message = f"{profile.name} has {plural(profile.memory_slices, 'memory slice')}, not {held.slices}"
            seen.wrong(held.where, message)
        elif held.start is not None and held.start not in profile.starts:
            legal = ", ".join(map(str, profile.starts))
            seen.wrong(held.where, f"{profile.name} cannot start at slice {held.start}; legal starts: {legal}")
        held.known = profile


def _counts(instances: Iterable[SeenInstance]) -> Counter[Profile]:
    return Counter(held.known for held in instances if held.known)


def _add_homes(seen: Sightings, model: GpuModel) -> None:
    """Add the GPUs that only instances tell of, and those of nodes of which only instances are counted."""
    counted: dict[str, list[SeenInstance]] = defaultdict(list)
    for held in seen.instances:
        if held.home is None:
            counted[held.node].append(held)
        elif held.home not in seen.gpus:
            seen.gpus[held.home] = SeenGpu(*held.home, held.where)
    for node, instances in counted.items():
        own = [gpu for home, gpu in seen.gpus.items() if home[0] == node]
        where, wanted = instances[0].where, _counts(instances)
        if any(gpu.mig is None for gpu in own) and not too_many(model, wanted, len(own) - 1):
            message = f"tells of {len(own)} GPUs of {_node(node)}, and not on which of them MIG is on"
            seen.wrong(where, f"{message}; {seen.tells_modes} tells it")
        elif not own:
            for index in range(fewest_gpus(model, wanted)):
                seen.gpus[node, index] = SeenGpu(node, index, where)
            seen.notes.append(f"{_node(node)} is taken to have the fewest GPUs on which its instances have room")


def _node(node: str) -> str:
    return f"node {node}" if node else "the node"


def _place(seen: Sightings, model: GpuModel, *, assume_places: bool) -> None:
    """Give a place to the instances that have none."""
    open_groups: dict[tuple[str, int | None], list[SeenInstance]] = defaultdict(list)
    fixed: dict[Home, list[Placement]] = defaultdict(list)
    for held in seen.instances:
        if held.home is None or held.start is None:
            open_groups[held.node, held.gpu].append(held)
        elif held.known:
            fixed[held.home].append(Placement(held.known, held.start))
    assumed = 0
    for (node, index), group in open_groups.items():
        gpus = sorted(home for home in seen.gpus if home[0] == node and index in (None, home[1]))
        wanted = _counts(group)
        ways = arrangements(model, wanted, [tuple(fixed[home]) for home in gpus])
        what = gpu_name(node, index) if index is not None else _node(node)
        if not ways:
            names = ", ".join(f"{n} x {p.name}" for p, n in wanted.items())
            seen.wrong(group[0].where, f"there is no room on {what} for all of its instances ({names})")
            continue
        certain = len(ways) == 1 and not _mixed(group)
        if not certain and not assume_places:
            message = "the places of its instances are not in the text, and there are several ways to place them"
            hint = "add the output of nvidia-smi mig -lgi, or take any places with --assume-places"
            seen.wrong(group[0].where, f"{what}: {message}; {hint}")
            continue
        assumed += 0 if certain else len(group)
        way = dict(zip(gpus, ways[0], strict=True))
        _put(group, way)
        for home, layout in way.items():
            fixed[home] += layout
    if assumed:
        seen.notes.append(f"the places of {plural(assumed, 'instance')} are assumed, they are not in the text")


def arrangements(
    gpu: GpuModel, wanted: Counter[Profile], fixed: Sequence[Layout], most: int = 2
) -> list[tuple[Layout, ...]]:
    """Return ways to place instances on GPUs that hold others already, up to a number of ways.

    GPUs that hold nothing are interchangeable. A search that becomes too long is given up: what was found till then may
    be returned twice over, so that nobody takes it for the only way.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100")
    >>> wanted = Counter([a100.profile("4g.20gb"), a100.profile("2g.10gb"), a100.profile("1g.5gb")])
    >>> [[list(map(str, layout)) for layout in way] for way in arrangements(a100, wanted, [()])]
    [[['4g.20gb@0', '2g.10gb@4', '1g.5gb@6']]]
    >>> len(arrangements(a100, Counter([a100.profile("2g.10gb")]), [()]))
    2
    """
    tried = 0

    def ways(left: Counter[Profile], before: tuple[Layout, ...]) -> Iterator[tuple[Layout, ...]]:
        """Yield the ways that begin with some layouts; of alike GPUs the layouts come in order."""
        nonlocal tried
        index = len(before)
        if index == len(fixed):
            if not left.total():
                yield before
            return
        kinds = tuple(sorted((profile for profile in left if left[profile]), key=lambda profile: profile.id))
        alike = index and not fixed[index] and not fixed[index - 1]
        for layout in _layouts(fixed[index], kinds):
            tried += 1
            if tried > _MOST_WORK:
                return
            counts = Counter(placement.profile for placement in layout)
            in_order = not alike or _order(layout) >= _order(before[-1])
            if in_order and counts <= left and not too_many(gpu, left - counts, len(fixed) - index - 1):
                yield from ways(left - counts, (*before, layout))

    found = list(itertools.islice(ways(wanted, ()), most))
    return found * most if tried > _MOST_WORK else found


def too_many(gpu: GpuModel, wanted: Counter[Profile], gpus: int) -> bool:
    """Return True if instances have more slices than a number of GPUs."""
    compute = sum(profile.compute_slices * number for profile, number in wanted.items())
    memory = sum(profile.memory_slices * number for profile, number in wanted.items())
    return compute > gpus * gpu.compute_slices or memory > gpus * gpu.memory_slices


def _order(layout: Layout) -> list[tuple[int, int]]:
    return [(placement.start, placement.profile.id) for placement in layout]


@cache
def _layouts(fixed: Layout, kinds: tuple[Profile, ...]) -> tuple[Layout, ...]:
    """Return the sets of placements of some profiles that fit beside fixed ones, those with most slices first."""
    placements = (Placement(profile, start) for profile in kinds for start in profile.starts)
    states = placed_states(placement for placement in placements if placement.fits_beside(fixed))
    found = (state for state in states if all(one.fits_beside({*fixed, *state} - {one}) for one in state))
    return tuple(sorted(found, key=lambda layout: -sum(placement.profile.memory_slices for placement in layout)))


def fewest_gpus(gpu: GpuModel, wanted: Counter[Profile]) -> int:
    """Return the fewest empty GPUs on which instances have room."""
    return next(gpus for gpus in itertools.count(1) if arrangements(gpu, wanted, [()] * gpus, 1))


def _mixed(group: list[SeenInstance]) -> bool:
    """Return True if instances of one profile differ in what runs on them, so that it matters which is where."""
    looks = {(held.known, held.name, held.owner, bool(held.idle)) for held in group}
    return len(looks) > len({held.known for held in group})


def _put(group: list[SeenInstance], way: dict[Home, Layout]) -> None:
    places: dict[Profile | None, list[tuple[Home, int]]] = defaultdict(list)
    for home, layout in way.items():
        for placement in layout:
            places[placement.profile].append((home, placement.start))
    several = {profile for profile, found in places.items() if len(found) > 1}
    for held in group:
        (held.node, held.gpu), held.start = places[held.known].pop(0)
        if held.known in several:
            held.uuid = ""  # which of them is where is not known


def _state(seen: Sightings, parts: Mapping[GpuModel, Sightings], name: str) -> FleetState:
    """Return the state; InputError if instances overlap."""
    kinds = {home: model for model, part in parts.items() for home in part.gpus}
    gpus = {home: gpu for part in parts.values() for home, gpu in part.gpus.items()}
    homes = sorted(kinds, key=lambda home: (natural_order(home[0]), home[1]))
    numbers: dict[Home | None, int] = {home: number for number, home in enumerate(homes)}
    every = (held for part in parts.values() for held in part.instances)
    found = sorted(every, key=lambda held: (numbers[held.home], held.start or 0))
    instances = tuple(
        HeldInstance(
            *(numbers[held.home], held.known.name if held.known else "", held.start or 0, held.name),
            owner=held.owner,
            idle=bool(held.idle),
            uuid=held.uuid,
        )
        for held in found
    )
    for model in parts:
        own = [one if kinds[homes[one.gpu]] == model else None for one in instances]
        for problem in instance_problems({model: range(len(homes))}, "instances", own):
            index = re.match(r"instances\[(\d+)\]", problem.path)
            message = with_places(problem.message, "instances", [held.where for held in found])
            seen.wrong(found[int(index[1])].where if index else "", message)
    seen.findings.check()
    nodes, indices = (tuple(each) for each in zip(*homes, strict=True))
    uuids, models = tuple(gpus[home].uuid for home in homes), tuple(kinds[home] for home in homes)
    state = FleetState(None, len(homes), instances, name, kinds=models, manager=seen.manager, budgets=seen.budgets)
    indices = () if indices == tuple(device.index for device in devices_of(nodes, (), ())) else indices
    return replace(state, nodes=nodes if any(nodes) else (), uuids=uuids if any(uuids) else (), indices=indices)
