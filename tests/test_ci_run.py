"""`.ci/run` does some steps two at a time: what fails in either ends it, behind what both have said."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

RUN = (Path(__file__).parents[1] / ".ci" / "run").read_text(encoding="utf-8")
TOGETHER = re.search(r"^together\(\) \{$.*?^\}$", RUN, re.MULTILINE | re.DOTALL)
STEPS = """set -euo pipefail
good() { sleep 0.1; echo good; }
bad() { echo bad; (exit 3); echo "goes on"; }
"""


@pytest.mark.parametrize(
    ("pair", "status", "said"),
    [
        ("good good", 0, ["good", "good", "end"]),
        ("bad good", 3, ["bad", "good"]),
        ("good bad", 3, ["good", "bad"]),
    ],
)
def test_two_steps_at_once_fail_as_one_alone_would(pair: str, status: int, said: list[str]) -> None:
    assert TOGETHER is not None
    script = f"{STEPS}{TOGETHER[0]}\ntogether {pair}\necho end\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split("\n")[:-1]) == (status, said)
