"""What mccompile is compared with: libraries that run a network on a CPU, with one thread or several.

A peer takes part if its Python module is installed: onnxruntime, openvino, ncnn (with pnnx, which converts the network)
and ai-edge-litert, which reads MODEL.tflite beside MODEL.onnx. Inputs and outputs are bound before anything is timed.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Contestant:
    name: str
    results: list[np.ndarray]
    times: Callable[[int], list[float]]  # so many runs -> seconds of each
    macs: int = 0
    arena: int = 0
    narrow: bool = False  # are there tensors of 8 bits, or 16-bit floats?


def peers_of(model: Path, inputs: Inputs, folder: Path, wanted: Sequence[str], threads: int = 1) -> list[Contestant]:
    """Those of the wanted that are installed and can run the model, ready to run; what they have to write goes to
    `folder`."""
    found = [PEERS[name](model, inputs, folder, threads) for name in wanted if name not in missing(wanted)]
    return [peer for peer in found if peer is not None]


def missing(wanted: Sequence[str]) -> list[str]:
    """Those of the wanted that are not installed."""
    return [name for name in wanted if importlib.util.find_spec(name) is None]


def versions(wanted: Sequence[str]) -> str:
    """Of the wanted that are installed: "onnxruntime 1.32.0, openvino 2026.4.1"."""
    there = [name for name in wanted if name not in missing(wanted)]
    return ", ".join(f"{name} {metadata.version(name.replace('_', '-'))}" for name in there)


def _onnxruntime(model: Path, inputs: Inputs, folder: Path, threads: int) -> Contestant | None:
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as refusals

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, value in inputs.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(value))
        for output in session.get_outputs():
            binding.bind_output(output.name)
        session.run_with_iobinding(binding)
    except (
        refusals.Fail,
        refusals.InvalidArgument,
        refusals.InvalidGraph,
        refusals.NotImplemented,
        refusals.RuntimeException,  # of kernels that refuse a case only when they run
    ):
        return None
    results = [np.asarray(value) for value in binding.copy_outputs_to_cpu()]
    return Contestant("onnxruntime", results, _timed(lambda: session.run_with_iobinding(binding)))


def _openvino(model: Path, inputs: Inputs, folder: Path, threads: int) -> Contestant | None:
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    try:
        network = core.read_model(model)
        if network.is_dynamic():
            network.reshape({name: list(value.shape) for name, value in inputs.items()})
        compiled = core.compile_model(network, "CPU", settings)
        request = compiled.create_infer_request()
        for name, value in inputs.items():
            request.set_tensor(name, openvino.Tensor(np.ascontiguousarray(value)))
        request.infer()
    except RuntimeError:  # an operator that it does not have
        return None
    results = [np.array(request.get_tensor(output).data) for output in compiled.outputs]
    return Contestant("openvino", results, _timed(request.infer))


def _ncnn(model: Path, inputs: Inputs, folder: Path, threads: int) -> Contestant | None:
    program = shutil.which("pnnx", path=str(Path(sys.executable).parent)) or shutil.which("pnnx")
    if program is None or len(inputs) != 1:
        return None
    (value,) = inputs.values()
    shape = f"[{','.join(map(str, value.shape))}]{'f32' if value.dtype.kind == 'f' else 'i64'}"
    shutil.copy(model, folder / "m.onnx")
    done = subprocess.run([program, "m.onnx", f"inputshape={shape}", "fp16=0"], cwd=folder, capture_output=True)
    if done.returncode != 0 or not (folder / "m.ncnn.param").is_file():
        return None
    ncnn = importlib.import_module("ncnn")
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = False
    for narrow in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{narrow}", False)
    if net.load_param(str(folder / "m.ncnn.param")) or net.load_model(str(folder / "m.ncnn.bin")):
        return None
    batch = value.astype(np.int32) if value.dtype.kind == "i" else value
    first = ncnn.Mat(np.ascontiguousarray(batch[0] if batch.ndim > 1 else batch)).clone()

    def run() -> object:
        with net.create_extractor() as extractor:
            extractor.input("in0", first)
            return extractor.extract("out0")[1]

    return Contestant("ncnn", [np.array(run())], _timed(run))


def _litert(model: Path, inputs: Inputs, folder: Path, threads: int) -> Contestant | None:
    converted = model.with_suffix(".tflite")
    if not converted.is_file() or len(inputs) != 1:
        return None
    runtime = importlib.import_module("ai_edge_litert.interpreter")
    interpreter = runtime.Interpreter(str(converted), num_threads=threads)
    interpreter.allocate_tensors()
    (value,) = inputs.values()
    place, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    if tuple(place["shape"]) != value.shape and value.ndim == 4:
        value = value.transpose(0, 2, 3, 1)  # converted to have channels last
    interpreter.set_tensor(place["index"], np.ascontiguousarray(value).astype(place["dtype"]))
    interpreter.invoke()
    return Contestant("litert", [interpreter.get_tensor(result["index"])], _timed(interpreter.invoke))


PEERS: Mapping[str, Callable[[Path, Inputs, Path, int], Contestant | None]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "ncnn": _ncnn,
    "ai_edge_litert": _litert,
}


def _timed(run: Callable[[], object]) -> Callable[[int], list[float]]:
    def times(count: int) -> list[float]:
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return seconds

    return times
