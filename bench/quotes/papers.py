"""What the pages of the papers quote in the text outside of their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.quotes.heuristics import AS_THEIRS, authors, joined
from bench.quotes.quoting import Entry, Given, Quote, Source
from bench.quotes.result_tables import Table, numbers_of, said, table

# Fragmentation-aware

WORKLOADS = ("normal-25", "long-25", "normal-50", "long-50")
PRINTED = (6, 6, 10, 10)
NEEDS = "What migration needs to shorten execution"
ONE, EACH = "wait + execution, one queue %", "the same, per size %"


def _assumed(assumption: str, column: str) -> list[float]:
    """Return the least and the most of the four workloads by one assumption."""
    return table("online_fragmentation", "Other assumptions").where(assumption).numbers_in(column)


def _shorter(balancing: str, held_up: str = "all jobs, whole link", median: str = "30 s") -> list[float]:
    """Return by how many % migration shortens execution, for each workload."""
    rows = table("online_fragmentation", NEEDS).where({0: held_up, 1: median, 2: balancing})
    return [rows.number(workload) for workload in WORKLOADS]


def _most_above_the_printed(balancing: str) -> int:
    """Return on how many workloads at most any setting is above the printed figures."""
    rows = table("online_fragmentation", NEEDS).where({2: lambda text: text.startswith(balancing)}).rows
    return max(sum(float(cell) > printed for cell, printed in zip(row[3:7], PRINTED, strict=True)) for row in rows)


def _last_ends() -> list[float]:
    """Return by how many % the last end is earlier with all three techniques and one queue."""
    ends = said("online_fragmentation", r"### One queue.*?\| all three, last end \|([^\n]*)")[0]
    return [100 * (1 - end) for end in numbers_of(ends)[::2]]


def _worse(assumption: str) -> list[float]:
    """Return by how many points the gain is less: its least and its most, with both kinds of queue."""
    return [
        before - after
        for column in (ONE, EACH)
        for before, after in zip(_assumed("as above", column), _assumed(assumption, column), strict=True)
    ]


THRESHOLDS = ("threshold 0", "threshold 0.2", "threshold 0.6", "threshold 0.8", "threshold 1")

# MIGM


def _moved(changed: str, mix: str) -> list[float]:
    """Return the throughput of A and B on a mix by a changed assumption."""
    rows = table("online_memory", "How the throughput moves with what is assumed")
    return rows.where({0: lambda text: text.startswith(changed)}).numbers_in(mix)


def _by_one_queue(mix: str) -> float:
    row = table("online_memory", "Throughput and energy of the mixes").where(mix)
    return row.number("A, one queue") - row.number("A")


def _b_is_ahead() -> bool:
    rows = table("online_memory", "Ml2: similar runtimes").where({0: lambda spread: spread in ("0.2", "0.3")}).rows
    return all(numbers_of(cell)[0] < numbers_of(cell)[1] for row in rows for cell in row[2:])


def _language(model: str, jobs: int) -> float:
    rows = table("online_memory", "Language models: prediction against failure")
    return rows.where({0: model, 1: str(jobs), 2: "prediction"}).number("throughput")


MODELS = ("flan-t5-train", "flan-t5", "qwen2", "llama3")


def _restart(assumed: str, model: str) -> list[float]:
    rows = table("online_memory", "Early restart and what is assumed")
    return rows.where({0: lambda text: text.startswith(assumed)}).numbers_in(model)


def _restarts(assumed: str) -> tuple[float, float, float, float]:
    """Return least and most throughput with prediction, and least and most without."""
    pairs = [_restart(assumed, model) for model in MODELS]
    with_it, without = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return min(with_it), max(with_it), min(without), max(without)


def _constant(printed_for: str) -> float:
    return table("online_memory", "Energy").where(printed_for).number(3)


NETWORKS = ("Ml2, scheme A", "Ml2, scheme B", "language models, mean", "language models, best")


def _own_energy() -> tuple[float, float]:
    row = table("online_memory", "Energy that jobs cost themselves").where({"mix": "Ml2", "scheme": "B"})
    return row.number("measured"), row.number("printed")


# PCIe-aware

FOUR = "4 GPUs (the paper's Figures 6 and 7)"
LOWER = "pcie-aware: % lower, mean ± sd (range)"
OTHER = "Other assumptions, 60 % PCIe-bound jobs on 4 GPUs"
MORE = "More instances on each of 4 GPUs (Figure 9; printed: up to 20 %)"
LARGER = "Larger instances for starving jobs (principle 4), 60 % PCIe-bound"
REGRESSION = "Sensitivity by regression (Figure 4)"


def _share(share: int, column: str = LOWER) -> float:
    return table("online_pcie", FOUR).where(f"{share}%").number(column)


def _other(assumption: str, column: str = "% lower") -> float:
    rows = table("online_pcie", OTHER)
    return rows.where({0: lambda text: text.startswith(assumption)}).number(column)


NO_WAIT = "without wait threshold"
JOBS = ("30 jobs", "as above: 93 jobs", "300 jobs", "1000 jobs")


def _threshold(delay: str, wait: str = "60 s") -> float:
    """Return by how many % less by thresholds, at 60 % PCIe-bound jobs."""
    return table("online_pcie", "Thresholds, which are not printed: mean % lower", 1).where(wait).number(delay)


def _larger() -> tuple[float, float, float, float]:
    """Return the least and the most share of jobs that ran on larger instances, and change of the flow time, in %."""
    rows = table("online_pcie", LARGER)
    changes, shares = [], []
    for sizes in dict.fromkeys(rows.texts(0)):
        own = rows.where(sizes)
        before, *after = own.numbers("aware, s")
        changes += [100 * (seconds / before - 1) for seconds in after]
        shares += own.numbers("ran on a larger instance")[1:]
    return min(shares), max(shares), min(changes), max(changes)


def _error_of_fit(noise: str) -> float:
    """Return how far a fitted sensitivity is from the true one at most, in %."""
    rows: Table = table("online_pcie", REGRESSION).where({"noise of a run": noise})
    found = zip(rows.numbers("truth (Table 2)"), rows.numbers(3, 1), rows.numbers(3, 2), strict=True)
    return max(100 * abs(value / truth - 1) for truth, *values in found for value in values)


def _believed(times: str) -> float:
    return table("online_pcie", REGRESSION, 1).where(times).number(1)


PAGES: Mapping[str, Sequence[Entry]] = {
    "docs/explanation/papers/far.md": (
        Quote(
            "{:.1f} % shorter in the mean than the program, and on none of {:,.0f} batches longer.",
            lambda: (100 * (1 - authors("far")), authors("number")),
            holds=lambda: authors("far", 1) <= 1.00005,
        ),
        Quote(
            "end {:.1f} % earlier in the mean than with the program's joins, and none of {:,.0f} pairs later by more "
            "than 0.1 %.",
            lambda: (100 * (1 - joined(AS_THEIRS, "mean")), float(said("far_authors", r"Ends of (\d+) pairs")[0])),
            holds=lambda: joined(AS_THEIRS, "above 1.001") == 0,
        ),
        Given(
            Source.PRINTED,
            (
                "r ~ N(0.05, 0.05), the text's N(0.1, 0.1)",
                "with probability 0.3 for each slice",
                "with probability 0.49",
            ),
        ),
    ),
    "docs/explanation/papers/fragmentation.md": (
        Quote(
            "close to the printed 13 to 35 % ({:.0f} to {:.0f} %); with one queue it is above ({:.0f} to {:.0f} %).",
            lambda: (*_assumed("as above", EACH), *_assumed("as above", ONE)),
        ),
        Quote(
            "*without* balancing: {:.0f} to {:.0f} % with a median of 30 s, {:.0f} to {:.0f} % if the load before "
            "the migration counts. With balancing, as printed, it is {:.0f} to {:.0f} % there. No setting that was "
            "tried has all four workloads above the printed figures; without balancing three of them are, with it "
            "two.",
            lambda: [
                each(_shorter(balancing))
                for balancing in ("no balancing", "no balancing, load before", "balancing")
                for each in (min, max)
            ],
            holds=lambda: (_most_above_the_printed("no balancing"), _most_above_the_printed("balancing")) == (3, 2),
        ),
        Quote(
            "{:.2f} to {:.2f} migrations per job. With threshold 0 no GPU is lazy, so there is no balancing, and "
            "jobs migrate within their GPU only: {:.2f} to {:.2f} migrations per job, no longer waiting times, and "
            "a sum at most {:.0f} points worse.",
            lambda: (
                *_assumed("as above", "migrations per job"),
                *_assumed("threshold 0", "migrations per job"),
                max(_worse("threshold 0")),
            ),
            holds=lambda: all(
                _assumed("threshold 0", column)[0] >= _assumed("as above", column)[0]
                for column in ("wait, one queue %", "wait, per size %")
            ),
        ),
        Quote(
            "changes little ({:.0f} to {:.0f} % with one queue)",
            lambda: (abs(min(_last_ends())), max(_last_ends())),
        ),
        Quote(
            "gaps twice as long leave a gain of {:.0f} to {:.0f} % with a queue for each size, gaps half as long "
            "one of {:.0f} to {:.0f} %. Operations 50 times as long cost {:.0f} to {:.0f} points, any threshold at "
            "most {:.0f}.",
            lambda: (
                *_assumed("gaps x 2", EACH),
                *_assumed("gaps x 0.5", EACH),
                min(_worse("operations x 50")),
                max(_worse("operations x 50")),
                max(worse for threshold in THRESHOLDS for worse in _worse(threshold)),
            ),
        ),
        Given(Source.PRINTED, ("The printed 6 and 10 %",)),
    ),
    "docs/explanation/papers/migm.md": (
        Quote(
            "With 2.25 times Ht2 becomes {:.2f} / {:.2f} and Ht3 {:.2f} / {:.2f} (printed {:.2f} / {:.2f} and "
            "{:.2f} / {:.2f}), but Ht1 {:.2f} / {:.2f}. With no slowdown at all Ht1 becomes {:.2f} / {:.2f} "
            "(printed {:.2f} / {:.2f}), but Ht3 {:.2f} / {:.2f}.",
            lambda: (
                *(number for mix in ("Ht2", "Ht3") for number in _moved("1.5 times the seconds", mix)),
                *(number for mix in ("Ht2", "Ht3") for number in _moved("printed", mix)),
                *_moved("1.5 times the seconds", "Ht1"),
                *_moved("2/3 of the seconds", "Ht1"),
                *_moved("printed", "Ht1"),
                *_moved("2/3 of the seconds", "Ht3"),
            ),
        ),
        Quote(
            "on Ht1 to Ht3 that is worth up to {:.2f}.",
            lambda: (max(_by_one_queue(mix) for mix in ("Ht1", "Ht2", "Ht3")),),
        ),
        Quote("With a spread of 0.2 and more B is ahead.", holds=_b_is_ahead),
        Quote(
            "scheme B loses all its gain on Ht2 and Ht3 ({:.2f} and {:.2f}), because it partitions anew for every "
            "second job, and A keeps {:.2f} and {:.2f}.",
            lambda: [_moved("a tenth as long", mix)[scheme] for scheme in (1, 0) for mix in ("Ht2", "Ht3")],
        ),
        Quote(
            "ends later than on the whole GPU ({:.2f}), whatever",
            lambda: (_language("qwen2", 1),),
            holds=lambda: _language("qwen2", 1) == _language("llama3", 1),
        ),
        Quote(
            "With 8 jobs all four models gain {:.2f} to {:.2f}.",
            lambda: [each(_language(model, 8) for model in MODELS) for each in (min, max)],
        ),
        Quote(
            "the share of that constant: {:.0f} % for Rodinia, {:.0f} to {:.0f} % for networks.",
            lambda: (_constant("best homogeneous mix"), min(map(_constant, NETWORKS)), max(map(_constant, NETWORKS))),
        ),
        Quote("what remains is Ml2 with B ({:.2f}, printed {:.2f}).", _own_energy),
        Quote(
            "(Llama 3, 8 jobs: {:.2f} against {:.2f}; FLAN-T5: {:.2f} against {:.2f} and {:.2f} against {:.2f}).",
            lambda: [number for model in ("llama3", *MODELS[:2]) for number in _restart("noise 1 GB", model)],
        ),
        Quote(
            "late and predictably: {:.2f} to {:.2f} against {:.2f} to {:.2f} if small instances take three times "
            "the seconds.",
            lambda: _restarts("3 times as slow"),
        ),
        Quote(
            "prediction gains almost nothing ({:.2f} to {:.2f} with it, {:.2f} to {:.2f} without).",
            lambda: _restarts("10 GB run out at 9/10"),
        ),
        Given(
            Source.SETTING,
            (
                "to take 1.5 times the seconds of the whole GPU",
                "are assumed to take 1.13 times as long on one slice",
                "**Operations** take 0.16 to 0.24 s each",
                "jobs for which 20 GB would suffice are sent to the whole GPU, and with noise of 1 GB",
                "so that 10 GB are exceeded",
            ),
        ),
        Given(
            Source.PRINTED,
            (
                "the best printed 6.20 because their last round is not full: 50 jobs on seven instances take 8 "
                "rounds, 100 "
                "take 15, which is 6.25 and 6.67 at most.",
                "(7 / 6.2), and 6.25 / 1.13 = 5.5, 6.67 / 1.13 = 5.9; so the printed figures allow a factor of "
                "almost 1 (Hm2) "
                "or 1.08",
            ),
        ),
    ),
    "docs/explanation/papers/pcie.md": (
        Quote(
            "choosing the GPU of least slowdown alone is worth {:.0f} %, and load balancing that knows nothing of "
            "PCIe {:.0f} %.",
            lambda: (_share(60, "without delay threshold"), _share(60, "load balancing")),
        ),
        Quote(
            "only up to 60 %**, then falls to {:.0f} %.",
            lambda: (_share(100),),
            holds=lambda: max((20, 40, 60, 80, 100), key=_share) == 60,
        ),
        Quote(
            "keeps growing: {:.0f}, {:.0f} and {:.0f} % at 60, 80 and 100 %.",
            lambda: [_share(share, NO_WAIT) for share in (60, 80, 100)],
        ),
        Quote(
            "With 30, 93, 300 and 1000 jobs it is {:.0f}, {:.0f}, {:.0f} and {:.0f} %; without a wait threshold "
            "{:.0f}, {:.0f}, {:.0f} and {:.0f} %. With all jobs at once it is {:.0f} %, without the threshold "
            "{:.0f} %.",
            lambda: (
                *map(_other, JOBS),
                *(_other(jobs, NO_WAIT) for jobs in JOBS),
                _other("all jobs at once"),
                _other("all jobs at once", NO_WAIT),
            ),
        ),
        Quote(
            "and a third of the gain is lost, or most of it without a wait threshold. 1.5 and 2 are equally good "
            "at 60 %.",
            holds=lambda: (
                all(0.6 < _threshold(delay) / _threshold("1.5") < 0.75 for delay in ("1", "1.25"))
                and all(_threshold(delay, "none") < 0.25 * _threshold("1.5", "none") for delay in ("1", "1.25"))
                and abs(_threshold("1.5") - _threshold("2")) < 0.5
            ),
        ),
        Quote("as long as GPUs are shared: {:.0f} % at a load of 0.3.", lambda: (_other("load 0.3"),)),
        Quote(
            "it is {:.0f} % with 28 instances on each GPU and the arrivals of 7.",
            lambda: (table("online_pcie", MORE).where({0: "60%", 1: "28"}).number("same arrivals: % lower"),),
        ),
        Quote(
            "leave little of it**: {:.0f} % with 1g and 2g, {:.0f} % with up to 3g, nothing ({:.1f} ± {:.1f}) with "
            "up to 7g.",
            lambda: (
                _other("sizes 1g and 2g"),
                _other("sizes 1g, 2g and 3g"),
                *table("online_pcie", OTHER).where("sizes 1g to 4g and 7g").numbers_in("% lower")[:2],
            ),
        ),
        Quote(
            "{:.0f} to {:.0f} % of them take one, and the flow time changes by {:.0f} to {:.0f} %.",
            _larger,
        ),
        Quote(
            "**Without Bloom7b1 it is {:.0f} %**: seven Bloom560m slow down to {:.2f} only.",
            lambda: (_other("no Bloom7b1"), 7 * 1.25 * 5.7 / 30.08),
        ),
        Quote(
            "An estimate 20 % too low costs nothing, one 25 % too high two fifths of the gain",
            holds=lambda: (
                abs(_believed("0.8") - _believed("1")) < 0.5 and 0.55 < _believed("1.25") / _believed("1") < 0.65
            ),
        ),
        Quote("one four times too high is worse than unaware.", holds=lambda: _believed("4") < 0),
        Quote(
            "an error of 2 % give it to {:.0f} %, with 10 % only to {:.0f} %",
            lambda: (_error_of_fit("2%"), _error_of_fit("10%")),
        ),
        Given(
            Source.SETTING,
            (
                "At 60 % PCIe-bound jobs",
                "about 55, 110, 160, 220 and 270 % of the capacity of the links at 20 to 100 %; from 40 % on",
                "**A delay threshold below 1.26",
            ),
        ),
    ),
}
