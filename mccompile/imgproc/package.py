"""A folder of image functions: header and source, a program that tests and times them, build files, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..base.errors import Problem, WrongUse
from ..base.names import c_identifier
from ..base.records import dataclass
from ..emit.building import build_name, cmake_tools, in_report, make_tools
from ..emit.files import Files
from ..emit.folder import with_report, write_folder
from ..emit.prefix import c_prefix
from ..emit.render import TEMPLATES, render, render_c
from ..emit.runtime import runtime_headers
from ..targets.api import load
from .api import ImageFunction
from .printing import SCRATCH_ALIGN, element_c, facts
from .trials import SPREAD, trial

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Library:
    """Image functions as files; nothing is on disk until `write`."""

    prefix: str
    functions: Sequence[ImageFunction]
    report: Mapping[str, Any]
    files: Files

    def write(self, folder: str | Path, force: bool = False) -> Path:
        """Writes the files; gives the folder. Files there that mccompile did not write, or that were edited since, are
        an error; `force` replaces edited ones."""
        write_folder(Path(folder), self.files, force)
        return Path(folder)


def library(functions: Sequence[ImageFunction], target: str = "generic", name: str = "imgproc") -> Library:
    """What `mccompile imgproc` writes. Raises WrongUse."""
    if c_identifier(name) != name:
        why, fix = "names in C begin with it", f"did you mean --name {c_identifier(name)}?"
        raise WrongUse(Problem(f"{name!r} is not a name in C", "--name", why, fix))
    prefix, build = c_prefix(name), replace(load(target).build, needs="")
    told = [facts(each, prefix) for each in functions]
    tried = [trial(each, prefix) for each in functions]
    helpers = list(dict.fromkeys(helper for each in functions for helper in each.helpers))
    context: dict[str, Any] = {
        "prefix": prefix,
        "P": prefix.upper(),
        "c": element_c(functions[0]),
        "functions": told,
        "align": SCRATCH_ALIGN,
    }
    helped = render(_HERE / "helpers.c.j2", context | {"wanted": helpers})
    text = "\n".join([helped, *(each["text"] for each in told)])
    needed = [header for header, name in (("string.h", "memcpy"), ("float.h", "FLT_EPSILON")) if name in text]
    rooms = {f"{what}_room": max(each[f"{what}_count"] for each in tried) for what in ("x", "y")}
    rooms["scratch_room"] = max(1, *(each["bytes"] for each in tried))
    tests = [fn | each for fn, each in zip(told, tried, strict=True)]
    main = context | rooms | {"tests": tests, "spread": SPREAD}
    sources = {
        f"{prefix}.h": render_c(_HERE / "library.h.j2", context),
        f"{prefix}.c": render_c(_HERE / "library.c.j2", context | {"helpers": helped.rstrip(), "headers": needed}),
        "main.c": render_c(_HERE / "main.c.j2", main),
    }
    texts = {path: source.text for path, source in sources.items()}
    texts |= runtime_headers(name for source in sources.values() for name in source.includes)
    how: dict[str, Any] = {"prefix": prefix, "N": prefix.upper()}
    how |= {"library": build_name(prefix), "program": build_name(prefix)}
    how |= {"sources": [f"{prefix}.c"], "carrier": "", "file_flags": []}
    texts["Makefile"] = render(TEMPLATES / "Makefile.j2", how | {"tools": make_tools([build])})
    texts["CMakeLists.txt"] = render(TEMPLATES / "CMakeLists.txt.j2", how | {"tools": cmake_tools([build], prefix)})
    asked = functions[0].asked
    report = {
        "mccompile": __version__,
        "prefix": prefix,
        **in_report(build),
        "dtype": asked.dtype.name,
        "sizes": {size: number for size, number in asked.sizes.items() if isinstance(number, int)},
        "image_functions": [{"name": each["symbol"], "scratch_bytes": each["scratch"]} for each in told],
    }
    return Library(prefix, functions, report, with_report({path: t.encode() for path, t in texts.items()}, report))
