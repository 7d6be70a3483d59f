"""Operators that make text or take it apart: StringConcat, StringSplit, StringNormalizer, RegexFullMatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

from mccompile import backend
from mccompile.base.errors import CheckFailed, MccError, UnsupportedModel
from mccompile.frontend.load import load_proto
from tests.thorough import some

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
HEAD = '<ir_version: 10, opset_import: ["": 21]> '


def texts(*items: Any) -> np.ndarray:
    return np.array(items, object)


def agrees(op: str, *arrays: np.ndarray, outs: int = 1, bounds: Any = None, **attributes: Any) -> None:
    """With onnxruntime, or ONNX's reference where onnxruntime has no piece for an empty string."""
    agree(op, [(arrays, attributes)], outs, bounds)


def agree(op: str, calls: Sequence[tuple[Sequence[np.ndarray], Any]], outs: int = 1, bounds: Any = None) -> None:
    """The same of several nodes, each with its operands and attributes, in one model."""
    feed: dict[str, np.ndarray] = {}
    nodes = []
    for number, (arrays, attributes) in enumerate(calls):
        names = [f"x{len(feed) + i}" for i in range(len(arrays))]
        feed |= dict(zip(names, arrays, strict=True))
        nodes.append(helper.make_node(op, names, [f"y{outs * number + i}" for i in range(outs)], **attributes))
    types = {"RegexFullMatch": [9], "StringSplit": [8, 7], "TfIdfVectorizer": [1]}.get(op, [8])
    given = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feed.items()}
    inputs = [helper.make_tensor_value_info(name, given[name], array.shape) for name, array in feed.items()]
    outputs = [helper.make_tensor_value_info(f"y{i}", types[i % outs], None) for i in range(outs * len(calls))]
    graph = helper.make_graph(nodes, "text", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    if op == "StringSplit":
        wants = ReferenceEvaluator(model).run(None, feed)
    else:
        wants = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    for got, want in zip(backend.prepare(model, flags=STRICT, bounds=bounds or {}).run(feed), wants, strict=True):
        assert got.tolist() == want.tolist()
        assert got.dtype == want.dtype


def test_joined_strings_broadcast() -> None:
    agrees("StringConcat", texts(["ab"], [""], ["ü"]), texts("c", "", "dé", "-"))


@pytest.mark.parametrize("attributes", [{}, {"maxsplit": 1}, {"delimiter": "--"}, {"delimiter": "-", "maxsplit": 2}])
def test_pieces_of_strings(attributes: dict[str, Any]) -> None:
    x = texts(["a-b--c", "", "one two"], ["--", " x  y z", "é--ü"])
    agrees("StringSplit", x, outs=2, bounds={"y0": (9,)}, **attributes)


def test_too_many_pieces_end_the_run() -> None:
    model = parser.parse_model(HEAD + "g (string[2] x) => (string[2,n] y, int64[2] c) { y, c = StringSplit (x) }")
    with pytest.raises(UnsupportedModel, match="--bound y=100"):
        load_proto(model)
    rep = backend.prepare(model, flags=STRICT, bounds={"y": (2,)})
    y, c = rep.run([texts("a b", "c")])
    assert (y.tolist(), c.tolist()) == ([["a", "b"], ["c", ""]], [2, 1])
    with pytest.raises(CheckFailed, match="size is outside"):
        rep.run([texts("a b c", "d")])


@pytest.mark.parametrize("action", ["LOWER", "UPPER", "NONE"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_stopwords_and_case(action: str, sensitive: int) -> None:
    x = texts("Monday", "tuesday", "MONDAY", "Straße", "ÄRGER", "Зима", "ΑΒΓ", "ÿ")
    words = {"stopwords": ["monday", "ärger"], "is_case_sensitive": sensitive, "case_change_action": action}
    model = parser.parse_model(HEAD + "g (string[8] x) => (string[n] y) { y = StringNormalizer (x) }")
    model.graph.node[0].attribute.extend(helper.make_attribute(name, value) for name, value in words.items())
    kept = [t for t in x if (t if sensitive else t.lower()) not in words["stopwords"]]
    upper = str.maketrans({c: c.upper() for text in x for c in text if c != "ß"})  # that would become two letters
    change = {"LOWER": str.lower, "UPPER": lambda text: text.translate(upper), "NONE": str}[action]
    (y,) = backend.prepare(model, flags=STRICT).run([x])
    assert y.tolist() == [change(text) for text in kept]


def test_what_is_not_utf8_stays_when_case_changes() -> None:
    model = parser.parse_model(HEAD + "g (string[5] x) => (string[5] y) { y = StringNormalizer (x) }")
    model.graph.node[0].attribute.append(helper.make_attribute("case_change_action", "LOWER"))
    raw = [b"A\xe0\x80\x80Z", b"\xff\xc3", b"\xf4\x90\x80\x80", b"\xed\xa0\x80X", b"\xc3\x84\xc3"]
    x = texts(*(each.decode(errors="surrogateescape") for each in raw))
    (y,) = backend.prepare(model, flags=STRICT).run([x])
    got = [each.encode(errors="surrogateescape") for each in y]
    assert got == [b"a\xe0\x80\x80z", raw[1], raw[2], b"\xed\xa0\x80x", b"\xc3\xa4\xc3"]


def test_nothing_left_is_one_empty_string() -> None:
    agrees("StringNormalizer", texts(["a", "a", "b"]), stopwords=["a", "b"], is_case_sensitive=1)


PATTERNS = [
    (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", ["a.b@gmail.com", " x@yahoo.com!", "x@gmail.org"]),
    (r"[^a-cé-ü]+", ["xyz", "xbz", "é", "漢字", ""]),
    (r"(?i)grüß(e|t)?", ["GRÜßE", "grüß", "grus"]),
    (r"\d{3}-\d{2,4}|\x{4e2d}+", ["555-12", "555-12345", "中中", "5-1"]),
    (r"www\.[\w.-]+\.\bcom\b", ["www.a.com", "www.a.b.com", "www.a.xcom"]),
    (r".*", ["line", "two\nlines"]),
    (r"(?s:.)*\Q.*\E$", ["a\n.*", ".*x"]),
    (r"[[:alpha:]_]\w*", ["_a1", "1a", ""]),
]


@pytest.mark.parametrize(("pattern", "cases"), PATTERNS, ids=[str(i) for i in range(len(PATTERNS))])
def test_patterns_match_as_in_re2(pattern: str, cases: list[str]) -> None:
    agrees("RegexFullMatch", texts(*cases), pattern=pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a|b)*a(a|b){13}", "more than 4096 states"),
        ("(?=a)b", "looks around or back"),
        ("(?m)^a$", "line by line"),
        (r"\pL", "Unicode classes"),
        ("(a", "has no \\)"),
        ("a**", "one repetition follows another"),
        ("(" * 60 + ")" * 60, "50 groups"),
    ],
)
def test_other_patterns_are_refused(pattern: str, why: str) -> None:
    model = parser.parse_model(HEAD + "g (string[2] x) => (bool[2] y) { y = RegexFullMatch (x) }")
    model.graph.node[0].attribute.append(helper.make_attribute("pattern", pattern))
    with pytest.raises(MccError, match=why):
        backend.prepare(model)


def test_strings_that_do_not_fit_end_the_run() -> None:
    model = parser.parse_model(HEAD + "g (string[2] x) => (string[2] y) { y = StringConcat (x, x) }")
    rep = backend.prepare(model, flags=STRICT, bounds={"strings": (10,)})
    assert rep.run([texts("abc", "de")])[0].tolist() == ["abcabc", "dede"]
    with pytest.raises(CheckFailed, match="need more room"):
        rep.run([texts("abc", "def")])
    assert rep.run([texts("", "x")])[0].tolist() == ["", "xx"]


def test_strings_live_to_the_end_of_the_run() -> None:
    """Nothing is laid over their bytes, though what points to them moves several times."""
    model = parser.parse_model(
        HEAD + "g (string[3] x, float[2000] f) => (string[3] y, float[2000] h, string[3] z) {"
        " one = StringConcat (x, x) i = Constant <value_ints = [2, 0, 1]> () moved = Gather (one, i)"
        " g1 = Exp (f) g2 = Sin (g1) g3 = Add (g1, g2) h = Mul (g3, g1)"
        " y = Gather (moved, i) z = StringConcat (y, x) }"
    )
    x = texts("ab", "", "cde")
    y, _, z = backend.prepare(model, flags=STRICT, bounds={"strings": (64,)}).run([x, np.zeros(2000, np.float32)])
    twice = [t + t for t in x]
    assert y.tolist() == [twice[1], twice[2], twice[0]]
    assert z.tolist() == [a + b for a, b in zip(y, x, strict=True)]


def test_strings_made_in_a_loop_are_refused() -> None:
    model = parser.parse_model(
        HEAD + "g (int64 n, string[1] x) => (string[1] y) { true = Constant <value = bool {1}> ()"
        " y = Loop (n, true, x) <body = l (int64 i, bool go, string[1] s) => (bool on, string[1] t) {"
        " on = Identity (go) t = StringConcat (s, s) }> }"
    )
    with pytest.raises(UnsupportedModel, match="made in a loop"):
        backend.prepare(model)


POOL = {"min_gram_length": 1, "max_gram_length": 3, "ngram_counts": [0, 3, 9], "ngram_indexes": [4, 0, 1, 2, 3, 5, 6]}
LETTERS = ["b", "a", "ü", "b", "a", "a", "b", "c", "c", "a", "b", "a"]


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@some(1, "skips", [0, 2])
@pytest.mark.parametrize("weights", [[], [0.5, 1, 2, -1, 3, 0.25, 4]])
def test_sequences_are_counted_and_weighted(mode: str, skips: int, weights: list[float]) -> None:
    x = texts(list("abaübacbab"), list("ccaabbaaba"), list("xyzxyzxyzü"))
    options = {**POOL, "mode": mode, "max_skip_count": skips, **({"weights": weights} if weights else {})}
    numbers = np.array([[ord(letter) for letter in row] for row in x], np.int32)
    of_letters = {"pool_strings": LETTERS, **options}
    of_numbers = {"pool_int64s": [ord(letter) for letter in LETTERS], **options}
    agree("TfIdfVectorizer", [([x], of_letters), ([x[0]], of_letters), ([numbers], of_numbers)])


NUMBERS = {
    1: [0.1, -2.5, 1e-7, 3e30, 100, 0.0, 16777216, np.inf],
    11: [0.1, 1 / 3, -1e-300, 123456789.125, 1e22],
    7: [-(2**63), 2**63 - 1, 0],
    2: [0, 255],
    3: [-128, 127],
}


@pytest.mark.parametrize("type", NUMBERS)
def test_numbers_become_text_and_come_back(type: int) -> None:
    x = np.array(NUMBERS[type]).astype(helper.tensor_dtype_to_np_dtype(type))
    nodes = [helper.make_node("Cast", ["x"], ["t"], to=8), helper.make_node("Cast", ["t"], ["y"], to=type)]
    infos = [helper.make_tensor_value_info(name, kind, x.shape) for name, kind in (("x", type), ("t", 8), ("y", type))]
    model = helper.make_model(helper.make_graph(nodes, "cast", infos[:1], infos[1:]))
    t, y = backend.prepare(model, flags=STRICT).run([x])
    np.testing.assert_array_equal(y, x)
    assert [float(text) if x.dtype.kind == "f" else int(text) for text in t] == [
        pytest.approx(each, rel=1e-7) if x.dtype.kind == "f" else each for each in x.tolist()
    ]


def test_text_that_is_no_number_ends_the_run() -> None:
    model = parser.parse_model(HEAD + "g (string[2] x) => (float[2] y) { y = Cast <to = 1> (x) }")
    rep = backend.prepare(model, flags=STRICT)
    assert rep.run([texts(" 1e3", "-INF")])[0].tolist() == [1000.0, -np.inf]
    with pytest.raises(CheckFailed, match="is to be read as a number is none"):
        rep.run([texts("1", "one")])


@pytest.mark.parametrize("without", [frozenset(), frozenset({"fold_constants"})], ids=["folded", "computed"])
def test_constants_of_strings_need_no_inputs(without: frozenset[str]) -> None:
    model = parser.parse_model(
        HEAD
        + "g (int64 i) => (string[3] y, string s) { c = Constant <value_strings = ['a', '', 'ü']> ()"
        " y = StringConcat (c, c) s = Gather (y, i) }".replace("'", '"')
    )
    y, s = backend.prepare(model, flags=STRICT, without=without).run([np.array(2)])
    assert (y.tolist(), s.tolist()) == (["aa", "", "üü"], "üü")
