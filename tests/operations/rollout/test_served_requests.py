"""A deployment under a promise, exported and served by real Tritons behind a real HAProxy, with Poisson load.

Times of each service are longer by a factor, so that two cores carry it: then rates are lower by the same, and queues
are what they were.
"""

import dataclasses
import time
from statistics import median

import numpy as np
from command_line import called
from triton_servers import servers, triton_or_skip

from bench.serving.tritons import Client, recorded, write_models
from mig_opt import Arrivals, Demand, Point, ProfileTable, deploy_with_promise, load, plan_change, simulate_requests
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.deployments import DEPLOYMENT
from mig_opt.simulation.serving.capacity import Promise
from mig_opt.simulation.serving.requests import SERVERS

SECONDS = 30.0
"""Seconds of load before the change."""
OVERHEAD = 0.1
"""Seconds that client, proxy and server take at most; batches take 0.2 to 3 s."""
CLOSE, ROUGH = (0.03, 0.05, 0.1), (0.1, 0.15, 0.3)
"""Shares by which mean, median and 99 % quantile differ at most from those simulated: in real time, and without."""
PUNCTUAL, LATEST = 0.005, 0.2
"""Seconds that nearly all, and all, requests are sent late at most, where the machine has time for the servers."""


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


def test_requests_at_real_servers_are_as_simulated_and_none_is_lost_in_a_change(tmp_path, capsys):
    def called_well(*words: object) -> None:
        done = called(capsys, *words)
        assert done.code == 0, done.err

    program = triton_or_skip(tmp_path / "triton")
    demand = slowed(load("parvagpu-s1"), 30.0)
    promise = Promise(0.99, Arrivals(), *SERVERS["triton"])
    found = deploy_with_promise(demand, promise)
    deployment = found.deployment
    more = deploy_with_promise(demand.with_headroom(0.5), promise, running=deployment).deployment
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
        made.run(made.out / "deploy.sh", made.out / "hooks.sh")
        assert len(made.numbers()) == len(deployment.segments)
        real_time = made.run_in_real_time()

        rng = np.random.default_rng(7)
        moments = {one.name: np.cumsum(rng.exponential(1 / one.rate, int(400 * one.rate))) for one in demand.services}
        ports = {one.name: (f"127.0.0.1:{made.port + at}", one.model) for at, one in enumerate(demand.services)}
        client = Client(ports, moments)
        client.start()
        time.sleep(SECONDS)
        export("new.json", "triton", "--models", made.models, "--from", folder / "fleet.json")
        before = client.elapsed
        made.run(made.out / "change.sh", made.out / "hooks.sh")
        after = client.elapsed
        time.sleep(2)
        client.stop()
        answers = client.wait()
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
    parts = {name: (of.between(0.0, before), of.between(before, after)) for name, of in answers.items()}
    overhead = median(parts[one.name][0].seconds.mean() - (one.mean_s or 0.0) for one in simulated.services)
    told = "service      requests  mean, p50, p99 in s (simulated), late (simulated), late in a change"
    lines = [f"{told} of {after - before:.0f} s; {1000 * overhead:.1f} ms more than simulated"]
    wrong = []
    for service, expected in zip(demand.services, simulated.services, strict=True):
        first, later = parts[service.name]
        late, late_later = (float((of.seconds > service.slo + overhead).mean()) for of in (first, later))
        real = first.seconds.mean(), *np.quantile(first.seconds, [0.5, 0.99], method="inverted_cdf")
        pairs = [*zip(real, (expected.mean_s or 0.0, expected.p50_s or 0.0, expected.p99_s or 0.0), strict=True)]
        shown = "  ".join(f"{seconds:.3f} ({other:.3f})" for seconds, other in pairs)
        shown += f"  {late:.2%} ({expected.late_share:.2%})  {late_later:.2%}"
        lines.append(f"{service.name:12} {len(first.seconds):8}  {shown}")
        if not expected.late_share_interval[0] <= late <= expected.late_share_interval[1]:
            wrong.append(f"{service.name}: late")
        for (seconds, other), share in zip(pairs, CLOSE if real_time else ROUGH, strict=True):
            if not abs(seconds - other) <= share * other + overhead:
                wrong.append(f"{service.name}: {seconds} s, simulated {other} s")
    with capsys.disabled():
        print("\n".join(["", *lines]))  # noqa: T201  # for the log
    delays = [of.sent - moments[name][: len(of.sent)] for name, of in answers.items()]
    if max(float(np.quantile(of, 0.99)) for of in delays) < PUNCTUAL and max(map(max, delays)) < LATEST:
        # Else the machine is too busy to send in time, even in real time: what it takes to answer tells nothing.
        assert not wrong
        assert overhead < OVERHEAD
