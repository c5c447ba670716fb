"""The commands generate and export."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from mig_opt.cli import completion, options
from mig_opt.cli.answers import Call, File, Product, made
from mig_opt.cli.checks import file_named
from mig_opt.cli.inputs import check_number_of_gpus, load_batch


def generate(
    call: Call,
    *,
    n: Annotated[int, Option("-n", metavar="N", help="Number of tasks.", show_default=False)],
    scaling: Annotated[str, "NAME", "PoorScaling, MixedScaling or GoodScaling."] = "MixedScaling",
    times: Annotated[str, "NAME", "WideTimes (1 to 100 s on one slice) or NarrowTimes (90 to 100 s)."] = "WideTimes",
    p_sup: Annotated[float, "P", "Share of super-linear tasks among those that can be."] = 0.5,
    gpu: Annotated[str, Option(metavar="GPU", help="One of: mig-opt gpus.", autocompletion=completion.gpus)] = "A100",
    gpus: Annotated[int, "N", "How many."] = 1,
    seed: Annotated[int, "N", "Same options and seed, same batch."] = 0,
    decimals: Annotated[int, "N", "Of the seconds."] = 3,
    variant: Annotated[str, "NAME", "paper or published-program."] = "paper",
    memory_bound: Annotated[float, "P", "Share of memory-bound tasks of published-program."] = 0.0,
    shuffle: Annotated[bool, "Tasks in random order."] = False,
    decided_by: Annotated[str, "NAME", "Where tasks become compute-bound: slice or size."] = "slice",
    output: Annotated[Path | None, "Write to a file, not to standard output."] = None,
) -> Product:
    """Make a synthetic batch as in the FAR paper (section 6.3).

    Examples
    --------
    mig-opt generate -n 20 --gpu H100 --seed 7 -o batch.json
    """
    from mig_opt.files.batch.batches import BATCH
    from mig_opt.instances.batch import generate_batch

    # The function refuses other names.
    names: dict[str, Any] = {"scaling": scaling, "times": times, "variant": variant, "decided_by": decided_by}
    foreign = ("--p-sup", "--decided-by") if variant == "published-program" else ("--memory-bound",)
    call.none_of(foreign, f"is not for --variant {variant}; leave it out")
    with call.step():
        batch = generate_batch(
            n,
            p_sup=p_sup,
            gpu=gpu,
            gpus=gpus,
            seed=seed,
            decimals=decimals,
            memory_bound=memory_bound,
            shuffle=shuffle,
            **names,
        )
        check_number_of_gpus(gpus)
    call.begin(batch=output)
    return made("batch", batch, output, BATCH.to_json)


def export(
    call: Call,
    batch: options.BatchArgument,
    out: Annotated[Path, options.argument("OUT", ".lp or .mps file.")],
    *,
    given: options.BatchOptions,
    strict: Annotated[bool, "Only schedules without re-creations; else a bound for all schedules."] = False,
) -> Product:
    """Write a batch as mixed-integer program, for any solver.

    Its optimum, in seconds, is a lower bound of the makespan of every schedule; with --strict it is the shortest
    makespan that needs no re-creation of a placement.

    Examples
    --------
    mig-opt export rodinia-a30 rodinia.mps
    """
    from mig_opt.batch.batch import check_placeable
    from mig_opt.files.batch.programs import export_model

    problem = call.attempt(load_batch, batch, given)
    if problem is not None:
        with call.step(), file_named(batch):
            check_placeable(problem, "model")
    call.begin(program=out)
    return Product(files=[File("program", out, problem, writer=partial(export_model, strict=strict))])
