"""Deployments in the words of Kubernetes: extended resources of NVIDIA's device plugin (strategy ``mixed``)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mig_opt.gpu.model import Profile
from mig_opt.rollout.devices import devices_of, hosts_of
from mig_opt.rollout.layouts import creation_order, layouts_of
from mig_opt.serving.deployment import Deployment


def resource_name(profile: Profile) -> str:
    """Return the name of the device plugin for an instance of a profile.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100-80GB")
    >>> resource_name(a100.profile("3g.40gb")), resource_name(a100.profile("1g.10gb+me"))
    ('nvidia.com/mig-3g.40gb', 'nvidia.com/mig-1g.10gb.me')
    """
    return f"nvidia.com/mig-{profile.name.replace('+', '.')}"


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """Equal replicas of a service, each with one instance.

    Attributes
    ----------
    service : str
        Name of the service.
    gpu : str
        Kind of GPU. Instances of several kinds can have the same resource name.
    resource : str
        Resource of which each replica needs one.
    replicas : int
        How many.
    batch, processes : int
        How each replica fills its instance.
    """

    service: str
    gpu: str
    resource: str
    replicas: int
    batch: int
    processes: int


@dataclass(frozen=True, slots=True)
class KubernetesResources:
    """Resources that a deployment offers and asks for; ``str()`` of it is JSON.

    Attributes
    ----------
    hosts : mapping of str to mapping of str to int
        For each machine how many it has of each resource; this machine is under ``""``.
    requests : tuple of ResourceRequest
        Service by service.
    remarks : tuple of str
        Further conditions.
    """

    hosts: Mapping[str, Mapping[str, int]]
    requests: tuple[ResourceRequest, ...]
    remarks: tuple[str, ...]

    @property
    def total(self) -> dict[str, int]:
        """The number of each resource on all machines together."""
        total: Counter[str] = Counter()
        for counts in self.hosts.values():
            total.update(counts)
        return dict(total)

    def __str__(self) -> str:
        services = [
            {
                "service": request.service,
                "replicas": request.replicas,
                "batch": request.batch,
                "processes": request.processes,
                "gpu": request.gpu,
                "resources": {"limits": {request.resource: 1}},
            }
            for request in self.requests
        ]
        nodes = [{"node": host, "resources": dict(counts)} for host, counts in self.hosts.items()]
        document = {"nodes": nodes, "services": services, "remarks": list(self.remarks)}
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def kubernetes_resources(deployment: Deployment, *, devices: Sequence[str] | None = None) -> KubernetesResources:
    """Return the resources that a deployment makes, and how many of which each service needs.

    Parameters
    ----------
    deployment : Deployment
        The deployment to carry out.
    devices : sequence of str, optional
        As for :func:`mig_opt.mig_parted_config`.

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
    >>> found.total
    {'nvidia.com/mig-3g.40gb': 1}
    >>> found.requests[0].replicas
    1
    """
    layouts = layouts_of(deployment)
    hosts: dict[str, dict[str, int]] = {}
    for host, gpus in hosts_of(devices_of(len(layouts), devices)).items():
        profiles = Counter(placement.profile for gpu in gpus for placement in layouts[gpu])
        hosts[host] = {resource_name(profile): profiles[profile] for profile in sorted(profiles, key=creation_order)}
    kinds: dict[str, set[str]] = defaultdict(set)
    wanted: Counter[tuple[str, str, str, int, int]] = Counter()
    for segment in sorted(deployment.segments, key=lambda segment: segment.service):
        model = deployment.model(segment.gpu)
        resource = resource_name(model.profile(segment.profile))
        kinds[resource].add(model.name)
        wanted[segment.service, model.name, resource, segment.batch, segment.processes] += 1
    requests = tuple(
        ResourceRequest(service, kind, resource, replicas, batch, processes)
        for (service, kind, resource, batch, processes), replicas in wanted.items()
    )
    remarks = ["The device plugin has to run with the strategy mixed: each profile is a resource of its own then."]
    remarks += [
        f"{resource} is on GPUs of several kinds ({', '.join(sorted(names))}); choose the kind by a node selector."
        for resource, names in kinds.items()
        if len(names) > 1
    ]
    return KubernetesResources(hosts, requests, tuple(remarks))
