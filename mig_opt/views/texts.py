"""Names, labels and colours of a chart, as far as they need no renderer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

LONGEST_NAME, LONGEST_TITLE = 200, 1000
"""Characters that pictures show at most: more would take seconds to measure, and find no room."""

INK, GRID, IDLE, BOUND, LINES = "#1f1f1f", "#dddddd", "#ececec", "#b0003a", "#9a9a9a"
NO_SLICES = "no such slices"  # in rows that are as high as the GPU with the most slices

PALETTE = re.findall(
    r"\w+",
    """
    3485c9 f9d46b 9d4616 dda4f7 5cb572 58f3e7 237356 7f4995 cd9130 db7aa6 818643 9897d5 f2a7a3 a36b93 b3ca65 a4ee9e
    71cfd7 3960ac b26f08 239761 51aebd 55a4eb 7b78b4 4ed9b5 874d6f 90e7ff a7a25e 9f3e4b d0878c bd5b7d 2e752a 9eebc9
    e9b082 e8a7cb e7b551 cce47f c389b2 94aa44 90427d ab61a5 af6d59 a5cb90 eed592 775386 d4ade6 359282 6a8e2e b6e7b1
    ad90ca 6f4fa1 1db896 ab8be3 8d6cc2 855823 8f4c53 49cffc 4c6f38 fac2f4 8cd0a7 4e916b 2b9098 ce8d6f 398ba9 bb672b
    2fd4ec d17dbb 92ebda 8c4c61 78d1c0 037465 d98941 fba962 f1a6b3 8bd385 53b1a8 e08256 33d8cc 75ae81 6b578f 12aedb
    6df3ce 65b090 d8de99 dab979 4d9348 88f1b6 a0783e 608e5c ae6976 61a8cd 774c9c d9e077 9569bc a6cd6f bfe888 7af3c2
    397247 8f4e44 6752a6 d0897d 96f0aa a18ee8 954074 37b78a 8370c6 97a766 e4dc71 9a6ea0 a04034 cb7fc5 f5ad5a e47b79
    c15e50 8874ae 116d8a 5d55a9 df7a9b 729def 557ecd a03f40
""",
)
"""Colours of tasks: each is as far as possible from those before it, for all eyes, also those without red or green
cones (distances in the OKLab space, over five lightnesses, two chromas and all hues). Greys are left to idle time."""


def colour_of(number: int) -> str:
    """Return the colour of a task, service, job or profile by its number."""
    return f"#{PALETTE[number % len(PALETTE)]}"


def apart(at: Sequence[float], widths: Sequence[float]) -> list[tuple[Literal["left", "right"], int]]:
    """Return on which side of its line the label of each ends, and in which tier, so that none touches another.

    ``at`` ascends; one or two lines, in points. A line ends at the height of its own label.
    """
    room = 6.0
    if at[0] >= widths[0] + room:
        if len(at) == 1:
            return [("right", 0)]
        return [("right", 0), ("right", int(at[1] - widths[1] < at[0] + room))]
    if len(at) == 1:
        return [("left", 0)]
    if at[1] - widths[1] > at[0] + widths[0] + 2 * room:
        return [("left", 0), ("right", 0)]
    return [("left", int(at[1] < at[0] + widths[0] + 2 * room)), ("left", 0)]


def one_line(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name on one line, without characters that no font can show, and without its middle if it is longer."""
    shown = elide(" ".join(name.split()), most)
    return "".join(character if character.isprintable() else "\ufffd" for character in shown) or "?"


def elide(name: str, most: int = 48) -> str:
    """Return a name with its middle left out, if it is longer than ``most`` characters."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def elide_all(names: Sequence[str], most: int) -> list[str]:
    """Return names with their middle left out from ``most`` characters on, or from more if else different ones meet."""
    while True:
        found = [elide(name, most) for name in names]
        if len(set(found)) == len(set(names)):
            return found
        most += 4


def wrap_name(name: str, lines: int) -> str:
    """Break a name after separators into at most that many lines, as even as a greedy choice makes them.

    The point before a digit is none, so that no number is broken.
    """
    pieces, rows = re.findall(r"(?:[^-_/.: ]|\.(?=\d))*(?:[-_/: ]|\.(?!\d))*", name)[:-1], [""]
    for piece in pieces:
        if len(rows) < lines and rows[-1] and len(rows[-1]) + len(piece) / 2 > len(name) / lines:
            rows.append("")
        rows[-1] += piece
    return "\n".join(row.strip() for row in rows)


def spell_seconds(seconds: float) -> str:
    """Return a number of seconds as a label shows it."""
    return f"{seconds:.0f} s" if 1e6 <= abs(seconds) < 1e7 else f"{seconds:.6g} s"


def spell_span(begin: float, end: float) -> str:
    """Return an interval of time as a hint shows it."""
    return f"{spell_seconds(begin)} to {spell_seconds(end)} ({spell_seconds(float(f'{end - begin:.9g}'))})"


def spell_slices(slices: range) -> str:
    """Return neighbouring memory slices as a hint shows them."""
    return f"slices {slices[0]}-{slices[-1]}" if len(slices) > 1 else f"slice {slices[0]}"


def contrast(colour: str) -> str:
    """Return the ink that stands out more on ``colour`` (contrast ratio of WCAG 2)."""
    encoded = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in encoded)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "white"
