import { describe, expect, it } from "vitest";
import { captionOf, lostAt, stepsOf } from "../chapters/trace_steps";
import type { TokenTrace } from "../../generated/token-trace";

const token = { length: 5, added: 2, ones_share: 0.04, sigma: 0.5, radius: 1, place: [] };
const norm = (name: string, readers: string[], kind = "layer") => ({
  ...{ name, role: "", layer: 0, readers, kind, centers: kind === "layer", width: 4, eps: 0, axes: [] },
  tokens: [token, token, token],
});
const names = ["a", "b", "c"].map((name, i) => ({ token: i, name }));
const likely = (name: string, probability: number) => ({ token: 0, name, logit: 1, probability, reach: null });
const trace: TokenTrace = {
  ...{ schema: "normscope.token-trace/1", version: "", path: "", architecture: "", tokens: names, final_norm: "" },
  norms: [norm("in", ["attention", "mlp"]), norm("out", ["unembedding"], "rms")],
  heads: [
    {
      ...{ layer: 0, head: 0, key: 0, norm: "in", selectable: [0, 2], undecided: [], refused: "" },
      lost: [{ position: 1, from: 2 }],
    },
  ],
  ...{ key_positions: 3, first_query: 1, reach_refused: "", notes: [] },
  attention: [0, 1].map((head) => ({
    layer: 0,
    head,
    key: 0,
    norm: "in",
    weights: [
      [0.4, 0.6],
      [0.1, 0.2, 0.7],
    ],
  })),
  predictions: names.map(() => ({ likeliest: [likely("d", 0.75), likely("e", 0.25)], next: null })),
};
const captions = (position: number) => stepsOf(trace).map((step) => captionOf(trace, step, position));

describe("the steps of a text through a model", () => {
  it("follow the norms and what reads them", () => {
    expect(stepsOf(trace).map(({ kind }) => kind)).toEqual([
      ...["stream", "norm", "heads", "mlp", "norm", "next", "removal"],
    ]);
  });

  it("say what a norm removes, and that an RMSNorm removes nothing", () => {
    const [, layer, , , rms] = captions(2);
    expect(layer).toMatch(/^LayerNorm in subtracts the mean, which is 20\.0\s% of the vector’s length/);
    expect(rms).toMatch(/^RMSNorm out, the final norm, removes nothing/);
  });

  it("count a key that heads share once, from the position on at which it is lost", () => {
    expect(trace.attention.map((head) => lostAt(trace, head, 2))).toEqual([[1], [1]]);
    expect(lostAt(trace, trace.attention[0]!, 1)).toEqual([]);
    expect(captions(2)[2]).toMatch(/70\.0\s% to “c”; 1 of the 3 keys so far is lost/);
    expect(captions(1)[2]).toMatch(/60\.0\s% to “b”; each of the 2 keys so far wins for some query/);
    // The document has no weights of the first query.
    expect(captions(0)[2]).toMatch(/^2 heads of layer 0 read the norm;/);
  });

  it("add what the branches of a norm add together", () => {
    expect(captions(2)[3]).toBe(
      "The MLP of layer 0 and the heads beside it add a vector of length 2.00 to the stream, which then has length 5.00.",
    );
  });
});
