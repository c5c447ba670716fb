"""The command generate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

from typer import Option

from mig_opt.cli import completion, options
from mig_opt.cli.answers import Call, Product, made
from mig_opt.cli.inputs import check_number_of_gpus


def generate(
    call: Call,
    *,
    n: Annotated[int, Option("-n", metavar="N", help="Number of tasks.", show_default=False)],
    scaling: Annotated[str, Option(metavar="NAME", help="PoorScaling, MixedScaling or GoodScaling.")] = (
        "MixedScaling"
    ),
    times: Annotated[
        str, Option(metavar="NAME", help="WideTimes (1 to 100 s on one slice) or NarrowTimes (90 to 100 s).")
    ] = "WideTimes",
    p_sup: Annotated[
        float, Option("--p-sup", metavar="P", help="Share of super-linear tasks among those that can be.")
    ] = 0.5,
    gpu: Annotated[str, Option(metavar="GPU", help="One of: mig-opt gpus.", autocompletion=completion.gpus)] = "A100",
    gpus: Annotated[int, Option(metavar="N", help="How many.")] = 1,
    seed: Annotated[int, Option(metavar="N", help="Same options and seed, same batch.")] = 0,
    decimals: Annotated[int, Option(metavar="N", help="Of the seconds.")] = 3,
    variant: Annotated[str, Option(metavar="NAME", help="paper or published-program.")] = "paper",
    memory_bound: Annotated[
        float, Option("--memory-bound", metavar="P", help="Share of memory-bound tasks of published-program.")
    ] = 0.0,
    shuffle: Annotated[bool, Option("--shuffle", help="Tasks in random order.")] = False,
    decided_by: Annotated[
        str, Option(metavar="NAME", help="Where tasks become compute-bound: slice or size.")
    ] = "slice",
    output: Annotated[Path | None, options.output("Write to a file, not to standard output.")] = None,
) -> Product:
    """Make a synthetic batch as in the FAR paper (section 6.3).

    Examples
    --------
    mig-opt generate -n 20 --gpu H100 --seed 7 -o batch.json
    """
    from mig_opt.files.batch.batches import batch_to_json
    from mig_opt.instances.batch import Decision, ScalingName, TimesName, Variant, generate_batch

    with call.step():
        batch = generate_batch(
            n,
            # The function refuses other names.
            scaling=cast(ScalingName, scaling),
            times=cast(TimesName, times),
            p_sup=p_sup,
            gpu=gpu,
            gpus=gpus,
            seed=seed,
            decimals=decimals,
            variant=cast(Variant, variant),
            memory_bound=memory_bound,
            shuffle=shuffle,
            decided_by=cast(Decision, decided_by),
        )
        check_number_of_gpus(gpus)
    call.begin(batch=output)
    return made("batch", batch, output, batch_to_json)
