"""The wheel and the source distribution: what is in them, and that the wheel alone is enough."""

import email
import importlib.util
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from places import PROJECT, README
from scripts import ended

import mig_opt

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not (PROJECT / "hatch_build.py").is_file(), reason="the tests run without the checkout"),
    pytest.mark.skipif(importlib.util.find_spec("build") is None, reason="build is not installed"),
]

VERSION = mig_opt.__version__
FILES = "https://raw.githubusercontent.com/mig-opt/mig-opt"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    ended(sys.executable, "-m", "build", "--outdir", folder, PROJECT, timeout=900)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


@pytest.fixture(scope="module")
def in_source(built: Path) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    assert path.name == f"mig_opt-{VERSION}.tar.gz"
    with tarfile.open(path) as archive:
        names = {member.name for member in archive.getmembers() if member.isfile()}
    assert {name.split("/")[0] for name in names} == {f"mig_opt-{VERSION}"}
    return {name.partition("/")[2] for name in names}


def package_files() -> set[str]:
    """The files of the package in the checkout that are its own."""
    made = {".pyc", ".shared"}
    found = (path for path in (PROJECT / "mig_opt").rglob("*") if path.is_file() and path.suffix not in made)
    return {path.relative_to(PROJECT).as_posix() for path in found if ".shared." not in path.name}


def test_the_wheel_is_for_one_platform_and_every_python(wheel: Path) -> None:
    platform = re.sub(r"[.-]", "_", sysconfig.get_platform())
    assert wheel.name == f"mig_opt-{VERSION}-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        tags = email.message_from_bytes(archive.read(f"mig_opt-{VERSION}.dist-info/WHEEL"))
    assert tags["Root-Is-Purelib"] == "false"
    assert tags.get_all("Tag") == [f"py3-none-{platform}"]


def test_the_wheel_has_the_package_and_nothing_else(in_wheel: set[str]) -> None:
    sources = {name for name in package_files() if name.endswith((".c", ".h"))}
    assert sources
    wanted = package_files() - sources | {"mig_opt/native/loops.shared"}
    info = {name for name in in_wheel if name.startswith(f"mig_opt-{VERSION}.dist-info/")}
    assert in_wheel - info == wanted
    names = {name.partition("/")[2] for name in info}
    assert names == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/LICENSE-DATA"}


def test_what_the_index_shows(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shown = email.message_from_bytes(archive.read(f"mig_opt-{VERSION}.dist-info/METADATA"))
    assert (shown["Metadata-Version"], shown["Version"], shown["License-Expression"]) == ("2.4", VERSION, "MIT")
    assert {entry.partition(", ")[0] for entry in shown.get_all("Project-URL")} >= {"Source", "Issues", "Changelog"}
    assert shown["Description-Content-Type"] == "text/markdown"
    text = str(shown.get_payload())
    assert text.startswith("# mig_opt")
    assert f"![Gantt chart of the optimal schedule]({FILES}/v{VERSION}/docs/images/rodinia-a30.png)" in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8")))
    assert [link for link in links if not link.startswith("https://")] == [], "the index has no other files"
    assert "Development Status :: 5 - Production/Stable" in shown.get_all("Classifier")


def test_the_source_distribution_has_all_that_builds_and_tests(in_source: set[str]) -> None:
    assert package_files() <= in_source
    wanted = """hatch_build.py pyproject.toml README.md LICENSE CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md
        CODE_OF_CONDUCT.md tests/conftest.py tests/public_api.txt bench/README.md docs/index.md
        docs/images/rodinia-a30.png"""
    assert set(wanted.split()) <= in_source
    unwanted = re.compile(r"\.shared|__pycache__|^bench/results/.*\.jsonl$|^\.|\.egg-info|^site/")
    assert {name for name in in_source if unwanted.search(name)} <= {".gitignore"}


def test_sizes(built: Path) -> None:
    sizes = {path.suffix: path.stat().st_size for path in built.iterdir()}
    assert sizes[".whl"] < 1_800_000  # 300,000 of it are the library of instances
    assert sizes[".gz"] < 5_000_000


def test_the_first_command_of_the_readme_with_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """The same command as README's, in an empty folder, with the wheel in place of the checkout."""
    command = re.search(r"<!-- main-job -->\n```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert command[1].count("'.[plot]'") == 1
    line = command[1].replace("'.[plot]'", f"'{wheel}[plot]'").replace("python3 -m venv", f"{sys.executable} -m venv")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    shell = ["bash", "-euo", "pipefail", "-c", line]
    done = ended(*shell, cwd=tmp_path, env=environment, timeout=900)
    assert re.search(r"^status +optimal$", done.stdout, re.MULTILINE)
    assert re.search(r"^makespan +28\.434 s$", done.stdout, re.MULTILINE)
    assert (tmp_path / "rodinia.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (tmp_path / "rodinia.json").is_file()


def test_the_wheel_works_without_extras(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, timeout=900)
    program = """
import mig_opt, mig_opt.native
result = mig_opt.solve(mig_opt.load("rodinia-a30"))
assert result.status == "optimal", result
assert mig_opt.deploy(mig_opt.load("parvagpu-s1")).gpus == 2
print(mig_opt.__version__, mig_opt.__file__)
"""
    version, place = ended(python, "-I", "-c", program, cwd=tmp_path, timeout=600).stdout.split()
    assert version == VERSION
    assert Path(place).is_relative_to(tmp_path)
