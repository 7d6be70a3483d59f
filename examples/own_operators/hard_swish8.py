"""What HardSwish8 is: its types, for models that do not declare them, and what it computes, for `mccompile check`."""

import numpy as np


def types(operands, attributes):
    return [(operands[0].dtype, operands[0].shape)]


def run(operands, attributes):
    x, top = operands[0], np.float32(attributes["top"])
    return x * np.clip(x + np.float32(3), 0, top) / top
