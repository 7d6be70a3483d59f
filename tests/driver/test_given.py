"""`Options` in Python: what is wrong with a call is said."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import mccompile
from mccompile.base.errors import WrongUse
from tests.small_models import conv


@pytest.mark.parametrize(
    ("given", "named", "words"),
    [
        (("net.onnx",), {}, "mccompile.compile('net.onnx', options)"),
        ((), {"targets": "generic"}, "did you mean target?"),
        ((), {"threads": "2"}, "threads=2"),
        ((), {"threads": True}, "threads=2"),
        ((), {"optimize": "no"}, "optimize=True"),
        ((), {"target": 4}, "it is text"),
        ((), {"float_error": "low"}, "it is a number"),
    ],
)
def test_a_wrong_call_says_what_to_write(given: tuple[Any, ...], named: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongUse, match=r"(?s)where .*why .*fix ") as caught:
        mccompile.Options(*given, **named)
    assert words in str(caught.value)


def test_options_are_pickled() -> None:
    options = mccompile.Options(target="cortex-m4", dims={"batch": (1, 1)})
    assert pickle.loads(pickle.dumps(options)) == options


def test_options_read_as_keywords_do() -> None:
    made = mccompile.compile(conv(), mccompile.Options(budget={"ram": "64K"}))  # type: ignore[dict-item]
    assert made.options.budget == {"ram": 65536}
