"""Objects of Kubernetes in YAML, as ``kubectl get ... -o yaml`` prints them, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import key_name, shown
from mig_opt.files.values import Findings
from mig_opt.operations.observe.sightings import Source

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
