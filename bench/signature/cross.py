"""Outputs of each of several models against the ellipse of each, and how many values of a row tell them apart.

Models of 32 tokens and width 16: one training after 300 steps, one step later and 300 steps later, the same training from
another seed, and gpt_by_hand of $NORMSCOPE_DATA. The training is of the final norm and the unembedding of a GPT-2 with one
random layer, on the letters of LICENSE, which does not change. Models of 512 tokens: stories260K, and the same with one
gain that is 1 % larger. wordlist_gpt and gpt_nano_sort have fewer tokens than their ellipses have axes.
"""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("NORMSCOPE_DATA", str(ROOT.parent / "shared/data"))
sys.path.insert(0, str(ROOT / "tests/cli"))
from forward_pass import tensors  # noqa: E402
from signature_models import CHECKPOINTS, OWN_MODEL, SORT, STORIES, gpt, rows_of, sort, stories, wordlist  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz .,\n-'"
WIDTH, HEADS, CONTEXT, BATCH = 16, 2, 8, 64
STEPS = (300, 301, 600)
FRESH = 64  # rows that are held against each ellipse
AT, LAST = "transformer.h.0.", "transformer.ln_f"
FREE = (LAST + ".weight", LAST + ".bias", "lm_head.weight")


def save(path, weights):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, array in weights.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in weights.values()))


def untrained(seed):
    random = np.random.default_rng(seed)
    shapes = {"transformer.wte.weight": (32, WIDTH), "transformer.wpe.weight": (CONTEXT, WIDTH),
              AT + "attn.c_attn.weight": (3 * WIDTH, WIDTH), AT + "attn.c_proj.weight": (WIDTH, WIDTH),
              AT + "mlp.c_fc.weight": (4 * WIDTH, WIDTH), AT + "mlp.c_proj.weight": (WIDTH, 4 * WIDTH),
              "lm_head.weight": (32, WIDTH)}
    weights = {name: random.normal(size=shape, scale=shape[1] ** -0.5) for name, shape in shapes.items()}
    for name in [name for name in shapes if name.startswith(AT)]:
        weights[name.replace("weight", "bias")] = np.zeros(shapes[name][0])
    for norm in (AT + "ln_1", AT + "ln_2", LAST):
        weights |= {norm + ".weight": np.ones(WIDTH), norm + ".bias": np.zeros(WIDTH)}
    return {name: array.astype(np.float32) for name, array in weights.items()}


def trained(seed, steps):
    """The weights after each of the given numbers of steps of Adam, and the cross-entropy of the last."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8").lower()
    letters = np.array([LETTERS.index(letter) for letter in text if letter in LETTERS])
    weights, random, found = untrained(seed), np.random.default_rng(seed), []
    plain = {**weights, "lm_head.weight": np.eye(WIDTH, dtype=np.float32)}  # its logits are what the final norm scales
    means = [(np.zeros_like(weights[name]), np.zeros_like(weights[name])) for name in FREE]
    for step in range(1, max(steps) + 1):
        at = random.integers(0, len(letters) - CONTEXT - 1, BATCH)[:, None] + np.arange(CONTEXT)
        unit = gpt(plain, HEADS, letters[at], stored_out_in=True).reshape(-1, WIDTH)
        targets = letters[at + 1].ravel()
        gain, bias, head = (weights[name] for name in FREE)
        out = unit * gain + bias
        scores = np.exp(out @ head.T)
        scores /= scores.sum(1, keepdims=True)
        loss = -np.log(scores[np.arange(len(targets)), targets]).mean()
        scores[np.arange(len(targets)), targets] -= 1
        scores /= len(targets)
        of_out = scores @ head
        for name, (first, second), slope in zip(FREE, means, ((of_out * unit).sum(0), of_out.sum(0), scores.T @ out)):
            first += 0.1 * (slope - first)
            second += 0.01 * (slope**2 - second)
            change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
            weights[name] = weights[name] - np.float32(0.01) * change.astype(np.float32)
        if step in steps:
            found.append(dict(weights))
    return found, loss


class Entry:
    """A model with a checkpoint and a forward pass."""

    def __init__(self, name, path, options, outputs, context, tokens):
        self.name, self.path, self.options = name, path, options
        self.rows = lambda count, seed: rows_of(outputs, -(-count // context), context, tokens, seed)[:count]


def models(folder):
    """The models by their numbers of tokens."""
    found = []
    runs = [(seed, steps, trained(seed, steps)) for seed, steps in ((1, STEPS), (2, STEPS[:1]))]
    for seed, steps, (checkpoints, loss) in runs:
        print(f"seed {seed}: cross-entropy {loss:.3f} at step {steps[-1]}")
        for step, weights in zip(steps, checkpoints):
            path = folder / f"seed{seed}_{step}.safetensors"
            save(path, weights)
            found.append(Entry(f"seed {seed}, step {step}", path, ["--heads", str(HEADS)],
                               lambda ids, w=weights: gpt(w, HEADS, ids, stored_out_in=True), CONTEXT, 32))
    by_hand = CHECKPOINTS / "gpt_by_hand.safetensors"
    if by_hand.exists():
        weights = {name.replace("gamma", "weight"): array for name, array in tensors(by_hand).items()}
        biases = {name[:-6] + "bias": np.zeros(len(array)) for name, array in weights.items() if name.startswith("transformer.") and "." in name}
        # The number of heads is not in the file; whatever it is, outputs end in the same norm.
        found.append(Entry("gpt_by_hand", by_hand, ["--heads", "4"], lambda ids: gpt(weights | biases, 4, ids, stored_out_in=True), 8, 32))
    large = []
    if STORIES.exists():
        tuned = {name: array.astype(np.float32) for name, array in tensors(STORIES).items()}
        tuned["rms_final"] = tuned["rms_final"].copy()
        tuned["rms_final"][5] *= np.float32(1.01)
        path = folder / "tuned.safetensors"
        save(path, tuned)
        large = [Entry("stories260K", STORIES, [], stories, 96, 512),
                 Entry("one gain 1 % larger", path, ["--arch", "llama2c"], lambda ids: stories(ids, path), 96, 512)]
    small = [Entry("wordlist_gpt", OWN_MODEL, [], wordlist, 28, 28)]
    if SORT.exists():
        small.append(Entry("gpt_nano_sort", SORT, ["--heads", "3"], sort, 11, 3))
    return [found, large, *([entry] for entry in small)]


class Bench:
    def __init__(self, command, folder):
        self.command, self.folder = command, folder

    def run(self, *words):
        """The document of a subcommand of `signature`, or none where the input is refused."""
        words = [self.command, "signature", *words, "--json", "cross.json", "-q"]
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            return None
        return json.loads((self.folder / "cross.json").read_text())

    def verdicts(self, against, outputs, options=()):
        """Rows that are consistent, refuted, and refuted with a proof; and the largest distance in units of noise."""
        found = self.run("verify", against, outputs, *options)
        rows = found["results"]
        units = [max(row["off_subspace_units"], abs(row["length_units"])) for row in rows]
        return {"consistent": found["consistent"], "refuted": found["not_this_model"],
                "proved": sum(row["proved"] for row in rows), "units": float(np.median(units)), "rows": len(rows)}


def cell(verdicts):
    if verdicts["refuted"] == 0:
        return "consistent" if verdicts["consistent"] == verdicts["rows"] else f"{verdicts['consistent']} consistent"
    return f"{verdicts['refuted']}/{verdicts['rows']} refuted, {verdicts['units']:.0e}"


def table(title, entries, cells):
    print(f"\n{title}\n{'outputs of':>22} | " + " | ".join(f"{entry.name:>21}" for entry in entries))
    for entry, line in zip(entries, cells):
        print(f"{entry.name:>22} | " + " | ".join(f"{text:>21}" for text in line), flush=True)


def cross(command, folder):
    bench = Bench(command, folder)
    result = {"cross": [], "values": []}
    groups = models(folder)
    for group in groups:
        for i, entry in enumerate(group):
            np.save(folder / f"fresh{i}.npy", entry.rows(FRESH, 7))
            axes = 64 if group[0].name == "stories260K" else WIDTH
            np.save(folder / f"rows{i}.npy", entry.rows(2 * (axes * (axes + 3) // 2), 1))
            found = bench.run("extract", f"rows{i}.npy", "-o", f"ellipse{i}.safetensors") if len(group) > 1 else None
            if found is None:
                own = bench.verdicts(entry.path, f"fresh{i}.npy", entry.options)
                print(f"\n{entry.name}: no ellipse from outputs; own outputs against its weights: {cell(own)}, {own['refuted']} refuted")
                result["cross"].append({"outputs": entry.name, "against": entry.name, "by": "weights", **own})
        if len(group) == 1 or not (folder / f"ellipse{len(group) - 1}.safetensors").exists():
            continue
        for by, title in (("weights", "ellipses of the weights"), ("outputs", "ellipses from outputs alone")):
            cells = []
            for i, entry in enumerate(group):
                line = []
                for k, other in enumerate(group):
                    against = other.path if by == "weights" else f"ellipse{k}.safetensors"
                    found = bench.verdicts(against, f"fresh{i}.npy", other.options if by == "weights" else ())
                    result["cross"].append({"outputs": entry.name, "against": other.name, "by": by, **found})
                    line.append(cell(found))
                cells.append(line)
            table(f"{title}: rows refuted, median distance in units of noise", group, cells)
        for path in folder.glob("ellipse*"):
            path.unlink()
    result["values"] = few_values(bench, groups[0])
    return result


def few_values(bench, group):
    """Rows refuted with a proof where only the largest values of each are given."""
    print("\nthe k largest log-probabilities of each row, against the weights of seed 1, step 300: rows refuted, proved")
    result = []
    for count in (4, 8, 12, 15, 16, 17, 20, 32):
        line = []
        for entry in (group[0], group[1], group[3]):
            logits = entry.rows(FRESH, 7).astype(np.float64)
            logits -= np.log(np.exp(logits).sum(1, keepdims=True))
            top = np.argsort(-logits, 1)[:, :count]
            np.save(bench.folder / "top.npy", np.take_along_axis(logits, top, 1).astype(np.float32))
            np.save(bench.folder / "ids.npy", top)
            found = bench.verdicts(group[0].path, "top.npy", [*group[0].options, "--ids", "ids.npy", "--dtype", "float32"])
            result.append({"values": count, "outputs": entry.name, **found})
            line.append(f"{entry.name}: {found['refuted']:2}")
        print(f"k = {count:2}  " + "  ".join(line), flush=True)
    return result
