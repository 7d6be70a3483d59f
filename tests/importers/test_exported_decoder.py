"""Folders of language models that were exported to ONNX go on as onnxruntime does, without options."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mccompile
from mccompile.base.errors import MccError, UnsupportedModel, WrongUse
from mccompile.frontend.load import read_proto
from mccompile.importers.api import Reading
from mccompile.importers.renaming import name_apart
from tests.importers.decoders.exported import WAYS, continued, folder

COMPILER = shutil.which("tcc") or "cc"
PROMPT = [1, 5, 7, 3, 2]


def greedy(path: Path, count: int, tokens: int = 3) -> list[int]:
    """The most likely tokens behind the prompt, which is taken in pieces."""
    dims = {"past": (0, 290)} | ({"tokens": (1, tokens)} if tokens > 1 else {})
    net, found = mccompile.load(path, target="generic", cc=COMPILER, dims=dims), list[int]()
    for begin in range(0, len(PROMPT), tokens):
        logits = net(np.array([PROMPT[begin : begin + tokens]]))[0]
    for _ in range(count):
        assert np.shape(logits) == (1, 1, 48)
        found.append(int(np.argmax(logits)))
        logits = net(np.array([found[-1:]]))[0]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_256_greedy_tokens_are_those_of_onnxruntime(way: str, tmp_path: Path) -> None:
    path = folder(tmp_path / "net", way)
    wanted = continued(path, PROMPT, 256)
    assert len(set(wanted)) > 3 and greedy(path, 256) == wanted


def test_a_merged_decoder_takes_the_branch_with_a_past_and_tokens_one_by_one(tmp_path: Path) -> None:
    path = folder(tmp_path / "net", "optimum")
    wanted = continued(path, PROMPT, 20)
    model = onnx.load(path / "model.onnx")
    branch = helper.make_graph(list(model.graph.node), "with_past", [], list(model.graph.output))
    other = helper.make_graph(
        [helper.make_node("Identity", [f"past_key_values.0.{side}"], [f"no_{side}"]) for side in ("key", "value")],
        "no_past", [], [],
    )  # fmt: skip
    names = [entry.name for entry in model.graph.output]
    del model.graph.node[:]
    for entry in branch.output:
        entry.name = f"{entry.name}/inner"
    for node in branch.node:
        node.output[:] = [f"{name}/inner" if name in names else name for name in node.output]
    model.graph.node.append(helper.make_node("If", ["use_cache_branch"], names, then_branch=branch, else_branch=other))
    model.graph.input.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    (path / "onnx").mkdir()
    onnx.save(model, path / "onnx" / "decoder_model_merged.onnx")
    (path / "model.onnx").unlink()
    assert greedy(path, 20, tokens=1) == wanted


@pytest.mark.parametrize("way", WAYS)
def test_a_file_alone_goes_on_too_whatever_its_names_are(way: str, tmp_path: Path) -> None:
    path = folder(tmp_path / "net", way)
    wanted = continued(path, PROMPT, 64)
    model = onnx.load(path / "model.onnx")
    caches = [entry.name for entry in (*model.graph.input, *model.graph.output) if "key_values" in entry.name]
    names = {name: f"past_{number}" for number, name in enumerate(caches)} | {"input_ids": "tokens", "logits": "cat_9"}
    presents = [entry.name for entry in model.graph.output[1:]]
    names |= {name: f"cat_{number}" for number, name in enumerate(reversed(presents))}
    name_apart(model.graph, "", names)
    onnx.save(model, tmp_path / "alone.onnx")
    assert greedy(tmp_path / "alone.onnx", 64) == wanted


def test_attention_in_half_precision_continues_its_cache(tmp_path: Path) -> None:
    path = folder(tmp_path / "net", "genai")
    model = onnx.load(path / "model.onnx")
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        after = []
        if node.op_type == "GroupQueryAttention":
            for index in (0, 1, 2, 7, 8):
                if len(node.input) > index and node.input[index]:
                    half = f"{node.name}/half_{index}"
                    model.graph.node.append(
                        helper.make_node("Cast", [node.input[index]], [half], to=TensorProto.FLOAT16)
                    )
                    node.input[index] = half
            after = [helper.make_node("Cast", [f"{node.name}/made"], [node.output[0]], to=TensorProto.FLOAT)]
            node.output[0] = f"{node.name}/made"
        model.graph.node.extend([node, *after])
    for entry in (*model.graph.input, *model.graph.output):
        if "key_values" in entry.name or "present" in entry.name:
            entry.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(model, path / "model.onnx")
    wanted = continued(path, PROMPT, 40)
    assert len(set(wanted)) > 3 and greedy(path, 40) == wanted


def test_a_file_alone_is_any_network_where_something_is_said_of_its_inputs(tmp_path: Path) -> None:
    folder(tmp_path, "optimum")
    whole = onnx.load(tmp_path / "model.onnx").graph.input
    for said in (
        Reading(has_states=True),
        Reading(dims={"past_sequence_length": (0, 9)}),
        Reading(shapes={"attention_mask": (1, 4)}),
    ):
        assert read_proto(tmp_path / "model.onnx", said).graph.input == whole
    assert len(read_proto(tmp_path / "model.onnx").graph.input) == len(whole) - 2


@pytest.mark.parametrize("way", WAYS)
def test_the_last_layer_computes_the_last_token_alone(way: str, tmp_path: Path) -> None:
    plan = mccompile.compile(folder(tmp_path / "net", way), dims={"past": (0, 30), "tokens": (1, 8)}).plan
    products = [step.macs for step in plan.steps() if step.op == "gemm" and step.macs]
    (*_, query, output, gate, up, down, head) = products
    assert head == 24 * 48 and query == output == 24 * 64 and gate == up == down == 24 * 40
    assert [step.macs for step in plan.steps() if step.op == "attention"] == [8 * 2 * 38 * 64, 2 * 38 * 64]


def test_what_is_no_decoder_with_a_cache_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = folder(tmp_path / "net", "optimum")
    whole = (path / "model.onnx").read_bytes()
    model = onnx.load_model_from_string(whole)

    def refused(reason: str) -> None:
        (path / "model.onnx").write_bytes(model.SerializeToString())
        model.CopyFrom(onnx.load_model_from_string(whole))
        with pytest.raises(UnsupportedModel, match=reason) as error:
            read_proto(path)
        assert all(problem.fix and str(path) in problem.where for problem in error.value.problems)

    model.graph.input[1].name = "token_type_ids"
    refused("has the input 'token_type_ids'")
    del model.graph.input[3:]
    refused("takes no keys and values")
    model.graph.output[1].name = "other"
    refused(r"has no output that continues past_key_values\.0\.key")
    model.graph.input[3].type.tensor_type.shape.dim[2].dim_value = 7
    refused("with a free number of tokens")
    model.graph.input[0].name = "pixels"
    refused("has no input 'input_ids'")


def test_no_token_stands_behind_the_positions_that_the_model_has(tmp_path: Path) -> None:
    path = folder(tmp_path / "net", "genai", context=20)
    with pytest.raises(WrongUse, match=r'use dims={"past": "0\.\.16", "tokens": "1\.\.4"}'):
        mccompile.compile(path, dims={"past": (0, 30), "tokens": (1, 4)})


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "net", "genai")
    told = json.loads((path / "genai_config.json").read_text())
    for damaged in ({}, {"model": 3}, {"model": {**told["model"], "context_length": -1}}):
        (path / "genai_config.json").write_text(json.dumps(damaged) if damaged else "{")
        with pytest.raises(MccError):
            read_proto(path)
    (path / "genai_config.json").write_text(json.dumps(told))
    (path / "model.onnx.data").unlink()
    with pytest.raises(MccError, match=r"model\.onnx"):
        read_proto(path)
