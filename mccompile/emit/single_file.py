"""A package as one C file and one header, for builds that are made by copying: all else is written into these two (but
pools of threads, which a program chooses by including one).

Invariant: the text is that of the separate files, each once, in an order in which all is declared before it is used; so
the blob is the same as without. Standard headers stay included.
"""

from __future__ import annotations

import json

from ..base.records import replace
from .folder import MARK, with_report
from .output import Output
from .package import Package
from .runtime import WORKERS, include_line, includes_of


def single_file(package: Package) -> Package:
    return package.printed_as(lambda: _in_two(package))


def _in_two(package: Package) -> Output:
    prefix = package.plan.prefix
    texts = {name.rpartition("/")[2]: contents for name, contents in package.files.items()}
    sources = [name for name in (f"{prefix}_kernels.c", f"{prefix}.c", f"{prefix}_weights.c") if name in texts]
    own = package.includes
    of_c = [name for name in texts if name.endswith((".c", ".h", ".hpp"))]
    includes = {name: own[name] if name in own else includes_of(name) for name in of_c}
    done: set[str] = set()

    def whole(name: str) -> str:
        """The text of a file, with what it includes in place of the first include of each."""
        done.add(name)
        text = texts[name].decode()
        lines = {header: f"{include_line(header)}\n" for header in includes[name]}
        for header in sorted(lines, key=lambda header: text.index(lines[header])):
            text = text.replace(lines[header], "" if header in done else whole(header))
        return text

    header = whole(f"{prefix}.h")
    bodies = "\n".join(map(whole, sources))
    wrappers = {name: texts[name].decode() for name in texts if name == f"{prefix}.hpp"}
    for name, text in wrappers.items():
        for included in (header for header in includes[name] if header in texts and header != f"{prefix}.h"):
            text = text.replace(f"{include_line(included)}\n", texts[included].decode())
        wrappers[name] = text
    files = {
        f"{prefix}.h": header.encode(),
        f"{prefix}.c": f"{include_line(f'{prefix}.h')}\n\n{bodies}".encode(),
        **{name: text.encode() for name, text in wrappers.items()},
        **{name: package.files[name] for name in (f"{prefix}.mcb", "main.c")},
        **{name: texts[name] for name in WORKERS if name in texts},
    }
    return replace(package.output(), files=with_report(files, json.loads(package.files[MARK])))
