"""Files of Keras, Flax and TensorFlow as safetensors, read by the libraries of those who write them.

    python -m normscope convert model.keras -o model.safetensors
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pathlib
import secrets
import shutil
import tempfile
import weakref
import zipfile
from typing import Any, Callable, Iterator, NamedTuple

import numpy

from ._check import path, reason

#: By the name that NumPy and ml_dtypes give a type: its name in safetensors and the bytes of an element.
_TYPES = {"float64": ("F64", 8), "float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2),
          "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1), "complex64": ("C64", 8), "bool": ("BOOL", 1),
          **{f"{sign}int{bits}": (f"{code}{bits}", bits // 8)
             for sign, code in (("", "I"), ("u", "U")) for bits in (8, 16, 32, 64)}}


class _Tensor(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], bytes]  # its elements, row-major and little-endian


class _Contents(NamedTuple):
    tensors: list[_Tensor]
    metadata: dict[str, str]


def convert(file: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Writes the tensors of a file of Keras (.keras, .h5), Flax (.msgpack), TensorFlow (NAME.index) or TensorFlow Lite
    (.tflite) as safetensors, under their names there, completely or not at all.

    Keras's configuration and the names that Keras 3 gives to numbered weights become metadata: there `open` and the
    command find each norm with its kind, eps and groups. Tensors of text are left out.

    Errors   OSError for a file that cannot be read or written; ValueError for one that is damaged or of another format,
             or whose library is not installed, with the line that installs it
    """
    source, target = pathlib.Path(path("convert", "file", file)), pathlib.Path(path("convert", "output", output))
    kind = foreign_format(source)
    if kind is None:
        raise ValueError(f"convert: {source}: expected a file of Keras (.keras, .h5), Flax (.msgpack), TensorFlow "
                         "(.index) or TensorFlow Lite (.tflite); files of other formats need no conversion")
    if target.exists() and target.samefile(source):
        raise ValueError(f"convert: {target}: is the file to convert, expected another output")
    with contextlib.ExitStack() as stack:
        with _one_error(source, kind):
            contents = stack.enter_context(_READERS[kind](source))
        _write(source, kind, contents, target)


def is_foreign(file: str | os.PathLike[str]) -> bool:
    """Whether `file` has to be converted; False for what cannot be read, whose error is the core's."""
    try:
        return foreign_format(pathlib.Path(file)) is not None
    except (OSError, ValueError, TypeError):
        return False


def open_converted(file: str | os.PathLike[str], open_path: Callable[[Any, str], Any]) -> Any:
    """`open_path` of the converted file, in a temporary folder that exists as long as the result; with the
    configuration beside a model of the hub."""
    source = pathlib.Path(file)
    folder = tempfile.TemporaryDirectory(prefix="normscope-")
    try:
        convert(source, pathlib.Path(folder.name, "model.safetensors"))
        if source.name == "flax_model.msgpack" and source.with_name("config.json").exists():
            shutil.copy(source.with_name("config.json"), folder.name)
        opened = open_path(folder.name, str(source))
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(opened, folder.cleanup)
    return opened


def foreign_format(file: pathlib.Path) -> str | None:
    """The extra of the package that reads this file ("keras", "flax" …), None for files that need none.

    Errors   OSError
    """
    with open(file, "rb") as opened:
        first = opened.read(8)
    if first == b"\x89HDF\r\n\x1a\n":
        return "keras"
    if first[4:] == b"TFL3":
        return "tflite"
    if first.startswith(b"PK\x03\x04"):
        return "keras" if "model.weights.h5" in _members(file) else None
    return {".msgpack": "flax", ".index": "tensorflow", ".tflite": "tflite", ".h5": "keras", ".hdf5": "keras",
            ".keras": "keras"}.get(file.suffix)


def _members(file: pathlib.Path) -> list[str]:
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError):
        return ["model.weights.h5"] if file.suffix == ".keras" else []


@contextlib.contextmanager
def _one_error(source: pathlib.Path, kind: str) -> Iterator[None]:
    """What libraries raise, as a ValueError of one line."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"convert: {source}: the library that reads it is not installed ({reason(error)}); "
                         f"install it with `pip install 'normscope[{kind}]'`") from None
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"convert: {source}: cannot be read: {reason(error)}") from None


def _write(source: pathlib.Path, kind: str, contents: _Contents, target: pathlib.Path) -> None:
    """Writes a safetensors file under another name, and renames it when it is whole."""
    with _one_error(source, kind):
        unknown = [tensor for tensor in contents.tensors if tensor.dtype not in _TYPES]
        if unknown:
            raise ValueError(f"tensor {unknown[0].name!r} has type {unknown[0].dtype}, which safetensors does not have")
    # Wider elements first, so that all are aligned.
    tensors = sorted(contents.tensors, key=lambda tensor: (-_TYPES[tensor.dtype][1], tensor.name))
    header: dict[str, Any] = {"__metadata__": contents.metadata}
    sizes, end = [], 0
    for tensor in tensors:
        dtype, width = _TYPES[tensor.dtype]
        sizes.append(math.prod(tensor.shape) * width)
        header[tensor.name] = {"dtype": dtype, "shape": tensor.shape, "data_offsets": [end, end + sizes[-1]]}
        end += sizes[-1]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(unfinished, "xb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor, size in zip(tensors, sizes):
                with _one_error(source, kind):
                    data = tensor.read()
                    if len(data) != size:
                        raise ValueError(f"tensor {tensor.name!r} has {len(data)} bytes, its shape needs {size}")
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _of_array(name: str, array: numpy.ndarray) -> _Tensor:
    return _Tensor(name, array.dtype.name, array.shape, lambda: _bytes(array))


def _bytes(array: Any) -> bytes:
    array = numpy.asarray(array)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


@contextlib.contextmanager
def _read_keras(source: pathlib.Path) -> Iterator[_Contents]:
    """A .keras archive, or HDF5 of Keras or h5py: datasets by their paths."""
    import h5py

    metadata, file = {}, source
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            if "config.json" in archive.namelist():
                metadata["model_config"] = archive.read("config.json").decode()
            file = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(file, "r") as root:
        tensors: list[_Tensor] = []
        _keep_texts(root, ("model_config", "keras_version", "backend"), metadata)

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                tensors.extend(_of_dataset(name, item))
            elif name == "model_weights":
                _keep_texts(item, ("model_config", "keras_version", "backend"), metadata)
            elif name.rpartition("/")[2] == "vars":
                named: dict[str, str] = {}
                _keep_texts(item, ("name",), named)
                metadata.update({f"{name}@name": text for text in named.values()})

        root.visititems(visit)
        yield _Contents(tensors, metadata)


def _keep_texts(item: Any, names: tuple[str, ...], metadata: dict[str, str]) -> None:
    for name in names:
        value = item.attrs.get(name)
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str) and value:
            metadata.setdefault(name, value)


def _of_dataset(name: str, dataset: Any) -> list[_Tensor]:
    if dataset.shape is None:
        return []
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"dataset {name!r} has its elements in other files")
    dtype = dataset.dtype.name
    if dataset.dtype.itemsize == 2 and dataset.attrs.get("dtype") in ("bfloat16", b"bfloat16"):
        dtype = "bfloat16"  # which HDF5 has no type for
    elif dataset.dtype.kind not in "biufc":
        return []
    return [_Tensor(name, dtype, dataset.shape, lambda: _bytes(dataset[()]))]


@contextlib.contextmanager
def _read_flax(source: pathlib.Path) -> Iterator[_Contents]:
    """What flax.serialization.to_bytes writes: arrays by the keys of nested maps, joined by dots."""
    import msgpack

    def array_of(code: int, data: bytes) -> Any:
        if code not in (1, 3):  # NumPy's arrays and scalars
            return None
        shape, dtype, elements = msgpack.unpackb(data)
        return _Tensor("", str(dtype), tuple(map(int, shape)), lambda: elements)

    tree = msgpack.unpackb(source.read_bytes(), ext_hook=array_of, strict_map_key=False)
    if not isinstance(tree, dict):
        raise ValueError("does not begin with a map, expected a map of named arrays")
    yield _Contents(list(_leaves(tree, ())), {})


def _leaves(tree: dict[Any, Any], keys: tuple[str, ...]) -> Iterator[_Tensor]:
    for key, value in tree.items():
        place = (*keys, str(key))
        if isinstance(value, _Tensor):
            yield value._replace(name=".".join(place))
        elif isinstance(value, dict) and "__msgpack_chunked_array__" in value:  # an array beyond 1 GiB
            chunks = [chunk for _, chunk in sorted(value["chunks"].items(), key=lambda item: int(item[0]))]
            shape = tuple(extent for _, extent in sorted(value["shape"].items(), key=lambda item: int(item[0])))
            yield _Tensor(".".join(place), chunks[0].dtype, shape,
                          lambda chunks=chunks: b"".join(chunk.read() for chunk in chunks))
        elif isinstance(value, dict):
            yield from _leaves(value, place)


@contextlib.contextmanager
def _read_tensorflow(source: pathlib.Path) -> Iterator[_Contents]:
    """A checkpoint: variables by their names in its object graph if these are unique, else by their keys."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow
    from tensorflow.core.protobuf import trackable_object_graph_pb2

    graph_key, ending = "_CHECKPOINTABLE_OBJECT_GRAPH", "/.ATTRIBUTES/VARIABLE_VALUE"
    reader = tensorflow.train.load_checkpoint(str(source.with_suffix("")))
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    full_names = {}
    if graph_key in shapes:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(graph_key))
        full_names = {attribute.checkpoint_key: attribute.full_name for node in graph.nodes
                      for attribute in node.attributes
                      if attribute.full_name and ".OPTIMIZER_SLOT" not in attribute.checkpoint_key}
    plain = {key: key.removesuffix(ending) for key, dtype in types.items() if dtype != tensorflow.string}
    taken = [*full_names.values(), *plain.values()]
    names = {key: full_names[key] if taken.count(full_names.get(key)) == 1 else name for key, name in plain.items()}
    yield _Contents([_Tensor(name, types[key].name, tuple(shapes[key]), lambda key=key: _bytes(reader.get_tensor(key)))
                     for key, name in names.items()], {})


@contextlib.contextmanager
def _read_tflite(source: pathlib.Path) -> Iterator[_Contents]:
    """The constants of a TensorFlow Lite model, scaled integers as float32; equal names get "#2" and so on."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=source.read_bytes())
    tensors: list[_Tensor] = []
    times: dict[str, int] = {}
    for graph in range(interpreter.num_subgraphs()):
        for detail in interpreter.get_tensor_details(graph):
            try:
                array = numpy.array(interpreter.get_tensor(detail["index"], graph))
            except ValueError:  # computed
                continue
            if array.dtype.kind not in "biufc" or array.size == 0:
                continue
            times[detail["name"]] = number = times.get(detail["name"], 0) + 1
            tensors.append(_of_array(detail["name"] + (f"#{number}" if number > 1 else ""), _scaled(array, detail)))
    yield _Contents(tensors, {})


def _scaled(array: numpy.ndarray, detail: dict[str, Any]) -> numpy.ndarray:
    stated = detail["quantization_parameters"]
    scales, zeros = stated["scales"], stated["zero_points"]
    if detail["sparsity_parameters"] or stated.get("block_size"):
        raise ValueError(f"tensor {detail['name']!r} is sparse or scaled by blocks, which is not read")
    if len(scales) == 0 or array.dtype not in (numpy.int8, numpy.uint8, numpy.int16):
        return array
    along = [1] * array.ndim
    if len(scales) > 1:
        along[stated["quantized_dimension"]] = -1
    centred = (array - zeros.astype(float).reshape(along)).astype(numpy.float32)
    return scales.reshape(along) * centred


_READERS = {"keras": _read_keras, "flax": _read_flax, "tensorflow": _read_tensorflow, "tflite": _read_tflite}
