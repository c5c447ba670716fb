"""Rates over time and recorded requests as CSV."""

from __future__ import annotations

from mig_opt.files.serving.arrivals import read_rates, read_recorded


def test_rates_with_times_of_day(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("time,chat,search\n0:00,10,0\n6:30,2.5,4\n23:59:30,,\n")
    table = read_rates(path)
    assert table.times == (0.0, 23_400.0, 86_370.0)
    assert dict(table.rates) == {"chat": (10.0, 2.5), "search": (0.0, 4.0)}


def test_recorded_requests(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("service,time\nchat,0.5\nsearch,0.5\nchat,7\n")
    assert read_recorded(path) == {"chat": (0.5, 7.0), "search": (0.5,)}
