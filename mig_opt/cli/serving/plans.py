"""Services and deployments for the commands that work for several problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mig_opt.cli.options import ProblemOptions
from mig_opt.cli.plans import BoundsFound, Plans
from mig_opt.cli.screens import Part, Rows, table
from mig_opt.cli.serving.exporting import check_deployment_names
from mig_opt.cli.serving.inputs import load_services, read_deployment_for
from mig_opt.cli.serving.screens import demand_rows, services_table, validation_card
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import plural
from mig_opt.validation import DeploymentValidation, validate_deployment


class ServingPlans(Plans[Demand, Deployment, DeploymentValidation]):
    """Services and a deployment of them."""

    kind, plan_kinds = "services", ("deployment", "deployment-result")
    noun, plural, predicate, hooks = "deployment", "services", "has services", "[HOOKS]"

    @staticmethod
    def own_options(options: ProblemOptions) -> dict[str, object]:
        return {
            "--profiles": options.profiles or None,
            "--scenario": options.scenario,
            "--slo-share": options.slo_share,
            # Given without a value, --no-whole-ms is given too.
            "--whole-ms": None if options.whole_ms is None else "given",
            "--max-processes": options.max_processes,
        }

    def load(self) -> Demand:
        return load_services(self.argument, self.options, self.document)

    def read_plan(self, path: Path, problem: Demand | None) -> Deployment:
        return read_deployment_for(problem, path)

    def validate(self, problem: Demand, plan: Deployment, tolerance: float | None = None) -> DeploymentValidation:
        return validate_deployment(problem, plan, tolerance=1e-9 if tolerance is None else tolerance)

    def figures(self, found: DeploymentValidation) -> dict[str, float | None]:
        return {"gpus": found.gpus}

    def validation_parts(self, problem: Demand, plan: Deployment, found: DeploymentValidation) -> Iterable[Part]:
        yield validation_card(problem, plan, found)
        if found.valid:
            yield from ("", services_table(problem, plan))

    def rows(self, problem: Demand) -> Rows:
        return demand_rows(problem)

    def bounds(self, problem: Demand) -> BoundsFound:
        from mig_opt.deploying import why_unservable
        from mig_opt.serving.bounds import fleet_bounds, shortage

        reasons = why_unservable(problem)
        bounds = () if reasons else fleet_bounds(problem)
        if bounds and (lacking := shortage(problem, bounds[0])):
            reasons = [lacking]
        best = bounds[0].gpus if bounds else None
        document = [
            {"name": bound.name, "value": bound.gpus, "not_rounded": bound.value, "reason": bound.reason}
            for bound in bounds
        ]
        rows = ([bound.name, str(bound.gpus), f"{bound.value:.3f}", bound.reason] for bound in bounds)
        shown = table(["bound", ">GPUs", ">not rounded", "~because"], rows)
        return BoundsFound(best, plural(best or 0, "GPU"), document, shown, reasons)

    def draw(
        self, problem: Demand, found: DeploymentValidation, plan: Deployment, out: Path, lower_bound: float | None
    ) -> None:
        from mig_opt.plotting import save_deployment_plot

        save_deployment_plot(plan, out, demand=problem)

    def number_of_gpus(self, problem: Demand, plan: Deployment) -> int:
        return len(plan.gpus)

    def check_script(self, plan: Deployment, path: Path) -> None:
        check_deployment_names("nvidia-smi", plan, path)

    def script(
        self, problem: Demand, found: DeploymentValidation, plan: Deployment, devices: Sequence[str] | None
    ) -> str:
        from mig_opt.rollout import deployment_script

        return deployment_script(plan, devices=devices)
