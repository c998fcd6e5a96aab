"""Converted files of tests/models/gguf: what Normscope takes for the same tensor is what PyPI's gguf calls it, and an
original whose configuration was changed is not the same. Run by `scripts/test interop`."""

import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import gguf
import normscope as ns

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "scripts"))
from model_oracle.fixtures import fixture  # noqa: E402

ENDINGS = (".weight", ".bias")
SAME = ("same", "equivalent")


def pairs(comparison):
    """Names of tensors, or of norms, of the original and of the converted file."""
    for norm in comparison.norms:
        yield from [(norm.old, norm.new), *((reader.old, reader.new) for reader in norm.readers)]
    yield from ((writer.old, writer.new) for writer in comparison.writers)
    yield from ((other.name, other.new) for other in comparison.others if other.new)


def plain(name):
    """As the converter asks the table: without the number of an expert, which is an entry of a stack in a GGUF file."""
    name = re.sub(r"\[\d+\]$", "", re.sub(r"experts\.\d+\.", "experts.", name))
    return re.sub(r"\.dt_bias$", ".dt_proj.bias", name.replace("e_score_correction_bias", "e_score_correction.bias"))


def as_rwkv(old):
    """As the converter renames before it asks the table; it stacks the vectors of a mix, which have no name there."""
    if re.search(r"\.(x_[a-z]|time_maa_[wkvrg])$", old) and "feed_forward" not in old and "ffn" not in old:
        return None
    for was, becomes in (("ffn", "feed_forward"), ("attn", "attention"), ("feed_forward_norm", "ln2"), ("g_norm", "ln_x"),
                         ("_lora.lora.0", "1"), ("_lora.lora.2.bias", "0"), ("_lora.lora.2", "2")):
        old = old.replace(was, becomes)
    return old


def name_of(old, table):
    return table.get_name(plain(old), ENDINGS) or table.get_name(plain(old).removeprefix("transformer."), ENDINGS)


def changed(config, field, value):
    """A configuration with another value at a path; None removes the field."""
    config = json.loads(json.dumps(config))
    *outer, last = field.split("/")
    place = config
    for name in outer:
        place = place.setdefault(name, {})
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value
    return config


def agreement(original, file):
    try:
        return ns.open(original).compare(file).agreement
    except ValueError:
        return "refused"


class Gguf(unittest.TestCase):
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
                if (kind == "olmo" and old.endswith("norm")) or ".input_linear." in old or ".gate_up_proj" in old:
                    continue  # a norm without a tensor; gates and inputs in one, which the converter parts
                if kind.startswith("rwkv"):
                    old, new = as_rwkv(old), plain(new).removesuffix(".weight")
                    if old is None:
                        self.assertIn("time_mix_lerp_fused", new)
                        continue
                    old = old.removesuffix(".weight")
                with self.subTest(file.stem, old=old):
                    # The converter ends names that have no ending.
                    self.assertEqual(plain(new).removesuffix(".weight"), name_of(old, table).removesuffix(".weight"))
                compared += 1
        self.assertGreater(compared, 700)

    def test_an_original_with_another_configuration_is_not_the_same(self):
        """Values that change what the running model computes, by fields.json of the model oracle."""
        compared = 0
        for file in sorted((SOURCE / "tests/models/gguf").glob("*.gguf")):
            folder = fixture(file.stem.partition(".")[0])
            if not (folder / "fields.json").exists() or agreement(folder, file) not in SAME:
                continue
            known, config = json.loads((folder / "fields.json").read_text()), json.loads((folder / "config.json").read_text())
            values = [(field, value) for field, values in known.get("stream", {}).items() for value in values]
            values += [(one["field"], one["value"]) for one in known.get("changed", [])]
            with tempfile.TemporaryDirectory() as scratch:
                shutil.copy(folder / "model.safetensors", scratch)
                for field, value in values:
                    (Path(scratch) / "config.json").write_text(json.dumps(changed(config, field, value)))
                    with self.subTest(file.stem, field=field, value=value):
                        self.assertNotIn(agreement(scratch, file), SAME)
                        compared += 1
        self.assertGreater(compared, 200)


if __name__ == "__main__":
    unittest.main()
