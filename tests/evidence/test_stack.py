"""Certificates of the stack, and their checker."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from mccompile.evidence import check_stack, folder
from mccompile.evidence.stack import interface, of_graph
from mccompile.evidence.time import time_certificate
from mccompile.frontend.listed import nodes_of
from mccompile.targets.api import load
from mccompile.toolchain.stack import CallGraph, Frame
from tests import small_models
from tests.evidence import mutate
from tests.evidence.stack_changes import OF_STACKS

HEADER = "int m_init(void *m);\nint m_run(void *m);\nfloat *m_input_x(\n    void *m); /* f32[3] */\n"
FRAMES = {
    "m_init": Frame(28, {}),
    "m_run": Frame(16, {"conv": 16, "gemm": 8}),
    "m_input_x": Frame(0, {}),
    "conv": Frame(120, {"expf": 104}),
    "gemm": Frame(100, {"memcpy": 64}),
    "expf": Frame(40, {"scale": 8}),
    "scale": Frame(12, {}),
    "unused": Frame(None, {}),
}


def certificate(**changes: Frame) -> dict[str, Any]:
    return of_graph(CallGraph(FRAMES | {"memcpy": Frame(16, {})} | changes), interface("m", HEADER))


def problems(found: dict[str, Any], built: dict[str, int | None] | None = None) -> list[str]:
    program = [{"call": {"step": number, "function": name}} for number, name in enumerate(("conv", "gemm"))]
    return check_stack.check(found, {"prefix": "m", "program": program}, HEADER, built or {})


def test_a_bound_is_the_longest_path_with_functions_of_libraries() -> None:
    found = certificate()
    assert found["bounds"]["m_run"] == {"bytes": 16 + 104 + 40, "without": []} and "unused" not in found["functions"]
    assert [*found["bounds"]] == ["m_init", "m_input_x", "m_run"] and problems(found) == []


def test_what_is_not_known_is_named() -> None:
    found = of_graph(CallGraph(FRAMES), ["m_init", "m_run"])
    assert found["bounds"]["m_run"]["without"] == ["memcpy"] and problems(found) == []


def test_functions_that_call_themselves_have_no_bound() -> None:
    found = certificate(scale=Frame(12, {"conv": 12}))
    assert found["bounds"]["m_run"]["bytes"] is None and found["bounds"]["m_init"]["bytes"] == 28
    assert problems(found) == []


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ({"conv": 16}, "Functions of libraries are included."),
        ({"expf": 16}, "The stack of expf comes on top: it is not known."),
        ({"mlp_run": 16}, "There is no bound for mlp_run."),
    ],
)
def test_the_page_says_whose_stack_is_not_known(run: dict[str, int], says: str) -> None:
    model = small_models.mlp()
    package = small_models.compiled(model)
    names = interface("mlp", package.files["mlp.h"].decode())
    steps = dict.fromkeys((step.function.name for step in package.plan.steps()), 16)
    frames = {name: Frame(16, run | steps if name == "mlp_run" else {}) for name in [*names, "conv", *steps]}
    stack = {"schema": "mccompile-stack-1", "compiler": "", "flags": [], **of_graph(CallGraph(frames), names)}
    generic = load("generic")
    time = time_certificate(package, generic)
    unmeasured = {"schema": "mccompile-coverage-1", "not_measured": "gcov is not installed"}
    made = folder.evidence(package, "mlp.onnx", b"", "", nodes_of(model), stack, time, unmeasured, generic)
    page = made["index.html"].decode()
    claim = " ".join(page.split("more stack than its bound")[1].split("</li>")[0].split())
    assert says in claim and ("libraries are included" in claim) == ("expf" not in run)


def test_broken_certificates_are_rejected() -> None:
    bad = mutate.broken(certificate(), 1000, changes=OF_STACKS)
    assert [name for name, each in bad if not problems(each)] == []


def test_another_build_may_not_take_more(tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text(
        "void use(volatile char *); void conv(void); void conv(void) { volatile char a[200]; use(a); }"
    )
    subprocess.run(["gcc", "-fstack-usage", "-c", "own.c"], cwd=tmp_path, check=True)
    built = check_stack.usage(tmp_path)
    assert "conv takes" in problems(certificate(), built)[0]
    assert problems(certificate(conv=Frame(400, {"expf": 104})), built) == []
