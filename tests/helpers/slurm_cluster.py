"""A real Slurm on this machine: munged, slurmctld and a slurmd for each node, in a folder and on ports of their own.

The GPUs of a node are those of a :class:`scripts.Machine`: its ``nvidia-smi`` is the stand-in, and their device files
are links to ``/dev/null``. Programs find the cluster by :attr:`Cluster.environment`.
"""

import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from scripts import Machine, ended, program

WANTED = "MIG_OPT_SLURM"
"""Name of the variable that is set where Slurm has to be there; else tests without it are skipped."""

_PROGRAMS = ("munged", "slurmctld", "slurmd")
SYSTEM = ("/usr/sbin", "/usr/local/sbin", "/sbin")
_WAIT = 60.0

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd-%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd-%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmdTimeout=10
ReturnToService=1
KillWait=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SchedulerParameters=sched_interval=1,batch_sched_delay=1
GresTypes={kinds}
TaskProlog={root}/bin/environment
"""
SERVICE = """\
export SLURM_CONF={root}/etc/slurm.conf PATH={path}
pid={root}/run/$2.pid
if [[ $1 != start && -s $pid ]]; then
  was=$(<"$pid")
  kill "$was" 2>{root}/log/stop
  for ((left = 200; left > 0; left--)); do [[ -e /proc/$was/exe ]] || break; sleep 0.1; done
fi
if [[ $1 == stop ]]; then exit; fi
case $2 in
munged) exec munged --force --key-file={root}/munge/key --socket={root}/munge/socket --pid-file="$pid" \\
  --log-file={root}/log/munged.log --seed-file={root}/munge/seed --num-threads=2 ;;
slurmctld) exec slurmctld ;;
slurmd-*) exec env FAKE_GPUS={root}/"${{2#slurmd-}}"/gpus.json slurmd -N "${{2#slurmd-}}" ;;
esac
"""


def mig_minors(gpus: int = 4) -> dict[str, int]:
    """Return the numbers of the device files of capabilities, as the driver gives them."""
    found = {}
    for gpu in range(gpus):
        for instance in range(15):
            first = 3 + 135 * gpu + 9 * instance
            found[f"gpu{gpu}/gi{instance}/access"] = first
            found |= {f"gpu{gpu}/gi{instance}/ci{compute}/access": first + 1 + compute for compute in range(8)}
    return found


class Cluster:
    """Nodes with GPUs, each with a folder of its name; they are written down by :meth:`describe`, then started."""

    def __init__(self, root: Path, nodes: Mapping[str, tuple[str, ...]]) -> None:
        self.root = root
        for name in ("etc", "state", "spool", "log", "run", "munge", "bin", "dev/nvidia-caps", *nodes):
            (root / name).mkdir(parents=True)
        self.machines = {name: Machine(root / name, *gpus) for name, gpus in nodes.items()}
        for name, machine in self.machines.items():
            machine.state = [gpu | {"uuid": f"GPU-{name}-{index}"} for index, gpu in enumerate(machine.state)]
        key = root / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        minors = mig_minors()
        names = [f"nvidia{gpu}" for gpu in range(4)] + [f"nvidia-caps/nvidia-cap{number}" for number in minors.values()]
        for name in names:
            (root / "dev" / name).symlink_to("/dev/null")  # Slurm wants a character device
        (root / "mig-minors").write_text("".join(f"{name} {number}\n" for name, number in minors.items()))
        path = os.pathsep.join([os.environ["PATH"], *SYSTEM])
        self.program("service", SERVICE.format(root=root, path=path))
        # In the place of ssh: the node is another environment of this machine.
        variables = f"FAKE_GPUS={root}/$node/gpus.json PATH={root}/$node/bin:$PATH MIG_MINORS={root}/mig-minors"
        variables += f' STOP_SLURMD="{root}/bin/service stop slurmd-$node"'
        variables += f' START_SLURMD="{root}/bin/service start slurmd-$node"'
        self.program("on-node", f'node=$1\nshift\nexec env {variables} "$@"')
        self.program("environment", f"cat {root}/$SLURMD_NODENAME/environment 2>{root}/log/none || true")
        self.environment = os.environ | {
            "PATH": path,
            "SLURM_CONF": str(root / "etc" / "slurm.conf"),
            "ON_NODE": str(root / "bin" / "on-node"),
            "RESTART_SLURMCTLD": f"{root}/bin/service restart slurmctld",
            "NVIDIA_DEVICES": str(root / "dev"),
        }

    def program(self, name: str, text: str) -> None:
        """Write a program in the folder ``bin``."""
        program(self.root / "bin", name, text)

    def describe(self, gres: Mapping[str, str], lines: str, kinds: str = "gpu") -> None:
        """Write ``slurm.conf`` with an included ``nodes.conf``, and ``gres.conf``, in which ``DEV`` is ``/dev``."""
        host = socket.gethostname().partition(".")[0]
        conf = CONF.format(root=self.root, host=host, user=getpass.getuser(), port=_port(), kinds=kinds)
        nodes = ""
        for name, value in gres.items():
            nodes += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={_port()} CPUs=4 RealMemory=1000"
            nodes += f" Gres={value}\n" if value else "\n"
        (self.root / "etc" / "nodes.conf").write_text(nodes)
        conf += "Include nodes.conf\n"
        conf += f"PartitionName=main Nodes={','.join(gres)} Default=YES MaxTime=INFINITE State=UP\n"
        (self.root / "etc" / "slurm.conf").write_text(conf)
        version = re.search(r"(\d+)\.(\d+)", self.run("slurmctld", "-V"))
        assert version
        plugin = "disabled" if (int(version[1]), int(version[2])) >= (23, 2) else "cgroup/v1"
        (self.root / "etc" / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
        (self.root / "etc" / "gres.conf").write_text(lines.replace("DEV", str(self.root / "dev")))

    def caps(self, gpu: int, instance: int) -> str:
        """Return the device files of an instance, as ``MultipleFiles`` has them."""
        first = mig_minors()[f"gpu{gpu}/gi{instance}/access"]
        return f"DEV/nvidia{gpu},DEV/nvidia-caps/nvidia-cap{first},DEV/nvidia-caps/nvidia-cap{first + 1}"

    def service(self, verb: str, name: str) -> None:
        """Start, stop or restart ``munged``, ``slurmctld`` or ``slurmd-NODE``."""
        with (self.root / "log" / "service").open("a") as log:
            words = [str(self.root / "bin" / "service"), verb, name]
            done = subprocess.run(words, check=False, stdout=log, stderr=log, timeout=60)
        assert done.returncode == 0, Path(log.name).read_text()

    def start(self) -> None:
        """Start everything, and wait until every node is idle."""
        self.service("start", "munged")
        self.until((self.root / "munge" / "socket").exists)
        self.service("start", "slurmctld")
        for node in self.machines:
            (self.root / "spool" / node).mkdir()
            self.service("start", f"slurmd-{node}")
        self.until(lambda: all(state == "IDLE" for state in self.states().values()))

    def stop(self) -> None:
        """Stop everything that belongs to the cluster, jobs included."""
        for name in (*(f"slurmd-{node}" for node in self.machines), "slurmctld", "munged"):
            self.service("stop", name)
        mark = f"SLURM_CONF={self.root}/etc/slurm.conf".encode()
        for process in Path("/proc").glob("[1-9]*"):
            with contextlib.suppress(OSError):
                # A newer slurmstepd knows it otherwise, and is in its folder.
                own = mark in (process / "environ").read_bytes().split(b"\0")
                own = own or self.root in (process / "cwd").resolve().parents
                if own and process.name != str(os.getpid()):
                    os.kill(int(process.name), signal.SIGKILL)

    def pid(self, name: str) -> int:
        """Return the number of the process of a service."""
        return int((self.root / "run" / f"{name}.pid").read_text())

    def run(self, *words: object, code: int | None = 0, **more: str) -> str:
        """Run a program that sees the cluster, and return what it prints."""
        return ended(*words, code=code, env=self.environment | more).stdout

    def states(self) -> dict[str, str]:
        """Return the state of each node, empty while the controller does not answer."""
        shown = self.run("scontrol", "-o", "show", "node", code=None)
        found = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in shown.splitlines()]
        return {node["NodeName"]: node["State"] for node in found} or {"": ""}

    def submit(self, command: str, *options: object) -> str:
        """Submit a job, and return its number."""
        output = f"--output={self.root}/%j.out"
        return self.run("sbatch", "--parsable", output, *options, f"--wrap={command}").strip()

    def job(self, number: str) -> str:
        """Return the state of a job."""
        shown = self.run("scontrol", "-o", "show", "job", number)
        return next(word.partition("=")[2] for word in shown.split() if word.startswith("JobState="))

    def output(self, number: str) -> str:
        """Return what a job printed, as soon as it has ended well."""
        self.until(lambda: self.job(number) not in ("PENDING", "RUNNING", "COMPLETING"))
        assert self.job(number) == "COMPLETED"
        return (self.root / f"{number}.out").read_text().strip()

    def until(self, true: Callable[[], bool], seconds: float = _WAIT) -> None:
        """Wait until something is true."""
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                logs = [f"{path.name}: {path.read_text()[-1500:]}" for path in sorted((self.root / "log").iterdir())]
                raise AssertionError("\n".join(["this has not come true:", str(self.states()), *logs]))
            time.sleep(0.1)


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def cluster(root: Path, nodes: Mapping[str, tuple[str, ...]]) -> Iterator[Cluster]:
    """Give a cluster that is still to be described and started; the test is skipped where there is no Slurm."""
    path = os.pathsep.join([os.environ["PATH"], *SYSTEM])
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if lacking and not os.environ.get(WANTED):
        pytest.skip(f"needs Slurm ({', '.join(lacking)}): apt-get install slurm-wlm munge")
    assert not lacking, f"{WANTED} is set, but there is no {', '.join(lacking)}"
    made = Cluster(root, nodes)
    try:
        yield made
    finally:
        made.stop()
