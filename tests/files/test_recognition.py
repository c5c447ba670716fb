"""Recognition of the kind of a file."""

import json

import pytest

from mig_opt.files import KINDS
from mig_opt.files.recognition import document_kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_by_its_schema(kind):
    for version in (1, 2):
        text = json.dumps({"schema": f"mig-opt/{kind}/{version}", "services": [], "tasks": []})
        assert document_kind(text) == document_kind(b"\xef\xbb\xbf" + text.encode()) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"services": []}', "services"),
        ('{"tasks": []}', "batch"),
        ('{"schema": "mig-opt/fleet/1", "services": []}', None),
        ('{"schema": 3, "services": []}', None),
        ("{}", None),
        ("[]", None),
        ('{"services": [', None),
        ("", None),
        (b"\xff", None),
    ],
)
def test_other_documents(text, kind):
    assert document_kind(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("service,slo_s,rate_rps\nchat,1,2\n", "services"),
        ("\n model , slo_latency_ms , request_rate_rps\n", "services"),
        ("task,t1_s\na,1\n", "batch"),
        ("model,scenario\n", "batch"),
        ("", "batch"),
    ],
)
def test_tables(text, kind):
    assert document_kind(text, table=True) == kind
