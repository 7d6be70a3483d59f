"""The page says what the analysis says, in a browser, at both widths, and its links lead where they say."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embedded.quantized_models import separable_int8
from mccompile.cli.pages import lines_of, page_of
from mccompile.driver import Options
from mccompile.emit.analysis import analysis_of
from mccompile.emit.studio.page import studio_page
from mccompile.emit.studio.view import view
from mccompile.targets.api import Pool, Prefer
from tests import small_models
from tests.emit.studio.browser import shown
from tests.emit.test_timeline import CHAIN
from tests.passes.graph.tile_columns.test_tile_columns import package as tiled
from tests.passes.graph.tile_columns.test_tile_columns import with_weights
from tests.small_models import compiled, model, node
from tests.thorough import some

PLANS = [
    {
        "ram_bytes": 900,
        "flash_bytes": 70,
        "weights_bytes": 50,
        "code_bytes": 20,
        "estimated_time": 9.0,
        "us": 2.0,
        "options": "--prefer time",
    },
    {
        "ram_bytes": 300,
        "flash_bytes": 80,
        "weights_bytes": 50,
        "code_bytes": 30,
        "estimated_time": 8.0,
        "us": 3.5,
        "options": "--prefer ram",
    },
]


def chain(count: int) -> Any:
    names = ["x", *(f"layer_{number}/with/a/rather/long/name/Relu:0" for number in range(count - 1)), "y"]
    nodes = [node("Softmax", before, after) for before, after in pairwise(names)]
    return model("chain", nodes, [("x", (2, 8))], [("y", (2, 8))])


def shared() -> Any:
    """A result in place, a part of another one, and names that have to be cut."""
    layers = ("activation/Relu", "batch_normalization/FusedBatchNormV3", "conv2d/Conv2D")
    long = ";".join(f"model/block_17/{layer}" for layer in layers)
    nodes = [
        node("Softmax", "x", long),
        node("MatMul", f"{long} w", "wide"),
        node("Softmax", "wide", "b"),
        node("Concat", "b wide", "c", axis=0),
        node("Exp", "c", "y"),
    ]
    return model("shared", nodes, [("x", (2, 8))], [("y", (4, 32))], {"w": np.ones((8, 32), np.float32)})


def analysis_with_all(package: Any) -> dict[str, Any]:
    """As after measuring, with plans, and error against float."""
    functions = {function.name: 40 + number for number, function in enumerate(package.plan.functions)}
    steps = [{"us": 1.5 + number} for number, _ in enumerate(package.plan.steps())]
    measured = {"function_code_bytes": functions, "steps": steps, "median_us": 21.25, "code_bytes": 999}
    analysis = analysis_of(package, measured, frontier=PLANS)
    for number, step in enumerate(analysis["steps"]):
        step["signal_to_noise"] = 40.0 - 7 * number
    return analysis


@pytest.fixture(scope="module")
def package() -> Any:
    return compiled(shared())


@pytest.fixture(scope="module")
def analysis(package: Any) -> dict[str, Any]:
    return analysis_with_all(package)


@pytest.fixture(scope="module")
def page(package: Any, analysis: dict[str, Any]) -> str:
    return page_of(package, analysis)


def test_figures_are_those_of_the_report(page: str, analysis: dict[str, Any], package: Any, tmp_path: Path) -> None:
    script = """const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
        document.querySelector(".tensors .more")?.click();
        return { bars: all("[data-metric]", e => [e.dataset.metric, Number(e.dataset.step), Number(e.dataset.value)]),
          tiles: all("[data-figure]", e => [e.dataset.figure, Number(e.dataset.value)]),
          blocks: all(".block", e => Number(e.dataset.bytes)),
          rows: all(".trow [data-bytes]", e => Number(e.dataset.bytes)),
          bound: all(".bound", e => Number(e.dataset.bytes)),
          plans: all(".plan [data-ram]", e => Number(e.dataset.ram)) }"""
    found = shown(page, script, tmp_path)
    report = json.loads(package.files["report.json"])
    tiles = dict(found["tiles"])
    keys = ("arena_bytes", "arena_bound_bytes", "arena_naive_bytes", "weights_bytes", "macs")
    assert {key: tiles[key] for key in keys} == {key: report[key] for key in keys}
    assert tiles["median_us"] == 21.25 and tiles["code_bytes"] == 999
    bars: dict[str, dict[int, float]] = {}
    for metric, step, value in found["bars"]:
        bars.setdefault(metric, {})[step] = value
    for number, step in enumerate(report["steps"]):
        assert bars["macs"].get(number, 0) == step["macs"]
    for number, step in enumerate(analysis["steps"]):
        assert bars["ram"][number] == step["ram_bytes"] and bars["time"][number] == step["measured_us"]
        assert bars["flash"][number] == step["weights_bytes"] + step["code_bytes"]
        assert bars["noise"][number] == step["signal_to_noise"]
    sizes = sorted(b["high"] - b["low"] for b in report["buffers"])
    assert sorted(found["blocks"]) == sorted(found["rows"]) == sizes
    assert found["bound"] == [report["arena_bound_bytes"]]
    assert sorted(found["plans"]) == sorted(plan["ram_bytes"] for plan in PLANS)


CLICKS = """
    const panel = document.getElementById("detail"), read = () => panel.textContent;
    const click = node => { node.dispatchEvent(new MouseEvent("click", { bubbles: true })); return read(); };
    const each = selector => [...document.querySelectorAll(selector)].map(node => [node.dataset.pick, click(node)]);
"""


def test_a_network_of_floats_loses_nothing_to_integers(tmp_path: Path) -> None:
    plain = page_of(compiled(chain(2), Options()), analysis_of(compiled(chain(2), Options())))
    cards = shown(plain, 'return [...document.querySelectorAll(".card")].map(card => card.textContent);', tmp_path)
    assert "it computes in floats" in cards[3]


@pytest.mark.parametrize("width", [1400, 390])
def test_a_click_on_any_element_shows_what_it_is(
    page: str, analysis: dict[str, Any], tmp_path: Path, width: int
) -> None:
    script = (
        CLICKS
        + """document.querySelector(".tensors .more")?.click();
        const found = {};
        for (const kind of [".lrow[data-pick]", ".block", ".trow[data-pick]", ".shared", ".plan", ".prow[data-pick]",
            ".card[data-pick]"])
          found[kind] = each(kind);
        click(document.querySelector(".lrow[data-pick]"));
        found.links = [...panel.querySelectorAll("[data-pick]")].length;
        found.link = click(panel.querySelector("[data-pick]"));
        found.linked = document.querySelectorAll(".lrow.linked").length;
        document.querySelector("#detail .close").click();
        found.closed = document.querySelectorAll(".on, .linked").length;
        return found;"""
    )
    found = shown(page, script, tmp_path, width)
    steps, buffers = analysis["steps"], analysis["buffers"]
    for kind in (".lrow[data-pick]", ".card[data-pick]"):
        for pick, text in found[kind]:
            what, _, number = pick.split()
            names = {"step": steps[int(number)]["nodes"] if what == "step" else []}.get(what, [])
            assert all(name in text for name in names), "a name is shown in full"
    assert [pick for pick, _ in found[".lrow[data-pick]"]] == [f"step 0 {n}" for n in range(len(steps))]
    for number, (_, text) in enumerate(found[".lrow[data-pick]"]):
        assert steps[number]["kernel"] in text and steps[number]["function"] in text and "lines" in text
    for kind in (".block", ".trow[data-pick]"):
        assert sorted(int(pick.split()[2]) for pick, _ in found[kind]) == [*range(len(buffers))]
        for pick, text in found[kind]:
            buffer = buffers[int(pick.split()[2])]
            assert buffer["name"] in text and f"{buffer['high'] - buffer['low']:,} B" in text
    assert found[".shared"] and all("Shares bytes with" in text for _, text in found[".shared"])
    for kind in (".plan", ".prow[data-pick]"):
        assert all(PLANS[int(pick.split()[2])]["options"] in text for pick, text in found[kind])
        assert len(found[kind]) == len(PLANS)
    assert found["links"] and found["link"] and found["linked"] and not found["closed"]


def test_a_step_leads_to_its_lines_of_c(page: str, package: Any, tmp_path: Path) -> None:
    script = (
        CLICKS
        + """const found = [...document.querySelectorAll(".lrow[data-pick]")].map(row => { click(row);
        return [...panel.querySelectorAll("details.source")].map(each => [each.querySelector("summary").textContent,
          [...each.querySelectorAll("[data-line]")].map(line => [Number(line.dataset.line), line.textContent])]) });
        return found;"""
    )
    steps = [*package.plan.steps()]
    for step, pieces in zip(steps, shown(page, script, tmp_path), strict=True):
        assert {title.split(",")[0] for title, _ in pieces} >= {"shared.c", "shared_kernels.c"}
        for title, lines in pieces:
            written = package.files[title.split(",")[0]].decode().split("\n")
            assert all(text.strip() == written[number - 1].strip() for number, text in lines)
        assert any(step.function.name in text for _, lines in pieces for _, text in lines)


@pytest.mark.parametrize("width", [400, 1400])
def test_copies_lie_under_the_steps_that_run_meanwhile(width: int, tmp_path: Path) -> None:
    made = with_weights(CHAIN, 4)
    package = tiled(made, mem=(Pool("near", 32 << 10, 0), Pool("away", None, 1, copied=True)))
    analysis = analysis_of(package)
    script = """
      const at = bar => [bar.x.baseVal.value, bar.width.baseVal.value];
      const bars = kind => [...document.querySelectorAll(kind)].map(at);
      return { copies: bars("#timeline svg .copy"), steps: bars("#timeline svg .span"),
        early: bars("#timeline svg .early").length, overlaps: overlaps().found };"""
    found, told = shown(studio_page([view(analysis)]), script, tmp_path, width), analysis["timeline"]
    assert len(found["steps"]) == len(told["calls"]) and found["overlaps"] == []
    assert found["early"] == sum(copy["last"] > copy["first"] for copy in told["copies"]) > 0
    for (x, wide), copy in zip(found["copies"], told["copies"], strict=True):
        last = found["steps"][copy["last"]]
        assert x == pytest.approx(found["steps"][copy["first"]][0])
        assert x + wide == pytest.approx(sum(last), abs=1)


def test_columns_sort_and_budgets_answer(page: str, analysis: dict[str, Any], tmp_path: Path) -> None:
    script = (
        CLICKS
        + """
        const order = () => [...document.querySelectorAll(".lrow[data-pick]")]
          .map(row => Number(row.dataset.pick.split(" ")[2]));
        const found = {};
        for (const key of ["macs", "flash", "ram", "time", "noise", ""]) {
          document.querySelector(`.lhead [data-sort="${key}"]`).click(); found[key] = order(); }
        const tensors = () => [...document.querySelectorAll(".trow [data-bytes]")].map(e => Number(e.dataset.bytes));
        document.querySelector(".tensors .more")?.click(); found.tensors = tensors();
        const budget = value => { const box = document.getElementById("budget"); box.value = value;
          box.dispatchEvent(new Event("change"));
          return [...document.querySelectorAll(".card")].map(card => card.textContent); };
        found.large = budget(64); found.small = budget(0.1); return found;"""
    )
    found = shown(page, script, tmp_path)
    steps = analysis["steps"]
    numbers = range(len(steps))
    assert found["macs"][0] == max(numbers, key=lambda n: steps[n]["macs"])
    assert found["time"] == sorted(numbers, key=lambda n: -steps[n]["measured_us"])
    assert found["noise"] == sorted(numbers, key=lambda n: steps[n]["signal_to_noise"]) and found[""] == [*numbers]
    assert found["tensors"] == sorted(found["tensors"], reverse=True)
    assert any("Yes: " in text for text in found["large"]) and "--prefer time" in found["large"][5]
    assert "Least RAM: --prefer ram takes 300 B of RAM" in found["large"][5]
    assert "75% more time" in found["large"][5]
    assert any("too much" in text for text in found["small"]) and "No plan fits" in found["small"][5]


def test_a_ring_says_how_many_lines_of_its_tensor_it_holds() -> None:
    analysis = analysis_of(compiled(chain(2)))
    buffer = {"name": "r", "start": 0, "end": 1, "low": 64, "high": 64 + 3 * 8 * 16 * 4, "at_peak": True}
    touch = {"role": "y", "type": "f32[1,16,24,8]", "buffer": 0, "written": True}
    steps = [{**analysis["steps"][0], "touches": [touch]}]
    assert view({**analysis, "buffers": [buffer], "steps": steps})["buffers"][0]["lines"] == 3
    whole = {**buffer, "high": 64 + 24 * 8 * 16 * 4}
    assert "lines" not in view({**analysis, "buffers": [whole], "steps": steps})["buffers"][0]


def test_a_workspace_is_called_after_its_step() -> None:
    """Its own name is made of every node of that step."""
    found = view(analysis_of(compiled(separable_int8(), Options(target="cortex-m4", prefer=Prefer.TIME))))
    spaces = [(b["label"], b["steps"]) for b in found["buffers"] if b["role"] == "workspace"]
    assert spaces and all(label == f"workspace of step {steps[0]}" for label, steps in spaces)


def test_the_title_is_there_once(page: str, tmp_path: Path) -> None:
    script = 'return [...document.getElementById("top").childNodes].map(node => node.textContent);'
    title, about = shown(page, script, tmp_path)
    assert title == "shared for generic" and about.startswith("mccompile ") and title not in about


def test_the_first_cards_answer_the_questions(page: str, analysis: dict[str, Any], tmp_path: Path) -> None:
    largest, _, slowest, worst, changed, plan = shown(
        page, 'return [...document.querySelectorAll(".card")].map(card => card.textContent);', tmp_path
    )
    most = max(b["high"] - b["low"] for b in analysis["buffers"])
    last = len(analysis["steps"]) - 1
    assert f"{most:,} B" in largest and analysis["steps"][last]["kernel"] in slowest and f"step {last}: " in slowest
    assert "\u22127.0 dB" in worst and "26.0 dB before it" in worst and "--since" in changed and "--prefer time" in plan


@some(2, "width", [1400, 768, 420, 390])
@pytest.mark.parametrize(
    "options", [Options(), Options(prefer=Prefer.RAM), Options(mem=(Pool("dtcm", 4096, 0), Pool("sram", None, 1)))]
)
def test_no_text_lies_over_another_one(options: Options, width: int, tmp_path: Path) -> None:
    for number, make in enumerate((small_models.branches, small_models.conv, shared)):
        made = compiled(make(), options)
        folder = tmp_path / str(number)
        folder.mkdir()
        opened = """const first = overlaps(); document.querySelector(".lrow[data-pick]").click();
            for (const each of document.querySelectorAll("details")) each.open = true;
            const cut = [...document.querySelectorAll(".scroll, .name, .kernel")]
              .filter(each => innerWidth < 1000 && each.scrollWidth > each.clientWidth + 1 && each.clientWidth);
            return [first, { ...overlaps(), cut: cut.map(each => each.textContent) }];"""
        for found in shown(page_of(made, analysis_with_all(made)), opened, folder, width):
            assert found["boxes"] > 30 and found["found"] == [] and found["wide"] <= 0 and not found.get("cut")


def test_loss_is_measured_from_the_last_layer_that_was_heard(tmp_path: Path) -> None:
    """Not from nothing where the layer before has no figure."""
    made = compiled(chain(4))
    analysis = analysis_of(made)
    for step, value in zip(analysis["steps"], (30.0, 18.0, None, 17.9), strict=True):
        if value is not None:
            step["signal_to_noise"] = value
    text = studio_page([view(analysis) | {"heard": "all 65 samples of pictures"}])
    cards = shown(text, 'return [...document.querySelectorAll(".card")].map(card => card.textContent);', tmp_path)
    assert "\u221212.0 dB" in cards[3] and "30.0 dB before it, 18.0 dB after it" in cards[3]
    assert "on all 65 samples of pictures" in cards[3]


@pytest.mark.parametrize(("ram", "said"), [(40_000, "Take --budget ram=min"), (80_000, "Options alone do not do it")])
def test_what_does_not_fit_says_what_to_change(ram: int, said: str, tmp_path: Path) -> None:
    build = view(analysis_of(compiled(chain(2))))
    build["figures"]["arena_bytes"] = 100_000
    build["smallest"] = {"ram_bytes": ram, "options": "--budget ram=min"}
    script = 'return [...document.querySelectorAll(".card")].map(card => card.textContent);'
    assert said in shown(studio_page([build]), script, tmp_path)[1]


def test_cards_name_nodes_where_tensors_are_called_otherwise(tmp_path: Path) -> None:
    build = view(analysis_of(compiled(chain(2))))
    for step in build["steps"]:
        step |= {"us": 1.0, "label": "token_25", "nodes": ["x_DequantizeLinear", "/attention/MatMul_1"]}
    script = 'return [...document.querySelectorAll(".card")].map(card => card.textContent);'
    slowest = shown(studio_page([build]), script, tmp_path)[2]
    assert "token_25/attention/MatMul_1" in slowest and "Dequantize" not in slowest


def test_what_changed_says_what_got_better_and_which_options_differ(tmp_path: Path) -> None:
    figures = [{"what": "RAM: arena, bytes", "before": 4000, "after": 3000}, {"what": "macs", "before": 5, "after": 5}]
    steps = [{"name": "y", "change": "another kernel", "step": 1}, {"name": "x", "change": "is gone"}]
    since = {"build": 0, "before": "old", "after": "new", "figures": figures, "steps": steps, "options": ["now -O0"]}
    text = studio_page([view(analysis_of(compiled(chain(2))))], {"since": since})
    script = 'return [".card:nth-child(5)", "#changes"].map(each => document.querySelector(each).textContent);'
    card, below = shown(text, script, tmp_path)
    assert "4,000 \u2192 3,000 (\u221225%)" in card and "now -O0" in card and "has no time" in card
    assert "now -O0" in below and "No figure got worse" in below


@pytest.mark.parametrize("width", [1400, 390])
def test_five_columns_beside_each_other_have_room(width: int, tmp_path: Path) -> None:
    builds = [analysis_with_all(compiled(small_models.branches())) for _ in range(2)]
    for step in (step for build in builds for step in build["steps"]):
        step["measured_instructions"] = 10.0 + step.pop("measured_us")
    found = shown(studio_page([view(build) for build in builds], {}), "return overlaps();", tmp_path, width)
    assert found["found"] == [] and found["wide"] <= 0


def test_overlaps_are_seen(page: str, tmp_path: Path) -> None:
    script = 'document.querySelector("h1").style.marginBottom = "-40px"; return overlaps();'
    assert shown(page, script, tmp_path)["found"]


@pytest.mark.parametrize("complaint", ["console.error('a')", "noSuchName()"])
def test_complaints_are_seen(complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Runtime"):
        shown(f"<p>text</p><script>{complaint}</script>", "return 1;", tmp_path)


@pytest.mark.parametrize("width", [1400, 390])
def test_builds_stand_side_by_side(width: int, tmp_path: Path) -> None:
    builds = [analysis_with_all(compiled(shared(), options)) for options in (Options(), Options(target="cortex-m4"))]
    count = [len(build["steps"]) for build in builds]
    more = {
        "pairs": [[[0, 1, n, n] for n in range(min(count))]],
        "without": ["cortex-m4 was not measured"],
        "since": {
            "build": 1,
            "before": "old",
            "after": "new",
            "worst": ["RAM: 1 → 2"],
            "figures": [{"what": "RAM", "before": 1, "after": 2}],
            "steps": [{"name": "a", "change": "gone"}, {"name": "b", "change": "kernel x → y", "step": 0}],
        },
    }
    text = studio_page([view(build) for build in builds], more)
    script = (
        CLICKS
        + """click(document.querySelector(".lrow[data-pick]"));
        const rows = [...document.querySelectorAll(".lrow[data-pick]")];
        return { pairs: rows.map(row => row.querySelectorAll(".kernel").length),
          maps: document.querySelectorAll("svg.map").length,
          stray: [...document.querySelectorAll("section, header")].flatMap(each => [...each.childNodes])
            .filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data),
          twin: panel.textContent, ...overlaps(),
          values: [...document.querySelectorAll('[data-figure="arena_bytes"]')].map(e => Number(e.dataset.value)),
          change: click(document.querySelector("#changes [data-pick]")) }"""
    )
    found = shown(text, script, tmp_path, width)
    assert found["pairs"][: min(count)] == [2] * min(count) and found["maps"] == 2
    assert found["values"] == [build["arena_bytes"] for build in builds]
    assert found["stray"] == []
    assert "The same layer in other builds" in found["twin"] and "Step 0" in found["change"]
    assert found["found"] == [] and found["wide"] <= 0


def test_names_are_text() -> None:
    made = small_models.conv()
    for each in made.graph.node:
        each.name = f"</script><script>alert('{each.name}')</script>"
    text = page_of(package := compiled(made), analysis_of(package))
    assert "<script>alert" not in text and "\\u003cscript>alert" in text


def test_it_needs_nothing_from_elsewhere(page: str) -> None:
    assert "src=" not in page and "@import" not in page and "fetch(" not in page
    assert page.replace("http://www.w3.org/2000/svg", "").count("http") == 0


def test_500_steps_are_less_than_two_megabytes_and_sort_at_once(tmp_path: Path) -> None:
    made = compiled(chain(500))
    text = page_of(made, analysis_of(made))
    assert len(text.encode()) < 2_000_000
    script = """const rows = () => document.querySelectorAll(".lrow[data-pick]").length, before = rows();
        document.querySelector('.lhead [data-sort="ram"]').click(); return [before, rows()];"""
    assert shown(text, script, tmp_path) == [500, 500]


def test_lines_of_c_are_those_of_their_steps() -> None:
    package = compiled(small_models.branches())
    steps = [*package.plan.steps()]
    pieces = [*lines_of(package)]
    for number, step in enumerate(steps):
        own = [piece for piece in pieces if number in piece["steps"] and piece["what"] in ("step", "function")]
        assert {piece["what"] for piece in own} == {"step", "function"}
        assert all(step.function.name in piece["text"] for piece in own)
