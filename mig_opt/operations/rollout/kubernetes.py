"""Deployments for Kubernetes: configurations of ``nvidia-mig-parted``, and resources of NVIDIA's device plugin.

A configuration is YAML of a fixed form, as the GPU operator reads it too: each string in it is a profile of the
catalogue, a checked name, or in a comment. Resources are those of the device plugin's strategy ``mixed``.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from mig_opt._version import __version__
from mig_opt.errors import Problem, raise_any
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.devices import Device, gpu_names
from mig_opt.gpu.model import WITHOUT_MIG, GpuModel, Placement, Profile
from mig_opt.operations.rollout.layouts import addresses, creation_order, hosts_of, in_creation_order, layouts_of
from mig_opt.operations.rollout.shell import comment
from mig_opt.serving.deployment import Deployment

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,30}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class MigPartedConfig:
    """A configuration of ``nvidia-mig-parted``; ``str()`` of it is the YAML.

    Attributes
    ----------
    configs : mapping of str to tuple of dict
        The named configurations. Machines whose GPUs are cut alike share one. Each entry is about GPUs that are cut
        alike, as the YAML has it: their indices on the machine (``devices``), ``mig-enabled``, and how many instances
        of each profile (``mig-devices``).
    hosts : mapping of str to str
        The name of the configuration for each machine; that of this machine is under ``""``.
    remarks : tuple of str
        Everything that the format cannot say about this deployment, above all where it leaves the layout open.
    """

    configs: Mapping[str, tuple[Mapping[str, Any], ...]]
    hosts: Mapping[str, str]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"# Configuration of nvidia-mig-parted, written by mig-opt {__version__}."]
        lines += map(comment, self.remarks)
        if set(self.hosts) != {""}:
            lines += ["#", "# Machine: configuration"]
            lines += [comment(f"{host or 'this machine'}: {name}") for host, name in self.hosts.items()]
        lines += ["version: v1", "mig-configs:"]
        for name, entries in self.configs.items():
            lines.append(f"  {json.dumps(name)}:")
            for entry in entries:
                instances = entry["mig-devices"]
                lines.append(f"    - devices: {entry['devices']}")
                lines.append(f"      mig-enabled: {json.dumps(entry['mig-enabled'])}")
                lines.append("      mig-devices:" if instances else "      mig-devices: {}")
                lines += [f'        "{profile}": {count}' for profile, count in instances.items()]
        return "\n".join(lines) + "\n"


def mig_parted_config(
    deployment: Deployment, *, devices: Sequence[str] | None = None, name: str = "mig-opt"
) -> MigPartedConfig:
    r"""Return a deployment as a configuration (version ``v1``) of ``nvidia-mig-parted``.

    The format counts profiles and has no start slices. The remarks name each GPU of which several placed states have
    the same counts, and each where creation, larger profiles first, may end without room for the last ones: there the
    script of :func:`mig_opt.operations.rollout.nvidia_smi.deployment_script` gives each instance its place. Segments
    run equally well in any placed state that has an instance of their profile for each of them, but plans for later
    changes start from the deployment.

    Parameters
    ----------
    deployment : Deployment
        The deployment to carry out. GPUs without segments get MIG mode and no instance.
    devices : sequence of str, optional
        For each GPU its index, after ``host/`` if there are several machines: ``["node-1/0", "node-1/1", "node-2/0"]``.
        By default they are the deployment's ``devices``; without them GPU 3 of it is GPU 3 of the only machine.
    name : str
        What names of configurations begin with. The kind of GPU follows, then a number if there are several.

    Returns
    -------
    MigPartedConfig
        ``str()`` of it is the text of the file.

    Raises
    ------
    InputError
        If segments cannot exist together, or an argument is wrong.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Segment
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> config = mig_parted_config(Deployment(("A100-80GB",), (segment,)))
    >>> print(*str(config).splitlines()[-6:], sep="\n")
    mig-configs:
      "mig-opt-a100-80gb":
        - devices: [0]
          mig-enabled: true
          mig-devices:
            "3g.40gb": 1
    >>> print(config.remarks[1])
    GPU 0 (1 x 3g.40gb): 2 layouts have these profiles, the deployment has 3g.40gb@4.
    """
    layouts = layouts_of(deployment)
    places = addresses(len(deployment.gpus), devices, deployment.devices, by_index=True)
    wrong = ((gpu, str(device)) for gpu, device in enumerate(places) if not device.identifier.isdecimal())
    wanted = "must be an index here, as in node-1/0, is"
    problems = [Problem(f"devices[{gpu}]", f"{wanted} {device!r}") for gpu, device in wrong]
    if not _NAME.fullmatch(name):
        wanted = "at most 32 letters, digits, dots, underscores and hyphens, with a letter or digit at both ends"
        problems.append(Problem("name", f"must be {wanted}, is {name!r:.60}"))
    raise_any(problems)

    named: list[tuple[str, tuple[Mapping[str, Any], ...]]] = []
    numbers: dict[str, int] = {}
    for host, gpus in hosts_of(places).items():
        # The name is the value of a label of the node, with a number behind it.
        labels = [*labels_of((deployment.model(gpu).name.removesuffix(WITHOUT_MIG) for gpu in gpus), 24).values()]
        base = f"{name}-{labels[0] if len(labels) == 1 else 'mixed'}"
        alike: dict[tuple[bool, tuple[tuple[str, int], ...]], list[int]] = {}
        for gpu in gpus:
            mig = deployment.model(gpu).mig
            counts = tuple(profile_counts(layouts[gpu]).items()) if mig else ()
            alike.setdefault((mig, counts), []).append(int(places[gpu].identifier))
        config = (
            base,
            tuple(
                {"devices": sorted(own), "mig-enabled": mig, "mig-devices": dict(counts)}
                for (mig, counts), own in alike.items()
            ),
        )
        if config not in named:
            named.append(config)
        numbers[host] = named.index(config)
    bases = [base for base, _ in named]
    names = []
    for at, base in enumerate(bases):
        number = bases[: at + 1].count(base)
        numbered = f"{base}-{number}" if f"{base}-{number}" not in bases else f"{base}--{number}"
        names.append(numbered if bases.count(base) > 1 else base)
    configs = {full: entries for full, (_, entries) in zip(names, named, strict=True)}
    hosts = {host: names[number] for host, number in numbers.items()}
    known = () if devices is not None else deployment.devices
    return MigPartedConfig(configs, hosts, tuple(_remarks(deployment, layouts, known)))


def _remarks(deployment: Deployment, layouts: Sequence[Sequence[Placement]], known: Sequence[Device]) -> Iterator[str]:
    """Yield a remark about everything that the counts leave open, for all GPUs of the same layout together."""
    alike: dict[tuple[str, tuple[Placement, ...]], list[int]] = {}
    for gpu, layout in enumerate(layouts):
        alike.setdefault((get_gpu(deployment.gpus[gpu]).name, tuple(layout)), []).append(gpu)
    found = []
    for (kind, layout), gpus in alike.items():
        model, counts = get_gpu(kind), profile_counts(layout)
        several = layouts_by_counts(model)[frozenset(counts.items())]
        stuck = may_get_stuck(tuple(placement.profile for placement in in_creation_order(layout)))
        profiles = " + ".join(f"{count} x {name}" for name, count in counts.items())
        where = f"GPU {gpu_names(known, gpus)} ({profiles}):"
        if several > 1:
            shown = " + ".join(map(str, layout))
            found.append(f"{where} {several} layouts have these profiles, the deployment has {shown}.")
        if stuck:
            found.append(f"{where} creation may get stuck, since some places for one instance leave none for another.")
    if found:
        script = "only the script of nvidia-smi commands gives the layout of the deployment"
        yield f"Counts of profiles do not say where instances are. Where they leave that open, {script}:"
        yield from found


def profile_counts(layout: Sequence[Placement]) -> dict[str, int]:
    """Return how many of each profile there are, larger ones first."""
    counts = Counter(placement.profile for placement in layout)
    return {profile.name: counts[profile] for profile in sorted(counts, key=creation_order)}


@cache
def layouts_by_counts(gpu: GpuModel) -> Counter[frozenset[tuple[str, int]]]:
    """Return how many placed states of a GPU have the same numbers of instances of each profile.

    With more than one, a tool that is told profiles without start slices may choose another one than planned.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> found = layouts_by_counts(get_gpu("A100"))
    >>> found[frozenset({("4g.20gb", 1), ("2g.10gb", 1), ("1g.5gb", 1)})]  # 4g@0, so 2g@4 and 1g@6
    1
    >>> found[frozenset({("3g.20gb", 1), ("2g.10gb", 1), ("1g.5gb", 1)})]
    5
    """
    states = gpu.placed_states("all")
    return Counter(frozenset(Counter(placement.profile.name for placement in state).items()) for state in states)


@cache
def may_get_stuck(rest: tuple[Profile, ...], held: int = 0) -> bool:
    """Return True if creation of instances of profiles, in this order, can end before the last one.

    That is so if a start slice that is legal and free for one of them leaves no room for the others. ``held`` has a bit
    for each memory slice that is taken.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> two, three, four = map(get_gpu("A100").profile, ("2g.10gb", "3g.20gb", "4g.20gb"))
    >>> may_get_stuck((three, two, two)), may_get_stuck((four, three))  # 3g@0 leaves one start for 2g
    (True, False)
    """
    if not rest:
        return False
    profile = rest[0]
    masks = [((1 << profile.memory_slices) - 1) << start for start in profile.starts]
    free = [mask for mask in masks if not mask & held]
    return not free or any(may_get_stuck(rest[1:], held | mask) for mask in free)


def labels_of(texts: Iterable[str], most: int = 63) -> dict[str, str]:
    """Return texts as values of labels: those too long, or alike there, are told apart by a hash at the end."""
    labels = {text: re.sub("[^a-z0-9]+", "-", text.lower()).strip("-") for text in texts}
    uses, hashes = Counter(labels.values()), {text: sha256(text.encode()).hexdigest()[:8] for text in labels}
    plain = {text for text, label in labels.items() if uses[label] == 1 and 0 < len(label) <= most}
    return {text: own if text in plain else f"{own[: most - 9]}-{hashes[text]}" for text, own in labels.items()}


def resource_name(profile: Profile) -> str:
    """Return the name of the device plugin for an instance of a profile, or for a whole GPU where MIG is off.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100-80GB")
    >>> resource_name(a100.profile("3g.40gb")), resource_name(a100.profile("1g.10gb+me"))
    ('nvidia.com/mig-3g.40gb', 'nvidia.com/mig-1g.10gb.me')
    """
    if profile.gpu.endswith(WITHOUT_MIG):
        return "nvidia.com/gpu"
    return f"nvidia.com/mig-{profile.name.replace('+', '.')}"


@dataclass(frozen=True, slots=True)
class KubernetesResources:
    """Resources that a deployment offers and asks for; ``str()`` of it is JSON.

    Attributes
    ----------
    hosts : mapping of str to mapping of str to int
        For each machine how many it has of each resource; this machine is under ``""``.
    services : tuple of dict
        Service by service its equal replicas, as the JSON has them: ``service``, ``replicas``, how each fills its
        instance (``batch``, ``processes``), the kind of ``gpu``, as instances of several kinds can have the same
        resource name, and the resource of which each replica needs one (``resources``).
    remarks : tuple of str
        Further conditions.
    """

    hosts: Mapping[str, Mapping[str, int]]
    services: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        nodes = [{"node": host, "resources": counts} for host, counts in self.hosts.items()]
        document = {"nodes": nodes, "services": self.services, "remarks": self.remarks}
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def kubernetes_resources(deployment: Deployment, *, devices: Sequence[str] | None = None) -> KubernetesResources:
    """Return the resources that a deployment makes, and how many of which each service needs.

    Parameters
    ----------
    deployment : Deployment
        The deployment to carry out.
    devices : sequence of str, optional
        As for :func:`mig_opt.operations.rollout.kubernetes.mig_parted_config`.

    Returns
    -------
    KubernetesResources
        ``str()`` of it is the text of the file.

    Raises
    ------
    InputError
        If segments cannot exist together, or an argument is wrong.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Segment
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> found = kubernetes_resources(Deployment(("A100-80GB",), (segment,)))
    >>> found.hosts
    {'': {'nvidia.com/mig-3g.40gb': 1}}
    >>> found.services[0]["replicas"]
    1
    """
    layouts = layouts_of(deployment)
    hosts: dict[str, dict[str, int]] = {}
    for host, gpus in hosts_of(addresses(len(layouts), devices, deployment.devices, by_index=True)).items():
        profiles = Counter(placement.profile for gpu in gpus for placement in layouts[gpu])
        hosts[host] = {resource_name(profile): profiles[profile] for profile in sorted(profiles, key=creation_order)}
    kinds: dict[str, set[str]] = defaultdict(set)
    wanted: Counter[tuple[str, int, int, str, str]] = Counter()
    for segment in sorted(deployment.segments, key=lambda segment: segment.service):
        model = deployment.model(segment.gpu)
        resource = resource_name(model.profile(segment.profile))
        kinds[resource].add(model.name)
        wanted[segment.service, segment.batch, segment.processes, model.name, resource] += 1
    keys = ("service", "replicas", "batch", "processes", "gpu", "resources")
    services = tuple(
        dict(zip(keys, (service, replicas, *how, {"limits": {resource: 1}}), strict=True))
        for (service, *how, resource), replicas in wanted.items()
    )
    remarks = ["The device plugin has to run with the strategy mixed: each profile is a resource of its own then."]
    several = ((resource, ", ".join(sorted(names))) for resource, names in kinds.items() if len(names) > 1)
    remarks += [
        f"{one} is on GPUs of several kinds ({names}); choose the kind by a node selector." for one, names in several
    ]
    return KubernetesResources(hosts, services, tuple(remarks))
