"""`--html` of compile: a page beside the files."""

from __future__ import annotations

import json
from pathlib import Path

from mccompile import cli
from tests.small_models import conv, save


def test_a_page_beside_the_files_is_listed_and_replaced(tmp_path: Path) -> None:
    path = save(conv(), tmp_path)
    out = tmp_path / "out"
    for _ in range(2):
        assert cli.run([str(path), "-o", str(out), "--html"]) == 0
    assert "report.html" in json.loads((out / "report.json").read_text())["files"]
    assert 'id="data"' in (out / "report.html").read_text()
    assert cli.run([str(path), "-o", str(out)]) == 0 and not (out / "report.html").exists()
