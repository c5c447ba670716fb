"""Numbers in files: thousands of digits, and what only some programs take for a number."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from documents import READERS
from state_forms import state_from_text

from mig_opt import InputError
from mig_opt.files.batch.batches import BATCH
from mig_opt.files.fleet.traces import TRACE
from mig_opt.files.locations import place_of
from mig_opt.files.serving.arrivals import read_rates, read_recorded
from mig_opt.files.serving.demands import DEMAND
from mig_opt.files.templates import template
from mig_opt.studies import read_study
from mig_opt.texts import number_in

HERE = Path(__file__).parent
HUGE = "9" * 5000
TABLES: dict[str, Callable[[Path], Any]] = {
    "batch": partial(BATCH.read, gpu="A30"),
    "services": partial(DEMAND.read, gpu="A100-80GB"),
    "rates": read_rates,
    "requests": read_recorded,
    "trace": partial(TRACE.read, gpu="A100", gpus=1),
}


def of_path(read: Callable[[Path], Any], path: Path, text: str) -> None:
    path.write_text(text)
    read(path)


def cases() -> Iterator[tuple[str, str, Callable[[Path, str], Any]]]:
    for path in sorted((HERE / "release_1_0").glob("*.json")):
        yield path.name, path.read_text(), lambda _, text, kind=path.stem: READERS[kind](text)
    for kind, read in TABLES.items():
        yield f"{kind}.csv", template(kind, "csv"), partial(of_path, read)
    yield "study.toml", template("study"), partial(of_path, read_study)
    for path in sorted((HERE.parent / "operations" / "observe" / "forms").iterdir()):
        yield path.name, path.read_text(), lambda _, text: state_from_text(text)


CASES = {name: (text, read) for name, text, read in cases()}


@pytest.mark.parametrize("name", CASES)
def test_any_number_may_have_thousands_of_digits(name, tmp_path):
    """Python reads no such integers: a file is refused with a place, or the number is in a text and does not count."""
    text, read = CASES[name]
    numbers = list(re.finditer(r"[0-9]+", text))
    refused = 0
    for number in numbers[:: len(numbers) // 15 + 1]:
        changed = text[: number.start()] + HUGE + text[number.end() :]
        try:
            read(tmp_path / name, changed)
        except InputError as error:
            refused += 1
            for problem in error.problems:
                place_of(problem.path, changed)
    assert refused


def test_a_study_tells_the_line(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(f'schema = "mig-opt/study/1"\nname = "x"\ntime_limit_s = {HUGE}\n')
    with pytest.raises(InputError, match="line 3: has an integer of more than 4300 digits"):
        read_study(path)


@pytest.mark.parametrize("number", ["١٢", "\uff11", "1_0", "0x10", "1,5", "1e", ".", "--1", "1 0", "²"])
def test_no_number(number, tmp_path):
    assert number_in(number) == number
    with pytest.raises(InputError, match=f'line 2, t1_s: must be a number, is "{number}"'):
        of_path(TABLES["batch"], tmp_path / "batch.csv", f'task,t1_s\na,"{number}"\n')


@pytest.mark.parametrize("number", ["12", "+3", "-0", "1.", ".5", "-2.5e3", "1E+2", "1e999"])
def test_a_number(number):
    assert number_in(number) == float(number)
    assert isinstance(number_in(number), int) == number.lstrip("+-").isdigit()
