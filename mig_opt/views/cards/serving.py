"""Deployments and simulations of requests in a notebook."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mig_opt.errors import InputError, Problem
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, DeploymentResult, Segment
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.views import plot
from mig_opt.views.cards.cards import card, card_of, frame_of, picture, plotted, result_card, table
from mig_opt.views.cards.frames import frame
from mig_opt.views.serving.deployments import deployment_problems, deployment_scene, spell_rate
from mig_opt.views.serving.latencies import latency_title


@card_of.register
def deployment_card(deployment: Deployment) -> str:
    """Return the card of a deployment: its GPUs, and what each service has."""
    if any(deployment_problems(deployment)):
        return card("Deployment", table(["service", "GPU", "profile"], _places(deployment), "segments"))
    scene, rows = deployment_scene(deployment), []
    for name in sorted({segment.service for segment in deployment.segments}):
        own = [segment for segment in deployment.segments if segment.service == name]
        profiles = ", ".join(sorted(segment.profile for segment in own))
        rows.append([name, profiles, spell_rate(deployment.throughput(name))])
    return card(scene.title, picture(scene, "segment"), table(["service", "instances", "requests/s"], rows, "services"))


def _places(deployment: Deployment) -> list[list[object]]:
    return [[segment.service, segment.gpu, segment.profile] for segment in deployment.segments]


@frame_of.register
def deployment_frame(deployment: Deployment) -> Any:
    """Return the segments of a deployment as a frame, by GPU and start slice."""
    columns = [field.name for field in fields(Segment)]
    segments = sorted(deployment.segments, key=lambda segment: (segment.gpu, segment.start))
    return frame(columns, [{name: getattr(segment, name) for name in columns} for segment in segments])


@plotted.register
def plotted_deployment(deployment: Deployment, demand: Demand | None = None, **options: Any) -> Any:
    """Draw the segments of a deployment on their GPUs."""
    return plot(deployment, demand=demand, **options)


@card_of.register
def deployment_result_card(result: DeploymentResult) -> str:
    """Return the card of a result, with a small picture of its deployment."""
    if result.plan is None or any(deployment_problems(result.plan)):
        return result_card(result)
    return result_card(result, picture(deployment_scene(result.plan), "segment"))


@frame_of.register
def result_frame(result: DeploymentResult) -> Any:
    """Return the segments of a result's deployment as a frame, without lines if there is none."""
    return deployment_frame(result.plan or Deployment((), ()))


@plotted.register
def plotted_result(result: DeploymentResult, **options: Any) -> Any:
    """Draw the deployment of a result."""
    if result.plan is None:
        raise InputError([Problem("deployment", f"there is none to draw: the result is {result.status.value}")])
    return plot(result.plan, demand=result.demand, **options)


@card_of.register
def requests_card(simulation: RequestSimulation) -> str:
    """Return the card of a simulation of requests: how late the requests of each service are."""
    rows = [
        [
            service.name,
            f"{service.requests:,}",
            f"{100 * service.late_share:.3g}",
            *(_milliseconds(seconds) for seconds in (service.p50_s, service.p99_s, service.slo_s)),
        ]
        for service in simulation.services
    ]
    head = ["service", "requests", "late %", "median ms", "p99 ms", "limit ms"]
    return card(latency_title(simulation), table(head, rows, "services"))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.4g}"


@frame_of.register
def requests_frame(simulation: RequestSimulation) -> Any:
    """Return the services of a simulation as a frame."""
    columns = [field.name for field in fields(ServiceLatencies) if field.name not in {"bins", "late_share_interval"}]
    return frame(columns, [{name: getattr(service, name) for name in columns} for service in simulation.services])
