"""What guides, tutorials, the reference and bench/README.md quote: mostly settings, and what their blocks show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.batch import exact_plan
from bench.quotes.heuristics import authors
from bench.quotes.quoting import Entry, Given, Quote, Source
from bench.quotes.result_tables import said
from mig_opt import catalogue, get_gpu

# The study of exactness


def _runs(*sections: str) -> list[float]:
    """Return the number of runs of some sections; not a number if they differ."""
    found = [float(sum(len(group.runs) for group in groups)) for groups in _planned(sections)]
    return [found[0] if len(set(found)) == 1 else float("nan")]


def _hours(*sections: str) -> list[float]:
    """Return the hours that each of these sections takes if every run takes its time."""
    return [
        sum(
            min(end for end in (run.time_limit, run.interrupt_after) if end is not None)
            for group in groups
            for run in group.runs
        )
        / 3600
        for groups in _planned(sections)
    ]


def _planned(sections: Sequence[str]) -> list[list[exact_plan.Group]]:
    plan = exact_plan.plan(exact_plan.Options(), sections)
    return [plan[section] for section in sections]


OURS = tuple(name for name in exact_plan.SECTIONS if name != "pyjobshop")  # which is empty where that is not installed
SECTIONS = {
    "| `medium` | {:.0f} | {:.1f} | 30, 50, 100 tasks, 60 s": "medium",
    "| `gpus` | {:.0f} | {:.1f} | 60 tasks on 4 GPUs, 60 s": "gpus",
    "| `handover` | {:.0f} | {:.1f} | 6, 8, 20 tasks": "handover",
    "| `real` | {:.0f} | {:.2f} | the bundled instances with measured times, 60 s": "real",
    "| `limits` | {:.0f} | {:.2f} | how late runs end after 1, 5, 20 s": "limits",
    "| `2-gpus` | {:.0f} | {:.1f} | 20 tasks on 2 GPUs, 60 s": "2-gpus",
    "| `8-gpus` | {:.0f} | {:.1f} | 200 tasks on 8 GPUs, 120 s": "8-gpus",
}


def _row(text: str, section: str) -> Quote:
    return Quote(text, lambda: (*_runs(section), *_hours(section)))


# GPUs


def _operation_seconds(kind: str) -> list[float]:
    """Return the least and the most seconds of a creation or a destruction on any GPU of the catalogue."""
    seconds = [each for gpu in catalogue() for each in getattr(gpu.operation_costs, kind).values()]
    return [min(seconds), max(seconds)]


PAGES: Mapping[str, Sequence[Entry]] = {
    "bench/README.md": (
        Quote("which you fetch, on {:,.0f} batches", lambda: (authors("number"),)),
        Quote("The whole study takes {:.0f} h at the very most", lambda: (sum(_hours(*OURS)),)),
        Quote("| `small` | {:.0f} | minutes ({:.0f}) |", lambda: (*_runs("small"), *_hours("small"))),
        Quote(
            "| `15`, `20`, `25` | {:.0f} each | {:.1f} each |",
            lambda: (*_runs("15", "20", "25"), *_hours("20")),
            holds=lambda: len(set(_hours("15", "20", "25"))) == 1,
        ),
        Quote(
            "| `1000`, `10000` | {:.0f} each | {:.1f}, {:.1f} |",
            lambda: (*_runs("1000", "10000"), *_hours("1000", "10000")),
        ),
        Quote(
            "| `methods` | {:.0f} for each method | {:.0f} for each |",
            lambda: [number / len(exact_plan.exact_methods()) for number in (*_runs("methods"), *_hours("methods"))],
        ),
        *(_row(text, section) for text, section in SECTIONS.items()),
        Quote(
            "python -m bench.fleet.pcie                            # four minutes of one core",
            holds=lambda: 200 < float(said("online_pcie", r"The study took (\d+) s of the processor")[0]) < 280,
        ),
        Given(
            Source.SETTING,
            (
                "time and memory of `simulate`: a million jobs on 10,000 GPUs with every scheduler",
                "frees on fleets of 200 GPUs on 25 nodes in 10 s",
                "fewest GPUs with 99 % of the requests of every service in time",
                "and 3.6 h more with PyJobShop",
                "15, 20 and 25 tasks, 60 s",
                "60 s and 300 s, with the peak memory",
                "(A30, A100), 10 s, 10 s, 60 s",
                "every exact method on 2 to 6 tasks, 20 s",
                "| 3.6 | 8 to 20 tasks without operation costs, 60 s each",
                "(A100, WideTimes, `p_sup` 0.5)",
                "## The goals of `search`",
            ),
        ),
    ),
    "docs/how-to/ask-why-not-shorter.md": (Given(Source.SETTING, ("If the time limit (20 s by default)",)),),
    "docs/how-to/carry-out-a-deployment.md": (Given(Source.SETTING, ("The scripts need bash 4.4 or newer",)),),
    "docs/how-to/control-a-run.md": (
        Given(
            Source.SETTING, ("plan and bound are within 1 %", "stop after 60 s unless", "(`plan_change`: 10 s unless")
        ),
    ),
    "docs/how-to/look-at-a-plan.md": (
        Given(Source.SETTING, ("Fleets of up to 64 GPUs and 5,000 runs",)),
        Given(Source.ONCE, ("One file is about 1.3 MB, of which 1.2 are", "each task adds some 200 bytes")),
    ),
    "docs/how-to/plan-from-what-runs.md": (
        Given(Source.SETTING, ("those in use after 600 s", "that end after 600 s")),
        Given(Source.SHOWN, ("waits for the 120 seconds",)),
    ),
    "docs/how-to/run-a-study.md": (Given(Source.SETTING, ("(paired Student's t, 95 %)",)),),
    "docs/how-to/simulate-requests.md": (
        Given(Source.SETTING, ("falls from 100 % of its requests", "with a 95 % interval", "(to 0.1 % of the value)")),
    ),
    "docs/tutorials/cluster-trace.md": (
        Given(Source.SHOWN, ("a mean flow time below 408.056 seconds", "falls from 576 to 448 seconds")),
    ),
    "docs/tutorials/first-plan.md": (
        Given(
            Source.SHOWN, ("`whisper` needs 18 GB", "ends after 395.58 seconds", "Does it have to take 396 seconds?")
        ),
        Given(Source.GEOMETRY, ("so instances with 5 or 10 GB are too small for it",)),
    ),
    "docs/tutorials/service-fleet.md": (
        Given(
            Source.SHOWN,
            ("2.8 % of the requests", "up to 56 %", "keep 99 % of the requests", "`search` has 7.7 % of slack"),
        ),
    ),
    "docs/tutorials/week-of-batches.md": (
        Given(Source.ONCE, ("It printed 377 s",)),
        Given(Source.SHOWN, ("for another 30 seconds",)),
    ),
    "docs/reference/operation-costs.md": (
        Quote("| `nvml`, the default | {:.2f} to {:.2f} s, by GPU and size |", lambda: _operation_seconds("create")),
        Quote("by GPU and size | {:.2f} to {:.2f} s | measured by the authors", lambda: _operation_seconds("destroy")),
        Given(
            Source.PRINTED,
            (
                "| `nvidia-smi` | 1.0 s | 1.0 s | not published, reported to this project: 1 to 2.4 s for a whole "
                "layout, "
                "1 s to clear a GPU",
                "| `kubernetes` | 4.4 s | 1.0 s | as `nvidia-smi`, and 3.4 s until",
            ),
        ),
    ),
    "docs/reference/service-files.md": (Given(Source.SETTING, ("| 0.5 |", "with a share of 0.45")),),
    "docs/reference/stability.md": (Given(Source.SETTING, ("also after 2.0",)),),
    "docs/reference/traces.md": (
        Quote(
            "each as long as the GPU's own table says ({:.2f} to {:.2f} s)",
            lambda: [each(get_gpu("H100").operation_costs.create.values()) for each in (min, max)],
        ),
        Given(
            Source.SETTING,
            (
                "`pcie_limit` (30.08 GB/s)",
                "is 53 % (`normal-25`), 89 % (`long-25`), 27 % and 45 % (the same with gaps of 50 s)",
            ),
        ),
        Given(Source.ONCE, ("Files of 100,000 jobs are read in 2 s (JSON) and 4 s (CSV) on one core",)),
        Given(
            Source.PRINTED,
            (
                "## Families",
                "3g + 1g + 3g (90 GB) fit on a GPU of 80 GB",
                "A creation takes 0.25 s and a destruction 0.1 s there",
            ),
        ),
    ),
}
