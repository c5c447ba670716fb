"""Plans of two nodes by each engine, and engines that are refused."""

import shutil

import pytest
from node_plans import BATCH, DEVICES, PLAN, Client, commands, ran

from mig_opt import InputError, run_schedule


def test_a_plan_is_carried_out_and_taken_back(nodes, tmp_path):
    client = Client(nodes, tmp_path, 0.5)
    client.ends(client.start())
    assert sorted(line[:2] for line in ran(tmp_path, "begin")) == [["a", "n1"], ["b", "n1"], ["c", "n2"]]
    assert all(client.seconds_of(task) >= 0.5 for task in "abc")
    (state,) = (tmp_path / "state").glob("*")
    assert state.parent.stat().st_mode & 0o777 == 0o700
    state.rename(tmp_path / "aside")  # as where another engine, or MIG_OPT_STATE, has another folder
    assert "has no journal of this part, which has begun" in client.ends(
        client.start("--undo", str(client.journal)), None
    )
    shutil.rmtree(state)
    (tmp_path / "aside").rename(state)
    client.check()


@pytest.mark.parametrize("address", ["dask://10.0.0.1:8786", "dask://node-1:8786", "dask://", "dask://node", "ssh"])
def test_engines_that_there_are_not_and_a_scheduler_elsewhere_without_tls(address, tmp_path):
    why = "whoever reaches .* without TLS .* certificates" if address[-1:] == "6" else "must be dask://HOST:PORT"
    with pytest.raises(InputError, match=f"engine: {why}"):
        run_schedule(BATCH, PLAN, commands(tmp_path, 0), journal=tmp_path / "j", devices=DEVICES, engine=address)
    assert not (tmp_path / "j").exists()
