"""`mccompile train`: what it writes builds and learns, what it cannot do it refuses with what to do instead."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import onnx
import pytest

from mccompile.cli import run
from mccompile.toolchain.build import find_compiler
from tests.flash import SLOTS
from tests.python.test_trainer import network

PROGRAM = """
#include <stdio.h>
#include "net.h"
static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
int main(void)
{
    net_model m;
    float first, last = 0.0f, before, after;
    mcc_status s = net_init(&m, arena, sizeof arena, net_weights, net_weights_bytes);
    if (s != MCC_OK || net_step(&m, 0.1f) != MCC_ERR_NOT_BEGUN) return 1;
    for (int step = 0; step < 30; ++step) {
        for (int i = 0; i < 24; ++i) net_input_x(&m)[i] = (float)((i * 7 + 3) % 11) / 11.0f;
        for (int i = 0; i < 4; ++i) net_input_target(&m)[i] = i % 3;
        if (net_learn(&m) != MCC_OK) return 2;
        if (step == 0) first = net_loss(&m);
        last = net_loss(&m);
        if (net_step(&m, 0.5f) != MCC_OK) return 3;
    }
    if (!(last < 0.8f * first)) return 4;
    before = net_state_w2(&m)[0];
    if (net_forget(&m) != MCC_OK) return 5;
    after = net_state_w2(&m)[0];
    return before == after ? 6 : 0;
}
"""

# Power goes off behind each byte of a save: whatever the store does after that is lost.
POWER_CUTS = """
#include <string.h>
#include "net.h"
static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
FLASH
static uint8_t before[2][NET_SLOT_BYTES];
static int boot(net_model *m) { return net_init(m, arena, sizeof arena, net_weights, net_weights_bytes) != MCC_OK; }
int main(void)
{
    net_model m;
    long cut, old = 0, new = 0;
    memset(flash, 0xFF, sizeof flash);
    if (boot(&m) || net_load(&m, &store) != MCC_ERR_STORE) return 1;
    for (int saved = 1; saved <= 3; ++saved) {
        power = 100000;
        net_state_w2(&m)[0] = (float)saved;
        if (net_save(&m, &store) != MCC_OK) return 2;
    }
    memcpy(before, flash, sizeof flash);
    for (cut = 0; cut <= 2 * (long)NET_SLOT_BYTES; ++cut) {
        memcpy(flash, before, sizeof flash);
        net_state_w2(&m)[0] = 4.0f;
        net_state_b2(&m)[2] = 5.0f;
        power = cut;
        mcc_status s = net_save(&m, &store);
        if (boot(&m) || net_load(&m, &store) != MCC_OK) return 3;
        if (net_state_w2(&m)[0] == 3.0f && net_state_b2(&m)[2] != 5.0f && s != MCC_OK) ++old;
        else if (net_state_w2(&m)[0] == 4.0f && net_state_b2(&m)[2] == 5.0f) ++new;
        else return 4;
    }
    flash[0][70] ^= 1;
    flash[1][70] ^= 1;
    if (net_load(&m, &store) != MCC_ERR_STORE || net_state_w2(&m)[0] == 4.0f) return 5;
    return old > (long)NET_SLOT_BYTES && new > 0 ? 0 : 6;
}
""".replace("FLASH", SLOTS)


def built_and_run(out: Path, program: str) -> int:
    (out / "main.c").write_text(program)
    sources = [str(path) for path in sorted(out.glob("*.c"))]
    flags = ["-I", str(out), "-I", str(out / "runtime"), "-o", str(out / "program"), "-lm"]
    subprocess.run([*find_compiler().command, *sources, *flags], check=True)
    return subprocess.run([out / "program"], check=False).returncode


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(network(), path)
    return path


def test_a_program_learns_steps_and_forgets(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["train", str(model), "-o", str(out), "--loss", "cross_entropy:p", "--learn", "all"]) == 0
    assert "learns   w1 f32[6,8], b1 f32[8], w2 f32[8,3], b2 f32[3]" in capsys.readouterr().out
    assert built_and_run(out, PROGRAM) == 0
    assert built_and_run(out, POWER_CUTS) == 0


@pytest.mark.parametrize(
    ("words", "what", "fix"),
    [
        ("--loss mse:q", "there is no output 'q'", "did you mean --loss mse:p?"),
        ("--loss mes:p", "there is no loss 'mes'", "did you mean --loss mse:p?"),
        ("--loss p", "output 'p' is not a loss", "--loss mse:p"),
        ("--loss mse:p --learn w3", "there is no weight or layer 'w3'", "--learn all"),
        ("--loss mse:p --learn last:0", "'last:0' names no layers", "--learn last:1"),
        ("--loss mse:p --learn last:3", "there are no 3 layers that could learn", "--learn all"),
        ("--loss mse:p --optimizer sgd,lr=1,lr=2", "lr is given twice", "leave one lr= out"),
        ("--loss mse:p --optimizer sgd,lr=1e39", "lr=1e39 is not a valid lr of sgd", "leave it out"),
        (
            "--loss mse:p --optimizer momentum,nesterov=2",
            "nesterov=2 is not a valid nesterov of",
            "leave it out",
        ),
        ("--loss mse:p --optimizer adm", "there is no optimizer 'adm'", "did you mean --optimizer adam?"),
        ("--loss mse:p --optimizer sgd,momentum=0.9", "sgd has no 'momentum'", "--optimizer momentum,momentum=0.9?"),
        ("--loss mse:p --optimizer", "--optimizer needs a value", "--optimizer adam,lr=0.001"),
        ("--loss mse:p --learn", "--learn needs a value", "--learn last:1"),
        ("--loss mse:p --optimizer adam,beta=1", "adam has no 'beta'", "did you mean beta"),
        ("--loss mse:p --optimizer adam,beta1=1", "beta1=1 is not a valid beta1 of adam", "leave it out"),
        ("--loss mse:p --optimizer sgd,lr=nan", "lr=nan is not a valid lr of sgd", "leave it out"),
        ("--loss mse:p --accumulate 0", "0 batches are too few for a step", "--accumulate 1"),
        ("--loss mse:p --accumulate 2 --at-once", "--accumulate does not go with --at-once", "leave one out"),
        ("--loss mse:p --clip 1 --at-once", "--clip does not go with --at-once", "leave one out"),
        ("--loss mse:p --clip 0", "--clip 0 is not above 0", "--clip 1.0"),
        ("--loss mse:p --slices", "--slices does not go with learning", "leave out --slices"),
        ("--loss mse:p --weights-window 4K", "--weights-window does not go with learning", "leave out"),
        ("--loss mse:p --stream x=1", "--stream does not go with learning", "leave out --stream"),
    ],
)
def test_what_cannot_be_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, what: str, fix: str
) -> None:
    assert run(["train", str(model), "-o", str(tmp_path / "out"), *words.split()]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert fix in said
    assert not (tmp_path / "out").exists()


LOSS_OF_ITS_OWN = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[4, 6] x, float[4, 3] y) => (float loss, float[4, 3] p, float[4, 3] q, int64[4] c) <float[6, 3] w = {0}> {
    p = MatMul(x, w) v = MatMul(x, w2) q = Relu(v) d = Sub(p, y) rate = Mul(d, d)
    loss = ReduceMean <keepdims = 0> (rate) c = ArgMax <axis = 1, keepdims = 0> (p) }"""


def loss_of_its_own(path: Path, **renamed: str) -> Path:
    text = LOSS_OF_ITS_OWN.replace("float[6, 3] w = {0}", f"float[6, 3] w = {{{', '.join('1' * 18)}}}")
    text = text.replace("> {", f", float[6, 3] w2 = {{{', '.join('2' * 18)}}}> {{")
    for old, new in renamed.items():
        text = re.sub(rf"\b{old}\b", new, text)
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_layers_are_those_that_lead_to_the_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Values of the network may have names that learning gives to what it keeps."""
    words = ["train", str(loss_of_its_own(tmp_path / "net.onnx")), "-o", str(tmp_path / "out"), "--loss", "loss"]
    assert run(words) == 0
    assert "learns   w f32[6,3]\n" in capsys.readouterr().out
    assert run([*words, "--at-once"]) == 0


@pytest.mark.parametrize(
    ("renamed", "words", "what", "fix"),
    [
        ({}, "--loss loss --learn w2", "'w2' cannot learn", "--learn last:1"),
        ({"w": "learned"}, "--loss loss", "an input or weight is called 'learned'", "rename it in the file"),
        ({"rate": "r", "x": "rate"}, "--loss loss", "an input or weight is called 'rate'", "rename it in the file"),
        ({}, "--loss cross_entropy:c", "output 'c' has no loss", "an output of f32"),
        ({"4": "0"}, "--loss mse:p", "output 'p' has no loss", "a batch of 1 or more"),
    ],
)
def test_networks_that_cannot_learn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], renamed: dict[str, str], words: str, what: str, fix: str
) -> None:
    model = loss_of_its_own(tmp_path / "net.onnx", **renamed)
    assert run(["train", str(model), "-o", str(tmp_path / "out"), *words.split()]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert fix in said
