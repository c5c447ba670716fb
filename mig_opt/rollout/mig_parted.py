"""Deployments as configurations of ``nvidia-mig-parted``, which the GPU operator of Kubernetes uses as well.

The text is YAML of a fixed form: each string in it is a profile of the catalogue, a checked name, or in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mig_opt._version import __version__
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import Placement
from mig_opt.rollout.devices import Device, devices_of, hosts_of
from mig_opt.rollout.layouts import count_layouts, layouts_of, may_get_stuck, profile_counts
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import number_ranges

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,30}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class MigPartedEntry:
    """Instances of some GPUs of a machine that are cut alike.

    Attributes
    ----------
    devices : tuple of int
        Indices of the GPUs on their machine.
    mig_devices : mapping of str to int
        How many instances of each profile.
    """

    devices: tuple[int, ...]
    mig_devices: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MigPartedConfig:
    """A configuration of ``nvidia-mig-parted``; ``str()`` of it is the YAML.

    Attributes
    ----------
    configs : mapping of str to tuple of MigPartedEntry
        The named configurations. Machines whose GPUs are cut alike share one.
    hosts : mapping of str to str
        The name of the configuration for each machine; that of this machine is under ``""``.
    remarks : tuple of str
        Everything that the format cannot say about this deployment, above all where it leaves the layout open.
    """

    configs: Mapping[str, tuple[MigPartedEntry, ...]]
    hosts: Mapping[str, str]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"# Configuration of nvidia-mig-parted, written by mig-opt {__version__}."]
        lines += [f"# {remark}" for remark in self.remarks]
        if set(self.hosts) != {""}:
            lines += ["#", "# Machine: configuration"]
            lines += [f"# {host or 'this machine'}: {name}" for host, name in self.hosts.items()]
        lines += ["version: v1", "mig-configs:"]
        for name, entries in self.configs.items():
            lines.append(f'  "{name}":')
            for entry in entries:
                lines += [f"    - devices: [{', '.join(map(str, entry.devices))}]", "      mig-enabled: true"]
                if entry.mig_devices:
                    lines.append("      mig-devices:")
                    lines += [f'        "{profile}": {count}' for profile, count in entry.mig_devices.items()]
                else:
                    lines.append("      mig-devices: {}")
        return "\n".join(lines) + "\n"


def mig_parted_config(
    deployment: Deployment, *, devices: Sequence[str] | None = None, name: str = "mig-opt"
) -> MigPartedConfig:
    r"""Return a deployment as a configuration (version ``v1``) of ``nvidia-mig-parted``.

    The format counts profiles and has no start slices. The remarks name each GPU of which several placed states have
    the same counts, and each where creation, larger profiles first, may end without room for the last ones: there the
    script of :func:`mig_opt.deployment_script` gives each instance its place. Segments run equally well in any placed
    state that has an instance of their profile for each of them, but plans for later changes start from the deployment.

    Parameters
    ----------
    deployment : Deployment
        The deployment to carry out. GPUs without segments get MIG mode and no instance.
    devices : sequence of str, optional
        For each GPU its index, after ``host/`` if there are several machines: ``["node-1/0", "node-1/1", "node-2/0"]``.
        By default GPU 3 of the deployment is GPU 3 of the only machine.
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
    places = devices_of(len(deployment.gpus), devices)
    problems = [
        Problem(f"devices[{gpu}]", f"must be an index here, as in node-1/0, is {str(device)!r}")
        for gpu, device in enumerate(places)
        if device.index is None
    ]
    if not _NAME.fullmatch(name):
        wanted = "at most 32 letters, digits, dots, underscores and hyphens, with a letter or digit at both ends"
        problems.append(Problem("name", f"must be {wanted}, is {name!r:.60}"))
    if problems:
        raise InputError(problems)

    named: list[tuple[str, tuple[MigPartedEntry, ...]]] = []
    numbers: dict[str, int] = {}
    for host, gpus in hosts_of(places).items():
        kinds = {get_gpu(deployment.gpus[gpu]).name.lower() for gpu in gpus}
        base = f"{name}-{kinds.pop() if len(kinds) == 1 else 'mixed'}"
        config = base, tuple(_entries(gpus, places, layouts))
        if config not in named:
            named.append(config)
        numbers[host] = named.index(config)
    bases = [base for base, _ in named]
    names = [
        base if bases.count(base) == 1 else f"{base}-{bases[: number + 1].count(base)}"
        for number, base in enumerate(bases)
    ]
    configs = {full: entries for full, (_, entries) in zip(names, named, strict=True)}
    hosts = {host: names[number] for host, number in numbers.items()}
    return MigPartedConfig(configs, hosts, tuple(_remarks(deployment, layouts)))


def _entries(
    gpus: Sequence[int], places: Sequence[Device], layouts: Sequence[Sequence[Placement]]
) -> Iterator[MigPartedEntry]:
    """Yield an entry for all GPUs of a machine that are cut alike."""
    alike: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for gpu in gpus:
        index = places[gpu].index
        assert index is not None  # checked before
        alike.setdefault(tuple(profile_counts(layouts[gpu]).items()), []).append(index)
    for counts, indices in alike.items():
        yield MigPartedEntry(tuple(sorted(indices)), dict(counts))


def _remarks(deployment: Deployment, layouts: Sequence[Sequence[Placement]]) -> Iterator[str]:
    """Yield a remark about everything that the counts leave open, for all GPUs of the same layout together."""
    alike: dict[tuple[str, tuple[Placement, ...]], list[int]] = {}
    for gpu, layout in enumerate(layouts):
        alike.setdefault((get_gpu(deployment.gpus[gpu]).name, tuple(layout)), []).append(gpu)
    found = []
    for (kind, layout), gpus in alike.items():
        model, counts = get_gpu(kind), profile_counts(layout)
        several, stuck = count_layouts(model, counts), may_get_stuck(model, counts)
        profiles = " + ".join(f"{count} x {name}" for name, count in counts.items())
        where = f"GPU {number_ranges(gpus)} ({profiles}):"
        if several > 1:
            shown = " + ".join(map(str, layout))
            found.append(f"{where} {several} layouts have these profiles, the deployment has {shown}.")
        if stuck:
            found.append(f"{where} creation may get stuck, since some places for one instance leave none for another.")
    if found:
        yield (
            "Counts of profiles do not say where instances are. Where they leave that open, only the script of "
            "nvidia-smi commands gives the layout of the deployment:"
        )
        yield from found
