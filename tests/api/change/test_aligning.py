"""Alignment: the new deployment keeps what it is, on the GPUs and start slices on which most of the old one stays."""

from collections import Counter
from itertools import permutations, product

import pytest
from documents import refused
from fleets import deployments, states
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Deployment, Segment, align, get_gpu
from mig_opt.api.change.alignment import arrangements


def on(gpu: int, profile: str, start: int, service: str = "a", batch: int = 1) -> Segment:
    return Segment(service, gpu, profile, start, batch, 1, 10.0, 0.1)


def contents(deployment: Deployment) -> Counter[tuple[str, tuple[tuple[object, ...], ...]]]:
    """Fillings that are beside each other, wherever they are."""
    found = []
    for gpu in {segment.gpu for segment in deployment.segments}:
        fill = sorted((s.profile, s.service, s.batch, s.processes, s.throughput) for s in deployment.on(gpu))
        found.append((deployment.gpus[gpu], tuple(fill)))
    return Counter(found)


def fewest_changes(running: Deployment, deployment: Deployment) -> int:
    """Try every way to number the GPUs and to place their instances."""
    used = sorted({segment.gpu for segment in deployment.segments})
    slots = list(running.gpus) + [deployment.gpus[gpu] for gpu in used]
    best = len(running.segments) + len(deployment.segments)
    for chosen in permutations(range(len(slots)), len(used)):
        if any(slots[slot] != deployment.gpus[gpu] for slot, gpu in zip(chosen, used, strict=True)):
            continue
        total = len(running.segments) + len(deployment.segments)
        for slot, gpu in zip(chosen, used, strict=True):
            segments = deployment.on(gpu)
            old = {(s.profile, s.start, s.service, s.batch) for s in running.segments if s.gpu == slot}
            total -= 2 * max(
                len(old & {(s.profile, p.start, s.service, s.batch) for s, p in zip(segments, order, strict=True)})
                for state in states(deployment.gpus[gpu])
                if len(state) == len(segments)
                for order in permutations(state)
                if all(p.profile.name == s.profile for s, p in zip(segments, order, strict=True))
            )
        best = min(best, total)
    return best


def test_idle_gpus_come_before_new_ones_and_before_those_in_use() -> None:
    running = Deployment(("A30", "A30", "A30"), (on(0, "4g.24gb", 0, "a"), on(2, "4g.24gb", 0, "b")))
    one = Deployment(("A30", "A30"), (on(0, "2g.12gb", 2, "c"), on(1, "4g.24gb", 0, "b")))
    assert [(s.gpu, s.start) for s in align(running, one).segments] == [(1, 2), (2, 0)]
    many = Deployment(("A30",) * 4, tuple(on(gpu, "2g.12gb", 0, "c") for gpu in range(4)))
    aligned = align(running, many)
    assert aligned.gpus == ("A30",) * 3 + ("A30-24GB",)
    assert [s.gpu for s in aligned.segments] == [1, 0, 2, 3]


def test_what_cannot_exist_is_refused() -> None:
    overlapping = Deployment(("A30",), (on(0, "2g.12gb", 0), on(0, "1g.6gb", 1)))
    unknown = Deployment(("A31",), (on(0, "9g", 0), on(1, "2g.12gb", 0)))
    assert refused(align, overlapping, unknown) == [
        "running.segments[1]",
        "deployment.gpus[0]",
        "deployment.segments[1].gpu",
    ]


@given(st.data())
@settings(max_examples=60)
def test_no_alignment_has_fewer_changes(data: st.DataObject) -> None:
    kinds = data.draw(st.sampled_from([("A30", "A30"), ("A30", "A100"), ("A30", "A30", "A30"), ("A100",)]))
    running = data.draw(deployments(tuple(get_gpu(kind).name for kind in kinds), "ab"))
    deployment = data.draw(deployments(running.gpus[: data.draw(st.integers(1, 2))], "ab"))
    aligned = align(running, deployment)
    assert running.changes_to(aligned) == fewest_changes(running, deployment)


@pytest.mark.deep
@given(st.data())
def test_alignment_changes_numbers_and_start_slices_only(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(("A30-24GB", "A100-80GB", "H100-80GB")), min_size=1, max_size=5))
    running = data.draw(deployments(kinds[: data.draw(st.integers(1, 5))]))
    deployment = data.draw(deployments(kinds))
    aligned = align(running, deployment)
    assert contents(aligned) == contents(deployment)
    assert aligned.gpus[: len(running.gpus)] == running.gpus
    assert [s.service for s in aligned.segments] == [s.service for s in deployment.segments]
    assert running.changes_to(aligned) <= running.changes_to(deployment)
    added = {segment.gpu for segment in aligned.segments} & set(range(len(running.gpus), len(aligned.gpus)))
    assert len(added) == len(aligned.gpus) - len(running.gpus), "new GPUs are there to be used"
    assert running.changes_to(align(running, aligned)) == running.changes_to(aligned)
    for gpu in range(len(aligned.gpus)):
        state = {get_gpu(aligned.gpus[gpu]).placement(s.profile, s.start) for s in aligned.on(gpu)}
        assert state in map(set, states(aligned.gpus[gpu]))


@given(st.sampled_from(("A30-24GB", "A100-40GB", "RTX-PRO-6000")), st.data())
def test_arrangements_are_the_placed_states_with_these_profiles(kind: str, data: st.DataObject) -> None:
    gpu = get_gpu(kind)
    state = data.draw(st.sampled_from(states(kind)))
    names = tuple(sorted(place.profile.name for place in state))
    found = [
        {(name, start) for name, starts in places.items() for start in starts} for places in arrangements(gpu, names)
    ]
    expected = [
        {(place.profile.name, place.start) for place in other}
        for other in states(kind)
        if sorted(place.profile.name for place in other) == list(names)
    ]
    assert len(found) == len(expected)
    assert all(places in expected for places in found)


@pytest.mark.deep
@pytest.mark.parametrize("services", [1, 12])
def test_a_thousand_gpus(services: int) -> None:
    """A case with a known answer: the same deployment with its GPUs in another order and its instances moved."""
    gpu = get_gpu("A100-80GB")
    kinds = list(product(gpu.maximal_partitions(), range(services)))
    one, two = [], []
    for number in range(1000):
        state, service = kinds[number % len(kinds)]
        one += [on(number, place.profile.name, place.start, f"s{service}") for place in state]
        moved = arrangements(gpu, tuple(sorted(place.profile.name for place in state)))[-1]
        two += [on(999 - number, name, start, f"s{service}") for name, starts in moved.items() for start in starts]
    running = Deployment((gpu.name,) * 1000, tuple(one))
    assert running.changes_to(align(running, Deployment(running.gpus, tuple(two)))) == 0
