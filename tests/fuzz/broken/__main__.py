"""Compiles broken models: each of ONNX's own node tests, and each example of another domain's operator, with one or
two things wrong in many ways. `python -m tests.fuzz.broken --rounds 5 --seed 1 --only 'attention|loop'`

How compiling ends is what is judged: done, or refused with a reason; a traceback is a bug, and so is a compiler that
does not end. Broken models that show a bug are written to `--keep`.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import onnx
from onnx import ModelProto, parser
from onnx.backend.test.case.node import collect_testcases

from mccompile.base.errors import InternalError, MccError
from mccompile.driver.compiling import compile as compiled
from mccompile.driver.options import PLAIN
from mccompile.frontend.contributed import contributed
from tests.fuzz.broken.mutations import mutated


def sources() -> Iterator[tuple[str, ModelProto]]:
    for case in collect_testcases(None):
        if case.model is not None:
            yield case.name, case.model
    for (domain, name), entry in contributed().items():
        for number, text in enumerate(entry.examples):
            graph = parser.parse_graph(text)
            opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(domain, 1)]
            yield f"{name}_{number}", onnx.helper.make_model(graph, opset_imports=opsets)


class TooSlow(Exception):
    pass


def fault(model: ModelProto, folder: Path) -> str:
    """The last lines of the traceback of a bug; empty where compiling ends as it should."""
    path = folder / "broken.onnx"
    path.write_bytes(model.SerializeToString())
    try:
        compiled(path, PLAIN)
    except MccError:
        return ""
    except TooSlow:
        return "does not end"
    except (Exception, InternalError) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "mccompile" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"{place} {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def main() -> int:
    arguments_of = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments_of.add_argument("--rounds", type=int, default=3, help="mutants of each model")
    arguments_of.add_argument("--seed", type=int, default=1)
    arguments_of.add_argument("--seconds", type=int, default=600, help="for all of it")
    arguments_of.add_argument("--only", default="", help="a regular expression that names of models must match")
    arguments_of.add_argument("--keep", type=Path, help="a folder for models that show a bug")
    arguments = arguments_of.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    start, ran, faults = time.monotonic(), 0, 0
    models = [(name, model) for name, model in sources() if re.search(arguments.only, name)]
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(arguments.rounds):
            for name, model in models:
                if time.monotonic() - start > arguments.seconds:
                    break
                seed = (arguments.seed, round_number, zlib.crc32(name.encode()))
                broken, ways = mutated(model, np.random.default_rng(seed))
                signal.alarm(60)
                found = fault(broken, Path(folder))
                signal.alarm(0)
                ran += 1
                if found:
                    faults += 1
                    print(f"{name} {round_number} {ways}: {found}", flush=True)
                    if arguments.keep:
                        arguments.keep.mkdir(parents=True, exist_ok=True)
                        (arguments.keep / f"{name}_{round_number}.onnx").write_bytes(broken.SerializeToString())
    print(f"{ran} broken models of {len(models)}: {faults} faults in {time.monotonic() - start:.0f} s")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
