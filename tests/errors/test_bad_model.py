"""What a user is told of a model that cannot be read or compiled: the whole text, and the exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from onnx import parser

from mccompile.base.errors import BadFile, MccError, UnsupportedModel, WrongUse
from mccompile.frontend.load import load, load_proto

HEAD = '<ir_version: 9, opset_import: ["" : 17, "my" : 1]>\n'


def told(error: type[MccError], text: str, **options: dict[str, tuple[int, ...]]) -> str:
    model = parser.parse_model(HEAD + text)
    for dim in (dim for entry in model.graph.input for dim in entry.type.tensor_type.shape.dim):
        if dim.dim_param == "unnamed":  # how exporters write it, and old parsers do not
            dim.dim_param = "?"
    with pytest.raises(error) as caught:
        load_proto(model, name="net.onnx", **options)
    return str(caught.value)


def expected(text: str) -> str:
    return re.sub(r"(?m)^ {8}", "", text).strip("\n").rstrip()


def wrong(operator: str, why: str, fix: str = "correct the model, or export it again", node: str = "n1") -> str:
    return f"""
        error: invalid {operator} node
          where  node "{node}" ({operator}, opset 17) in net.onnx
          why    {why}
          fix    {fix}
        """


CASES = {
    "an unknown operator, and one of an unknown domain": (
        UnsupportedModel,
        """g (float[4] x) => (float[4] y) {
            [r1] a = Rellu(x)
            [r2] b = Rellu(a)
            [f] y = my.Foo(b)
        }""",
        """
        error: unsupported operator Rellu
          where  node "r1" (Rellu, opset 17) in net.onnx
                 node "r2" (Rellu, opset 17) in net.onnx
          why    ONNX has no such operator
          fix    did you mean Relu or PRelu?
        error: unsupported operator my.Foo
          where  node "f" (my.Foo, opset 1) in net.onnx
          why    mccompile has no operator Foo of domain 'my'; your own C function can compute it
          fix    write the function, then add --external Foo=Foo,include=Foo.h
                 printf '%s\\n' '#include "mcc_external.h"' 'static void Foo(const mcc_external *call)' '{' '#error \
write call->results[0].data, computed of call->operands[0].data and its shape' '}' > Foo.h
        """,
    ),
    "a cycle": (
        BadFile,
        """g (float[4] x) => (float[4] y) {
            [n1] a = Add(x, c)
            [n2] b = Relu(a)
            [n3] c = Neg(b)
            [n4] y = Relu(c)
        }""",
        """
        error: the graph has a cycle
          where  3 nodes in net.onnx
          why    these nodes form a cycle: n2 -> n3 -> n1 -> n2
          fix    a loop has to be written with the operators Loop or Scan
        """,
    ),
    "a value that nothing makes": (
        BadFile,
        "g (float[4] image) => (float[4] y) { [n1] y = Relu(imag) }",
        """
        error: a value is missing
          where  node "n1" (Relu, opset 17) in net.onnx
          why    it reads 'imag', which nothing makes
          fix    did you mean image?
        """,
    ),
    "an output that nothing makes": (
        BadFile,
        "g (float[4] x) => (float[4] scores) { [n1] y = Relu(x) }",
        """
        error: a value is missing
          where  output 'scores' of graph 'g' in net.onnx
          why    nothing makes it
          fix    correct the model, or export it again
        """,
    ),
    "a value made twice": (
        BadFile,
        """g (float[4] x) => (float[4] y) {
            [n1] y = Relu(x)
            [n2] y = Neg(x)
        }""",
        wrong("Neg", "it makes 'y', which something else makes too", "give each value a name of its own", node="n2"),
    ),
    "a type the operator does not take": (
        BadFile,
        "g (int32[4] x) => (int32[4] y) { [n1] y = Sin(x) }",
        wrong("Sin", "operand 0 (input) is i32[4]; Sin takes f16, f32, f64 there", "insert a Cast"),
    ),
    "operands of different types": (
        BadFile,
        "g (float[4] x, double[4] z) => (float[4] y) { [n1] y = Add(x, z) }",
        wrong("Add", "operand 0 (A) is f32 but operand 1 (B) is f64; they must be of one type", "insert a Cast"),
    ),
    "shapes that do not fit": (
        BadFile,
        "g (float[1,4] x, float[1,5] z) => (float[1,4] y) { [n1] y = Add(x, z) }",
        wrong("Add", "shapes 1x4, 1x5 do not broadcast"),
    ),
    "an output of another type than declared": (
        BadFile,
        "g (float[1,4] x) => (int32[1,4] y) { [n1] y = Relu(x) }",
        """
        error: an output contradicts its declaration
          where  output 'y' in net.onnx
          why    it is declared as i32, but its node makes f32[1,4]
          fix    export it again
        """,
    ),
    "an attribute that does not exist": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = LeakyRelu <alfa = 0.5> (x) }",
        wrong("LeakyRelu", "LeakyRelu has no attribute 'alfa' at this opset", "did you mean alpha?"),
    ),
    "an attribute of another type": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = LeakyRelu <alpha = 1> (x) }",
        wrong("LeakyRelu", "attribute 'alpha' is of type INT, it must be FLOAT"),
    ),
    "an attribute that is missing": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = Cast(x) }",
        wrong("Cast", "attribute 'to' is missing"),
    ),
    "too many operands": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = Relu(x, x) }",
        wrong("Relu", "it has 2 operands, Relu takes 1"),
    ),
    "an operator that is newer than the opset": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = Gelu(x) }",
        wrong(
            "Gelu",
            "Gelu exists from opset 20 on, the model says it uses opset 17",
            "export the model with a newer opset",
        ),
    ),
    "an operator that ONNX took out": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = Upsample(x, x) }",
        wrong(
            "Upsample",
            "ONNX took Upsample out in opset 10",
            "export the model with an older opset, or convert it with onnx.version_converter",
        ),
    ),
    "a domain without a version": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] y = com.maker.Thing(x) }",
        """
        error: invalid com.maker.Thing node
          where  node "n1" (com.maker.Thing) in net.onnx
          why    the model does not say its version of domain 'com.maker'; it names 'ai.onnx', 'my'
          fix    correct the model, or export it again
        """,
    ),
    "complex numbers": (
        UnsupportedModel,
        "g (complex64[4] x) => (complex64[4] y) { [n1] y = Identity(x) }",
        """
        error: unsupported input
          where  input 'x' in net.onnx
          why    its elements are complex numbers, which are not supported
          fix    change the model to do without it
        """,
    ),
    "a sequence": (
        UnsupportedModel,
        "g (seq(float[4]) x) => (float[4] y) { [n1] y = ConcatFromSequence <axis = 0> (x) }",
        """
        error: free dimensions have no size
          where  sequence 'x' in net.onnx
          why    memory is planned at compile time, so every size must be known
          fix    add --bound x=10 (with sizes of your own)
        """,
    ),
    "a sequence where a tensor belongs": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] s = SequenceConstruct(x) [n2] y = Relu(s) }",
        wrong("Relu", "operand 0 is a sequence of 1 tensors of f32, Relu takes tensors", node="n2"),
    ),
    "a position outside of a sequence": (
        BadFile,
        "g (float[4] x) => (float[4] y) { [n1] s = SequenceConstruct(x) [c] p = Constant<value_int: int=1>()"
        " [n2] y = SequenceAt(s, p) }",
        wrong("SequenceAt", "position 1 is outside of a sequence of 1 elements", node="n2"),
    ),
    "a sequence that grows without bound": (
        UnsupportedModel,
        """g (float[4] x, int64 n, bool c) => (seq(float[4]) y) {
        [e] e = SequenceEmpty()
        [l] y = Loop (n, c, e) <body = b (int64 i, bool ci, seq(float[4]) s) => (bool co, seq(float[4]) t) {
        co = Identity(ci) t = SequenceInsert(s, x) }> }""",
        """
        error: unsupported operator Loop
          where  node "l" (Loop, opset 17) in net.onnx
          why    it carries a sequence that grows, and how many trips there are is known only at run time
          fix    say how many elements the sequence has at most: --bound y=100
        """,
    ),
    "free dimensions": (
        UnsupportedModel,
        "g (float[batch,3,?] x, float[batch,time] z) => (float[batch,time] y) { [n1] y = Relu(z) }",
        """
        error: free dimensions have no size
          where  'batch' of input 'x' and 'batch' of input 'z' in net.onnx
                 input 'x' in net.onnx
                 'time' of input 'z' in net.onnx
          why    memory is planned at compile time, so every size must be known
          fix    add --dim batch=1 --dim time=16 --shape x=1,3,16 (with sizes of your own)
        """,
    ),
    "sizes that a file gives no names": (
        UnsupportedModel,
        "g (float[unnamed,3,unnamed,unnamed] x) => (float[a,3,b,c] y) { [n1] y = Relu(x) }",
        """
        error: free dimensions have no size
          where  input 'x' in net.onnx
          why    memory is planned at compile time, so every size must be known
          fix    add --shape x=1,3,224,224 (with sizes of your own)
        """,
    ),
    "a function that calls itself": (
        BadFile,
        """g (float[4] x) => (float[4] y) { [n1] y = my.F(x) }
        <domain: "my", opset_import: ["" : 17, "my" : 1]>
        F (a) => (b) { b = my.F(a) }""",
        """
        error: invalid my.F node
          where  node "n1" (my.F, opset 1) in net.onnx
          why    function F calls itself: F -> F
          fix    correct the model, or export it again
        """,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_model_is_refused_with(case: str) -> None:
    error, model, text = CASES[case]
    assert told(error, model) == expected(text)


def test_a_long_list_of_nodes_is_cut() -> None:
    nodes = "\n".join(f"[n{i}] v{i} = Rellu(x)" for i in range(30))
    text = told(UnsupportedModel, f"g (float[4] x) => (float[4] v0) {{ {nodes} }}")
    assert text.count("node ") == 8
    assert "and 22 more" in text


def test_a_dim_that_the_model_does_not_have() -> None:
    text = told(WrongUse, "g (float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }", dims={"bach": (1, 1)})
    assert text == expected(
        """
        error: there is no free dimension 'bach'
          where  --dim bach=1
          why    those of net.onnx are batch
          fix    did you mean batch?
        """
    )


def test_a_shape_for_an_input_that_the_model_does_not_have() -> None:
    text = told(WrongUse, "g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }", shapes={"X": (1, 4)})
    assert text == expected(
        """
        error: there is no input 'X'
          where  --shape X=1,4
          why    those of net.onnx are x
          fix    did you mean x?
        """
    )


def test_a_shape_that_contradicts_the_model() -> None:
    text = told(WrongUse, "g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }", shapes={"x": (1, 5)})
    assert text == expected(
        """
        error: a shape does not fit the model
          where  --shape x=1,5
          why    net.onnx says that 'x' is 1,4
          fix    leave out --shape x=1,5: only free dimensions can be given a size
        """
    )


@pytest.mark.parametrize(
    ("opset", "why"),
    [(0, "the oldest opset that is supported is 1"), (999, "the newest opset that the installed onnx package knows")],
)
def test_an_opset_that_is_too_old_or_too_new(opset: int, why: str) -> None:
    model = parser.parse_model(HEAD.replace("17", str(opset)) + "g (float[4] x) => (float[4] y) { y = Relu(x) }")
    with pytest.raises(UnsupportedModel, match=f"net.onnx uses opset {opset}(.|\n)*{why}"):
        load_proto(model, name="net.onnx")


def test_a_format_that_is_too_new() -> None:
    model = parser.parse_model(HEAD + "g (float[4] x) => (float[4] y) { y = Relu(x) }")
    model.ir_version = 999
    with pytest.raises(UnsupportedModel, match=r"it has IR version 999(.|\n)*pip install --upgrade onnx"):
        load_proto(model)


def test_sizes_that_are_too_small_are_not_the_models_fault() -> None:
    text = "g (float[1,3,h,h] x) => (float[1,3,n,m] y) { y = MaxPool<kernel_shape = [2,2]>(x) }"
    said = told(BadFile, text, dims={"h": (1, 1)})
    assert "a window of 2x2 does not fit into 1x1" in said
    assert "fix    give other sizes with --dim or --shape, or correct the model, or export it again" in said


@pytest.mark.parametrize(
    ("data", "why", "fix"),
    [
        (b"", "the file is empty", "copy or export it again"),
        (b"\x08\x07hello\0\xff", "its 9 bytes are of another format, or were cut off", "export or copy it again"),
        (b"hello, this is no model", "it is text, not a network", "name the ONNX model in its place"),
    ],
)
def test_a_file_that_is_not_onnx(tmp_path: Path, data: bytes, why: str, fix: str) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with pytest.raises(BadFile) as caught:
        load(path)
    assert str(caught.value) == (
        f"error: net.onnx is not an ONNX model\n  where  {path}\n  why    {why}\n  fix    {fix}"
    )


def test_a_file_that_was_cut_off_anywhere(tmp_path: Path) -> None:
    model = parser.parse_model(
        HEAD + "g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { a = Add(x, w) y = Relu(a) }"
    )
    data = model.SerializeToString()
    path = tmp_path / "net.onnx"
    for length in range(len(data) - 30):  # the opset comes last; without it a graph is whole, but of no version
        path.write_bytes(data[:length])
        with pytest.raises(MccError):
            load(path)


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with pytest.raises(BadFile) as caught:
        load(path)
    assert str(caught.value) == (
        f"error: cannot read net.onnx\n  where  {path}\n  why    No such file or directory\n"
        "  fix    name an ONNX file that exists"
    )


def test_names_that_are_not_text(tmp_path: Path) -> None:
    model = parser.parse_model(HEAD + "g (float[4] xyzzy) => (float[4] y) { y = Relu(xyzzy) }")
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString().replace(b"xyzzy", b"xyz\xff\xfe"))
    with pytest.raises(BadFile, match=r"net\.onnx is damaged"):
        load(path)
