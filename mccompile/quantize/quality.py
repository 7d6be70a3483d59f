"""What integers answer beside floats, as onnxruntime runs both files."""

from __future__ import annotations

from ..base.quality import Accuracy, Quality
from ..check.oracle import Oracle
from .bench import outputs
from .guards import likely_accuracy
from .quantize import Quantized
from .samples import Samples, decibels, right_answers

COMPARED = 32  # samples that noise is measured with


def quality(made: Quantized, samples: Samples) -> Quality:
    one, other = Oracle(made.float_file), Oracle(made.file)
    runs = outputs(made.float_file, made.file, samples.feeds[:COMPARED])
    floats = zip(one.original.outputs, runs, strict=True)
    found = {name: decibels(pairs) for name, pairs in floats if all(a.dtype.kind == "f" for a, _ in pairs)}
    if samples.labels is None:
        return Quality(found)
    first, labels = one.original.outputs[0], samples.labels
    answers = [[oracle.run(feed)[first] for feed in samples.feeds] for oracle in (one, other)]
    before, after = likely_accuracy(answers[0], labels), right_answers(answers[1], labels)
    return Quality(found, Accuracy(before, after, len(labels)), "onnxruntime")
