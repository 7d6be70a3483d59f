"""A package as one C file and one header, for builds that are made by copying: all else is written into these two (but
pools of threads, which a program chooses by including one).

Invariant: the text is that of the separate files, each once, in an order in which all is declared before it is used; so
the blob is the same as without. Standard headers stay included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from .folder import MARK, with_report
from .package import WORKERS, Package

_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


def single_file(package: Package) -> Package:
    prefix = package.plan.prefix
    texts = {name.rpartition("/")[2]: contents for name, contents in package.files.items()}
    sources = [name for name in (f"{prefix}_kernels.c", f"{prefix}.c", f"{prefix}_weights.c") if name in texts]
    done: set[str] = set()
    header = _whole(f"{prefix}.h", texts, done)
    bodies = "\n".join(_whole(name, texts, done) for name in sources)
    files = {
        f"{prefix}.h": header.encode(),
        f"{prefix}.c": f'#include "{prefix}.h"\n\n{bodies}'.encode(),
        **{name: package.files[name] for name in (f"{prefix}.mcb", "main.c")},
        **{name: texts[name] for name in WORKERS if name in texts},
    }
    return replace(package, files=with_report(files, json.loads(package.files[MARK])))


def _whole(name: str, texts: Mapping[str, bytes], done: set[str]) -> str:
    """The text of a file, with what it includes in the place of the first include of each."""
    done.add(name)

    def included(found: re.Match[str]) -> str:
        return "" if found[1] in done else _whole(found[1], texts, done)

    return _INCLUDE.sub(included, texts[name].decode())
