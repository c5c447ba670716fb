"""Lines beside the outputs of programs: command lines, dates, warnings, and what is there in place of an output."""

from __future__ import annotations

import re
from typing import NamedTuple

from mig_opt.files.documents import shown

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
_HEADING = re.compile(r"([\w.-]+) \| (?:CHANGED|SUCCESS) \| rc=0 >>")
"""What ansible prints above what a command printed on a node."""

_HARMLESS = re.compile(
    r"Defaulted container .* out of: .*|"
    r"(?:Warning: )?Permanently added .* to the list of known hosts\.|Connection to \S+ closed\.|Last login: .*|"
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
"""What nvidia-smi says of a mode of MIG that is not in force yet."""

_BEFORE = r"[^=|\"'{<]*"  # no value of a key, cell of a table or text in quotes
_REFUSALS = (
    (
        re.compile(rf"{_BEFORE}Insufficient Permissions.*"),
        "nvidia-smi was refused: {}; run it as root",
    ),
    (
        re.compile(
            r"(?:\S+: )?(?:NVIDIA-SMI (?:has failed|couldn't)\b.*|Failed to initialize NVML: .*)|"
            rf"{_BEFORE}couldn't communicate with the NVIDIA driver.*"
        ),
        "there is no NVIDIA driver that answers: {}; give what nvidia-smi prints where its driver runs",
    ),
    (re.compile(r"(?:\S+: )?No devices (?:were )?found\.?"), "there is no GPU: {}; leave this machine out"),
    (
        re.compile(
            rf"{_BEFORE}(?:command not found|nvidia-smi: not found|nvidia-smi: No such file or directory)|"
            r".*executable file not found in \$PATH.*|.*'nvidia-smi' is not recognized as .*"
        ),
        "there is no such command: {}; run it where the driver of NVIDIA is installed",
    ),
    (
        re.compile(
            r"(?:Unable to determine the device handle|Failed to) .*|(?:Error|error|ERROR)\b[^=]*|"
            r"The connection to the server .*|command terminated with exit code .*|(?:ssh|pdsh@\S+): .*|"
            r"\w+(?: \w+)?: error: .*|[EF]\d{4} [\d:.]+ +\d+ \S+\] .*|slurm_\w+ error: .*"
        ),
        "a command failed, so that something is missing here: {}; give its whole output",
    ),
)

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


def is_warning(text: str) -> bool:
    """Return True for a warning that does not say that anything is missing."""
    return bool(_WARNING.fullmatch(text)) and not PENDING.fullmatch(text)


def refusal_in(text: str) -> str:
    """Return words for a line that says why there is no output; empty for every other line.

    Examples
    --------
    >>> refusal_in("No devices were found")
    'there is no GPU: "No devices were found"; leave this machine out'
    """
    message = next((message for pattern, message in _REFUSALS if pattern.fullmatch(text)), "")
    return message and message.format(shown(text, 80))
