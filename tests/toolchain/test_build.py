"""A compiler is found, used, and its failures are told in its own words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mccompile.base.errors import WrongUse
from mccompile.toolchain.build import compile_program, compile_shared, find_compiler, load


def _problem(error: pytest.ExceptionInfo[WrongUse]) -> tuple[str, str, str, str]:
    (problem,) = error.value.problems
    return problem.what, problem.where, problem.why, problem.fix


def test_the_compiler_asked_for_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "sh")
    assert find_compiler("env cc").command == ("env", "cc")
    assert find_compiler().command == ("sh",)


def test_without_wishes_some_compiler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    assert find_compiler().command[0] in ("cc", "gcc", "clang", "tcc")


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WrongUse) as error:
        find_compiler()
    assert _problem(error) == (
        "no C compiler found",
        "PATH",
        "none of cc, gcc, clang, tcc is installed",
        "install one (Debian: apt install gcc), or name yours: CC=/path/to/compiler",
    )


@pytest.mark.parametrize("cc", ["no-such-cc -O2", "  ", "'cc"])
def test_a_compiler_that_does_not_exist_is_refused(cc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", cc)
    with pytest.raises(WrongUse) as error:
        find_compiler()
    what, where, why, fix = _problem(error)
    assert (what, where) == (f"cannot use {cc!r} as C compiler", "environment variable CC")
    assert why and fix


def test_a_program_is_compiled_and_linked_with_libm(tmp_path: Path) -> None:
    source = tmp_path / "root.c"
    source.write_text("#include <math.h>\nint main(int c, char **v) { (void)v; return (int)sqrt(48.0 + c); }\n")
    program = compile_program(find_compiler(), [source], [], tmp_path / "root")
    assert subprocess.run([program], check=False).returncode == 7


def test_a_shared_object_is_loaded_and_called(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "seven.h").write_text("#define SEVEN 7\n")
    source = tmp_path / "f.c"
    source.write_text('#include "seven.h"\nint times(int x);\nint times(int x) { return SEVEN * x; }\n')
    shared = compile_shared(find_compiler(), [source], [tmp_path / "include"], tmp_path / "f.so")
    assert load(shared, "int times(int x);").functions.times(6) == 42


def test_the_compilers_message_is_shown(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int x = nonsense;\n")
    with pytest.raises(WrongUse) as error:
        compile_shared(find_compiler(), [source], [], tmp_path / "wrong.so")
    what, where, why, fix = _problem(error)
    assert what == "the C compiler failed on wrong.c"
    assert str(source) in where
    assert "nonsense" in why
    assert fix


def test_what_is_no_shared_object_is_not_loaded(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(WrongUse, match=r"cannot load text\.so"):
        load(text, "int f(void);")
