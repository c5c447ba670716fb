"""Deployments on Triton Inference Servers: on machines or in Kubernetes, with a model repository for each segment.

On machines a script starts the server of each segment. Scripts of ``nvidia-smi`` commands make the instances, and call
hooks for the rest (:mod:`mig_opt.operations.rollout.nvidia_smi`, :mod:`mig_opt.operations.rollout.changes`); here are
hooks that start and stop Tritons, and tell HAProxy. In Kubernetes there is a Deployment of Tritons for each kind of
segment, and a Service for each service.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem, nearest, raise_any
from mig_opt.files.documents import read_text
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.kubernetes import kubernetes_resources, labels_of, resource_name
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.operations.rollout.servers import FIRST_PORT, InferenceServer, servers_of
from mig_opt.operations.rollout.shell import batch_and_processes, comment, functions_of, head, remarks
from mig_opt.serving.change_plan import ChangePlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.simulation.serving.requests import Batching

CONFIG = "config.pbtxt"
"""File of a model in a repository of Triton."""

_MISSING = 'needs the extra {0}; install it with: pip install "mig-opt[{0}]"'
_USAGE = (
    "Usage: CUDA_VISIBLE_DEVICES=UUID bash SCRIPT start, or stop; admit and drain are for HAProxy, if it runs. The",
    "instance may be given as that, and MPS as CUDA_MPS_PIPE_DIRECTORY: hooks.sh does both.",
)

IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
"""Image of the Tritons."""
_PORTS = {"http": FIRST_PORT, "grpc": FIRST_PORT + 1, "metrics": FIRST_PORT + 2}
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?")
"""Names of services that a Service and, with more behind them, pods can have."""
_DRAIN_S, _GRACE_S = 10, 330
"""Seconds before a Triton is told to end, in which its address is forgotten; seconds that it may take to end then."""


def triton_files(
    deployment: Deployment,
    demand: Demand,
    *,
    models: str | Path | None = None,
    change: ChangePlan | None = None,
    batching: Batching | None = None,
    port: int = FIRST_PORT,
    devices: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return the files with which a deployment is served by Triton Inference Servers, one for each segment.

    Each has a model repository of its own, whose ``config.pbtxt`` is that of the user with the batch size, the number
    of processes (``instance_group``) and the delay (``dynamic_batching``) of the plan put over it; the other files of
    the model are linked when the server starts. A model that batches continuously keeps its own batching: only the
    number of processes is put over it.

    Parameters
    ----------
    deployment : Deployment
        What is to be served.
    demand : Demand
        The services.
    models : path-like, optional
        Model repository of the user. Without one, configurations have only what the plan says, and Triton has to
        complete them; the variable MODELS names the repository then.
    change : ChangePlan, optional
        Steps from what is running: there is a script for them, too, and it is the first.
    batching, port, devices
        As for :func:`mig_opt.operations.rollout.servers.servers_of`.

    Returns
    -------
    dict of str to str
        Text of each file by its path in the folder: ``deploy.sh`` makes all instances and starts all servers,
        ``change.sh`` does the steps of a change; both are called with ``hooks.sh``.

    Raises
    ------
    InputError
        If a model is not in the repository or cannot be served in this way, or an argument is wrong.

    Examples
    --------
    >>> from mig_opt import deploy, load
    >>> demand = load("parvagpu-s1")
    >>> files = triton_files(deploy(demand).deployment, demand)
    >>> print(next(text for name, text in files.items() if name.endswith("bert/config.pbtxt")).rstrip())
    name: "bert"
    max_batch_size: 128
    instance_group {
      count: 3
    }
    dynamic_batching {
      preferred_batch_size: 128
    }
    """
    servers = servers_of(demand, deployment, batching=batching, port=port, devices=devices)
    configs = model_configs(servers, None if models is None else Path(models))
    repository = "" if models is None else str(Path(models).resolve())
    files = {} if change is None else {"change.sh": change_script(change, devices=devices)}
    files["deploy.sh"] = deployment_script(deployment, devices=devices)
    files |= {"hooks.sh": functions_of("triton_hooks.sh")[0], "triton.sh": functions_of("triton.sh")[0]}
    for server in servers:
        files[f"servers/{server.name}.sh"] = _script(server, repository)
        files[f"models/{server.name}/{server.model}/{CONFIG}"] = configs[server.name]
    return files


def _script(server: InferenceServer, repository: str) -> str:
    """Return the script of a server: its settings, then the functions that all have."""
    segment = server.segment
    where = f"{segment.profile} at {segment.start} of GPU {segment.gpu}"
    settings = {
        "NAME": server.name,
        "SERVICE": segment.service,
        "MODEL": server.model,
        "ADDRESS": server.host or "127.0.0.1",
        "LISTEN": "0.0.0.0" if server.host else "127.0.0.1",  # noqa: S104  # the proxy is on another machine
        "HTTP": str(server.port),
        "GRPC": str(server.port + 1),
        "METRICS": str(server.port + 2),
        "WEIGHT": str(server.weight),
    }
    lines = [
        *head(f"Triton for {segment.service} on {where}, {batch_and_processes(segment)}.", "", *_USAGE),
        *(f"{name}={shlex.quote(value)}" for name, value in settings.items()),
        comment("The model repository with what the model consists of."),
        f"MODELS=${{MODELS:-{shlex.quote(repository)}}}",
        'MIG_OPT_SERVERS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)',
        "# shellcheck source=/dev/null",
        'source "$MIG_OPT_SERVERS/triton.sh"',
        'do_with_server "$@"',
    ]
    return "\n".join(lines) + "\n"


def model_configs(servers: Sequence[InferenceServer], models: Path | None) -> dict[str, str]:
    """Return the text of ``config.pbtxt`` for each server by its name; all that is wrong is refused at once."""
    try:
        import tritonclient.grpc.model_config_pb2  # noqa: F401  # whether it is there is the question
    except ImportError:
        raise InputError([Problem("", _MISSING.format("triton"))]) from None
    if models is not None and not models.is_dir():
        raise InputError([Problem("", "is no folder; name a model repository")], str(models))
    problems: list[Problem] = []

    def tried(make: Callable[..., Any], *words: object) -> Any:
        try:
            return make(*words)
        except InputError as error:
            problems.extend(error.problems)

    own = {model: tried(_own_config, model, models) for model in dict.fromkeys(server.model for server in servers)}
    fitting = [server for server in servers if own[server.model] is not None]
    texts = {server.name: tried(_config_over, own[server.model], server) for server in fitting}
    raise_any(problems, models or "")
    return texts


def _own_config(model: str, models: Path | None) -> Any:
    """Return the configuration of a model in the repository of the user, empty if it has none."""
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    if models is None:
        return ModelConfig()
    folder = models / model
    if not folder.is_dir():
        known = sorted(path.name for path in models.iterdir() if path.is_dir())
        raise InputError([Problem(model, f"has no folder in the model repository; {nearest(model, known)}")])
    path = folder / CONFIG
    if not path.exists():
        return ModelConfig()
    try:
        return text_format.Parse(read_text(path), ModelConfig())
    except text_format.ParseError as error:
        raise InputError([Problem(f"{model}/{CONFIG}", f"is no configuration of a model: {error}")]) from None


def _config_over(own: Any, server: InferenceServer) -> str:
    """Return a configuration with the batch size, processes and delay of a server put over it."""
    from google.protobuf import text_format

    segment, path = server.segment, f"{server.model}/{CONFIG}"
    scheduling = own.WhichOneof("scheduling_choice")
    if scheduling not in (None, "dynamic_batching") and not server.continuous:
        message = f"has {scheduling}, so that requests do not form batches by themselves; take a model without"
        raise InputError([Problem(path, message)])
    fixed = bool(own.input) or own.max_batch_size > 0
    if fixed and own.max_batch_size < segment.batch > 1 and not server.continuous:
        message = f"has max_batch_size {own.max_batch_size}, but the plan has batches of {segment.batch}"
        raise InputError([Problem(path, f"{message} for {segment.service!r}; plan with a profile that ends there")])
    config = type(own)()
    config.CopyFrom(own)
    config.name = server.model
    batches = (segment.batch > 1 or own.max_batch_size > 0 or not fixed) and not server.continuous
    if not server.continuous:
        config.max_batch_size = segment.batch if batches else 0
    groups = list(own.instance_group)
    del config.instance_group[:]
    group = config.instance_group.add()
    if groups:
        group.CopyFrom(groups[0])
        del group.gpus[:]
    group.count = segment.processes
    if batches:
        del config.dynamic_batching.preferred_batch_size[:]
        config.dynamic_batching.preferred_batch_size.append(segment.batch)
        # Triton reckons with nanoseconds in 64 bits.
        config.dynamic_batching.max_queue_delay_microseconds = min(round(1e6 * server.delay), 10**15)
    return str(text_format.MessageToString(config))


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
        raise InputError([Problem("", _MISSING.format("yaml"))]) from None
    servers = servers_of(demand, deployment, batching=batching)
    wanted = "must be at most 32 small letters, digits and hyphens, a letter first and no hyphen last, for a Service"
    names = enumerate(service.name for service in demand.services)
    wrong = [(index, name) for index, name in names if not _LABEL.fullmatch(name)]
    problems = [Problem(f"services[{index}].name", f"{wanted}, is {name!r}") for index, name in wrong]
    if not re.fullmatch(r"\S+", image):
        problems.append(Problem("image", f"must be the name of an image, without blanks, is {image!r:.80}"))
    raise_any(problems)
    configs = model_configs(servers, None if models is None else Path(models))
    alike: dict[str, list[InferenceServer]] = {}
    segments = [server.segment for server in servers]
    # The blank, which no service has, tells a-b from a with a GPU called b.
    forms = [f"{s.service} {deployment.model(s.gpu).name}-{s.profile}-{s.batch}x{s.processes}" for s in segments]
    labels = labels_of(forms)
    for server, form in zip(servers, forms, strict=True):
        alike.setdefault(labels[form], []).append(server)
    documents: list[dict[str, Any]] = []
    for name, own in alike.items():
        metadata = {"name": name, "labels": _labels(own[0].segment.service)}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {CONFIG: configs[own[0].name]}}
        documents += [config, _deployment(name, deployment, own, image)]
    ports = [{"name": name, "port": port, "targetPort": name} for name, port in _PORTS.items()]
    for service in (one.name for one in demand.services):
        metadata = {"name": service, "labels": _labels(service)}
        spec = {"selector": {"app.kubernetes.io/name": service}, "ports": ports}
        documents.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
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
        if len({server.weight for server in servers if server.segment.service == service}) > 1:
            why = f"{service} has pods of unequal throughput, among which a Service chooses at random"
            yield f"{why}: simulate it with --router uniform, or have a proxy with weights before them."


def _labels(service: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": service, "app.kubernetes.io/managed-by": "mig-opt"}


def _deployment(name: str, deployment: Deployment, servers: Sequence[InferenceServer], image: str) -> dict[str, Any]:
    segment, model = servers[0].segment, shlex.quote(servers[0].model)
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
