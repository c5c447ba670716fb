"""Commands that make files: generate, export, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

from typer import Argument, Option

from mig_opt.cli import completing, options
from mig_opt.cli.inputs import check_number_of_gpus, check_outputs, load_batch
from mig_opt.cli.outcome import Checks, print_text
from mig_opt.cli.screens import show_written


def generate(
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
    gpu: Annotated[str, Option(metavar="GPU", help="One of: mig-opt gpus.", autocompletion=completing.gpus)] = "A100",
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
) -> None:
    """Make a synthetic batch as in the FAR paper (section 6.3)."""
    from mig_opt.files.batch.batches import batch_to_json, write_batch
    from mig_opt.instances.batch import Decision, ScalingName, TimesName, Variant, generate_batch

    checks = Checks()
    with checks.step():
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
    checks.attempt(check_outputs, [], batch=output)
    checks.finish()
    if output is None:
        print_text(batch_to_json(batch))
    else:
        write_batch(batch, output)
        show_written("Batch", output)


def export(
    batch: options.BatchArgument,
    out: Annotated[Path, Argument(metavar="OUT", help=".lp or .mps file.", show_default=False)],
    *,
    gpu: options.Gpu = None,
    gpus: options.Gpus = None,
    costs: options.Costs = None,
    strict: Annotated[
        bool, Option("--strict", help="Only schedules without re-creations; else a bound for all schedules.")
    ] = False,
) -> None:
    """Write the mixed-integer program of a batch, for any solver.

    Its optimum, in seconds, is a lower bound of the makespan of every schedule; with --strict it is the shortest
    makespan that needs no re-creation of a placement.
    """
    from mig_opt.files.batch.programs import check_model_path, export_model

    checks = Checks()
    problem = checks.attempt(load_batch, batch, gpu, gpus, costs=costs)
    with checks.step():
        check_model_path(out)
        check_outputs([batch], program=out)
    checks.finish()
    export_model(problem, out, strict=strict)
    show_written("Program", out)


def schema(
    kind: Annotated[
        str,
        Argument(
            metavar="KIND",
            help="batch, schedule, result, certificate, study, services, profiles, deployment, deployment-result, "
            "trace, state, costs or commands.",
            show_default=False,
            autocompletion=completing.file_kinds,
        ),
    ],
) -> None:
    """Print the JSON Schema of a kind of file."""
    import json

    from mig_opt.files.schema import schema as schema_of
    from mig_opt.files.shapes import Kind

    print_text(json.dumps(schema_of(cast(Kind, kind)), indent=2, ensure_ascii=False) + "\n")
