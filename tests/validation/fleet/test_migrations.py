"""The validators of migrations and admissions: each finds everything that is wrong, and nothing else."""

import pytest
from documents import refused

from mig_opt import FleetState, HeldInstance, Job, Migration, Trace, get_gpu
from mig_opt.errors import Problem, problems_of
from mig_opt.fleet.admission import AcceptedJob, Admission
from mig_opt.models.fleet.admission import admission_optimum
from mig_opt.models.fleet.optimum import trace_optimum
from mig_opt.validation import MigrationViolationCode as Code
from mig_opt.validation import validate_migrations
from mig_opt.validation.fleet.admissions import check_admission

A100 = get_gpu("A100")
HELD = (
    HeldInstance(0, "1g.5gb", 0, "chat"),
    HeldInstance(0, "2g.10gb", 4, "train"),
    HeldInstance(1, "4g.20gb", 0, "large"),
    HeldInstance(1, "1g.5gb", 6, "stays", pinned=True),
)
STATE = FleetState(A100, 2, HELD)
TO_6 = Migration(0, "1g.5gb", 0, 0, 6)


def codes(*migrations: Migration, **promises: object) -> list[tuple[Code, str]]:
    found = validate_migrations(STATE, migrations, **promises)
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
    wrong = {"fragmentation": "none", "within_gpus": 1, "most_migrations": True, "rounds": (1, 0, True)}
    room = [(0, "4g.20gb"), (0.5, "4g.20gb", 0), (0, "4g.20gb", 0), "abc"]
    found = refused(validate_migrations, STATE, [1], room=room, **wrong)
    assert found == [*[*wrong][:3], "migrations[0]", "room[0]", "room[1][0]", "room[3]", "rounds[1]", "rounds[2]"]
    refused(validate_migrations, "fleet", [], match="state: must be a FleetState")


TRACE = Trace(
    (
        Job("a", 0.0, {2: 30.0}, "2g.10gb"),
        Job("b", 1.0, {4: 5.0}, "4g.20gb"),
        Job("c", 6.0, {4: 5.0}, "4g.20gb"),
        Job("d", 0.0, {1: 5.0}, memory_gb=8.0),
    ),
    get_gpu("A100"),
    gpus=2,
)


def texts(*accepted: AcceptedJob) -> list[str]:
    return [str(problem) for problem in check_admission(TRACE, Admission(accepted))]


def test_a_job_may_begin_where_another_ends() -> None:
    assert texts(AcceptedJob("b", 0, "4g.20gb", 0), AcceptedJob("c", 0, "4g.20gb", 0)) == []
    assert texts(AcceptedJob("a", 1, "2g.10gb", 4), AcceptedJob("b", 1, "4g.20gb", 0)) == []
    assert texts() == []


def test_instances_that_exclude_each_other() -> None:
    (found,) = texts(AcceptedJob("b", 1, "4g.20gb", 0), AcceptedJob("a", 1, "2g.10gb", 2))
    assert found == "accepted[0]: 'b' on 4g.20gb@0 of GPU 1 begins at 1, while 'a' is on 2g.10gb@2 until 30"
    assert texts(AcceptedJob("b", 1, "4g.20gb", 0), AcceptedJob("a", 0, "2g.10gb", 2)) == []


def test_places_and_jobs_that_there_are_not() -> None:
    wrong = {
        ("x", 0, "2g.10gb", 0): "'x' is no job of the trace",
        ("a", 2, "2g.10gb", 0): "GPU 2 is none of the 2 of the fleet",
        ("a", 0, "2g.10gb", 0): "'a' is accepted twice",
        ("b", 0, "4g.20gb", 4): "4g.20gb",
        ("c", 0, "3g.20gb", 4): "'c' may not run on 3g.20gb",
        ("d", 0, "1g.5gb", 4): "'d' may not run on 1g.5gb",
    }
    found = texts(*(AcceptedJob(*entry) for entry in wrong))
    assert all(words in text for text, words in zip(found, wrong.values(), strict=True))
    assert texts(AcceptedJob("d", 0, "1g.10gb", 4)) == []


def test_what_comes_too_late_to_tell_when_it_ends() -> None:
    """Both jobs hold the whole GPU for 2.5 s; as 1e17 s and 2.5 s are 1e17 s, they seem not to meet."""
    late = Trace(tuple(Job(name, 1e17, {7: 2.5}) for name in "ab"), get_gpu("A100"))
    both = Admission(tuple(AcceptedJob(name, 0, "7g.40gb", 0) for name in "ab"))
    wrong = "is 1e+17 s, where 2.5 s more are lost in rounding; count from a later moment"
    problems = [Problem(f"jobs[{index}].arrival", wrong) for index in range(2)]
    assert check_admission(late, both) == problems
    for optimum in (admission_optimum, trace_optimum):
        assert problems_of(optimum, late) == tuple(problems)
