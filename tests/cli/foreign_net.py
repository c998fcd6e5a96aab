"""Classifies samples by a net file with Python's standard library alone, from the file's own description.

Usage: foreign_net.py NET.safetensors < ROWS    one row of numbers a line, one label a line comes back
"""

import array
import decimal
import json
import math
import struct
import sys


def read(path):
    """The description of a net, and its tensors as flat lists."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    net = json.loads(header.pop("__metadata__")["normscope.lnnet"])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = array.array("d", data[begin:end])
    return net, tensors


class Numbers:
    """Floats, or decimals of more digits than a double-double has."""

    def __init__(self, net, tensors):
        self.wide = net["precision"] == "double-double"
        self.tensors = tensors
        self.of = decimal.Decimal if self.wide else float
        self.sqrt = decimal.Decimal.sqrt if self.wide else math.sqrt

    def tensor(self, name):
        values = [self.of(value) for value in self.tensors[name]]
        low = self.tensors[name + "_low"] if self.wide else None
        return [value + self.of(low[i]) for i, value in enumerate(values)] if low else values


def affine(weight, bias, x):
    """b + W x, term by term from the bias on."""
    y = list(bias)
    for o in range(len(bias)):
        for i, value in enumerate(x):
            y[o] += weight[o * len(x) + i] * value
    return y


def layer_norm(y, numbers, eps):
    mean = sum(y, numbers.of(0)) / len(y)
    y = [value - mean for value in y]
    deviation = numbers.sqrt(sum((value * value for value in y), numbers.of(0)) / len(y) + numbers.of(eps))
    return [value / deviation for value in y]


def classify(net, tensors, rows):
    numbers = Numbers(net, tensors)
    layers = []
    for index, entry in enumerate(net["layers"]):
        norm = entry["norm"]
        if (entry["activation"], norm["kind"], norm["groups"], norm["gain"], norm["bias"]) != ("norm", "layer", 1, False, False):
            raise SystemExit("only plain LN is known here")
        weight, bias = numbers.tensor(f"layers.{index}.weight"), numbers.tensor(f"layers.{index}.bias")
        size, out = entry["out"] * entry["in"], entry["out"]
        for l in range(entry["count"]):
            layers.append((weight[l * size:(l + 1) * size], bias[l * out:(l + 1) * out], norm["eps"]))
    head = numbers.tensor("head.weight"), numbers.tensor("head.bias")
    for row in rows:
        now = [numbers.of(value) for value in row]
        for weight, bias, eps in layers:
            now = layer_norm(affine(weight, bias, now), numbers, eps)
        outputs = affine(*head, now)
        yield net["classes"][outputs.index(max(outputs))]


if __name__ == "__main__":
    decimal.getcontext().prec = 50
    for label in classify(*read(sys.argv[1]), ([float(word) for word in line.split()] for line in sys.stdin)):
        print(label)
