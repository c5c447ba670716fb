"""Deployments as manifests of Kubernetes: a Deployment of Tritons for each kind of segment, a Service for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.operations.rollout.kubernetes import kubernetes_resources, resource_name
from mig_opt.operations.rollout.servers import FIRST_PORT, InferenceServer, servers_of
from mig_opt.operations.rollout.shell import remarks
from mig_opt.operations.rollout.triton import CONFIG, model_configs
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.simulation.serving.requests import Batching

IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
"""Image of the Tritons."""
_PORTS = {"http": FIRST_PORT, "grpc": FIRST_PORT + 1, "metrics": FIRST_PORT + 2}
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?")
"""Names of services that a Service and, with more behind them, pods can have."""
_MISSING = 'needs the extra yaml; install it with: pip install "mig-opt[yaml]"'
_DRAIN_S, _GRACE_S = 10, 330
"""Seconds before a Triton is told to end, in which its address is forgotten; seconds that it may take to end then."""


def kubernetes_manifests(
    deployment: Deployment,
    demand: Demand,
    *,
    models: str | Path | None = None,
    batching: Batching | None = None,
    image: str = IMAGE,
) -> str:
    """Return manifests that serve a deployment on Kubernetes with NVIDIA's device plugin (strategy ``mixed``).

    Segments of a service with the same profile, batch size and processes are one Deployment, whose pods have an
    instance each; its model configuration is a ConfigMap. Models come from the claim ``models`` of a volume. Before a
    pod ends it gets no further requests, and answers those that it has.

    Parameters
    ----------
    deployment, demand, models, batching
        As for :func:`mig_opt.operations.rollout.triton.triton_files`.
    image : str
        Image of the containers.

    Returns
    -------
    str
        YAML of several documents, with remarks as comments.

    Raises
    ------
    InputError
        If PyYAML is not installed, a name cannot be that of a Service, or an argument is wrong.

    Examples
    --------
    >>> from mig_opt import deploy, load
    >>> demand = load("parvagpu-s1")
    >>> text = kubernetes_manifests(deploy(demand).deployment, demand)
    >>> text.count("kind: Service"), "nvidia.com/mig-1g.10gb: 1" in text
    (6, True)
    """
    try:
        import yaml
    except ImportError:
        raise InputError([Problem("", _MISSING)]) from None
    servers = servers_of(demand, deployment, batching=batching)
    wanted = "must be at most 32 small letters, digits and hyphens, a letter first and no hyphen last, for a Service"
    problems = [
        Problem(f"services[{index}].name", f"{wanted}, is {service.name!r}")
        for index, service in enumerate(demand.services)
        if not _LABEL.fullmatch(service.name)
    ]
    if not re.fullmatch(r"\S+", image):
        problems.append(Problem("image", f"must be the name of an image, without blanks, is {image!r:.80}"))
    raise_any(problems)
    configs = model_configs(servers, None if models is None else Path(models))
    alike: dict[str, list[InferenceServer]] = {}
    for server in servers:
        alike.setdefault(_name(deployment, server), []).append(server)
    documents: list[dict[str, Any]] = []
    for name, own in alike.items():
        documents += [_config_map(name, own[0], configs[own[0].name]), _deployment(name, deployment, own, image)]
    documents += [_service(service.name) for service in demand.services]
    first = remarks("Tritons of a deployment.", "", "Usage: kubectl apply -f FILE", *_remarks(deployment, servers))

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no annotations
        def ignore_aliases(self, _: object) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return "\n".join([*first, yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, width=1000)])


def _remarks(deployment: Deployment, servers: Sequence[InferenceServer]) -> Iterator[str]:
    yield "Models are in the volume of the claim models: a model repository."
    yield from kubernetes_resources(deployment).remarks
    for service in dict.fromkeys(server.segment.service for server in servers):
        weights = {server.weight for server in servers if server.segment.service == service}
        if len(weights) > 1:
            yield (
                f"{service} has pods of unequal throughput, among which a Service chooses at random: simulate it with "
                "--router uniform, or have a proxy with weights before them."
            )


def _name(deployment: Deployment, server: InferenceServer) -> str:
    """Return the name of the Deployment of a server."""
    segment = server.segment
    kind = f"{deployment.model(segment.gpu).name}-{segment.profile}".lower()
    return f"{segment.service}-{re.sub('[^a-z0-9]+', '-', kind)}-{segment.batch}x{segment.processes}"


def _labels(service: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": service, "app.kubernetes.io/managed-by": "mig-opt"}


def _config_map(name: str, server: InferenceServer, config: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": _labels(server.segment.service)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {CONFIG: config}}


def _deployment(name: str, deployment: Deployment, servers: Sequence[InferenceServer], image: str) -> dict[str, Any]:
    segment, model = servers[0].segment, shlex.quote(servers[0].model)
    # A label has at most 63 characters.
    labels = {**_labels(segment.service), "mig-opt/segments": name.removeprefix(f"{segment.service}-")}
    resource = resource_name(deployment.model(segment.gpu).profile(segment.profile))
    # The model is linked beside its configuration, which comes from the plan.
    command = (
        f"mkdir -p /repository/{model} && ln -sfn /models/{model}/* /repository/{model}/ && "
        f"ln -sfn /config/{CONFIG} /repository/{model}/ && exec tritonserver --model-repository=/repository"
    )

    def probe(path: str, period: int, failures: int) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": "http"}, "periodSeconds": period, "failureThreshold": failures}

    container = {
        "name": "triton",
        "image": image,
        "command": ["bash", "-c", command],
        "ports": [{"name": name, "containerPort": port} for name, port in _PORTS.items()],
        "resources": {"limits": {resource: 1}},
        "startupProbe": probe("/v2/health/ready", 2, 150),
        "readinessProbe": probe("/v2/health/ready", 1, 2),
        "livenessProbe": probe("/v2/health/live", 10, 3),
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(_DRAIN_S)]}}},
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "config", "mountPath": "/config", "readOnly": True},
        ],
    }
    volumes = [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
        {"name": "config", "configMap": {"name": name}},
    ]
    pod = {"terminationGracePeriodSeconds": _GRACE_S, "containers": [container], "volumes": volumes}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": len(servers),
            "selector": {"matchLabels": labels},
            # There is no instance for one more.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _service(service: str) -> dict[str, Any]:
    ports = [{"name": name, "port": port, "targetPort": name} for name, port in _PORTS.items()]
    labels = _labels(service)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "labels": labels},
        "spec": {"selector": {"app.kubernetes.io/name": service}, "ports": ports},
    }
