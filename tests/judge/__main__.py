"""Random nodes by the judge and by onnxruntime: `python -m tests.judge --count 20000 --seed 1`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from itertools import islice

from .nodes import Case, cases, compared


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="one operator")
    parser.add_argument("--show", type=int, default=2, help="cases to show of each operator that differs")
    given = parser.parse_args()
    words: Counter[str] = Counter()
    details: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for number, case in enumerate(islice(cases(given.seed, given.only), given.count)):
        word, detail = compared(case)
        words[word] += 1
        details[word, case.title].append(f"{number}: {detail}: {_shown(case)}" if word == "differs" else detail)
    for word in ("unjudged", "differs"):
        for (kind, title), found in sorted(details.items()):
            if kind == word:
                print(f"{word}  {title}  {len(found)}")
                for text in dict.fromkeys(found[: given.show]):
                    print(f"    {text}")
    print(", ".join(f"{words[word]} {word}" for word in ("agrees", "differs", "unjudged", "alone")))
    return int(words["differs"] > 0)


def _shown(case: Case) -> str:
    from onnx import printer

    node, feeds = case.node, case.feeds
    types = ", ".join(f"{name} {array.dtype.name}{list(array.shape)}" for name, array in feeds.items())
    return f"{printer.to_text(node)[:300].strip()}  with {types}, opset {case.opset}"


if __name__ == "__main__":
    sys.exit(main())
