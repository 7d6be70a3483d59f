"""Several targets in one folder: what differs between them stands behind conditions of the preprocessor.

Invariant: on each target the compiler sees exactly the C that a folder for this target alone would hold, so the API is
the same and each has its own blob. The first condition that holds counts; where none does, compiling stops
(unless all are the same).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..base.errors import Problem, WrongUse
from ..base.names import c_identifier
from ..base.records import dataclass
from ..targets.api import Build
from .building import FIRST_TOOL, LAST_TOOL, cmake_tools, make_tools
from .folder import LIST, MARK, SEAL, with_report


@dataclass(frozen=True)
class Variant:
    guard: str
    build: Build
    files: Mapping[str, bytes]

    @property
    def target(self) -> str:
        return self.build.target


def guarded(variants: Sequence[Variant], name: str) -> Mapping[str, bytes]:
    """The files of all, whose builds are called `name`; C files that are the same everywhere stand as they are."""
    refuse(variants)
    files: dict[str, bytes] = {}
    for path in dict.fromkeys(path for variant in variants for path in variant.files if path != MARK):
        having = [variant for variant in variants if path in variant.files]
        if path in _BUILD_FILES:
            files[path] = _with_tools(path, having, name)
        elif all(variant.files[path] == having[0].files[path] for variant in having) and (
            len(having) == len(variants) or not path.endswith(".c")
        ):
            files[path] = having[0].files[path]
        elif path.endswith((".c", ".h", ".hpp")):
            files[path] = _behind_conditions(path, having, len(having) == len(variants))
        else:
            stem, dot, end = path.rpartition(".")
            files |= {f"{stem}-{variant.target}{dot}{end}": variant.files[path] for variant in having}
    reports = [json.loads(variant.files[MARK]) for variant in variants]
    for report in reports:
        del report[LIST], report[SEAL]
    return with_report(files, reports[0] | {"targets": reports})


_CMAKE = "CMakeLists.txt"
_BUILD_FILES = ("Makefile", _CMAKE)


def _with_tools(path: str, variants: Sequence[Variant], name: str) -> bytes:
    """A build file that is told for which target; the longest, as files that only some targets have are empty for the
    others."""
    text = max((variant.files[path].decode() for variant in variants), key=len)
    builds = [variant.build for variant in variants]
    tools = cmake_tools(builds, name) if path == _CMAKE else make_tools(builds)
    before, _, rest = text.partition(f"{FIRST_TOOL}\n")
    _, _, behind = rest.partition(f"{LAST_TOOL}\n")
    return f"{before}{tools}{behind}".encode()


def _behind_conditions(path: str, variants: Sequence[Variant], of_all: bool) -> bytes:
    names = ", ".join(variant.target for variant in variants)
    parts = [f"/* {path} for {names}: the flags of the compiler choose one, when this is compiled. */"]
    for number, variant in enumerate(variants):
        word = "elif" if number else "if"
        parts.append(f"#{word} {variant.guard} /* {variant.target} */\n{variant.files[path].decode()}")
    error = f'#error "{path} is made for {names}, and this compiler makes code for none of them"'
    nothing = f"typedef int {c_identifier(path)}_is_for_others; /* ISO C wants something in a file */"
    parts.append(f"#else\n{error if of_all else nothing}\n#endif\n")
    return "\n".join(parts).encode()


def refuse(variants: Sequence[Variant]) -> None:
    """Targets that cannot be told apart, or are never reached."""
    seen: dict[str, str] = {}
    for variant in variants:
        where = f"--target {','.join(each.target for each in variants)}"
        fix = "give one of them a guard in a TOML file of your own that inherits it"
        if not variant.guard:
            raise WrongUse(
                Problem(
                    f"target {variant.target} has no guard",
                    where,
                    "a guard tells the C compiler when to use its code",
                    fix,
                )
            )
        if variant.target in seen.values():
            raise WrongUse(
                Problem(f"{variant.target} is named twice", where, "each target needs one variant", "name it once")
            )
        if variant.guard in seen:
            why = f"{variant.guard} holds for both"
            raise WrongUse(Problem(f"{seen[variant.guard]} and {variant.target} cannot be told apart", where, why, fix))
        if "1" in seen:
            why = f"{seen['1']} comes first, and its code is for every machine"
            raise WrongUse(Problem(f"code for {variant.target} would never be used", where, why, "name that one last"))
        seen[variant.guard] = variant.target
