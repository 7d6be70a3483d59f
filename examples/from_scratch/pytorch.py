"""PyTorch learns the same from the same weights: `python pytorch.py FOLDER` records all losses in pytorch.txt.

Needs torch, and what prepare.py has written into FOLDER.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

HERE = Path(__file__).resolve().parent
LEARNED, BATCH, EPOCHS = 150, 10, 40


def main() -> None:
    folder = Path(sys.argv[1])
    stored = np.frombuffer((folder / "pictures.bin").read_bytes(), np.uint8)
    labels = torch.from_numpy(stored[:LEARNED].astype(np.int64))
    images = torch.from_numpy(stored[200:].reshape(200, 1, 8, 8)[:LEARNED].astype(np.float32) / 16)
    initial = onnx.load(folder / "net.onnx").graph.initializer
    w = {t.name: torch.tensor(numpy_helper.to_array(t), requires_grad=True) for t in initial}
    optimizer = torch.optim.SGD(w.values(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(EPOCHS):
        for first in range(0, LEARNED, BATCH):
            x = torch.relu(functional.conv2d(images[first : first + BATCH], w["w1"], w["b1"], padding=1))
            x = torch.relu(functional.conv2d(functional.max_pool2d(x, 2), w["w2"], w["b2"], padding=1))
            scores = functional.linear(x.flatten(1), w["w3"], w["b3"])
            loss = functional.cross_entropy(scores, labels[first : first + BATCH])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    (HERE / "pytorch.txt").write_text("".join(f"{loss:.9g}\n" for loss in losses), encoding="utf-8")


if __name__ == "__main__":
    main()
