"""The library of instances: every entry is right, a changed digit anywhere is noticed, only what is better is taken."""

import dataclasses
import json
import lzma
import re
import shutil
import zlib
from typing import Any
from unittest.mock import Mock

import pytest
from documents import refused

from mig_opt import instance_names, load, simulate, solve
from mig_opt.api.prove import certify
from mig_opt.files.batch.certificates import CERTIFICATE
from mig_opt.files.batch.schedules import SCHEDULE
from mig_opt.instances.bundled import DATA, FILE_KINDS, InstanceInfo, Library, digest_of, library
from mig_opt.instances.fleet.states import generate_state
from mig_opt.instances.goals import GOALS, content_digest, goal_of
from mig_opt.instances.library import PROOFS, problems_of, sealed, submit, write_entry
from mig_opt.instances.serving import generate_demand
from mig_opt.instances.trace_goals import SCHEDULERS
from mig_opt.method import control
from mig_opt.studies.renewal import missing_runs, renew

NAMES = tuple(library().infos)
KINDS = [(info.kind, info.goal, info.evidence) for info in library().infos.values()]
SMALL = "far-1xa100-008-mixed-1"


def changed(text: str) -> str:
    """The text with its last digit changed."""
    *_, last = re.finditer(r"\d", text)
    return f"{text[: last.start()]}{(int(last[0]) + 1) % 10}{text[last.end() :]}"


class Forged(Library):
    """The library with other texts of plans or certificates."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def text(self, part: Any, name: str) -> str | None:
        text = super().text(part, name)
        return changed(text) if text is not None and part == self._part else text


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_right(name):
    info = library().info(name)
    assert verify(library(), name) == []
    assert (info.kind, info.goal) in GOALS
    assert info.evidence in PROOFS
    assert all((info.difficulty, info.best))


# Two of each kind, goal and evidence; the others take longer.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.deep] * (KINDS[:at].count(KINDS[at]) > 1)) for at, name in enumerate(NAMES)],
)
def test_a_changed_digit_is_noticed(name):
    """In the plan, the certificate, the value, the bound and the spec, even if the entry is sealed anew."""
    info = library().info(name)
    higher = info.best.value * 1.001
    moved = dataclasses.replace(info.lower_bound, value=info.lower_bound.value * 0.999)
    assert wrong(Forged("plans"), info)
    assert wrong(library(), dataclasses.replace(info, lower_bound=moved)).startswith("seal")
    for key in ("best", "lower_bound"):
        assert wrong(library(), sealed(info, **{key: dataclasses.replace(getattr(info, key), value=higher)}))
    assert not info.certified or wrong(library(), sealed(info, certified=info.certified * 0.999))
    assert not info.certificate_sha256 or wrong(Forged("certificates"), info)
    if info.spec is not None:
        seed = sealed(info, spec={**info.spec, "seed": info.spec["seed"] + 1000})
        there = Library()
        there.infos = {name: seed}
        assert wrong(there, seed).startswith("sha256")


def verify(there: Library, name: str) -> list[str]:
    return list(problems_of(there, there.info(name)))


def wrong(there: Library, info: InstanceInfo) -> str:
    """Return the problem that is seen first."""
    return next(problems_of(there, info))


def test_seals_and_digests_cover_everything():
    info = library().info(SMALL)
    for field in dataclasses.fields(info):
        if field.name != "seal":
            other = dataclasses.replace(info, **{field.name: "x"})
            assert other.computed_seal() != info.seal
    assert content_digest("batch", load(SMALL).cost_free()) != info.sha256  # operation costs are part of an instance


def test_the_library_has_what_it_says():
    infos = library().infos.values()
    assert {info.kind for info in infos} == set(FILE_KINDS)
    assert {(info.kind, info.goal) for info in infos} == set(GOALS)
    assert len(NAMES) == len(json.loads((DATA / "index.json").read_text())["instances"])
    files = [path for path in DATA.rglob("*") if path.is_file()]
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 600_000  # as in a wheel


def test_figures_that_make_no_instance():
    refused(generate_demand, 3, match="models", models="resnet50")
    state = generate_state(6, gpu="H100", share=0.4, seed=5)
    assert sum(len(state.gpu.placement(one.profile, one.start).footprint) for one in state.instances) <= 0.4 * 6 * 8


def test_names_by_kind():
    assert set(instance_names(drawn=True)) > set(instance_names())
    assert instance_names("state") == ()
    assert sum(len(instance_names(kind, drawn=True)) for kind in FILE_KINDS) == len(NAMES)


@pytest.fixture
def own(tmp_path):
    """A library of one instance, of which only a schedule of FAR is known."""
    info = library().info(SMALL)
    schedule = solve(load(SMALL), "far").schedule
    nothing: Any = {"best": None, "lower_bound": None, "certified": None, "difficulty": "open"}
    bare = sealed(info, **nothing, **dict.fromkeys(("evidence", "plan_sha256", "certificate_sha256"), ""))
    (tmp_path / "index.json").write_text(json.dumps({"instances": [dataclasses.asdict(bare)]}))
    SCHEDULE.write(schedule, tmp_path / "far.json")
    submit(Library(tmp_path), SMALL, tmp_path / "far.json", by="FAR", certificate=None)
    return Library(tmp_path)


def test_a_better_plan_is_taken_and_nothing_else(own, tmp_path):
    batch = load(SMALL)
    before = own.info(SMALL)
    assert verify(own, SMALL) == []
    result = solve(batch)
    path, proof = tmp_path / "best.json", tmp_path / "proof.json"
    SCHEDULE.write(result.schedule, path)
    CERTIFICATE.write(certify(batch, result.schedule, seconds=2.0), proof)
    found = submit(own, SMALL, path, by="Ada \udcff", method="pencil", certificate=proof)  # a byte that is no text
    assert found.improved == ("best", "lower_bound")
    after = Library(tmp_path).info(SMALL)
    assert after.best.value < before.best.value
    assert (after.best.found_by, after.best.method, after.evidence) == ("Ada \udcff", "pencil", "recomputed")
    assert verify(Library(tmp_path), SMALL) == []
    again = submit(Library(tmp_path), SMALL, path, by="Bob", certificate=proof)
    assert again.improved == ()
    assert len(again.reasons) == 2
    assert Library(tmp_path).info(SMALL) == after


def test_a_certificate_for_a_worse_plan_does_not_replace_the_best(own, tmp_path):
    """Though its bound is greater than the one on record."""
    far, best, proof = (tmp_path / f"{name}.json" for name in ("far", "best", "proof"))
    SCHEDULE.write(solve(load(SMALL)).schedule, best)
    submit(own, SMALL, best, by="Ada")
    CERTIFICATE.write(certify(load(SMALL), SCHEDULE.read(far), seconds=0), proof)
    found = submit(Library(tmp_path), SMALL, far, by="Bob", certificate=proof)
    assert (found.improved, "a plan as good as the best known" in found.reasons[-1]) == ((), True)
    assert verify(Library(tmp_path), SMALL) == []


def test_a_plan_that_is_not_valid_or_no_plan_is_not_taken(own, tmp_path):
    text = (tmp_path / "far.json").read_text()
    broken = tmp_path / "broken.json"
    broken.write_text(text.replace('"t001"', '"t002"'))
    found = submit(own, SMALL, broken, by="Ada")
    assert not found.improved
    assert found.judgement.violations
    broken.write_text("{}")
    refused(submit, own, SMALL, broken, match="schema", by="Ada")
    refused(submit, own, SMALL, tmp_path / "far.json", match="must be the name", by=" ")
    refused(submit, own, "nothing", tmp_path / "far.json", match="no bundled instance", by="Ada")
    assert Library(tmp_path).info(SMALL) == own.info(SMALL)


def test_a_plan_below_the_bound_is_a_defect_of_the_library(own, tmp_path):
    info = own.info(SMALL)
    wrong = sealed(info, lower_bound=dataclasses.replace(info.best, value=info.best.value * 1.1))
    own.infos = {SMALL: wrong}
    refused(submit, own, SMALL, tmp_path / "far.json", match="please report it", by="Ada")


def test_a_renewal_goes_on_where_it_was(tmp_path):
    names = (SMALL, "services-005-1", "fleet-004xa100-1", "normal-25-2xa100-012-1", "normal-25-1xa100-030-4")
    names += ("reject-normal-25-1xa100-060-1",)
    kept = ("name", "kind", "title", "goal", "spec", "source", "url", "question")
    unknown = dict.fromkeys(("gpu", "licence", "derivation"), "") | {"n": 0}
    infos = (dataclasses.asdict(library().info(name)) for name in names)
    entries = [{key: info[key] for key in kept} | unknown for info in infos]
    (tmp_path / "index.json").write_text(json.dumps({"instances": entries}))
    here = Library(tmp_path)
    assert len(missing_runs(here.infos.values(), 1)) == len(names)

    with pytest.raises(KeyboardInterrupt):
        renew(here, limit=1, workers=1, told=Mock(side_effect=KeyboardInterrupt))
    assert len(missing_runs(Library(tmp_path).infos.values(), 1)) == len(names) - 1
    there = renew(Library(tmp_path), limit=1, workers=1)
    assert missing_runs(there.infos.values(), 1) == []
    for info in there.infos.values():
        assert verify(there, info.name) == []
        assert info.sha256 == library().info(info.name).sha256
        assert info.best.value >= library().info(info.name).best.value * (1 - 1e-6)
        assert info.lower_bound.method not in SCHEDULERS
    refused(renew, there, match="at least 1 s", limit=0.5)


@pytest.mark.parametrize("name", [SMALL, "services-005-1", "fleet-004xa100-1", "reject-normal-25-1xa100-060-1"])
def test_a_renewal_that_is_interrupted_writes_nothing(name, monkeypatch):
    """Methods end with what they have; it counts as no run of so many seconds."""
    monkeypatch.setattr(control, "interruptibly", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        goal_of(library().info(name)).attempt(load(name), library().info(name).question, 5.0, 1)


def test_a_renewal_seeks_a_better_certificate_for_the_plan_on_record(tmp_path, monkeypatch):
    """Here for one whose prices are as bad as can be; what is not better stays as it is, so prices for a new plan."""
    name = "far-2xa100-2xa30-040-mixed-2"
    info = library().info(name)
    shutil.copytree(DATA, tmp_path / "data")
    here = Library(tmp_path / "data")
    plan = goal_of(info).read(load(name), {}, here.text("plans", name) or "", "")
    bad = certify(load(name), plan, prices=[1] * info.n)
    text = CERTIFICATE.to_json(bad)
    worse = sealed(info, certified=bad.lower_bound, certificate_sha256=digest_of(text), tried_s=0.0)
    here = write_entry(here, worse, certificates=text)
    assert verify(here, name) == []
    there = renew(here, [name], limit=1, workers=1)
    after = there.info(name)
    assert after.certified > bad.lower_bound
    assert verify(there, name) == []
    long = goal_of(info).text(solve(load(name), "lpt").schedule)
    worse = sealed(after, best=dataclasses.replace(after.best, value=1e4), plan_sha256=digest_of(long), tried_s=0.0)
    monkeypatch.setattr("mig_opt.instances.library._PRICING_SECONDS", 0.0)
    assert renew(write_entry(there, worse, plans=long), [name], limit=1).info(name).certified >= after.certified


def test_the_planner_pursues_the_goal_of_the_instance():
    name = "stream-1xa100-3x6-2"
    found = goal_of(library().info(name)).attempt(load(name), {}, 60.0, 1, "planner")
    assert found.value == pytest.approx(simulate(load(name), "planner", goal="flow").metrics.completion.mean)


def test_migrations_that_are_none():
    name = "fleet-008xa100-1"
    goal, state = goal_of(library().info(name)), load(name)
    for text, path in (('{"steps": 3}', "steps"), ('{"steps": [{"gpu": "0"}]}', r"steps\[0\].gpu"), ("[]", "object")):
        refused(goal.read, state, {}, text, "plan.json", match=path)
    step = {"gpu": 0, "profile": "7g.40gb", "start": 0, "to_gpu": 1, "to_start": 0}
    far = goal.read(state, {}, json.dumps({"steps": [step]}), "")
    assert not goal.judge(state, far, library().info(name).question).valid


def test_entries_that_make_no_sense():
    """Told in a line, whatever is in them, even if they are sealed anew."""
    info = library().info(SMALL)
    nothing = dataclasses.replace(info.lower_bound, value=float("nan"))
    services = library().info("services-012-1")
    for changes, problem in (
        ({"lower_bound": nothing, "evidence": "claimed", "difficulty": "open"}, "lower_bound: must be finite, is nan"),
        ({"lower_bound": dataclasses.replace(nothing, value="x")}, "cannot be verified: TypeError"),
        ({"tried_s": float("inf")}, "tried_s: must be finite"),
        ({"kind": "batches"}, "cannot be verified: KeyError"),
        ({"goal": "fun"}, "'fun' is no goal"),
        ({"spec": {"n": 8, "colour": "red"}}, "cannot be verified: spec: of"),
        ({"spec": {"n": "eight"}}, "cannot be verified: "),
        ({"spec": {"n": 0}}, "cannot be verified: n: must be from 1 to 10000000, is 0"),
    ):
        there = Library()
        there.infos = {SMALL: sealed(info, **changes)}
        assert any(problem in found for found in verify(there, SMALL))
    asked = {**library().info("day-04x12-1").question, "margin": -1}
    there.infos = {services.name: sealed(services, goal="GPU-hours", question=asked)}
    assert any("margin" in found for found in verify(there, services.name))


def test_files_that_are_damaged(tmp_path):
    shutil.copytree(DATA, tmp_path / "data")
    here = Library(tmp_path / "data")
    for data in (b"no xz", lzma.compress(b"{")):
        here.packed("plans", SMALL).write_bytes(data)
        assert verify(here, SMALL)
    here.packed("plans", SMALL).unlink()
    assert verify(here, SMALL)
    other = "far-1xa100-010-mixed-1"
    here.packed("certificates", other).write_bytes(b"no xz")
    assert verify(here, other) == ["cannot be verified: Input format not supported by decoder"]
    for text in ("", "{", "[]", "{}", '{"instances": 3}', '{"instances": [3]}'):
        (tmp_path / "data" / "index.json").write_text(text)
        refused(lambda: Library(tmp_path / "data").infos, match=r"index\.json")


def test_wrong_entries_of_the_index_are_told(tmp_path):
    wrong = {"kind": "x", "best": {}, "n": "x", "question": {"rates": {"a": 3}, "times": []}, "spec": {"pools": [{}]}}
    for key, value in [*wrong.items(), ("spec", {"m": 3})]:
        entry = dataclasses.asdict(library().info(SMALL)) | {key: value}
        (tmp_path / "index.json").write_text(json.dumps({"instances": [entry]}))
        assert refused(Library(tmp_path).load, SMALL)[0].removeprefix("instances[0].").startswith(key)
    (tmp_path / "index.json").write_text(json.dumps({"instances": [dataclasses.asdict(library().info(SMALL))] * 2}))
    assert refused(Library(tmp_path).load, SMALL, match="instances") == ["instances[1].name"]
