"""A stand-in for ``nvidia-smi``: keeps instances in a file and refuses what the hardware would refuse.

Run as a program. The file, whose path is in FAKE_GPUS, holds for each GPU its kind, its profiles, its MIG mode and its
instances. It imports nothing that takes time to be imported.
"""

import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

Gpu = dict[str, Any]
State = list[Gpu]


def fail(message: str, code: int = 6) -> NoReturn:
    print(message)
    sys.exit(code)


def chosen(state: State, arguments: list[str]) -> int:
    """Take ``-i GPU`` out of the arguments."""
    at = arguments.index("-i")
    identifier = arguments[at + 1]
    del arguments[at : at + 2]
    for index, gpu in enumerate(state):
        if identifier in (str(index), gpu.get("uuid")):
            return index
    fail(f"No devices were found: {identifier}")


def profile_of(gpu: Gpu, key: str, value: object) -> dict[str, Any]:
    for profile in gpu["profiles"]:
        if profile[key] == value:
            found: dict[str, Any] = profile
            return found
    fail(f"Unable to create a GPU instance using profile {value}: Invalid Argument")


def create(gpu: Gpu, wanted: str) -> None:
    for pair in wanted.split(","):
        number, start = map(int, pair.split(":"))
        profile = profile_of(gpu, "id", number)
        if start not in profile["starts"]:
            fail(f"Invalid placement {start} of profile {number}")
        held = [(profile_of(gpu, "name", entry["profile"]), entry["start"]) for entry in gpu["instances"]]
        end = start + profile["memory_slices"]
        overlap = any(begin < end and start < begin + other["memory_slices"] for other, begin in held)
        if overlap or [other for other, _ in held].count(profile) == profile["max_count"]:
            fail(f"Unable to create a GPU instance using profile {number}: Insufficient Resources")
        # Numbers tell nothing about places, and the same number comes again.
        number = next(number for number in (5, 3, 9, 1, 13, 7, 11, 2) if number not in ids(gpu))
        name, uuid = profile["name"], f"MIG-{gpu['made']}"
        gpu["made"] += 1
        gpu["instances"].append({"profile": name, "start": start, "id": number, "compute": True, "uuid": uuid})
        print(f"Successfully created GPU instance ID {number}")


def ids(gpu: Gpu) -> list[int]:
    return [entry["id"] for entry in gpu["instances"]]


def listing(index: int, gpu: Gpu) -> None:
    if not gpu["instances"]:
        fail("No GPU instances found: Not Found")
    rule = "+-------------------------------------------------------+"
    print(rule)
    print("| GPU instances:                                        |")
    print("| GPU   Name             Profile  Instance   Placement  |")
    print("|                          ID       ID       Start:Size |")
    print("|=======================================================|")
    for entry in gpu["instances"]:
        profile = profile_of(gpu, "name", entry["profile"])
        place = f"{entry['start']}:{profile['memory_slices']}"
        print(f"| {index:3}  MIG {profile['name']:<15}{profile['id']:4}     {entry['id']:4}         {place:<5}    |")
        print(rule)


def possible(index: int, gpu: Gpu) -> None:
    for profile in gpu["profiles"]:
        word = "Placements:" if len(profile["starts"]) > 1 else "Placement :"
        starts = ",".join(map(str, profile["starts"]))
        print(f"GPU {index:2} Profile ID {profile['id']:2} {word} {{{starts}}}:{profile['memory_slices']}")


def instance(gpu: Gpu, arguments: list[str]) -> dict[str, Any]:
    number = int(arguments[arguments.index("-gi") + 1])
    for entry in gpu["instances"]:
        if entry["id"] == number:
            return entry
    fail(f"No GPU instance {number}: Not Found")


def compute(state: State, gpu: Gpu, arguments: list[str]) -> None:
    entry = instance(gpu, arguments)
    if "-cci" not in arguments and not entry["compute"]:
        fail("No compute instances found: Not Found")
    users = Path(os.environ["FAKE_GPUS"]).parent / "users" / entry["uuid"]
    if "-dci" in arguments and (users.exists() or gpu["busy"]):
        gpu["busy"] = max(0, gpu["busy"] - 1)
        store(state)
        fail("Unable to destroy compute instance: In use by another client")
    entry["compute"] = "-dci" not in arguments


def mig(state: State, arguments: list[str]) -> None:
    index = chosen(state, arguments)
    gpu = state[index]
    if gpu["mode"] != "Enabled":
        fail("No MIG-enabled devices found.")
    if "-lgi" in arguments:
        listing(index, gpu)
    elif "-lgipp" in arguments:
        possible(index, gpu)
    elif "-cgi" in arguments:
        assert "-C" in arguments
        create(gpu, arguments[arguments.index("-cgi") + 1])
    elif {"-cci", "-lci", "-dci"} & set(arguments):
        compute(state, gpu, arguments)
    elif "-dgi" in arguments:
        entry = instance(gpu, arguments)
        if entry["compute"]:
            fail("Unable to destroy GPU instance: In use by another client")
        gpu["instances"].remove(entry)
    else:
        fail(f"not known: {arguments}")


def summary(index: int, gpu: Gpu) -> None:
    print(f"|   {index}  {gpu['kind']:<26}     On  | 00000000:36:00.0 Off |                   On |")
    print("| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|         Shared       |")
    for device, entry in enumerate(by_number(gpu)):
        print(f"|  {index}  {entry['id']:3}   0  {device:2}  |      11MiB / 20224MiB  | 42      0 |  3   0  2 |")
    for entry in gpu["instances"]:
        print(f"|    {index}  {entry['id']:3}    0      12345      C   python                      99MiB |")


def by_number(gpu: Gpu) -> list[dict[str, Any]]:
    return sorted((entry for entry in gpu["instances"] if entry["compute"]), key=lambda entry: entry["id"])


def devices(state: State) -> None:
    for index, gpu in enumerate(state):
        print(f"GPU {index}: NVIDIA {gpu['kind']} (UUID: {gpu.get('uuid', f'GPU-{index}')})")
        for device, entry in enumerate(by_number(gpu)):
            print(f"  MIG {entry['profile']:<15} Device {device:2}: (UUID: {entry['uuid']})")


def answer(state: State, arguments: list[str]) -> None:
    if arguments[0] == "mig":
        mig(state, arguments[1:])
    elif arguments == ["-L"]:
        devices(state)
    else:
        index = chosen(state, arguments)
        match arguments:
            case []:
                summary(index, state[index])
            case ["--query-gpu=mig.mode.current", "--format=csv,noheader"]:
                print(state[index]["mode"])
            case ["--query-gpu=index", "--format=csv,noheader"]:
                print(index)
            case ["--query-gpu=name", "--format=csv,noheader"]:
                print(f"NVIDIA {state[index]['kind']}")
            case ["-q"]:
                print(f"    Minor Number                          : {index}")
            case _:
                fail(f"not known: {arguments}")


def store(state: State) -> None:
    Path(os.environ["FAKE_GPUS"]).write_text(json.dumps(state))


def main() -> None:
    path = Path(os.environ["FAKE_GPUS"])
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = json.loads(path.read_text())
        with path.with_suffix(".log").open("a") as log:
            log.write(" ".join(sys.argv[1:]) + "\n")
        answer(state, sys.argv[1:])
        store(state)


if __name__ == "__main__":
    main()
