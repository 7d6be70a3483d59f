"""What users of other tools call things that are called otherwise here: options, commands, values. The only such table.

Invariant: each word leads to words of ours, the likeliest first; `near` takes the first that is known where it stands.
Behind `~` stands an option whose values are of another kind, so that a value must not be carried over.
A word of several parts is looked for as a whole, then without what is said in front of it (`max-ram`, `ram`).
"""

from __future__ import annotations

_LINES = """
# commands
run test verify validate evaluate eval predict infer inference simulate emulate = check
build make generate gen codegen emit deploy translate aot = compile
export import onnx torch2onnx tf2onnx = convert compile
optimize optimise simplify = compile
benchmark profile time measure perf latency speed = bench
inspect info show summary describe visualize visualise report stats memory layers = analyze
list devices boards platforms chips = targets
operators supported support = ops
calibrate ptq quantize-static quantize-dynamic quantise = quantize
flash upload program = deploy
check-install env system = doctor
view dashboard page = analyze
# options
out outdir out-dir output-dir output-folder dest destination dir out-file output-file outfile = -o --output
board mcu chip device platform cpu mcpu arch march mtriple triple soc core machine = --target
optimize optimise opt optimization optimisation opt-level goal objective optimize-for optimise-for favor = --prefer
compression compress = --prefer
lang language bindings = --wrapper
format project ecosystem sdk rtos template layout-of-files export = --package --for
overwrite yes y f replace clobber no-clobber = --force
debug log-level log verbosity vv trace = --verbose
silent no-log = --quiet
batch batch-size batchsize dims dimension free-dim override-batch = --dim
input-shape input-shapes shapes inputs-shape override-input-shape = --shape
ram sram memory memory-limit heap arena arena-size activations-size stack limit max = --budget
flash rom progmem const = --budget array
pool memories memory-pool region = --mem
snr sqnr psnr db decibels = --sensitivity
accuracy acc max-drop max-loss accuracy-loss accuracy-drop target-accuracy = ~--sensitivity
exclude-nodes nodes-to-exclude op-types op-types-to-quantize nodes-to-quantize = ~--sensitivity
skip-layers mixed-precision = ~--sensitivity
trials n-trials num-trials n-trial timeout budget-time = ~--time
rpc rpc-tracker rpc-host remote = ~--serial
database cache-file log-file records o out output = --database
folder code out-dir output-dir = --for
inference-input-type input-type input-dtype = --input
allow-custom-ops = --external
csv yaml yml xml = --json
p pass run-passes apply = --passes
prefix namespace model-name symbol-prefix = --name
split-weights separate-weights weights-file weights-bin external-weights = ~--blob external
ethos ethos-u ethosu vela npu accel = ~--accelerator
freeze trainable trainable-layers layers = ~--learn
tolerance tol eps epsilon delta rel-tol reltol precision = --rtol --weights-dtype
abs-tol abstol atol = --atol
inputs input-data test-data dataset samples data-dir dataset-dir feed npz = --data --quantize
representative-dataset calibration calibration-data calibration-dataset calib = --data --quantize
quantise quantized quantised quantization int8 i8 ptq full-integer = --quantize --data
quantize = --data
bits nbits weight-bits wbits dtype weight-type = --weights --weights-dtype
method calibrate-method calibration-method algorithm calib-method = --calibrate
lr learning-rate = --optimizer
fp16 half float16 f16 bf16 bfloat16 weights-type float-type = --weights-dtype
jobs j num-threads nthreads cores workers = --threads
custom-op custom-ops custom plugin plugins op-library = --external
nhwc nchw channels-last io-format data-layout data-format layout = --io-layout
c++ cpp cxx rust js javascript typescript = --wrapper
zephyr arduino esp-idf espidf cmsis-pack platformio cmake cargo npm = --package
exclude disable skip no-pass = --without
page report open browser web = --html
port tty com com-port uart usb serial-port = --serial
baseline base previous prev before old compare compare-to compare-with = --since
markdown md pr = --markdown
compiler gcc clang toolchain = --cc
iterations repeat repeats reps loops n-runs num-runs iters count times = --runs
sample-rate samplerate sr fs = --rate
n-mels num-mels mel-bins num-mel-bins nmels = --mels
n-fft nfft fft-size fft-length = --fft
hop-length hop-size stride frame-step = --hop
win-length window-size frame-length win = --window
n-mfcc num-mfcc mfcc-coefficients = --coefficients
fmin f-min low-freq = --low
fmax f-max high-freq = --high
# values
speed fast faster fastest performance perf latency cycles o3 o2 ofast throughput 3 2 = time instructions balanced
size small smaller smallest compression compress code codesize code-size os oz rom s z binary = flash weights
memory mem sram heap peak arena dram = ram
default auto both 1 o1 = balanced
ram,time time,ram ram+time time+ram ram*time ram,time,flash = balanced
latency cycles time inst = instructions time
rust rs crate = cargo rust
js javascript node nodejs web typescript wasm = npm javascript
c++ cxx c++17 = cpp
c plain gcc makefile = make cpp
micropython-c mpy = micropython
cmsis keil uvision mdk = cmsis-pack
espidf esp idf esp32 = esp-idf
pio platform-io = platformio
west zephyr-rtos = zephyr
uint8 byte = u8
int8 q7 s8 = i8 int8
uint16 = u16
int16 q15 s16 = i16
int32 int = i32
fp32 float32 float = f32
fp16 half float16 = f16
bfloat16 = bf16
channels-last channels_last hwc = nhwc
nchw channels-first channels_first chw default = onnx
rgb888 rgb24 = rgb
grey grayscale greyscale = gray
list all help ? = targets ops external
on yes true enable enabled = auto 4 train
learn learned training batch-statistics unfreeze unfrozen = train
eval inference freeze fixed running = frozen
top1 top-1 argmax max class label index = argmax
kl kld kl-divergence mse = entropy
ce crossentropy cross-entropy categorical softmax-cross-entropy = cross_entropy
l2 mean-squared-error squared = mse
smooth-l1 smoothl1 = huber
binary-cross-entropy binary-crossentropy bce-with-logits logistic = bce
min-max max absmax = minmax
4 q4 int4x = int4
2 3 trit = ternary
8 q8 = int8
# image functions
crop cut = roi
blur blurr gaussian-blur gaussianblur smooth smoothing filter2d = gaussian
cvtcolor color colour colors colours convert-color color-space = cvt_color
mirror flip-horizontal flip-vertical hflip vflip = flip
warp warpaffine affine affine-transform = warp_affine
rescale thumbnail = resize
# operators
relu6 hardtanh clamp relu-6 clip-by-value = clip
conv1d conv2d conv3d convolution convolution2d depthwiseconv2d depthwise-conv-2d depthwise-conv2d = conv
conv2dtranspose convtranspose1d convtranspose2d deconvolution deconv transpose-conv = convtranspose
dense linear fullyconnected fully-connected fc innerproduct addmm = gemm
bmm mm dot batch-matmul batchmatmul = matmul
maxpool1d maxpool2d max-pool-2d maxpooling2d = maxpool
avgpool avgpool2d average-pool-2d averagepooling2d avgpooling = averagepool
adaptiveavgpool2d globalaveragepooling2d adaptive-avg-pool2d gap = globalaveragepool
batchnorm batchnorm1d batchnorm2d bn = batchnormalization
layernorm ln = layernormalization
groupnorm gn = groupnormalization
instancenorm = instancenormalization
silu = swish
embedding embedding-lookup index-select = gather
upsample2d interpolate resizebilinear resize-bilinear resizenearestneighbor = resize
concatenation cat = concat
view = reshape
permute = transpose
multihead multi-head-attention mha scaled-dot-product-attention sdpa = com.microsoft::multiheadattention
rsub minus = sub
plus = add
power = pow
cast-to to-type = cast
"""


def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _LINES.strip().splitlines():
        words, equals, ours = line.partition(" = ")
        for word in words.split() if equals else ():
            found[word] = (*found.get(word, ()), *ours.replace("~", "").split())
    return found


def _of_another_kind() -> set[tuple[str, str]]:
    lines = (line.partition(" = ") for line in _LINES.splitlines())
    return {
        (word, option[1:])
        for words, _, ours in lines
        for option in ours.split()
        if option[0] == "~"
        for word in words.split()
    }


MEANINGS = _table()
_ANOTHER_KIND = _of_another_kind()
_IN_FRONT = ("tensor-", "max-", "min-", "no-", "use-", "with-", "enable-", "set-", "to-", "n-", "num-")


def ours(word: str) -> tuple[str, ...]:
    """What is meant by a word, as it is called here; none where the table does not have it."""
    return MEANINGS.get(_plain(word), ())


def carries_value(word: str, option: str) -> bool:
    """Does a value of their option mean the same for ours?"""
    return (_plain(word), option) not in _ANOTHER_KIND


def _plain(word: str) -> str:
    """As the table has it; what is said in front of it only where it is not there as a whole."""
    plain = word.lower().lstrip("-").replace("_", "-")
    fronts = (front for front in ("", *_IN_FRONT) if plain.startswith(front) and plain[len(front) :] in MEANINGS)
    return plain[len(next(fronts, "")) :]
