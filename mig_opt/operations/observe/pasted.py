"""Texts as they are pasted: with quotes, prompts, colours, times and names of nodes around the outputs themselves.

Such a text is taken apart into outputs, each as its program printed it, whose lines keep the numbers that they have in
the text. What is no part of an output is told, unless it is known to say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mig_opt.files.documents import shown
from mig_opt.operations.observe.remarks import Command, command_in, is_harmless, is_warning, refusal_in
from mig_opt.operations.observe.sightings import Sightings, Source

_OTHER_THAN_JSON = re.compile(
    r'^[ \t]*(?!["{}\],:\r]|\[ *["{\[\]]|\[?\r?$|\r?\n|(?:-?\d[\d.eE+-]*|true|false|null),?\r?$)[^ \t]', re.MULTILINE
)
"""Begin of a line that JSON alone does not have."""

_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-Z\\^-~])|[\ufeff\u200b]"
)
"""Colours and other commands to a terminal; marks that take no room."""

_MARGIN = re.compile(r"(?:\s*>)+|\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?=\s|$)")
"""Quotes of markdown and mails, and the time of a line."""

_NODE = re.compile(r"\s*(?!Warning:)(?:([A-Za-z0-9][\w.-]*):|\[([A-Za-z0-9][\w./-]*)\]) ?(.*)")
"""What tools that run a command on many nodes put before each line of its output."""

_OBJECT = re.compile(r"(?:apiVersion|kind):")
_INDENTED = re.compile(r"(\s*)(?:apiVersion|kind):")
"""Keys with which objects in YAML begin."""

_OF_OUTPUTS = frozenset('"{}|<')
"""Characters with which lines of outputs begin, whatever stands behind."""

_MOST_LAYERS = 4
"""Margins, and names of nodes, that may stand before one line."""

_Line = tuple[int, str]


class _Output(NamedTuple):
    lines: list[_Line]
    node: str  # by the names before its lines
    place: str | None  # machine on which its command ran; None if it has no command line of nvidia-smi


def outputs(sources: Iterable[Source], seen: Sightings) -> list[Source]:
    """Return the outputs of which texts are made up; note warnings, and what says that an output is missing."""
    return [part for source in sources for part in _Pasted(source, seen).outputs()]


class _Pasted:
    """One text; ``here`` is the machine on which the commands run that are typed at a line of it."""

    def __init__(self, source: Source, seen: Sightings) -> None:
        self._source, self._seen = source, seen
        self._here = ""
        self._noted: set[str] = set()

    def outputs(self) -> list[Source]:
        """Return its outputs; an empty one if it has none."""
        if not _OTHER_THAN_JSON.search(self._source.text):
            return [self._source]  # nothing to look for, line by line, in what may be very long
        text = _CONTROL.sub("", self._source.text).replace("\u00a0", " ")
        lines = [(number, line.rstrip()) for number, line in enumerate(text.split("\n"), 1)]
        found = [output for output in self._apart(lines, "", None, 0) if any(line for _, line in output.lines)]
        places = self._places(found)
        label, node = self._source.label, self._source.node
        return [
            Source(
                "\n".join(line for _, line in output.lines),
                *(label, output.node or (output.place if len(places) > 1 else "") or node),
                tuple(number for number, _ in output.lines),
            )
            for output in found
        ] or [Source("", label, node)]

    def _apart(self, lines: Sequence[_Line], node: str, place: str | None, names: int) -> Iterator[_Output]:
        """Yield the outputs in some lines."""
        lines = _dedented(lines)
        for _ in range(_MOST_LAYERS):
            commands = dict(_commands(lines))
            bare = [(number, _without_margin(line)) for number, line in lines]
            if commands or _are_yaml(lines) or bare == lines:
                break
            lines = _dedented(bare)  # what is between the lines may have had another indent
        if commands:
            edges = [*commands, len(lines)]
            yield from self._apart(lines[: edges[0]], node, place, names)
            for (at, command), end in zip(commands.items(), edges[1:], strict=True):
                begin = at + 1
                while begin < end and lines[begin - 1][1].endswith("\\"):
                    begin += 1
                yield from self._apart(lines[begin:end], node, self._place(command), names)
            return
        yaml = _are_yaml(lines)
        lines = [
            (number, line)
            for (number, line), outside in zip(lines, _around(lines), strict=True)
            if not is_harmless(line.strip()) and not (outside and self._is_told(number, line.strip()))
        ]
        named = [(line, _NODE.fullmatch(line[1])) for line in lines if line[1]]
        if yaml or names == _MOST_LAYERS or 2 * sum(found is not None for _, found in named) < max(len(named), 1):
            yield _Output(lines, node, place)
            return
        nodes: dict[str, list[_Line]] = {}
        for (number, line), found in named:
            if found:
                nodes.setdefault(found[1] or found[2], []).append((number, found[3]))
            else:
                message = f"has no name of a node in front, unlike the lines around it: {shown(line.strip(), 60)}"
                self._seen.wrong(self._source.where(number), message)
        for name, own in nodes.items():
            yield from self._apart(own, name, None, names + 1)

    def _is_told(self, number: int, text: str) -> bool:
        """Return True for a warning, and for what is there in place of an output, after noting it."""
        where = self._source.where(number)
        if message := refusal_in(text):
            self._seen.wrong(where, message)
        elif not is_warning(text):
            return False
        elif text not in self._noted:
            self._noted.add(text)
            self._seen.notes.append(f"{where} warns: {shown(text, 120)}")
        return True

    def _place(self, command: Command) -> str | None:
        """Return the machine on which a command line runs nvidia-smi; None if it does not."""
        self._here = command.host or self._here
        target = command.target
        if "nvidia-smi" in command.line:
            return self._here if target is None else target
        if target or command.line in ("exit", "logout"):
            self._here = target or ""
        return None

    def _places(self, found: Iterable[_Output]) -> list[str]:
        """Return the machines that command lines name; if there are several, note outputs of which none is named."""
        own = [output for output in found if not output.node]
        places = list(dict.fromkeys(output.place for output in own if output.place is not None))
        if len(places) > 1:
            self._seen.notes.append(f"by its command lines the text is of several machines: {', '.join(places)}")
            for output in own:
                if not output.place:
                    number = next(number for number, line in output.lines if line)
                    message = "the command lines name several machines, and none for this output; give it as a file"
                    self._seen.wrong(self._source.where(number), f"{message} of its own, called after its machine")
        return places


def _are_yaml(lines: Iterable[_Line]) -> bool:
    return any(_OBJECT.match(line) for _, line in lines)


def _commands(lines: Sequence[_Line]) -> Iterator[tuple[int, Command]]:
    """Yield the command lines and marks of blocks, each with its index."""
    for at, ((_, line), outside) in enumerate(zip(lines, _around(lines), strict=True)):
        if outside and (command := command_in(line.strip())):
            yield at, command


def _dedented(lines: Sequence[_Line]) -> Sequence[_Line]:
    """Return lines without the indent of the objects in YAML among them; elsewhere an indent says nothing."""
    indents = [found[1] for _, line in lines if (found := _INDENTED.match(line))]
    indent = min(indents, key=len, default="")
    return (
        [(number, line[len(indent) :] if line.startswith(indent) else line.lstrip()) for number, line in lines]
        if indent
        else lines
    )


def _around(lines: Iterable[_Line]) -> Iterator[bool]:
    """Yield for each line whether it may be beside an output: it is in no table, XML, JSON or object in YAML."""
    inside = False
    for _, line in lines:
        inside = inside or bool(_OBJECT.match(line))
        yield bool(line) and line.lstrip()[0] not in _OF_OUTPUTS and not (inside and line[0] == " ")


def _without_margin(line: str) -> str:
    found = _MARGIN.match(line)
    return line[found.end() :] if found and not is_harmless(line.strip()) else line
