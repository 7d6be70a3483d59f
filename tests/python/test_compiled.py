"""mccompile.compile as Python users call it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path, PurePosixPath

import numpy as np
import onnx
import pytest

import mccompile
from mccompile import MccError
from tests import small_models
from tests.small_models import floats, model, node, save


def free_batch() -> onnx.ModelProto:
    nodes = [node("MatMul", "x w", "y")]
    return model("dense", nodes, [("x", ("batch", 4))], [("y", ("batch", 3))], {"w": floats(0, 4, 3)})


@pytest.mark.parametrize("as_text", [True, False])
def test_paths_are_str_or_path_and_keywords_are_options(tmp_path: Path, as_text: bool) -> None:
    path = save(small_models.conv(), tmp_path)
    made = mccompile.compile(str(path) if as_text else path, target="cortex-m4", name="stem")
    out = tmp_path / "out"
    assert made.write(str(out) if as_text else out) == out
    assert (out / "stem.h").is_file() and made.report["target"] == "cortex-m4"
    assert made.report["arena_bytes"] == made.package.plan.arena_bytes


@pytest.mark.parametrize(
    ("size", "shape"), [(2, [2, 4]), ((1, 8), ["n_batch", 4]), ("1..8", ["n_batch", 4]), ("3", [3, 4])]
)
def test_sizes_are_ints_pairs_or_texts(tmp_path: Path, size: object, shape: list[object]) -> None:
    made = mccompile.compile(save(free_batch(), tmp_path), dims={"batch": size})
    assert made.report["inputs"][0]["bytes"] == 4 * 4 * (8 if isinstance(shape[0], str) else int(str(shape[0])))


def test_options_may_be_given_ready_made_and_changed(tmp_path: Path) -> None:
    options = mccompile.Options(target="cortex-m4", optimize=False)
    made = mccompile.compile(save(small_models.conv(), tmp_path), options, prefer="time")
    assert (made.options.target, made.options.optimize, made.options.prefer) == ("cortex-m4", False, "time")


def test_a_model_in_memory_is_compiled_and_checked() -> None:
    for given in (small_models.conv(), small_models.conv().SerializeToString()):
        made = mccompile.compile(given)
        assert made.check(runs=1).ok


def test_bench_measures_this_machine_or_an_emulated_one(tmp_path: Path) -> None:
    figures = mccompile.compile(save(small_models.mlp(), tmp_path), target="native").bench()
    assert figures.as_dict()["median_us"] > 0


def test_a_budget_is_a_number_or_a_text(tmp_path: Path) -> None:
    path = save(small_models.conv(), tmp_path)
    assert mccompile.compile(path, budget={"ram": "64K"}).report["arena_bytes"] <= 65536
    with pytest.raises(MccError, match="over the budget"):
        mccompile.compile(path, budget={"ram": 16})


@pytest.mark.parametrize(
    ("keywords", "complaint"),
    [
        ({"tagret": "native"}, r"no option 'tagret'\n(.*\n)*.*did you mean target\?"),
        ({"dims": {"batch": "many"}}, r"'dims' cannot be .*\n(.*\n)*.*NAME=LOW"),
        ({"dims": 3}, "'dims' cannot be 3"),
        ({"mem": ["?"]}, "'mem' cannot be"),
        ({"threads": "two"}, "'threads' cannot be 'two'"),
        ({"recompute": "much"}, "'recompute' cannot be 'much'"),
        ({"optimize": "no"}, r"'optimize' cannot be 'no'\n(.*\n)*.*True or False"),
        ({"winograd": 3}, r"'winograd' cannot be 3\n(.*\n)*.*off, 2 or 4"),
    ],
)
def test_wrong_keywords_are_named(keywords: dict[str, object], complaint: str) -> None:
    with pytest.raises(MccError, match=complaint):
        mccompile.compile(small_models.conv(), **keywords)


def test_winograd_is_written_as_in_commands() -> None:
    found = [mccompile.compile(small_models.conv(), winograd=tile).options for tile in ("off", 0, "2", 4)]
    assert [options.winograd for options in found] == [0, 0, 2, 4]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(MccError, match="a list"):
        mccompile.compile([1, 2])
    with pytest.raises(MccError, match="cannot read"):
        mccompile.compile("nowhere.onnx")


def test_the_package_says_what_it_has() -> None:
    assert {"compile", "load", "backend", "Options"} <= set(dir(mccompile))
    with pytest.raises(AttributeError, match="nothing"):
        _ = mccompile.nothing


@pytest.mark.parametrize(
    ("keywords", "shape"),
    [
        ({"dims": {"batch": np.int64(3)}}, [3, 4]),
        ({"dims": {"batch": (np.int8(1), np.uint16(3))}}, ["n_batch", 4]),
        ({"shapes": {"x": (np.int32(3), 4)}}, [3, 4]),
        ({"shapes": {"x": np.array([3, 4])}}, [3, 4]),
        ({"dims": {"batch": 3}, "threads": np.int64(1), "keep_inputs": np.bool_(True), "winograd": np.int8(2)}, [3, 4]),
        ({"dims": {"batch": 3}, "budget": {"ram": np.int64(9999)}, "recompute": np.float32(1)}, [3, 4]),
    ],
)
def test_numbers_may_be_those_of_numpy(keywords: dict[str, object], shape: list[object]) -> None:
    assert mccompile.compile(free_batch(), **keywords).report["inputs"][0]["shape"] == shape


def test_a_path_may_be_any_path(tmp_path: Path) -> None:
    path = PurePosixPath(save(small_models.conv(), tmp_path))
    assert mccompile.compile(path).files.keys() == mccompile.compile(str(path)).files.keys()


def test_settings_of_sound_may_be_numbers_of_numpy() -> None:
    one, other = ({"rate": number(16000), "window": 480, "hop": 320, "mels": number(8)} for number in (int, np.int64))
    assert mccompile.audio_frontend(**one) == mccompile.audio_frontend(**other)


def test_what_compile_gives_can_be_copied() -> None:
    made = mccompile.compile(small_models.conv())
    assert copy.copy(made).files is made.files and copy.copy(made) is not made


def test_what_compile_gives_says_why_it_does_not_pickle() -> None:
    with pytest.raises(MccError, match=r"cannot be pickled(.|\n)*hand over \.files"):
        pickle.dumps(mccompile.compile(small_models.conv()))


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("dims", "batch=1", 'such as dims={"batch": 1}'),
        ("budget", "64K", 'such as budget={"ram": "64K"}'),
        ("quantize", np.zeros((8, 2, 6, 6), np.float32), 'such as quantize="samples.npz"'),
    ],
)
def test_a_keyword_of_another_form_leads_to_its_own(tmp_path: Path, name: str, value: object, fix: str) -> None:
    with pytest.raises(MccError) as caught:
        mccompile.compile(save(small_models.conv(), tmp_path), **{name: value})
    said = str(caught.value)
    assert fix in said and len(said) < 220


def test_a_dictionary_of_inputs_is_spread(tmp_path: Path) -> None:
    network = mccompile.load(save(small_models.conv(), tmp_path))
    inputs = {"x": np.zeros((1, 2, 6, 6), np.float32)}
    with pytest.raises(MccError, match=r"write \(\*\*inputs\)"):
        network(inputs)
    assert network(**inputs)["y"].shape == network(inputs["x"])["y"].shape


def test_a_folder_in_the_place_of_options_is_said_to_go_to_write(tmp_path: Path) -> None:
    with pytest.raises(MccError, match=r"(?s)options cannot be 'out'.*where .*write\('out'\)"):
        mccompile.compile(save(small_models.conv(), tmp_path), "out")  # type: ignore[arg-type]
