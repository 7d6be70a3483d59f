"""Steps of sums that several functions share are printed once, and each function hands its own sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from mccompile.base.marked import SIGNATURE, plain, read, sized, step
from mccompile.driver import Options
from mccompile.emit import kernels
from mccompile.emit.kernel_files import called_steps
from mccompile.emit.render import render
from mccompile.emit.shared_steps import LEAST, with_shared_steps
from mccompile.measure.correctness import check
from mccompile.plan.ir import Function
from tests.emit.test_alike_functions import separable
from tests.small_models import compiled, node, save

GENERIC = Options(target="generic", prefer="time")


def test_equal_steps_are_one_function_and_sizes_are_handed() -> None:
    first, second = _functions()[:2]
    texts, changed = with_shared_steps([_with(first, 16), _with(second, 40)], "m")
    text = plain(read(texts[0]).text)
    assert len(texts) == 1 and text.startswith("MCC_PART void m_add(const float *x, float *acc, mcc_index x_in")
    assert "acc[0] += x[x_in + (x_step * 2 + 1)];" in text and text.count("x_step") == 3
    calls = [re.findall(r"m_add\(.*\);", plain(function.body)) for function in changed]
    assert calls == [["m_add(x, acc, x_in, 16);"], ["m_add(x, acc, x_in, 40);"]]


def test_steps_stay_that_differ_or_read_what_has_no_declaration() -> None:
    first, second = _functions()[:2]
    for other in (_with(second, 16, "acc[1] -= 1;"), _with(second, 16, "acc[1] += unknown;")):
        texts, changed = with_shared_steps([_with(first, 16), other], "m")
        assert texts == [] and "x[x_in" in changed[0].body
    unknown = [_with(each, 16, "acc[1] += unknown;") for each in (first, second)]
    assert with_shared_steps(unknown, "m")[0] == []


def test_steps_that_hold_steps_are_shared_with_their_loops() -> None:
    first, second = _functions()[:2]
    texts, changed = with_shared_steps([_summing(first, 5), _summing(second, 7)], "m")
    inner, outer = (plain(read(text).text) for text in texts)
    assert inner.startswith("MCC_PART void m_add(") and "m_add(x, acc, at);" in outer
    assert outer.startswith("MCC_PART void m_sum(const float *x, mcc_index x_at, float *acc, mcc_index k_end)")
    calls = [re.findall(r"m_sum\(.*\);", plain(function.body)) for function in changed]
    assert calls == [["m_sum(x, x_at, acc, 5);"], ["m_sum(x, x_at, acc, 7);"]]


def test_steps_that_nothing_calls_are_not_printed() -> None:
    """Conditions that turn out to be known take calls away, and with them what these steps call."""
    texts = [
        f"MCC_PART void {name}(float *x)\n{{\n    {body}\n}}\n"
        for name, body in (("inner", "x[0] = 1;"), ("outer", "inner(x);"), ("used", "x[1] = 1;"))
    ]
    assert [text.text for text in called_steps(texts, ["outer(x);"])] == texts[:2]
    assert [text.text for text in called_steps(texts, ["used(x);"])] == texts[2:]


def test_a_step_that_changes_a_local_stays() -> None:
    functions = [_summing(each, 5, "x_at += 1;") for each in _functions()[:2]]
    texts, changed = with_shared_steps(functions, "m")
    assert len(texts) == 1 and "x_at += 1;" in changed[0].body


def test_each_function_is_filled_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users wait for it: a template takes longer than most passes."""
    filled = list[str]()

    def counted(path: Path, context: dict[str, Any]) -> str:
        filled.append(context.get("function", ""))
        return render(path, context)

    monkeypatch.setattr(kernels, "render", counted)
    made = compiled(separable(), GENERIC)
    assert made.files
    functions = made.plan.functions
    assert sorted(filled) == sorted(function.name for function in functions)


def test_operands_of_other_types_have_functions_of_their_own(tmp_path: Path) -> None:
    made = _integer_products()
    text = compiled(made, GENERIC).files["integers_kernels.c"].decode()
    shared = re.findall(r"^MCC_PART void integers_add_products_\w+\((.*?)\)$", text, re.MULTILINE | re.DOTALL)
    assert {"const uint8_t *a" in each for each in shared} == {True, False}
    assert check(save(made, tmp_path), GENERIC, runs=1).ok


def _functions() -> list[Function]:
    return list(compiled(separable(), GENERIC).plan.functions)


def _integer_products() -> ModelProto:
    """Two products of bytes without a sign, two of bytes with one."""
    ins, weights, nodes = [], dict[str, np.ndarray](), []
    for number, dtype in enumerate((np.uint8, np.uint8, np.int8, np.int8)):
        depth = 20 + number
        weights[f"w{number}"] = np.random.default_rng(number).integers(-9, 9, (depth, 8)).astype(np.int8)
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        ins.append(helper.make_tensor_value_info(f"x{number}", element, (6, depth)))
        nodes.append(node("MatMulInteger", f"x{number} w{number}", f"y{number}"))
    outs = [helper.make_tensor_value_info(f"y{number}", TensorProto.INT32, (6, 8)) for number in range(4)]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "integers", ins, outs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _with(function: Function, size: int, also: str = "acc[1] += 1;") -> Function:
    """A function of one step."""
    head = step("add")
    lines = [f"acc[0] += x[x_in + {sized(size)}];", f"acc[0] += x[x_in + {sized(2 * size + 1)}];", also]
    lines += ["acc[2] += 1;"] * LEAST
    around = ["float acc[4] = {0};", "const mcc_index x_in = 2;"]
    return replace(function, body="\n".join([SIGNATURE, "{", *around, f"{head} {{", *lines, "}", "}", ""]))


def _summing(function: Function, count: int, also: str = "acc[3] += 1;") -> Function:
    """A function with a sum over a step, whose loop is a step in turn; `also` stands in the loop."""
    loop = [f"for (mcc_index k = 0; k < {sized(count)}; ++k) {{", "const mcc_index at = x_at + k;"]
    body = [f"{step('add')} {{", *["acc[0] += x[at];"] * LEAST, "}", also]
    lines = ["mcc_index x_at = 3;", "float acc[4] = {0};", f"{step('sum')} {{", *loop, *body, "}", "}"]
    return replace(function, body="\n".join([SIGNATURE, "{", *lines, "}", ""]))
