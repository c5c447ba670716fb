"""Exported servers: their files, and real Tritons behind a real HAProxy that are started, drained and stopped."""

import dataclasses
import os
import re
import socket
import subprocess
import urllib.request
import warnings
from pathlib import Path

import pytest
import scripts
import yaml
from documents import complaints as problems
from triton_servers import Servers, servers, triton_or_skip

from bench.serving.tritons import write_models
from mig_opt import Batching, Demand, Deployment, GpuPool, Point, ProfileTable, Segment, Service, get_gpu, plan_change
from mig_opt.files.documents import write_folder
from mig_opt.gpu.model import KNOWN
from mig_opt.operations.rollout.kubernetes import mig_parted_config
from mig_opt.operations.rollout.servers import haproxy_config, servers_of
from mig_opt.operations.rollout.triton import kubernetes_manifests, triton_files

GPU = get_gpu("A30")
TABLE = ProfileTable(
    "net", "A30", (Point(1, 4, 1, 80.0, 0.05), Point(1, 4, 2, 100.0, 0.08), Point(2, 8, 2, 300.0, 0.05))
)
DEMAND = Demand((Service("chat", 0.2, 50.0, "net"), Service("search", 0.4, 90.0, "net")), (TABLE,), (GpuPool(GPU),))
SMALL = Segment("chat", 0, "1g.6gb", 0, 4, 1, 80.0, 0.05)
LARGE = Segment("search", 0, "2g.12gb", 2, 8, 2, 300.0, 0.05)
DEPLOYMENT = Deployment(("A30",), (SMALL, LARGE))


def config(files: dict[str, str], segment: Segment) -> str:
    (found,) = (text for name, text in files.items() if re.match(f"models/{segment.service}-.*config.pbtxt", name))
    return found


def own(folder: Path, text: str, model: str = "net") -> Path:
    """A model repository with the configuration of a model."""
    (folder / model).mkdir()
    (folder / model / "config.pbtxt").write_text(text)
    return folder


def test_a_configuration_has_batch_processes_and_the_delay_of_the_plan():
    text = config(triton_files(DEPLOYMENT, DEMAND), LARGE)
    groups = "instance_group { count: 2 } "
    batching = "dynamic_batching { preferred_batch_size: 8 }"
    assert " ".join(text.split()) == f'name: "net" max_batch_size: 8 {groups}{batching}'
    # Half of what the SLO of 0.4 s leaves of a batch of 8 x 2 / 300 s.
    patient = triton_files(DEPLOYMENT, DEMAND, batching=Batching(0.5))
    assert "microseconds: 173333" in config(patient, LARGE)
    for delay, said in ((0.02, "microseconds: 20000"), (1e300, f"microseconds: {10**15}")):
        assert said in config(triton_files(DEPLOYMENT, DEMAND, batching=Batching(delay=delay)), LARGE)


def test_the_configuration_of_the_user_keeps_what_the_plan_does_not_say(tmp_path):
    text = """
        name: "other" platform: "tensorrt_plan" max_batch_size: 16  # a remark
        input { name: "x" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        instance_group [ { count: 1 kind: KIND_GPU gpus: [ 0, 1 ] }, { count: 4 kind: KIND_CPU } ]
        dynamic_batching { preferred_batch_size: [ 4, 16 ] preserve_ordering: true }
    """
    text = " ".join(config(triton_files(DEPLOYMENT, DEMAND, models=own(tmp_path, text)), LARGE).split())
    assert 'name: "net" platform: "tensorrt_plan" max_batch_size: 8 input' in text
    assert "dims: 224" in text
    assert "instance_group { count: 2 kind: KIND_GPU }" in text
    assert "{ preferred_batch_size: 8 preserve_ordering: true }" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('backend: "x"\nnonsense', "net/config.pbtxt: is no configuration of a model: 2:1 :"),
        ("max_batch_size: 6", "net/config.pbtxt: has max_batch_size 6, but the plan has batches of 8 for 'search';"),
        ('input { name: "x" }', "net/config.pbtxt: has max_batch_size 0, but the plan has batches of 4 for 'chat';"),
        ("sequence_batching { }", "net/config.pbtxt: has sequence_batching, so that requests do not form batches"),
        (None, "net: has no folder in the model repository; did you mean nets?"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(text, said, tmp_path):
    models = own(tmp_path, f"{text}\n", "nets" if text is None else "net")
    assert said in "\n".join(problems(triton_files, DEPLOYMENT, DEMAND, models=models))
    absent = tmp_path / "absent"
    assert problems(triton_files, DEPLOYMENT, DEMAND, models=absent) == ["is no folder; name a model repository"]


def test_a_model_without_batches_stays_so(tmp_path):
    models, one = own(tmp_path, 'input { name: "x" dims: 1 }'), dataclasses.replace(SMALL, batch=1, processes=2)
    demand = Demand(DEMAND.services[:1], (ProfileTable("net", "A30", (Point(1, 1, 2, 80.0, 0.02),)),), DEMAND.pools)
    files = triton_files(Deployment(("A30",), (one,)), demand, models=models)
    assert "batch" not in config(files, one)
    assert "count: 2" in config(files, one)


def test_a_model_that_batches_continuously_keeps_its_batching(tmp_path):
    text = 'backend: "vllm" input { name: "text_input" dims: 1 } model_transaction_policy { decoupled: true }'
    demand = DEMAND.replace(tables=(dataclasses.replace(TABLE, continuous=True),))
    text = config(triton_files(DEPLOYMENT, demand, models=own(tmp_path, text)), LARGE)
    assert "batch" not in text
    assert "decoupled: true" in text
    assert "count: 2" in text


def test_all_that_cannot_be_served_is_told_at_once():
    demand = DEMAND.replace(services=(Service("a b", 0.2, 50.0, "net"), *DEMAND.services))
    unserved, name, port = problems(triton_files, DEPLOYMENT, demand, port=80)
    assert unserved == "services[0]: no segment of the deployment serves 'a b'"
    assert name.startswith("services[0].name: must be at most 63 letters")
    assert port == "port: must be from 1024 to 64511, is 80"


def test_a_server_that_stays_keeps_name_and_ports(monkeypatch):
    before = {one.name: one.port for one in servers_of(DEMAND, DEPLOYMENT)}
    more = Segment("chat", 1, "1g.6gb", 3, 4, 2, 100.0, 0.08)
    after = {one.name: one.port for one in servers_of(DEMAND, Deployment(("A30", "A30"), (LARGE, more, SMALL)))}
    assert after == before | {"chat-1-1g.6gb-3-4x2": 9033}
    # The fourth start slice of the first GPU is its tenth memory slice; three ports for each.
    high, low = Segment("chat", 0, "1g.24gb", 9, 4, 1, 80.0, 0.05), Segment("search", 1, "1g.5gb", 1, 4, 1, 80.0, 0.05)
    small = dataclasses.replace(GPU.profiles[0], starts=tuple(range(9)), max_count=9)
    wide = dataclasses.replace(GPU, name="WIDE", memory_slices=9, compute_slices=9, profiles=(small, *GPU.profiles[1:]))
    monkeypatch.setitem(KNOWN, "wide", wide)
    last, other = dataclasses.replace(SMALL, gpu=2, start=8), dataclasses.replace(SMALL, gpu=3)
    mixed = servers_of(DEMAND, Deployment(("RTX-PRO-6000-96GB", "A100", "WIDE", "A30"), (high, low, last, other)))
    assert [one.port for one in mixed] == [9009, 9027, 9072, 9075]


def test_a_server_on_another_machine_is_reached_there():
    slow = DEMAND.replace(services=(Service("chat", 1e300, 50.0, "net"), DEMAND.services[1]))
    text = haproxy_config(DEPLOYMENT, slow, devices=["ada@node-7/0"])
    assert max(map(int, re.findall(r"timeout server (\d+)ms", text))) < 2**31  # what HAProxy can count
    assert "server chat-0-1g.6gb-0-4x1 node-7:9001 proto h2" in text
    script = triton_files(DEPLOYMENT, DEMAND, devices=["ada@node-7/0"])["servers/chat-0-1g.6gb-0-4x1.sh"]
    assert "ADDRESS=node-7\nLISTEN=0.0.0.0\n" in script


def test_a_server_is_not_stopped_where_the_proxy_cannot_be_asked(tmp_path):
    """As where its socket is another user's: requests may be under way."""
    write_folder(tmp_path, triton_files(DEPLOYMENT, DEMAND))
    scripts.program(tmp_path, "socat", "exit 1")
    script, path = tmp_path / "servers" / "chat-0-1g.6gb-0-4x1.sh", f"{tmp_path}:{os.environ['PATH']}"
    with socket.socket(socket.AF_UNIX) as proxy:
        proxy.bind(str(tmp_path / "haproxy.sock"))
        done = scripts.ended("bash", script, "drain", code=1, env=os.environ | {"PATH": path})
    assert f"HAProxy does not answer at {tmp_path}/haproxy.sock; remove that file if it does not run" in done.stderr


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("version", ["1.25", "1.29"])
def test_manifests_are_what_kubernetes_takes(version):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kubernetes_validate

        text = kubernetes_manifests(DEPLOYMENT, DEMAND)
        documents = list(yaml.safe_load_all(text))
        for document in documents:
            kubernetes_validate.validate(document, version, strict=True)
    assert [document["kind"] for document in documents] == ["ConfigMap", "Deployment"] * 2 + ["Service"] * 2
    pod = documents[3]["spec"]["template"]["spec"]["containers"][0]
    assert pod["resources"] == {"limits": {"nvidia.com/mig-2g.12gb": 1}}
    assert "count: 2" in documents[2]["data"]["config.pbtxt"]
    selector, labels = documents[4]["spec"]["selector"], documents[1]["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= labels.items()
    assert not selector.items() <= documents[3]["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("kind", "other", "names"),
    [("(R) " + "long name " * 6, "", ()), ("own kind", "own_kind", ()), ("own", "b own", ("a-b", "a"))],
)
def test_labels_are_different_and_not_longer_than_kubernetes_allows(monkeypatch, kind, other, names):
    gpu, names = dataclasses.replace(get_gpu("RTX-PRO-6000"), name=kind), names or 2 * ("a" * 32,)
    twin = dataclasses.replace(gpu, name=other or gpu.name.replace(" ", "_"))
    for each in (gpu, twin):
        monkeypatch.setitem(KNOWN, each.name.casefold(), each)
    longest = max(gpu.profiles, key=lambda profile: len(profile.name))
    point = Point(longest.compute_slices, 128, 8, 300.0, 0.05)
    services = tuple(Service(name, 2.0, 50.0, model="net") for name in dict.fromkeys(names))
    demand = Demand(services, (ProfileTable("net", gpu.name, (point,)),), (GpuPool(gpu),))
    segments = (Segment(name, at, longest.name, 0, 128, 8, 300.0, 0.05) for at, name in enumerate(names))
    deployment = Deployment((gpu.name, twin.name), tuple(segments))
    documents = list(yaml.safe_load_all(kubernetes_manifests(deployment, demand)))
    assert len({each["metadata"]["name"] for each in documents if each["kind"] == "Deployment"}) == 2
    labels = documents[1]["spec"]["template"]["metadata"]["labels"]
    parted = mig_parted_config(deployment, devices=["a/0", "b/0"], name=names[0]).configs
    assert all(re.fullmatch("[a-z0-9][a-z0-9-]{0,61}[a-z0-9]", label) for label in (*labels.values(), *parted))
    assert documents[1]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_service_of_unequal_pods_is_told():
    both = Deployment(("A30", "A30"), (SMALL, LARGE, dataclasses.replace(LARGE, service="chat", gpu=1)))
    assert "# chat has pods of unequal throughput" in kubernetes_manifests(both, DEMAND)
    demand = DEMAND.replace(services=(dataclasses.replace(DEMAND.services[0], name="Chat"),))
    upper = Deployment(("A30",), (dataclasses.replace(SMALL, service="Chat"),))
    name, image = problems(kubernetes_manifests, upper, demand, image="triton 24")
    assert "services[0].name: must be at most 32 small letters" in name
    assert image == "image: must be the name of an image, without blanks, is 'triton 24'"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return triton_or_skip(tmp_path_factory.mktemp("triton"))


def export(made: Servers, deployment: Deployment, **more: object) -> None:
    files = triton_files(deployment, DEMAND, models=made.models, port=made.port, **more)
    files["haproxy.cfg"] = haproxy_config(deployment, DEMAND, port=made.port)
    for name, text in files.items():
        path = made.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/net/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_servers_are_started_changed_and_nothing_is_left_of_those_that_fail(program, tmp_path):
    with servers(tmp_path, program, "A30") as made:
        new = Deployment(("A30",), (SMALL, dataclasses.replace(LARGE, profile="1g.6gb", batch=4, throughput=100.0)))
        write_models(made.models, DEMAND, DEPLOYMENT, new)
        export(made, DEPLOYMENT)
        out = made.out
        name = "search-0-2g.12gb-2-8x2"

        # A port is taken: the other server, which had been started, is ended again.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", made.port + 1000 + 6 + 1))
            taken.listen()
            failed = made.run(out / "deploy.sh", out / "hooks.sh", code=1)
        assert f"error: {name}: port {made.port + 1007} is taken; stop what listens there" in failed.stderr
        assert "chat-0-1g.6gb-0-4x1 has ended" in failed.stderr
        assert not made.numbers()

        # Triton refuses a configuration: its own words are shown.
        config = out / "models" / name / "net" / "config.pbtxt"
        good = config.read_text()
        config.write_text(good.replace("TYPE_FP32", "TYPE_INVALID"))
        failed = made.run(out / "deploy.sh", out / "hooks.sh", code=1)
        assert f"error: {name}: the server ended; from {out}/run/{name}.log:" in failed.stderr
        assert "must specify 'data_type' for net" in failed.stderr
        assert not made.numbers()
        config.write_text(good)

        # A service that is not in the repository, no instance, another verb.
        script = out / "servers" / f"{name}.sh"
        nowhere = made.run(script, "start", code=1, MODELS="/nowhere", CUDA_VISIBLE_DEVICES="MIG-1")
        assert "set MODELS to the model repository" in nowhere.stderr
        assert "set CUDA_VISIBLE_DEVICES" in made.run(script, "start", code=1, CUDA_VISIBLE_DEVICES="").stderr
        made.run(script, code=2)

        made.start_proxy()
        made.run(out / "deploy.sh", out / "hooks.sh")
        assert set(made.numbers()) == {"chat-0-1g.6gb-0-4x1", name}
        # Two processes share an instance.
        assert made.machine.mps == [f"start {made.machine.uuid(0, '2g.12gb', 2)}"]
        assert ready(made.port)
        assert ready(made.port + 1)

        # A server that dies is found dead, and started again; the other one stays as it is.
        numbers = made.numbers()
        subprocess.run(["kill", "-KILL", str(numbers[name])], check=True)
        made.run(script, "runs", code=1)
        again = made.run(out / "deploy.sh", out / "hooks.sh")
        assert "chat-0-1g.6gb-0-4x1 serves already" in again.stderr
        assert made.numbers()["chat-0-1g.6gb-0-4x1"] == numbers["chat-0-1g.6gb-0-4x1"]
        assert made.numbers()[name] != numbers[name]

        change = plan_change(DEPLOYMENT, new, demand=DEMAND).plan
        export(made, new, change=change)
        models = made.models.rename(tmp_path / "gone")
        failed = made.run(out / "change.sh", out / "hooks.sh", code=1)
        assert "set MODELS to the model repository\nThe change has stopped there." in failed.stderr
        models.rename(made.models)
        made.run(out / "change.sh", out / "hooks.sh")
        assert set(made.numbers()) == {"chat-0-1g.6gb-0-4x1", "search-0-1g.6gb-2-4x2"}
        assert ready(made.port + 1)
        ask = ["socat", "-", f"UNIX-CONNECT:{out}/haproxy.sock"]
        state = subprocess.check_output(ask, input="show servers state search-grpc\n", text=True)
        assert " search-0-1g.6gb-2-4x2 127.0.0.1 2 " in state
        assert name not in state

        # Afterwards, too, what has died is started again.
        subprocess.run(["kill", "-KILL", str(made.numbers()["search-0-1g.6gb-2-4x2"])], check=True)
        again = made.run(out / "deploy.sh", out / "hooks.sh")
        assert "chat-0-1g.6gb-0-4x1 serves already\nsearch-0-1g.6gb-2-4x2 serves" in again.stderr
