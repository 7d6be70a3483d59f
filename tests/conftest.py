"""`pytest --update-golden` rewrites the expected files of tests/golden, to be reviewed with git diff.

Whatever a test loads has its types compared with those that ONNX's own inference finds. What is timed is timed shortly.
C is not optimized but where a test compiles it by a command of its own (kernels, generated C) or for another machine:
ONNX's suite, which runs every operator, is. Where there is tcc, which takes a tenth of the time, it compiles what needs
no flags of its own; the compiler's header of vectors is read once. Collecting tests makes many objects that live as
long as they do: the garbage collector rests while they are made, leaves them out from then on, and looks at the others
less often. onnxruntime computes on one thread where a test asks for no number: further ones would wait for work longer
than small models take. A pass that fails is an error, not left out. Hypothesis draws the same in every run, and a busy
machine fails nothing: what is new is for the fuzzers."""

from __future__ import annotations

import gc
import os
import shutil
from contextlib import suppress

import pytest

from mccompile.base.errors import STRICT
from mccompile.check import oracle
from mccompile.cli import OBJECTS
from mccompile.frontend import contradictions
from mccompile.measure import speed
from mccompile.toolchain import build
from tests import bare, one_thread, precompiled

if os.environ.get(bare.BARE):
    bare.hide()  # before modules of tests look for tools
contradictions.ALWAYS = True
speed.SECONDS = 0.02
build.LEVEL = "-O0"
build.QUICK = shutil.which("tcc") or ""
build.AHEAD = precompiled.ahead
one_thread.by_default()
with suppress(ImportError):  # importers are tested with little else installed
    from hypothesis import HealthCheck, settings
    from hypothesis.internal.conjecture import providers

    settings.register_profile(
        "tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
    )
    settings.load_profile("tests")
    # Else numbers and texts of every module that is loaded are drawn too, which differ from run to run as modules do.
    if hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = providers.Constants
os.environ[STRICT] = "1"
os.environ.pop("CI", None)  # the same wherever tests run
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(*OBJECTS)
    gc.enable()


@pytest.fixture(params=["onnxruntime", "onnx reference evaluator"])
def either_reference(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the reference that models are compared with: onnxruntime, or what there is without it."""
    name: str = request.param
    if name == "onnxruntime":
        pytest.importorskip(name)
    else:
        monkeypatch.setattr(oracle, "find_spec", lambda name: None)
    return name


def pytest_addoption(parser: pytest.Parser) -> None:
    with suppress(ValueError):  # the package's own plugin brings it, where the package is installed
        parser.addoption("--update-golden", action="store_true", help="rewrite the expected files of tests/golden")
