#!/usr/bin/env python3
"""Writes the HDF5 and Keras fixtures of the tests with h5py and Keras, whose numbers they are compared with.

    python3 -m venv VENV && VENV/bin/pip install -r scripts/keras_oracle/requirements.txt
    VENV/bin/python scripts/keras_oracle/make.py

tests/checkpoint/fixtures/hdf5_plain.h5 and hdf5_latest.h5 have every layout, filter and type that is read, in the oldest
structures and in newer ones; hdf5_*.safetensors have what h5py reads from them. arrays_*.npz are NumPy's, with
arrays.safetensors the same in row-major order. tests/cli/fixtures has one small model as a .keras archive, as Keras 3 weights and as an HDF5 model, and what its norms are in keras_norms.json.
"""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "numpy"

import h5py
import keras
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
PLAIN = ROOT / "tests" / "checkpoint" / "fixtures"
MODELS = ROOT / "tests" / "cli" / "fixtures"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def add(group: h5py.Group, name: str, array: np.ndarray, expected: dict, **options) -> None:
    dataset = group.create_dataset(name, data=array, **options)
    path = dataset.name.lstrip("/")
    if array.dtype == BFLOAT16:
        dataset.attrs["dtype"] = "bfloat16"
        expected[path] = array
    else:
        expected[path] = np.asarray(dataset[()]).astype(array.dtype.newbyteorder("<"), order="C")


def compact(group: h5py.Group, name: str, array: np.ndarray, expected: dict) -> None:
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    kind = h5py.h5t.py_create(array.dtype, logical=True)
    space = h5py.h5s.create_simple(array.shape)
    h5py.h5d.create(group.id, name.encode(), kind, space, properties).write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    expected[name] = array


def fill(file: h5py.File, is_latest: bool) -> dict:
    random = np.random.default_rng(1)
    expected = {}
    types = file.create_group("types")
    kinds = ["<f4"] if is_latest else ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "i1", "<i2", "<i4", "<i8", ">i4", "u1",
                                       ">u2", "<u4", "<u8", "bool"]
    for kind in kinds:
        add(types, kind.replace("<", "little_").replace(">", "big_"), (10 * random.normal(size=(2, 3))).astype(kind),
            expected)
    add(types, "bfloat16", np.array([1.5, -2.0], BFLOAT16), expected)
    types.create_dataset("text", data="left out")
    matrix = random.normal(size=(7, 9)).astype(np.float32)
    compact(file, "compact", matrix[0].copy(), expected)
    add(file, "scalar", np.float32(2.5).reshape(()), expected)
    add(file, "empty", np.zeros((0, 3), np.float32), expected)
    if is_latest:
        return expected
    chunks = file.create_group("chunks")
    add(chunks, "plain", matrix, expected, chunks=(4, 4))
    add(chunks, "deflated", matrix, expected, chunks=(2, 9), compression="gzip")
    add(chunks, "shuffled", matrix.astype(">f8"), expected, chunks=(7, 2), compression="gzip", shuffle=True)
    add(chunks, "cube", random.normal(size=(3, 4, 5)).astype(np.float16), expected, chunks=(2, 3, 2), shuffle=True)
    add(chunks, "row", random.normal(size=(140,)).astype(np.float32), expected, chunks=(2,))  # a tree of two levels
    return expected


def write_plain() -> None:
    with h5py.File(PLAIN / "hdf5_plain.h5", "w") as file:
        expected = fill(file, False)
    save_file(expected, PLAIN / "hdf5_plain.safetensors")
    with h5py.File(PLAIN / "hdf5_latest.h5", "w", libver="v110") as file:
        expected = fill(file, True)
    save_file(expected, PLAIN / "hdf5_latest.safetensors")
    for path in PLAIN.glob("hdf5_*"):
        path.chmod(0o644)


def write_npz() -> None:
    random = np.random.default_rng(4)
    matrix = random.normal(size=(5, 7))
    arrays = {"c": matrix.astype(np.float32), "fortran": np.asfortranarray(matrix), "big": matrix.astype(">f4"),
              "column": np.asfortranarray(matrix[:, :1]), "half": matrix.astype(np.float16), "scalar": np.float64(2.5)}
    np.savez(PLAIN / "arrays_stored.npz", **arrays)
    np.savez_compressed(PLAIN / "arrays_deflated.npz", **arrays)
    save_file({name: np.asarray(array).astype(array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()},
              PLAIN / "arrays.safetensors")


def model() -> keras.Model:
    layers = keras.layers
    given = keras.Input((5, 6))
    x = layers.Dense(8, name="embed")(given)
    x = layers.LayerNormalization(epsilon=1e-4, name="early")(x)
    x = layers.BatchNormalization(name="batch")(x)
    x = layers.LayerNormalization(center=False, name="no_bias")(x)
    x = layers.LayerNormalization(scale=False, name="no_gain")(x)
    x = layers.RMSNormalization(name="root")(x)
    x = layers.GroupNormalization(groups=2, name="grouped")(x)
    return keras.Model(given, layers.LayerNormalization(axis=1, name="over_rows")(x))


def write_models() -> None:
    keras.utils.set_random_seed(1)
    built = model()
    random = np.random.default_rng(2)
    built.set_weights([random.normal(1, 0.25, weight.shape) for weight in built.get_weights()])
    built.save(MODELS / "keras_model.keras")
    built.save(MODELS / "keras_model.h5")
    built.save_weights(MODELS / "keras_model.weights.h5")
    norms = {}
    for layer in built.layers:
        if "Normalization" in type(layer).__name__:
            norms[layer.name] = {"class": type(layer).__name__, "epsilon": layer.epsilon,
                                 **{weight.name: np.asarray(weight.value).tolist() for weight in layer.weights}}
    (MODELS / "keras_norms.json").write_text(json.dumps(norms) + "\n")


def main() -> None:
    for folder in (PLAIN, MODELS):
        folder.mkdir(exist_ok=True)
    write_plain()
    write_npz()
    write_models()


if __name__ == "__main__":
    main()
