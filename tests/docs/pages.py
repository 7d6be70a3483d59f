"""Runs the code of a page: its fenced blocks, in order, in a folder that holds nothing but a copy of examples/.

- ```` ```sh ````: bash, which stops at the first command that fails.
- ```` ```console ````: lines after `$ ` are commands, the others what they print (`...` stands for anything). A command
  that shows no output must succeed.
- ```` ```python ````: the blocks of a page share their names.
- ```` ```c ````: compiles as the body of a function, behind what a file `fragment.h` declares, against out/.
- any language with `title="FILE"`: the file is written.
- ```` ```text ````: is shown, no more.

A comment in front of a block says more: `<!-- not run: why -->`, or `<!-- needs: COMMANDS -->` for one that is left out
where these are not installed (`python:NAME` is a module, `header:NAME` a header of C). `<!-- setup: COMMAND -->` runs a
command that readers do not see.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

TOP = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"<!-- (?P<what>not run|needs|setup): (?P<said>(?:(?!-->).|\n)*?)\s-->")
_PART = re.compile(
    rf"{COMMENT.pattern}"
    r"|^```(?P<language>\w*)(?P<info>.*)\n(?P<code>(?:.*\n)*?)```$",
    re.MULTILINE,
)
_TITLE = re.compile(r'title="([^"]+)"')
_SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A piece of a page that does something: a fenced block, or a command that readers do not see (`setup`)."""

    line: int
    language: str
    code: str
    title: str = ""
    not_run: str = ""
    needs: tuple[str, ...] = ()


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page; what a comment says goes to the block that follows."""
    said: dict[str, str] = {}
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["what"] == "setup":
            yield Block(line, "sh", part["said"])
        elif part["what"]:
            said[part["what"]] = part["said"]
        else:
            title = _TITLE.search(part["info"])
            needs = tuple(said.get("needs", "").split())
            found = title[1] if title else ""
            yield Block(line, part["language"], part["code"], found, said.get("not run", ""), needs)
            said = {}


def _is_there(name: str) -> bool:
    if name.startswith("header:"):
        include = f"#include <{name.removeprefix('header:')}>\n"
        return subprocess.run(["cc", "-E", "-"], input=include, text=True, capture_output=True).returncode == 0
    module = name.removeprefix("python:")
    return find_spec(module) is not None if module != name else shutil.which(name) is not None


class Reader:
    """Somebody who does what a page says."""

    def __init__(self, folder: Path, page: str, mccompile: str) -> None:
        self.folder, self.page = folder, page
        self.names: dict[str, Any] = {"__name__": "page"}
        self.left_out: list[str] = []
        tools = folder / ".tools"
        tools.mkdir(parents=True)
        for name, script in (("mccompile", mccompile), ("python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')):
            (tools / name).write_text(script, encoding="utf-8")
            (tools / name).chmod(0o755)
        shutil.copytree(TOP / "examples", folder / "examples", ignore=shutil.ignore_patterns("build", "__pycache__"))
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(TOP),
            "MCCOMPILE_CACHE": str(folder / ".cache"),
        }

    def do(self, block: Block) -> None:
        """Runs a block; an AssertionError says what is not as the page has it."""
        missing = [name for name in block.needs if not _is_there(name)]
        if missing:
            self.left_out.append(f"line {block.line} needs {' '.join(missing)}")
        elif block.title:
            target = self.folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.code, encoding="utf-8")
        elif block.language == "sh":
            code, printed = self.shell(block.code)
            assert code == 0, f"{self.page}:{block.line}: exit code {code}\n{printed}"
        elif block.language == "console":
            self.console(block)
        elif block.language == "c":
            self.fragment(block)
        elif block.language == "python":
            exec(compile("\n" * block.line + block.code, self.page, "exec"), self.names)
        else:
            assert block.language == "text", f"{self.page}:{block.line}: nobody runs blocks of {block.language!r}"

    def console(self, block: Block) -> None:
        for command, shown in re.findall(r"(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.code):
            code, printed = self.shell(command)
            if not shown.strip():
                assert code == 0, f"{self.page}:{block.line}: {command}: exit code {code}\n{printed}"
                continue
            same = doctest.OutputChecker().check_output(shown, printed, _SHOWN)
            assert same, f"{self.page}:{block.line}: {command} prints\n{printed}\nthe page has\n{shown}"

    def fragment(self, block: Block) -> None:
        lines = block.code.splitlines()
        heads = [line for line in lines if line.startswith("#include")]
        body = [line for line in lines if line not in heads]
        whole = ['#include "fragment.h"', *heads, "int fragment(void) {", *body, "return 0; }", ""]
        (self.folder / "fragment.c").write_text("\n".join(whole), encoding="utf-8")
        code, printed = self.shell(
            "cc -std=c99 -fsyntax-only -Wall -Werror=implicit-function-declaration "
            "-Wno-unused -D_POSIX_C_SOURCE=200809L -I. -Iout -Iout/runtime fragment.c"
        )
        assert code == 0, f"{self.page}:{block.line}: {printed}"

    def shell(self, code: str) -> tuple[int, str]:
        command = ["bash", "-euo", "pipefail", "-c", code]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return done.returncode, done.stdout


def script(name: str) -> ModuleType:
    """A script of docs/ as a module; `sys.path` stays what it is."""
    spec = spec_from_file_location(name, TOP / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module, path = module_from_spec(spec), list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module
