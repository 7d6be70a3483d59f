"""`python -m tests.fuzz.streams --count 300 --seed 1`: random networks, streamed; the status is 1 where any is wrong.

A network is compiled, and its step network, run by onnxruntime, is compared in every push with the window network. With
`--build` the C is built and run by `check` as well.
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import click
import onnx

from mccompile.base.errors import UnsupportedModel
from tests.fuzz.streams.grown import network
from tests.passes.stream.pushed import agree, session, stepped

BAD = ("wrong", "crash")


def verdict(seed: int, build: bool = False) -> tuple[str, str]:
    """Of one network: right, refused, wrong, crash or left out, and what there is to say of it."""
    window, net = network(seed)
    if not _runs(window):
        return "left out", "onnxruntime does not load the window network"
    hop, edge = net.number(1, 5), ",edge=warm" * net.may(0.3)
    found, why = _of(window, f"x={net.axis},hop={hop}{edge}", build)
    every = re.search(r"hop=(\d+)", why) if "not a multiple" in why else None
    return _of(window, f"x={net.axis},hop={every[1]}{edge}", build) if every else (found, why)


def _runs(window: onnx.ModelProto) -> bool:
    """Its nodes run one by one; as a whole onnxruntime's inference of shapes may reject what its kernels compute."""
    try:
        session(window)
    except Exception:  # its exceptions have no class in common
        return False
    return True


def _of(window: onnx.ModelProto, asked: str, build: bool) -> tuple[str, str]:
    try:
        found = stepped(window, asked)[1]
        if "warm" not in asked:
            agree(window, asked)
        return _built(window, asked) if build else ("right", f"of {', '.join(found.whole) or 'frames'}")
    except UnsupportedModel as refused:
        problem = refused.problems[0]
        operator = re.search(r" \(\w+\)$", problem.where)
        more = f", {problem.fix}" if "not a multiple" in problem.what else operator[0] if operator else ""
        return "refused", f"{problem.what}{more}"
    except AssertionError as wrong:
        return "wrong", f"{asked}: {wrong}"
    except Exception:
        return "crash", f"{asked}: {traceback.format_exc(limit=-3)}"


def _built(window: onnx.ModelProto, asked: str) -> tuple[str, str]:
    """What `check` says of it."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        path = Path(folder, "g.onnx")
        onnx.save(window, path)
        command = [sys.executable, "-m", "mccompile", "check", str(path), "--stream", asked]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        return "right", "checked"
    verdicts = {1: "wrong", 3: "refused"}
    return verdicts.get(result.returncode, "crash"), f"{asked}: {result.stdout}{result.stderr}"


@click.command()
@click.option("--seed", default=1, help="Of the first network; those that follow have the next ones.")
@click.option("--count", default=300)
@click.option("--seconds", default=0.0, help="0: as long as it takes.")
@click.option("--build", is_flag=True)
def main(seed: int, count: int, seconds: float, build: bool) -> None:
    counts: collections.Counter[str] = collections.Counter()
    whys: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + seconds
    for each in range(seed, seed + count):
        if seconds and time.monotonic() > end:
            break
        found, why = verdict(each, build)
        counts[found] += 1
        if found in BAD:
            print(f"network {each}: {found}\n{why}")
        elif found == "refused":
            whys[why] += 1
    print(", ".join(f"{number} {found}" for found, number in counts.most_common()))
    for why, number in whys.most_common():
        print(f"  {number} refused: {why}")
    raise SystemExit(any(counts[bad] for bad in BAD))


if __name__ == "__main__":
    main()
