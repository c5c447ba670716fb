"""Counters of inference servers: what the services did, beside their plan."""

import dataclasses
import http.server
import itertools
import socket
import threading
from collections.abc import Callable

import pytest
from command_line import refuses
from documents import complaints

from mig_opt import Demand, GpuPool, Point, ProfileTable, Service, deploy, get_gpu, write
from mig_opt.api.deploy.drift import Drift, Observed, demand_now, drifts_of
from mig_opt.operations.observe.server_metrics import observe_services

GPU = get_gpu("A100-80GB")
POINTS = (Point(1, 8, 1, 100.0, 0.08), Point(2, 8, 1, 190.0, 0.042), Point(3, 8, 1, 280.0, 0.028))
DEMAND = Demand(
    (Service("chat", 0.4, 90.0, "bert"), Service("vision", 0.2, 150.0, "resnet50")),
    tuple(ProfileTable(model, GPU.name, POINTS) for model in ("bert", "resnet50")),
    (GpuPool(GPU),),
)


@pytest.fixture(scope="module")
def deployment():
    return deploy(DEMAND).deployment


def triton(model: str, requests: int, batch_us: float, wait_us: float = 0.0, stamp: str = "", failed: int = 0) -> str:
    """Return what a Triton tells after some requests, each in a batch of eight that took so long."""
    own = f'{{model="{model}",version="1"}}'
    figures = {
        "request_success": requests,
        "request_failure": failed,
        "count": requests,
        "exec_count": requests // 8,
        "request_duration_us": requests * (batch_us + wait_us),
        "queue_duration_us": requests * wait_us,
        "compute_input_duration_us": 0,
        "compute_infer_duration_us": requests * batch_us,
        "compute_output_duration_us": 0,
    }
    lines = ["# HELP nv_inference_count Number of inferences performed", "# TYPE nv_inference_count counter"]
    lines += [f"nv_inference_{name}{own} {value}{stamp}" for name, value in figures.items()]
    return "\n".join([*lines, "nv_cpu_utilization 0.25", ""])


Observe = Callable[..., dict[str, Observed]]


@pytest.fixture
def observed(tmp_path):
    """Give what tells of the services by the texts of servers, each in a file."""

    def observe(*texts: str, seconds: float | None = None) -> dict[str, Observed]:
        files = [tmp_path / f"{number}.txt" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        return observe_services(DEMAND, list(map(str, files)), seconds)

    return observe


def test_counters_since_the_start_of_the_servers(observed, deployment):
    one = triton("bert", 54_800, 42_000, 9_000) + triton("resnet50", 30_000, 28_000)
    seen = observed(one, triton("resnet50", 60_000, 28_000), seconds=600)
    assert seen["chat"].latency == pytest.approx(0.051)
    assert seen["chat"].batch == pytest.approx(8, rel=1e-3)
    assert (seen["vision"].requests, seen["vision"].rate) == (90_000, 150.0)
    drifts = drifts_of(DEMAND, deployment, seen)
    assert [drift.reasons for drift in drifts] == [(), ()]
    assert demand_now(DEMAND, drifts) == DEMAND


def test_drifted_rates_and_batches_and_the_deployment_for_them(observed, deployment):
    text = triton("bert", 180_000, 160_000, 400_000, failed=3) + triton("resnet50", 45_000, 20_000)
    drifts = drifts_of(DEMAND, deployment, observed(text, seconds=600))
    planned = drifts[0].batch_seconds
    longer = f"batches take {0.16 / planned:.3g} times as long"
    assert [drift.reasons for drift in drifts] == [
        ("233 % more requests", longer, "mean latency above its SLO", "3 failed"),
        ("50 % fewer requests",),
    ]
    now = demand_now(DEMAND, drifts)
    assert [service.rate for service in now.services] == [300.0, 75.0]
    assert now.tables[0].points[0].latency == pytest.approx(0.08 * 0.16 / planned)
    assert now.tables[1] == DEMAND.tables[1]


def test_latencies_of_tokens_drift_too():
    point = dataclasses.replace(POINTS[0], ttft=0.05, itl=0.01)
    chat = DEMAND.replace(services=DEMAND.services[:1], tables=(ProfileTable("bert", GPU.name, (point,)),))
    (slower,) = demand_now(chat, (Drift(chat.services[0], Observed(9.0, 810, batch_seconds=0.16), 0.08, ()),)).tables
    assert (slower.points[0].ttft, slower.points[0].itl) == (0.1, 0.02)


def test_few_requests_may_differ_by_chance(observed, deployment):
    seen = observed(triton("bert", 70, 42_000) + triton("resnet50", 150, 28_000), seconds=1)
    assert [drift.reasons for drift in drifts_of(DEMAND, deployment.replace(segments=()), seen)] == [(), ()]
    assert [drift.reasons for drift in drifts_of(DEMAND, deployment, seen)] == [(), ()]
    assert drifts_of(DEMAND, deployment, {})[0].reasons == ("no counters",)


def test_several_readings_with_timestamps(observed):
    first, last = triton("bert", 1000, 42_000, stamp=" 1000"), triton("bert", 10_000, 42_000, stamp=" 101000")
    assert observed(first + last)["chat"].rate == 90.0
    assert observed(last + first, seconds=10)["chat"].requests == 1000  # began anew
    assert "must be a sample" in complaints(observed, triton("bert", 1, 1, stamp=f" {'9' * 5000}"))[-1]


def test_counters_of_vllm(observed):
    text = """
vllm:request_success_total{engine="0",finished_reason="stop",model_name="bert"} 80.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="bert"} 10.0
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="bert"} 45.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="bert"} 9.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="bert"} 90.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="bert"} 30.0
vllm:inter_token_latency_seconds_count{engine="0",model_name="bert"} 1500.0
"""
    seen = observed(text, seconds=1)["chat"]
    assert (seen.requests, seen.latency, seen.ttft, seen.itl) == (90, 0.5, 0.1, 0.02)


def test_services_with_one_model_are_told_by_the_names_of_files(tmp_path):
    demand = DEMAND.replace(services=tuple(dataclasses.replace(one, model="bert") for one in DEMAND.services))
    named, other = tmp_path / "vision-0-3g.40gb-0-8x1.txt", tmp_path / "m.txt"
    for file in (named, other):
        file.write_text(triton("bert", 10, 5))
    assert [*observe_services(demand, [str(named)], 1)] == ["vision"]
    assert complaints(observe_services, demand, [str(other)], 1) == [
        "several services have the model 'bert' (chat, vision); give a file that is called after its service"
    ]


def test_all_that_is_wrong_is_told(tmp_path):
    (tmp_path / "a.txt").write_text(triton("bert", 10, 5) + 'x{y="z} 1\nnv_inference_count{model="bert"} many\nword\n')
    (tmp_path / "b.txt").write_text(triton("gpt", 10, 5))
    (tmp_path / "c.txt").write_text("# nothing\nup 1\nno sample\n")
    files = [str(tmp_path / f"{name}.txt") for name in "abc"]
    assert complaints(observe_services, DEMAND, files) == [
        f'{files[0]}, line 13: must be a sample such as name{{label="value"}} 12.5, is "x{{y=\\"z}} 1"',
        f'{files[0]}, line 14: nv_inference_count must be a finite number, is "many"',
        f'{files[0]}, line 15: must be a sample such as name{{label="value"}} 12.5, is "word"',
        f"{files[1]}: no service has the model 'gpt'; known: chat, bert, vision, resnet50",
        f"{files[2]}: has no counters of Triton (nv_inference_...) or vLLM (vllm:...)",
        "seconds: how long was counted? Give it (command line: --seconds S), or URLs of servers",
    ]


@pytest.fixture
def url():
    """A server whose counters grow by 27 requests each time that it is asked; its other pages are no metrics."""
    asked = itertools.count(1)

    class Counters(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            number, others = next(asked), {"/page": b"<p>\n\xff", "/begins": b"up 1\n"}
            told = triton("bert", 27 * number, 42_000).encode()
            self.wfile.write(others.get(self.path, told) if number == 1 or self.path == "/page" else told)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counters) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()


def test_servers_are_asked_twice(url):
    seen = observe_services(DEMAND, [url], 0.3)["chat"]
    assert seen.requests == 27
    assert 0.3 <= seen.seconds < 5


def test_a_counter_that_begins_meanwhile_has_counted_as_long(url, monkeypatch):
    monkeypatch.setattr("mig_opt.operations.observe.server_metrics._MEANWHILE", 0.5)
    seen = observe_services(DEMAND, [url.replace("metrics", "begins")])["chat"]
    assert (seen.requests, seen.seconds) == (54, 0.5)


def test_all_that_do_not_answer_are_told(url, tmp_path):
    def speak(server: socket.socket) -> None:
        with server.accept()[0] as asked:
            asked.sendall(b"\0\0\x18\4")  # no HTTP

    with socket.create_server(("127.0.0.1", 0)) as other:
        speaker = threading.Thread(target=speak, args=(other,))
        speaker.start()
        dead = ["http://127.0.0.1:1/m", "http://127.0.0.1:port/m", f"http://127.0.0.1:{other.getsockname()[1]}/m"]
        told = complaints(observe_services, DEMAND, [*dead, url, str(tmp_path / "none")], 0)
        speaker.join()
    assert sorted(text.partition(": ")[0] for text in told) == sorted([*dead, str(tmp_path / "none")])
    advice = "; give the URL of a server that runs, such as http://HOST:8002/metrics"
    assert sum(": does not answer: " in text and text.endswith(advice) for text in told) == len(dead)
    no_metrics = f"has no counters of Triton (nv_inference_...) or vLLM (vllm:...){advice}"
    assert complaints(observe_services, DEMAND, [url.replace("metrics", "page")], 0) == [no_metrics]


def test_the_command_asks_how_long_was_counted_and_refuses_options_of_simulations(run, tmp_path, deployment):
    services, fleet, metrics = (tmp_path / name for name in ("services.json", "fleet.json", "m.txt"))
    write(DEMAND, services)
    write(deployment, fleet)
    metrics.write_text(triton("bert", 54_000, 42_000))
    refuses(run("serve", fleet, "--services", services, "--compare", metrics), "--seconds: how long was counted?")
    of_simulations = "--arrivals bursty --server triton --router uniform --patience 1 --delay 0 --preferred 8"
    of_simulations += " --overhead 1 --spread 1 --warm-up 0 --seed 1 --promise 99%"
    given = ["--from", fleet, "--partial", *of_simulations.split(), "--compare", metrics, "--seconds", 600]
    told = run("serve", fleet, "--services", services, *given)
    refuses(told, *(f"{word}: is for a simulation" for word in given[:-4] if str(word).startswith("--")))
