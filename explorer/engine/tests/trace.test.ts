import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { modelFiles, readFiles, tokensOf, Tracer } from "../trace";
import { coreEngine } from "./core";
import { departures } from "./schema";

const repository = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const model = join(repository, "models/wordlist_gpt");
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
    expect(tracer.limits).toMatchObject({ vocabulary: 28, positions: 32, parameters: 205_696, unspelled: "" });
    const trace = await tracer.trace("\nunder");
    expect(departures("token-trace", trace)).toEqual([]);
    const tokens = trace.tokens.map(({ token }) => token).join(",");
    const told = JSON.parse(
      execFileSync(process.env["NORMSCOPE"]!, ["trace", model, "--tokens", tokens, "--json", "-"], {
        encoding: "utf8",
      }),
    ) as typeof trace;
    expect(trace.tokens).toEqual(told.tokens);
    expect(trace.heads).toEqual(told.heads);
    expect(trace.attention).toHaveLength(16);
    trace.attention.forEach(({ weights }, head) =>
      weights.flat().forEach((weight, i) => expect(weight).toBeCloseTo(told.attention[head]!.weights.flat()[i]!, 12)),
    );
    // x, and what the norm's steps make of it, is what the document's numbers are of.
    const values = await tracer.normSteps(3);
    trace.norms.forEach(({ width, tokens, kind }, norm) => {
      const rows = Array.from({ length: 5 }, (_, k) => [
        ...values.subarray((5 * norm + k) * width, (5 * norm + k + 1) * width),
      ]);
      const [x, centered, scaled] = rows.map((row) => Math.hypot(...row));
      const { length, ones_share, radius } = tokens[3]!;
      expect(kind).toBe("layer");
      expect(x).toBeCloseTo(length!, 10);
      expect((centered! / x!) ** 2).toBeCloseTo(1 - ones_share!, 10);
      expect(scaled).toBeCloseTo(radius! * Math.sqrt(width), 9);
    });
    await expect(tracer.normSteps(6)).rejects.toThrow("no token of the text is at that position");
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

  it("removes a component", async () => {
    const tracer = await Tracer.open(engine, files);
    const trace = await tracer.trace("\nunder");
    const effects = await tracer.effects(5);
    expect(departures("attribute", effects)).toEqual([]);
    const [first, other] = trace.predictions[5]!.likeliest;
    expect(effects.target.token).toBe(first!.token);
    const tokens = trace.tokens.map(({ token }) => token).join(",");
    const targets = ["--target", String(first!.token), "--against", String(other!.token), "--budget", "0"];
    const told = JSON.parse(
      execFileSync(process.env["NORMSCOPE"]!, ["attribute", model, "--tokens", tokens, ...targets, "--json", "-"], {
        encoding: "utf8",
      }),
    ) as typeof effects;
    for (const [index, { name }] of effects.components.entries()) {
      const tokens = await tracer.without(index, 28);
      expect(tokens.map(({ token }) => token).sort((a, b) => a - b)).toEqual(Array.from({ length: 28 }, (_, i) => i));
      const target = tokens.find(({ token }) => token === first!.token)!;
      expect(target.before).toBeCloseTo(first!.probability!, 12);
      for (const key of ["before", "exact", "frozen"] as const)
        expect(tokens.reduce((sum, token) => sum + token[key], 0)).toBeCloseTo(1, 12);
      const against = tokens.find(({ token }) => token === other!.token)!;
      // How the difference of the two logits changes.
      const change = (key: "exact" | "frozen") =>
        Math.log(target[key] / against[key]) - Math.log(target.before / against.before);
      expect(told.components[index]!.name).toBe(name);
      expect(change("exact")).toBeCloseTo(told.components[index]!.exact, 9);
      expect(change("frozen")).toBeCloseTo(told.components[index]!.frozen, 9);
    }
    await expect(tracer.without(-1, 10)).rejects.toThrow("there is no such component");
  });

  it("refuses in one line", async () => {
    const tracer = await Tracer.open(engine, files);
    await expect(tracer.trace("Z")).rejects.toThrow('the text has "Z", which is not in the vocabulary');
    await expect(tracer.trace("")).rejects.toThrow("the context has no tokens, expected at least one");
    await expect(tracer.trace("a".repeat(33))).rejects.toThrow("the context has 33 tokens, expected at most 32");
    await expect(Tracer.open(engine, files.slice(1, 2))).rejects.toThrow(/^(?!.*traced)/);
  });

  it("takes tokens where there is no tokenizer", async () => {
    const tracer = await Tracer.open(engine, files.slice(0, 2));
    expect(tracer.limits.unspelled).toBe("the model has no tokenizer beside it");
    await expect(tracer.trace("a")).rejects.toThrow("the model has no tokenizer beside it");
    const trace = await tracer.traceTokens([0, 2]);
    const spelled = await (await Tracer.open(engine, files)).trace("\na");
    expect(trace.predictions.map(({ likeliest }) => likeliest[0]!.logit)).toEqual(
      spelled.predictions.map(({ likeliest }) => likeliest[0]!.logit),
    );
    await expect(tracer.traceTokens([28])).rejects.toThrow("token 28 is not in the vocabulary, expected 0 to 27");
  });

  it.each(["llama", "gpt2"])("is of a GGUF file too: %s", async (name) => {
    const file = join(repository, "tests/models/gguf", `${name}.gguf`);
    const dropped = [{ name: `${name}.gguf`, data: new Blob([readFileSync(file)]) }];
    const tracer = await Tracer.open(engine, await readFiles(modelFiles(dropped)));
    const told = JSON.parse(
      execFileSync(process.env["NORMSCOPE"]!, ["trace", file, "--tokens", "0,1,2", "--json", "-"], {
        encoding: "utf8",
      }),
    ) as Awaited<ReturnType<typeof tracer.trace>>;
    const trace = await tracer.traceTokens([0, 1, 2]);
    expect(trace.norms).toHaveLength(5);
    trace.predictions.forEach(({ likeliest }, t) =>
      expect(likeliest[0]!.logit).toBeCloseTo(told.predictions[t]!.likeliest[0]!.logit!, 8),
    );
    await tracer.delete();
  });

  it("is of a Llama too, with llama2.c's tokenizer, where there is one", async ({ skip }) => {
    const folder = join(process.env["NORMSCOPE_DATA"] ?? "", "checkpoints");
    const names = ["llama2c_stories260K.safetensors", "tok512.bin"];
    if (!names.every((name) => existsSync(join(folder, name)))) return skip();
    const dropped = names.map((name) => ({ name, data: new Blob([readFileSync(join(folder, name))]) }));
    const tracer = await Tracer.open(engine, await readFiles(modelFiles(dropped)));
    const told = JSON.parse(
      execFileSync(
        process.env["NORMSCOPE"]!,
        ["trace", join(folder, names[0]!), "Once upon a time", "--names", join(folder, names[1]!), "--json", "-"],
        { encoding: "utf8" },
      ),
    ) as Awaited<ReturnType<typeof tracer.trace>>;
    const trace = await tracer.trace("Once upon a time");
    expect(trace.tokens).toEqual(told.tokens);
    trace.predictions.forEach(({ likeliest }, t) =>
      expect(likeliest[0]!.logit).toBeCloseTo(told.predictions[t]!.likeliest[0]!.logit!, 8),
    );
  });
});

describe("files of a model", () => {
  const file = (name: string, size = 1) => ({ name, data: { size } as Blob });
  const namesOf = (...names: string[]) => modelFiles(names.map((name) => file(name))).map(({ name }) => name);

  it("are those that it needs", () => {
    expect(namesOf("m/config.json", "m/model.safetensors", "m/README.md", "m/vocab.json", "m/extra.bin")).toEqual([
      "config.json",
      "model.safetensors",
      "vocab.json",
    ]);
    expect(namesOf("stories.safetensors", "tok512.bin")).toEqual(["stories.safetensors", "tokenizer.bin"]);
  });

  it("are refused in words", () => {
    expect(() => namesOf("README.md")).toThrow("none of the files has weights");
    expect(() => namesOf("a/model.safetensors", "b/model.safetensors")).toThrow("several files model.safetensors");
    expect(() => modelFiles([file("model.safetensors", 548e6)])).toThrow("have 548 MB, expected at most 256 MB");
  });

  it("come with tokens as numbers", () => {
    expect(tokensOf(" 1, 2 30\n")).toEqual([1, 2, 30]);
    expect(() => tokensOf("1 -2")).toThrow("“-2” is not the number of a token");
  });
});
