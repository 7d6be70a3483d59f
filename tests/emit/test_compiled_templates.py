"""What Jinja makes of templates is read again, and only where it is still right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest

from mccompile.base import discovery
from mccompile.emit.compiled_templates import CompiledTemplates

Render = Callable[[str], tuple[str, int]]


@pytest.fixture
def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Render:
    """What an environment of its own, as in another process, makes of a template, and what it compiled for that."""
    monkeypatch.setenv(discovery.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    functions = tmp_path / "functions.py"
    functions.write_text("first")

    def render(text: str) -> tuple[str, int]:
        compiled = []

        class Environment(jinja2.Environment):
            def _generate(self, *args: Any, **named: Any) -> str:
                compiled.append(args)
                return super()._generate(*args, **named)

        environment = Environment(
            loader=jinja2.FunctionLoader(lambda name: text), bytecode_cache=CompiledTemplates([functions])
        )
        return environment.get_template("a.c").render(x=3), len(compiled)

    return render


def test_another_process_compiles_nothing(rendered: Render) -> None:
    assert rendered("a{{ x }}") == ("a3", 1)
    assert rendered("a{{ x }}") == ("a3", 0)


def test_another_text_is_compiled(rendered: Render) -> None:
    rendered("a{{ x }}")
    assert rendered("b{{ x }}") == ("b3", 1)


def test_other_functions_have_it_compiled_again(rendered: Render, tmp_path: Path) -> None:
    rendered("a{{ x }}")
    (tmp_path / "functions.py").write_text("second")
    assert rendered("a{{ x }}") == ("a3", 1)


def test_a_damaged_entry_is_not_read(rendered: Render, tmp_path: Path) -> None:
    rendered("a{{ x }}")
    (entry,) = (tmp_path / "cache" / "templates").iterdir()
    whole = entry.read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        entry.write_bytes(damaged)
        assert rendered("a{{ x }}") == ("a3", 1)
        assert entry.read_bytes() == whole


def test_without_a_folder_nothing_is_kept(rendered: Render, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert [rendered("a{{ x }}") for _ in range(2)] == [("a3", 1)] * 2


def test_nothing_is_written_where_python_writes_none(
    rendered: Render, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    rendered("a{{ x }}")
    assert not (tmp_path / "cache").exists()
