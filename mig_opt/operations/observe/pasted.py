"""Texts as they are pasted: with quotes, prompts, colours, times and names of nodes around the outputs themselves.

Such a text is taken apart into outputs, each as its program printed it, whose lines keep the numbers that they have in
the text. What is no part of an output is told, unless it is known to say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mig_opt.files.documents import shown
from mig_opt.operations.observe.sightings import Sightings, Source

_PROGRAM = (
    r"(?:ansible|cat|clush|date|docker|echo|exit|hostname|jq|kubectl|less|nvidia-smi|oc|pdsh|podman|scontrol|sinfo|"
    r"squeue|srun|ssh|sudo|watch)(?![\w.:\"-])"
)
_COMMANDS = [
    re.compile(pattern)
    for pattern in (
        # root@node:~#, [root@node ~]$, (base) user@node> with anything behind
        r"(?P<prompt>(?:\([^()]*\) ?)*\[?\w[\w.+-]*@\w[\w.-]*)(?:[ :][^\]$#%>]*)?(?:\] ?[$#%>]?|[$#%>])"
        r"(?: (?P<line>.*))?",
        # $, bash-5.1$, sh-5.1#, /app $, node:~$, PS C:\Users\me>, C:\>
        r"(?P<prompt>[\w.-]*(?:[ :]?[~/][\w./~-]*)? ?\$|(?:ba|z)?sh-[\d.]+#|(?:PS )?[A-Z]:\\[^>|]*>)(?P<line>.*)",
        # Signs that may stand before anything else, only with a program that is known; set -x writes plus signs
        r"(?P<prompt>(?:(?!: )[^|\"{}<>=]){0,60}?[#>%!\u276f\u00bb\u279c\u03bb]|\++)"
        rf"(?: *| +[\w./~-]+ +)(?P<line>{_PROGRAM}.*)",
        r"(?P<prompt>)(?P<line>\(?(?:sudo +)?(?:nvidia-smi(?: *[;&|>].*| +(?:-|mig ).*)?|kubectl +(?:get|exec|logs) .*|"
        r"scontrol +(?:-\S+ +)*show .*|cat \S+))",
    )
]
_HOST = re.compile(r"(?:\([^()]*\) ?)*\[?(?:\S+@)?(?!(?:ba|z)?sh-|PS\b|[A-Z]:\\)([^\W\d][\w-]*|\d[\w.-]*)")
_FENCE = re.compile(
    r"(?:`{3,}|~{3,}) *[\w+-]*|\{(?:code|noformat)[^{}]*\}|</?(?:pre|code|details|summary)\b[^<>]*>(?:.*</summary>)?"
)
_HEADING = re.compile(r"([\w.-]+) \| (?:(?:CHANGED|SUCCESS) \| rc=0|FAILED \| rc=6) >>")
"""Heading of ansible above the output of a command on a node."""

_HARMLESS = re.compile(
    r"Defaulted container .* out of: .*|"
    r"(?:Warning: )?Permanently added .* to the list of known hosts\.|Connection to \S+ closed\.|Last login: .*|"
    # nvidia-smi mig says by code 6 that it found no instances, which is in its output
    r"(?:(?:pdsh@\S+|clush): \S+: (?:ssh )?exited|command terminated) with exit code 6|"
    r"exit|logout|Unable to use a TTY .*|Pseudo-terminal will not be allocated .*|\[sudo\] password for [^:]*:.*|"
    r"Starting pod/\S+ \.\.\..*|Removing debug pod \.\.\.|To use host binaries, run `chroot /host`.*|"
    # The rest of messages of nvidia-smi, of which the first line is told
    r"(?:Enabled|Disabled) MIG Mode for GPU \S+|All done\.|Reboot the system or try nvidia-smi --gpu-reset .*|"
    r"\S+ is currently being used by one or more other processes .*|NVML library version: .*|"
    r"(?:Please )?[Mm]ake sure that the (?:latest )?NVIDIA .*|Please also try adding directory .*"
)
_WARNING = re.compile(
    r"(?:WARNING|Warning|warning)\b.*|[IW]\d{4} [\d:.]+ +\d+ \S+\] .*|sudo: unable to resolve host .*"
)
PENDING = re.compile(r"Warning: MIG mode is in pending (enable|disable) state for GPU .*")
"""Words of nvidia-smi about a mode of MIG that is not in force yet."""

_BEFORE = r"[^=|\"'{<]*"  # no value of a key, cell of a table or text in quotes
_REFUSALS = {
    "nvidia-smi was refused: {}; run it as root": rf"{_BEFORE}Insufficient Permissions.*",
    "there is no NVIDIA driver that answers: {}; give what nvidia-smi prints where its driver runs": (
        r"(?:\S+: )?(?:NVIDIA-SMI (?:has failed|couldn't)\b.*|Failed to initialize NVML: .*)|"
        rf"{_BEFORE}couldn't communicate with the NVIDIA driver.*"
    ),
    "there is no GPU: {}; leave this machine out": r"(?:\S+: )?No devices (?:were )?found\.?",
    "there is no such command: {}; run it where the driver of NVIDIA is installed": (
        rf"{_BEFORE}(?:command not found|nvidia-smi: not found|nvidia-smi: No such file or directory)|"
        r".*executable file not found in \$PATH.*|.*'nvidia-smi' is not recognized as .*"
    ),
    "a command failed, so that something is missing here: {}; give its whole output": (
        r"(?:Unable to determine the device handle|Failed to) .*|(?:Error|error|ERROR)\b[^=]*|"
        r"The connection to the server .*|command terminated with exit code .*|(?:ssh|pdsh@\S+|clush): .*|"
        r"\w+(?: \w+)?: error: .*|[EF]\d{4} [\d:.]+ +\d+ \S+\] .*|slurm_\w+ error: .*"
    ),
}
"""Patterns of lines that say why there is no output, by what is told of them."""

_NAMES = (
    "Mon|Tue|Wed|Thu|Fri|Sat|Sun|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|"
    "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|"
    "January|February|March|April|June|July|August|September|October|November|December"
)
_DATE_WORD = re.compile(
    rf"(?:{_NAMES}|AM|PM|UTC|GMT|[A-Z]{{2,4}}T|[+-]\d{{2}}:?\d{{2}}|\d[\dT:.,/-]*(?:Z|[+-][\d:]+)?),?"
)
_CLOCK = re.compile(r"(?<![\d:])\d{1,2}:\d\d:\d\d(?![\d:])")


class Command(NamedTuple):
    """Line with which an output begins: a command, or a mark around a block of text."""

    line: str = ""
    host: str = ""
    """Machine of the prompt, if it names one, without its domain."""

    @property
    def target(self) -> str | None:
        """Machine or pod where a command runs that is sent there; None if it is sent nowhere.

        Examples
        --------
        >>> Command("ssh -p 22 root@node1 nvidia-smi -L").target, Command("nvidia-smi -L").target
        ('node1', None)
        >>> Command("kubectl exec -n gpu -it driver-7 -c main -- nvidia-smi").target
        'driver-7'
        """
        found = re.search(r"\b(?:ssh|(?:kubectl|oc) (?:.* )?(?:exec|rsh|debug))\s+(.*)", self.line)
        if found:
            # Options, with the value of those that have one, and the user
            rest = re.sub(r"(?:^|(?<=\s))(?:-[ncplFJo]|--(?:namespace|container|context))[ =]+\S+", "", found[1])
            names = [word for word in rest.split() if not word.startswith("-")]
            return names[0].rpartition("@")[2] if names else ""
        found = re.search(r"\bsrun .*(?:-w *|--nodelist[ =])(\S+)", self.line)
        return found[1] if found else None


def command_in(text: str) -> Command | None:
    """Return the command of a line that is a prompt with what was typed, or the mark of a block; None if it is none.

    Examples
    --------
    >>> command_in("root@node1:~# nvidia-smi -L")
    Command(line='nvidia-smi -L', host='node1')
    >>> command_in("+ nvidia-smi mig -lgi").line, command_in("+-----+"), command_in("# a comment")
    ('nvidia-smi mig -lgi', None, None)
    """
    if _FENCE.fullmatch(text):
        return Command()
    if found := _HEADING.fullmatch(text):
        return Command("nvidia-smi", found[1])
    for pattern in _COMMANDS:
        if found := pattern.fullmatch(text):
            named = _HOST.match(found["prompt"])
            return Command((found["line"] or "").strip(), named[1] if named else "")
    return None


def is_harmless(text: str) -> bool:
    """Return True for a line that says nothing of GPUs: a date, or talk of a program that carries the output.

    Examples
    --------
    >>> [is_harmless(text) for text in ("Mon Nov  3 10:00:00 2025", "2025-11-03T10:00:00+01:00", "10 GPUs", "")]
    [True, True, False, False]
    """
    if _HARMLESS.fullmatch(text):
        return True
    return bool(_CLOCK.search(text)) and all(map(_DATE_WORD.fullmatch, text.split()))


def refusal_in(text: str) -> str:
    """Return words for a line that says why there is no output; empty for every other line.

    Examples
    --------
    >>> refusal_in("No devices were found")
    'there is no GPU: "No devices were found"; leave this machine out'
    """
    message = next((message for message, pattern in _REFUSALS.items() if re.fullmatch(pattern, text)), "")
    return message and message.format(shown(text, 80))


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
"""Name of the node before each line of output, from tools that run a command on many nodes."""

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
        parts = []
        for output in found:
            node = output.node or (output.place if len(places) > 1 else "") or self._source.node
            numbers, texts = zip(*output.lines, strict=True)
            parts.append(Source("\n".join(texts), self._source.label, node, numbers))
        return parts or [Source("", self._source.label, self._source.node)]

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
        elif not _WARNING.fullmatch(text) or PENDING.fullmatch(text):
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
    if not indent:
        return lines
    return [(number, line[len(indent) :] if line.startswith(indent) else line.lstrip()) for number, line in lines]


def _around(lines: Iterable[_Line]) -> Iterator[bool]:
    """Yield for each line whether it may be beside an output: it is in no table, XML, JSON or object in YAML."""
    inside = False
    for _, line in lines:
        inside = inside or bool(_OBJECT.match(line))
        yield bool(line) and line.lstrip()[0] not in _OF_OUTPUTS and not (inside and line[0] == " ")


def _without_margin(line: str) -> str:
    found = _MARGIN.match(line)
    return line[found.end() :] if found and not is_harmless(line.strip()) else line
