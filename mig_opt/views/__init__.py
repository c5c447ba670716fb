"""Gantt charts of schedules, and pictures of deployments, latencies and simulations.

Each GPU is a panel with its memory slices from top to bottom and the time in seconds from left to right. A run is a
coloured rectangle over the footprint of its instance. Creations and destructions last a fraction of a second in
schedules of minutes, so they are drawn with a least width, inside the lifetime of their instance.

Each picture is an image or, to explore, a page of HTML. What is where in it, in which colours and with which words
stands in ``layout`` modules, from which charts (matplotlib) and pages (bokeh) are drawn.

matplotlib is optional (``pip install "mig-opt[plot]"``) and imported on the first use. Only its object-oriented
interface is used: no display is needed, and figures of the caller are left alone. So is bokeh (``mig-opt[html]``),
which writes the pages; a browser draws them.
"""

from __future__ import annotations

from mig_opt.views.batch.schedules import plot_execution, plot_schedule, save_execution_plot, save_plot
from mig_opt.views.batch.tasks import plot_batch
from mig_opt.views.fleet.simulations import plot_simulation, save_simulation_plot
from mig_opt.views.output import check_plot_path
from mig_opt.views.serving.days import plot_day, save_day_plot
from mig_opt.views.serving.deployments import plot_deployment, save_deployment_plot
from mig_opt.views.serving.latencies import plot_latencies, save_latency_plot

__all__ = [
    "check_plot_path",
    "plot_batch",
    "plot_day",
    "plot_deployment",
    "plot_execution",
    "plot_latencies",
    "plot_schedule",
    "plot_simulation",
    "save_day_plot",
    "save_deployment_plot",
    "save_execution_plot",
    "save_latency_plot",
    "save_plot",
    "save_simulation_plot",
]
