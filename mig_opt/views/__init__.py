"""Gantt charts of schedules, and pictures of deployments, latencies and simulations.

Each GPU is a panel with its memory slices from top to bottom and the time in seconds from left to right. A run is a
coloured rectangle over the footprint of its instance. Creations and destructions last a fraction of a second in
schedules of minutes, so they are drawn with a least width, inside the lifetime of their instance.

Each picture is an image or, to explore, a page of HTML. What is where in it, in which colours and with which words is
a :class:`~mig_opt.views.scene.Scene`, from which images (matplotlib) and pages (bokeh) are drawn.

matplotlib is optional (``pip install "mig-opt[plot]"``) and imported on the first use. Only its object-oriented
interface is used: no display is needed, and figures of the caller are left alone. So is bokeh (``mig-opt[html]``),
which writes the pages; a browser draws them.

The names stand in ``__init__.pyi``; each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
