"""Services and deployments for the commands that work for several problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mig_opt.cli.plans import BoundsFound, Plans
from mig_opt.cli.screens import Part, Rows, table
from mig_opt.cli.serving.exporting import check_deployment_names
from mig_opt.cli.serving.inputs import load_services, read_deployment_for
from mig_opt.cli.serving.screens import demand_rows, services_table, validation_card
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import plural
from mig_opt.validation import DeploymentValidation, validate_deployment


class ServingPlans(Plans):
    """Services and a deployment of them."""

    kind, plan_kinds = "services", ("deployment", "deployment-result")
    own_options = ("profiles", "scenario", "slo_share", "whole_ms", "max_processes")
    noun, plural, predicate, hooks = "deployment", "services", "has services", "[HOOKS]"
    problem: Demand
    plan: Deployment
    found: DeploymentValidation

    def load(self) -> Demand:
        return load_services(self.argument, self.options, self.document)

    def read_plan(self, path: Path) -> Deployment:
        return read_deployment_for(self.problem, path)

    def validate(self, tolerance: float | None = None) -> DeploymentValidation:
        return validate_deployment(self.problem, self.plan, tolerance=1e-9 if tolerance is None else tolerance)

    def figures(self) -> dict[str, float | None]:
        return {"gpus": self.found.gpus}

    def validation_parts(self) -> Iterable[Part]:
        yield validation_card(self.problem, self.plan, self.found)
        if self.found.valid:
            yield from ("", services_table(self.problem, self.plan))

    def rows(self) -> Rows:
        return demand_rows(self.problem)

    def bounds(self) -> BoundsFound:
        from mig_opt.deploying import why_unservable
        from mig_opt.serving.bounds import fleet_bounds, shortage

        reasons = why_unservable(self.problem)
        bounds = () if reasons else fleet_bounds(self.problem)
        if bounds and (lacking := shortage(self.problem, bounds[0])):
            reasons = [lacking]
        best = bounds[0].gpus if bounds else None
        document = [
            {"name": bound.name, "value": bound.gpus, "not_rounded": bound.value, "reason": bound.reason}
            for bound in bounds
        ]
        rows = ([bound.name, str(bound.gpus), f"{bound.value:.3f}", bound.reason] for bound in bounds)
        shown = table(["bound", ">GPUs", ">not rounded", "~because"], rows)
        return BoundsFound(best, plural(best or 0, "GPU"), document, shown, reasons)

    def draw(self, out: Path, lower_bound: float | None) -> None:
        from mig_opt.plotting import save_deployment_plot

        save_deployment_plot(self.plan, out, demand=self.problem)

    def number_of_gpus(self) -> int:
        return len(self.plan.gpus)

    def check_script(self, path: Path) -> None:
        check_deployment_names("nvidia-smi", self.plan, path)

    def script(self, devices: Sequence[str] | None) -> str:
        from mig_opt.rollout import deployment_script

        return deployment_script(self.plan, devices=devices)
