"""Behaviour is as it was frozen: ``freeze.py`` says what that is and how it is frozen anew.

A change that is meant belongs into CHANGELOG.md, with the texts below ``data/`` written anew.
"""

import freeze
import pytest

from mig_opt.gpu.model import KNOWN


@pytest.fixture(autouse=True)
def no_gpus_of_other_tests(monkeypatch):
    """Let no GPU be known that another test has read: messages list them."""
    for name in list(KNOWN):
        monkeypatch.delitem(KNOWN, name)


@pytest.mark.parametrize("name", freeze.groups())
def test_behaviour_is_as_frozen(name):
    old = freeze.stored(name).read_text(encoding="utf-8")
    found = freeze.difference(name, old, freeze.frozen(name))
    assert not found, f"{found}\n\nIf this is meant: python tests/golden/freeze.py {name}"


def test_nothing_else_is_stored():
    assert {path.stem for path in freeze.DATA.glob("*.txt")} == set(freeze.groups())
