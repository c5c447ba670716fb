"""Pictures of deployments, of days and of latencies."""

import dataclasses
import random
from collections.abc import Sequence

import pytest
from charts import artists, assert_labels_inside, assert_texts_apart, extent, key
from demands import A30, one_model
from documents import refused
from matplotlib.figure import Figure
from matplotlib.text import Text

from mig_opt import Deployment, Device, GpuModel, OperationCosts, RateTable, Segment, deploy_day, get_gpu, plot
from mig_opt.gpu.model import KNOWN
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.views.serving.deployments import rows_of

MODELS = ["bert-large", "densenet-121", "densenet-169", "inceptionv3", "mobilenetv2", "resnet-50", "vgg-16", "vgg-19"]
LONG = [
    "recommendation-service-for-the-landing-page-europe-west",
    "chat-assistant/llama-3-8b-instruct-quantised-int4",
    "speech to text (Deutsch, Français)",
    "$x^2$ _pricing_ {",
    "two\nlines",
    "検索ランキング",
]


def segment(service: str, gpu: int, profile: str, start: int, throughput: float = 100.0) -> Segment:
    return Segment(service, gpu, profile, start, batch=8, processes=2, throughput=throughput, latency=0.05)


def fleet(count: int, names: Sequence[str], kinds: Sequence[str] = ("A100-80GB",), patterns: int = 1000) -> Deployment:
    """GPUs cut at random, with a limit on those that differ."""
    rng = random.Random(count)
    made: list[tuple[str, list[tuple[str, str, int]]]] = []
    segments = []
    gpus = []
    for gpu in range(count):
        if len(made) < patterns:
            kind = rng.choice(kinds)
            partition = rng.choice(get_gpu(kind).maximal_partitions("double-memory"))
            here = [(rng.choice(names), p.profile.name, p.start) for p in partition if rng.random() < 0.9]
            made.append((kind, here))
        kind, here = made[gpu % len(made)]
        gpus.append(kind)
        segments += [segment(name, gpu, profile, start) for name, profile, start in here]
    return Deployment(tuple(gpus), tuple(segments))


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize(
    ("deployment", "rows"),
    [
        (fleet(3, MODELS), 3),
        (fleet(16, LONG), 16),
        (fleet(9, MODELS + LONG, ("A100-80GB", "A30", "RTX-PRO-6000-96GB")), 9),
        (fleet(60, MODELS + LONG, patterns=43), 43),
    ],
)
def test_texts_fit_into_their_places_and_keep_apart(deployment, rows):
    figure = plot(deployment)
    assert len(artists(figure, "row:")) == rows
    assert artists(figure, "label:")
    assert_labels_inside(figure, "segment:")
    assert_texts_apart(figure)


def wordings(figure: Figure, prefix: str) -> dict[str, str]:
    return {gid: text.get_text() for gid, text in artists(figure, prefix).items() if isinstance(text, Text)}


def test_segments_say_what_they_are_or_at_least_the_number_of_their_service():
    names = ["chat", LONG[0]]
    roomy = plot(Deployment(("A30",), (segment(names[0], 0, "4g.24gb", 0),)))
    assert wordings(roomy, "label:") == {"label:0": "chat\n4g.24gb · 8 x 2"}
    # 41 kinds of GPUs are in two columns, whose slices are narrow.
    narrow = fleet(41, ["x" * 60, "y"])
    labels = wordings(plot(narrow), "label:")
    assert len(labels) == len(narrow.segments)
    for gid, wording in labels.items():
        service = narrow.segments[int(gid.removeprefix("label:"))].service
        assert wording.startswith((service[:4], "#1" if service == "x" * 60 else "#2"))


def slices(figure: Figure, prefix: str, of: int = 8) -> dict[str, tuple[int, int]]:
    """The memory slices that artists cover."""
    found = {}
    for gid, patch in artists(figure, prefix).items():
        left, right, _, _ = extent(patch)
        unit = figure.axes[0].get_xlim()[1] / of
        found[gid] = (round(left / unit), round(right / unit))
    return found


@pytest.mark.parametrize("kind", ["A100-40GB", "A30", "RTX-PRO-6000-96GB"])
def test_waste_is_that_of_the_deployment_for_every_partition(kind):
    model = get_gpu(kind)
    for partition in model.maximal_partitions("double-memory"):
        deployment = Deployment((kind,), tuple(segment("a", 0, p.profile.name, p.start) for p in partition))
        (row,) = rows_of(deployment)
        lost = sum(len(row.lost(part)) // row.per_compute_slice for _, part in row.segments)
        wasted = len(list(row.unused())) + lost
        assert wasted / model.compute_slices == pytest.approx(deployment.external_fragmentation)


def test_equal_gpus_share_a_row_if_there_are_many():
    layout = [("a", "1g.6gb", 0), ("b", "2g.12gb", 2)]

    def build(count: int) -> Deployment:
        segments = [segment(name, gpu, profile, start) for gpu in range(count) for name, profile, start in layout]
        other = [segment("c", count, "4g.24gb", 0)]
        return Deployment(("A30",) * (count + 2), tuple(segments + other))

    few = plot(build(14))
    assert len(artists(few, "row:")) == 16
    many = plot(build(15))
    assert list(wordings(many, "row:").values()) == ["15 x GPU\n0-14", "GPU 15", "GPU 16"]
    known = plot(dataclasses.replace(build(15), devices=tuple(Device(gpu + 2, "n1") for gpu in range(16))))
    assert list(wordings(known, "row:").values()) == ["15 x GPU\n2-16 of n1", "GPU 17 of n1", "GPU 16 (new)"]
    assert list(wordings(many, "empty:").values()) == ["no segment"]


@pytest.mark.deep
def test_of_very_many_kinds_the_most_frequent_are_drawn():
    segments = [
        Segment("a", gpu, "4g.24gb", 0, batch=1 if gpu % 2 else gpu, processes=1, throughput=9.0, latency=0.1)
        for gpu in range(500)
    ]
    figure = plot(Deployment(("A30",) * 500, tuple(segments)))
    assert len(artists(figure, "row:")) == 200
    assert "row:1" in artists(figure, "row:")
    assert "51 more GPUs are not drawn" in key(figure)


def test_empty_deployments_and_wrong_layouts_are_drawn():
    assert_texts_apart(plot(Deployment((), ())))
    # The published deployments of ParvaGPU have segments that overlap, and starts that there are not.
    wrong = Deployment(("A100-80GB",), (segment("a", 0, "2g.20gb", 5), segment("b", 0, "3g.40gb", 4)))
    assert slices(plot(wrong), "segment:") == {"segment:0": (5, 7), "segment:1": (4, 8)}


def test_what_is_not_there_is_reported_at_once():
    wrong = Deployment(("X9", "A30"), (segment("a", 2, "1g.6gb", 0), segment("b", 1, "1g.5gb", 0)))
    assert refused(plot, wrong) == ["gpus[0]", "segments[0].gpu", "segments[1].profile"]


def test_changes_that_interrupt_are_drawn_as_such_and_only_plans_are_drawn():
    demand = one_model({"a": 1.0, "b": 1.0}, {1: 100.0, 2: 210.0, 4: 440.0}, A30)
    rates = RateTable((0.0, 3600.0, 7200.0, 10800.0), {"a": (90.0, 400.0, 90.0), "b": (200.0, 200.0, 300.0)})
    result = deploy_day(demand, rates, time_limit=20)
    step = result.plan.changed[0]
    broken = list(result.plan.changes)
    segment = result.plan.deployments[0].segments[0]
    broken[step - 1] = dataclasses.replace(broken[step - 1], interrupted=(segment,))
    plan = dataclasses.replace(result.plan, changes=tuple(broken))
    figure = plot(dataclasses.replace(result, plan=plan))
    assert [part for part in figure.axes[0].get_children() if part.get_gid() == "interruptions"]
    refused(plot, dataclasses.replace(result, plan=None), match="with a plan")


def simulation(services: int) -> RequestSimulation:
    def service(number: int) -> ServiceLatencies:
        bins = ((0.02, 50), (0.05 + 0.001 * number, 40), (0.2, 10))
        figures = (0.03, 0.02, 0.15, 0.2, 0.2, 0.2)
        return ServiceLatencies(f"s{number}", 0.1, 100, 10, 0.1, (0.05, 0.2), 10, 2, 0, *figures, bins)

    return RequestSimulation(tuple(map(service, range(services))), (), "poisson", "least-work", 10.0, 1.0, 0, 0.1)


def test_many_services_are_cut_and_those_without_requests_drawn(tmp_path):
    figure = plot(simulation(30))
    assert len([line for line in figure.axes[0].lines if str(line.get_gid()).startswith("service:")]) == 20
    assert any("10 more not drawn" in text.get_text() for text in figure.findobj(Text))
    idle = dataclasses.replace(simulation(1).services[0], requests=0, late=0, late_share=0.0, bins=())
    assert plot(dataclasses.replace(simulation(1), services=(idle,)))
    pytest.importorskip("bokeh", reason="draws the pages; the extra html has it")
    odd = dataclasses.replace(simulation(1), services=(dataclasses.replace(idle, name="<i>@x $y"),))
    plot(odd, to=tmp_path / "odd.html")
    assert "&#60;i&#62;&#64;x &#36;y" in (tmp_path / "odd.html").read_text("utf-8")


def test_a_gpu_with_fewer_memory_slices_than_compute_slices(monkeypatch):
    small = dataclasses.replace(get_gpu("A30").profiles[0], name="1g.6gb", compute_slices=4, memory_slices=1)
    small = dataclasses.replace(small, memory_gb=6, max_count=2, starts=(0, 1))
    costs = OperationCosts({4: 0.1}, {4: 0.1})
    monkeypatch.setitem(KNOWN, "narrow", GpuModel("NARROW", "a board", 12, 2, 8, (small,), costs))
    figure = plot(Deployment(("NARROW",), (segment("a", 0, "1g.6gb", 0),)))
    assert slices(figure, "segment:", 2) == {"segment:0": (0, 1)}
    assert slices(figure, "unused:", 2) == {"unused:0:1": (1, 2)}
