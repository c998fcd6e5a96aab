#!/usr/bin/env python3
"""Writes the TensorFlow checkpoints and TensorFlow Lite files of the tests, with PyPI's tensorflow. Run by hand, never in CI.

    tests/checkpoint/fixtures/tf_names.*       tensors of every type under names of TensorFlow 1, in two data files
    tests/checkpoint/fixtures/tf_objects.*     the object graph of a Keras model and its optimizer
    tests/checkpoint/fixtures/lite_*.tflite    a small Keras model, as it is and with its weights quantized
    tests/checkpoint/fixtures/*.safetensors    the same, as TensorFlow reads them

usage: scripts/tensorflow_oracle/make.py     (needs scripts/tensorflow_oracle/requirements.txt)
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import save_file
from tensorflow.core.protobuf import trackable_object_graph_pb2

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "tests" / "checkpoint" / "fixtures"
GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
ENDING = "/.ATTRIBUTES/VARIABLE_VALUE"


def save(prefix: Path, tensors: dict[str, np.ndarray]) -> str:
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors), shape_and_slices=[""] * len(tensors),
                      tensors=[tf.constant(array) for array in tensors.values()])
    return str(prefix)


def write_names() -> None:
    random = np.random.default_rng(3)
    layer = "bert/encoder/layer_0/output/LayerNorm"
    first = {f"{layer}/gamma": random.normal(1, 0.2, 8).astype(np.float32),
             f"{layer}/beta": random.normal(0, 0.2, 8).astype(np.float32),
             f"{layer}/gamma/Adam": np.ones(8, np.float32), f"{layer}/gamma/Adam_1": np.ones(8, np.float32),
             "beta1_power": np.float32(0.9), "empty": np.zeros((0, 3), np.float32), "text": np.array(b"left out")}
    second = {}
    for kind in ("float64", "int32", "uint8", "int16", "int8", "int64", "bool", "uint16", "float16", "uint32", "uint64"):
        second[f"types/{kind}"] = (5 * random.normal(size=(2, 3))).astype(kind)
    second["types/bfloat16"] = (5 * random.normal(size=(2, 3))).astype(tf.bfloat16.as_numpy_dtype)
    parts = [save(FIXTURES / "first", first), save(FIXTURES / "second", second)]
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(FIXTURES / "tf_names"),
                                  delete_old_dirs=False)
    expect(FIXTURES / "tf_names")


def write_objects() -> None:
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(6), layers.LayerNormalization(),
                                 layers.LayerNormalization(), layers.BatchNormalization()])
    model.compile(tf.keras.optimizers.Adam(), "mse")
    model.fit(np.random.default_rng(4).normal(size=(8, 4)), np.ones((8, 6)), verbose=0)
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(str(FIXTURES / "tf_objects"))
    expect(FIXTURES / "tf_objects")


def expect(prefix: Path) -> None:
    """What TensorFlow reads, by the names that are documented."""
    reader = tf.train.load_checkpoint(str(prefix))
    tensors = {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}
    full_names = {}
    if GRAPH in tensors:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(tensors[GRAPH])
        for node in graph.nodes:
            for attribute in node.attributes:
                if attribute.full_name and ".OPTIMIZER_SLOT" not in attribute.checkpoint_key:
                    full_names[attribute.checkpoint_key] = attribute.full_name
    numbers = {key: array for key, array in tensors.items() if not isinstance(array, bytes)}
    times = Counter(list(full_names.values()) + [key.removesuffix(ENDING) for key in numbers])
    named = {}
    for key, array in numbers.items():
        name = full_names.get(key, "")
        named[name if name and times[name] == 1 else key.removesuffix(ENDING)] = np.asarray(array, order="C")
    save_file(named, f"{prefix}.safetensors")


def write_lite() -> None:
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    given = tf.keras.Input((4, 4, 3), batch_size=1)
    x = layers.LayerNormalization(epsilon=1e-4)(layers.Conv2D(6, 2)(given))
    model = tf.keras.Model(given, layers.Dense(5)(x))
    random = np.random.default_rng(1)
    model.set_weights([random.normal(1, 0.2, weight.shape) for weight in model.get_weights()])
    for name in ("lite_plain", "lite_quantized"):
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
        if name == "lite_quantized":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: (
                [random.normal(size=(1, 4, 4, 3)).astype(np.float32)] for _ in range(4))
        content = converter.convert()
        (FIXTURES / f"{name}.tflite").write_bytes(content)
        save_file(constants(content), FIXTURES / f"{name}.safetensors")


def constants(content: bytes) -> dict[str, np.ndarray]:
    """The constants of a model; 8- and 16-bit integers with scales are decoded to numbers."""
    interpreter = tf.lite.Interpreter(model_content=content)
    made = {index for operator in interpreter._get_ops_details() for index in operator["outputs"]}
    made |= {detail["index"] for detail in interpreter.get_input_details()}
    found = {}
    for detail in sorted(interpreter.get_tensor_details(), key=lambda detail: detail["index"]):
        if detail["index"] in made or not detail["name"]:
            continue
        array = interpreter.get_tensor(detail["index"])
        scales = detail["quantization_parameters"]
        if array.dtype in (np.int8, np.uint8, np.int16) and scales["scales"].size:
            shape = [1] * array.ndim
            if scales["scales"].size > 1:
                shape[scales["quantized_dimension"]] = -1
            zero = scales["zero_points"].astype(np.int64).reshape(shape)
            array = scales["scales"].reshape(shape) * (array.astype(np.int64) - zero).astype(np.float32)
            array = array.reshape(detail["shape"])
        same = sum(name.split("#")[0] == detail["name"] for name in found)
        found[detail["name"] + (f"#{same + 1}" if same else "")] = np.asarray(array, order="C")
    return found


def main() -> None:
    FIXTURES.mkdir(exist_ok=True)
    write_names()
    write_objects()
    write_lite()
    for path in [*FIXTURES.glob("first.*"), *FIXTURES.glob("second.*"), *FIXTURES.glob("checkpoint")]:
        path.unlink()
    for path in [*FIXTURES.glob("tf_*"), *FIXTURES.glob("lite_*")]:
        path.chmod(0o644)


if __name__ == "__main__":
    main()
