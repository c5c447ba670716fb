"""The assignments within a height: all of them, but for mirror images."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from load_heights import Heights, image
from strategies import batches, whole_seconds

from mig_opt import Batch, get_gpu
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.assignments import Assignments
from mig_opt.loads.tables import HeightTables

A30, A100, RTX = (get_gpu(name) for name in ("A30", "A100", "RTX-PRO-6000"))


def check(batch: Batch, share: float) -> None:
    problem = IntegerBatch(batch)
    assume(len(problem.places) ** len(batch.tasks) <= 1000)
    heights = Heights(problem)
    all_heights = {places: heights.height(places) for places in heights.assignments()}
    lowest, highest = min(all_heights.values()), max(all_heights.values())
    limit = max(0, round(lowest + share * (highest - lowest)))
    tables = HeightTables(problem, limit)
    assert tables.fill(1, lambda: False)
    found = [tuple(places) for places in Assignments(problem, tables).within(limit)]
    assert len(set(found)) == len(found)
    expected = {image(problem, places) for places, height in all_heights.items() if height <= limit}
    # With odd destructions a part of an assignment can be higher than the whole; then no schedule is so short.
    odd = any(place.create + place.destroy < other.destroy for place in problem.places for other in problem.places)
    assert odd or expected <= {image(problem, places) for places in found}
    waits = any(node.wait_one or node.wait_two for node in tables.tree.nodes)
    # Where either of two neighbours can wait, some are listed for which neither is enough: they do no harm.
    assert waits or {image(problem, places) for places in found} <= expected


@given(
    batches(st.sampled_from([A30, RTX]), max_tasks=4, max_gpus=1, times=whole_seconds),
    st.sampled_from([0, 0.1, 0.5, 1]),
)
@settings(max_examples=60)
def test_all_assignments_within_a_height(batch: Batch, share: float) -> None:
    check(batch, share)


@given(batches(st.sampled_from([A30, A100]), max_tasks=2, max_gpus=2), st.sampled_from([0, 0.2, 1]))
@settings(max_examples=40)
def test_all_assignments_within_a_height_on_several_gpus(batch: Batch, share: float) -> None:
    check(batch, share)
