"""Chat templates become pieces that make what they make, or are refused; programs ask as they have it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import UnsupportedModel
from mccompile.driver import Options
from mccompile.importers.decoders.family import LLAMA_NAMES
from mccompile.llm.chat import Template, compiled, conversation, found
from mccompile.llm.jinja import renderer
from mccompile.llm.pieces import Chat, Trims, marked
from mccompile.llm.program import program

pytest.importorskip("tokenizers")

from tests.importers.decoders.files import folder, named
from tests.importers.decoders.reference import logits

from . import models
from .test_program import built, said, shown

_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
_CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set words = messages[0]['content'] %}"
    "{% else %}{% set rest = messages %}{% set words = false %}{% endif %}{% for message in rest %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}"
    "{% endif %}{% if loop.index0 == 0 and words != false %}"
    "{% set content = '<<SYS>>\\n' + words + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
_LLAMA3 = (
    "{% for message in messages %}{% set content = '<|a|>' + message['role'] + '<|b|>\\n\\n'"
    " + message['content'] | trim + '<|end|>' %}{% if loop.index0 == 0 %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|a|>assistant<|b|>\\n\\n' }}{% endif %}"
)
_GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% for message in messages %}{% if message['role'] == 'assistant' %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<turn>' + role + '\\n' + message['content'] | trim + '<end>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<turn>model\\n' }}{% endif %}"
)


def test_a_default_system_stands_where_none_is_told() -> None:
    begin, system = "<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n"
    wanted = Chat(
        f"{begin}You help.{system}",
        "<|im_end|>\n<|im_start|>assistant\n",
        "<|im_end|>\n<|im_start|>user\n",
        (begin, system),
    )
    assert compiled(Template(_CHATML, _TOKENS)) == wanted


def test_a_system_may_stand_inside_of_the_first_question() -> None:
    around = ("<s>[INST] <<SYS>>\n", "\n<</SYS>>\n\n")
    wanted = Chat("<s>[INST] ", " [/INST]", " </s><s>[INST] ", around, " ", Trims(3, 2, 3, 0), needs=True)
    assert compiled(Template(_LLAMA2, _TOKENS)) == wanted


def test_what_is_said_loses_the_spaces_that_it_loses_there() -> None:
    chat = compiled(Template(_LLAMA3, _TOKENS))
    assert (chat.begin, chat.trims) == ("<s><|a|>user<|b|>\n\n", Trims(3, 3, 3, 3))
    chat = compiled(Template(_LLAMA2, _TOKENS))
    assert (
        chat.text(" a ", [" b ", "c", " d "])
        == "<s>[INST] <<SYS>>\n a \n<</SYS>>\n\n b [/INST] c </s><s>[INST] d [/INST]"
    )


def test_a_template_may_have_no_place_for_a_system() -> None:
    wanted = Chat("<s><turn>user\n", "<end>\n<turn>model\n", "<end>\n<turn>user\n", None, "", Trims(3, 0, 3))
    assert compiled(Template(_GEMMA, _TOKENS)) == wanted


def test_words_of_the_system_have_no_place_where_they_move_or_are_left_out() -> None:
    said = "{{ '[INST] ' + (words + '\n\n' if last and words else '') + message['content'] + ' [/INST]' }}"
    other = "{{ message['content'] + eos_token }}"
    turns = f"{{% if message['role'] == 'user' %}}{said}{{% else %}}{other}{{% endif %}}"
    template = (
        "{% set words = messages[0]['content'] if messages[0]['role'] == 'system' %}"
        "{% for message in messages %}{% if message['role'] != 'system' %}{% set last = LAST %}"
        f"{turns}{{% endif %}}{{% endfor %}}"
    )
    wanted = Chat("[INST] ", " [/INST]", "</s>[INST] ", None)
    assert compiled(Template(template.replace("LAST", "loop.last"), _TOKENS)) == wanted
    assert compiled(Template(template.replace("LAST", "false"), _TOKENS)) == wanted


def test_what_opens_an_answer_may_be_left_out_later() -> None:
    chat = compiled(Template(_CHATML.replace("assistant\\n'", "assistant\\n<think>\\n'"), _TOKENS))
    assert chat.asked == "<|im_end|>\n<|im_start|>assistant\n<think>\n" and chat.opened == "<think>\n"
    assert chat.text("a", ["b", "c", "d"]).count("<think>") == 1


_SMOL = (
    "{{ 'On ' + strftime_now('%d %B %Y') + ': ' }}{% set mode = 'slow' %}{% set words = '' %}"
    "{% if messages[0].role == 'system' %}{% set words = messages[0].content.rstrip() %}{% endif %}"
    "{% if '/fast' in words %}{% set mode = 'fast' %}{% endif %}{{ words or 'You help.' }}{{ ' ' + mode }}"
    "{% for m in messages %}{% if m.role != 'system' %}<s>{{ m.role + ': ' + m.content + eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<s>assistant: {% endif %}"
)


def test_dates_and_commands_of_a_template_are_known() -> None:
    chat = compiled(Template(_SMOL, _TOKENS))
    assert chat.words == ("/fast",) and chat.skips and chat.dates and chat.trims == Trims(system=2)
    assert chat.begin == f"On {marked('%d %B %Y')}: You help. slow<s>user: "
    render, *_ = renderer(_SMOL, _TOKENS)
    for system in (None, "", " \n", " Be\u3000brief. "):
        assert render(conversation(system, ["a"]), str.upper) == chat.text(system, ["a"], str.upper)


def test_a_program_knows_the_date_and_takes_no_commands(tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", "llama3", max_position_embeddings=256)
    (tmp_path / "tiny" / "tokenizer_config.json").write_text(json.dumps(_TOKENS))
    (tmp_path / "tiny" / "chat_template.jinja").write_text(_SMOL)
    code = built(tmp_path / "tiny", tmp_path / "out", {"past": (0, 150), "tokens": (1, 8)})
    for system in ("", "Be brief.\n"):
        days = [datetime.now(), datetime.now() + timedelta(seconds=100)]  # it may be midnight
        prompts = [compiled(Template(_SMOL, _TOKENS)).text(system, ["why"], day.strftime) for day in days]
        tokens = [made.encode(prompt, add_special_tokens=False).ids for prompt in prompts]
        wanted = [f"> why\n{shown(made, models.continued(each, weights, 4))}" for each in tokens]
        assert said(code, "-n", "4", "-q", "why", "-y", system) in wanted
    assert "a command in it" in said(code, "-q", "why", "-y", "a /fast", status=1)
    assert "questions (-q) go with no prompt" in said(code, "-q", "why", "once", status=2)
    assert "it goes with questions" in said(code, "-y", "Be brief.", status=2)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% for a in range(10000) %}x{% endfor %}", "a range of 10000"),
        ("{{ 'a' * 1000000 }}", r"the operator \*"),
        ("{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}", "RecursionError|does not end"),
        ("{% for a in messages %}" * 4 + "x" + "{% endfor %}" * 4, "loops inside"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ strftime_now('%Y')[1:] }}{% for m in messages %}{{ m.content }}{% endfor %}", "text of a date"),
        ("{{ strftime_now('%U') }}{% for m in messages %}{{ m.content }}{% endfor %}", "in a form that is not known"),
        ("{% for m in messages %}{{ m.content }}{{ '!' if '/loud' in m.content }}{% endfor %}", "'/loud' in it"),
        ("{% if", "it is not Jinja"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "stands 2 times"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "stands 0 times"),
        (
            "{% for m in messages %}{{ 'Q' if '?' in m.content }}{{ m.content }}{% endfor %}",
            r"depends on '\?' in it",
        ),
        (
            "{% for m in messages %}{{ m.content }}{{ '!' if m.content | length == 3 }}{% endfor %}",
            "depends on more than role",
        ),
        (
            "{% for m in messages %}{% set t = m.content %}{% set quoted = t.startswith('<') and t.endswith('>') %}"
            "{{ t[1:-1] if quoted else t }};{% endfor %}",
            "'<' and '>' in it",
        ),
        ("{% for m in messages %}{{ m.content.lstrip('\n') }};{% endfor %}", "depends on more than role"),
        ("{% for m in messages %}{{ m.content.replace('\\r', '') }};{% endfor %}", "depends on more than role"),
        ("{% for m in messages %}{{ m.content[:999] }};{% endfor %}", "depends on more than role"),
        ("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}A", "the template opens an answer with 'A'"),
        ("{{ raise_exception('not today') }}", "not today"),
        ("x" * 5000 + "{% for m in messages %}{{ m.content }}{% endfor %}", "more than 4000 bytes"),
    ],
)
def test_what_is_no_row_of_pieces_is_refused(template: str, why: str) -> None:
    with pytest.raises(UnsupportedModel, match=why) as refused:
        compiled(Template(template, _TOKENS))
    assert all(problem.why and "--chat none" in problem.fix for problem in refused.value.problems)


def test_a_program_asks_as_the_template_has_it(tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", "llama3", max_position_embeddings=256)
    told = {"chat_template": _LLAMA2, "bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    (tmp_path / "tiny" / "tokenizer_config.json").write_text(json.dumps(told))
    code = built(tmp_path / "tiny", tmp_path / "out", {"past": (0, 150), "tokens": (1, 8)})
    first = "<s>[INST] <<SYS>>\n Be\u3000brief.\n<</SYS>>\n\n once upon [/INST]"
    tokens = made.encode(first, add_special_tokens=False).ids
    answers = [models.continued(tokens, weights, 4)]
    second = " </s><s>[INST] the time [/INST]"
    tokens += answers[0] + made.encode(second, add_special_tokens=False).ids
    answers.append(models.continued(tokens, weights, 4))
    asked = ["-q", " once upon\n\u3000", "-n", "4", "-q", "\x1c the time\u3000", "-y", " Be\u3000brief."]
    wanted = f">  once upon\n\u3000\n{shown(made, answers[0])}\n> \x1c the time\u3000\n{shown(made, answers[1])}"
    assert said(code, *asked) == wanted
    assert "the prompt is too long" in said(code, "-q", "x" * 1300, status=1)


def test_an_answer_ends_where_its_template_ends_it(tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", "llama3", max_position_embeddings=256)
    template = _CHATML.replace("<|im_start|>", "<s>").replace("<|im_end|>", "<|end|>")
    (tmp_path / "tiny" / "chat_template.jinja").write_text(template)
    prompt = compiled(Template(template, {})).text(None, ["why"])
    tokens = made.encode(prompt, add_special_tokens=False).ids
    behind = np.array(tokens + models.continued(tokens, weights, 3))
    state = logits(behind, {**weights, "head": np.eye(weights["embed"].shape[1])}, 2, 4, 2)[-1]
    end = made.token_to_id("<|end|>")
    weights = {**weights, "head": weights["embed"].copy()}  # of which the end is the likeliest there
    weights["head"][end] = state * 60 / (state @ state)
    config = json.loads((tmp_path / "tiny" / "config.json").read_text())
    folder(tmp_path / "tiny", {**config, "tie_word_embeddings": False}, named(weights, LLAMA_NAMES))
    wanted = models.continued(tokens, weights, 9)
    assert 0 < wanted.index(end) <= 3 and {*wanted[wanted.index(end) :]} != {end}
    code = built(tmp_path / "tiny", tmp_path / "out", {"past": (0, 150), "tokens": (1, 8)}, strict=False)
    assert said(code, "-n", "9", "-q", "why") == f"> why\n{shown(made, wanted[: wanted.index(end)])}"
    assert said(code, "-n", "9", prompt.removeprefix("<s>")).endswith(shown(made, wanted))


def test_templates_are_found_where_libraries_write_them(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    config = tmp_path / "tiny" / "tokenizer_config.json"
    assert found(tmp_path / "tiny") is None
    config.write_text(json.dumps({"chat_template": [{"name": "default", "template": "a"}, {"name": "b"}], **_TOKENS}))
    assert found(tmp_path / "tiny") == Template("a", _TOKENS)
    (tmp_path / "tiny" / "chat_template.jinja").write_text("b{% if")
    assert found(tmp_path / "tiny") == Template("b{% if", _TOKENS)
    with pytest.raises(UnsupportedModel, match="it is not Jinja"):
        program(tmp_path / "tiny", Options())
    assert not program(tmp_path / "tiny", Options(), chats=False).report["language"]["chats"]
    words = {"model": "gpt2", "tokens": ["a", "<s>"], "bos_token_id": 1}
    said_of = {f"tokenizer.ggml.{name}": value for name, value in words.items()}
    models.gguf(tmp_path / "a.gguf", {**said_of, "tokenizer.chat_template": "c"})
    assert found(tmp_path / "a.gguf") == Template("c", {"bos_token": "<s>", "eos_token": ""})
