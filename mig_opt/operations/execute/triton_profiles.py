"""Profiles of the models of a running Triton, by load over gRPC: throughput and latency by batch size and processes.

Every request is a whole batch, and as many are in flight as keep all processes busy. A server that loads models on
request (``--model-control-mode=explicit``) loads each model anew for each batch size and number of processes; others
are measured with what they have.
"""

from __future__ import annotations

import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mig_opt.errors import InputError, Problem, nearest, raise_any
from mig_opt.files.serving.printed import tells_of_memory
from mig_opt.operations.execute.profiles import OUT_OF_MEMORY, Measurements, ProfilePlan
from mig_opt.rules import wrong_number
from mig_opt.serving.profile_table import Point, ProfileTable

_SILENT = 60.0  # seconds beyond those of a run after which a server that does not answer is given up
_COMPUTE = ("compute_input", "compute_infer", "compute_output")


def profile_triton(
    address: str,
    plan: ProfilePlan,
    *,
    models: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    seconds: float = 2.0,
    observe: Callable[[str], None] = lambda _: None,
) -> Measurements:
    """Measure the models of a running Triton.

    Parameters
    ----------
    address : str
        Host and port of its gRPC.
    plan : ProfilePlan
        The one size of the instance that it runs on, batch sizes, processes and repetitions: medians count.
    models : sequence of str
        Which models; by default all that are ready.
    shapes : mapping of str to sequence of int, optional
        Shapes of inputs, without the batch, where the model leaves dimensions open.
    seconds : float
        Length of each run.
    observe : callable
        Is called with each way before it is measured.

    Returns
    -------
    Measurements
        Points: their latency is the mean time in which a batch is computed, by the statistics of the server. In the end
        its models are as they were.

    Raises
    ------
    InputError
        If the client is not installed, nothing answers, there is no such model, or an argument is wrong.
    """
    problems = list(wrong_number("seconds", seconds, "a finite number of seconds > 0", above=0))
    if not re.fullmatch(r"[^\s/]+:[0-9]{1,5}", address) or int(address.rpartition(":")[2]) not in range(1, 65_536):
        problems.append(Problem("address", f"must be HOST:PORT, such as localhost:8001, is {address!r:.80}"))
    if len(plan.sizes) != 1:
        problems.append(Problem("sizes", "must be the one size of the instance on which the server runs, such as 2"))
    raise_any(problems)
    try:
        import tritonclient.grpc
        import tritonclient.utils
    except ImportError:
        message = 'needs the extra triton; install it with: pip install "mig-opt[triton]"'
        raise InputError([Problem("", message)]) from None
    found = Measurements()
    client = tritonclient.grpc.InferenceServerClient(address)
    try:
        with client:
            ready = [entry.name for entry in client.get_model_repository_index().models if entry.state == "READY"]
            names = list(dict.fromkeys(models or ready))  # each version is ready by itself
            unknown = [name for name in names if name not in ready]
            raise_any(Problem(name, f"no such model is ready; {nearest(name, ready)}") for name in unknown)
            if not names:
                raise InputError([Problem("", f"{address} has no model that is ready")])
            chosen = [_Model(client, tritonclient, name, shapes or {}, found) for name in names]
            inputs = list(dict.fromkeys(name for model in chosen for name in model.shapes))
            wrong = [name for name in shapes or () if name not in inputs]
            raise_any(Problem("shapes", f"no model has an input {name!r}; {nearest(name, inputs)}") for name in wrong)
            for name, model in zip(names, chosen, strict=True):
                points = tuple(model.points(plan, seconds, observe))
                if points:
                    found.tables += (ProfileTable(name, plan.gpu.name, points),)
    except tritonclient.utils.InferenceServerException as error:
        raise InputError([Problem(address, f"does not answer as a Triton: {error.message()}")]) from None
    return found


class _Model:
    """Model of a server."""

    def __init__(
        self, client: Any, triton: Any, name: str, shapes: Mapping[str, Sequence[int]], found: Measurements
    ) -> None:
        self._client, self._triton, self._name, self._found = client, triton, name, found
        self._config = client.get_model_config(name).config
        self.shapes = {tensor.name: shapes.get(tensor.name, tensor.dims) for tensor in self._config.input}
        self._anew = False  # loaded with another configuration
        scheduling = self._config.WhichOneof("scheduling_choice")
        if scheduling not in (None, "dynamic_batching") or self._config.model_transaction_policy.decoupled:
            message = "has sequences, an ensemble or decoupled answers; it cannot be profiled so"
            raise InputError([Problem(name, message)])
        if open_ := [tensor for tensor, shape in self.shapes.items() if any(size < 1 for size in shape)]:
            message = f"leaves dimensions open; give them, for example --shape {open_[0]}:3,224,224"
            raise InputError([Problem(f"{name}, input {tensor}", message) for tensor in open_])

    def points(self, plan: ProfilePlan, seconds: float, observe: Callable[[str], None]) -> Iterator[Point]:
        """Yield the points of all ways that can be measured."""
        most = self._config.max_batch_size
        own = sum(group.count * max(len(group.gpus), 1) for group in self._config.instance_group) or 1
        batches = [batch for batch in sorted(set(plan.batches)) if batch <= max(most, 1)]
        ways = [(batch, count) for batch in batches for count in sorted(set(plan.processes))]
        if not self._load(max(most, 1), own):
            # Of batches that are not full the server would make others.
            batches = [most] if self._config.HasField("dynamic_batching") and most else batches
            ways = [(batch, own) for batch in batches]
            full = f", and full batches of {most}" if batches == [most] else ""
            used = f"measured with the {own} processes that the server has{full}"
            self._found.notes.append(f"{self._name}: {used}; it would load others with --model-control-mode=explicit")
        try:
            for batch, count in ways:
                way = f"{self._name}, batch {batch}, {count} {'process' if count == 1 else 'processes'}"
                observe(way)
                try:
                    if self._anew:
                        self._load(batch, count)
                    runs = [self._run(batch, 2 * count, seconds) for _ in range(plan.runs)][plan.warm_up :]
                except self._triton.utils.InferenceServerException as error:
                    message = error.message() or "failed"
                    self._found.left_out[way] = OUT_OF_MEMORY if tells_of_memory(message) else message
                    continue
                throughput, latency = (float(f"{statistics.median(column):.6g}") for column in zip(*runs, strict=True))
                yield Point(plan.sizes[0], batch, count, throughput, latency)
        finally:
            if self._anew:
                self._loaded(self._config)

    def _load(self, batch: int, processes: int) -> bool:
        """Load the model for a batch size and a number of processes; return False if the server does not do so."""
        config = type(self._config)()
        config.CopyFrom(self._config)
        config.ClearField("dynamic_batching")
        config.max_batch_size = batch if config.max_batch_size else 0
        del config.instance_group[1:]
        (config.instance_group or [config.instance_group.add()])[0].count = processes
        return self._loaded(config)

    def _loaded(self, config: Any) -> bool:
        from google.protobuf import json_format

        try:
            text = json_format.MessageToJson(config, preserving_proto_field_name=True)
            self._client.load_model(self._name, config=text)
        except self._triton.utils.InferenceServerException as error:
            if not self._anew and "not allowed" in (error.message() or ""):
                return False
            raise
        self._anew = True
        return True

    def _run(self, batch: int, flying: int, seconds: float) -> tuple[float, float]:
        """Return requests per second, and the seconds in which a batch is computed, with some batches in flight."""
        inputs, free = self._inputs(batch), threading.Semaphore(flying)
        errors: list[Exception] = []
        ends: list[float] = []
        before, sent, begin = self._statistics(), 0, time.monotonic()

        def answered(result: object, error: Exception | None) -> None:  # noqa: ARG001
            ends.append(time.monotonic())
            if error is not None:
                errors.append(error)
            free.release()

        def wait() -> None:
            if not free.acquire(timeout=seconds + _SILENT):
                message = f"a batch was not answered within {seconds + _SILENT:g} s"
                raise self._triton.utils.InferenceServerException(message)

        # Processes end together, so that none is idle in what is measured.
        while (time.monotonic() < begin + seconds or sent % flying) and not errors:
            wait()
            self._client.async_infer(self._name, inputs, answered)
            sent += 1
        for _ in range(flying):
            wait()
        if errors:
            raise errors[0]
        # From the first answers of all processes to the last: before them nothing was full.
        first = flying // 2
        took = ends[-1] - ends[first - 1]
        spent, count = (after - earlier for after, earlier in zip(self._statistics(), before, strict=True))
        return (sent - first) * batch / took, 1e-9 * spent / count

    def _statistics(self) -> tuple[int, int]:
        """Return the nanoseconds of all batches so far, and their number, in all versions: the server chooses one."""
        found = [each.inference_stats for each in self._client.get_inference_statistics(self._name).model_stats]
        return sum(getattr(each, part).ns for each in found for part in _COMPUTE), sum(e.success.count for e in found)

    def _inputs(self, batch: int) -> list[Any]:
        """Return random numbers, and empty texts, as the inputs of a request."""
        rng, inputs = np.random.default_rng(0), []
        for tensor in self._config.input:
            kind = tensor.DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number[tensor.data_type].name[5:]
            kind = "BYTES" if kind == "STRING" else kind
            shape = [*([batch] if self._config.max_batch_size else []), *self.shapes[tensor.name]]
            numbers = kind != "BYTES"
            values = rng.random(shape) if numbers else np.full(shape, b"")
            entry = self._triton.grpc.InferInput(tensor.name, shape, kind)
            entry.set_data_from_numpy(values.astype(self._triton.utils.triton_to_np_dtype(kind) if numbers else object))
            inputs.append(entry)
        return inputs
