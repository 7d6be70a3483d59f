"""Options that stand in a report are read again as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccompile.base.dataclass_json import from_json, to_json
from mccompile.base.dtypes import u8
from mccompile.base.quantizing import Recipe
from mccompile.driver import Options
from mccompile.passes.io.io_forms import InputForm, OutputForm
from mccompile.targets.api import Pool


def test_options_come_back() -> None:
    options = Options(
        target="cortex-m4",
        dims={"batch": (1, 8)},
        shapes={"x": (1, "n", 3), "s": ((4,), (3, 2))},
        bounds={"selected": (100,)},
        optimize=False,
        without=frozenset({"fuse", "conv/x"}),
        budget={"ram": 4096},
        mem=(Pool("dtcm", 65536, 0), Pool("sram", None, 1)),
        winograd=0,
        external=("x",),
        state={"h_out": "h_in"},
        inputs={"x": InputForm(dtype=u8, nhwc=True, mean=(1.0, 2.5), scale=(0.5,))},
        outputs={"y": OutputForm(argmax=True)},
        kernels=(Path("own/kernels"),),
        quantize=Path("samples.npz"),
        recipe=Recipe("entropy", auto=2),
        updatable=True,
    )
    text = json.dumps(to_json(options))
    assert from_json(Options, json.loads(text)) == options


def test_defaults_are_left_out() -> None:
    assert to_json(Options()) == {}
    assert to_json(Options(name="a", prefer="ram"), without=("name",)) == {"prefer": "ram"}


@pytest.mark.parametrize("found", [[], {"unknown": 1}, {"threads": "two"}, {"optimize": 1}, {"dims": {"b": [1]}}])
def test_what_is_no_option_is_refused(found: object) -> None:
    with pytest.raises(ValueError):
        from_json(Options, found)
