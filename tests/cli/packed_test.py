"""Folders whose matrices are packed give the numbers of a folder that holds the unpacked ones, and compare explains them."""

import json
import unittest

import numpy as np

from command import CommandTest, Fp8, safetensors
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

    block = 1  #: the one that `spoil` changes

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


E4M3 = np.array([(-1) ** (code >> 7) * (code % 8 / 8 * 2.0**-6 if code >> 3 & 15 == 0 else (1 + code % 8 / 8) * 2.0 ** ((code >> 3 & 15) - 7))
                 if code & 127 != 127 else np.nan for code in range(256)])


def nearest_fp8(values):
    finite = np.where(np.isnan(E4M3), np.inf, E4M3)
    return np.abs(values[..., None] - finite).argmin(axis=-1).astype(np.uint8)


class Scaled:
    """A byte an element, with a scale for each block."""

    def __init__(self, config, format, ending, blocks, integers=False):
        self.config, self.format, self.ending, self.blocks, self.integers = {"quantization_config": config}, format, ending, blocks, integers
        self.block = 1 if blocks(64, 64)[1] == 32 else 0

    def is_packed(self, name):
        return "proj" in name

    def pack(self, name, values):
        rows, columns = self.blocks(*values.shape)
        scale = np.array([[np.abs(values[i:i + rows, j:j + columns]).max() for j in range(0, values.shape[1], columns)]
                          for i in range(0, len(values), rows)])
        scale = (scale / (127 if self.integers else 448)).astype(np.float32)
        wide = np.repeat(np.repeat(scale.astype(np.float64), rows, 0), columns, 1)[:len(values), :values.shape[1]]
        scaled = values / wide
        codes = np.rint(scaled).astype(np.int8) if self.integers else nearest_fp8(scaled).view(Fp8)
        unpacked = (codes if self.integers else E4M3[np.asarray(codes)]) * wide
        stored = scale.reshape(1) if scale.size == 1 else scale
        return {name: codes, name.removesuffix("weight") + self.ending: stored}, unpacked

    def spoil(self, parts):
        codes = parts[QUERY + ".weight"]
        codes[5, -1] = 0 if codes[5, -1] > 9 else 60


def int_words(codes, bits):
    """Codes of each row in int32, the lowest bits first."""
    return bit_stream(codes, bits).view(np.int32)


class Grouped:
    """Four bits an element, with a scale and a zero point for each group of 32 columns of a row."""

    block = 1

    def __init__(self, kind, **more):
        self.kind = kind
        group = {"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": False}}
        stated = {"config_groups": {"group_0": group}, "format": "pack-quantized"} if kind == "compressed-tensors" else \
            {"bits": 4, "group_size": 32}
        self.config = {"quantization_config": {"quant_method": kind, **stated, **more}}
        self.format = {"gptq": "GPTQ-4bit-g32", "awq": "AWQ-4bit-g32"}.get(kind, "INT4-g32")
        self.order = more.get("desc_act", False)

    def is_packed(self, name):
        return "proj" in name

    def pack(self, name, values):
        draws = np.random.default_rng(len(values))
        columns = draws.permutation(values.shape[1]) if self.order else np.arange(values.shape[1])
        groups = in_groups(values[:, columns], 32)
        low, high = np.minimum(groups.min(axis=-1), 0), np.maximum(groups.max(axis=-1), 0)
        scale = ((high - low) / 15).astype(np.float16)
        wide = scale.astype(np.float64)
        zero = np.clip(np.rint(-low / wide), 1, 15).astype(np.int64)
        codes = np.clip(np.rint(groups / wide[..., None]) + zero[..., None], 0, 15).astype(np.int64)
        unpacked, stored = np.empty(values.shape), np.empty(values.shape, np.int64)
        unpacked[:, columns] = ((codes - zero[..., None]) * wide[..., None]).reshape(values.shape)
        stored[:, columns] = codes.reshape(values.shape)
        group_of = np.empty(values.shape[1], np.int32)
        group_of[columns] = np.arange(values.shape[1]) // 32
        return self.parts(name.removesuffix("weight"), stored, scale, zero, group_of), unpacked

    def parts(self, stem, codes, scale, zero, group_of):
        if self.kind == "compressed-tensors":
            return {stem + "weight_packed": int_words(codes, 4), stem + "weight_scale": scale,
                    stem + "weight_zero_point": np.ascontiguousarray(int_words(zero.T, 4).T), stem + "weight_shape": np.array(codes.shape)}
        if self.kind == "gptq":
            return {stem + "qweight": np.ascontiguousarray(int_words(codes, 4).T), stem + "qzeros": int_words(zero.T - 1, 4),
                    stem + "scales": np.ascontiguousarray(scale.T), stem + "g_idx": group_of}
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        mixed = lambda matrix: int_words(matrix.reshape(len(matrix), -1, 8)[:, :, order].reshape(matrix.shape), 4)
        return {stem + "qweight": mixed(np.ascontiguousarray(codes.T)), stem + "qzeros": mixed(np.ascontiguousarray(zero.T)),
                stem + "scales": np.ascontiguousarray(scale.T)}

    def spoil(self, parts):
        if self.kind == "compressed-tensors":
            parts[QUERY + ".weight_packed"][5, -1] ^= -1
        elif self.kind == "gptq":
            parts[QUERY + ".qweight"][-1, 5] ^= -1
        else:
            for line in parts[QUERY + ".qweight"][-8:]:
                line[0] ^= 15 << 24  # where AWQ has the sixth of eight rows


def compressed(strategy, kind, **more):
    weights = {"num_bits": 8, "type": kind, "strategy": strategy, "symmetric": True, **more}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights, "input_activations": None}}}


SCHEMES = {f"mlx {bits}": Mlx(bits) for bits in (3, 4, 8)}
SCHEMES |= {
    "fp8": Scaled({"quant_method": "fp8", "weight_block_size": [40, 32]}, "FP8-40x32", "weight_scale_inv", lambda *shape: (40, 32)),
    "fp8 rows": Scaled(compressed("channel", "float"), "FP8-channel", "weight_scale", lambda rows, columns: (1, columns)),
    "fp8 whole": Scaled(compressed("tensor", "float"), "FP8-tensor", "weight_scale", lambda *shape: shape),
    "int8 rows": Scaled(compressed("channel", "int"), "INT8-channel", "weight_scale", lambda rows, columns: (1, columns), True),
    "int4": Grouped("compressed-tensors"), "gptq": Grouped("gptq"), "gptq in another order": Grouped("gptq", desc_act=True),
    "awq": Grouped("awq", version="gemm", zero_point=True)}


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

    def test_packed_matrices_of_gpt2_are_outputs_by_inputs_beside_those_that_are_not(self):
        draws = np.random.default_rng(4)
        shapes = {"wte": (TOKENS, WIDTH), "wpe": (64, WIDTH), "ln_f": (WIDTH,), "h.0.ln_1": (WIDTH,), "h.0.ln_2": (WIDTH,),
                  "h.0.attn.c_attn": (WIDTH, 3 * WIDTH), "h.0.attn.c_proj": (WIDTH, WIDTH), "h.0.mlp.c_fc": (WIDTH, INNER),
                  "h.0.mlp.c_proj": (INNER, WIDTH)}
        values = {f"{name}.weight": (draws.normal(size=shape) * 0.2).astype(np.float32) for name, shape in shapes.items()}
        values |= {f"{name}.bias": np.zeros(shape[-1], np.float32) for name, shape in shapes.items() if name not in ("wte", "wpe")}
        config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": WIDTH, "n_head": 4, "n_layer": 1, "n_inner": INNER,
                  "vocab_size": TOKENS, "n_positions": 64, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}

        def folder_of(name, tensors, extra):
            folder = self.folder_of(name, tensors)
            (folder / "config.json").write_text(json.dumps(config | extra))
            return folder

        for kind, ending in ((kind, ending) for kind in ("gptq", "awq") for ending in ("attn.c_proj", "c_attn", "mlp.c_proj", "c_fc", "")):
            parts, unpacked = {}, dict(values)
            for name, array in values.items():
                if ".c_" in name and name.endswith(f"{ending}.weight"):
                    packed, decoded = SCHEMES[kind].pack(name, array.T)
                    parts, unpacked = parts | packed, unpacked | {name: np.ascontiguousarray(decoded.T, np.float32)}
                else:
                    parts[name] = array
            folders = folder_of("packed_folder", parts, SCHEMES[kind].config), folder_of("values_folder", unpacked, {})
            found, wanted = (self.json("trace", folder, "--tokens", "3,5,7,11", "--likeliest", str(TOKENS)) for folder in folders)
            with self.subTest(kind=kind, packed=ending):
                self.assertEqual(found["predictions"], wanted["predictions"])

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
                             [(QUERY + ".weight", 5, scheme.block, 1)])
            self.assertIn(f"block {scheme.block} of row 5 of {QUERY}.weight", done.stdout)

    def test_parts_that_do_not_fit_are_refused(self):
        for scheme, parts, _, _, _ in self.each():
            scales = max((name for name in parts if QUERY in name and "scale" in name), key=len)
            for changed in (np.concatenate([parts[scales]] * 2), parts[scales].astype(np.int8)):
                folder = self.folder_of("wrong", parts | {scales: changed}, scheme.config)
                if changed.dtype == np.int8 and scales.endswith("weight_scale"):
                    continue  # not one of the scheme's: left as it is stored
                self.assertIn(scales, self.fails(3, "inspect", folder))

    def test_a_packed_folder_is_not_rewritten(self):
        for _, _, _, packed, _ in self.each():
            self.assertIn("quantized matrices", self.fails(3, "rewrite", packed, "-o", "out", "--fold", "gains"))


if __name__ == "__main__":
    unittest.main()
