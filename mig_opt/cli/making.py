"""Commands that make files: generate, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mig_opt.cli.inputs import check_gpus, check_output
from mig_opt.cli.outcome import Checks, options_named, print_json, printable

_GENERATE_OPTIONS = {
    "n": "-n",
    **{name: f"--{name}" for name in ("scaling", "times", "gpu", "gpus", "seed", "decimals", "variant")},
    "p_sup": "--p-sup",
}


def generate(
    *,
    n: Annotated[int, typer.Option("-n", metavar="N", help="Number of tasks.", show_default=False)],
    scaling: Annotated[str, typer.Option(metavar="NAME", help="PoorScaling, MixedScaling or GoodScaling.")] = (
        "MixedScaling"
    ),
    times: Annotated[
        str, typer.Option(metavar="NAME", help="WideTimes (1 to 100 s on one slice) or NarrowTimes (90 to 100 s).")
    ] = "WideTimes",
    p_sup: Annotated[
        float, typer.Option("--p-sup", metavar="P", help="Share of super-linear tasks among those that can be.")
    ] = 0.5,
    gpu: Annotated[str, typer.Option(metavar="GPU", help="One of: mig-opt gpus.")] = "A100",
    gpus: Annotated[int, typer.Option(metavar="N", help="How many.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Same options and seed, same batch.")] = 0,
    decimals: Annotated[int, typer.Option(metavar="N", help="Of the seconds.")] = 3,
    variant: Annotated[str, typer.Option(metavar="NAME", help="paper or published-program.")] = "paper",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file, not to standard output.")
    ] = None,
) -> None:
    """Make a synthetic batch as in the FAR paper (section 6.3)."""
    from mig_opt.files import batch_to_json, write_batch
    from mig_opt.instances import ScalingName, TimesName, Variant, generate_batch

    checks = Checks()
    with checks.step(), options_named(_GENERATE_OPTIONS):
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
        )
        check_gpus(gpus)
    if output is not None:
        with checks.step():
            check_output(output)
    checks.finish()
    if output is None:
        print_json(batch_to_json(batch))
    else:
        write_batch(batch, output)
        typer.echo(f"Batch written to {printable(str(output))}.")


def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="batch, schedule or result.", show_default=False)],
) -> None:
    """Print the JSON Schema of a kind of file."""
    import json

    from mig_opt.files import json_schema
    from mig_opt.files.shapes import Kind

    with options_named({"kind": "KIND"}):
        document: dict[str, Any] = json_schema(cast(Kind, kind))
    print_json(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
