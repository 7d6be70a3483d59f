"""Typical mistakes: what each is told, and that the fix works: it is taken from the message, pasted, and run."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile import cli
from tests import small_models
from tests.thorough import some

FREE = "g (float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }"
STATE = "g (float[1,4] x, float[1,4] h_in) => (float[1,4] y, float[1,4] h_out) { y = Add(x, h_in) h_out = Relu(y) }"
ODD = "g (float[1,3,9,13] x) => (float[1,3,9,13] y) { y = Relu(x) }"
PICTURE = "g (float[n,3,h,w] x) => (float[n,3,h,w] y) { y = Relu(x) }"
OWN = "g (float[1,4] x) => (float[1,4] y) { y = my.Foo(x) }"


@dataclass(frozen=True)
class Mistake:
    command: str
    code: int
    says: tuple[str, ...]


# Exit code, command, what is wrong, and the fix.
TABLE = """
# commands, files and folders
2 | chek conv.onnx --runs 1 | no command 'chek' | did you mean check?
2 | Target | no command 'Target' | did you mean targets?
2 | conv.onnx | -o is missing | add -o out
4 | con.onnx -o out | cannot read con.onnx | did you mean conv.onnx?
4 | conv.onx -o out | cannot read conv.onx | did you mean conv.onnx?
4 | models -o out | it is a folder | did you mean models/net.onnx?
2 | conv.onnx -o models | mccompile did not make | such as -o models/out
2 | conv.onnx -o edited | was edited | --force
4 | net.zip -o out | a zip archive | unzip -p
4 | packed.onnx -o out | compressed by gzip | gunzip -c
# targets, layouts of files
2 | conv.onnx -o out --target cortexm4 | unknown target | did you mean --target cortex-m4?
2 | conv.onnx -o out --target native,cortex_m4 | unknown target | did you mean --target cortex-m4?
2 | opt conv.onnx --passes lower --target generic,cortex-m4 | one target is needed | did you mean --target generic?
2 | bench conv.onnx --target nativ | unknown target | did you mean --target native?
2 | conv.onnx -o out --package zepyhr | zepyhr | did you mean --package zephyr?
2 | conv.onnx -o out --package esp-idf --target cortex-m4 | cannot package code for other processors | --target rv32imc
2 | conv.onnx -o out --single-file --package zephyr | does not go with --package | leave out --single-file
2 | conv.onnx -o out --blob incbin --package zephyr | assembler | leave out --blob
2 | conv.onnx -o out --target wasm32 --blob incbin | does not work for this target | leave out --blob
2 | conv.onnx models/net.onnx -o out --single-file | takes one model | leave out --single-file
# options and their values
2 | conv.onnx -o out --prefr ram | no option --prefr | did you mean --prefer?
2 | conv.onnx -o out --prefer rma | cannot prefer 'rma' | did you mean --prefer ram?
2 | conv.onnx -o out --rows of | --rows cannot be 'of' | did you mean --rows off?
2 | conv.onnx -o out --planner pushdown | no planner | did you mean --planner push-down?
2 | conv.onnx -o out --io-layout nwhc | no layout | did you mean --io-layout nhwc?
2 | conv.onnx -o out --weights-dtype fp16 | cannot be 'fp16' | did you mean --weights-dtype f16?
2 | conv.onnx -o out --calibrate min-max | cannot be 'min-max' | did you mean --calibrate minmax?
2 | conv.onnx -o out --blob arry | cannot be 'arry' | did you mean --blob array?
2 | conv.onnx -o out --mem dtcm=64KB:0,sram | small letters | did you mean --mem dtcm=64k?
2 | conv.onnx -o out --mem sram=10G | small letters | did you mean --mem sram?
2 | conv.onnx -o out --input x=u8 --input x=nhwc | something else of 'x' | did you mean --input x=u8,nhwc?
2 | free.onnx -o out --dim batch=1 --dim batch=2 | something else of 'batch' | --dim batch=1?
2 | studio conv.onnx --no-measure --compare odd.onnx | no option --compare | leave out --compare alone
2 | conv.onnx -o out --input x:nhwc | has no = | did you mean --input x=nhwc?
2 | conv.onnx -o out --input xx=nhwc | the model has 'x' | did you mean x?
2 | conv.onnx -o out --input xx=u8 | where  --input xx=... | did you mean x?
2 | conv.onnx -o out --blob flash | --blob cannot be 'flash' | did you mean --blob array?
2 | conv.onnx -o out --recompute 2x | not a valid | did you mean --recompute 2?
2 | conv.onnx -o out --mem DTCM=64k | small letters | did you mean --mem dtcm=64k?
2 | conv.onnx -o out --threads 0 | cannot be 0 threads | did you mean --threads 1?
2 | conv.onnx -o out --threads two | not a valid integer | such as --threads 2
2 | conv.onnx -o out --float-error 0 | not above 0 and at most 1 | --float-error 1e-6
2 | conv.onnx -o out --float-error 2 | not above 0 and at most 1 | --float-error 1e-6
2 | conv.onnx -o out --float-error -1 | not above 0 and at most 1 | --float-error 1e-6
2 | conv.onnx -o out --float-error small | not a valid float | such as --float-error 1e-6
2 | conv.onnx -o out --blob external --weights-section .x | not go with --blob | leave out --weights-section
# passes, kernels, operators
2 | conv.onnx -o out --without fuse_pads | no pass 'fuse_pads' | did you mean --without fuse_pad?
2 | conv.onnx -o out --without gemm/f32_rows_tile_vec | no kernel | --without gemm/f32_rows_tile__vec?
2 | conv.onnx -o out --print-after fuze | no pass 'fuze' | did you mean --print-after fuse?
2 | opt conv.onnx --passes fold_constant | cannot run pass | did you mean fold_constants?
2 | opt conv.onnx --passes fuse | cannot run pass 'fuse' on a graph | did you mean lower,fuse?
2 | ops Conf | 'Conf' is not supported | did you mean Conv?
# sizes, inputs and outputs
3 | free.onnx -o out | free dimensions have no size | add --dim batch=1
2 | free.onnx -o out --dim batsh=1 | no free dimension 'batsh' | did you mean batch?
2 | free.onnx -o out --dim batch | is not NAME=SIZE | did you mean --dim batch=1?
2 | conv.onnx -o out --dim batch=1 | no free dimension | leave out --dim batch=1
2 | conv.onnx -o out --shape x=2,2,6,6 | does not fit the model | leave out --shape
2 | conv.onnx -o out --shape X=1,2,6,6 | no input 'X' | did you mean x?
2 | conv.onnx -o out --bound y=3 | nothing is bounded | leave out --bound
2 | conv.onnx -o out --observe rr1 | no tensor 'rr1' | did you mean --observe r1?
2 | conv.onnx -o out --io xx=external | no input or output 'xx' | did you mean x?
2 | conv.onnx -o out --input x=u8,nwhc | 'nwhc' is neither an element type | did you mean nhwc?
2 | conv.onnx -o out --output y=argmx | 'argmx' is neither an element type | did you mean argmax?
2 | state.onnx -o out --state h_ou=h_in | no output 'h_ou' | --state h_out=h_in
2 | state.onnx -o out --state h_in=h_out | an input and 'h_out' an output | --state h_out=h_in
2 | odd.onnx -o out --input x=nv21 | no frames of 13x9 | did you mean nv21,resize=bilinear:14x10?
2 | odd.onnx -o out --input x=yuyv,resize=nearest:15x9 | no frames of 15x9 | did you mean nearest:16x9?
2 | picture.onnx -o out --dim n=1 --dim h=2..9 --dim w=8 --input x=rgb | one picture | one value
2 | conv.onnx -o out --input x=rgb | one picture of 1 or 3 channels | leave out --input
# image functions
2 | imgproc rotete -o img1 | no image function 'rotete' | did you mean rotate?
2 | imgproc rotate=91 -o img2 | rotate cannot be '91' | did you mean 90?
2 | imgproc flip --size 0x9 -o img3 | no picture of 0x9 | did you mean --size 1x9?
2 | imgproc flip --size 320 -o img4 | not a width and height | did you mean --size 320x240?
2 | imgproc flip --channels 5 -o img5 | cannot have 5 channels | did you mean --channels 4?
2 | imgproc cvt_color=yuv2rgb_nv21 --size 9x8 -o img6 | no frames of 9x8 | did you mean --size 10x8?
2 | imgproc cvt_color=yuv2rgb_nv21 --dtype f32 -o img7 | cannot be f32 | leave out --dtype
2 | imgproc flip --to 9x9 -o img8 | means nothing | leave out --to
2 | imgproc warp_affine --fraction 6 -o img9 | cannot have 6 bits | did you mean --fraction 5?
# budgets, checking and quantizing
2 | conv.onnx -o out --budget falsh=64K | 'falsh=64K' is not one of | did you mean --budget flash=64K?
1 | conv.onnx -o out --budget weights=10 | over the budget | --budget weights=
2 | check conv.onnx --runs 1 --cc gccc | not an executable | did you mean --cc gcc?
2 | check conv.onnx --runs 1 --cc icx-none | not an executable | leave out --cc
2 | check conv.onnx --runs 1 --quantize s.npz | does not go with check | leave out --quantize
2 | quantize conv.onnx -o q.onnx | no calibration data | add --weights-only 8
2 | quantize conv.onnx -o q.onnx --weights-only 5 | cannot have 5 bits | did you mean --weights-only 8?
2 | quantize conv.onnx -o q.onnx --weights-only 8 --dynamic | exclude each other | leave out --dynamic
2 | quantize conv.onnx --data s.npz -o q.onnx --weights int3 | cannot be 'int3' | did you mean --weights int8?
2 | quantize conv.onnx -o q.onnx --dynamic --symmetric | is for int8 activations | leave out --symmetric
2 | quantize conv.onnx -o q.onnx --weights-only 8 --calibrate entropy | is for int8 activations | leave out --calibrate
2 | quantize conv.onnx -o q.onnx --weights int4 --dynamic | is for int8 activations | leave out --weights
2 | quantize conv.onnx --weights-only 8 -o conv.onnx | would be lost | did you mean -o conv.new.onnx?
1 | conv.onnx -o out --budget ram=100 | over the budget | --budget ram=
2 | analyze conv.onnx --html conv.onnx | would be lost | did you mean --html conv.new.onnx?
1 | check conv.onnx --runs 1 --budget flash=1000 | over the budget | --budget flash=
1 | analyze conv.onnx --budget stack=8 | over the budget | --budget stack=
4 | conv.onnx -o out --quantize ss.npz | cannot read the samples | did you mean s.npz?
"""


def mistakes() -> Iterator[Mistake]:
    for line in TABLE.strip().splitlines():
        if not line.startswith("#"):
            code, command, *says = line.split(" | ")
            yield Mistake(command, int(code), tuple(says))


MISTAKES = tuple(mistakes())


def pasted(command: str, said: str) -> str:
    """The command that the message leads to; `$` stands before one of a shell."""
    lines = [line.strip().removeprefix("fix").strip() for line in said.partition("\n  fix")[2].splitlines()]
    fix = " ".join(lines)
    words = shlex.split(command)
    if found := re.search(r"leave out (--?[\w-]+) alone", fix):
        words.remove(found[1])
    elif found := re.search(r"leave out (--[\w-]+)", fix):
        at = next(n for n, word in enumerate(words) if word == found[1])
        has_value = at + 1 < len(words) and not words[at + 1].startswith("-") and found[1] != "--single-file"
        del words[at : at + 1 + (has_value and found[1] != "--dynamic")]
    elif found := re.search(r"there is no command .*did you mean ([^\s?]+)", said, re.DOTALL):
        words[0] = found[1]
    elif found := re.search(r"(?:did you mean|such as) ((--?\S+) ([^?]+))", fix):
        wrong = re.search(r"there is no option (\S+)|where  (--\w+)$", said, re.MULTILINE)
        flag = found[2] if found[2] in words else (wrong[1] or wrong[2]) if wrong else ""
        at = next((n for n, word in enumerate(words) if flag and word.startswith(flag)), None)
        if at is None:  # a value that stands alone, or behind what means something else, or nothing at all
            end = words.index(found[3]) + 1 if found[3] in words else len(words)
            words[end - 1 - (words[end - 2] == "--output") : end] = shlex.split(found[1])
        elif words.count(flag) > 1:
            words = [*words[:at], *shlex.split(found[1])]
        else:
            alone = at + 1 == len(words) or re.match(r"-\D", words[at + 1]) or words[at] != flag
            alone = bool(alone)
            words[at : at + 2 - alone] = shlex.split(found[1])
    elif found := re.search(r"did you mean (--?[^\s?]+)\?", fix):
        wrong = re.search(r"there is no option (\S+)", said)
        assert wrong is not None
        words = [found[1] if word == wrong[1] else word for word in words]
    elif found := re.search(r"did you mean ([^\s?]+)", fix):
        parts = [(n, part) for n, word in enumerate(words) for part in re.split(r"([=,])", word)]
        n, part = max(parts, key=lambda each: SequenceMatcher(None, each[1].lower(), found[1].lower()).ratio())
        words[n] = words[n].replace(part, found[1], 1)
    elif found := re.search(r"(?:add|allow it:|overwrite it with) (--?[^(]+)", lines[0]):
        words += shlex.split(found[1])
    elif found := re.search(r"`mccompile ([^`]+)`", fix):
        return found[1]
    else:
        return f"$ {fix}"
    return shlex.join(words)


def _renamed(model: ModelProto, weight: str, name: str) -> bytes:
    for node in model.graph.node:
        node.input[:] = [name if each == weight else each for each in node.input]
    next(each for each in model.graph.initializer if each.name == weight).name = name
    return bytes(model.SerializeToString())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    conv = small_models.save(small_models.conv(), folder)
    for name, text in (("free", FREE), ("state", STATE), ("own", OWN), ("odd", ODD), ("picture", PICTURE)):
        made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17, "my" : 1]> {text}')
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString())
    (folder / "named.onnx").write_bytes(_renamed(small_models.conv(), "w1", "front.conv1.weight"))
    (folder / "models").mkdir()
    (folder / "models" / "net.onnx").write_bytes(conv.read_bytes())
    with zipfile.ZipFile(folder / "net.zip", "w") as archive:
        archive.write(conv, "net.onnx")
    (folder / "packed.onnx").write_bytes(gzip.compress(conv.read_bytes()))
    np.savez(folder / "s.npz", x=np.random.default_rng(0).random((8, 2, 6, 6), np.float32))
    (folder / "gone.onnx").symlink_to("nowhere.onnx")
    (folder / "net.py").write_text("import torch\n")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    (folder / "cut.npz").write_bytes((folder / "s.npz").read_bytes()[:900])
    (folder / "cut.gguf").write_bytes(b"GGUF\x03")
    np.savez(folder / "conv.npz", x=np.zeros((8, 2, 6, 6), np.float32))
    np.savez(folder / "other.npz", photo=np.zeros((8, 3, 5, 5), np.float32))
    np.savez(folder / "turned.npz", x=np.zeros((8, 6, 6, 2), np.float32))
    np.savez(folder / "flat.npz", x=np.zeros((8, 72), np.float32))
    assert cli.run([str(conv), "-o", str(folder / "edited")]) == 0
    with (folder / "edited" / "conv.c").open("a") as edited:
        edited.write("/* mine */\n")
    return folder


@some(32, "mistake", MISTAKES, ids=lambda mistake: mistake.command)
def test_the_fix_of_a_mistake_works(
    mistake: Mistake, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert cli.run(shlex.split(mistake.command)) == mistake.code
    said = capsys.readouterr().err
    assert "Traceback" not in said and all(part in said for part in mistake.says), said
    command = pasted(mistake.command, said)
    assert command != mistake.command
    if command.startswith("$ "):
        subprocess.run(["bash", "-c", command[2:]], check=True)
        made = re.search(r"> (\S+)", command)
        assert made is not None
        command = f"{made[1]} -o out"
    assert cli.run(shlex.split(command)) == 0, (command, capsys.readouterr().err)


@pytest.mark.parametrize("tool", ["arm-none-eabi-gcc", "qemu-system-arm"])
def test_the_packages_of_a_missing_tool_bring_it(
    tool: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fix is pasted to a shell whose apt-get links the tool that is there."""
    found = {name: shutil.which(name) for name in ("arm-none-eabi-gcc", "qemu-system-arm")}
    if not all(found.values()):
        pytest.skip("needs a cross-compiler and its emulator")
    for name in ("arm-none-eabi-gcc", "qemu-system-arm", "gcc", "cc", "as", "ld"):
        if name != tool and (there := shutil.which(name)):
            (tmp_path / name).symlink_to(there)
    package = {"arm-none-eabi-gcc": "gcc-arm-none-eabi"}.get(tool, tool)
    apt = tmp_path / "apt-get"
    apt.write_text(f'#!/bin/bash\n[[ " $* " == *" {package} "* ]] && /bin/ln -s {found[tool]} {tmp_path / tool}\n')
    apt.chmod(0o755)
    monkeypatch.chdir(files)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.run(["check", "conv.onnx", "--target", "cortex-m4", "--runs", "1"]) == 2
    said = capsys.readouterr().err
    assert f"{tool} not found" in said
    subprocess.run(["/bin/bash", "-c", said.partition("Debian: ")[2]], check=True)
    assert cli.run(["check", "conv.onnx", "--target", "cortex-m4", "--runs", "1"]) == 0


def test_there_are_forty() -> None:
    assert len({mistake.command for mistake in MISTAKES}) >= 40


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        ("conv.onnx -o out --input x=1x1x8x8", "did you mean --shape x=1,1,8,8?"),
        ("check edited --runs 1", "did you mean conv.onnx?"),
        (". -o out", "error: . is not an ONNX model"),
        ("/ -o out", "name an ONNX file"),
        ("conv.onnx -o out --board nucleo_f44re", "did you mean --board nucleo_f446re?"),
        ("conv.onnx -o out --board nucleof446", "did you mean --board nucleo_f446"),
        ("llm cut.gguf -o out", "copy or download it again"),
        ("quantize conv.onnx --data cut.npz -o q.onnx", "store or copy it again"),
        ("quantize odd.onnx --weights-only 8 -o q.onnx", "compile it as it is"),
        ("firmware -o conv.onnx", "mccompile conv.onnx -o firmware"),
        ("diff conv.onnx models/net.onnx", "-o models/out-net && mccompile diff out-conv models/out-net"),
        ("conv.onnx -o out --dims batch=1", "did you mean --dim batch=1?"),
        ("conv.onnx conv.onnx -o out", "name conv.onnx once"),
        ("net.py -o out", "torch.onnx.export(model.eval(), (torch.zeros(1, 3, 224, 224),), 'net.onnx')"),
        ("table.csv -o out", "samples follow it: --data table.csv"),
        ("gone.onnx -o out", "name an ONNX file that exists"),
        ("diff conv.onnx", "mccompile conv.onnx -o out-conv && mccompile diff BEFORE out-conv"),
        ("doctor conv.onnx", "leave out conv.onnx"),
        ("doctor cortexm4", "did you mean mccompile doctor cortex-m4?"),
        ("--versoin", "did you mean --version?"),
        ("opt conv.onnx -p fuse_pad", "did you mean --passes fuse_pad?"),
        ("conv.onnx conv.npz -o out", "samples follow it: --data conv.npz"),
        ("studio conv.onnx --no-measure --since s.npz -o p.html", "name the folder of the earlier build: --since"),
        ("check conv.onnx --runs 1 --data other.npz", "they are samples of another model: give some of x, each [1"),
        ("ops --list", "leave out --list: without a name, it lists all"),
        ("s.npz -o out", "name the ONNX model in its place; samples follow it: --data s.npz"),
        ("diff edited s.npz", "samples follow them: --data SAMPLES"),
        ("llm gpt2 -o out", "snapshot_download('gpt2', local_dir='gpt2')"),
        ("free.onnx -o out --shape x=1,5", "did you mean --shape x=1,4?"),
        ("free.onnx -o out --dim batch=a,other=1", "did you mean --dim batch=1,other=1?"),
        ("check conv.onnx --runs 1 --rtol -1", "did you mean --rtol 0?"),
        ("check conv.onnx --runs 1 --rtol -1", "--rtol cannot be '-1'"),
        ("quantize conv.onnx --data conv.onnx -o q.onnx", "then give samples.npz instead"),
        pytest.param(
            "check conv.onnx --runs 1 --target cortex-m4 --cc gcc",
            "leave out --cc",
            marks=pytest.mark.skipif(
                shutil.which("qemu-system-arm") is None,
                reason="without the emulator, check says how to install it first",
            ),
        ),
        ("quantize conv.onnx --data turned.npz -o q.onnx", "a['x'] = a['x'].transpose(0, 3, 1, 2)"),
        ("quantize conv.onnx --data flat.npz -o q.onnx", "a['x'] = a['x'].reshape(-1, 2, 6, 6)"),
        ("conv.onnx -o out --budget ram=64K --budget time=9", "did you mean --budget instructions="),
        ("train conv.onnx -o out", "add --loss cross_entropy:y"),
        ("bench conv.onnx --iterations 9", "leave out --iterations 9: it runs as often as the figures need"),
        ("serve edited --port 9", "leave out --port 9: the board's program brings its own serial line"),
        ("frontend --style mfcc -o f.onnx", "write --mfcc in the place of --style"),
        ("frontend --style own -o f.onnx", "such as --style plain"),
        ("conv.onnx -o out --stream x=3,hop=0", "did you mean --stream x=3,hop=1?"),
        ("diff edited editde", "did you mean edited?"),
        ("diff edited edited/report.jsn", "did you mean edited/report.json?"),
        ("check conv.onnx --runs 1 --golden edited", "did you mean --golden golden-edited?"),
        ("studio conv.onnx --no-measure --float odd.onnx", "or leave out --float odd.onnx"),
        ("studio conv.onnx --no-measure --data s.npz -o p.html", "or leave out --data s.npz"),
        ("train named.onnx -o out --loss mse:y --learn conv1", "did you mean --learn front.conv1.weight?"),
    ],
)
def test_the_fix_says_what_was_meant(
    command: str, fix: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert cli.run(shlex.split(command)) != 0
    assert fix in capsys.readouterr().err
