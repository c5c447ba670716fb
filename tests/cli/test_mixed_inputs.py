"""Inputs of commands that are wrong where GPUs are of several kinds."""

from pathlib import Path

import pytest
from command_line import Command

from mig_opt import Batch, GpuModel, get_gpu, read, write
from mig_opt.batch.batch import LiveInstance
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.gpu.devices import Device

A30, A100 = get_gpu("A30"), get_gpu("A100")
TABLE = "task,gpu,t1_s,t2_s\na,A30,5,3\na,A100,3,2\nb,A100,3,2\nc,A30,9,8\n"
HELD = (HeldInstance(2, "2g.12gb", 0, "x"), HeldInstance(1, "1g.5gb", 0, idle=True))


@pytest.mark.parametrize(
    ("kinds", "order"), [((A30, A100, A30), (0, 2, 1)), ((A30, A30, A100), ()), ((A100, A30, A30), ())]
)
def test_a_table_is_planned_on_the_gpus_of_a_mixed_state(
    run: Command, tmp_path: Path, kinds: tuple[GpuModel, ...], order: tuple[int, ...]
) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    held = tuple(one for one in HELD if one.profile in {profile.name for profile in kinds[one.gpu].profiles})
    write(FleetState(None, 3, held, kinds=kinds), tmp_path / "s.json")
    given = ("--from", tmp_path / "s.json", "--busy-until", 5, "--save-batch", tmp_path / "b.json")
    assert run("solve", tmp_path / "t.csv", *given, "--method", "lpt").code == 0
    batch = read(Batch, tmp_path / "b.json")
    assert {pool.gpu: pool.count for pool in batch.pools} == {A30: 2, A100: 1}
    assert batch.devices == tuple(map(Device, order))
    if order:
        assert batch.initial == (LiveInstance(1, "2g.12gb", 0, 5.0), LiveInstance(2, "1g.5gb", 0))
    # The batch that was written is planned on another state likewise.
    write(batch, tmp_path / "other.json")
    again = run("solve", tmp_path / "other.json", *given, "--method", "lpt")
    assert (again.code, read(Batch, tmp_path / "b.json")) == (0, batch)


def test_a_state_of_other_kinds_is_refused(run: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    write(FleetState(None, 2, (), kinds=(A30, get_gpu("H100"))), tmp_path / "s.json")
    outcome = run("solve", tmp_path / "t.csv", "--from", tmp_path / "s.json")
    assert outcome.code == 2
    assert "the state is of A30-24GB and H100-80GB, and the batch of A30-24GB + A100-40GB" in outcome.err


@pytest.mark.parametrize("command", [("simulate",), ("trace", "describe")])
def test_a_job_that_can_run_nowhere_is_told_with_its_file(run: Command, tmp_path: Path, command: tuple[str]) -> None:
    job = '{"name": "a", "arrival": 0, "times": {"A30": {"1": 5}}, "memory_gb": 7}'
    pools = '[{"gpu": "A100", "count": 1}, {"gpu": "A30", "count": 1}]'
    path = tmp_path / "t.json"
    path.write_text(f'{{"schema": "mig-opt/trace/1", "pools": {pools}, "jobs": [{job}]}}', encoding="utf-8")
    outcome = run(*command, path)
    assert outcome.code == 2
    assert str(path) in outcome.err
    assert "give it seconds on a larger size, or leave it out" in outcome.err
