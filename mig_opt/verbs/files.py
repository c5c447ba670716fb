"""Files of every kind: read and written, imported from other programs and exported for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from mig_opt.files import KINDS
from mig_opt.verbs import function_for, function_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mig_opt.batch.batch import Batch
    from mig_opt.batch.schedule import Schedule
    from mig_opt.files.fleet.migbench import PublishedResult, Sizes
    from mig_opt.files.fleet.openb import Cover, TraceImport
    from mig_opt.fleet.state import FleetState
    from mig_opt.fleet.trace import Trace
    from mig_opt.gpu.catalogue import CostTable
    from mig_opt.gpu.model import GpuModel, OperationCosts
    from mig_opt.operations.observe.gpu_models import GpuImport
    from mig_opt.operations.observe.state_import import StateImport
    from mig_opt.operations.rollout.kubernetes import KubernetesResources, MigPartedConfig
    from mig_opt.serving.change_plan import ChangePlan
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.deployment import Deployment
    from mig_opt.serving.profile_table import ProfileTable
    from mig_opt.simulation.serving.requests import Batching

    Path = str | os.PathLike[str]
    Devices = Sequence[str] | None
    BenchmarkForm = Literal["benchmark", "perf-analyzer", "model-analyzer", "vllm", "genai-perf"]
    StateForm = Literal["state", "nvidia-smi", "nvml", "dra", "device-plugin", "hami", "slurm"]

OnGpu = TypeVar("OnGpu", "Batch", "OperationCosts")
OnGpus = TypeVar("OnGpus", "Trace", "FleetState")
Content = TypeVar("Content")

_BATCH, _FLEET, _SERVING = (f"mig_opt.files.{problem}" for problem in ("batch", "fleet", "serving"))
_ROLLOUT = "mig_opt.operations.rollout"
_STATE = "mig_opt.operations.observe.state_import:import_state"
_BENCHMARKS = f"{_SERVING}.measurements:import_benchmarks"

READERS = {kind.content: f"{kind.place}.read" for kind in KINDS.values()} | {
    "Journal": f"{_BATCH}.journals:read_journal",
    "RateTable": f"{_SERVING}.arrivals:read_rates",
    "Arrivals": f"{_SERVING}.arrivals:read_arrivals",
    "Study": "mig_opt.studies:read_study",
}

WRITERS = {kind.content: f"{kind.place}.write" for kind in KINDS.values()}

IMPORTERS = {
    **dict.fromkeys(("state", "nvidia-smi", "nvml", "dra", "device-plugin", "hami", "slurm"), _STATE),
    "gpu": "mig_opt.operations.observe.gpu_models:import_gpu",
    "openb": f"{_FLEET}.openb:import_trace",
    "migbench": f"{_FLEET}.migbench:import_migbench",
    "migbench-results": f"{_FLEET}.migbench:read_published",
    **dict.fromkeys(("benchmark", "perf-analyzer", "model-analyzer", "vllm", "genai-perf"), _BENCHMARKS),
    "parvagpu-profiles": f"{_SERVING}.profiles:import_profiles",
    "parvagpu-deployment": f"{_SERVING}.deployments:import_deployment",
}

EXPORTERS = {
    ("Batch", "program"): f"{_BATCH}.programs:export_model",
    ("Batch", "script"): f"{_ROLLOUT}.nvidia_smi:schedule_script",
    ("Deployment", "script"): f"{_ROLLOUT}.nvidia_smi:deployment_script",
    ("Deployment", "mig-parted"): f"{_ROLLOUT}.kubernetes:mig_parted_config",
    ("Deployment", "kubernetes"): f"{_ROLLOUT}.kubernetes:kubernetes_resources",
    ("Deployment", "triton"): f"{_ROLLOUT}.triton:triton_files",
    ("Deployment", "haproxy"): f"{_ROLLOUT}.servers:haproxy_config",
    ("Deployment", "manifests"): f"{_ROLLOUT}.triton:kubernetes_manifests",
    ("ChangePlan", "script"): f"{_ROLLOUT}.changes:change_script",
    ("FleetState", "script"): f"{_ROLLOUT}.changes:migration_script",
}


@overload
def read(kind: type[OnGpu], path: Path, *, gpu: str | None = None) -> OnGpu: ...
@overload
def read(kind: type[OnGpus], path: Path, *, gpu: str | None = None, gpus: int | None = None) -> OnGpus: ...
@overload
def read(
    kind: type[Demand],
    path: Path,
    *,
    gpu: str | None = None,
    tables: Iterable[ProfileTable] = (),
    scenario: str | None = None,
) -> Demand: ...
@overload
def read(kind: type[ProfileTable], path: Path, *, gpu: str | None = None) -> tuple[ProfileTable, ...]: ...
@overload
def read(kind: type[Deployment], path: Path, *, demand: Demand | None = None, gpu: str | None = None) -> Deployment: ...
@overload
def read(kind: type[Content], path: Path) -> Content: ...
def read(kind: type, path: Path, **options: Any) -> Any:
    """Read a file of any kind: JSON, or a CSV table where the name ends in ``.csv``.

    Parameters
    ----------
    kind : type
        What the file holds: ``Batch``, ``Schedule``, ``ScheduleResult``, ``Certificate``, ``Commands``, ``Journal``
        (of an execution), ``OperationCosts``, ``GpuModel``; ``Demand``, ``ProfileTable``, ``Deployment``,
        ``DeploymentResult``, ``RateTable``, ``Arrivals`` (recorded requests); ``Trace``, ``FleetState``; ``Study``
        (JSON or TOML).
    path : path-like
        The file. Its name without the ending becomes the name of a batch, demand, trace or state. A folder of profile
        tables is read as a whole.
    **options
        Those below, of the kinds that have them.
    gpu : str
        Name or alias of the GPU, in place of the one that the file names; a CSV file needs it.
    gpus : int
        How many GPUs, for ``Trace`` and ``FleetState``; in place of what the file says.
    tables : iterable of ProfileTable
        For ``Demand``: they take the place of those in the file for the same model and GPU. A CSV file needs them.
    scenario : str
        For ``Demand``: which rows to take of a CSV file with a column ``scenario``.
    demand : Demand
        For ``Deployment``: its tables have throughput and latency of segments that the file leaves without.

    Returns
    -------
    kind, or tuple of ProfileTable
        What the file holds; times are in seconds, memory is in GB. Of profile tables a file may hold several.

    Raises
    ------
    InputError
        With every problem of the file, or if no file holds such a thing.

    Examples
    --------
    >>> import tempfile
    >>> from mig_opt import Batch, load, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(load("rodinia-a30"), f"{folder}/mine.json")
    ...     batch = read(Batch, f"{folder}/mine.json", gpu="H100")
    >>> batch.name, batch.gpu.name
    ('mine', 'H100-80GB')
    """
    return function_for(kind, READERS, "kind")(path, **options)


@overload
def write(content: OperationCosts, path: Path, *, gpu: GpuModel) -> None: ...
@overload
def write(content: Demand, path: Path, *, profiles: bool = True) -> None: ...
@overload
def write(content: object, path: Path) -> None: ...
def write(content: Any, path: Path, **options: Any) -> None:
    """Write a file that :func:`mig_opt.read` reads; an existing file is replaced only when all is written.

    Parameters
    ----------
    content : object
        What the file is to hold: one of the classes that are read, or profile tables.
    path : path-like
        The file: JSON, or a CSV table of a deployment or a trace if the name ends in ``.csv``.
    **options
        Those below, of the kinds that have them.
    gpu : GpuModel
        The kind of GPU that operation costs are for.
    profiles : bool
        Whether to write the profile tables of a demand, too; without them they have to be given to the reader.

    Raises
    ------
    InputError
        If the file cannot be written, a figure is not finite, or something cannot stand in such a file: a GPU that is
        not the catalogue's has the name of another one.
    """
    kind = type(content)
    if isinstance(content, list | tuple) and {type(entry).__name__ for entry in content} == {"ProfileTable"}:
        kind = type(content[0])
    function_for(kind, WRITERS, "content")(content, path, **options)


@overload
def import_from(
    format: StateForm, *paths: Path, gpu: str | None = None, assume_places: bool = False
) -> StateImport: ...
@overload
def import_from(
    format: Literal["gpu"],
    *paths: Path,
    name: str | None = None,
    device: int | None = None,
    operations: OperationCosts | CostTable | None = None,
) -> GpuImport: ...
@overload
def import_from(
    format: Literal["openb"],
    path: Path,
    /,
    *,
    gpu: str = "A100",
    gpus: int | None = None,
    nodes: Path | None = None,
    cover: Cover = "compute",
    first_s: float = 0.0,
    last_s: float = ...,
) -> TraceImport: ...
@overload
def import_from(
    format: Literal["migbench"],
    path: Path,
    /,
    *,
    gpu: str = "H100-80GB",
    gpus: int | None = None,
    sizes: Sizes = "smallest",
) -> Trace: ...
@overload
def import_from(format: Literal["migbench-results"], path: Path, /) -> tuple[PublishedResult, ...]: ...
@overload
def import_from(
    format: Literal["parvagpu-profiles"],
    path: Path,
    /,
    *,
    gpu: str,
    model: str | None = None,
    memory_gb: float | None = None,
) -> tuple[ProfileTable, ...]: ...
@overload
def import_from(
    format: BenchmarkForm,
    *paths: Path,
    gpu: str,
    names: str | None = None,
    model: str | None = None,
    size: int | None = None,
    batch: int | None = None,
    processes: int | None = None,
    quantile: float | None = ...,
    memory_gb: float | None = None,
) -> tuple[ProfileTable, ...]: ...
@overload
def import_from(
    format: Literal["parvagpu-deployment"], path: Path, /, *, gpu: str, demand: Demand | None = None
) -> Deployment: ...
def import_from(format: str, *paths: Path, **options: Any) -> Any:  # noqa: A002
    """Read what other programs write.

    Parameters
    ----------
    format : str
        ``nvidia-smi``, ``nvml`` (this machine, no file), ``dra``, ``device-plugin``, ``hami``, ``slurm``, or ``state``
        to have it guessed which of these it is: the instances of GPUs, nodes or clusters. ``gpu``: the model of a GPU,
        from ``nvidia-smi mig -lgip`` and ``-lgipp``, or (no file) NVML. ``openb``: Alibaba's lists of
        pods. ``migbench``, ``migbench-results``: traces and results of MIGBench. ``parvagpu-profiles``,
        ``parvagpu-deployment``: the tables in which ParvaGPU's were published. ``perf-analyzer``, ``model-analyzer``,
        ``vllm``, ``genai-perf`` (and aiperf), or ``benchmark`` to have each guessed: profiles from what was measured.
    *paths : path-like
        The file; several ones of a state, a GPU or profiles.
    **options
        Those of :func:`mig_opt.operations.observe.state_import.import_state`,
        :func:`mig_opt.operations.observe.gpu_models.import_gpu`,
        :func:`mig_opt.files.fleet.openb.import_trace`, :func:`mig_opt.files.fleet.migbench.import_migbench`,
        :func:`mig_opt.files.serving.profiles.import_profiles`,
        :func:`mig_opt.files.serving.measurements.import_benchmarks` and
        :func:`mig_opt.files.serving.deployments.import_deployment`.

    Returns
    -------
    StateImport, GpuImport, TraceImport, Trace, tuple of PublishedResult, tuple of ProfileTable, or Deployment
        By the format. The first three say what was left out or assumed, beside the state, the model or the trace.

    Raises
    ------
    InputError
        With every problem of the files and the options, or if no format is called like that.
    """
    function = function_in(IMPORTERS, format, "format")
    if IMPORTERS[format] in (_STATE, _BENCHMARKS) and format not in ("state", "benchmark"):
        options["format"] = format
    return function(*paths, **options)


@overload
def export(batch: Batch, format: Literal["program"], /, path: Path, *, strict: bool = False) -> None: ...
@overload
def export(batch: Batch, format: Literal["script"], /, schedule: Schedule, *, devices: Devices = None) -> str: ...
@overload
def export(plan: Deployment | ChangePlan, format: Literal["script"], /, *, devices: Devices = None) -> str: ...
@overload
def export(
    deployment: Deployment, format: Literal["mig-parted"], /, *, devices: Devices = None, name: str = "mig-opt"
) -> MigPartedConfig: ...
@overload
def export(
    deployment: Deployment, format: Literal["kubernetes"], /, *, devices: Devices = None
) -> KubernetesResources: ...
@overload
def export(
    deployment: Deployment,
    format: Literal["triton"],
    /,
    demand: Demand,
    *,
    models: Path | None = None,
    change: ChangePlan | None = None,
    batching: Batching | None = None,
    port: int = ...,
    devices: Devices = None,
) -> dict[str, str]: ...
@overload
def export(
    deployment: Deployment, format: Literal["haproxy"], /, demand: Demand, *, port: int = ..., devices: Devices = None
) -> str: ...
@overload
def export(
    deployment: Deployment,
    format: Literal["manifests"],
    /,
    demand: Demand,
    *,
    models: Path | None = None,
    batching: Batching | None = None,
    image: str = ...,
) -> str: ...
@overload
def export(
    state: FleetState, format: Literal["script"], /, migrations: Iterable[Any], *, devices: Devices = None
) -> str: ...
def export(content: Any, format: str, /, *more: Any, **options: Any) -> Any:  # noqa: A002
    """Return a plan for other programs, or write the mixed-integer program of a batch.

    Parameters
    ----------
    content : Batch, Deployment, ChangePlan or FleetState
        What there is.
    format : str
        ``script``: a bash script that carries the plan out with nvidia-smi. Of a deployment also ``mig-parted`` (the
        configuration of nvidia-mig-parted), ``kubernetes`` (resource requests), and for servers ``triton`` (files),
        ``haproxy`` (configuration) and ``manifests`` (of Kubernetes); of a batch ``program`` (the mixed-integer
        program).
    *more
        For a script of a batch its schedule, for one of a state the migrations, for servers the demand, for a program
        the file to write: ``.lp`` or ``.mps``.
    **options
        Those of :func:`mig_opt.operations.rollout.nvidia_smi.schedule_script`,
        :func:`mig_opt.operations.rollout.nvidia_smi.deployment_script`,
        :func:`mig_opt.operations.rollout.changes.change_script`,
        :func:`mig_opt.operations.rollout.changes.migration_script`,
        :func:`mig_opt.operations.rollout.kubernetes.mig_parted_config`,
        :func:`mig_opt.operations.rollout.kubernetes.kubernetes_resources`,
        :func:`mig_opt.operations.rollout.triton.triton_files`,
        :func:`mig_opt.operations.rollout.servers.haproxy_config`,
        :func:`mig_opt.operations.rollout.triton.kubernetes_manifests` and
        :func:`mig_opt.files.batch.programs.export_model`.

    Returns
    -------
    str, dict of str to str, MigPartedConfig, KubernetesResources or None
        By the format.

    Raises
    ------
    InputError
        If it cannot be carried out or written, or there is no such format of this.
    """
    return function_in(EXPORTERS, (type(content).__name__, format), "format")(content, *more, **options)
