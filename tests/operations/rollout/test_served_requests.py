"""A deployment under a promise, exported and served by real Tritons behind a real HAProxy, with Poisson load.

Times of each service are longer by a factor, so that two cores carry it: then rates are lower by the same, and queues
are what they were.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import called
from triton_servers import servers, triton_or_skip

from bench.serving.tritons import Client, recorded, write_models
from mig_opt import Arrivals, Demand, Point, ProfileTable, plan_change, simulate_requests
from mig_opt.api.deploy.promises import deploy_with_promise
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.instances.bundled import load
from mig_opt.simulation.serving.capacity import SERVERS, Promise

SECONDS = 30.0
"""Seconds of load before the change."""
OVERHEAD = 0.25
"""Seconds that client, proxy and server may take; batches take 0.2 to 3 s."""
PUNCTUAL = 0.005
"""Seconds that nearly all requests are sent late at most, where the machine has time for the servers."""


def slowed(demand: Demand, rate: float) -> Demand:
    """Return a demand in which no service has more than some requests a second, and all takes longer by as much."""
    services, tables = [], []
    for service in demand.services:
        factor = max(service.rate / rate, 1.0)
        services.append(dataclasses.replace(service, slo=service.slo * factor, rate=service.rate / factor))
        for table in demand.tables:
            if table.model == service.model:
                points = (
                    Point(one.size, one.batch, one.processes, one.throughput / factor, one.latency * factor)
                    for one in table.points
                )
                tables.append(ProfileTable(table.model, table.gpu, tuple(points), table.memory_gb))
    return demand.replace(services=tuple(services), tables=tuple(tables))


def test_requests_at_real_servers_are_as_simulated_and_none_is_lost_in_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def called_well(*words: object) -> None:
        done = called(capsys, *words)
        assert done.code == 0, done.err

    program = triton_or_skip(tmp_path / "triton")
    demand = slowed(load("parvagpu-s1"), 30.0)
    promise = Promise(0.99, Arrivals(), *SERVERS["triton"])
    found = deploy_with_promise(demand, promise)
    deployment = found.deployment
    assert deployment is not None
    more = deploy_with_promise(demand.with_headroom(0.5), promise, running=deployment).deployment
    assert more is not None
    change = plan_change(deployment, more, demand=demand).plan
    assert any(step.ends for step in change.steps)
    assert any(step.kind == "create" for step in change.steps)
    folder = tmp_path / "machine"
    folder.mkdir()
    with servers(folder, program, *more.gpus) as made:
        write_models(made.models, demand, deployment, more)
        DEMAND.write(demand, folder / "services.json")
        DEPLOYMENT.write(deployment, folder / "fleet.json")
        DEPLOYMENT.write(more, folder / "new.json")

        def export(plan: str, form: str, *words: object) -> None:
            options = ("--format", form, "--port", made.port, *words)
            called_well("services", "export", folder / "services.json", folder / plan, made.out, *options)

        export("fleet.json", "triton", "--models", made.models)
        export("fleet.json", "haproxy")
        made.start_proxy()
        begun = made.run(made.out / "deploy.sh", made.out / "hooks.sh")
        assert begun.returncode == 0, begun.stderr
        assert len(made.numbers()) == len(deployment.segments)

        rng = np.random.default_rng(7)
        moments = {one.name: np.cumsum(rng.exponential(1 / one.rate, int(400 * one.rate))) for one in demand.services}
        ports = {one.name: (f"127.0.0.1:{made.port + at}", one.model) for at, one in enumerate(demand.services)}
        client = Client(ports, moments)
        client.start()
        time.sleep(SECONDS)
        export("new.json", "triton", "--models", made.models, "--from", folder / "fleet.json")
        before = client.elapsed
        changed = made.run(made.out / "change.sh", made.out / "hooks.sh")
        after = client.elapsed
        time.sleep(2)
        client.stop()
        answers = client.wait()
        assert changed.returncode == 0, changed.stderr
        assert len(made.numbers()) == len(more.segments)

    # None is lost, in the change neither.
    assert {name: of.errors for name, of in answers.items() if of.errors} == {}
    assert all(np.isfinite(of.seconds).all() for of in answers.values())
    simulated = simulate_requests(
        demand,
        deployment,
        arrivals=recorded({name: of.between(0.0, before) for name, of in answers.items()}),
        router=promise.router,
        batching=promise.batching,
        warm_up=0.0,
    )
    told = f"{'service':12} requests  mean, p50, p99 in s (simulated), late (simulated), late in a change"
    lines = [f"{told} of {after - before:.0f} s"]
    for service, expected in zip(demand.services, simulated.services, strict=True):
        first, later = answers[service.name].between(0.0, before), answers[service.name].between(before, after)
        seconds = first.seconds
        p50, p99 = np.quantile(seconds, [0.5, 0.99])
        late, late_later = (float((of.seconds > service.slo + OVERHEAD).mean()) for of in (first, later))
        shown = f"{seconds.mean():.3f} ({expected.mean_s:.3f})  {p50:.3f} ({expected.p50_s:.3f})  "
        shown += f"{p99:.3f} ({expected.p99_s:.3f})  {late:.2%} ({expected.late_share:.2%})  {late_later:.2%}"
        lines.append(f"{service.name:12} {len(seconds):8}  {shown}")
    table = "\n".join(lines)
    with capsys.disabled():
        print(f"\n{table}")  # noqa: T201  # for the log
    delays = [of.sent - moments[name][: len(of.sent)] for name, of in answers.items()]
    if max(float(np.quantile(of, 0.99)) for of in delays) > PUNCTUAL:
        return  # the machine is too busy to send in time, so what it takes to answer tells nothing
    for service, expected in zip(demand.services, simulated.services, strict=True):
        seconds = answers[service.name].between(0.0, before).seconds
        p50, p99 = np.quantile(seconds, [0.5, 0.99])
        assert expected.mean_s is not None
        assert expected.p50_s is not None
        assert expected.p99_s is not None
        # What the same requests take in the simulation, and what client, proxy and server add: exact comparisons are in
        # bench/serving, where nothing else runs.
        assert expected.mean_s * 0.95 < seconds.mean() < expected.mean_s * 1.25 + OVERHEAD, service.name
        assert expected.p50_s * 0.9 < p50 < expected.p50_s * 1.25 + OVERHEAD, service.name
        assert p99 < expected.p99_s * 1.5 + OVERHEAD, service.name
