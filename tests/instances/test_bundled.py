"""The bundled instances hold the published figures, and say where they come from."""

import csv
import dataclasses
from collections import Counter
from decimal import Decimal
from functools import cache

import pytest
from places import PROJECT, PUBLISHED

from mig_opt import Task, deploy
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.serving.profiles import import_profiles
from mig_opt.instances.bundled import instance_info, instance_names, load
from mig_opt.serving.profile_table import ProfileTable, front

needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the published data: MIG_OPT_PUBLISHED")


def rows(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


DEMANDS = tuple(f"parvagpu-s{number}" for number in range(1, 7))


@pytest.mark.parametrize("name", [*instance_names(), *instance_names("demand")])
def test_says_where_it_comes_from(name):
    info = instance_info(name)
    assert info.name == name
    assert info.licence.partition("; ")[0] in (PROJECT / "LICENSE-DATA").read_text(encoding="utf-8")
    assert info.url.startswith("https://github.com/")
    assert info.source.split(",")[0] == info.url.removeprefix("https://github.com/")
    assert all((info.title, info.derivation, info.notes))


def test_of_the_mlperf_models_five_cheap_gpus_cost_less_than_the_fewest():
    demand = load("mlperf-offline")
    cheapest = deploy(demand)
    assert cheapest.proven[:2] == ("cost", "gpus")
    assert (cheapest.cost, Counter(cheapest.plan.gpus if cheapest.plan else ())) == (5, {"A30-24GB": 5})
    counted = deploy(demand.replace(pools=tuple(dataclasses.replace(pool, cost=1.0) for pool in demand.pools)))
    assert (counted.cost, counted.proven[0]) == (3, "gpus")
    few = tuple(dataclasses.replace(pool, count=count) for pool, count in zip(demand.pools, (2, None), strict=True))
    limited = deploy(demand.replace(pools=few))
    assert limited.proven[0] == "cost"
    assert limited.cost == pytest.approx(2 * 2.2 + 1)


@needs_published
def test_rodinia_matches_what_was_published():
    published = {
        row["task"]: {size: float(row[f"t{size}_s"]) for size in (1, 2, 4) if row[f"t{size}_s"]}
        for row in rows("rodinia_a30/times.csv")
    }
    assert {task.name: dict(task.times) for task in load("rodinia-a30").tasks} == published


@needs_published
def test_miso_32_matches_what_was_published():
    published: dict[str, dict[int, float]] = {}
    for row in rows("miso/iteration_times.csv"):
        times = published.setdefault(f"{row['model']}-b{row['batch']}", {})
        times[int(row["gpcs"])] = float(1000 * Decimal(row["mean_iter_s_excl_first"]))
    assert len(published) == 32
    assert {task.name: dict(task.times) for task in load("miso-a100-32").tasks} == published


@needs_published
def test_miso_100_matches_what_was_published():
    published = tuple(
        Task(
            f"{row['model']}-b{row['batch']}-{row['job']}",
            {size: float(row[f"t{size}_s"]) for size in (1, 2, 3, 4, 7) if row[f"t{size}_s"]},
            int(row["mem_mib"]) / 1024,
        )
        for row in rows("miso/jobs_100.csv")
    )
    assert len(published) == 100
    assert load("miso-a100-100").tasks == published


@cache
def published_profiles() -> tuple[ProfileTable, ...]:
    return import_profiles(PUBLISHED / "parvagpu" / "profiles", "A100-80GB")


def choosable(table: ProfileTable) -> ProfileTable:
    """The points that some limits of latency and processes make the best: this is how the bundled table was made."""
    most = max(point.processes for point in table.points)
    sizes = {point.size for point in table.points}
    kept = {point for size in sizes for limit in range(1, most + 1) for point in front(table, size, limit)}
    return dataclasses.replace(table, points=tuple(point for point in table.points if point in kept))


@needs_published
@pytest.mark.parametrize("name", DEMANDS)
def test_parvagpu_matches_what_was_published(name):
    tables = {table.model: choosable(table) for table in published_profiles()}
    given = {"gpu": "A100-80GB", "tables": tables.values(), "scenario": name[-2:].upper()}
    published, demand = DEMAND.read(PUBLISHED / "parvagpu" / "scenarios.csv", **given), load(name)
    assert demand.services == published.services
    assert {table.model: table for table in demand.tables}.items() <= tables.items()
