"""Objects of Kubernetes as ``kubectl get ... -o json`` or ``-o yaml`` prints them; problems have their lines."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import key_name, parsed, shown, without_comments
from mig_opt.files.locations import parts_of_json
from mig_opt.files.values import Findings, Raw
from mig_opt.operations.observe.sightings import Sightings, Source

_NEEDED = (
    'is YAML, which needs PyYAML; install it with: pip install "mig-opt[yaml]", or give what kubectl get ... -o json '
    "prints"
)
_DATE = "tag:yaml.org,2002:timestamp"


class LinedObject(dict[str, Any]):
    """Object of a document with the line at which it begins."""

    line: int


def looks_like_yaml(text: str) -> bool:
    r"""Return True if a text may be an object of Kubernetes in YAML.

    Examples
    --------
    >>> looks_like_yaml("apiVersion: v1\nitems: []\n"), looks_like_yaml('{"apiVersion": "v1"}')
    (True, False)
    """
    return not re.match(r"\s*[\[{]", text) and bool(re.search(r"^(apiVersion|kind):", text, re.MULTILINE))


def read_yaml(source: Source, findings: Findings) -> Iterator[LinedObject]:
    """Yield the documents of a text, up to the first one that cannot be read; note what is wrong with them.

    Raises
    ------
    InputError
        If PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise InputError([Problem("", _NEEDED)], findings.source) from None
    loader, values = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(source.text), _Values(yaml, source, findings)
    try:
        while loader.check_node():
            yield from values.document(loader.get_node())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "holds a character that is not allowed"
        findings.add(source.where(mark.line + 1 if mark else 1), f"is no YAML: {problem}")
    except RecursionError:
        findings.add(source.where(1), "is nested too deeply for objects of Kubernetes")
    finally:
        loader.dispose()


class _Values:
    """Values of the nodes of PyYAML."""

    def __init__(self, yaml: Any, source: Source, findings: Findings) -> None:
        self._yaml, self._source, self._findings = yaml, source, findings
        self._scalars = yaml.constructor.SafeConstructor()
        self._seen: set[int] = set()

    def _wrong(self, node: Any, message: str) -> None:
        self._findings.add(self._source.where(node.start_mark.line + 1), message)

    def document(self, node: Any) -> Iterator[LinedObject]:
        """Yield a document, if it is an object."""
        self._seen.clear()
        found = self._of(node)
        if isinstance(found, LinedObject):
            yield found
        elif found is not None:  # what is empty is nothing
            self._wrong(node, f"must be an object, is {shown(found)}")

    def _of(self, node: Any) -> Any:
        if isinstance(node, self._yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._seen:
            return self._wrong(node, "stands at several places by an alias (*name), which kubectl does not write")
        self._seen.add(id(node))
        if isinstance(node, self._yaml.SequenceNode):
            return [self._of(entry) for entry in node.value]
        found = LinedObject()
        found.line = node.start_mark.line + 1
        for key, entry in node.value:
            name = str(key.value)
            if name in found:
                self._wrong(key, f"{key_name(name)} stands twice in the same object; keep one of them")
            found[name] = self._of(entry)
        return found

    def _scalar(self, node: Any) -> Any:
        try:
            return node.value if node.tag == _DATE else self._scalars.construct_object(node)
        except (ValueError, self._yaml.YAMLError):
            return self._wrong(node, f"cannot be read: {shown(node.value)}")


T = TypeVar("T")
_BLANK = re.compile(r"\s*")
_DECODER = json.JSONDecoder()
_LONGEST = 200
"""Levels of a document; Kubernetes allows far fewer."""


@dataclass(frozen=True)
class Document:
    """Document of a source, or one in a text of another document: then ``holder`` is the object with that text."""

    source: Source
    raw: Raw
    holder: object = None

    @cached_property
    def _lined(self) -> Any:
        text = self.source.text
        ends = [found.start() for found in re.finditer("\n", text)]
        lined = isinstance(self.raw, LinedObject)
        return self.raw if lined else _lined(self.raw, text, len(text) - len(text.lstrip()), ends)

    def where(self, path: tuple[str | int, ...]) -> str:
        """Return the words for the line of a part, or of the innermost object that holds it."""
        if self.holder is not None:
            return str(self.holder)
        value, line = self._lined, 1
        for step in path:
            line, value = getattr(value, "line", line), value[step]
        return self.source.where(getattr(value, "line", line))


def _lined(value: Any, text: str, begin: int, ends: Sequence[int]) -> Any:
    """Return a JSON value whose objects know their lines; it begins at a place in a text with these ends of lines."""
    if not isinstance(value, dict | list):
        return value
    places = dict(parts_of_json(text, begin)).items()  # the last of a key that is repeated, as in the value
    if isinstance(value, list):
        return [_lined(value[index], text, at, ends) for index, (at, _) in places]
    found = LinedObject((key, _lined(value[key], text, at, ends)) for key, (at, _) in places)
    found.line = bisect.bisect(ends, begin) + 1
    return found


@dataclass(frozen=True)
class Part:
    """Object of a document, or a part of one, that is read step by step."""

    document: Document
    path: tuple[str | int, ...]
    value: Any
    findings: Findings

    def __str__(self) -> str:
        """Return words for its line."""
        return self.document.where(self.path)

    @property
    def name(self) -> str:
        """Keys that lead to it, for messages."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return re.sub(r"^\.", "", "".join(steps))[-_LONGEST:] or "the document"

    def wrong(self, message: str) -> None:
        """Note that it is wrong."""
        self.findings.add(str(self), f"{self.name} {message}")

    def find(self, *keys: str) -> Part | None:
        """Return the part at a path of keys; None if there is none."""
        value = self.value
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return None if value is None else Part(self.document, (*self.path, *keys), value, self.findings)

    def text(self, *keys: str, needed: bool = False) -> str:
        """Return the text at a path of keys; empty if there is none, which is noted if it is needed."""
        return self._read(keys, str, "a text", needed=needed) or ""

    def whole(self, *keys: str, needed: bool = False) -> int | None:
        """Return the whole number at a path of keys, None if there is none."""
        return self._read(keys, int, "a whole number", needed=needed)

    def texts(self, *keys: str) -> dict[str, str]:
        """Return an object with texts at a path of keys, without what is no text."""
        found = self._read(keys, dict, "an object {...}") or {}
        return {key: value for key, value in found.items() if isinstance(value, str)}

    def entries(self, *keys: str) -> list[Part]:
        """Return the objects of a list at a path of keys."""
        values, path = self._read(keys, list, "a list [...]") or [], (*self.path, *keys)
        parts = [Part(self.document, (*path, index), value, self.findings) for index, value in enumerate(values)]
        for part in parts:
            if not isinstance(part.value, dict):
                part.wrong(f"must be an object {{...}}, is {shown(part.value)}")
        return [part for part in parts if isinstance(part.value, dict)]

    def _read(self, keys: tuple[str, ...], kind: type[T], wanted: str, *, needed: bool = False) -> T | None:
        found = self.find(*keys)
        if found is None:
            if needed:
                self.wrong(f"has no {'.'.join(keys)}, which must be {wanted}")
            return None
        if not isinstance(found.value, kind) or isinstance(found.value, bool):
            found.wrong(f"must be {wanted}, is {shown(found.value)}")
            return None
        return found.value


def read_documents(sources: Iterable[Source], findings: Findings) -> list[Document]:
    """Return the documents of sources, those that can be read."""
    documents: list[Document] = []
    for source in sources:
        if looks_like_yaml(source.text):
            documents += (Document(source, raw) for raw in read_yaml(source, findings))
            continue
        for part in _apart(source):
            try:
                raw, repeated = parsed(part.text, "")
            except InputError as error:
                for problem in error.problems:
                    where = re.match(r"line (\d+)", problem.path)
                    findings.add(part.where(int(where[1]) if where else 1), problem.message)
                continue
            for problem in repeated:
                findings.add(part.where(1), str(problem))
            documents.append(Document(part, raw))
    for document in documents:
        if _is_deeper(document.raw, _LONGEST):
            findings.add(document.source.where(1), "is nested too deeply for objects of Kubernetes")
    return documents


def _apart(source: Source) -> Iterator[Source]:
    """Yield the JSON documents of a text, which may stand one after the other, each with its lines."""
    text = without_comments(source.text)
    numbers = source.numbers or range(1, text.count("\n") + 2)
    begin = line = 0
    while (at := _BLANK.match(text, begin).end()) < len(text) or not begin:  # type: ignore[union-attr]  # it matches
        try:
            end = _DECODER.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            end = len(text)
        last = line + text.count("\n", begin, end)
        yield replace(source, text=text[begin:end], numbers=numbers[line : last + 1])
        begin, line = max(end, 1), last


def _is_deeper(value: object, levels: int) -> bool:
    """Return True if a value has objects and lists in each other on more than some levels."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(part, levels - 1) for part in inner)


def items(documents: Iterable[Document], findings: Findings) -> Iterator[Part]:
    """Yield the objects of documents; those of lists each on its own, and those that are repeated once."""
    known: dict[tuple[str, str], Part] = {}
    for document in documents:
        for part in _flat(Part(document, (), document.raw, findings)):
            name = part.text("metadata", "name") and full_name(part)
            earlier = known.setdefault((part.text("kind"), name), part) if name else part
            if earlier is part:
                yield part
            elif earlier.value != part.value:
                part.wrong(f"is the {part.text('kind')} {name} of {earlier}, at another moment; keep one of them")


def _flat(part: Part) -> Iterator[Part]:
    if str(part.value.get("schema")).startswith("mig-opt/state/"):
        part.wrong("is a state already; give it as it is: mig-opt defragment FILE, or --from FILE of other commands")
    elif part.find("items") is not None:
        listed = part.text("kind")
        for item in part.entries("items"):
            if not item.find("kind") and listed.endswith("List") and listed != "List":
                item.value["kind"] = listed.removesuffix("List")
            yield from _flat(item)
    elif part.text("kind", needed=True):
        yield part


def of_kind(parts: Iterable[Part], kind: str) -> list[Part]:
    """Return the objects of a kind."""
    return [part for part in parts if part.value.get("kind") == kind]


def full_name(part: Part, other: str | None = None) -> str:
    """Return namespace and name of an object, or of another one in its namespace."""
    namespace = part.text("metadata", "namespace")
    name = part.text("metadata", "name", needed=True) if other is None else other
    return f"{namespace}/{name}" if namespace else name


def pods_in(parts: Iterable[Part]) -> list[Part]:
    """Return the pods that have not ended: those that have use nothing any more."""
    return [pod for pod in of_kind(parts, "Pod") if pod.text("status", "phase") not in ("Succeeded", "Failed")]


def owner_of(pod: Part) -> str:
    """Return what controls a pod, with its namespace, empty if nothing does; a deployment for its replica set."""
    for owner in pod.entries("metadata", "ownerReferences"):
        kind, name = owner.text("kind"), owner.text("name")
        if owner.value.get("controller") is not True or not name:
            continue
        if kind == "ReplicaSet" and (hashed := pod.texts("metadata", "labels").get("pod-template-hash")):
            name = name.removesuffix(f"-{hashed}")
        return full_name(pod, name)
    return ""


def read_budgets(parts: Iterable[Part], pods: Sequence[Part], seen: Sightings) -> None:
    """Add the disruption budgets: how many pods of an owner may be disrupted now."""
    for budget in of_kind(parts, "PodDisruptionBudget"):
        allowed = budget.whole("status", "disruptionsAllowed", needed=True)
        if budget.entries("spec", "selector", "matchExpressions"):
            seen.notes.append(f"the disruption budget {full_name(budget)} has expressions, which are not read")
            continue
        wanted = budget.texts("spec", "selector", "matchLabels").items()
        for pod in pods:
            same = pod.text("metadata", "namespace") == budget.text("metadata", "namespace")
            owner = owner_of(pod) or full_name(pod)
            if same and allowed is not None and wanted <= pod.texts("metadata", "labels").items():
                seen.budgets[owner] = min(seen.budgets.get(owner, allowed), max(allowed, 0))
