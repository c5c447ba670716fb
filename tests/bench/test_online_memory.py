"""The study of the memory-aware scheduler runs, and its figures are what they are said to be."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

import memory_tables
import online_memory
from online_worlds import NO_COSTS, trace

from mig_opt import Job, simulate


@pytest.mark.deep
def test_a_tiny_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_memory, "GENERAL", ("hm4", "nw", "ml3"))
    monkeypatch.setattr(online_memory, "LANGUAGE", ("qwen2",))
    monkeypatch.setattr(memory_tables, "NOISES", (0.0, 0.05))
    online_memory.main(["--cut", "--results", str(tmp_path)])
    text = (tmp_path / "online_memory.md").read_text(encoding="utf-8")
    # 18 equally many jobs in halves: A is behind B. The ceiling of two halves holds.
    (ml3,) = [line.split(" | ") for line in text.splitlines() if line.startswith("| Ml3 |")]
    assert ml3[2] == "1.24 / 1.43"
    assert float(ml3[3]) < float(ml3[5]) < 2
    assert ml3[6] == "0 of 1"
    (nw,) = [line.split(" | ") for line in text.splitlines() if line.startswith("| Nw |")]
    assert 3 < float(nw[3]) < 7 / 2.2
    assert "| placed full configurations | 6 | 6 | 6 | 6 | 6 | 6 | 12 |" in text
    assert "| 0 GB | 5% | 6 (100%) | 6 (100%) | 6 (100%) | 6 (100%) |" in text
    # (1 - 1 / 1.12) / (1 - 1 / 1.58) = 0.107 / 0.367
    assert "| Ml2, scheme A | 1.58 | 1.12 | 29% |" in text


def test_the_share_of_memory() -> None:
    """a: 10 GB for 2 of 8 s, 20 GB for the rest, on 7g; b: 4 GB for 4 s. 20 + 120 + 16 of 40 GB x 12 s."""
    jobs = (
        Job("a", 0.0, {7: 8.0}, memory_growth=((0.0, 10.0), (0.25, 20.0))),
        Job("b", 0.0, {7: 4.0}, memory_gb=4.0),
    )
    done = simulate(trace(*jobs, costs=NO_COSTS), "whole-gpu")
    assert online_memory.memory_share(done.log) == pytest.approx(156 / 480)


def test_the_share_of_memory_counts_what_was_lost() -> None:
    """On 1g it fails after 2 of 8 s: 2 s x 4 GB; then on 2g 2 s x 4 GB and 6 s x 8 GB. 64 of 40 GB x 10 s."""
    growing = Job("a", 0.0, {1: 8.0, 2: 8.0}, memory_growth=((0.0, 4.0), (0.25, 8.0)))
    done = simulate(trace(growing, costs=NO_COSTS), "memory-aware-b", prediction=False)
    assert online_memory.memory_share(done.log) == pytest.approx(64 / 400)


def test_when_the_limit_is_known() -> None:
    """1 GB more in each iteration: the twentieth needs 20 GB, known at the sixth; or the job fails before."""
    assert memory_tables.known_at([float(gb) for gb in range(1, 21)], 0.05) == 6
    assert memory_tables.known_at([float(gb) for gb in range(1, 10)], 0.05) is None
    assert memory_tables.known_at([8.0, 9.0, 10.0, 11.0, 12.0, 13.0], 0.05) is None


def test_the_error_of_the_peak() -> None:
    """Three of 30 iterations are seen, 1, 2 and 3 GB; 30 are predicted, but it levels off at 15."""
    assert memory_tables.peak_error([min(float(gb), 15.0) for gb in range(1, 31)]) == pytest.approx(1)
