"""Appearance of objects in notebooks: small cards as HTML, and tables as pandas frames.

A notebook asks for them by the methods of :class:`mig_opt.method.shown.Shown`. pandas is optional
(``pip install "mig-opt[frames]"``).
"""

from mig_opt.views.cards import batch, fleet, serving
from mig_opt.views.cards.cards import card_of, frame_of, plotted

__all__ = ["batch", "card_of", "fleet", "frame_of", "plotted", "serving"]
