"""Language models beside llama.cpp and onnxruntime: `python -m benchmarks.language --sizes 15M,135M --types Q4_0,F32`

Decoders of Llama's form with random weights, as GGUF files (package gguf): the time of a token behind a prompt of 16,
and of a prompt of 512, of one thread, as CPU time. All take turns in one process; the least of the rounds counts for
each token. llama.cpp is that of the package llama_cpp (llama-cpp-python), built for this machine; onnxruntime reads the
ONNX model that mccompile makes of the file. A peer that is not installed is left out.

The core's limits take turns too: reading as many bytes as the weights have, where the weights lie, and multiply-adds on
registers, of floats, or of bytes where activations are rounded to int8. A token reads all weights once, since the table
is the head too; multiply-adds are those that the network cannot do without, no masked ones. So `least` is the time that
no program on this core is below, whatever it does besides; shares above 1 mean that weights stayed in a cache.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.driver import Options
from mccompile.driver import compile as compile_model
from mccompile.emit.blob import Carrier
from mccompile.emit.model import state_bytes
from mccompile.emit.summary import table
from mccompile.frontend.load import read_proto
from mccompile.measure.limits import Limits
from mccompile.targets.api import Prefer, load
from mccompile.toolchain.build import compile_shared, find_compiler

SIZES = {  # width, hidden, layers, heads, groups, vocabulary
    "15M": (288, 768, 6, 6, 6, 32000),
    "135M": (576, 1536, 30, 9, 3, 49152),
    "360M": (960, 2560, 32, 15, 5, 49152),
}
PROMPT, SHORT, DECODED = 512, 16, 32
LIMITED = 3  # attempts at the core's limits in a round
Step = Callable[[np.ndarray], None]  # takes tokens behind those that it has


@dataclass(frozen=True)
class Runner:
    name: str
    restart: Callable[[], None]
    step: Step
    batch: int  # tokens of a prompt that it takes at once
    weights: np.ndarray | None = None  # where they lie, of ours
    in_bytes: bool = False  # does it multiply bytes?
    used: float = 0.0  # arena and weights, of weights and cache


@dataclass(frozen=True)
class Found:
    """Seconds; `least`: those of the core's limits."""

    token: float
    prompt: float
    least_token: float = 0.0
    least_prompt: float = 0.0
    read: float = 0.0  # share of the core's bandwidth that a token reads weights with
    used: float = 0.0


@dataclass(frozen=True)
class Work:
    """Multiply-adds that a network cannot do without."""

    token: float
    prompt: float

    @staticmethod
    def of(size: str) -> Work:
        width, hidden, layers, heads, groups, vocabulary = SIZES[size]
        narrow, head = width // heads * groups, width * vocabulary
        layer = 2 * width * (width + narrow) + 3 * width * hidden
        seen = 2 * width * layers  # keys and values, of a pair of positions
        one = layers * layer + head + seen * (SHORT + (DECODED + 1) / 2)
        return Work(one, PROMPT * layers * layer + head + seen * PROMPT * (PROMPT + 1) / 2)


def gguf_file(path: Path, size: str, kind: str) -> Path:
    gguf = importlib.import_module("gguf")
    width, hidden, layers, heads, groups, vocabulary = SIZES[size]
    chance, narrow = np.random.default_rng(1), width // heads * groups
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_vocab_size(vocabulary)
    writer.add_context_length(1024)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_tokenizer_model("none")
    stored = gguf.GGMLQuantizationType[kind]

    def add(name: str, *shape: int) -> None:
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", np.ones(shape, np.float32))
            return
        drawn = chance.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[1]))
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(drawn, stored), raw_dtype=stored)

    add("token_embd", vocabulary, width)
    add("output_norm", width)
    for n in range(layers):
        add(f"blk.{n}.attn_norm", width)
        add(f"blk.{n}.ffn_norm", width)
        shapes = {"attn_q": (width, width), "attn_k": (narrow, width), "attn_v": (narrow, width)}
        shapes |= {"attn_output": (width, width), "ffn_gate": (hidden, width), "ffn_up": (hidden, width)}
        for name, shape in (shapes | {"ffn_down": (width, hidden)}).items():
            add(f"blk.{n}.{name}", *shape)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return path


_GLUE = """#include "net.h"
static net_model m;
unsigned long arena_bytes(void) { return NET_ARENA_BYTES; }
int start(void *arena, const void *w, unsigned long n) { return net_init(&m, arena, NET_ARENA_BYTES, w, n) != MCC_OK; }
int restart(void) { return net_reset(&m) != MCC_OK; }
const float *logits(void) { return net_output_logits(&m); }
int step(const int64_t *tokens, int count)
{
    if (net_resize(&m, (mcc_index)count) != MCC_OK) return 1;
    for (int i = 0; i < count; i++) net_input_input_ids(&m)[i] = tokens[i];
    return net_run(&m) != MCC_OK;
}
"""


def ours(path: Path, folder: Path, batch: int, **options: Any) -> Runner:
    dims = {"past": (0, PROMPT), "tokens": (1, batch)}
    chosen = Options(target="native", prefer=Prefer.TIME, dims=dims, name="net", blob=Carrier.EXTERNAL, **options)
    package = compile_model(path, chosen)
    package.write(folder)
    (folder / "glue.c").write_text(_GLUE)
    target, sources = chosen.resolved_target(), [folder / name for name in ("net.c", "net_kernels.c", "glue.c")]
    places = [folder, folder / "runtime"]
    made = compile_shared(find_compiler(target.compiler), sources, places, folder / "net.so", target.cflags)
    code = ctypes.CDLL(str(made))
    code.arena_bytes.restype = ctypes.c_ulong
    data = np.fromfile(folder / "net.mcb", np.uint8)
    arena, weights = _aligned(code.arena_bytes()), _aligned(data.size)
    weights[:] = data
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (arena, weights)]
    assert code.start(*pointers, ctypes.c_ulong(data.size)) == 0
    cache = state_bytes(package.plan)
    used = (arena.size + data.size) / (data.size + cache)
    print(
        f"    {options}: weights {data.size:,}, cache {cache:,}, arena {arena.size:,}: {used:.3f} of both", flush=True
    )

    def step(tokens: np.ndarray, held: Sequence[Any] = (arena, weights)) -> None:
        given = np.ascontiguousarray(tokens, np.int64)
        assert code.step(ctypes.c_void_p(given.ctypes.data), len(given)) == 0

    name = "mccompile" + "".join(f", {value}" for value in options.values())
    return Runner(name, code.restart, step, batch, weights, bool(options), used)


def _aligned(size: int) -> np.ndarray:
    whole = np.zeros(size + 64, np.uint8)
    begin = -whole.ctypes.data % 64
    return whole[begin : begin + size]


def llama_cpp(path: Path) -> Runner:
    lib = importlib.import_module("llama_cpp")
    quiet = lib.llama_log_callback(lambda *_: None)
    lib.llama_log_set(quiet, ctypes.c_void_p(0))
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
    how = lib.llama_context_default_params()
    how.n_ctx, how.n_batch, how.n_ubatch, how.n_threads, how.n_threads_batch = 1024, PROMPT, PROMPT, 1, 1
    context = lib.llama_init_from_model(model, how)
    print(f"    llama.cpp: {lib.llama_print_system_info().decode()}", flush=True)

    def restart() -> None:
        lib.llama_memory_clear(lib.llama_get_memory(context), True)

    def step(tokens: np.ndarray, held: Any = quiet) -> None:
        given = (ctypes.c_int32 * len(tokens))(*tokens.tolist())
        assert lib.llama_decode(context, lib.llama_batch_get_one(given, len(tokens))) == 0
        lib.llama_synchronize(context)

    return Runner("llama_cpp", restart, step, PROMPT)


def onnxruntime(path: Path) -> Runner:
    ort = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(read_proto(path).SerializeToString(), options, providers=["CPUExecutionProvider"])
    caches = session.get_inputs()[1:]
    names = [output.name for output in session.get_outputs()]
    held: dict[str, Any] = {}

    def restart() -> None:
        for each in caches:
            nothing = np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32)
            held[each.name] = ort.OrtValue.ortvalue_from_numpy(nothing)

    def step(tokens: np.ndarray) -> None:
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", np.ascontiguousarray(tokens[None], np.int64))
        for name, value in held.items():
            binding.bind_ortvalue_input(name, value)
        for name in names:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        made = dict(zip(names, binding.get_outputs(), strict=True))
        held.update({name: made[name.replace("past_key_values", "present")] for name in held})

    return Runner("onnxruntime", restart, step, PROMPT)


def timed(runners: Sequence[Runner], rounds: int, tokens: np.ndarray, work: Work) -> dict[str, Found]:
    best: dict[tuple[str, object], float] = {}
    limits = Limits(load("native"), clock=time.thread_time)

    def keep(name: str, kind: object, spent: float) -> None:
        best[name, kind] = min(spent, best.get((name, kind), spent))

    for _ in range(rounds):
        for runner in runners:
            whole = [tokens[at : at + runner.batch] for at in range(0, PROMPT, runner.batch)]
            for kind, parts in (("prompt", whole), ("first", [tokens[:SHORT]])):
                runner.restart()
                keep(runner.name, kind, sum(_spent(runner.step, part) for part in parts))
            for n in range(DECODED):
                keep(runner.name, n, _spent(runner.step, tokens[n : n + 1]))
            weights = runner.weights
            for _ in range(LIMITED):
                if weights is None:
                    break
                keep(runner.name, "product", 1 / (limits.bytes() if runner.in_bytes else limits.floats()))
                keep(runner.name, "read", weights.nbytes / limits.read(weights))
    return {runner.name: _found(runner, best, work) for runner in runners}


def _found(runner: Runner, best: Mapping[tuple[str, object], float], work: Work) -> Found:
    token, prompt = sum(best[runner.name, n] for n in range(DECODED)) / DECODED, best[runner.name, "prompt"]
    if runner.weights is None:
        return Found(token, prompt)
    product, read = best[runner.name, "product"], best[runner.name, "read"]
    return Found(token, prompt, max(read, work.token * product), work.prompt * product, read / token, runner.used)


def _spent(step: Step, tokens: np.ndarray) -> float:
    begin = time.thread_time()
    step(tokens)
    return time.thread_time() - begin


def row(name: str, found: dict[str, Found]) -> list[str]:
    """Times, shares of the core's limits, and shares of the times of peers; of a token / of the prompt."""
    own = found[name]
    made = [name, f"{1e3 * own.token:.2f} ms", f"{1e3 * own.prompt:.0f} ms"]
    if name in PEERS:
        return made + [""] * (3 + len(PEERS))
    made += [f"{own.read:.2f}", f"{own.least_token / own.token:.2f} / {own.least_prompt / own.prompt:.2f}"]
    made.append(f"{own.used:.3f}")
    for peer in PEERS:
        other = found.get(peer)
        shares = [
            f"{token / other.token:.2f} / {prompt / other.prompt:.2f}"
            for token, prompt in ((own.token, own.prompt), (own.least_token, own.least_prompt))
            if other
        ]
        made.append(", least ".join(shares))
    return made


PEERS: dict[str, Callable[[Path], Runner]] = {"llama_cpp": llama_cpp, "onnxruntime": onnxruntime}


def main() -> None:
    arguments_of = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments_of.add_argument("--sizes", default="15M")
    arguments_of.add_argument("--types", default="F32,Q8_0,Q4_0")
    arguments_of.add_argument("--peers", default=",".join(PEERS))
    arguments_of.add_argument("--rounds", type=int, default=5)
    arguments_of.add_argument("--batch", type=int, default=128, help="tokens of a prompt in a run of ours")
    arguments = arguments_of.parse_args()
    if hasattr(os, "sched_setaffinity"):  # the limits are those of the core that all run on
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows: list[list[str]] = []
    peers = [name for name in arguments.peers.split(",") if importlib.util.find_spec(name)]
    for size, kind in ((s, k) for s in arguments.sizes.split(",") for k in arguments.types.split(",")):
        tokens = np.random.default_rng(2).integers(0, SIZES[size][-1], PROMPT)
        print(f"{size} {kind}, load {os.getloadavg()[0]:.1f}", flush=True)
        with tempfile.TemporaryDirectory() as place:
            path = gguf_file(Path(place, "net.gguf"), size, kind)
            ways: list[dict[str, Any]] = [{}] if kind == "F32" else [{}, {"block_activations": "int8"}]
            runners = [ours(path, Path(place, str(n)), arguments.batch, **way) for n, way in enumerate(ways)]
            runners += [PEERS[name](path) for name in peers]
            found = timed(runners, arguments.rounds, tokens, Work.of(size))
        rows += [[f"{size} {kind}", *row(name, found)] for name in found]
        print("\n".join(" ".join(each) for each in rows[-len(found) :]), flush=True)
    head = ["", "", "a token", f"a prompt of {PROMPT}", "of bandwidth", "of limits", "memory"]
    print(*table([*head, *(f"of {name}" for name in PEERS)], rows), sep="\n")


if __name__ == "__main__":
    main()
