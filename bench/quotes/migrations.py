"""What the pages about migrations and defragmentation quote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bench.quotes.quoting import Entry, Given, Quote, Source
from bench.quotes.result_tables import said, table


def _slowest_runs(gpus: int) -> list[float]:
    """Return the seconds of the slowest run for each load and goal."""
    rows = table("defragment", "", 1).where(str(gpus))
    columns = [at for at, name in enumerate(rows.head) if name == "slowest"]
    return [seconds for column in columns for seconds in rows.numbers(column)]


def _runs_proven() -> tuple[int, int]:
    """Return how many of the runs of all goals are proven, and their number."""
    rows = table("defragment", "", 1)
    cells = [text.split("/") for goal in ("same", "least", "room") for text in rows.texts(goal)]
    return sum(int(done) for done, _ in cells), sum(int(runs) for _, runs in cells)


def _migrations(column: str, gpus: int) -> list[float]:
    return table("defragment").where(str(gpus)).numbers(column)


def _least_takes_fewer() -> bool:
    """Tell if the least fragmentation takes fewer migrations than the greedy rules at every load from 50 GPUs on."""
    return all(
        least < greedy
        for gpus in (50, 100, 200)
        for least, greedy in zip(
            _migrations("its migrations", gpus), _migrations("migrations: greedy", gpus), strict=True
        )
    )


PAGES: Mapping[str, Sequence[Entry]] = {
    "docs/explanation/migrations.md": (
        Quote(
            "three goals each: all {:.0f} runs are proven, those with 50 GPUs in less than {:.0f} s, those with "
            "200 GPUs in at "
            "most {:.0f} s, most of them in less than 2 s.",
            lambda: (_runs_proven()[1], math.ceil(max(_slowest_runs(50))), math.ceil(max(_slowest_runs(200)))),
            holds=lambda: (
                len(set(_runs_proven())) == 1
                and 2 * sum(seconds < 2 for seconds in _slowest_runs(200)) > len(_slowest_runs(200))
            ),
        ),
        Quote(
            "on the same {:.0f} fleets, for the fragmentation that these reach: the exact plan never has more "
            "migrations, and "
            "fewer in {:.0f} fleets; with 50 GPUs {:.0f} to {:.0f} in place of {:.0f} to {:.0f}.",
            lambda: (
                *map(float, said("defragment", r"Of (\d+) fleets .* in \d+, fewer in (\d+)\.")),
                min(_migrations("same", 50)),
                max(_migrations("same", 50)),
                min(_migrations("migrations: greedy", 50)),
                max(_migrations("migrations: greedy", 50)),
            ),
            holds=lambda: said("defragment", r"has more migrations than the greedy one in (\d+),")[0] == "0",
        ),
        Quote(
            "The least fragmentation is mostly 0, from 50 GPUs on with fewer migrations than theirs.",
            holds=lambda: (
                sum(least == 0 for least in table("defragment").numbers("least")) > 0.9 * len(table("defragment").rows)
                and _least_takes_fewer()
            ),
        ),
        Given(Source.SETTING, ("on random A100 fleets of 1 to 200 GPUs at loads of 30 to 90 %",)),
    ),
    "docs/how-to/defragment.md": (
        Quote(
            "on fleets of 200 GPUs on 25 nodes with a limit of 10 s: all {:.0f} runs are proven in both goals.",
            lambda: (len(table("freeing").rows),),
            holds=lambda: (
                set(table("freeing").texts("status")) == {"optimal"}
                and not any(table("freeing").numbers("below bound"))
            ),
        ),
    ),
}
