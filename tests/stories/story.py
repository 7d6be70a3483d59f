"""What users do with one project folder, in any order: compile, check, run, train anew, edit, quantize, load.

Oracle: onnxruntime on the model that the code stands for. Invariants after every step: files of the user are as they
were, and a command that was refused has changed nothing below the output folder."""

from __future__ import annotations

import contextlib
import io
import pickle
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import mccompile
from mccompile import cli
from mccompile.base.quantizing import METHODS
from mccompile.driver import Options
from mccompile.driver import compile as compile_file
from mccompile.toolchain.run import Model
from tests.small_models import random_inputs, reference

from .models import FAMILIES, Network

REFUSED = (1, 2, 3, 4)  # exit codes; 70 and tracebacks are bugs
NETWORKS = st.builds(Network, st.sampled_from(sorted(FAMILIES)), st.integers(0, 3), st.integers(0, 9))
LAYOUTS = ("make", "cmake", "zephyr", "arduino", "platformio", "esp-idf", "cmsis-pack")
FORMS = (
    (), ("--io", "external"), ("--io", "y=external"), ("--slices",), ("--single-file",), ("--blob", "external"),
    ("--module",), ("--updatable",), ("-O0",), ("--keep-inputs",), ("--mem", "fast=64,fast", "--mem", "slow"),
    ("--prefer", "flash"), ("--target", "native"), ("--target", "cortex-m4"), ("--profile",), ("--threads", "2"),
)  # fmt: skip
RUNNABLE = frozenset(FORMS[:6]) | frozenset(FORMS[7:13]) | {FORMS[15]}


class Story(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="story-"))
        self.model, self.out = self.folder / "g.onnx", self.folder / "out"
        self.mine = self.folder / "out" / "notes.txt"
        self.now: Network | None = None  # the model's file
        self.code: Network | None = None  # what the output folder stands for
        self.form: tuple[str, ...] = ()
        self.arranged = self.edited = False
        self.touched: Path | None = None
        self.as_edited = b""

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def command(self, *words: object) -> int:
        """A command in this process; what it says in case of refusal is more than nothing, and changes nothing."""
        before, said = self.contents(), io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = cli.run([str(word) for word in words])
        assert code == 0 or code in REFUSED, f"mccompile {' '.join(map(str, words))}: {code}\n{said.getvalue()}"
        assert code == 0 or said.getvalue().startswith("error: "), said.getvalue()
        assert code == 0 or self.contents() == before, "a refused command has written"
        return code

    def contents(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in self.out.rglob("*") if p.is_file()}

    def state_of(self, network: Network) -> list[str]:
        return [word for pair in network.of.state.items() for word in ("--state", "=".join(pair))]

    @initialize(network=NETWORKS)
    def begins(self, network: Network) -> None:
        self.saves(network)

    @rule(network=NETWORKS)
    def saves(self, network: Network) -> None:
        self.model.write_bytes(network.made().SerializeToString())
        self.now = network

    @rule(seed=st.integers(0, 9), variant=st.integers(0, 3))
    def trains_anew(self, seed: int, variant: int) -> None:
        assert self.now is not None
        self.saves(Network(self.now.family, variant, seed))

    @rule(form=st.sampled_from(FORMS), layout=st.sampled_from(("", "", *LAYOUTS)))
    def compiles(self, form: tuple[str, ...], layout: str) -> None:
        assert self.now is not None
        packed = ["--package", layout] if layout else []
        code = self.command(self.model, "-o", self.out, *form, *packed, *self.state_of(self.now))
        if code == 0:
            kept = self.touched is None or self.touched.read_bytes() == self.as_edited
            assert not self.edited or kept, "an edited file was replaced"
            self.code, self.form, self.arranged = self.now, form, bool(layout)

    @rule(network=NETWORKS)
    def joins_another(self, network: Network) -> None:
        """Two models in one call, each with the states that it has."""
        assert self.now is not None
        other, both = self.folder / "h.onnx", self.folder / "both"
        other.write_bytes(network.made().SerializeToString())
        states = self.state_of(self.now) or self.state_of(network)
        assert self.command(self.model, other, "-o", both, *states) == 0
        shutil.rmtree(both)

    @precondition(lambda self: self.code is not None)
    @rule()
    def brings_weights(self) -> None:
        assert self.now is not None and self.code is not None
        code = self.command("blob", self.model, "--for", self.out)
        if code == 0:
            assert self.now.has_interface_of(self.code), f"{self.now} for {self.code}"
            self.code = self.now
        elif not self.edited:
            assert not self.now.has_interface_of(self.code) or self.now.family == "memory", "weights were refused"

    @precondition(lambda self: self.code is not None)
    @rule()
    def gets_slots(self) -> None:
        """Code for updates in the field joins the folder, which runs and takes weights as before."""
        assert self.command("slots", self.out) == 0 or self.edited or self.form not in RUNNABLE

    @rule(form=st.sampled_from(((), ("--prefer", "flash"), ("--blob", "external"), ("--target", "native"))))
    def learns(self, form: tuple[str, ...]) -> None:
        """Code that learns takes the weights of a model that was trained elsewhere."""
        assert self.now is not None
        made = self.folder / "learning"
        if self.command("train", self.model, "--loss", "mse:y", "-o", made, *form) == 0:
            other = self.folder / "anew" / "g.onnx"
            other.parent.mkdir(exist_ok=True)
            other.write_bytes(Network(self.now.family, self.now.variant, self.now.seed + 1).made().SerializeToString())
            assert self.command("blob", other, "--for", made) == 0
            shutil.rmtree(made)

    @precondition(lambda self: self.out.is_dir())
    @rule()
    def writes_notes(self) -> None:
        self.mine.write_text("mine")

    @precondition(lambda self: self.code is not None and not self.edited)
    @rule()
    def edits(self) -> None:
        self.touched = next(iter(sorted(self.out.rglob("g.c"))))
        self.as_edited = self.touched.read_bytes() + b"/* mine */\n"
        self.touched.write_bytes(self.as_edited)
        self.edited = True

    @precondition(lambda self: self.edited)
    @rule()
    def starts_over(self) -> None:
        shutil.rmtree(self.out)
        self.code, self.edited = None, False

    @precondition(lambda self: self.code is not None and self.form in RUNNABLE and not self.arranged)
    @rule(seed=st.integers(0, 5))
    def runs(self, seed: int) -> None:
        """Twice from one saved state, with another instance in between."""
        assert self.code is not None
        flags = ("-march=native",) if self.form == ("--target", "native") else ()
        one, other = (Model.build(self.out, flags=flags) for _ in range(2))
        wanted = self.wanted(self.code, seed, 3)
        inputs = self.inputs(self.code, seed)
        self.same(one.run(inputs, 0xA5), wanted[0])
        saved = one.save_state() if self.code.of.state else b""
        self.same(other.run(inputs, 0x5A), wanted[0])
        self.same(one.run(inputs), wanted[1])
        self.same(one.run(inputs), wanted[2])
        if saved:
            other.load_state(saved)
            self.same(other.run(inputs), wanted[1])

    @rule()
    def checks(self) -> None:
        assert self.now is not None
        assert self.command("check", self.model, "--runs", 1, *self.state_of(self.now)) == 0

    @rule(bits=st.sampled_from(("8", "4")))
    def quantizes(self, bits: str) -> None:
        made = self.folder / "q.onnx"
        if self.command("quantize", self.model, "--weights-only", bits, "-o", made) == 0:
            onnx.checker.check_model(str(made), full_check=True)
            assert self.now is not None
            compile_file(made, Options(state=self.now.of.state))

    @rule(method=st.sampled_from(METHODS), symmetric=st.booleans())
    def calibrates(self, method: str, symmetric: bool) -> None:
        """Integers of samples, that give the results of the file that is written."""
        assert self.now is not None
        made, data = self.folder / "int8.onnx", self.folder / "samples.npz"
        runs = [self.inputs(self.now, seed) for seed in range(10)]
        np.savez(data, **{name: np.stack([run[name] for run in runs]) for name in runs[0]})
        how = ["--calibrate", method, *(["--symmetric"] if symmetric else [])]
        state = self.state_of(self.now)
        if self.command("quantize", self.model, "--data", data, *how, "-o", made) == 0:
            onnx.checker.check_model(str(made), full_check=True)
            assert self.command("check", made, "--runs", 1, *state) == 0

    @rule(form=st.sampled_from(("u8,scale=1/255", "rgb", "u8,mean=128,scale=1/64", "nhwc", "nv21")))
    def hands_over(self, form: str) -> None:
        """Where it suits the model, results are those of the reference that is handed the same."""
        assert self.now is not None
        name = self.now.made().graph.input[0].name
        code = self.command("check", self.model, "--runs", 1, "--input", f"{name}={form}", *self.state_of(self.now))
        assert code in (0, 2, 3), code
        assert code == 0 or not (self.now.of.is_picture and form == "rgb")

    @rule(seed=st.integers(0, 5))
    def loads(self, seed: int) -> None:
        """In Python, from threads and pickled."""
        assert self.now is not None
        network = mccompile.load(self.model, state=dict(self.now.of.state), target="generic")
        inputs, wanted = self.inputs(self.now, seed), self.wanted(self.now, seed, 2)
        self.same(dict(network(**inputs).items()), wanted[0])
        self.same(dict(pickle.loads(pickle.dumps(network))(**inputs).items()), wanted[1])
        if not self.now.of.state:
            with ThreadPoolExecutor(3) as pool:
                for found in pool.map(lambda _: network(**inputs), range(6)):
                    self.same(dict(found.items()), wanted[0])

    @invariant()
    def notes_are_there(self) -> None:
        assert not self.mine.exists() or self.mine.read_text() == "mine"

    def inputs(self, network: Network, seed: int) -> dict[str, np.ndarray]:
        states = network.of.state.values()
        return {name: array for name, array in random_inputs(network.made(), seed).items() if name not in states}

    def wanted(self, network: Network, seed: int, runs: int) -> list[dict[str, np.ndarray]]:
        """What onnxruntime gives run after run."""
        made, state = network.made(), network.of.state
        now = {name: np.zeros_like(array) for name, array in random_inputs(made).items()}
        found = []
        for _ in range(runs):
            found.append(reference(made, now | self.inputs(network, seed)))
            now |= {before: found[-1][after] for after, before in state.items()}
        return [{name: array for name, array in each.items() if name not in state} for each in found]

    def same(self, got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
        assert set(got) == set(wanted), (set(got), set(wanted))
        for name, array in wanted.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
