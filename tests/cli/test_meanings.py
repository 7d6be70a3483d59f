"""What users of other tools write: each is told what, where, why, and a fix that works when it is pasted."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from mccompile import cli
from mccompile.base import meanings
from mccompile.base.needless import NEEDLESS
from mccompile.cli.commands import commands
from mccompile.cli.values import values_of
from mccompile.emit.wrappers.registry import LANGUAGES
from mccompile.frontend.supported import supported
from mccompile.imgproc.requests import functions
from mccompile.passes.learn.losses import _LOSSES
from mccompile.targets import api
from mccompile.targets.processors import named_processor
from tests.cli.test_mistakes import Mistake, files, pasted
from tests.thorough import some

__all__ = ["files"]

# Exit code, command, what is wrong, and the fix.
TABLE = """
2 | conv.onnx -o out --optimize time | --optimize | --prefer time
2 | conv.onnx -o out --optimise size | --optimise | --prefer flash
2 | conv.onnx -o out -O3 | -O | --prefer time
2 | conv.onnx -o out -Os | -O | --prefer flash
2 | check conv.onnx --runs 1 --tolerance 1e-3 | --tolerance | --rtol 1e-3
2 | conv.onnx -o out --quantise s.npz | --quantise | --quantize s.npz
2 | conv.onnx -o out --fp16 | --fp16 | --weights-dtype f16
2 | conv.onnx --output out | -o is missing | -o out
2 | conv.onnx --output-dir out | --output-dir | -o out
2 | conv.onnx out | -o is missing | -o out
2 | run conv.onnx | no command 'run' | check
2 | build conv.onnx -o out | no command 'build' | compile
2 | benchmark conv.onnx | no command 'benchmark' | bench
2 | validate conv.onnx | no command 'validate' | check
2 | info conv.onnx | no command 'info' | analyze
2 | list | no command 'list' | targets
2 | version | no command 'version' | --version
2 | conv.onnx -o out --target nucleo-h743zi | unknown target | --target cortex-m7
2 | conv.onnx -o out --target esp32s3 | Xtensa | --target generic
2 | conv.onnx -o out --target raspberrypi | unknown target | `mccompile boards raspberrypi`
2 | conv.onnx -o out --mcu stm32u575 | --mcu | --target cortex-m33
2 | conv.onnx -o out --mcu stm32wl55 | --mcu | --target cortex-m3
2 | conv.onnx -o out --mcu saml11 | --mcu | --target cortex-m23
2 | conv.onnx -o out --march native | --march | --target native
2 | conv.onnx -o out --lang rust | --lang | --wrapper rust
2 | conv.onnx -o out --format zephyr | --format | --package zephyr
2 | conv.onnx -o out --package rust --target native | unknown package | --package cargo
2 | free.onnx -o out --batch 1 | --batch | --dim batch=1
2 | free.onnx -o out --dim 1 | NAME=SIZE or NAME=LOW..HIGH | --dim batch=1
2 | free.onnx -o out --dim batch=1-8 | 'batch=1-8' | --dim batch=1..8
2 | free.onnx -o out --dim batch=8..1 | smallest size | --dim batch=1..8
2 | free.onnx -o out --dim batch=-1 | not negative | --dim batch=1
2 | free.onnx -o out --dim batch=0 | a run would do nothing | --dim batch=1
2 | free.onnx -o out --shape 1,4 | INPUT=SIZE | --shape x=1,4
2 | free.onnx -o out --input-shape x:1,4 | --input-shape | --shape x=1,4
2 | free.onnx -o out --shape x=1x4 | no commas | --shape x=1,4
4 | fits.onnx -o out --dim b=7 | do not broadcast | --dim b=1
2 | conv.onnx -o out --ram 64K | --ram | --budget ram=64K
2 | conv.onnx -o out --budget 64K | not one of the budgets | --budget ram=64K
2 | conv.onnx -o out --budget rom=64K | not one of the budgets | --budget flash=64K
2 | conv.onnx -o out --budget accuracy=99 | not one of the budgets | held to so many dB by quantize --sensitivity 30
2 | conv.onnx -o out --budget apples=64K | not one of the budgets | name one of them, such as --budget ram=96K
2 | quantize conv.onnx -o q.onnx --data s.npz --snr 35 | --snr | --sensitivity 35
2 | conv.onnx -o out --mem dtcm=64K,sram=256K | NAME=SIZE | --mem dtcm=64k --mem sram=256k
2 | conv.onnx -o out --mem dtcm:64K | NAME=SIZE | --mem dtcm=64k
2 | conv.onnx -o out --mem a=1K --mem a=2K | there twice | --mem a=1024 --mem a2=2048
4 | conv.onnx -o out --quantize named.npz | it has foo | numpy.savez
2 | quantize conv.onnx -o q.onnx --dataset s.npz | --dataset | --data s.npz
2 | quantize conv.onnx -o q.onnx --quantize s.npz | --quantize | --data s.npz
2 | quantize conv.onnx -o q.onnx s.npz | one argument too many | --data s.npz
2 | conv.onnx -o out --quantize | needs a value | samples.npz
2 | bench conv.onnx --html p.html | --html | leave out --html
2 | conv.onnx -o out --opset 12 | --opset | leave out --opset
2 | conv.onnx -o out --overwrite | --overwrite | --force
2 | conv.onnx -o out -j 2 | -j | --threads 2
2 | conv.onnx -o out --nhwc | --nhwc | --io-layout nhwc
2 | conv.onnx -o out --c++ | --c++ | --wrapper cpp
2 | conv.onnx -o out --prefer speed | cannot prefer | --prefer time
2 | conv.onnx -o out --prefer size | cannot prefer | --prefer flash
2 | conv.onnx -o out --input u8 | NAME=FORM | --input x=u8
2 | conv.onnx -o out --input x=uint8 | 'uint8' is neither an element type | u8
2 | check conv.onnx --runs 0 | not in the range | --runs 1
2 | check conv.onnx --seed abc | not a valid integer | --seed 0
2 | convert conv.onnx -o models | cannot write | -o models/result.onnx
2 | convert conv.onnx -o new/a.onnx | cannot write | mkdir -p new
2 | frontend -o f.onnx --sample-rate 16000 | --sample-rate | --rate 16000
2 | frontend -o f.onnx --n-mels 32 | --n-mels | --mels 32
2 | conv.onnx -o out --board cortex-m4 | an Armv7E-M core | --target cortex-m4
2 | conv.onnx -o out --board raspberrypi4 | Arm cores of 64 bits | --target aarch64
2 | quantize conv.onnx -o q.onnx --data s.npz --method kl | --method | --calibrate entropy
2 | quantize conv.onnx -o ints.tflite --data s.npz | .tflite is another format | -o ints.onnx
2 | convert conv.onnx -o other.pt | .pt is another format | -o other.onnx
2 | conv.onnx -o out --winograd on | --winograd | --winograd 4
2 | convert conv.onnx -o conv.tflite | .tflite is another format | -o conv.new.onnx
2 | quantize conv.onnx -o q.onnx --data s.npz --sensitivity high | not a valid float | --sensitivity 30
2 | imgproc crop -o img | no image function | did you mean roi?
2 | conv.onnx -o out --tuned | needs a value | --tuned default
2 | conv.onnx -o out --io x | is not external | --io x=external
2 | train conv.onnx -o out --loss ce | no output 'ce' | --loss cross_entropy:y
2 | train conv.onnx -o out --loss cross_entropy:logits | no output 'logits' | --loss cross_entropy:y
2 | train conv.onnx -o out --loss ce:y | no loss 'ce' | --loss cross_entropy:y
2 | train conv.onnx -o out --loss mse:y --lr 0.1 | --lr | --optimizer sgd,lr=0.1
2 | train conv.onnx -o out --loss mse:y --batch-norm yes | --batch-norm cannot be 'yes' | --batch-norm train
2 | train conv.onnx -o out --loss mse:y --batch-norm eval | --batch-norm cannot be 'eval' | --batch-norm frozen
2 | conv.onnx -o out --weights-dtype int8 | cannot be 'int8' | --quantize samples.npz
2 | conv.onnx -o out --prefer ram,time | cannot prefer | --prefer balanced
2 | conv.onnx -o out --budget "ram 64K" | not one of the budgets | --budget ram=64K
2 | conv.onnx -o out --budget "ram: 64 K" | not one of the budgets | --budget ram=64K
2 | conv.onnx -o out --auto all | --auto | leave out --auto all: `mccompile quantize` has it
2 | conv.onnx -o out --target list | unknown target | `mccompile targets`
2 | conv.onnx -o out -mcpu=cortex-m4 | no option -m | --target cortex-m4
2 | conv.onnx -o out --verbose=3 | takes no value | write --verbose without
2 | studio conv.onnx --plans 0 | --plans takes no value | leave out --plans
2 | conv.onnx --slices max=50K | --slices takes no value | write --max-slice 50K
2 | studio conv.onnx --plans 4 | --plans takes no value | write --plans without a value
2 | studio conv.onnx --measure off | --measure takes no value | write --no-measure
2 | conv.onnx -o out --keep-inputs 1 | --keep-inputs takes no value | write --keep-inputs without a value
2 | conv.onnx -o out --float-error 1% | cannot be '1%' | --float-error 0.01
2 | check conv.onnx --runs 1 --rtol 0.1% | cannot be '0.1%' | --rtol 0.001
2 | conv.onnx -o out --weights-window 64Q | is not a size | --weights-window 64K
2 | conv.onnx -o out --io all | is not external | --io external
2 | conv.onnx -o out --input x=u8,mean=abc | is not a number | --input x=u8,mean=127.5
2 | conv.onnx -o out --output y=u8,scale=1/0 | is not a number | --output y=u8,scale=1/255
2 | free.onnx -o out --dim batch=1.. | no largest size | --dim batch=1..8
2 | quantize_static conv.onnx --data s.npz -o q.onnx | no command 'quantize_static' | did you mean quantize?
2 | conv.onnx -o out.h | names the folder | did you mean -o out?
2 | conv.onnx -o out -I include | no option -I | leave out -I
2 | conv.onnx -o out --verify | no option --verify | `mccompile check` does that
2 | conv.onnx -o out --tensor-arena-size 20K | no option | --budget ram=20K
2 | conv.onnx -o out --compression high | no option | --prefer flash
2 | conv.onnx -o out --target thumbv7em-none-eabihf | unknown target | --target cortex-m4
2 | conv.onnx -o out --target thumbv8m.base-none-eabi | unknown target | --target cortex-m23
2 | conv.onnx -o out --target armv7m | unknown target | --target cortex-m3
2 | conv.onnx -o out --target aarch64-linux-gnu | unknown target | --target aarch64?
2 | check conv.onnx --runs 1 --input s.npz | is not NAME=FORM | samples are given by --data s.npz
4 | serve conv.onnx | not an output folder | `mccompile conv.onnx -o out`
2 | ops Convolution | is not supported | did you mean Conv?
2 | ops list | 'list' is not supported | `mccompile ops`
2 | boards zzzz | unknown board | `mccompile boards stm32f4`
2 | quantize conv.onnx -o q.onnx | no calibration data | --weights-only 8
2 | bench conv.onnx --iterations 100 | no option --iterations | leave out --iterations 100
2 | check conv.onnx --runs 1 --labels no.npy | no option --labels | leave out --labels no.npy
2 | quantize conv.onnx -o q.onnx --data s.npz --batch-norm yes | no option --batch-norm | leave out --batch-norm yes
2 | quantize conv.onnx -o q.onnx --data s.npz --int8 | no option --int8 | leave out --int8: --data says it
2 | quantize conv.onnx -o q.onnx --data s.npz --calibrate kld | cannot be 'kld' | --calibrate entropy
2 | --model conv.onnx -o out | no option --model | leave out --model alone: conv.onnx stands
2 | -i conv.onnx -o out | no option -i | leave out -i alone: conv.onnx stands
2 | studio conv.onnx --no-measure --open | no option --open | --html report.html
2 | kernel conv2d --x 1,8,8,4 --w 4,3,3,4 -o kernel | kind cannot be 'conv2d' | did you mean conv?
2 | conv.onnx -o out --budget "ram<=64K" | not one of the budgets | --budget ram=64K
2 | two.onnx -o out --dim N=1 | no free dimension 'N' | --dim batch=1,seq=1
2 | frontend --mels -5 -o f.onnx | cannot be -5 | --mels 40
4 | slots conv.onnx | Not a directory | `mccompile conv.onnx -o out`
4 | studio conv.onnx --no-measure --since conv.onnx | not a report | `mccompile conv.onnx -o out-conv`
3 | own.onnx -o out | your own C function can compute it | --external Foo=Foo,include=Foo.h
2 | own.onnx -o out --external Foo | OPERATOR=FUNCTION | --external Foo=Foo,include=Foo.h
2 | own.onnx -o out --external Foo=Foo,include=Foo2.h | cannot read Foo2.h | > Foo2.h
2 | conv.onnx -o out --target arm | an Arm core | --target cortex-m4
2 | conv.onnx -o out --target stm32 | unknown target | `mccompile boards stm32`
4 | conv.onnx -o out --quantize int8 | names a file of samples | numpy.savez('samples.npz', x=...)
4 | conv.onnx -o out --quantize conv.onnx | it is a model | numpy.savez('samples.npz', x=...)
2 | heard.onnx -o out --stream 10 | is not INPUT=AXIS | --stream x=2,hop=10
2 | heard.onnx -o out --stream time | is not INPUT=AXIS | --stream x=2
2 | convert conv.onnx -o c.onnx --to tflite | no option --to | leave out --to tflite: the result is always ONNX
2 | quantize conv.onnx -o q.onnx --data s.npz --format qdq | no option --format | leave out --format qdq: the result
2 | quantize conv.onnx -o q.onnx --data s.npz --per-channel | no option --per-channel | leave out --per-channel: weights
2 | quantize conv.onnx -o q.onnx --data s.npz --accuracy 99 | no option --accuracy | --sensitivity 30
2 | quantize conv.onnx -o q.onnx --data s.npz --exclude-nodes c1 | no option --exclude-nodes | --sensitivity 30
2 | tune conv.onnx --time 1s -o tuned.db | no option -o | --database tuned.db
2 | tune conv.onnx --trials 100 | no option --trials | --time 10m
2 | blob conv.onnx --for edited -o weights.bin | does not go without --from | leave out -o weights.bin: the weights in
2 | conv.onnx -o out --dtype int8 | no option --dtype | --quantize samples.npz
2 | conv.onnx -o out --no-malloc | no option --no-malloc | leave out --no-malloc: generated C never
2 | conv.onnx -o out --runtime crt | no option --runtime | leave out --runtime crt: what is written is plain C
2 | conv.onnx -o out --arena 20480 | no option --arena | --budget ram=20480
2 | conv.onnx -o out --prefix net | no option --prefix | --name net
2 | conv.onnx -o out --split-weights | no option --split-weights | --blob external
2 | conv.onnx -o out --inference-input-type uint8 | no option | --input x=u8
2 | conv.onnx -o out --input x=q15 | 'q15' is neither an element type | i16
2 | conv.onnx -o out --mem ccm@0x10000000=64K | small letters | --mem ccm=64k
2 | conv.onnx -o net.tflite | names the folder | did you mean -o net?
2 | conv.onnx -o out --wrapper python | no wrapper for 'python' | leave out --wrapper python: Python compiles
2 | conv.onnx -o out --wrapper swift | no wrapper for 'swift' | leave out --wrapper swift: every language
2 | conv.onnx -o out --target cortex-m4 -mcpu=cortex-m4 | no option -m | leave out -mcpu=cortex-m4: --target says it
2 | train conv.onnx -o out --loss mse:y --data s.npz | --data is of no use | leave out --data, or say --learn auto
2 | frontend --rate 16kHz -o f.onnx | cannot be '16kHz' | --rate 16000
2 | frontend --window 25ms -o f.onnx | cannot be '25ms' | --window 480
2 | analyze conv.onnx --csv | no option --csv | --json
2 | imgproc resize,normalize -o img | no image function 'normalize' | leave out normalize: compile the network
"""

MISTAKES = tuple(
    Mistake(command, int(code), tuple(says))
    for code, command, *says in (line.split(" | ") for line in TABLE.strip().splitlines())
)
_FITS = "g (float[b,4] x) => (float[b,4] y) <float[14,4] w={" + ",".join(["1"] * 56) + "}> { y = Add(x, w) }"


_HEARD = "g (float[1,1,32] x) => (float[1,1,30] y) <float[1,1,3] w={1,2,3}> { y = Conv(x, w) }"
_TWO = "g (float[batch,seq] x) => (float[batch,seq] y) { y = Relu(x) }"


@pytest.fixture(scope="module")
def more(files: Path) -> Path:
    import numpy as np
    from onnx import parser

    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {_FITS}')
    (files / "fits.onnx").write_bytes(made.SerializeToString())
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {_TWO}')
    (files / "two.onnx").write_bytes(made.SerializeToString())
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {_HEARD}')
    (files / "heard.onnx").write_bytes(made.SerializeToString())
    np.savez(files / "named.npz", foo=np.random.default_rng(0).random((8, 2, 6, 6), np.float32))
    return files


@some(56, "mistake", MISTAKES, ids=lambda mistake: mistake.command)
def test_what_other_tools_call_it_leads_to_ours(
    mistake: Mistake, more: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(more)
    assert cli.run(shlex.split(mistake.command)) == mistake.code
    said = capsys.readouterr().err
    assert all(f"\n  {part}" in said for part in ("where  ", "why    ", "fix    ")), said
    assert all(part in said for part in mistake.says), said
    command = pasted(mistake.command, said)
    assert command != mistake.command
    if "samples.npz" not in command and not command.startswith("$ "):
        code = cli.run(shlex.split(command))
        said = capsys.readouterr().err
        assert code == 0 or "cannot read Foo.h" in said, (command, said)


@pytest.mark.parametrize(("command", "word"), sorted(NEEDLESS))
def test_no_option_of_ours_is_called_needless(command: str, word: str) -> None:
    if command in commands.commands:
        assert not any(f"--{word}" in param.opts for param in commands.commands[command].params)
    else:
        assert command in ("", "--wrapper") and word not in LANGUAGES


@cache
def _there() -> set[str]:
    """What meanings may lead to."""
    there = set(commands.commands)
    for command in commands.commands.values():
        for param in command.params:
            there.update(param.opts)
            there.update(values_of(param))
    there |= {name.lower() for name in supported()} | {*functions()}
    return there | {"argmax", *_LOSSES, "u8", "u16", "i8", "i16", "i32", "f32", "rgb", "gray", "--markdown", "balanced"}


@pytest.mark.parametrize("word", sorted(meanings.MEANINGS))
def test_each_meaning_leads_to_what_is_there(word: str) -> None:
    assert any(ours in _there() for ours in meanings.ours(word)), word


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        (["--json", "out.json"], "--json takes no value and prints: --json > out.json"),
        (["--format", "json"], "write --json in the place of --format json"),
    ],
)
def test_json_is_a_switch(given: list[str], fix: str, more: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", str(more / "conv.onnx"), *given]) == 2
    assert f"\n  fix    {fix}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("conv.onnx --target cortexm7", "did you mean --target cortex-m7?"),
        ("con.onnx", "did you mean conv.onnx?"),
        ("deploy conv.onnx --board nucleo_f446rr", "unknown board"),
        ("conv.onnx --budget 64K", "did you mean --budget ram=64K?"),
        ("train conv.onnx -o out --target cortexm7", "did you mean --target cortex-m7?"),
    ],
)
def test_what_is_missing_hides_no_other_mistake(
    command: str, says: str, more: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(more)
    assert cli.run(shlex.split(command)) == 2
    said = capsys.readouterr().err
    assert says in said and "is missing" in said and said.count("\n  fix ") == 2


@pytest.mark.parametrize(
    "command", ["conv.onnx", "quantize conv.onnx --data s.npz", "imgproc flip", "train conv.onnx -o o"]
)
def test_what_is_missing_alone_is_told_alone(
    command: str, more: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(more)
    assert cli.run(shlex.split(command)) == 2
    said = capsys.readouterr().err
    assert said.count("error:") == 1 and "is missing" in said and "did you mean" not in said


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("p.json", '{"model": [', '{"model": [{"file"'),
        ("p.toml", "[[model]]\nmodel = 'conv.onnx'", "did you mean file?"),
    ],
)
def test_project_files_are_mended_in_their_own_form(
    name: str, text: str, fix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert cli.run([str(tmp_path / name), "-o", str(tmp_path / "out")]) in (2, 4)
    assert fix in capsys.readouterr().err


def test_boards_are_found_by_several_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["boards", "nano", "33", "ble"]) == 0
    assert "nano33ble" in capsys.readouterr().out


def test_processors_lead_to_targets() -> None:
    for name in ("cortex-m85", "cortex-a53", "x86_64", "rv32", "raspberrypi4", "jetson", "web"):
        found = named_processor(name)
        assert found is not None and found.target in api.names(), name
    assert named_processor("nativ") is None


def test_shells_complete_values() -> None:
    words = {"COMP_WORDS": "mccompile compile m.onnx --target cortex-m4,cortex-m3", "COMP_CWORD": "4"}
    asked = {**words, "_MCCOMPILE_COMPLETE": "bash_complete"}
    found = CliRunner().invoke(commands, [], env=asked, prog_name="mccompile")
    assert "plain,cortex-m4,cortex-m33" in found.output.splitlines()
