"""Crates of Rust: tested by cargo on this machine, and on an emulated Cortex-M4, where they cost what C costs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from embedded.counted import instructions, program, run
from embedded.test_wrappers import C, counted
from mccompile.base.streaming import Stream
from mccompile.driver import Options, arrange, compile_graph
from mccompile.emit.folder import write_folder
from mccompile.frontend.load import load_proto
from tests import small_models
from tests.emit.wrappers.test_rust import FREE
from tests.passes.memory.test_state import STATES
from tests.passes.stream.pushed import model as stream_model

THUMB = "thumbv7em-none-eabihf"
SOURCES = Path("/usr/src")  # where Debian's rust-src lies
DEBIAN = {"CARGO": "/usr/bin/cargo", "RUSTC": "/usr/bin/rustc"}  # what these sources belong to
USER = """
#![forbid(unsafe_code)]
use conv::{Arena, Error, Model, ARENA_ALIGN, ARENA_BYTES};

const WANTED: &[f32] = &WANTED_HERE;

#[test]
fn results_are_those_of_the_reference() {
    let mut arena = Arena::new();
    let mut model = Model::new(&mut arena).unwrap();
    for (i, x) in model.input_x().iter_mut().enumerate() {
        *x = (i % 7) as f32 / 4.0 - 0.5;
    }
    model.run().unwrap();
    assert_eq!(model.output_y().len(), WANTED.len());
    assert!(model.output_y().iter().zip(WANTED).all(|(y, wanted)| (y - wanted).abs() < 1e-4));
}

#[test]
fn mistakes_are_errors() {
    let mut arena = Arena::new();
    assert_eq!(Model::with_weights(&mut arena, &[]).err(), Some(Error::BlobSize));
    let mut memory = vec![0_u8; ARENA_BYTES + 2 * ARENA_ALIGN];
    let begin = memory.as_ptr().align_offset(ARENA_ALIGN);
    assert_eq!(Arena::from_bytes(&mut memory[begin..begin + ARENA_BYTES - 1]).err(), Some(Error::ArenaSize));
    assert_eq!(Arena::from_bytes(&mut memory[begin + 1..]).err(), Some(Error::ArenaAlign));
    let there = Arena::from_bytes(&mut memory[begin..]).unwrap_or_else(|_| panic!());
    assert!(Model::new(there).unwrap().run().is_ok());
    let damaged: Vec<u64> = vec![0; conv::WEIGHTS_BYTES / 8];
    let bytes: Vec<u8> = damaged.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(Model::with_weights(&mut arena, &bytes).is_err());
    assert_eq!(Error::BlobCrc.to_string(), "the blob is damaged");
}
"""
ON_BOARD = """
#![no_std]
#![deny(unsafe_code)]
use conv::{Arena, Error, Model};
use core::sync::atomic::{AtomicU32, Ordering};

static SUM: AtomicU32 = AtomicU32::new(0);

mod marks {
    #![allow(unsafe_code)]
    extern "C" {
        fn board_count_begin();
        fn board_count_end();
    }
    pub fn begin() { unsafe { board_count_begin() } }
    pub fn end() { unsafe { board_count_end() } }
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
    #[no_mangle]
    pub extern "C" fn main() -> i32 { match super::counted() { Ok(()) => 0, Err(error) => error as i32 } }
}

fn counted() -> Result<(), Error> {
    let mut arena = Arena::new();
    marks::begin();
    let mut model = Model::new(&mut arena)?;
    marks::end();
    marks::begin();
    for (i, x) in model.input_x().iter_mut().enumerate() {
        *x = i as f32;
    }
    model.run()?;
    let sum: f32 = model.output_y().iter().sum();
    SUM.store(sum.to_bits(), Ordering::Relaxed);
    marks::end();
    if Model::with_weights(&mut arena, &[]).err() != Some(Error::BlobSize) {
        return Err(Error::Unknown);
    }
    Ok(())
}
"""


def crate(folder: Path, options: Options, made: ModelProto | None = None, **dims: tuple[int, int]) -> Path:
    """A crate of the model, called conv."""
    options = replace(options, wrappers=("rust",))
    package = compile_graph(load_proto(made or small_models.conv(), dims=dims), options, "conv")
    write_folder(folder, arrange(package.files, "cargo", "conv", options))
    return folder


def cargo(folder: Path, *arguments: object, **more: str) -> str:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder.parent / "target"), **more}
    command = [more.get("CARGO", "cargo"), *map(str, arguments), "--offline"]
    command += ["--manifest-path", str(folder / "Cargo.toml")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_cargo_tests_a_crate_on_this_machine(tmp_path: Path) -> None:
    made = small_models.conv()
    x = (np.arange(np.prod(shape_of(made))) % 7 / 4 - 0.5).astype(np.float32).reshape(shape_of(made))
    wanted = small_models.reference(made, {"x": x})["y"]
    folder = crate(tmp_path / "conv", Options())
    (folder / "tests").mkdir()
    numbers = ", ".join(f"{value:.9e}" for value in wanted.ravel())
    (folder / "tests" / "user.rs").write_text(USER.replace("WANTED_HERE", f"[{numbers}]"))
    said = cargo(folder, "test", RUSTFLAGS="-D warnings")
    assert "2 passed" in said


def shape_of(made: ModelProto) -> list[int]:
    return [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]


def test_it_compiles_without_warnings_whatever_a_model_has(tmp_path: Path) -> None:
    made, states = STATES["causal"]
    window = stream_model("(float[1,2,9] x) => (float[1,2,9] y) { y = Relu(x) }")
    crate(tmp_path / "states", Options(state=states, slices=True, profile=True), made)
    crate(tmp_path / "stream", Options(stream=Stream({"x": 2})), window)
    crate(tmp_path / "free", Options(), FREE, n=(1, 9))
    for folder in ("states", "stream", "free"):
        cargo(tmp_path / folder, "check", RUSTFLAGS="-D warnings")


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian has the standard library for its own machines only; what a Cortex-M needs of it is built here."""
    found = sorted(SOURCES.glob("rustc-*/library/core/src/lib.rs"))
    if not found or not Path(DEBIAN["RUSTC"]).exists():
        pytest.skip("no rust-src with its compiler is installed (embedded/install.sh)")
    root = tmp_path_factory.mktemp("core")
    place = root / "lib" / "rustlib" / THUMB / "lib"
    place.mkdir(parents=True)
    nothing = root / "compiler_builtins.rs"  # the C library has what it would have
    nothing.write_text("#![feature(compiler_builtins)]\n#![compiler_builtins]\n#![no_std]\n#![no_builtins]\n")
    for name, source in (("core", found[-1]), ("compiler_builtins", nothing)):
        flags = ["--edition=2021", "--crate-type=rlib", f"--crate-name={name}", "--target", THUMB, "-O"]
        flags += ["-Cpanic=abort", "--cap-lints=allow", "-Zforce-unstable-if-unmarked"]
        flags += ["--sysroot", root, "--out-dir", place]
        run("env", "RUSTC_BOOTSTRAP=1", DEBIAN["RUSTC"], *flags, source)
    return root


def test_a_crate_on_an_emulated_cortex_m4_costs_what_c_costs(core: Path, tmp_path: Path) -> None:
    options = Options(target="cortex-m4", wrappers=("rust",))
    folder = crate(tmp_path / "conv", options)
    user = tmp_path / "user"
    (user / "src").mkdir(parents=True)
    (user / "src" / "lib.rs").write_text(ON_BOARD)
    (user / "Cargo.toml").write_text(
        '[package]\nname = "user"\nversion = "1.0.0"\nedition = "2021"\n[lib]\ncrate-type = ["staticlib"]\n'
        f'[dependencies]\nconv = {{ path = "{folder}" }}\n'
        '[profile.release]\npanic = "abort"\nopt-level = 2\nlto = true\ncodegen-units = 1\n'
    )
    cargo(user, "build", "--release", "--target", THUMB, RUSTFLAGS=f"--sysroot {core}", **DEBIAN)
    library = tmp_path / "target" / THUMB / "release" / "libuser.a"
    in_rust = instructions(program([library], "conv_weights.o", tmp_path))
    package = compile_graph(load_proto(small_models.conv()), options, "conv")
    package.write(tmp_path / "out")
    in_c = counted(tmp_path / "out", tmp_path / "c", C, "user.c")
    print(in_rust, in_c)
    assert all(more <= less * 1.01 for more, less in zip(in_rust, in_c, strict=True)), (in_rust, in_c)
