"""Gantt charts of schedules, and pictures of deployments, latencies and simulations.

Each GPU is a panel with its memory slices from top to bottom and the time in seconds from left to right. A run is a
coloured rectangle over the footprint of its instance. Creations and destructions last a fraction of a second in
schedules of minutes, so they are drawn with a least width, inside the lifetime of their instance.

Each picture is an image or, to explore, a page of HTML. What is where in it, in which colours and with which words is
a :class:`~mig_opt.views.scene.Scene`, from which images (matplotlib) and pages (bokeh) are drawn.

matplotlib is optional (``pip install "mig-opt[plot]"``) and imported on the first use. Only its object-oriented
interface is used: no display is needed, and figures of the caller are left alone. So is bokeh (``mig-opt[html]``),
which writes the pages; a browser draws them.
"""

from __future__ import annotations

from mig_opt.views.batch.schedules import execution_scene, schedule_scene
from mig_opt.views.batch.tasks import batch_scene
from mig_opt.views.fleet.simulations import simulation_scene
from mig_opt.views.pictures import check_plot_path, plot
from mig_opt.views.serving.days import day_scene
from mig_opt.views.serving.deployments import deployment_scene
from mig_opt.views.serving.latencies import latency_scene

__all__ = [
    "batch_scene",
    "check_plot_path",
    "day_scene",
    "deployment_scene",
    "execution_scene",
    "latency_scene",
    "plot",
    "schedule_scene",
    "simulation_scene",
]
