"""Jobs and traces."""

from documents import complaints

from mig_opt import OperationCosts, get_gpu
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace

A30 = get_gpu("A30")
JOB = Job("a", 0.0, {1: 2.0})


def test_operations_have_the_sizes_of_the_gpu() -> None:
    costs = OperationCosts({1: 0.1, 2: 0.1, 3: 0.1}, {1: 0.1, 2: 0.1, 4: 0.1})
    assert complaints(Trace, (JOB,), A30, 1, costs) == [
        "operations.create: has no seconds for size 4 of A30-24GB; add them",
        "operations.create.3: A30-24GB has no instances of 3 compute slices; its sizes are 1, 2, 4",
    ]
    assert Trace((JOB,), A30).operations == A30.operation_costs


def test_profiles_of_a_job() -> None:
    trace = Trace((JOB,), get_gpu("A100"))
    for job, names in (
        (Job("a", 0.0, {2: 1.0, 1: 2.0}), ["1g.5gb", "2g.10gb"]),
        (Job("a", 0.0, {2: 1.0, 1: 2.0}, memory_gb=8.0), ["1g.10gb", "2g.10gb"]),
        (Job("a", 0.0, {2: 1.0, 1: 2.0}, memory_gb=11.0), []),
        (Job("a", 0.0, {2: 1.0, 1: 2.0}, "1g.5gb+me"), ["1g.5gb+me"]),
    ):
        assert [profile.name for profile in trace.profiles(job)] == names


def test_steps_of_memory_are_pairs() -> None:
    for growth, wrong in (
        (5, "memory_growth: must be a tuple, each entry a share of the work with GB, is 5 (int)"),
        (((0.5,),), "memory_growth[0]: must be a tuple with 2 entries, is (0.5,) (tuple)"),
    ):
        assert complaints(Job, "a", 0.0, {1: 2.0}, memory_growth=growth) == [wrong]
