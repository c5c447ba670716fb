"""The validator of admissions finds everything that is wrong, and nothing else."""

from mig_opt import Job, Trace, get_gpu
from mig_opt.errors import Problem, problems_of
from mig_opt.fleet.admission import AcceptedJob, Admission
from mig_opt.models.fleet.admission import admission_optimum
from mig_opt.models.fleet.optimum import trace_optimum
from mig_opt.validation.fleet.admissions import check_admission

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
