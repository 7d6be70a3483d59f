"""Options of other tools that nothing here corresponds to, and why none is needed. The only such table.

Invariant: a reason completes `leave out --no-malloc: `, in words that hold for each command named in front of it.
"""

from __future__ import annotations

# [commands :] words = why
_LINES = """
no-malloc malloc static static-memory static-allocation use-static no-heap = generated C never calls malloc
allocate-inputs allocate-outputs allocate-activations = a program passes its own arrays for inputs and outputs
runtime executor executor-kind interface-api c-api crt = what is written is plain C without a runtime
executor-aot-interface-api pass-config system-lib = what is written is plain C without a runtime
opset target-opset opset-version = models of every opset are read
simplify onnxsim constant-folding fold fuse fusion no-simplify graph-optimization-level = graphs are always simplified
convert : to format to-format output-format target-format = the result is always ONNX, which `mccompile` compiles to C
quantize : to format quant-format output-format = the result is always ONNX with QuantizeLinear and DequantizeLinear
per-channel per-axis perchannel = weights always have a scale for each channel
activation-type activations-type act-type activation-dtype = activations are always int8
reference backend provider providers ep execution-provider = onnxruntime is the reference, where it is installed
qemu emulator fvp renode = programs for a --target with an emulator run under it
freq frequency cpu-freq clock clock-speed mhz = instructions are counted, and they do not depend on the clock
unit units = times are in ms, sizes in bytes
bench : ms us = times are in ms, sizes in bytes
ops : boards : targets : list all = without a name, it lists all
serve : p port host listen address baud baudrate baud-rate = the board's program brings its own serial line
bench : iterations iters iter repeat repeats reps loops n-runs num-runs runs count times warmup warm-up trials = \
it runs as often as the figures need, and instructions of a run are counted exactly
port host listen address = the page is one file, which every browser opens
tuner strategy search = each kernel that fits is measured
epochs num-epochs n-epochs = the program decides how often it learns: each <model>_learn is one batch
blob : o out output = it writes into the folder that --for names
imgproc : normalize normalise standardize mean std = compile the network with --input x=u8,mean=127.5,scale=1/127.5
--wrapper : python py ctypes = Python compiles and checks by `import mccompile`, and calls a shared library by ctypes
--wrapper : other = every language that calls C uses the header as it is
labels label-file class-names classes labels-file = the program has the names; --output y=argmax gives the number of one
"""


def _table() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for line in _LINES.strip().splitlines():
        names, _, why = line.partition(" = ")
        *commands, words = names.split(" : ")
        found |= {(command, word): why for command in commands or [""] for word in words.split()}
    return found


NEEDLESS = _table()


def needless(word: str, command: str) -> str:
    """Why a command needs no such option; empty where the table does not have it."""
    plain = word.lower().lstrip("-").replace("_", "-")
    return NEEDLESS.get((command, plain)) or NEEDLESS.get(("", plain), "")
