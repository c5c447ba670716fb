"""Most whole GPUs or nodes free: by hand, against brute force, and the rounds in which pods move."""

import dataclasses
import random
from collections import Counter

import pytest
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from migration_search import distances, looks_of
from state_forms import state_from_text

from mig_opt import FleetState, HeldInstance, Migration, Status, defragment, get_gpu
from mig_opt.api.defragment.emptied import emptying_moves
from mig_opt.api.defragment.problem import FleetMasks
from mig_opt.api.defragment.rounds import rounds_of
from mig_opt.validation import validate_migrations
from mig_opt.validation.violations import MigrationViolationCode as Code

A100, A30 = get_gpu("A100"), get_gpu("A30")


def at(*places: str, model: str = "A100", nodes: tuple[str, ...] = (), gpus: int | None = None) -> FleetState:
    """Instances such as ``0:1g.5gb@2``, or ``0:1g.5gb@2=web*3`` with an owner and a weight."""
    held = []
    for text in places:
        place, _, rest = text.partition("=")
        owner, _, weight = rest.partition("*")
        gpu, _, instance = place.partition(":")
        profile, _, start = instance.partition("@")
        held.append(HeldInstance(int(gpu), profile, int(start), place, owner=owner, weight=int(weight or 1)))
    count = gpus or max((h.gpu for h in held), default=0) + 1
    return FleetState(get_gpu(model), count, tuple(held), nodes=nodes)


def test_weights_decide_which_gpu_is_emptied() -> None:
    """Two light instances move in place of one that weighs three."""
    result = defragment(at("0:1g.5gb@0=db*3", "1:1g.5gb@0", "1:1g.5gb@1"), free="gpus")
    assert (result.free, result.objective, len(result.migrations or ())) == ((1,), 2, 2)
    assert defragment(at("0:1g.5gb@0", "1:1g.5gb@0", "1:1g.5gb@1"), free="gpus").free == (0,)


def test_pods_that_may_not_be_disrupted_stay_and_idle_instances_do_not_count() -> None:
    state = at("0:1g.5gb@0=web", "1:1g.5gb@0", "1:1g.5gb@1")
    result = defragment(dataclasses.replace(state, budgets={"web": 0}), free="gpus")
    assert result.free == (1,)
    assert {step.name for step in result.migrations or ()} == {"1:1g.5gb@0", "1:1g.5gb@1"}
    idle = tuple(dataclasses.replace(held, idle=held.gpu == 0) for held in state.instances)
    assert defragment(dataclasses.replace(state, instances=idle), free="gpus").migrations == ()


def test_the_gpu_of_a_report_on_the_dra_driver() -> None:
    """1g at slices 0, 1 and 5 of an H100 block 3g and 4g (kubernetes-sigs/dra-driver-nvidia-gpu, issue 933).

    4g fits at 0 only, where two are in the way; 3g fits at 4, too, where one is.
    """
    rows = (" 7          0:1", " 8          1:1", "12          5:1")
    table = "".join(f"|   3  MIG 1g.10gb           19       {row}     |\n" for row in rows)
    state = state_from_text(f"| GPU instances:                      |\n{table}", gpu="H100").state
    for wanted, fewest in (("3g.40gb", 1), ("4g.40gb", 2)):
        # There is no room for either before.
        assert not validate_migrations(state, [], room=[(0, wanted, 0)]).valid
        result = defragment(state, [wanted])
        assert (result.status, result.objective, result.lower_bound) == (Status.OPTIMAL, fewest, fewest)
        assert defragment(state, [wanted], most_migrations=fewest - 1).status is Status.INFEASIBLE


def small(seed: int) -> FleetState:
    """A fleet of up to 3 GPUs on up to 2 nodes."""
    rng = random.Random(seed)
    gpu = rng.choice([A30, A100])
    gpus = rng.randint(1, 3)
    placed = list(gpu.placed_states())
    held = [
        HeldInstance(index, p.profile.name, p.start, f"{index}-{p.start}", owner=rng.choice("abc"))
        for index in range(gpus)
        for p in rng.choice(placed)
        if rng.random() < 0.5
    ]
    pinned = rng.random() < 0.2
    held = [dataclasses.replace(one, pinned=pinned and rng.random() < 0.2) for one in held]
    return FleetState(gpu, gpus, tuple(held), nodes=tuple(rng.choice("nm") for _ in range(gpus)))


def brute_force(state: FleetState, free: str, most: int) -> tuple[int, int]:
    """Most units that can be free within a number of migrations, and the fewest for that, of all single moves."""
    nodes = state.nodes if free == "nodes" else tuple(map(str, range(state.gpus)))
    pinned = frozenset((h.gpu, (h.profile, h.start)) for h in state.instances if h.pinned)
    reached = distances(state.gpu, looks_of(state), pinned, most=most)
    used = {looks: {node for node, look in zip(nodes, looks, strict=True) if look} for looks in reached}
    units, fewer = max((len(set(nodes) - used[looks]), -moves) for looks, moves in reached.items())
    return units, -fewer


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.deep) for block in range(1, 20))])
def test_as_many_free_with_as_few_migrations_as_brute_force(block: int) -> None:
    """200 fleets, half of them for GPUs, half for nodes."""
    for seed in range(10 * block, 10 * block + 10):
        state = small(seed)
        free, most = ("gpus", "nodes")[seed % 2], 1 + seed % 3
        result = defragment(state, free=free, most_migrations=most, per_owner=1)
        assert result.status is Status.OPTIMAL, seed
        assert (len(result.free), result.objective) == brute_force(state, free, most), seed
        assert result.most_free == len(result.free)
        assert validate_migrations(state, result.migrations or (), rounds=result.plan.rounds, per_owner=1).valid


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["gpus", "nodes"]), st.integers(1, 3))
def test_rounds_keep_the_limits_of_owners(seed: int, free: str, most: int) -> None:
    state = dataclasses.replace(small(seed), budgets={"a": 1 + seed % 2})
    fleet = FleetMasks.of(state, by_node=free == "nodes")
    migrations = fleet.migrations(state, emptying_moves(fleet, None))
    rounds = rounds_of(state, migrations, most)
    assert validate_migrations(state, migrations, rounds=rounds, per_owner=most).valid
    counts = Counter((number, step.owner) for number, step in zip(rounds, migrations, strict=True))
    assert all(count <= (min(most, 1 + seed % 2) if owner == "a" else most) for (_, owner), count in counts.items())


def test_rounds_that_break_a_rule_are_found() -> None:
    state = at("0:1g.5gb@0=web", "0:1g.5gb@1=web", "1:2g.10gb@0", nodes=("a", "b"))
    steps = [
        Migration(0, "1g.5gb", 0, 1, 2, "x", "web"),
        Migration(0, "1g.5gb", 1, 1, 3),  # the state knows to whom the job belongs
        Migration(1, "2g.10gb", 0, 0, 0, "z"),
    ]

    def codes(*rounds: int, per_owner: int | None = None, budgets: dict[str, int] | None = None) -> list[object]:
        there = dataclasses.replace(state, budgets=budgets or {})
        found = validate_migrations(there, steps, rounds=rounds, per_owner=per_owner)
        return [violation.code for violation in found.violations]

    assert codes(1, 1, 2) == []
    assert codes(1, 1, 1) == [Code.NOT_TOGETHER]
    assert codes(1, 1, 2, per_owner=1) == [Code.TOO_MANY_OF_OWNER]
    assert codes(1, 1, 2, budgets={"web": 1}) == [Code.TOO_MANY_OF_OWNER]
    assert codes(1, 2, 3, per_owner=1) == []
    assert codes(1, 2, 3, budgets={"web": 0})[:2] == [Code.PINNED, Code.PINNED]
    refused(validate_migrations, state, steps, rounds=(1,), match="rounds: has 1 entries for 3 migrations")


def test_a_job_moves_on_after_it_has_arrived() -> None:
    state = at("0:1g.5gb@0")
    steps = [Migration(0, "1g.5gb", 0, 0, 1), Migration(0, "1g.5gb", 1, 0, 2)]
    assert validate_migrations(state, steps, rounds=(1, 2)).valid
    for rounds in ((2, 1), (1, 1)):
        (violation,) = validate_migrations(state, steps, rounds=rounds).violations
        assert (violation.code, violation.path) == (Code.NOT_TOGETHER, "migrations[1]")


def test_wrong_arguments() -> None:
    assert refused(defragment, at("0:1g.5gb@0"), free="racks", per_owner=0) == ["per_owner", "free"]
    refused(defragment, at("0:1g.5gb@0"), free="nodes", match="add its nodes")
