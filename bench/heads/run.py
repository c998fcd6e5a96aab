"""Processor time of `normscope heads` for one rotary head: the table of docs/speed.md.

usage: scripts/bench heads [--quick] [--json FILE]

The heads are those of Llamas with random weights in float32, one layer and 1536 coordinates of heads or more; with biases,
of Qwen 2. The time is that of one thread, less that of `normscope inspect`; medians.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = os.environ.get("NORMSCOPE", ROOT / "build/bin/normscope")
# head_dim, width, positions, biases
SHAPES = [(64, 768, 2048, False), (64, 768, 2048, True), (64, 768, 8192, False), (64, 768, 32768, False),
          (64, 768, 131072, False), (64, 2048, 2048, False), (64, 8192, 2048, False), (128, 768, 2048, False),
          (128, 4096, 8192, False), (256, 2048, 2048, False)]
RUNS = 5


def write(folder, dim, width, positions, biased):
    """A model of one layer; returns the number of its heads."""
    random = np.random.default_rng(1)
    heads = max(width, 1536) // dim
    if biased:
        heads = width // dim
    maps = heads * dim
    tensors = {"model.embed_tokens.weight": (64, width), "model.norm.weight": (width,)}
    layer = {"input_layernorm.weight": (width,), "post_attention_layernorm.weight": (width,),
             "self_attn.q_proj.weight": (maps, width), "self_attn.k_proj.weight": (maps, width),
             "self_attn.v_proj.weight": (maps, width), "self_attn.o_proj.weight": (width, maps),
             "mlp.gate_proj.weight": (8, width), "mlp.up_proj.weight": (8, width), "mlp.down_proj.weight": (width, 8)}
    if biased:
        layer |= {f"self_attn.{part}_proj.bias": (maps,) for part in "qkv"}
    tensors |= {f"model.layers.0.{name}": shape for name, shape in layer.items()}
    header, data = {}, b""
    for name, shape in tensors.items():
        value = random.standard_normal(shape) * (0.03 if len(shape) == 2 else 0.2) + (len(shape) == 1)
        value = value.astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "qwen2" if biased else "llama", "hidden_size": width, "num_attention_heads": heads,
         "num_key_value_heads": heads, "head_dim": dim, "num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 64,
         "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": positions, "hidden_act": "silu",
         "tie_word_embeddings": True}))
    return heads


def seconds(*words):
    """Median processor time of the command."""
    def one():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([str(COMMAND), *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return statistics.median(one() for _ in range(RUNS))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="the first shape alone")
    options.add_argument("--json", metavar="FILE", type=Path, help="write the table to FILE as well")
    given = options.parse_args()
    rows = []
    print("| head_dim | width | positions | biases | processor time of a head |\n|---|---|---|---|---|")
    for dim, width, positions, biased in SHAPES[:1] if given.quick else SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            heads = write(Path(folder), dim, width, positions, biased)
            start = seconds("inspect", folder, "-q")
            time = 1e3 * (seconds("heads", folder, "--threads", 1, "-q") - start) / heads
        rows.append({"head_dim": dim, "width": width, "positions": positions, "biases": biased, "ms": time})
        print(f"| {dim} | {width} | {positions} | {'yes' if biased else 'no'} | {time:.1f} ms |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
