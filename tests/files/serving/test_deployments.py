"""Deployments, and the results of deploy, as files."""

import dataclasses
import json

import pytest
from documents import DELETE, DEPLOYMENT, SERVICES, changed, complaints, refused, round_trip, text_file
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_files import deployments, names

from mig_opt import Deployment, DeploymentResult, Segment, Status
from mig_opt.files.documents import rendered
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.deployment_results import DEPLOYMENT_RESULT as DEPLOYMENT_RESULT_FILE
from mig_opt.files.serving.deployment_results import deployment_result_summary
from mig_opt.files.serving.deployments import DEPLOYMENT as DEPLOYMENT_FILE
from mig_opt.files.serving.deployments import import_deployment

HEADER = "Num instance,Num GPU,Model,Placement,Instance size,Batch size,Num proc"


@st.composite
def results(draw: st.DrawFn) -> DeploymentResult:
    whole = st.integers(min_value=0, max_value=2**40)
    return DeploymentResult(
        draw(st.sampled_from(Status)),
        draw(names),
        draw(st.none() | deployments()),
        draw(whole),
        draw(st.floats(min_value=0, max_value=1e9)),
        reason=draw(st.just("") | names),
        proven=tuple(draw(st.lists(names, max_size=3))),
        seed=draw(whole),
        versions=draw(st.dictionaries(names, names, max_size=2)),
    )


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(deployments())
def test_round_trip(deployment):
    round_trip(DEPLOYMENT_FILE, deployment)


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(results())
def test_result_round_trip(result):
    text = round_trip(DEPLOYMENT_RESULT_FILE, result)
    printed = rendered(deployment_result_summary(result))
    assert list(json.loads(printed)) == [
        *("status", "method", "gpus", "cost", "lower_bound", "compute_slices", "runtime_s", "deployment")
    ]
    assert json.loads(printed).items() <= json.loads(text).items()
    for document in (text, printed):
        if result.deployment is not None:
            assert DEPLOYMENT_FILE.from_json(document) == result.deployment
        else:
            assert complaints(DEPLOYMENT_FILE.from_json, document) == [
                "deployment: must be an object {...}, is null: the run has found no deployment"
            ]


def test_gpus_without_segments_are_read_back_from_csv(tmp_path):
    gpus = ("H100-80GB", "A100-80GB", "H100-80GB", "A100-80GB")
    chat = Segment("chat", 1, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    for deployment in (Deployment(gpus, (chat,)), Deployment(gpus, ())):
        DEPLOYMENT_FILE.write(deployment, tmp_path / "fleet.csv")
        assert DEPLOYMENT_FILE.read(tmp_path / "fleet.csv") == deployment
    spaced = Deployment(gpus, (dataclasses.replace(chat, service="chat "),))
    told = ["segments[0].service: a CSV file loses the space around it; write a JSON file"]
    assert complaints(DEPLOYMENT_FILE.to_csv, spaced) == told


def test_figures_that_are_missing_come_from_the_profiles():
    bare = changed(DEPLOYMENT, ("segments/0/throughput", DELETE), ("segments/0/latency", None))
    unknown = DEPLOYMENT_FILE.from_json(bare)
    assert [(segment.throughput, segment.latency) for segment in unknown.segments] == [(0.0, 0.0)] * 2
    assert json.loads(DEPLOYMENT_FILE.to_json(unknown))["segments"][0].keys() == {
        *("service", "gpu", "profile", "start", "batch", "processes")
    }
    demand = DEMAND.from_json(SERVICES)
    found = DEPLOYMENT_FILE.from_json(bare, demand=demand)
    assert [(segment.throughput, segment.latency) for segment in found.segments] == [(128.69, 0.124)] * 2
    # What the file says stays; what no profile has is not known.
    stated = changed(bare, ("segments/0/throughput", 5), ("segments/1/batch", 9))
    found = DEPLOYMENT_FILE.from_json(stated, demand=demand)
    assert [(segment.throughput, segment.latency) for segment in found.segments] == [(5.0, 0.124), (0.0, 0.0)]
    assert (
        DEPLOYMENT_FILE.from_json(changed(bare, ("segments/0/service", "x")), demand=demand).segments[0].latency == 0.0
    )


def test_what_no_gpu_can_have_is_read_for_the_validator_to_judge():
    first = ("segments/0/profile", "2g.20gb"), ("segments/0/start", 5)
    odd = changed(DEPLOYMENT, *first, ("segments/1/batch", -3), ("gpus/1", "A30"))
    deployment = DEPLOYMENT_FILE.from_json(odd)
    assert (deployment.segments[0].start, deployment.segments[1].batch) == (5, -3)
    refused(deployment.placement, deployment.segments[0])


def test_csv_may_leave_out_figures_and_kinds_and_idle_gpus(tmp_path):
    path = text_file(tmp_path, "gpu,service,profile,start,batch,processes\n2,bert,1g.10gb,0,8,2\n")
    read = DEPLOYMENT_FILE.read(path, gpu="A100-80GB", demand=DEMAND.from_json(SERVICES))
    assert read.gpus == ("A100-80GB",) * 3
    assert read.segments == (Segment("bert", 2, "1g.10gb", 0, 8, 2, 128.69, 0.124),)


def test_import(tmp_path):
    # Starts that overlap, and one where the hardware has none.
    path = text_file(tmp_path, f"{HEADER}\r\n1,0,chat,5,2,16,3\r\n0,7,bert,0,1,8,2\r\n0,7,chat,0,2,16,2\r\n")
    deployment = import_deployment(path, "A100-80GB", demand=DEMAND.from_json(SERVICES))
    assert deployment.gpus == ("A100-80GB", "A100-80GB")
    assert deployment.segments == (
        Segment("chat", 1, "2g.20gb", 5, 16, 3, 0.0, 0.0),
        Segment("bert", 0, "1g.10gb", 0, 8, 2, 128.69, 0.124),
        Segment("chat", 0, "2g.20gb", 0, 16, 2, 0.0, 0.0),
    )
    assert DEPLOYMENT_FILE.read(path, gpu="A100-80GB").segments[1].throughput == 0.0


def test_an_import_needs_the_gpu(tmp_path):
    path = text_file(tmp_path, f"{HEADER}\n0,0,a,0,1,1,x")
    found = complaints(DEPLOYMENT_FILE.read, path)
    assert found[0].startswith("gpu: a CSV file does not name its GPU; give it")
    assert found[1].startswith("line 2, Num proc: must be a whole number")
