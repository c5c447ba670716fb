"""Steps a second of the environments for learners, on one core, with actions drawn at random.

Run: python -m bench.fleet.environments. It takes about a minute; with --cut a second.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import mig_opt.environments  # noqa: F401  # registers the names
from bench.report import Page, parser_of, start, timed

CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mig_opt/Batch-v0", {"tasks": 12}),
    ("mig_opt/Batch-v0", {"tasks": 50, "gpus": 4}),
    ("mig_opt/Fleet-v0", {"jobs": 30, "gpus": 2, "window": 4}),
    ("mig_opt/Fleet-v0", {"jobs": 500, "gpus": 8, "window": 16}),
)
STEPS = 20_000
TOGETHER = 8  # environments of a vector


def play(name: str, settings: dict[str, Any], steps: int) -> int:
    """Take some steps in one environment, and return the number of episodes that ended."""
    env, rng, ended = gymnasium.make(name, disable_env_checker=True, **settings), np.random.default_rng(1), 0
    _, info = env.reset(seed=1)
    for _ in range(steps):
        _, _, over, _, info = env.step(rng.choice(info["action_mask"].nonzero()[0]))
        if over:
            ended += 1
            _, info = env.reset()
    return ended


def play_together(name: str, settings: dict[str, Any], steps: int) -> int:
    """Take as many in a vector of environments, in this process."""
    environments = gymnasium.make_vec(name, num_envs=TOGETHER, vectorization_mode="sync", **settings)
    rng, ended = np.random.default_rng(1), 0
    _, info = environments.reset(seed=1)
    for _ in range(steps // TOGETHER):
        actions = np.array([rng.choice(mask.nonzero()[0]) for mask in info["action_mask"]])
        _, _, over, _, info = environments.step(actions)
        ended += int(over.sum())
    environments.close()
    return ended


def measured(*, cut: bool) -> Iterator[list[str]]:
    """Play in each environment, alone and in a vector."""
    steps = STEPS // (100 if cut else 1)
    for name, settings in CASES:
        shown = ", ".join(f"{key}={value}" for key, value in settings.items())
        for way, action in (("one", play), (f"{TOGETHER} in a vector", play_together)):
            ended, processor = timed(partial(action, name, settings, steps))
            yield [f"`{name}`", f"`{shown}`", way, f"{steps:,}", f"{ended:,}", f"{steps / processor:,.0f}"]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parser_of(__doc__, "environments.md", "a hundredth of the steps, in a second").parse_args(arguments)
    page = Page("environments", "Speed of the environments", "mig-opt", "gymnasium", "numpy", folder=options.results)
    page.add("""Steps a second of one core in episodes of actions drawn at random among those that the mask allows. It
        counts all: drawing the problems and the actions, observations, masks, and the validation of each schedule.""")
    head = ["environment", "with", "how many", "steps", "episodes", "steps a second"]
    page.table(head, measured(cut=options.cut), range(3))
    page.save()
