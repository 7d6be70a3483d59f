"""Sizes that a file leaves open: what is proposed has been tried, and everything wrong is told at once."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from onnx import ModelProto, parser

from mccompile import cli
from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'
FITTING = {
    "a position table": "g (float[batch,seq,4] x, float[1,128,4] p) => (float[b,s,4] y) { y = Add(x, p) }",
    "a cache": """g (float[batch,past_len,4] past, float[batch,seq_len,4] new, float[batch,total_len,4] mask)
        => (float[b,t,4] y) { all = Concat<axis = 1>(past, new) y = Add(all, mask) }""",
    "a picture for a dense layer": """g (float[batch,1,height,width] x, float[784,3] w) => (float[b,3] y) {
        f = Flatten(x) y = MatMul(f, w) }""",
    "windows that are wide": "g (float[n,3,h,w] x) => (float[n,3,i,j] y) { y = MaxPool<kernel_shape = [50,50]>(x) }",
    "sizes without names": "g (float[?,1,?,?] x, float[784,3] w) => (float[b,3] y) { f = Flatten(x) y = MatMul(f, w) }",
    "batches that are called otherwise": "g (float[unk__1,4] x, float[unk__2,4] z) => (float[b,4] y) { y = Add(x, z) }",
    "a name that a shell would read": "g (float[batch,seq,4] x, float[1,2,4] p) => (float[b,s,4] y) { y = Add(x, p) }",
}


def model(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


def told(made: ModelProto) -> UnsupportedModel:
    with pytest.raises(UnsupportedModel) as caught:
        load_proto(made)
    return caught.value


@pytest.mark.parametrize("what", FITTING)
def test_what_is_proposed_compiles(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = model(FITTING[what])
    if "shell" in what:
        made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "seq $len's"
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())
    assert cli.run([str(path), "-o", str(tmp_path / "out")]) == 3
    fix = re.search(r"fix    add (.*) \(with sizes of your own\)", capsys.readouterr().err)
    assert fix is not None
    assert cli.run([str(path), "-o", str(tmp_path / "out"), *shlex.split(fix[1])]) == 0


def test_sums_are_sums() -> None:
    (problem,) = told(model(FITTING["a cache"])).problems
    sizes = {name: int(size) for name, size in re.findall(r"--dim (\w+)=(\d+)", problem.fix)}
    assert sizes["total_len"] == sizes["past_len"] + sizes["seq_len"] and sizes["batch"] == 1


def test_unsupported_operators_come_along() -> None:
    text = "g (float[batch,4] x) => (float[b,4] y) { a = NoSuch(x) b = Other(a) y = Relu(b) }"
    what = [problem.what for problem in told(model(text)).problems]
    assert what[0] == "free dimensions have no size" and any("NoSuch" in each for each in what[1:])


def test_what_is_wrong_at_any_size_comes_along() -> None:
    text = "g (float[batch,4] x) => (float[b,4] y) { y = LeakyRelu<alfa = 1.0>(x) }"
    sizes, wrong = told(model(text)).problems
    assert "add --dim batch=1" in sizes.fix and "'alfa'" in wrong.why


def test_sizes_that_were_not_found_are_not_made_up() -> None:
    text = "g (float[batch,seq,4] x, float[7919] p) => (float[b,s] y) { f = Flatten<axis = 0>(x) y = Add(f, p) }"
    (problem,) = told(model(text)).problems
    assert "--dim seq=SIZE" in problem.fix and "give the sizes that it was made for" in problem.fix


def test_many_inputs_of_one_dimension_are_not_listed_all() -> None:
    inputs = ", ".join(f"float[batch,4] x{n}" for n in range(30))
    names = ", ".join(f"x{n}" for n in range(30))
    (problem,) = told(model(f"g ({inputs}) => (float[b,4] y) {{ y = Sum({names}) }}")).problems
    assert problem.where == (
        "'batch' of input 'x0' and 'batch' of input 'x1' and 'batch' of input 'x2' and 27 more inputs in the model"
    )
    assert problem.fix == "add --dim batch=1 (with sizes of your own)"


def test_a_range_in_a_shape_gets_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model("g (float[n,3,h] x) => (float[n,3,h] y) { y = Relu(x) }").SerializeToString())
    assert cli.run([str(path), "-o", str(tmp_path / "out"), "--shape", "x=1..2,3,4..8"]) == 2
    fix = re.search(r"fix    write (.*)", capsys.readouterr().err)
    assert fix is not None and fix[1] == "--shape x=size0,3,size2 --dim size0=1..2,size2=4..8"
    assert cli.run([str(path), "-o", str(tmp_path / "out"), *shlex.split(fix[1])]) == 0


@pytest.mark.parametrize("asked", ["--dim n=0,h=4", "--shape x=0,3,4", "--shape x=n,3,0 --dim n=2"])
def test_sizes_that_leave_nothing_to_compute(asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model("g (float[n,3,h] x) => (float[n,3,h] y) { y = Relu(x) }").SerializeToString())
    command = [str(path), "-o", str(tmp_path / "out")]
    assert cli.run([*command, *asked.split()]) == 2
    said = capsys.readouterr().err
    assert "a size of 0 leaves nothing to compute" in said
    fixes = [found for found in re.findall(r"--(?:dim|shape) [^ ;\n]+", said) if "0.." not in found]
    others = {"h": "--dim h=4", "x": "", "n": "--dim n=2"}["h" if "h=" in asked else "n" if "n=" in asked else "x"]
    assert cli.run([*command, *shlex.split(f"{' '.join(fixes)} {others}")]) == 0


def test_a_past_of_nothing_leaves_something() -> None:
    made = model("g (float[p,3] past, float[2,3] x) => (float[t,3] y) { y = Concat<axis=0>(past, x) }")
    assert [str(value.type) for value in load_proto(made, dims={"p": (0, 0)}).outputs] == ["f32[2,3]"]
