"""Deployments on Triton Inference Servers: for each segment a model repository, and a script that starts its server.

Scripts of ``nvidia-smi`` commands make the instances, and call hooks for the rest
(:mod:`mig_opt.operations.rollout.nvidia_smi`, :mod:`mig_opt.operations.rollout.changes`); here are hooks that start and
stop Tritons, and tell HAProxy.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mig_opt.errors import InputError, Problem, nearest, raise_any
from mig_opt.files.documents import read_text
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.layouts import batch_and_processes
from mig_opt.operations.rollout.nvidia_smi import deployment_script
from mig_opt.operations.rollout.servers import FIRST_PORT, InferenceServer, servers_of
from mig_opt.operations.rollout.shell import comment, functions_of, head
from mig_opt.serving.change_plan import ChangePlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.simulation.serving.requests import Batching

CONFIG = "config.pbtxt"
"""File of a model in a repository of Triton."""

_MISSING = 'needs the extra triton; install it with: pip install "mig-opt[triton]"'
_USAGE = (
    "Usage: CUDA_VISIBLE_DEVICES=UUID bash SCRIPT start, or stop; admit and drain are for HAProxy, if it runs. The",
    "instance may be given as that, and MPS as CUDA_MPS_PIPE_DIRECTORY: hooks.sh does both.",
)


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
        raise InputError([Problem("", _MISSING)]) from None
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
