"""The validator of migrations: each rule is broken once."""

import pytest

from mig_opt import FleetState, HeldInstance, InputError, Migration, get_gpu
from mig_opt.validation import MigrationViolationCode as Code
from mig_opt.validation import validate_migrations

A100 = get_gpu("A100")
STATE = FleetState(
    A100,
    2,
    (
        HeldInstance(0, "1g.5gb", 0, "chat"),
        HeldInstance(0, "2g.10gb", 4, "train"),
        HeldInstance(1, "4g.20gb", 0, "large"),
        HeldInstance(1, "1g.5gb", 6, "stays", pinned=True),
    ),
)
TO_6 = Migration(0, "1g.5gb", 0, 0, 6)


def codes(*migrations: Migration, **promises: object) -> list[tuple[Code, str]]:
    found = validate_migrations(STATE, migrations, **promises)  # type: ignore[arg-type]
    assert found.valid == (not found.violations)
    return [(Code(violation.code), violation.path) for violation in found.violations]


@pytest.mark.parametrize(
    ("migrations", "expected"),
    [
        ([Migration(0, "1g.5gb", 1, 0, 6)], [(Code.NOTHING_THERE, "migrations[0]")]),
        ([Migration(5, "1g.5gb", 1, 0, 6)], [(Code.NOTHING_THERE, "migrations[0]")]),
        ([TO_6, TO_6], [(Code.NOTHING_THERE, "migrations[1]")]),
        ([Migration(1, "1g.5gb", 6, 0, 6)], [(Code.PINNED, "migrations[0]")]),
        ([Migration(0, "1g.5gb", 0, 2, 6)], [(Code.UNKNOWN_GPU, "migrations[0]")]),
        ([Migration(0, "1g.5gb", 0, 0, 7)], [(Code.UNKNOWN_PLACEMENT, "migrations[0]")]),
        ([Migration(0, "1g.5gb", 0, 0, 4)], [(Code.INSTANCES_OVERLAP, "migrations[0]")]),
        # 4g starts at 0 only, so there is no second one beside it; 2g has room once 1g has left.
        ([Migration(1, "4g.20gb", 0, 0, 0)], [(Code.INSTANCES_OVERLAP, "migrations[0]")]),
        ([TO_6, Migration(1, "4g.20gb", 0, 0, 0)], []),
        # What the replica takes is taken while the old instance exists.
        ([Migration(0, "1g.5gb", 0, 0, 0)], [(Code.INSTANCES_OVERLAP, "migrations[0]")]),
    ],
)
def test_single_rules(migrations: list[Migration], expected: list[tuple[Code, str]]) -> None:
    assert codes(*migrations) == expected


def test_promises() -> None:
    found = validate_migrations(STATE, [TO_6])
    assert str(found) == f"valid, fragmentation {found.fragmentation:.3f}"
    assert codes(TO_6, room=[(0, "3g.20gb", 0), (1, "2g.10gb", 4)], within_gpus=True, most_migrations=1) == []
    away = Migration(0, "1g.5gb", 0, 1, 4)
    assert codes(away, within_gpus=True) == [(Code.OTHER_GPU, "migrations[0].to_gpu")]
    assert codes(TO_6, most_migrations=0) == [(Code.TOO_MANY_MIGRATIONS, "migrations")]
    assert codes(fragmentation=0.0) == [(Code.TOO_FRAGMENTED, "fragmentation")]
    assert codes(room=[(0, "4g.20gb", 0), (0, "2g.10gb", 2)]) == [(Code.NO_ROOM, "room[0]")]
    # One after the other: the second one is in the way of the third.
    assert codes(TO_6, room=[(0, "2g.10gb", 0), (0, "3g.20gb", 0)]) == [(Code.NO_ROOM, "room[1]")]


def test_no_more_of_a_profile_than_may_exist() -> None:
    state = FleetState(A100, 2, (HeldInstance(0, "1g.5gb+me", 0), HeldInstance(1, "1g.5gb+me", 0)))
    (violation,) = validate_migrations(state, [Migration(0, "1g.5gb+me", 0, 1, 3)]).violations
    assert violation.code == Code.TOO_MANY_INSTANCES


def test_all_arguments_that_are_of_another_kind_are_named() -> None:
    with pytest.raises(InputError) as caught:
        validate_migrations(
            STATE,
            [1],  # type: ignore[list-item]
            room=[(0, "4g.20gb"), (0.5, "4g.20gb", 0), (0, "4g.20gb", 0), "abc"],  # type: ignore[list-item]
            fragmentation="none",  # type: ignore[arg-type]
            within_gpus=1,  # type: ignore[arg-type]
            most_migrations=True,
        )
    found = [problem.path for problem in caught.value.problems]
    assert found == ["fragmentation", "within_gpus", "most_migrations", "migrations[0]", "room[3]"]
    with pytest.raises(InputError, match="state: must be a FleetState"):
        validate_migrations("fleet", [])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"room\[1\]: must be a tuple of GPU, profile and start slice"):
        validate_migrations(STATE, [], room=[(0, "4g.20gb", 0), (0.5, "4g.20gb", 0)])  # type: ignore[list-item]
