"""Policies as the command line names them: ``static:backfill=true:partition=4+3``."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mig_opt import InputError, Problem, Simulation, Trace, simulate
from mig_opt.cli.checks import Checks, refuse
from mig_opt.errors import raise_any
from mig_opt.method.registry import get_policy
from mig_opt.simulation.fleet.options import option_problems, policy_options, read_option
from mig_opt.simulation.fleet.simulator import check_policy

_OPTION = "--policy"


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy and the options that are set of it, with the text that says so."""

    text: str
    name: str
    options: dict[str, Any]

    def check(self, trace: Trace, *, reject: bool = False) -> None:
        """Refuse options that do not fit a trace."""
        with self.named():
            check_policy(trace, self.name, reject=reject, **self.options)

    def run(self, trace: Trace, **given: Any) -> Simulation:
        """Let the policy, which has been checked, run a trace; more is given as :func:`mig_opt.simulate` takes it."""
        return simulate(trace, self.name, **given, **self.options)

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Let problems of an option name what was given on the command line."""
        try:
            yield
        except InputError as error:
            raise InputError(Problem(self._path(problem.path), problem.message) for problem in error.problems) from None

    def _path(self, path: str) -> str:
        option = re.match(r"\w*", path)
        for part in map(str.strip, self.text.split(":")[1:]):
            if option and part.partition("=")[0].strip() == option[0]:
                return f"{_OPTION} {self.name}:{part}{path[option.end() :]}"
        return f"{_OPTION} {self.name}{path and ' '}{path}"


def read_policies(text: str, checks: Checks) -> list[PolicyChoice]:
    """Return the policies in a list with commas, each with ``:OPTION=VALUE`` behind it for each option.

    Those with which something is wrong are left out, and ``checks`` gets their errors.
    """
    chosen: list[PolicyChoice] = []
    with checks.step():
        if not any(part.strip() for part in text.split(",")):
            refuse(_OPTION, "names no policy; leave it out for the usual ones")
    for part in filter(None, map(str.strip, text.split(","))):
        with checks.step():
            choice = _read(part)
            # The same twice is run once.
            if not any((choice.name, choice.options) == (other.name, other.options) for other in chosen):
                chosen.append(choice)
    return chosen


def _read(text: str) -> PolicyChoice:
    name, *settings = (part.strip() for part in text.split(":"))
    entry = get_policy(name)
    problems: list[Problem] = []
    options: dict[str, Any] = {}
    seen: set[str] = set()
    for setting in settings:
        option, equals, value = (part.strip() for part in setting.partition("="))
        path = f"{_OPTION} {name}:{setting}"
        if not (equals and option and value):
            problems.append(Problem(path, f"must be OPTION=VALUE, like {name}:backfill=true"))
        elif option in seen:
            problems.append(Problem(path, f"{option} is set more than once; keep one"))
        if equals and value:
            options[option] = read_option(entry, option, value)
        seen.add(option)
    choice, checks = PolicyChoice(text, name, options), Checks()
    with checks.step(), choice.named():
        raise_any(option_problems(entry, options))
    with checks.step(), choice.named():
        known = policy_options(entry)
        entry.load()(**{option: value for option, value in options.items() if option in known})
    raise_any([*problems, *(problem for error in checks.errors for problem in error.problems)])
    return choice
