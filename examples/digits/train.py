"""Train a small convolutional network on scikit-learn's digits and write it as ONNX.

Makes the two files that are committed beside this script:

    digits.onnx    the network: `image` float32 [1, 1, 8, 8] in 0..1  ->  `scores` float32 [1, 10], summing to 1
    pictures.npz   200 pictures that training never saw, and what the network says about each:
                   pixels uint8 [200, 8, 8] in 0..16, labels uint8 [200], predictions uint8 [200] and
                   scores float32 [200] (the score of the predicted digit)

Run it, from the top folder of the project, in an environment of its own (nothing else here needs torch):

    pip install '.[examples]'          # torch and scikit-learn, besides onnx and numpy
    python examples/digits/train.py    # under a minute on one core

The same versions on the same processor write the same bytes: the seed is fixed and one thread does all the sums. The
ONNX is written node by node, not exported, so that names stay readable and batch normalization is left in the graph
as its own node: folding it is the compiler's work, and the demo shows that it happens.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
SEED = 7
HELD_OUT = 200
EPOCHS = 40
BATCH = 32
BRIGHTEST = 16  # pixels of load_digits count the ink in a 4x4 block
OPSET = 17


class ConvNorm(nn.Module):
    """A convolution that keeps height and width, and the batch normalization after it."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.norm(self.conv(x))
        return result


class DigitsNet(nn.Module):
    """The network; `write_onnx` below says the same in ONNX."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(1, 16, 3)
        self.depthwise = ConvNorm(16, 16, 3, groups=16)
        self.pointwise = ConvNorm(16, 24, 1)
        self.first = ConvNorm(24, 24, 3)
        self.second = ConvNorm(24, 24, 3)
        self.classes = nn.Linear(24, 10)

    def forward(self, image: Tensor) -> Tensor:
        """Raw class values; softmax is left to the loss while training and to the last node in the ONNX."""
        x = torch.relu(self.stem(image))
        x = torch.relu(self.depthwise(x))
        x = torch.relu(self.pointwise(x))
        x = torch.max_pool2d(x, 2)
        x = torch.relu(x + self.second(torch.relu(self.first(x))))
        values: Tensor = self.classes(x.mean(dim=(2, 3)))
        return values


def train(images: Tensor, labels: Tensor) -> DigitsNet:
    torch.manual_seed(SEED)
    network = DigitsNet()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=1e-2)
    batches = -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, epochs=EPOCHS, steps_per_epoch=batches)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        order = torch.randperm(len(images))
        for first in range(0, len(images), BATCH):
            chosen = order[first : first + BATCH]
            loss = loss_of(network(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 0:
            print(f"epoch {epoch:2d}  loss {total / len(images):.4f}")
    return network.eval()


class GraphWriter:
    """Collects nodes and constants; a node, and the value it makes, carry the same readable name such as stem/Conv."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Tensor) -> str:
        self.constants.append(numpy_helper.from_array(value.detach().numpy(), name))
        return name

    def node(self, op: str, place: str, *inputs: str, **attributes: int | float | list[int]) -> str:
        name = f"{place}/{op}"
        node = helper.make_node(op, inputs, [name], name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return name

    def conv_norm(self, place: str, block: ConvNorm, x: str) -> str:
        conv, norm = block.conv, block.norm
        edge = conv.kernel_size[0] // 2
        weight = self.constant(f"{place}/weight", conv.weight)
        x = self.node("Conv", place, x, weight, kernel_shape=list(conv.kernel_size), pads=[edge] * 4, group=conv.groups)
        assert norm.running_mean is not None and norm.running_var is not None
        scale = self.constant(f"{place}/scale", norm.weight)
        shift = self.constant(f"{place}/shift", norm.bias)
        mean = self.constant(f"{place}/mean", norm.running_mean)
        variance = self.constant(f"{place}/variance", norm.running_var)
        return self.node("BatchNormalization", place, x, scale, shift, mean, variance, epsilon=norm.eps)


def write_onnx(network: DigitsNet) -> onnx.ModelProto:
    g = GraphWriter()
    x = g.node("Relu", "stem", g.conv_norm("stem", network.stem, "image"))
    x = g.node("Relu", "depthwise", g.conv_norm("depthwise", network.depthwise, x))
    x = g.node("Relu", "pointwise", g.conv_norm("pointwise", network.pointwise, x))
    shortcut = g.node("MaxPool", "pool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("Relu", "residual/first", g.conv_norm("residual/first", network.first, shortcut))
    x = g.conv_norm("residual/second", network.second, x)
    x = g.node("Relu", "residual", g.node("Add", "residual", x, shortcut))
    x = g.node("Flatten", "head", g.node("GlobalAveragePool", "head", x), axis=1)
    weight = g.constant("head/weight", network.classes.weight)
    bias = g.constant("head/bias", network.classes.bias)
    x = g.node("Gemm", "head", x, weight, bias, transB=1)
    g.nodes.append(helper.make_node("Softmax", [x], ["scores"], name="head/Softmax", axis=1))
    graph = helper.make_graph(
        g.nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        g.constants,
    )
    # IR version 8 is what belongs to opset 17: older readers can open the file.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def scores_of(model: onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    """What the ONNX file itself answers, by onnx's reference evaluator: neither torch nor this project has a say."""
    session = ReferenceEvaluator(model)
    answers = []
    for image in images:
        (scores,) = session.run(None, {"image": image[np.newaxis]})
        answers.append(scores)
    return np.concatenate(answers)


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels.reshape(-1, 8, 8).astype(np.uint8)
    known, held_out, known_labels, held_out_labels = train_test_split(
        pixels, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels
    )

    network = train(torch.from_numpy(as_images(known)), torch.from_numpy(known_labels))
    model = write_onnx(network)
    images = as_images(held_out)
    scores = scores_of(model, images)
    with torch.no_grad():
        expected = torch.softmax(network(torch.from_numpy(images)), dim=1).numpy()
    if np.abs(scores - expected).max() > 1e-5:
        raise SystemExit("the ONNX file and the trained network disagree: write_onnx is wrong")

    predictions = scores.argmax(axis=1)
    accuracy = (predictions == held_out_labels).mean()
    if accuracy < 0.97:
        raise SystemExit(f"only {accuracy:.1%} of the held-out pictures are right: not worth keeping")
    onnx.save(model, HERE / "digits.onnx")
    np.savez_compressed(
        HERE / "pictures.npz",
        pixels=held_out,
        labels=held_out_labels.astype(np.uint8),
        predictions=predictions.astype(np.uint8),
        scores=scores.max(axis=1),
    )
    print(f"{accuracy:.1%} of {HELD_OUT} held-out pictures right; wrote digits.onnx and pictures.npz")


def as_images(pixels: np.ndarray) -> np.ndarray:
    return (pixels[:, np.newaxis] / np.float32(BRIGHTEST)).astype(np.float32)


if __name__ == "__main__":
    main()
