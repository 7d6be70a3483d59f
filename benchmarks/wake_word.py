"""Does a network of microWakeWord wake on its word? Spoken by synthesizers, pushed to an emulated board.

    python -m benchmarks.wake_word okay_nabu.tflite --say "okay nabu" --say "turn on the lights"

Needs `flite` or `espeak-ng`. microWakeWord's front end is in the same push, and states go on from push to push; the
same code runs on this machine and on the board's emulated core, and both have to say the same. The
figure is what microWakeWord compares with its cutoff: the highest mean of five scores that follow each other.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import tempfile
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np
import onnx

from mccompile.cli import run
from mccompile.measure.board import runnable
from mccompile.measure.runs import Runs
from mccompile.targets.api import load
from mccompile.targets.boards.catalogue import find
from mccompile.toolchain.emulate import Emulated
from mccompile.toolchain.run import Model
from mccompile.toolchain.tools import missing

RATE, HOP, WINDOW = 16000, 160, 5
BEFORE, BEHIND = 2.0, 0.7  # seconds of quiet
LOUDEST, QUIET = 16000, 20.0  # of int16; the second is the deviation of the noise
VOICES = {
    "flite rms": ("flite", "-voice", "rms", "-t", "{text}", "-o", "{file}"),
    "flite slt": ("flite", "-voice", "slt", "-t", "{text}", "-o", "{file}"),
    "flite awb": ("flite", "-voice", "awb", "-t", "{text}", "-o", "{file}"),
    "espeak-ng en-us": ("espeak-ng", "-v", "en-us", "-w", "{file}", "{text}"),
    "espeak-ng en-gb": ("espeak-ng", "-v", "en-gb", "-w", "{file}", "{text}"),
}


def voices() -> list[str]:
    """Those whose program is here."""
    return [voice for voice, words in VOICES.items() if not missing([words[0]])]


def spoken(voice: str, text: str) -> np.ndarray:
    """Samples, with quiet around them."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "said.wav"))
        subprocess.run([word.format(text=text, file=file) for word in VOICES[voice]], check=True, capture_output=True)
        with wave.open(file) as opened:
            said = np.frombuffer(opened.readframes(opened.getnframes()), "<i2").astype(np.float64)
            said = at_rate(said, opened.getframerate())
    said *= LOUDEST / max(1.0, float(np.abs(said).max()))
    whole = np.concatenate([np.zeros(int(BEFORE * RATE)), said, np.zeros(int(BEHIND * RATE))])
    whole += np.random.default_rng(0).normal(0.0, QUIET, len(whole))
    return np.clip(np.round(whole), -32768, 32767).astype(np.int16)


def at_rate(samples: np.ndarray, rate: int) -> np.ndarray:
    """At 16 kHz: a windowed sinc of 64 samples."""
    if rate == RATE:
        return samples
    cutoff, half = 0.95 * min(1.0, RATE / rate), 32
    places = np.arange(len(samples) * RATE // rate) * rate / RATE
    near = np.floor(places).astype(np.int64)[:, None] + np.arange(-half, half + 1)
    away = places[:, None] - near
    weights = cutoff * np.sinc(cutoff * away) * np.cos(np.pi * away / (2 * half + 2)) ** 2
    return np.asarray((weights * np.pad(samples, half)[np.clip(near + half, 0, len(samples) + 2 * half - 1)]).sum(1))


def compiled(network: Path, board: str, folder: Path) -> Path:
    """The network on samples, behind its front end."""
    features, out = folder / "features.onnx", folder / "out"
    _run("frontend", "-o", features, "--for", network, "--style", "microfrontend", "--hop", HOP)
    frames = onnx.load(features).graph.output[0].type.tensor_type.shape.dim[1].dim_value
    options = ["--prepend", features, "--stream", f"samples=1,hop={frames * HOP},edge=warm"]
    _run("compile", network, "-o", out, "--board", board, *options)
    return out


def _run(*words: object) -> None:
    with redirect_stdout(io.StringIO()):
        if run([str(word) for word in words]) != 0:
            raise SystemExit(f"mccompile {words[0]} failed")


def scores(model: Model | Emulated, samples: np.ndarray) -> np.ndarray:
    """Of each push, from 0 to 1."""
    (given,), (made,) = model.report.inputs, model.report.outputs
    runs, hop = Runs(model), given.static_shape[-1]
    pushes = samples[: len(samples) // hop * hop].reshape(-1, *given.static_shape)
    return np.array([runs({given.name: frames})[made.name].ravel()[0] for frames in pushes]) / 256


@contextmanager
def running(network: Path, board: str, emulate: bool) -> Iterator[list[Model | Emulated]]:
    """The board's code on this machine, and on its emulated core."""
    with tempfile.TemporaryDirectory() as scratch:
        out = compiled(network, board, Path(scratch))
        here, why = runnable(out, json.loads((out / "report.json").read_text(encoding="utf-8")))
        if not isinstance(here, Model):
            raise SystemExit(f"the same code does not run here: {why}")
        yield [here, *([Emulated.build(out, load(find(board).core.target))] if emulate else [])]


def heard(models: Sequence[Model | Emulated], samples: np.ndarray) -> float:
    """The highest mean of scores that follow each other, which all of them say."""
    first, *others = (scores(model, samples) for model in models)
    if any(not np.array_equal(first, other) for other in others):
        raise SystemExit("the emulated core says something else than the same code does on this machine")
    return float(np.convolve(first, np.ones(WINDOW) / WINDOW, "valid").max())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wake_word", description=__doc__)
    parser.add_argument("network", type=Path)
    parser.add_argument("--say", action="append", help="may be given several times")
    parser.add_argument("--voice", action="append", choices=voices(), help="may be given several times")
    parser.add_argument("--board", default="nucleo_f446re")
    parser.add_argument("--here", action="store_true", help="only on this machine, which is quicker")
    asked = parser.parse_args()
    by = asked.voice or voices()
    if not by:
        raise SystemExit("install flite or espeak-ng")
    print(f"{'':28}", *(f"{voice:>16}" for voice in by), flush=True)
    with running(asked.network, asked.board, not asked.here) as models:
        for text in asked.say or ["okay nabu"]:
            print(f"{text:28}", *(f"{heard(models, spoken(voice, text)):16.2f}" for voice in by), flush=True)


if __name__ == "__main__":
    main()
