"""What rewriting a model's norms does to its loss in int8, against the same model as it is: the numbers of docs/int8.md.

usage: scripts/bench int8 [--quick] [--sequences N] [--seeds S1,S2,...] [--json FILE] [MODEL...]

A model is a folder in Hugging Face's layout; the default are models/kjv_gpt and, where $NORMSCOPE_DATA has it, stories260K,
which is converted. For each seed, the model itself draws texts in float64, and the int8 model reads them. The excess is the
mean over all positions of KL(float || int8) in nats per token: how much the cross-entropy on the model's own text grows.
exp(excess) is the factor of the perplexity.

int8: the output of every norm is rounded to one scale for all its features, and each row of the maps that read it to a
scale of its own. The rest stays in float64. The scale of a norm is the one that `normscope ranges` proves sufficient for
every input ("proved"), or the largest magnitude met on as many other texts of the model ("calibrated").

Arms, all the same function before rounding, which is checked: the model as it is; rewritten with --migrate, with --fold gains,
and with --fold gains and --rotate; and a control, in which the powers of two of --migrate are dealt to the features of each
norm at random.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
import forward_pass  # noqa: E402

COMMAND = os.environ.get("NORMSCOPE", ROOT / "build/bin/normscope")
STORIES = Path(os.environ.get("NORMSCOPE_DATA", ROOT.parent / "shared/data")) / "checkpoints/llama2c_stories260K.safetensors"
STEPS = 127
AS_IT_IS, MIGRATED, DEALT = "as it is", "--migrate", "powers dealt at random"
WAYS = {MIGRATED: [MIGRATED], "--fold gains": ["--fold", "gains"],
        "--fold gains --rotate random:1": ["--fold", "gains", "--rotate", "random:1"]}


def command(*words):
    subprocess.run([str(word) for word in (COMMAND, *words)], check=True, stdout=subprocess.DEVNULL)


def write(folder, config, weights):
    """A folder in Hugging Face's layout."""
    header, data = {}, b""
    for name, value in weights.items():
        value = np.ascontiguousarray(value, np.float32)
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps(config))


def stories(folder):
    """stories260K as transformers names a Llama, with the head as a tensor of its own."""
    w = forward_pass.tensors(STORIES)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 64,
              "intermediate_size": 172, "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 4,
              "rms_norm_eps": 1e-5, "hidden_act": "silu", "max_position_embeddings": 512, "tie_word_embeddings": False,
              "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "bos_token_id": 1}
    # llama2.c turns neighbouring features of a head, transformers those that are half a head apart.
    apart = lambda rows: rows.reshape(-1, 4, 2, 64).swapaxes(1, 2).reshape(-1, 64)
    named = {"model.embed_tokens": w["tok_emb"], "model.norm": w["rms_final"], "lm_head": w["tok_emb"]}
    for layer in range(5):
        at = f"model.layers.{layer}."
        named |= {at + "input_layernorm": w["rms_att"][layer], at + "post_attention_layernorm": w["rms_ffn"][layer],
                  at + "self_attn.q_proj": apart(w["wq"][layer]), at + "self_attn.k_proj": apart(w["wk"][layer].reshape(32, 64)),
                  at + "self_attn.v_proj": w["wv"][layer].reshape(32, 64), at + "self_attn.o_proj": w["wo"][layer],
                  at + "mlp.gate_proj": w["w1"][layer], at + "mlp.up_proj": w["w3"][layer], at + "mlp.down_proj": w["w2"][layer]}
    write(folder, config, {name + ".weight": value for name, value in named.items()})
    return folder


class Model(forward_pass.Decoder):
    """A decoder that records the largest output of each norm and, with scales, rounds those outputs."""

    def __init__(self, folder):
        super().__init__(folder)
        self.scales, self.largest = {}, {}
        with tempfile.TemporaryDirectory() as scratch:
            command("ranges", folder, "--json", f"{scratch}/ranges.json", "-q")
            norms = json.loads(Path(scratch, "ranges.json").read_text())["norms"]
        self.proved = {norm["name"]: norm["output"]["largest"] for norm in norms}
        self.readers = {norm["name"]: sorted({reader["weight"] for reader in norm["readers"]}) for norm in norms}

    def norm(self, x, name, of_stream=True):
        y = super().norm(x, name, of_stream)
        self.largest[name] = max(self.largest.get(name, 0.0), float(np.abs(y).max()))
        return rounded(y, self.scales[name]) if name in self.scales else y

    def change_readers(self, name, change):
        """Replaces each matrix that reads the norm by `change` of it, given one row an output."""
        for weight in self.readers[name]:
            stored_in_out = self.kind in forward_pass.IN_OUT and weight != "lm_head.weight"
            self.w[weight] = change(self.w[weight].T).T if stored_in_out else change(self.w[weight])

    def quantized(self, largest):
        """Rounds the readers of norms, and from now on the norms' outputs."""
        self.scales = {name: value / STEPS for name, value in largest.items()}
        for name in self.readers:
            self.change_readers(name, lambda rows: rounded(rows, np.abs(rows).max(1, keepdims=True) / STEPS))
        return self

    def dealt(self, migrated, rng):
        """Moves the powers of two that `migrated` moved, dealt to the features of each norm at random."""
        for name in self.readers:
            power = 2.0**rng.permutation(np.round(np.log2(migrated.w[name + ".weight"] / self.w[name + ".weight"])))
            for part in (f"{name}.weight", f"{name}.bias"):
                if part in self.w:
                    self.w[part] = self.w[part] * power
            self.change_readers(name, lambda rows: rows / power)
        return self


def rounded(x, scale):
    return np.clip(np.round(x / scale), -STEPS, STEPS) * scale


def log_softmax(scores):
    scores = scores - scores.max(-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def drawn(model, sequences, length, rng):
    """Texts that the model draws, each from its first token on."""
    texts = []
    for _ in range(sequences):
        ids = [model.config.get("bos_token_id") or 10]  # of kjv_gpt, the newline before a verse
        while len(ids) < length:
            chances = np.exp(log_softmax(model.logits(ids)[-1]))
            ids.append(int(rng.choice(len(chances), p=chances / chances.sum())))
        texts.append(ids)
    return texts


def excess(model, truth, texts):
    """KL of the model from the float model, in nats per token."""
    return float(np.mean([(np.exp(true) * (true - log_softmax(model.logits(ids)))).sum(-1).mean()
                          for ids, true in zip(texts, truth)]))


def measured(folder, scratch, sequences, length, seeds):
    original = Model(folder)
    folders = {AS_IT_IS: folder}
    # Rewriting keeps a head equal to the token embedding, unless it is told that each has a tensor of its own.
    table = original.w[original.named(original.root, forward_pass.EMBEDDINGS) + ".weight"]
    untie = ["--untie"] if np.array_equal(table, original.w["lm_head.weight"]) else []
    for number, (way, options) in enumerate(WAYS.items()):
        folders[way] = scratch / f"{folder.name}-{number}"
        command("rewrite", folder, "-o", folders[way], *options, *untie, "-q")
    result = {"loss": [], "arms": {}}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        others = drawn(original, sequences, length, rng)
        texts = drawn(original, sequences, length, rng)
        truth = [log_softmax(original.logits(ids)) for ids in texts]
        result["loss"].append(float(np.mean([-true[np.arange(length - 1), ids[1:]].mean() for true, ids in zip(truth, texts)])))
        folders[DEALT] = scratch / f"{folder.name}-dealt-{seed}"
        write(folders[DEALT], original.config, Model(folder).dealt(Model(folders[MIGRATED]), rng).w)
        for arm, path in folders.items():
            model = Model(path)
            if (difference := excess(model, truth[:1], texts[:1])) > 1e-9:
                sys.exit(f"bench: {arm} is another function: its KL is {difference}")
            model.largest = {}
            for ids in others:
                model.logits(ids)
            row = result["arms"].setdefault(arm, {"proved": [], "calibrated": []})
            for way, largest in (("proved", model.proved), ("calibrated", model.largest)):
                row[way].append(excess(Model(path).quantized(dict(largest)), truth, texts))
    return result


def shown(values, base):
    mean = statistics.mean(values)
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{mean:.5f} ± {spread:.5f}", f"{100 * (mean / statistics.mean(base) - 1):+.0f} %"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.sequences, options.length, options.seeds = 2, 16, "1,2"
    seeds = [int(seed) for seed in options.seeds.split(",")]
    results = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        models = options.models or [ROOT / "models/kjv_gpt", *([stories(scratch / "stories260K")] if STORIES.exists() else [])]
        for folder in models:
            result = results[folder.name] = measured(folder, scratch, options.sequences, options.length, seeds)
            print(f"\n{folder.name}: {options.sequences} texts of {options.length} tokens for each of the seeds {options.seeds}; "
                  f"loss in float {statistics.mean(result['loss']):.3f} nats per token\n")
            print("| int8 model | excess, proved scales | change | excess, calibrated scales | change |\n|---|---|---|---|---|")
            base = result["arms"][AS_IT_IS]
            for arm, row in result["arms"].items():
                cells = [cell for way in ("proved", "calibrated") for cell in shown(row[way], base[way])]
                print(f"| {arm} | {' | '.join(cells)} |")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
