"""The XML of ``nvidia-smi -q -x``: instances with their ids, sizes and processes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser  # entities, its one danger, are refused
from xml.parsers import expat

from mig_opt.files.documents import shown
from mig_opt.operations.observe.sightings import Line, SeenInstance, Sightings

_ROOT = "nvidia_smi_log"
_NUMBER = re.compile(r"\d{1,6}")
_FIGURES = ("index", "gpu_instance_id", "device_attributes/shared/multiprocessor_count")
_MEMORY = re.compile(r"(\d{1,9}) MiB")


class _Document:
    """A document whose elements know their lines."""

    def __init__(self, lines: Sequence[Line], seen: Sightings) -> None:
        self._lines, self._seen = lines, seen
        self._begins: dict[Element, int] = {}
        self._ends: dict[Element, int] = {}

    def where(self, element: Element) -> str:
        """Return the words for the line at which an element begins."""
        return self._lines[self._begins[element]].where

    def wrong(self, element: Element, message: str) -> None:
        """Note what is wrong with an element."""
        self._seen.wrong(self.where(element), message)

    def root(self) -> Element | None:
        """Return the outermost element; None if the document is damaged, which is noted."""
        parser: Any = XMLPullParser(("start", "end"))  # its events have no type
        root = None
        try:
            for number, line in enumerate(self._lines):
                if "<!ENTITY" in line.text:
                    self._seen.wrong(line.where, "defines an entity, which nvidia-smi never does")
                    return None
                parser.feed(f"{line.text}\n")
                for event, element in parser.read_events():
                    (self._begins if event == "start" else self._ends)[element] = number
                    root = element if root is None else root
            parser.close()
        except ParseError as error:
            line = self._lines[min(max(error.position[0], 1), len(self._lines)) - 1]
            self._seen.wrong(line.where, f"not valid XML: {expat.ErrorString(error.code)}")
            return None
        for element in filter(len, self._begins):  # beside the children of an element there is no text
            texts = [(self._begins[element], element.text), *((self._ends[child], child.tail) for child in element)]
            for number, text in ((number, text) for number, text in texts if text and text.strip()):
                where = self._lines[number + text[: -len(text.lstrip())].count("\n")].where
                self._seen.wrong(where, f"is no part of <{element.tag}>: {shown(text.strip(), 60)}")
        return root


def read_xml(lines: Sequence[Line], node: str, seen: Sightings) -> list[SeenInstance]:
    """Add the GPUs of one document, and return its MIG devices."""
    document = _Document(lines, seen)
    root = document.root()
    if root is None:
        return []
    if root.tag != _ROOT:
        document.wrong(root, f"must be <{_ROOT}>, is <{root.tag[:40]}>; give the output of nvidia-smi -q -x")
        return []
    gpus, attached = root.findall("gpu"), root.find("attached_gpus")
    if not gpus:
        document.wrong(root, "has no <gpu>; give the whole output of nvidia-smi -q -x")
    elif attached is not None and _text(attached) != str(len(gpus)):
        document.wrong(attached, f"there are {len(gpus)} GPUs, not {shown(_text(attached))}; give the whole output")
    return [device for index, gpu in enumerate(gpus) for device in _read_gpu(index, gpu, document, node, seen)]


def _text(element: Element | None) -> str:
    """Return the text of an element; empty if there is none."""
    return "" if element is None else (element.text or "").strip()


def _read_gpu(index: int, gpu: Element, document: _Document, node: str, seen: Sightings) -> Iterator[SeenInstance]:
    mode = gpu.find("mig_mode/current_mig")
    now, later = _text(mode), _text(gpu.find("mig_mode/pending_mig"))
    if mode is None:
        document.wrong(gpu, "this GPU has no <mig_mode> with <current_mig>; give the whole output")
    elif now not in ("Enabled", "Disabled", "N/A", "[N/A]"):
        document.wrong(mode, f"must be Enabled, Disabled or N/A, is {shown(now)}")
    mig, product, uuid = now == "Enabled", _text(gpu.find("product_name")), _text(gpu.find("uuid"))
    if {now, later} == {"Enabled", "Disabled"}:
        seen.pending(node, index, mig=mig)
    seen.gpu(node, index, document.where(gpu), product=product, uuid=uuid, mig=mig)
    processes = _processes(gpu)
    for device in gpu.iterfind("mig_devices/mig_device"):
        number, instance, units = (_number(device, key, document) for key in _FIGURES)
        memory = device.find("fb_memory_usage/total")
        total = _MEMORY.fullmatch(_text(memory))
        if total is None:
            message = f"fb_memory_usage/total must be like 4864 MiB, is {shown(_text(memory))}"
            document.wrong(device if memory is None else memory, message)
        if total and units is not None and number is not None and instance is not None:
            running = None if processes is None else tuple(name for which, name in processes if which == instance)
            held = SeenInstance(node, index, document.where(device), size=(units, float(total[1])), instance=instance)
            held.index, held.processes = number, running
            yield held


def _processes(gpu: Element) -> list[tuple[int, str]] | None:
    """Return the processes of a GPU, each with its GPU instance; None if the XML does not show them."""
    processes = gpu.find("processes")
    if processes is None or _text(processes) in ("N/A", "[N/A]", "[Insufficient Permissions]"):
        return None
    ids = [(_text(one.find("gpu_instance_id")), _text(one.find("pid")) or "?") for one in processes]
    return [(int(instance), f"pid {process}") for instance, process in ids if _NUMBER.fullmatch(instance)]


def _number(element: Element, path: str, document: _Document) -> int | None:
    found = element.find(path)
    if _NUMBER.fullmatch(_text(found)):
        return int(_text(found))
    where, text = (element, "missing") if found is None else (found, shown(_text(found)))
    document.wrong(where, f"{path} must be a whole number, is {text}")
    return None
