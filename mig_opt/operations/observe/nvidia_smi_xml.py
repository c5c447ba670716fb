"""The XML of ``nvidia-smi -q -x``: instances with their ids, sizes and processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.parsers import expat  # it tells the lines; entities, its one danger, are refused

from mig_opt.files.documents import shown
from mig_opt.operations.observe.sightings import Line, SeenDevice, Sightings

_ROOT = "nvidia_smi_log"
_NUMBER = re.compile(r"\d{1,6}")
_MEMORY = re.compile(r"(\d{1,9}) MiB")


@dataclass(slots=True)
class _Element:
    tag: str
    where: str
    text: str = ""
    text_at: str = ""  # where its text begins
    children: list[_Element] = field(default_factory=list)

    def find(self, path: str) -> _Element | None:
        found: _Element | None = self
        for tag in path.split("/"):
            found = next((child for child in found.children if child.tag == tag), None) if found else None
        return found

    def all(self, tag: str) -> list[_Element]:
        return [child for child in self.children if child.tag == tag]


def read_xml(lines: Sequence[Line], node: str, seen: Sightings) -> list[SeenDevice]:
    """Add the GPUs of one document, and return its MIG devices."""
    root = _parsed(lines, seen)
    if root is None:
        return []
    if root.tag != _ROOT:
        seen.wrong(root.where, f"must be <{_ROOT}>, is <{root.tag[:40]}>; give the output of nvidia-smi -q -x")
        return []
    found = []
    gpus = root.all("gpu")
    if not gpus:
        seen.wrong(root.where, "has no <gpu>; give the whole output of nvidia-smi -q -x")
    attached = root.find("attached_gpus")
    if attached and gpus and attached.text != str(len(gpus)):
        seen.wrong(attached.where, f"there are {len(gpus)} GPUs, not {shown(attached.text)}; give the whole output")
    for index, gpu in enumerate(gpus):
        found += _read_gpu(index, gpu, node, seen)
    return found


def _parsed(lines: Sequence[Line], seen: Sightings) -> _Element | None:
    parser = expat.ParserCreate()
    top = _Element("", "")
    stack = [top]

    def where() -> str:
        return lines[min(parser.CurrentLineNumber, len(lines)) - 1].where

    def begin(tag: str, _: object) -> None:
        stack.append(_Element(tag, where()))
        stack[-2].children.append(stack[-1])

    def end(_: str) -> None:
        element = stack.pop()
        element.text = element.text.strip()
        if element.text and element.children:
            seen.wrong(element.text_at, f"is no part of <{element.tag}>: {shown(element.text, 60)}")

    def text(data: str) -> None:
        stack[-1].text += data
        stack[-1].text_at = stack[-1].text_at or (where() if data.strip() else "")

    def entity(*_: object) -> None:
        message = "defines an entity, which nvidia-smi never does"
        raise ValueError(message)

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = text, entity
    try:
        parser.Parse("\n".join(line.text for line in lines).encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        line = lines[min(max(error.lineno, 1), len(lines)) - 1]
        seen.wrong(line.where, f"not valid XML: {expat.ErrorString(error.code)}")
        return None
    except ValueError as error:
        seen.wrong(where(), str(error))
        return None
    return top.children[0]


def _read_gpu(index: int, gpu: _Element, node: str, seen: Sightings) -> list[SeenDevice]:
    texts = {key: element.text for key in ("product_name", "uuid") if (element := gpu.find(key))}
    mode = gpu.find("mig_mode/current_mig")
    if mode and mode.text not in ("Enabled", "Disabled", "N/A", "[N/A]"):
        seen.wrong(mode.where, f"must be Enabled, Disabled or N/A, is {shown(mode.text)}")
    if mode is None:
        seen.wrong(gpu.where, "this GPU has no <mig_mode> with <current_mig>; give the whole output")
    mig, later = bool(mode and mode.text == "Enabled"), gpu.find("mig_mode/pending_mig")
    if mode and later and {mode.text, later.text} == {"Enabled", "Disabled"}:
        seen.pending(node, index, mig=mig)
    seen.gpu(node, index, gpu.where, product=texts.get("product_name", ""), uuid=texts.get("uuid", ""), mig=mig)
    processes = _processes(gpu)
    devices = gpu.find("mig_devices")
    found = []
    for device in devices.all("mig_device") if devices else []:
        at = {key: _number(device, key, seen) for key in ("index", "gpu_instance_id")}
        units = _number(device, "device_attributes/shared/multiprocessor_count", seen)
        memory = device.find("fb_memory_usage/total")
        total = _MEMORY.fullmatch(memory.text) if memory else None
        if total is None:
            where, text = (memory.where, memory.text) if memory else (device.where, "")
            seen.wrong(where, f"fb_memory_usage/total must be like 4864 MiB, is {shown(text)}")
        if total and units is not None and at["index"] is not None and at["gpu_instance_id"] is not None:
            instance = at["gpu_instance_id"]
            running = None if processes is None else tuple(name for which, name in processes if which == instance)
            size = units, float(total[1])
            found.append(SeenDevice(index, at["index"], device.where, instance, size=size, processes=running))
    return found


def _processes(gpu: _Element) -> list[tuple[int, str]] | None:
    """Return the processes of a GPU, each with its GPU instance; None if the XML does not show them."""
    processes = gpu.find("processes")
    if processes is None or processes.text in ("N/A", "[N/A]", "[Insufficient Permissions]"):
        return None
    found = []
    for process in processes.all("process_info"):
        values = {key: element.text for key in ("gpu_instance_id", "pid") if (element := process.find(key))}
        if _NUMBER.fullmatch(values.get("gpu_instance_id", "")):
            found.append((int(values["gpu_instance_id"]), f"pid {values.get('pid', '?')}"))
    return found


def _number(element: _Element, path: str, seen: Sightings) -> int | None:
    found = element.find(path)
    if found and _NUMBER.fullmatch(found.text):
        return int(found.text)
    where, text = (found.where, shown(found.text)) if found else (element.where, "missing")
    seen.wrong(where, f"{path} must be a whole number, is {text}")
    return None
