"""Profile tables from files of benchmarks: real figures are read right, and damage is told with its place."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from documents import complaints

from mig_opt import Point, ProfileTable, import_from
from mig_opt.files.serving.measurements import import_benchmarks

FILES = Path(__file__).parent / "benchmarks"


def table(model: str, *points: Point, **more: Any) -> ProfileTable:
    return ProfileTable(model, "A100-40GB", points, **more)


REAL = {
    "perf-analyzer.csv": ("perf-analyzer", table("perf-analyzer", Point(2, 1, 1, 87.2, 0.011553))),  # 190+11346+17 us
    "profile_export_genai_perf.json": (
        "genai-perf",
        table("gpt2", Point(2, 4, 1, 10.82, 0.23775, ttft=0.01269, itl=0.00223), quantile=0.99, continuous=True),
    ),
    "metrics-model-inference.csv": ("model-analyzer", None),
    "profile_export_aiperf.json": ("genai-perf", None),
    "vllm.json": ("vllm", None),
}


@pytest.mark.parametrize("name", REAL)
def test_real_figures_are_read(name):
    form, expected = REAL[name]
    found = import_from(form, FILES / name, gpu="A100", size=2, batch=1)
    assert found == import_from("benchmark", FILES / name, gpu="A100", size=2, batch=1)
    assert expected in (None, *found)


def test_means_and_other_quantiles():
    (mean,) = import_benchmarks(FILES / "vllm.json", gpu="A100", size=2, quantile=None)
    assert mean.quantile is None
    assert mean.points[0].ttft == 0.054595611443
    (median,) = import_benchmarks(FILES / "vllm.json", gpu="A100", size=2, quantile=0.5)
    assert median.points[0].itl == 0.013098382
    (median,) = import_benchmarks(FILES / "profile_export_aiperf.json", gpu="A100", size=2, quantile=0.5)
    assert median.points[0].latency == 5.7998976245
    wrong = complaints(import_benchmarks, FILES / "metrics-model-inference.csv", gpu="A100", size=2, quantile=0.9)
    assert wrong == ["line 1: has no column p90 Latency (ms)"]


def test_files_of_several_sizes_join_into_one_table_by_their_names(tmp_path):
    for name, batch in (("1g.5gb-b8-p2", 8), ("1g.5gb-b16-p2", 16), ("3g.20gb-b8-p1", 8)):
        path = tmp_path / "bert" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text((FILES / "perf-analyzer.csv").read_text().replace("87.2", str(80 + batch)))
    files = sorted((tmp_path / "bert").iterdir())
    names = "{model}/{profile}-b{batch}-p{processes}.csv"
    (table,) = import_benchmarks(*files, gpu="A100", names=names, memory_gb=3.5)
    assert table.model == "bert"
    assert table.memory_gb == 3.5
    assert [(p.size, p.batch, p.processes, p.throughput) for p in table.points] == [
        (1, 8, 2, 88.0),
        (1, 16, 2, 96.0),
        (3, 8, 1, 88.0),
    ]
    shutil.copy(files[0], tmp_path / "other.csv")
    shutil.copy(files[0], tmp_path / "bert" / "9g.5gb-b8-p2.csv")
    found = complaints(import_benchmarks, *files, *tmp_path.glob("*.csv"), gpu="A100", names=names)
    assert found == [f"{tmp_path}/other.csv: is not called like {names}, as the pattern of names says"]
    (found,) = complaints(import_benchmarks, tmp_path / "bert" / "9g.5gb-b8-p2.csv", gpu="A100", names=names)
    assert "9g.5gb" in found


def test_the_same_way_in_two_files_is_told(tmp_path):
    copy = shutil.copy(FILES / "vllm.json", tmp_path)
    found = complaints(import_benchmarks, FILES / "vllm.json", copy, gpu="A100", size=2)
    assert found == [
        f"{copy}, line {line}: size 2, batch {batch}, processes 1 is in {FILES / 'vllm.json'} already; keep one of them"
        for line, batch in ((1, 31), (2, 147))
    ]


def test_what_no_file_tells_is_asked_once_and_wrong_options_are_told_together():
    found = complaints(import_benchmarks, *[FILES / "perf-analyzer.csv"] * 2, gpu="A100")
    assert [text.partition(":")[0] for text in found] == ["batch", "size"]
    wrong: dict[str, Any] = {"size": 0, "batch": -1, "quantile": 1, "model": "", "names": "{way}.csv", "format": "vlm"}
    assert complaints(import_benchmarks, gpu="A100", **wrong) == [
        "names: unknown {way}; known: model, profile, size, batch, processes",
        "format: no form is called 'vlm'; did you mean vllm?",
        "paths: is missing; name at least one file",
        "model: must not be empty",
        "size: must be from 1 to 2147483647, is 0",
        "batch: must be from 1 to 2147483647, is -1",
        "quantile: must be a share > 0 and < 1, such as 0.99, is 1",
    ]


@pytest.mark.parametrize(("name", "more", "model", "latency"), [
    ("vllm.json", {"max_concurrency": 32, "p99_e2el_ms": 4100.5, "request_rate": "inf"}, "llama", 4.1005),
    # aiperf since 0.10, with its warm-up
    ("profile_export_aiperf.json", {"input_config": {
        "models": {"items": [{"name": "qwen"}]},
        "phases": [{"exclude_from_results": True, "concurrency": 16}, {"type": "concurrency", "concurrency": 32}],
    }}, "qwen", 9.38162894317),
])  # fmt: skip
def test_concurrency_and_the_time_of_whole_requests_are_stated(
    tmp_path: Path, name: str, more: dict[str, Any], model: str, latency: float
) -> None:
    run = json.loads((FILES / name).read_text().replace("}\n{", "}\0{").split("\0")[0])
    path = tmp_path / model / f"{model}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(run | more, indent=1))
    (table,) = import_benchmarks(path, gpu="H100", size=7, names="{model}/{model}.json")
    assert (table.model, table.points[0].batch, table.points[0].latency) == (model, 32, latency)
    (found,) = complaints(import_benchmarks, path, gpu="H100", size=7, names="{model/*.json")
    assert "is not called like {model/*.json" in found
