"""The commands serve and export: rates that are shown, and usages to be pasted."""

from freeze import HERE
from services_file import fleet, services


def test_the_usage_of_an_export_can_be_pasted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, word in ((tmp_path / "a b", f"'{tmp_path}/a b'"), ("./-c", "./-c")):
        outcome = run("services", "export", services(tmp_path), fleet(tmp_path), folder, "--format", "haproxy")
        assert f"Usage: cd {word} && haproxy -f haproxy.cfg\n" in outcome.err + outcome.out


def test_idle_instances_that_are_in_the_way_are_told(run, tmp_path):
    given = "--format", "triton", "--from", HERE / "inputs" / "state-a30.json"
    outcome = run("services", "export", services(tmp_path), fleet(tmp_path), tmp_path / "servers", *given)
    assert outcome.err.startswith("note: 1 idle instance of the state counts as free slices: destroy what is in the")


def test_rates_over_time_are_those_that_are_shown(run, tmp_path):
    (tmp_path / "rates.csv").write_text("time,chat,search\n0,0.5,0.5\n100,,\n")
    outcome = run("serve", fleet(tmp_path), "--services", services(tmp_path), "--rates", tmp_path / "rates.csv")
    assert outcome.code == 0, outcome.err
    (line,) = [line.split() for line in outcome.out.splitlines() if line.startswith("chat ")]
    assert 0.2 < float(line[1]) < 1.0
