"""What build files, headers and reports say of how the code is compiled: compiler and flags of its target, and names.

Invariant: a build file begins with its tools, the only part of it that depends on the target; so build files of several
targets in one folder differ in that part only, and become one that is told which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..targets.api import Build
from .render import comment

# What make, CMake and linkers, or folders of the output, already call so.
_TAKEN = frozenset(
    (
        "all",
        "all_build",
        "clean",
        "continuous",
        "depend",
        "edit_cache",
        "experimental",
        "help",
        "install",
        "list_install_components",
        "nightly",
        "package",
        "package_source",
        "preinstall",
        "rebuild_cache",
        "run_tests",
        "runtime",
        "test",
        "zero_check",
        "include",
        "src",
        "example",
        "c",
        "crypt",
        "dl",
        "gcc",
        "m",
        "pthread",
        "resolv",
        "rt",
        "util",
        "app",
        "kernel",
        "zephyr",
    )
)
FIRST_TOOL, LAST_TOOL = "# The target's tools.", "# End of the target's tools."


def build_name(name: str) -> str:
    """What a build calls a library or a program; files and C keep the name itself."""
    return f"{name}_net" if name.lower() in _TAKEN else name


def archiver(compiler: str) -> str:
    """The one that comes with a compiler."""
    folder, slash, command = compiler.rpartition("/")
    tools, gcc, version = command.rpartition("gcc")
    if gcc and (not version or version.startswith("-")):
        return f"{folder}{slash}{tools}ar"
    return f"$(shell {compiler} -print-prog-name=llvm-ar)" if command.startswith("clang") else "ar"


def flags_text(build: Build) -> str:
    return comment(" ".join(build.flags))


def missing_flags(build: Build, prefix: str) -> str:
    """Lines of C that stop a compiler which was not given the flags; "" where any will do."""
    if not build.needs:
        return ""
    flags = flags_text(build).replace('"', "'")
    said = (f"{prefix} is made for {build.target}: compile it with", f"{flags},", f"so that {build.needs}")
    message = " \\\n    ".join(f'"{part}"' for part in said)
    return f"#if !({build.needs})\n#error {message}\n#endif\n"


def make_tools(builds: Sequence[Build]) -> str:
    """The head of a Makefile: which compiler, which flags, and is there a program."""
    if len(builds) == 1:
        return f"{FIRST_TOOL}\n{_make(builds[0])}{LAST_TOOL}\n"
    names = [build.target for build in builds]
    lines = [FIRST_TOOL, f"# This folder is for {', '.join(names)}: make TARGET={names[-1]}", f"TARGET ?= {names[0]}"]
    for number, build in enumerate(builds):
        lines.append(f"{'else ' if number else ''}ifeq ($(TARGET),{build.target})")
        lines.append(_make(build).rstrip("\n"))
    lines += ["else", f"$(error TARGET is one of {' '.join(names)})", "endif", LAST_TOOL, ""]
    return "\n".join(lines)


def _make(build: Build) -> str:
    lines = ["CC ?= cc"]
    if build.compiler != "cc":
        lines = ["ifeq ($(origin CC),default)", f"CC = {build.compiler}", "endif"]
        lines += ["ifeq ($(origin AR),default)", f"AR = {archiver(build.compiler)}", "endif"]
    lines += [f"TARGET_FLAGS = {' '.join(build.flags)}".rstrip(), f"LINK_FLAGS = {' '.join(build.link_flags)}".rstrip()]
    lines.append("HOSTED = yes" if build.hosted else "HOSTED = # firmware: your own program is linked with the library")
    return "\n".join(lines) + "\n"


def cmake_tools(builds: Sequence[Build], name: str) -> str:
    """The same for CMake, to stand in front of project()."""
    if len(builds) == 1:
        return f"{FIRST_TOOL}\n{_cmake(builds[0], name, '')}{LAST_TOOL}\n"
    names = [build.target for build in builds]
    option = f"MCC_{name.upper()}_TARGET"
    lines = [FIRST_TOOL, f'set({option} "{names[0]}" CACHE STRING "Which of the targets: {", ".join(names)}")']
    for number, build in enumerate(builds):
        lines.append(f'{"else" if number else ""}if({option} STREQUAL "{build.target}")')
        lines.append(_cmake(build, name, "  ").rstrip("\n"))
    lines += ["else()", f'  message(FATAL_ERROR "{option} is one of {", ".join(names)}")', "endif()", LAST_TOOL, ""]
    return "\n".join(lines)


def _cmake(build: Build, name: str, indent: str) -> str:
    lines = []
    if build.compiler != "cc":
        given = "PROJECT_NAME OR CMAKE_C_COMPILER OR CMAKE_TOOLCHAIN_FILE OR DEFINED ENV{CC}"
        lines += [f"if(NOT ({given}))", f"  set(CMAKE_C_COMPILER {build.compiler})"]
        lines += [] if build.hosted else ["  set(CMAKE_SYSTEM_NAME Generic)"]
        lines += ["  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)", "endif()"]
    option = f"MCC_{name.upper()}_FLAGS"
    lines += [f"if(NOT DEFINED {option})", f"  set({option} {_listed(build.flags)})".replace(" )", ")"), "endif()"]
    lines.append(f"set(MCC_{name.upper()}_LINK_FLAGS {_listed(build.link_flags)})".replace(" )", ")"))
    lines.append(f"set(MCC_{name.upper()}_HOSTED {'ON' if build.hosted else 'OFF'})")
    return "".join(f"{indent}{line}\n" for line in lines)


def _listed(flags: Sequence[str]) -> str:
    return " ".join(f'"{flag}"' if set(flag) & set(' ();#"') else flag for flag in flags)


def in_report(build: Build) -> dict[str, Any]:
    """What a report says of it."""
    return {
        "target": build.target,
        "compiler": build.compiler,
        "flags": list(build.flags),
        "link_flags": list(build.link_flags),
        "needs": build.needs,
        "hosted": build.hosted,
    }


def from_report(report: Mapping[str, Any]) -> Build:
    texts = (str(report[key]) for key in ("target", "compiler", "needs"))
    target, compiler, needs = texts
    return Build(target, compiler, tuple(report["flags"]), tuple(report["link_flags"]), needs, bool(report["hosted"]))
