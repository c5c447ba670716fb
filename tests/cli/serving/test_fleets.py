"""The commands serve and export: options that are refused, and usages to be pasted."""

from command_line import refuses
from services_file import fleet, services


def test_bursts_and_starts_that_would_not_be_simulated_are_refused(run, tmp_path):
    outcome = run("serve", fleet(tmp_path), "--services", services(tmp_path), "--burst", "3,10%,1", "--start-up", 5)
    refuses(outcome, "--burst: is for --arrivals bursty; give that", "--start-up: is for --from; give OLD")


def test_the_usage_of_an_export_can_be_pasted(run, tmp_path):
    outcome = run("services", "export", services(tmp_path), fleet(tmp_path), tmp_path / "a b", "--format", "haproxy")
    assert f"Usage: cd '{tmp_path}/a b' && haproxy -f haproxy.cfg\n" in outcome.err + outcome.out
