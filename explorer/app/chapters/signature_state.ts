import type { Precision, SmallModel } from "../../engine/signature";
import type { Doors } from "../chapter";
import { cppOf, numbersOf } from "../doors";
import { between, listOf, oneOf, seed } from "../link";
import type { Rules } from "../link";

export const defaults = {
  /** Gains of the model A that outputs are held against. */
  gain: [1, 1.8, 0.6],
  /** Where the outputs are from: A before its gains were moved, A with its gains now, or B. */
  from: "recorded",
  precision: "float32",
  seed: 1,
};
export type State = typeof defaults;

export const sources: [string, string][] = [
  ["recorded", "A, recorded before"],
  ["now", "A, with the gains now"],
  ["other", "B"],
];
export const precisions: [Precision, string][] = [
  ["float32", "float32"],
  ["float16", "float16"],
  ["bfloat16", "bfloat16"],
];
export const gains = { min: -4, max: 4 };
export const outputCount = 16;

export const rules: Rules<State> = {
  gain: listOf(between(gains), (count) => count === 3, "three numbers"),
  from: oneOf(sources.map(([value]) => value)),
  precision: oneOf(precisions.map(([value]) => value)),
  seed,
};

const modelOf = (gain: number[], unembedding: number[], bias: number[]): SmallModel => ({
  // Without eps, so that every output lies on the ellipse and not merely near it.
  norm: { kind: "layer", width: 3, eps: 0, gain, bias: [0, 0, 0] },
  unembedding,
  bias,
});
const weights = [1.2, 0.3, -0.5, -0.4, 0.9, 0.7, 0.1, -1, 0.6];
const bias = [0.1, 0, -0.1];

export const modelA = ({ gain }: State): SmallModel => modelOf(gain, weights, bias);
export const modelB = modelOf([1.2, 0.8, 1.1], [0.9, -0.6, 0.2, 0.1, 1.1, -0.8, -0.7, -0.2, 1], [-0.4, 0.3, 0.1]);

export const sourceOf = (state: State): SmallModel =>
  state.from === "other" ? modelB : modelA(state.from === "now" ? state : defaults);

const rowsOf = (values: number[]): string =>
  [0, 3, 6].map((at) => `[${values.slice(at, at + 3).join(", ")}]`).join(", ");

/** Python that writes model A as a checkpoint, and outputs. */
function script(state: State): string {
  const [a, from] = [modelA(state), sourceOf(state)];
  const code = { float32: "f", float16: "e", bfloat16: "f" }[state.precision as Precision];
  // bfloat16 is float32 without its last 16 bits, rounded to the nearest.
  const rounding =
    state.precision === "bfloat16"
      ? `bits, = struct.unpack("<I", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]`
      : `return struct.unpack("<${code}", struct.pack("<${code}", value))[0]`;
  return `import json, math, os, random, struct

def write(path, tensors):
    head, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}d", *values)
        head[name] = {"dtype": "F64", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)

def rounded(value):
    ${rounding}

gain, weights, bias = [${a.norm.gain!.join(", ")}], [${rowsOf(a.unembedding)}], [${a.bias!.join(", ")}]
os.makedirs("three_tokens", exist_ok=True)
with open("three_tokens/config.json", "w") as file:
    json.dump({"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 3, "vocab_size": 3, "n_positions": 1,
               "layer_norm_epsilon": 0.0, "tie_word_embeddings": False}, file)
# One block whose weights are zero; what follows it is the model.
block = {"ln_1.weight": [3], "ln_1.bias": [3], "attn.c_attn.weight": [3, 9], "attn.c_attn.bias": [9],
         "attn.c_proj.weight": [3, 3], "attn.c_proj.bias": [3], "ln_2.weight": [3], "ln_2.bias": [3],
         "mlp.c_fc.weight": [3, 12], "mlp.c_fc.bias": [12], "mlp.c_proj.weight": [12, 3], "mlp.c_proj.bias": [3]}
zeros = {f"transformer.h.0.{name}": (shape, [0.0] * math.prod(shape)) for name, shape in block.items()}
write("three_tokens/model.safetensors", {
    **zeros, "transformer.wte.weight": ([3, 3], [0.0] * 9), "transformer.wpe.weight": ([1, 3], [0.0] * 3),
    "transformer.ln_f.weight": ([3], gain), "transformer.ln_f.bias": ([3], [0.0] * 3),
    "lm_head.weight": ([3, 3], sum(weights, [])), "lm_head.bias": ([3], bias)})

gain, weights, bias = [${from.norm.gain!.join(", ")}], [${rowsOf(from.unembedding)}], [${from.bias!.join(", ")}]
random.seed(${state.seed})
logits = []
for _ in range(${outputCount}):
    x = [random.gauss(0, 1) for _ in range(3)]
    x = [value - sum(x) / 3 for value in x]
    length = (sum(value * value for value in x) / 3) ** 0.5
    hidden = [rounded(g * value / length) for g, value in zip(gain, x)]
    logits += [rounded(sum(w * h for w, h in zip(row, hidden)) + b) for row, b in zip(weights, bias)]
write("outputs.safetensors", {"logits": ([${outputCount}, 3], logits)})
`;
}

const dtypes: Record<Precision, string> = { float32: "F32", float16: "F16", bfloat16: "BF16" };

export function doors(state: State): Doors {
  const a = modelA(state);
  const words = ["signature", "verify", "three_tokens", "outputs.safetensors:logits", "--dtype", state.precision];
  return {
    command: `python3 - <<'END'\n${script(state)}END\nnormscope ${words.join(" ")}`,
    cpp: cppOf(
      ["selectability/vocabulary", "signature/verify"],
      `using namespace normscope;
const NormSpec norm{.kind = NormKind::layer, .width = 3, .eps = 0.0, .gain = {${numbersOf(a.norm.gain!)}}};
const std::vector<double> weights{${numbersOf(a.unembedding)}};
const auto head = signature::head_of(
    selectability::vocabulary_head(norm, MatrixView<const double>(weights.data(), 3, 3), {${numbersOf(a.bias!)}}));
// Rows of logits; a file may stand here.
const signature::Outputs outputs(files::OpenedArray("0.6,1.9,-2.4;1.1,0.2,-1.3"), std::nullopt,
                                 {.precision = Dtype::${dtypes[state.precision as Precision]}});
for (const auto& row : signature::verify(head, outputs).rows) {
  fmt::print("{} units: {}\\n", row.length_units, to_string(row.verdict));
}`,
    ),
    python: `${script(state)}
import subprocess

words = ${JSON.stringify(["normscope", ...words, "--json", "-"])}
answer = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
for row in answer["results"]:
    print(row["length_units"], row["verdict"])
`,
  };
}
