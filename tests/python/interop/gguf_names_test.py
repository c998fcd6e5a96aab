"""What Normscope takes for the same tensor in llama.cpp's names is what PyPI's gguf calls it. Run by `scripts/test
interop`."""

import os
import re
import sys
import unittest
from pathlib import Path

import gguf
import normscope as ns

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "scripts"))
from model_oracle.fixtures import fixture  # noqa: E402

ENDINGS = (".weight", ".bias")


def pairs(comparison):
    """Names of tensors, or of norms, of the original and of the converted file."""
    for norm in comparison.norms:
        yield from [(norm.old, norm.new), *((reader.old, reader.new) for reader in norm.readers)]
    yield from ((writer.old, writer.new) for writer in comparison.writers)
    yield from ((other.name, other.new) for other in comparison.others if other.new)


def plain(name):
    """As the converter asks the table: without the number of an expert, which is an entry of a stack in a GGUF file."""
    name = re.sub(r"\[\d+\]$", "", re.sub(r"experts\.\d+\.", "experts.", name))
    return re.sub(r"\.dt_bias$", ".dt_proj.bias", name)


def name_of(old, table):
    return table.get_name(plain(old), ENDINGS) or table.get_name(plain(old).removeprefix("transformer."), ENDINGS)


class GgufNames(unittest.TestCase):
    def test_names_of_pairs_are_those_of_the_table(self):
        architectures = {name: architecture for architecture, name in gguf.MODEL_ARCH_NAMES.items()}
        compared = 0
        for file in sorted((SOURCE / "tests/models/gguf").glob("*.gguf")):
            if file.stem.endswith(".fused"):
                continue  # a matrix has the name of none of its parts
            reader = gguf.GGUFReader(file)
            kind = reader.fields["general.architecture"].contents()
            table = gguf.get_tensor_name_map(architectures[kind], 4)
            try:
                comparison = ns.open(fixture(file.stem)).compare(file)
            except ValueError as error:
                self.assertRegex(str(error), "features and|norms, ")  # maps that are split, layers that are not stated
                continue
            for old, new in pairs(comparison):
                if (kind == "olmo" and old.endswith("norm")) or ".input_linear." in old:
                    continue  # a norm without a tensor; Granite's gate and input, which the converter parts
                with self.subTest(file.stem, old=old):
                    self.assertEqual(plain(new), name_of(old, table))
                compared += 1
        self.assertGreater(compared, 700)


if __name__ == "__main__":
    unittest.main()
