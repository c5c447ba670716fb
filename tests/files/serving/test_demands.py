"""Services as files."""

import dataclasses
import json

import pytest
from documents import DELETE, POINT, SERVICES, changed, complaints, flaws, round_trip, text_file
from hypothesis import HealthCheck, given, settings
from serving_files import demands, figures, names

from mig_opt import Demand, GpuPool, Point, ProfileTable, Service, SloRule, get_gpu, schema
from mig_opt.files.serving.demands import DEMAND

A100 = get_gpu("A100-80GB")
BERT = ProfileTable("bert", "A100-80GB", (Point(1, 1, 1, 74.4, 0.013),))
VGG = ProfileTable("vgg", "A100-80GB", (Point(7, 1, 1, 90.0, 0.01),))
ONE_KIND = changed(
    SERVICES, ("pools", DELETE), ("gpu", "A100-80GB"), ("profiles", [{"model": "bert", "points": [dict(POINT)]}])
)


@pytest.mark.deep
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(demands())
def test_round_trip(demand):
    round_trip(DEMAND, demand)
    without = DEMAND.to_json(demand, profiles=False)
    assert DEMAND.from_json(without, tables=demand.tables) == demand
    assert flaws(schema("services"), json.loads(without)) == []


def test_defaults_are_left_out():
    demand = Demand((Service("bert", 0.4, 250.0),), (BERT,), (GpuPool(A100),))
    document = json.loads(DEMAND.to_json(demand))
    assert document == {
        "schema": "mig-opt/services/1",
        "gpu": "A100-80GB",
        "services": [{"name": "bert", "slo": 0.4, "rate": 250.0}],
        "profiles": [
            {"model": "bert", "points": [{"size": 1, "batch": 1, "processes": 1, "throughput": 74.4, "latency": 0.013}]}
        ],
    }
    assert "pools" in json.loads(DEMAND.to_json(demand.replace(pools=(GpuPool(A100, 1),))))


def test_tables_from_elsewhere_take_the_place_of_those_in_the_file():
    demand = DEMAND.from_json(ONE_KIND, tables=iter([VGG, BERT]))
    assert demand.tables == (VGG, BERT)
    assert DEMAND.from_json(changed(ONE_KIND, ("profiles", DELETE)), tables=[BERT]).tables == (BERT,)
    assert complaints(DEMAND.from_json, ONE_KIND, tables=[VGG, VGG]) == [
        "tables[1]: 'vgg on A100-80GB' is that of tables[0] already; each needs its own"
    ]


def test_the_kind_of_gpu_from_elsewhere():
    # The profiles of the file stay those of the kind that was measured.
    demand = DEMAND.from_json(SERVICES, gpu="A30")
    assert demand.pools == (GpuPool(get_gpu("A30")),)
    assert complaints(DEMAND.from_json, ONE_KIND, gpu="A30") == [
        "profiles: none is for A30-24GB; they are for A100-80GB"
    ]
    assert DEMAND.from_json(changed(ONE_KIND, ("gpu", DELETE)), gpu="A100-80GB").tables[0].gpu == "A100-80GB"


def test_a_gpu_with_the_name_of_another_cannot_be_written():
    other = dataclasses.replace(A100, notes="another")
    demand = Demand((Service("bert", 0.4, 250.0),), (BERT,), (GpuPool(other),))
    assert complaints(DEMAND.to_json, demand)[0] == "name: 'A100-80GB' is the name of another GPU; choose another one"


def test_csv(tmp_path):
    text = "\ufeffrate_rps,service,model,slo_s,min_replicas\r\n250,chat,bert,0.4,2\r\n\r\n19.5,bert,,6.5,\r\n"
    demand = DEMAND.read(text_file(tmp_path, text, "mine.CSV"), gpu="A100-80GB", tables=iter([BERT]))
    assert demand.services == (Service("chat", 0.4, 250.0, "bert", 2), Service("bert", 6.5, 19.5))
    assert (demand.name, demand.pools, demand.tables) == ("mine", (GpuPool(A100),), (BERT,))
    assert (demand.rule, demand.max_processes) == (SloRule(), None)


def test_milliseconds_are_exact(tmp_path):
    rows = "\n".join(f"s{n},bert,{n / 10},1" for n in range(1, 500))
    path = text_file(tmp_path, f"service,model,slo_ms,rate_rps\n{rows}")
    services = DEMAND.read(path, gpu="A100-80GB", tables=[BERT]).services
    assert [service.slo for service in services] == [float(f"{n}e-4") for n in range(1, 500)]


SCENARIOS = "scenario,model,slo_latency_ms,request_rate_rps\nS1,bert,6434,19\nS2,bert,418.5,38\nS2,vgg,100,5\n"


def test_scenarios(tmp_path):
    path = text_file(tmp_path, SCENARIOS)
    demand = DEMAND.read(path, scenario="S2", gpu="A100-80GB", tables=[BERT, VGG])
    assert demand.services == (Service("bert", 0.4185, 38.0), Service("vgg", 0.1, 5.0))
    only = text_file(tmp_path, "\n".join(SCENARIOS.splitlines()[:2]), "one.csv")
    assert len(DEMAND.read(only, gpu="A100-80GB", tables=[BERT]).services) == 1
    assert "is no CSV file with a column scenario" in complaints(DEMAND.from_json, SERVICES, scenario="S1")[0]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names.map(str.strip).filter(lambda name: not set(name) & set('\r\n"\x1c\x1d\x1e\x85\u2028\u2029\0')),
    figures,
    figures,
)
def test_csv_says_what_json_says(tmp_path, name, slo, rate):
    path = text_file(tmp_path, f'service,model,slo_s,rate_rps\n"{name}",bert,{slo!r},{rate!r}\n')
    (service,) = DEMAND.read(path, gpu="A100-80GB", tables=[BERT]).services
    assert service == Service(name, slo, rate, "bert")


def test_slos_on_tokens_in_a_table():
    points = (Point(1, 1, 1, 74.4, 0.013, ttft=0.002, itl=0.001),)
    table = ProfileTable("bert", "A100-80GB", points, quantile=0.99, continuous=True)
    text = "service,model,slo_s,slo_ttft_ms,slo_itl_s,rate_rps\nchat,bert,0.5,20.5,,9\ncode,bert,0.5,,0.01,9\n"
    demand = DEMAND.from_csv(text, gpu="A100-80GB", tables=(table,))
    assert demand.services == (
        Service("chat", 0.5, 9.0, "bert", slo_ttft=0.0205),
        Service("code", 0.5, 9.0, "bert", slo_itl=0.01),
    )
    assert DEMAND.from_json(DEMAND.to_json(demand)) == demand
    wrong = text.replace("20.5", "-1").replace(",0.01,", ",soon,")
    assert complaints(DEMAND.from_csv, wrong, gpu="A100-80GB", tables=(table,)) == [
        "line 2, slo_ttft_ms: must be a finite number of milliseconds > 0, is -1.0",
        'line 3, slo_itl_s: must be a number, is "soon"',
    ]
