"""Files that the reference readers from PyPI (safetensors, NumPy, onnx, gguf) and normscope read, whole and with bytes
changed: where both read one, names, shapes and numbers agree. `python readers.py SECONDS [SEED]` prints a table."""

import io
import os
import random
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

import gguf
import normscope as ns
import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import safetensors.numpy

FLOATS = (np.float16, np.float32, np.float64)
NUMBERS = (*FLOATS, np.int8, np.uint8, np.int16, np.int32, np.int64)


def random_tensors(numbers, types):
    draws = np.random.default_rng(numbers.randrange(2**32))
    shapes = [(), (1,), (3,), (2, 3), (0, 4), (4, 1, 2)]
    names = numbers.sample(["a", "b.weight", "norm.weight", "norm.bias", "é", "a b", "x" * 40], 3)
    return {name: np.asarray(100 * draws.normal(size=numbers.choice(shapes))).astype(numbers.choice(types)) for name in names}


def write_safetensors(numbers):
    metadata = {"format": "pt", "note": "\"quoted\" é"} if numbers.random() < 0.5 else None
    return safetensors.numpy.save(random_tensors(numbers, NUMBERS), metadata)


def read_safetensors(content, _path):
    return safetensors.numpy.load(content)


def write_npz(numbers):
    """Of one array whose bytes are changed behind the checksum, which then is that of what was changed."""
    out = io.BytesIO()
    array = next(iter(random_tensors(numbers, NUMBERS).values()))
    if numbers.random() < 0.3:
        array = np.asfortranarray(array)
    if numbers.random() < 0.3:
        array = array.astype(array.dtype.newbyteorder(">"))
    np.lib.format.write_array(out, array, version=numbers.choice([(1, 0), (2, 0), (3, 0)]))
    return out.getvalue()


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("w.npy", content)
    return out.getvalue()


def read_npz(content, _path):
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    if any(isinstance(array, bytes) for array in arrays.values()):
        raise ValueError("a member without the magic, which NumPy gives as bytes")
    return arrays


def write_onnx(numbers):
    tensors = random_tensors(numbers, NUMBERS)
    made = [onnx.numpy_helper.from_array(array, name) if numbers.random() < 0.5 else
            onnx.helper.make_tensor(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.ravel())
            for name, array in tensors.items()]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    return onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [output], made)).SerializeToString()


def read_onnx(content, _path):
    model = onnx.load_model_from_string(content)
    # A name that is not UTF-8 is given as bytes; normscope shows what is not as U+FFFD. Tensors of strings are not numbers.
    text = lambda name: name.decode(errors="replace") if isinstance(name, bytes) else name
    return {text(made.name): onnx.numpy_helper.to_array(made) for made in model.graph.initializer
            if made.data_type != onnx.TensorProto.STRING}


def write_gguf(numbers):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint32("llama.block_count", 1)
        writer.add_array("some.list", [1, 2, 3])
        draws = np.random.default_rng(numbers.randrange(2**32))
        for name, shape in (("a.weight", (2, 64)), ("b.weight", (32,)), ("c", (3, 1, 2))):
            array = draws.normal(size=shape).astype(np.float32)
            kind = numbers.choice(["F32", "F16", "Q8_0", "Q4_0"]) if shape[-1] % 32 == 0 else "F32"
            quantized = gguf.quants.quantize(array, gguf.GGMLQuantizationType[kind])
            writer.add_tensor(name, quantized, raw_dtype=gguf.GGMLQuantizationType[kind])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return Path(path).read_bytes()


def read_gguf(_content, path):
    found = gguf.GGUFReader(path)
    return {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(
        [int(n) for n in tensor.shape[::-1]]) for tensor in found.tensors}


# Name, ending of files, writer of one at random, what is done to its bytes after they were changed, reference reader.
FORMATS = {
    "safetensors": (".safetensors", write_safetensors, bytes, read_safetensors),
    "npy": (".npz", write_npz, zipped, read_npz),
    "onnx": (".onnx", write_onnx, bytes, read_onnx),
    "gguf": (".gguf", write_gguf, bytes, read_gguf),
}


def changed(content, numbers):
    """One to three small changes, most of them near the beginning, where headers are."""
    content = bytearray(content)
    for _ in range(numbers.randrange(1, 4)):
        at = min(int(len(content) * numbers.random() ** 3), len(content) - 1)
        kind = numbers.randrange(5)
        if kind == 0:
            content[at] ^= 1 << numbers.randrange(8)
        elif kind == 1:
            content[at] = numbers.choice(b"\0\1\x7f\x80\xff{}[]\",:-019 \\")
        elif kind == 2:
            del content[at:at + numbers.randrange(1, 9)]
        elif kind == 3:
            content[at:at] = content[at:at + numbers.randrange(1, 9)]
        else:
            other = min(int(len(content) * numbers.random()), len(content) - 1)
            content[at], content[other] = content[other], content[at]
        if not content:
            return b""
    return bytes(content)


class Slow(Exception):
    pass


def stop(*_):
    raise Slow


def read_by_reference(read, content, path):
    """The tensors, or None if the reader refuses the file; some of them take very long for a wrong count."""
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        return read(content, path)
    except Exception:  # noqa: BLE001: readers raise whatever comes
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def read_by_normscope(path):
    """The tensors' shapes and, of those of floating point, numbers; None if the file is refused."""
    try:
        model = ns.open(path)
        found = model.inspect().tensors
    except (ns.Error if hasattr(ns, "Error") else ValueError, ValueError, OSError):
        return None
    tensors = {}
    for tensor in found:
        try:
            tensors[tensor.name] = (tuple(tensor.shape), model.tensor(tensor.name))
        except (ValueError, OSError):
            tensors[tensor.name] = (tuple(tensor.shape), None)
    return tensors


def disagreement(reference, ours):
    """What differs, or None."""
    if set(reference) != set(ours):
        return f"names {sorted(map(repr, reference))} and {sorted(map(repr, ours))}"
    for name, array in reference.items():
        shape, values = ours[name]
        if tuple(array.shape) != shape:
            return f"{name} has shapes {array.shape} and {shape}"
        if values is not None and not np.array_equal(np.asarray(array, np.float64), values, equal_nan=True):
            return f"{name} has other numbers"
    return None


def compare(name, numbers, is_changed, folder):
    """"agree", "both refuse", "only normscope refuses", "only the reference refuses", or what differs."""
    ending, write, finish, read = FORMATS[name]
    content = write(numbers)
    if is_changed:
        content = changed(content, numbers)
    content = finish(content)
    path = os.path.join(folder, "m" + ending)
    Path(path).write_bytes(content)
    reference, ours = read_by_reference(read, content, path), read_by_normscope(path)
    if reference is None or ours is None:
        return ("both refuse" if ours is None else "only the reference refuses") if reference is None else \
            "only normscope refuses"
    return disagreement(reference, ours) or "agree"


OUTCOMES = ("agree", "both refuse", "only normscope refuses", "only the reference refuses")


def attack(seconds, seed, kept=None):
    end = time.monotonic() + seconds
    counts = {name: Counter() for name in FORMATS}
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for name in FORMATS:
                found = compare(name, random.Random(f"{name} {seed}"), is_changed=True, folder=folder)
                counts[name][found if found in OUTCOMES else "differ"] += 1
                if found not in OUTCOMES:
                    wrong.append(f"{name}, seed {seed}: {found}")
                if kept is not None and found in OUTCOMES[2:]:
                    kept.append((name, seed, found))
            seed += 1
    return counts, wrong


def main(seconds, seed=1):
    counts, wrong = attack(seconds, seed)
    print("| format | " + " | ".join((*OUTCOMES, "differ")) + " |\n|---|" + "---|" * (len(OUTCOMES) + 1))
    for name, count in counts.items():
        print(f"| {name} | " + " | ".join(str(count[outcome]) for outcome in (*OUTCOMES, "differ")) + " |")
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:])))
