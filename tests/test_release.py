"""Parts of a release: versions that agree, files about the project that are right, workflows that are safe."""

import re
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from places import PROJECT

import mig_opt

if not (PROJECT / ".github").is_dir():  # the source distribution has none
    pytest.skip("the tests run without the checkout", allow_module_level=True)

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

HOME = "https://github.com/mig-opt/mig-opt"
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
PROJECT_TABLE: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def test_changelog_citation_and_package_have_the_same_version() -> None:
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", text("CHANGELOG.md"), re.MULTILINE)
    citation = yaml.safe_load(text("CITATION.cff"))
    assert (citation["version"], citation["date-released"]) == released[0]
    assert mig_opt.__version__ == released[0][0]
    assert date.fromisoformat(released[0][1])


def test_the_changelog_keeps_its_form() -> None:
    log = text("CHANGELOG.md")
    assert log.startswith("# Changelog\n")
    versions = re.findall(r"^## \[([^\]]+)\]", log, re.MULTILINE)
    assert versions[0] == "Unreleased"
    numbers = [tuple(map(int, version.split("."))) for version in versions[1:]]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", log, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for part in log.split("\n## ")[1:]:
        headings = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert len(headings) == len(set(headings)), part.splitlines()[0]
    assert set(re.findall(r"^\[([^\]]+)\]: ", log, re.MULTILINE)) == set(versions)
    assert all("  " not in line.strip() for line in log.splitlines())


def test_the_citation_says_what_the_package_says() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["license"] == PROJECT_TABLE["license"]
    assert set(citation["keywords"]) == set(PROJECT_TABLE["keywords"])
    assert all(re.fullmatch(r"10\.\d{4,}/\S+", reference["doi"]) for reference in citation["references"])


def test_all_pages_name_the_same_home() -> None:
    urls = PROJECT_TABLE["urls"]
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= urls.keys()
    assert (urls["Source"], urls["Issues"]) == (HOME, f"{HOME}/issues")
    assert yaml.safe_load(text("CITATION.cff"))["repository-code"] == HOME
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", ".github/ISSUE_TEMPLATE/config.yml"):
        found = re.findall(r"https://github\.com/[\w-]+/mig[\w-]*", text(name))
        assert found, name
        assert set(found) == {HOME}, name


@pytest.mark.parametrize(
    "name",
    ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/PULL_REQUEST_TEMPLATE.md"],
)
def test_pages_about_the_project_lead_to_files_that_there_are(name: str) -> None:
    page = PROJECT / name
    for link in re.findall(r"\]\(([^)#\s]+)\)", text(name)):
        assert "://" in link or (page.parent / link).exists(), link
    for path in re.findall(r"`((?:docs|tests|bench|mig_opt)/[\w/.]+\w)`", text(name)):
        assert (PROJECT / path).exists(), path


def steps() -> list[tuple[str, dict[str, Any]]]:
    workflows = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in WORKFLOWS}
    return [(name, step) for name, own in workflows.items() for job in own["jobs"].values() for step in job["steps"]]


def test_there_are_workflows_for_everything() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "newest.yml", "release.yml"]
    jobs = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert {system.split("-")[0] for system in matrix["system"]} == {"ubuntu", "macos"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    named = {part.rpartition(" ")[2] for part in PROJECT_TABLE["classifiers"] if "Python :: 3." in part}
    assert named == set(matrix["python"]), "the versions that are tested are those that the package names"
    assert PROJECT_TABLE["requires-python"] == f">={matrix['python'][0]}"
    commands = "\n".join(step.get("run", "") for _, step in steps())
    for command in ("bash .ci/run", "lowest-direct", "sphinx-build -n -W", "cibuildwheel", "--pre ortools"):
        assert command in commands or command in text(".github/workflows/newest.yml")


def test_actions_are_pinned_and_keep_no_credentials() -> None:
    for name, step in steps():
        if "uses" in step:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), f"{name}: pin {step['uses']} to a commit"
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
        assert "${{" not in step.get("run", ""), f"{name}: what others write becomes a command; use env"


MAY_WRITE = {"publish": {"id-token": "write"}, "publish-site": {"pages": "write", "id-token": "write"}}
"""Jobs of the release, and what they may."""


def test_workflows_may_only_read_but_for_the_release() -> None:
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            assert job.get("permissions") == (MAY_WRITE.get(name) if path.name == "release.yml" else None)
            assert job["timeout-minutes"] <= 120
    release = yaml.safe_load(text(".github/workflows/release.yml"))
    assert release[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}  # YAML reads "on" as true
    assert set(release["jobs"]["publish"]["needs"]) == {"wheels", "source"}
    assert set(release["jobs"]["publish-site"]["needs"]) == {"publish", "site"}


def said_by(linter: str, *arguments: object) -> str:
    """Complaints of a linter, nothing if all is well; ``.ci/run`` has those of the extra dev."""
    program = shutil.which(linter, path=str(Path(sys.executable).parent)) or shutil.which(linter)
    if program is None:
        pytest.skip(f"{linter} is not installed; the extra dev has it")
    command = [program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_workflows_are_safe() -> None:
    assert said_by("zizmor", "--offline", "--quiet", PROJECT / ".github") == ""


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_files_for_others_keep_their_schema(schema: str, pattern: str) -> None:
    files = sorted(PROJECT.glob(pattern))
    assert files
    assert said_by("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files) == ""
