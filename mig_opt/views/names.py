"""Texts in the boxes of an image, as far as they fit, and beside the lines of moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.text import Text

from mig_opt.views.scene import Box, Boxes, Rule
from mig_opt.views.sheet import FINE, PanelImage, sign
from mig_opt.views.texts import INK, apart, contrast, elide, wrap_name

_FONTS = {"job": (7.0, 6.0, 5.0), "segment": (9.0, 8.0, 7.0, 6.5, 6.0, 5.5, 5.0), "empty": (7.0,)}
"""Font sizes of what is written on one of these, as it is; names of runs are broken and turned."""
_LARGEST, _SMALLEST = 9.0, 5.0  # font sizes of names of runs
_TAG_FONT = 5.0
_PADDING = {"segment": 2.0, "empty": 2.0}
_USUAL_PADDING = 1.2  # points between a name and the edge of its box
_LONGEST = 32  # characters of a name after its number in the key
_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "multialignment": "center", "linespacing": 1.05}
_WAYS = [(1, 0, 1.0), (2, 0, 0.95), (3, 0, 0.9), (1, 90, 0.8), (2, 90, 0.75)]
"""Ways to write a name: lines, rotation, and preference."""


class Names:
    """The names in the boxes of a panel."""

    def __init__(self, panel: PanelImage) -> None:
        self.panel, self.sheet = panel, panel.sheet
        self.missing: list[tuple[int, str, str]] = []
        """Names that the key has to explain: order, colour and wording."""
        self.counted = 0

    def draw(self, groups: Sequence[Boxes]) -> dict[str, Artist]:
        """Write the names; return what a legend has to explain, and how."""
        signs: dict[str, Artist] = {}
        labels: list[Text] = []
        for group in groups:
            if group.role == "run":
                labels += [label for box in group.boxes for label in self.write_run(box)]
            elif group.role in _FONTS:
                unnamed = [box for box in group.boxes if not self.write(box, group.role) and box.number]
                if group.unkeyed and unnamed:
                    signs[group.unkeyed] = sign("none")
                    continue
                for box in unnamed:
                    wording = f"{box.number} {elide(box.label, _LONGEST)}"
                    self.missing.append((int(box.number.removeprefix("#")), box.colour, wording))
        for group in groups:
            if group.role == "instance":
                self.write_tags(group.boxes, labels)
        return signs

    def room(self, box: Box, padding: float) -> tuple[float, float]:
        """Return the width and height, in points, that a name has in a box."""
        width = (box.right - box.left) * self.panel.points_across() - 2 * padding
        return width, (box.bottom - box.top) * 72 * (self.panel.panel.rows.unit if self.panel.panel.rows else 1.0)

    def write(self, box: Box, role: str) -> bool:
        """Write what fits into a box; return whether that is its label, or the first of its wordings."""
        padding = _PADDING.get(role, _USUAL_PADDING)
        free = box.without(self.panel.covers)
        width, height = self.room(free, padding)
        wordings = box.wordings or [(wording, 0.0) for wording in (box.label, box.number) if wording]
        place = self.panel.place_of(box)
        if place is None:
            return True
        found = self.sheet.fitted(wordings, width, height - padding, _FONTS[role])
        if found is not None:
            axes, higher = place
            style = {"fontsize": found[1], "color": contrast(box.colour), "parse_math": False, **_MIDDLE}
            gid = "label:" + box.gid.partition(":")[2] if role != "empty" else box.gid
            axes.text((free.left + free.right) / 2, free.middle - higher, found[0], zorder=8, gid=gid, **style)
        return found is not None and found[0] == wordings[0][0]

    def write_run(self, box: Box) -> list[Text]:
        """Write the name of a run, or a number that the key explains, and return it; if there is room for one."""
        place = self.panel.place_of(box)
        assert place is not None
        free = box.without(self.panel.covers)
        axes, higher = place
        x, y = (free.left + free.right) / 2, free.middle - higher
        text = axes.text(x, y, "", gid=box.gid.replace("run", "label", 1), parse_math=False, zorder=8, **_MIDDLE)
        text.set_color(contrast(box.colour))
        # Where the line of the makespan or of the bound would cross the name, it passes behind.
        text.set_bbox({"facecolor": box.colour, "edgecolor": "none", "pad": 0.4})
        width, height = self.room(free, _USUAL_PADDING)
        height -= 2 * _USUAL_PADDING
        if self.fit(text, box.label, width, height):
            return [text]
        name, order = elide(box.label), len(self.missing)
        if self.fit(text, f"#{self.counted + 1}", width, height):
            self.counted += 1
            self.missing.append((order, box.colour, f"#{self.counted} {name}"))
            return [text]
        text.remove()
        self.missing.append((order, box.colour, f"{name} ({box.place})"))
        return []

    def fit(self, text: Text, name: str, width: float, height: float) -> bool:
        """Write ``name`` as large as it fits into a rectangle (in points); return whether it does at all."""
        best = (0.0, 0.0, "", 0)
        for lines, rotation, preference in _WAYS:
            wording = wrap_name(name, lines)
            text.set(text=wording, rotation=rotation, fontsize=_LARGEST)
            own_width, own_height = self.sheet.extent(text)
            scale = min(1.0, width / own_width, height / own_height)
            best = max(best, (scale * preference, scale, wording, rotation), key=lambda option: option[0])
        _, scale, wording, rotation = best
        text.set(text=wording, rotation=rotation)
        for half_points in range(int(2 * _LARGEST * scale), int(2 * _SMALLEST) - 1, -1):
            text.set_fontsize(half_points / 2)
            own_width, own_height = self.sheet.greatest_extent(text)
            if own_width <= width and own_height <= height:
                return True
        return False

    def write_tags(self, boxes: Sequence[Box], labels: Sequence[Text]) -> None:
        """Write the labels into the corners of boxes, where that leaves the names alone."""
        taken = [self.sheet.bounds(label).padded(FINE / 72) for label in labels]
        style: dict[str, Any] = {"fontsize": _TAG_FONT, "color": INK, "va": "top", "textcoords": "offset points"}
        style["parse_math"] = False
        for box in boxes:
            place = self.panel.place_of(box)
            assert place is not None
            free, (axes, higher) = box.without(self.panel.covers), place
            gid = box.gid.replace("instance", "profile", 1)
            corner = free.left, box.top - higher
            plate = axes.annotate(box.label, corner, (2.5, -2.5), gid=gid, zorder=7, **style)
            plate.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
            own = self.sheet.bounds(plate).padded(FINE / 36)
            width, height = self.sheet.extent(plate)
            room = self.room(free, 0.0)
            if width + 5 > room[0] or height + 5 > room[1] or own.count_overlaps(taken):
                plate.remove()


def draw_labels(panel: PanelImage, rules: Sequence[Rule]) -> float:
    """Draw one or two lines with labels that keep apart; return the inches that these take above the panel."""
    sheet, parts, main = panel.sheet, panel.parts, rules[0]
    ordered = sorted(rules, key=lambda rule: rule.at)
    marks = [(rule.at, rule.wording, rule.gid, rule.colour) for rule in ordered]
    if len({rule.value for rule in rules}) < len(rules):
        same = " = ".join([*(rule.name for rule in rules), main.value])
        marks = [(main.at, same, main.gid, INK)]
    style: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "bottom"}
    labels = [
        parts[0].annotate(wording, (at, 1), (0, 0), gid=f"{gid}-label", color=colour, fontsize=8, **style)
        for at, wording, gid, colour in marks
    ]
    across, first = panel.points_across(), parts[0].get_xlim()[0]
    widths = [sheet.extent(label)[0] for label in labels]
    tops = {}
    places = apart([(mark[0] - first) * across for mark in marks], widths)
    for (_, _, gid, _), label, (side, tier) in zip(marks, labels, places, strict=True):
        label.set(ha=side, position=(-3 if side == "right" else 3, 2 + 11 * tier))
        tops[gid] = (12 + 11 * tier) / 72
    # White beside the dashes keeps them visible on dark runs; beside a line on top of them it would be in the way.
    halo: list[AbstractPathEffect] = [withStroke(linewidth=2.6, foreground="white")] if len(marks) > 1 else []
    rows = panel.panel.rows
    between = 0.0 if rows is None else rows.gap / rows.size
    # The main line comes last, on top of one that coincides with it.
    for rule in sorted(ordered, key=lambda rule: rule == main):
        for number, axes in enumerate(parts):
            top = 1 + tops.get(rule.gid, tops[main.gid]) / panel.height(0) if number == 0 else 1.0
            bottom = -between if number < len(parts) - 1 else 0.0
            (drawn,) = axes.plot(
                [rule.at, rule.at], [bottom, top], color=rule.colour, ls="--" if rule.dashed else "-", gid=rule.gid,
                transform=axes.get_xaxis_transform(), linewidth=1.2, clip_on=False, zorder=6,
            )  # fmt: skip
            if rule.dashed:
                drawn.set_path_effects(halo)
    return max(tops.values())
