"""Traces, policies and audits that the tests of the simulator share."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from mig_opt import Job, OperationCosts, Simulation, Trace, get_gpu, simulate
from mig_opt.fleet.trace import Outage
from mig_opt.gpu.geometry import geometry_of, members
from mig_opt.heuristics.fleet.queues import FirstFit
from mig_opt.simulation import Cluster, Log, Policy, check_log
from mig_opt.simulation.fleet.course import Course
from mig_opt.simulation.fleet.forecast import Forecast
from mig_opt.validation import validate

A100 = get_gpu("A100")
TABLES = geometry_of(A100)

PLAIN_COSTS = OperationCosts(dict.fromkeys(A100.sizes, 1.0), dict.fromkeys(A100.sizes, 0.5))
"""Each creation takes 1 s, each destruction 0.5 s."""
NO_COSTS = OperationCosts.zero(A100)

SIZES = {"1g.5gb": 1, "1g.10gb": 1, "2g.10gb": 2, "3g.20gb": 3, "4g.20gb": 4, "7g.40gb": 7}


def place(name: str) -> int:
    """The number of a placement such as ``3g.20gb@4``."""
    profile, start = name.split("@")
    return TABLES.index(profile, int(start))


def job(name: str, arrival: float, profile: str, seconds: float, **details: object) -> Job:
    return Job(name, arrival, {SIZES[profile]: seconds}, profile, **details)


def trace(*jobs: Job, gpus: int = 1, costs: OperationCosts = PLAIN_COSTS, pcie_limit: float = 30.0) -> Trace:
    return Trace(jobs, A100, gpus, costs, pcie_limit)


Step = Callable[[Cluster], None]


class Scripted(Policy):
    """Does what a test says: puts a job where it is told on arrival, and acts at given seconds."""

    def __init__(self, places: Mapping[str, tuple[int, str]], steps: Sequence[tuple[float, Step]] = ()) -> None:
        self.places = dict(places)
        self.steps = steps
        self.heard: list[tuple[object, ...]] = []

    def begin(self, cluster: Cluster) -> None:
        for number, (time, _) in enumerate(self.steps):
            cluster.wake(time, number)

    def arrived(self, cluster: Cluster, job: int) -> None:
        name = cluster.trace.jobs[job].name
        if name in self.places:
            gpu, where = self.places[name]
            cluster.start(job, gpu, place(where))

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        self.heard.append(("finished", job, gpu, str(TABLES.placements[placement]), cluster.now))

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        self.heard.append(("failed", job, needed_gb, cluster.now))

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        self.heard.append(("gave up", job, cluster.now))

    def gpu_left(self, cluster: Cluster, gpu: int, lost: Sequence[tuple[int, int]]) -> None:
        self.heard.append(("left", gpu, lost, cluster.now))

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        self.heard.append(("returned", gpu, cluster.now))

    def woken(self, cluster: Cluster, tag: int) -> None:
        self.steps[tag][1](cluster)


class Chaos(Policy):
    """Does anything that is possible, by a seed, until it has done so often enough; then it only starts jobs."""

    def __init__(self, seed: int, pranks: int = 40) -> None:
        self.seed = seed
        self.pranks = pranks

    def begin(self, cluster: Cluster) -> None:
        self.random = Random(self.seed)
        self.left = self.pranks
        cluster.wake(0.25)

    def hear(self, cluster: Cluster, *_: object) -> None:
        self.act(cluster)

    arrived = finished = failed = gave_up = gpu_left = gpu_returned = hear

    def woken(self, cluster: Cluster, tag: int) -> None:
        self.act(cluster)
        if self.left:
            cluster.wake(cluster.now + self.random.choice([0.25, 1.0, 3.7]), tag + 1)

    def act(self, cluster: Cluster) -> None:
        self.start_some(cluster)
        for _ in range(self.random.randrange(4)):
            if self.left:
                self.left -= 1
                self.random.choice([self.migrate, self.stop, self.create, self.destroy])(cluster)
        if not self.left:
            self.start_some(cluster)

    def start_some(self, cluster: Cluster) -> None:
        for waiting in list(cluster.waiting):
            found = self.options(cluster, waiting)
            if found and (not self.left or self.random.random() < 0.8):
                cluster.start(waiting, *self.random.choice(found))

    def options(self, cluster: Cluster, number: int) -> list[tuple[int, int]]:
        sizes = cluster.trace.jobs[number].times
        return [
            (gpu, where)
            for gpu, state in enumerate(cluster.states)
            for where, placement in enumerate(cluster.geometry.placements)
            if cluster.present(gpu) and placement.profile.compute_slices in sizes
            if not cluster.geometry.conflicts[where] & state.busy
        ]

    def migrate(self, cluster: Cluster) -> None:
        movable = [number for number in range(len(cluster.trace.jobs)) if cluster.movable(number)]
        if movable:
            number = self.random.choice(movable)
            found = self.options(cluster, number)
            if found:
                cluster.migrate(number, *self.random.choice(found))

    def stop(self, cluster: Cluster) -> None:
        placed = [number for number in range(len(cluster.trace.jobs)) if cluster.place(number)]
        if placed:
            cluster.stop(self.random.choice(placed))

    def create(self, cluster: Cluster) -> None:
        gpu = self.random.randrange(cluster.trace.gpus)
        state, conflicts = cluster.states[gpu], cluster.geometry.conflicts
        if not cluster.present(gpu):
            return
        free = [w for w, clash in enumerate(conflicts) if not clash & state.busy and not state.idle >> w & 1]
        if free:
            cluster.create(gpu, self.random.choice(free))

    def destroy(self, cluster: Cluster) -> None:
        gpu = self.random.randrange(cluster.trace.gpus)
        idle = list(members(cluster.states[gpu].idle))
        if idle:
            cluster.destroy(gpu, self.random.choice(idle))


class RejectingChaos(Chaos):
    """The same on a fleet without a queue."""

    def rejected(self, cluster: Cluster, job: int) -> None:
        assert cluster.place(job) is None


class Careless(Policy):
    """Starts what waits on the first place that is free, keeps no queue of its own, and has never heard of outages."""

    def arrived(self, cluster: Cluster, job: int) -> None:
        for waiting in list(cluster.waiting):
            profiles = cluster.trace.profiles(cluster.trace.jobs[waiting])
            for gpu, profile in itertools.product(range(cluster.trace.gpus), profiles):
                if places := cluster.state(gpu).usage.available[cluster.geometry.profile_index(profile)]:
                    cluster.start(waiting, gpu, places[0])
                    break


class Seer(FirstFit):
    """First fit, with a forecast of it after each decision."""

    def begin(self, cluster: Cluster) -> None:
        super().begin(cluster)
        self.forecasts: list[tuple[int, Forecast]] = []

    def serve(self, cluster: Cluster) -> None:
        super().serve(cluster)
        forecast = Forecast(cluster)
        Course(forecast, observer=audit).run(FirstFit())
        assert not forecast.running
        self.forecasts.append((cluster.coming, forecast))


def audit(cluster: Cluster) -> None:
    """Nothing is lost or doubled: every job that has arrived is in one place, every instance has its own slices."""
    placed: dict[tuple[int, int], int] = {}
    for number, wanted in enumerate(cluster.trace.jobs):
        where = cluster.place(number)
        states = [number in cluster.waiting, where is not None, not math.isnan(cluster.log.finished[number])]
        assert sum(states) <= 1, (wanted.name, states)
        if wanted.arrival > cluster.now:
            assert not any(states)
        if where is not None:
            assert where not in placed
            placed[where] = number
            assert cluster.job_at(*where) == number
            assert 0 <= cluster.progress(number) <= 1
    for gpu, state in enumerate(cluster.states):
        assert not state.busy & state.idle
        instances = list(members(state.busy | state.idle))
        assert all(
            not cluster.geometry.conflicts[one] >> two & 1 for one in instances for two in instances if one != two
        )
        assert {where for where in placed if where[0] == gpu} == {(gpu, index) for index in members(state.busy)}


def assert_sound(log: Log) -> None:
    """The validator and the independent check of the jobs have nothing to say."""
    problems = check_log(log)
    assert not problems, "\n".join(map(str, problems))
    if any(end > begin for begin, end in zip(log.run_begin, log.run_end, strict=True)):
        result = validate(*log.as_schedule())
        assert result.valid, str(result)


def run(policy: str | Policy, wanted: Trace, **options: Any) -> Simulation:
    """A simulation in which nothing is lost or doubled, whose log is sound."""
    done = simulate(wanted, policy, observer=audit, **options)
    assert_sound(done.log)
    return done


def rows(log: Log) -> list[tuple[object, ...]]:
    """The runs, readable."""
    names = [job.name for job in log.trace.jobs]
    return [
        (names[own.job], own.gpu, str(own.placement), round(own.begin, 9), round(own.end, 9), own.outcome.name)
        for own in log.runs()
    ]


def operations(log: Log) -> list[tuple[object, ...]]:
    """The operations, readable."""
    return [(o.kind, o.gpu, f"{o.profile}@{o.start}", round(o.begin, 9), round(o.end, 9)) for o in log.operations()]


@st.composite
def traces(draw: st.DrawFn, max_jobs: int = 14, max_gpus: int = 3) -> Trace:
    """Few jobs with many ties, some of them PCIe-bound, some with too little memory at times."""
    costs = draw(st.sampled_from([A100.operation_costs, PLAIN_COSTS, NO_COSTS]))
    jobs = []
    for number in range(draw(st.integers(1, max_jobs))):
        arrival = draw(st.one_of(st.integers(0, 8).map(float), st.floats(0, 20)))
        profile = draw(st.sampled_from([*SIZES, None]))
        seconds = st.one_of(st.integers(1, 9).map(float), st.floats(0.01, 20))
        sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 7]), min_size=1, max_size=3, unique=True))
        if profile is not None:
            sizes = sorted({*sizes, SIZES[profile]})
        bound = draw(st.booleans())
        growth = draw(
            st.sampled_from([(), (), (), ((0.0, 4.0), (0.5, 9.0)), ((0.25, 12.0),), ((0.0, 30.0), (0.5, 2.0))])
        )
        memory = draw(st.sampled_from([None, None, 4.0, 8.0, 30.0])) if not growth else None
        jobs.append(
            Job(
                f"j{number}",
                arrival,
                {size: draw(seconds) for size in sizes},
                profile,
                memory,
                growth,
                pcie_gbps=draw(st.sampled_from([5.0, 12.0, 30.0])) if bound else 0.0,
                sensitivity=draw(st.sampled_from([0.3, 0.9, 1.0])),
            )
        )
    return Trace(tuple(jobs), A100, draw(st.integers(1, max_gpus)), costs)


@st.composite
def disturbed(draw: st.DrawFn, max_jobs: int = 14, max_gpus: int = 3) -> Trace:
    """The same, of which some crash and end early or late, on GPUs that leave and return, often in the same moments."""
    trace = draw(traces(max_jobs, max_gpus))
    share, moment = st.floats(0.01, 0.99), st.one_of(st.integers(0, 30).map(float), st.floats(0, 40))
    jobs = []
    for job in trace.jobs:
        factor = draw(st.sampled_from([None, None, 0.5, 1.0, 3.0]))
        declared = None if factor is None else {size: seconds * factor for size, seconds in job.times.items()}
        crashes = tuple(draw(st.lists(st.one_of(st.just(0.5), share), max_size=2)))
        jobs.append(dataclasses.replace(job, declared=declared, crashes=crashes))
    outages = []
    for gpu in range(trace.gpus):
        bounds = sorted(draw(st.sets(moment, max_size=4)))
        outages += [Outage(gpu, begin, end) for begin, end in zip(bounds[::2], bounds[1::2], strict=False)]
    return trace.replace(jobs=tuple(jobs), outages=tuple(draw(st.permutations(outages))))


def columns(log: Log) -> list[bytes]:
    return [column.tobytes() for column in vars(log).values() if hasattr(column, "tobytes")]


def first_places(done: Simulation) -> dict[str, str]:
    """Return the place of each job's first run, as GPU:placement."""
    found: dict[str, tuple[float, str]] = {}
    for name, gpu, where, begin, _, _ in rows(done.log):
        if name not in found or begin < found[name][0]:
            found[name] = (begin, f"{gpu}:{where}")
    return {name: where for name, (_, where) in found.items()}


def arrivals(*profiles: str, seconds: float = 100.0) -> list[Job]:
    """Return one job a second (a, b, c, ...), all long."""
    return [job("abcdefghijkl"[number], number, profile, seconds) for number, profile in enumerate(profiles)]
