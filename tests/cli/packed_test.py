"""Folders whose matrices are packed give the numbers of a folder that holds the unpacked ones, and compare explains them."""

import json
import unittest

import numpy as np

from command import CommandTest, safetensors
from random_models import llama_shapes

WIDTH, INNER, TOKENS = 64, 96, 40
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "intermediate_size": INNER,
          "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "num_hidden_layers": 1, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "tie_word_embeddings": True, "vocab_size": TOKENS, "max_position_embeddings": 64,
          "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
QUERY = "model.layers.0.self_attn.q_proj"


def llama():
    draws = np.random.default_rng(3)
    shapes = llama_shapes(TOKENS, WIDTH, WIDTH)
    at = "model.layers.0.mlp."
    shapes |= {f"{at}gate_proj.weight": (INNER, WIDTH), f"{at}up_proj.weight": (INNER, WIDTH), f"{at}down_proj.weight": (WIDTH, INNER)}
    return {name: (draws.normal(size=shape) * 0.2 + (len(shape) == 1)).astype(np.float32) for name, shape in shapes.items()}


def bit_stream(codes, bits):
    """Rows of codes as bytes, the lowest bits first."""
    one_by_one = codes[..., None] >> np.arange(bits) & 1
    return np.packbits(one_by_one.reshape(len(codes), -1).astype(np.uint8), axis=1, bitorder="little")


def in_groups(values, group):
    return values.reshape(len(values), -1, group).astype(np.float64)


class Mlx:
    """Groups of 32 in a row, with a scale and a bias of float16 each."""

    def __init__(self, bits):
        self.bits = bits
        stated = {"group_size": 32, "bits": bits, "mode": "affine"}
        self.config = {"quantization": stated, "quantization_config": stated}
        self.format = f"MLX-{bits}bit-g32"

    def is_packed(self, name):
        return not name.endswith("norm.weight")

    def pack(self, name, values):
        """The parts of a matrix, and what they stand for."""
        groups = in_groups(values, 32)
        least = groups.min(axis=-1).astype(np.float16)
        scale = ((groups.max(axis=-1) - least) / (2**self.bits - 1)).astype(np.float16)
        wide, offset = scale.astype(np.float64)[..., None], least.astype(np.float64)[..., None]
        codes = np.clip(np.rint((groups - offset) / wide), 0, 2**self.bits - 1).astype(np.int64)
        stem = name.removesuffix(".weight")
        parts = {name: bit_stream(codes.reshape(len(values), -1), self.bits).view(np.uint32), f"{stem}.scales": scale,
                 f"{stem}.biases": least}
        return parts, (codes * wide + offset).reshape(values.shape)

    def spoil(self, parts):
        """Changes the codes of the second group of row 5 of the queries."""
        words = parts[QUERY + ".weight"]
        words[5, words.shape[1] // 2] ^= 0xFFFFFFFF


SCHEMES = {f"mlx {bits}": Mlx(bits) for bits in (3, 4, 8)}


class Packed(CommandTest):
    def folder_of(self, name, tensors, extra=()):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        safetensors(folder / "model.safetensors", tensors)
        (folder / "config.json").write_text(json.dumps(CONFIG | dict(extra)))
        return folder

    def parts_of(self, scheme):
        parts, values = {}, {}
        for name, array in llama().items():
            packed, unpacked = scheme.pack(name, array) if scheme.is_packed(name) else ({name: array}, array)
            parts |= packed
            values[name] = unpacked.astype(np.float32)
        return parts, values

    def each(self):
        original = self.folder_of("original", llama())
        for name, scheme in SCHEMES.items():
            with self.subTest(scheme=name):
                parts, values = self.parts_of(scheme)
                yield scheme, parts, original, self.folder_of("packed_folder", parts, scheme.config), self.folder_of("values_folder", values)

    def test_commands_give_the_numbers_of_the_unpacked_folder(self):
        for _, _, _, packed, values in self.each():
            for command in (["report"], ["heads"], ["ranges"], ["trace", "--tokens", "3,5,7,11"]):
                found, wanted = (self.json(command[0], folder, *command[1:]) for folder in (packed, values))
                for key in ("norms", "heads", "predictions", "vocabulary"):
                    of_values = json.loads(json.dumps(wanted.get(key)).replace(values.name, packed.name))
                    self.assertEqual(found.get(key), of_values, (command, key))
            done = self.run_command("compare", values, packed, "--check")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_compare_explains_every_matrix_and_names_a_wrong_block(self):
        for scheme, parts, original, packed, _ in self.each():
            found = self.json("compare", original, packed, "--tolerance", "quantization")
            self.assertEqual(found["agreement"], "equivalent up to quantization", found["findings"])
            self.assertEqual({one["format"] for one in found["quantizations"]}, {scheme.format})
            self.assertEqual({one["new"] for one in found["quantizations"]}, {name for name in llama() if scheme.is_packed(name)})
            scheme.spoil(parts)
            spoilt = self.folder_of("spoilt", parts, scheme.config)
            done = self.run_command("compare", original, spoilt, "--tolerance", "quantization", "--check", "--json", "c.json")
            self.assertIn(done.returncode, (1, 4))
            wrong = [one for one in json.loads((self.folder / "c.json").read_text())["quantizations"] if not one["explained"]]
            self.assertEqual([(one["new"], one["row"], one["block"], one["wrong_blocks"]) for one in wrong],
                             [(QUERY + ".weight", 5, 1, 1)])
            self.assertIn(f"block 1 of row 5 of {QUERY}.weight", done.stdout)

    def test_a_packed_folder_is_not_rewritten(self):
        for _, _, _, packed, _ in self.each():
            self.assertIn("quantized matrices", self.fails(3, "rewrite", packed, "-o", "out", "--fold", "gains"))


if __name__ == "__main__":
    unittest.main()
