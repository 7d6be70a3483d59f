"""The most stack, by what the compiler says of its own code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mccompile.toolchain.stack import FLAG, UNKNOWN, Bound, CallGraph, Frame, frames_by_compiler

HEAD = (
    "void use(volatile char *p, int n);\n"
    "__attribute__((noinline)) void use(volatile char *p, int n) { while (n--) p[n] = 1; }\n"
)


def bound(code: str, folder: Path) -> Bound:
    source = folder / "code.c"
    source.write_text(code)
    subprocess.run(["gcc", "-O1", FLAG, "-c", str(source), "-o", str(folder / "code.o")], check=True)
    return CallGraph(frames_by_compiler(folder.glob("*.ci"))).bound("top")


def test_the_deepest_chain_counts(tmp_path: Path) -> None:
    code = HEAD + (
        "__attribute__((noinline)) static void deep(void) { char a[1000]; use(a, 1000); }\n"
        "__attribute__((noinline)) static void flat(void) { char a[3000]; use(a, 3000); }\n"
        "void top(void) { char a[100]; use(a, 100); deep(); flat(); use(a, 1); }\n"
    )
    found = bound(code, tmp_path)
    assert found.bytes is not None and 3100 <= found.bytes <= 3400 and found.unseen == ()


def test_what_was_not_seen_is_named(tmp_path: Path) -> None:
    assert bound("double exp(double); double top(double x) { return exp(x) + 1; }\n", tmp_path).unseen == ("exp",)


@pytest.mark.parametrize(
    "code",
    [
        "int top(int n) { volatile int a = n; return n ? a * top(a - 1) + 1 : 0; }\n",
        "int top(int (*f)(int)) { volatile int a = 1; return f(a) + a; }\n",
        HEAD + "void top(int n) { char a[n]; use(a, n); }\n",
        "int other(void) { return 1; }\n",
    ],
)
def test_recursion_pointers_to_functions_and_variable_arrays_have_no_bound(code: str, tmp_path: Path) -> None:
    assert bound(code, tmp_path).bytes is None


def test_what_takes_more_than_its_bound_is_named() -> None:
    graph = CallGraph({"m_run": Frame(8, {"f": 8}), "f": Frame(20, {}), "m_init": Frame(4, {"unheard_of": 4})})
    called = ("m_init", "m_run")
    assert graph.exceeded(called, (400, 28), 4096) == graph.exceeded(called, (UNKNOWN, UNKNOWN), 4096) == ""
    assert graph.exceeded(called, (4, 32), 4096).startswith("m_run took 32 bytes of stack, more than its bound of 28")
    assert graph.exceeded(called, (4096, 28), 4096) == "m_init needs more than 4096 bytes of stack"
