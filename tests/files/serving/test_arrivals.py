"""Rates over time and recorded requests as CSV."""

from __future__ import annotations

import pytest

from mig_opt.errors import InputError
from mig_opt.files.serving.arrivals import rates_from_csv, read_rates, read_recorded, recorded_from_csv


def problems(read, text):
    with pytest.raises(InputError) as caught:
        read(text, source="x.csv")
    return [str(problem) for problem in caught.value.problems]


def test_rates_with_times_of_day(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("time,chat,search\n0:00,10,0\n6:30,2.5,4\n23:59:30,,\n")
    table = read_rates(path)
    assert table.times == (0.0, 23_400.0, 86_370.0)
    assert dict(table.rates) == {"chat": (10.0, 2.5), "search": (0.0, 4.0)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,chat\n0,-1\n1,\n", ["line 2, chat: must be a number of requests per second >= 0, is -1"]),
        ("time,chat\n0,x\n1,\n", ["line 2, chat: must be a number of requests per second >= 0, is x"]),
        ("time,chat\n5,1\n3,1\n9,\n", ["line 3, time: times must ascend; 3 s comes after 5 s"]),
        ("time,chat\n5,1\n5,\n", ["line 3, time: times must ascend; 5 s comes after 5 s"]),
        (
            "time,chat\n0,1\n9,1\n",
            ["line 3: the rates of the last row have no end; add a row with a time only, when they end"],
        ),
        ("time,chat\n0,1\ninf,\n", ["line 3, time: must be seconds >= 0 with an end, or a time like 6:30, is inf"]),
        ("time\n0\n", ["line 1: has no column for a service; add one for each, with its requests per second"]),
        ("chat\n0\n", ["line 1: has no column time; add one with seconds or times like 6:30"]),
        ("time,chat\n0,\n", ["needs two rows at least: rates, and the time when they end"]),
        ("", ["is empty; a line with the columns is wanted: time,chat,search"]),
    ],
)
def test_wrong_rates(text, said):
    assert problems(rates_from_csv, text) == said


def test_recorded_requests(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("service,time\nchat,0.5\nsearch,0.5\nchat,7\n")
    assert read_recorded(path) == {"chat": (0.5, 7.0), "search": (0.5,)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,service\n1,chat\n0,chat\n", ["line 3, time: times must ascend; 0 s comes after 1 s"]),
        ("time,service\ninf,chat\n", ["line 2, time: must be seconds >= 0 with an end, or a time like 6:30, is inf"]),
        ("time,service\n1,\n", ["line 2, service: must not be empty"]),
        ("time,name\n1,a\n", ["line 1: has no column service; add one with the names of the services"]),
    ],
)
def test_wrong_recorded_requests(text, said):
    assert [line for line in problems(recorded_from_csv, text) if "unknown column" not in line] == said
