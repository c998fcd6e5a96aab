import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { Tracer } from "../trace";
import { coreEngine } from "./core";
import { departures } from "./schema";

const model = join(dirname(fileURLToPath(import.meta.url)), "../../../models/wordlist_gpt");
const files = ["config.json", "model.safetensors", "vocab.json"].map((name) => ({
  name,
  bytes: new Uint8Array(readFileSync(join(model, name))),
}));

describe("a text through a model", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await coreEngine();
  });

  it("is that of the command", async () => {
    const tracer = await Tracer.open(engine, files);
    expect(tracer.limits).toEqual({ vocabulary: 28, positions: 32 });
    const trace = await tracer.trace("\nunder");
    expect(departures("token-trace", trace)).toEqual([]);
    const tokens = trace.tokens.map(({ token }) => token).join(",");
    const told = JSON.parse(
      execFileSync(process.env["NORMSCOPE"]!, ["trace", model, "--tokens", tokens, "--json", "-"], { encoding: "utf8" }),
    ) as typeof trace;
    expect(trace.tokens).toEqual(told.tokens);
    expect(trace.heads).toEqual(told.heads);
    trace.norms.forEach((norm, i) =>
      norm.tokens.forEach((token, t) => {
        const other = told.norms[i]!.tokens[t]!;
        expect(token.sigma).toBeCloseTo(other.sigma!, 10);
        token.place.forEach((along, k) => expect(along).toBeCloseTo(other.place[k]!, 8));
      }),
    );
    trace.predictions.forEach(({ likeliest }, t) =>
      likeliest.forEach(({ token, logit, reach }, k) => {
        const other = told.predictions[t]!.likeliest[k]!;
        expect([token, reach]).toEqual([other.token, other.reach]);
        expect(logit).toBeCloseTo(other.logit!, 9);
      }),
    );
    await tracer.delete();
  });

  it("refuses in one line", async () => {
    const tracer = await Tracer.open(engine, files);
    await expect(tracer.trace("Z")).rejects.toThrow('the text has "Z", which is not in the vocabulary');
    await expect(tracer.trace("")).rejects.toThrow("the context has no tokens, expected at least one");
    await expect(tracer.trace("a".repeat(33))).rejects.toThrow("the context has 33 tokens, expected at most 32");
    await expect(Tracer.open(engine, files.slice(0, 2))).rejects.toThrow("the model has no tokenizer beside it");
  });
});
