"""Runs the normscope command for the tests, and makes its input files."""

import functools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import fastjsonschema
import numpy as np

COMMAND = os.environ["NORMSCOPE"]
SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
CHECKPOINTS = Path(os.environ["NORMSCOPE_DATA"]) / "checkpoints"
SANITIZED = bool(os.environ.get("NORMSCOPE_SANITIZE"))
OWN_MODEL = SOURCE / "models/wordlist_gpt"
sys.path.append(str(SOURCE / "scripts"))
from model_oracle.fixtures import cases, fixture  # noqa: E402, F401: for the tests

DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "U32": np.uint32, "I32": np.int32, "U8": np.uint8,
          "I8": np.int8}


class Fp8(np.ndarray):
    """Codes of FP8 E4M3, which NumPy lacks."""


def is_checkpoint(path):
    return path.is_dir() or path.suffix in (".safetensors", ".onnx", ".pt")


def safetensors(path, tensors, metadata=None):
    """Writes {name: array} as a safetensors file."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        dtype = "F8_E4M3" if isinstance(array, Fp8) else next(k for k, v in DTYPES.items() if array.dtype == v)
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def draft_7(schema):
    """The schema in words of JSON Schema's draft 7."""
    if isinstance(schema, dict):
        return {{"dependentRequired": "dependencies"}.get(name, name): draft_7(value) for name, value in schema.items()}
    return [draft_7(item) for item in schema] if isinstance(schema, list) else schema


@functools.cache
def validator(what):
    """A function that throws if a document lacks a property that its schema requires, or has one that it does not name.

    It is made by fastjsonschema, which knows no draft after 7: the package jsonschema reads the schema anew at every
    value, which was half of the processor time of reach_test.
    """
    schema = json.loads((SOURCE / f"docs/schemas/{what}.schema.json").read_text())
    return fastjsonschema.compile({**draft_7(schema), "$schema": "http://json-schema.org/draft-07/schema#"})


class CommandTest(unittest.TestCase):
    """A test case with an empty folder of its own, in which the command runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_command(self, *arguments, **options):
        return subprocess.run([COMMAND, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=120,
                              encoding="utf-8", errors="replace", **options)

    def subcommands(self, *above):
        """Names of the subcommands, or of those of a subcommand, as help lists them: after two spaces, or after a group."""
        text = self.ok(*above, "--help").partition("Subcommands:\n" if above else "Usage:")[2]
        column = "  " if above else r"(?:\w+ +| {10})"
        return re.findall(rf"^{column}(\w+) {{2,}}\w", text.partition("Examples:")[0], re.MULTILINE)

    def ok(self, *arguments):
        """Standard output of a command that must succeed and print nothing on standard error."""
        done = self.run_command(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def json(self, *arguments):
        """The JSON result, checked against the schema that it names."""
        return self.as_its_schema_says(json.loads(self.ok(*arguments, "--json", "-")))

    def as_its_schema_says(self, document):
        """The document, checked against the schema that it names."""
        self.conforms(document["schema"].removeprefix("normscope.").removesuffix("/1"), document)
        return document

    def conforms(self, what, document):
        """Checks that a document has all properties that its schema requires, and none that it does not name."""
        validator(what)(document)

    def fails(self, status, *arguments):
        """The one-line message of a command that must fail and leave no new file."""
        before = sorted(self.folder.rglob("*"))
        done = self.run_command(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before, "a file was left behind")
        return done.stderr
