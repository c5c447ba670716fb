"""The public interface: what it is, compared with what was promised."""

import difflib

from public_api import SNAPSHOT, _signature, lines

import mig_opt


def test_public_names_and_signatures_are_those_of_the_snapshot() -> None:
    """If you meant to change some, ``python tests/helpers/public_api.py`` writes the snapshot again."""
    promised = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    assert list(difflib.unified_diff(promised, lines(), n=0, lineterm="")) == []


def test_every_name_is_there() -> None:
    text = "\n".join(lines())
    for name in mig_opt.__all__:
        assert f"mig_opt.{name}" in text
    assert "def mig_opt.solve(batch: Batch, method: str | Callable[..., Schedule | None] = 'auto', *, " in text
    assert "mig_opt.Status.OPTIMAL = 'optimal'" in text
    assert "def mig_opt.Batch.replace(self" in text
    assert " at 0x" not in text


def test_a_change_is_seen() -> None:
    def one(a: int, /, *, b: str = "x") -> float: ...
    def two(a: int, *more: str, b: str = "y", **others: object) -> float: ...

    assert _signature(one) == "(a: int, *, b: str = 'x') -> float"
    assert _signature(two) == "(a: int, *more: str, b: str = 'y', **others: object) -> float"
