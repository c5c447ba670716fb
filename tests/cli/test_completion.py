"""Completion: what shells are told, and that the shells understand it."""

import os
import sys
from pathlib import Path

import pytest
from command_line import Command
from scripts import ended

from mig_opt.cli.completion import asked_of
from mig_opt.gpu.catalogue import catalogue
from mig_opt.method.registry import DEPLOY_METHODS, METHODS


def completed(run: Command, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """Words that bash may write in place of the last one."""
    monkeypatch.setenv("_MIG_OPT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["mig-opt", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    outcome = run()
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.split()


def test_values(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "rod.json", "rod.txt", ".rod.json"):
        (tmp_path / name).touch()
    (tmp_path / "rod").mkdir()
    (tmp_path / "rod" / "in.json").touch()
    assert completed(run, monkeypatch, "solve", "rod") == [
        "rodinia-a30",
        "rodinia-a30-made-up-a100",
        "rod/",
        "rod.json",
    ]
    assert completed(run, monkeypatch, "solve", "rod/") == ["rod/in.json"]
    assert completed(run, monkeypatch, "solve", "no/such") == []
    assert completed(run, monkeypatch, "deploy", "parva") == [f"parvagpu-s{at}" for at in range(1, 7)]
    assert completed(run, monkeypatch, "simulate", "normal-25-1") == ["normal-25-1xa100-030-4"]
    assert completed(run, monkeypatch, "defragment", "fleet-004xa100-") == ["fleet-004xa100-1", "fleet-004xa100-2"]
    assert set(completed(run, monkeypatch, "solve", "x", "--gpu", "")) == {
        name for model in catalogue() for name in (model.name, *model.aliases)
    }
    assert completed(run, monkeypatch, "solve", "x", "--method", "") == [one.name for one in METHODS.entries]
    assert completed(run, monkeypatch, "deploy", "x", "--method", "") == [one.name for one in DEPLOY_METHODS.entries]
    assert "deployment-result" in completed(run, monkeypatch, "schema", "dep")


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, None),
        ({"COMP_WORDS": "mig-opt\nsol", "COMP_CWORD": "1"}, ""),
        ({"COMP_WORDS": "mig-opt\nsolve\n", "COMP_CWORD": "2"}, "solve"),
        ({"_TYPER_COMPLETE_ARGS": "mig-opt "}, ""),
        ({"_TYPER_COMPLETE_ARGS": "mig-opt sol"}, ""),
        ({"_TYPER_COMPLETE_ARGS": "mig-opt solve "}, "solve"),
        ({"_TYPER_COMPLETE_ARGS": 'mig-opt solve "ro'}, "solve"),
    ],
)
def test_only_the_module_of_the_command_is_loaded(environment, first):
    assert asked_of({**environment, **({"_MIG_OPT_COMPLETE": "complete_x"} if environment else {})}) == first


@pytest.mark.deep
def test_bash_completes(tmp_path):
    program = tmp_path / "mig-opt"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mig_opt "$@"\n')
    program.chmod(0o755)
    commands = """
        source <(mig-opt completion bash)
        COMP_WORDS=(mig-opt solve rod) COMP_CWORD=2
        $(complete -p mig-opt | sed 's/.*-F \\([^ ]*\\) .*/\\1/') mig-opt
        echo "${COMPREPLY[@]}"
    """
    paths = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    sources = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PATH": paths, "PYTHONPATH": sources}
    done = ended("bash", "--norc", "-c", commands, cwd=tmp_path, env=environment)
    assert done.stdout == "rodinia-a30 rodinia-a30-made-up-a100\n", done.stderr
