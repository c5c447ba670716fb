"""The loop against a simulation by events, and against queueing theory."""

import itertools
import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from request_events import batches_of
from triton_batches import triton_batches

from mig_opt import Arrivals
from mig_opt.simulation.serving.outcome import latencies_of
from mig_opt.simulation.serving.service import (
    BATCHES,
    BINS_PER_UNIT,
    LATE_REQUESTS,
    LEAST_LATENCY,
    REQUESTS,
    Router,
    ServedRequests,
    Worker,
)


def alike(batch: int, processes: int, seconds: float, wait: float) -> Worker:
    return Worker(batch, processes, (seconds,) * batch, (seconds,) * batch, wait)


@st.composite
def workers(draw: st.DrawFn) -> Worker:
    batch = draw(st.integers(1, 4))
    busy = tuple(draw(st.integers(1, 8)) / 4 for _ in range(batch))
    answer = tuple(seconds + draw(st.integers(0, 2)) / 4 for seconds in busy)
    preferred = tuple(sorted(draw(st.sets(st.integers(1, batch - 1))))) if batch > 1 else ()
    return Worker(batch, draw(st.integers(1, 3)), busy, answer, draw(st.integers(0, 6)) / 4, preferred)


@given(
    st.lists(workers(), min_size=1, max_size=3),
    st.lists(st.integers(0, 40).map(lambda n: n / 4), min_size=1, max_size=60).map(sorted),
    st.integers(1, 8).map(lambda n: n / 2),
    st.integers(1, 7),
    st.sampled_from([Router.LEAST_WORK, Router.LEAST_CONNECTIONS]),
)
def test_the_loop_does_what_the_events_do(segments, arrivals, slo, chunk, router):
    served = ServedRequests(segments, slo, (0.0, 20.0), rng=np.random.default_rng(0), router=router)
    served.run(np.array(arrivals[at : at + chunk]) for at in range(0, len(arrivals), chunk))
    expected = batches_of(segments, arrivals, router)
    # No request is lost, and none is served twice.
    assert sorted(index for batch in expected for index in batch.requests) == list(range(len(arrivals)))
    # No process has two batches at a time, and no batch is too large.
    ordered = sorted(expected, key=lambda batch: (batch.segment, batch.process, batch.begin))
    for _, own in itertools.groupby(ordered, lambda batch: (batch.segment, batch.process)):
        for one, two in itertools.pairwise(own):
            assert one.released <= two.begin
    counts = served.counted.batches
    for number, worker in enumerate(segments):
        mine = [batch for batch in expected if batch.segment == number]
        assert all(len(batch.requests) <= worker.batch for batch in mine)
        assert counts[number, BATCHES] == len(mine)
        assert counts[number, REQUESTS] == sum(len(batch.requests) for batch in mine)
    latencies = [batch.end - arrivals[index] for batch in expected for index in batch.requests]
    assert counts[:, LATE_REQUESTS].sum() == sum(latency > slo * (1 + 1e-6) for latency in latencies)
    assert served.counted.histogram.sum() == len(arrivals)


@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.sets(st.integers(1, 5), max_size=2),
    st.sampled_from([0.0, 0.01, 0.05, 0.3]),
    st.sampled_from([0.5, 0.07]),
    st.floats(0.1, 1.2),
    st.integers(0, 2**31),
)
def test_batches_are_formed_ahead_as_by_the_batcher_of_triton(size, processes, sizes, delay, look, load, seed):
    preferred = tuple(sorted(one for one in sizes if one < size))
    busy = [0.05 + 0.05 * number / size for number in range(1, size + 1)]
    arrivals = 1 + np.cumsum(np.random.default_rng(seed).exponential(0.1 / (load * size * processes), 100))
    worker = Worker(size, processes, tuple(busy), tuple(busy), delay, preferred, look)
    served = ServedRequests([worker], 1.0, (0.0, 1e6), rng=np.random.default_rng(0))
    served.run([arrivals[:30], arrivals[30:]])
    way = {"size": size, "processes": processes, "delay": delay, "preferred": preferred, "period": look}
    expected = triton_batches(arrivals.tolist(), busy=lambda number: busy[number - 1], **way)
    assert [arrival for _, requests in expected for arrival in requests] == arrivals.tolist()
    assert served.counted.batches[0, BATCHES] == len(expected)
    latencies = [begin + busy[len(requests) - 1] - one for begin, requests in expected for one in requests]
    assert served.counted.totals == pytest.approx(
        [math.fsum(latencies), math.fsum(one * one for one in latencies), min(latencies), max(latencies)]
    )
    bins = np.floor(np.log(np.maximum(np.array(latencies) / LEAST_LATENCY, 1)) * BINS_PER_UNIT).astype(int)
    assert (np.bincount(bins, minlength=35_000) == served.counted.histogram).all()


def test_a_long_queue_gets_more_room_and_keeps_its_order():
    served = ServedRequests([alike(1, 1, 1.0, 0.0)], 1.0, (0.0, 1e4), rng=np.random.default_rng(0))
    served.run([np.arange(3000) / 1000, np.arange(3000, 5000) / 1000])
    # The n-th request is answered at second n + 1.
    assert served.counted.totals[3] == pytest.approx(5000 - 4.999)
    assert served.counted.totals[0] == pytest.approx(sum(n + 1 - n / 1000 for n in range(5000)))


def simulated(worker: Worker, rate: float, requests: float, spread: float = 0.0, seed: int = 1):
    seconds = requests / rate
    rng = np.random.default_rng(seed)
    served = ServedRequests([worker], 1.0, (0.02 * seconds, seconds), spread=spread, rng=rng)
    served.run(Arrivals("poisson").stream("a", rate, seconds, rng))
    return latencies_of("a", 1.0, served)


def md1_quantile(load: float, share: float) -> float:
    """The quantile of the time in an M/D/1 queue with services of 1 (Crommelin), in long decimals: terms cancel."""
    getcontext().prec = 60
    rate = Decimal(repr(load))

    def reached(wait: float) -> float:
        time = Decimal(repr(wait))
        total, factorial = Decimal(0), Decimal(1)
        for k in range(math.floor(wait) + 1):
            factorial *= max(k, 1)
            rest = rate * (k - time)
            total += (rest**k if k else Decimal(1)) / factorial * (-rest).exp()
        return float((1 - rate) * total)

    low, high = 0.0, 200.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < share else (low, middle)
    return low + 1


@pytest.mark.deep
@pytest.mark.parametrize(("load", "requests"), [(0.5, 4e6), (0.8, 1.2e7), (0.95, 2e8)])
def test_m_d_1(load, requests):
    found = simulated(alike(1, 1, 1.0, 0.0), load, requests, seed=2)
    assert found.mean_s == pytest.approx(1 + load / (2 * (1 - load)), rel=0.01)
    assert found.p99_s == pytest.approx(md1_quantile(load, 0.99), rel=0.01)


def mmc(load: float, servers: int) -> tuple[float, float]:
    """Mean and 99 % quantile of the time in an M/M/c queue with services of mean 1."""
    offered = load * servers
    last = offered**servers / math.factorial(servers) / (1 - load)
    waits = last / (sum(offered**k / math.factorial(k) for k in range(servers)) + last)

    def longer(time: float) -> float:
        apart = servers - 1 - offered
        more = time if abs(apart) < 1e-12 else (1 - math.exp(-time * apart)) / apart
        return math.exp(-time) * (1 + waits * more)

    low, high = 0.0, 1000.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if longer(middle) > 0.01 else (low, middle)
    return 1 + waits / (servers - offered), low


@pytest.mark.deep
@pytest.mark.parametrize(("load", "requests"), [(0.5, 4e6), (0.8, 1.2e7), (0.95, 1e8)])
@pytest.mark.parametrize("servers", [1, 3])
def test_m_m_c(load, requests, servers):
    found = simulated(alike(1, servers, 1.0, 0.0), load * servers, requests, math.inf, seed=5)
    mean, quantile = mmc(load, servers)
    assert found.mean_s == pytest.approx(mean, rel=0.01)
    assert found.p99_s == pytest.approx(quantile, rel=0.01)


@pytest.mark.deep
@pytest.mark.parametrize("load", [0.3, 0.8])
@pytest.mark.parametrize("batch", [2, 8])
def test_batch_service(load, batch):
    """A free process takes whoever waits, up to a batch, for an exponential time: queue lengths are geometric."""
    rate = load * batch
    # While the process is busy, q wait with a probability of c r^q: r solves r^(b+1) - (1 + rate) r + rate = 0.
    low, high = 0.0, 1 - 1e-9
    while high - low > 1e-14:
        middle = (low + high) / 2
        low, high = (middle, high) if middle ** (batch + 1) - (1 + rate) * middle + rate > 0 else (low, middle)
    # Idle with a probability of c / rate, and all probabilities add up to 1.
    busy = 1 / (1 / rate + 1 / (1 - low))
    waiting = busy * low / (1 - low) ** 2
    found = simulated(alike(batch, 1, 1.0, 0.0), rate, 8e6, math.inf)
    assert found.mean_s == pytest.approx(waiting / rate + 1, rel=0.01)
