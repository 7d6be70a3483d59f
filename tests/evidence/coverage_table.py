"""Statements and branches of the generated code that generated inputs reach, network by network, and what they do not.

python -m tests.evidence.coverage_table generic:own generic:digits cortex-m0:FOLDER    the networks of FOLDER/*/, too

Status 1: something is not reached. Headers of the runtime are not counted: they are the same for all models.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from embedded.models import NAMES, path_of
from mccompile.base.errors import MccError
from mccompile.driver import Options, compile
from mccompile.evidence.coverage import RUNTIME, coverage_certificate
from mccompile.targets import api
from tests.evidence.eva_table import networks


def told(model: str, target: str, most: int) -> tuple[list[str], bool]:
    """Of one network, and whether all is reached; none of one that is too large, or cannot be measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = path_of(model, Path(folder)) if model in NAMES else Path(model)
        name = path.parent.name if path.stem == "model" else path.stem
        try:
            package = compile(path, Options(target=target))
        except MccError as error:
            return [f"{name} on {target}: refused: {str(error).splitlines()[0]}"], True
    if package.macs > most:
        return [f"{name} on {target}: {package.macs} products"], True
    found = coverage_certificate(package, api.load(target))
    if why := found.get("not_measured"):
        return [f"{name} on {target}: {why}"], True
    own = [counts for file, counts in found["files"].items() if not file.startswith(RUNTIME)]
    reached, statements, taken, branches = (
        sum(counts[what] for counts in own) for what in ("reached", "statements", "taken", "branches")
    )
    lines = [f"| {name} | {target} | {reached} of {statements} | {taken} of {branches} |"]
    for gap in found["unreached"]:
        if not gap["file"].startswith(RUNTIME):
            what = f"branches {gap['branches']}" if gap["reached"] else "the line"
            lines.append(f"  {gap['file']}:{gap['line']}: {what}: {gap['text']}")
    return lines, len(lines) == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="+", metavar="TARGET:MODEL")
    whole = True
    print("| network | target | statements | branches |\n|---|---|---|---|", flush=True)
    for target, model, most in networks(parser.parse_args().networks):
        lines, reached = told(model, target, most)
        print("\n".join(lines), flush=True)
        whole &= reached
    return int(not whole)


if __name__ == "__main__":
    sys.exit(main())
