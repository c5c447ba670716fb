"""The command export."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import Call, File, Product, check_outputs
from mig_opt.cli.inputs import load_batch


def export(
    call: Call,
    batch: options.BatchArgument,
    out: Annotated[Path, options.needed("OUT", ".lp or .mps file.")],
    *,
    given: options.BatchOptions,
    strict: Annotated[bool, "Only schedules without re-creations; else a bound for all schedules."] = False,
) -> Product:
    """Write the mixed-integer program of a batch, for any solver.

    Its optimum, in seconds, is a lower bound of the makespan of every schedule; with --strict it is the shortest
    makespan that needs no re-creation of a placement.

    Examples
    --------
    mig-opt export rodinia-a30 rodinia.mps
    """
    from mig_opt.files.batch.programs import check_model_path, export_model

    problem = call.attempt(load_batch, batch, given)
    with call.step():
        check_model_path(out)
        check_outputs(call.inputs, program=out)
    call.finish()
    return Product(files=[File("program", out, problem, writer=partial(export_model, strict=strict))])
