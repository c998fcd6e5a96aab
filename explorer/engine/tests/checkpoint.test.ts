import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { arrange, readCheckpoint } from "../checkpoint";
import type { NamedFile } from "../checkpoint";
import type { Core } from "../protocol";
import { loadCore } from "./core";
import { header, ofText, onDisk } from "./files";
import { departures } from "./schema";

let core: Core;
beforeAll(async () => {
  core = await loadCore();
});

const quiet = () => undefined;
const repository = fileURLToPath(new URL("../../../", import.meta.url));
const model = join(repository, "models/wordlist_gpt");
describe("a dropped checkpoint", () => {
  it("is one file, one folder, or several files as one folder", () => {
    const file = (name: string) => ofText(name, "");
    expect(arrange([file("a.safetensors")]).path).toBe("a.safetensors");
    expect(arrange([file("gpt/model.safetensors"), file("gpt/config.json")]).path).toBe("gpt");
    const flat = arrange([file("model.safetensors"), file("config.json")]);
    expect(flat.path).toBe("model");
    expect(flat.files.map(({ name }) => name)).toEqual(["model/model.safetensors", "model/config.json"]);
    expect(arrange([file("x.safetensors.index.json"), file("x-1-of-1.safetensors")]).path).toBe(
      "model/x.safetensors.index.json",
    );
    expect(arrange([file("../../a//b")]).path).toBe("a/b");
    expect(() => arrange([])).toThrow("no file");
  });

  it("is read as a folder with its configuration and its vocabulary", () => {
    const files = readdirSync(model).map((name) => ({ ...onDisk(join(model, name)), name: `wordlist_gpt/${name}` }));
    const heard: string[] = [];
    const { report, charts } = readCheckpoint(core, files, (what) => heard.push(what));
    const document = JSON.parse(report);
    expect(document.schema).toBe("normscope.report/1");
    expect(document.model.name).toBe("wordlist_gpt");
    expect(document.norms.length).toBeGreaterThan(0);
    expect(JSON.parse(charts).length).toBeGreaterThan(0);
    expect(departures("report", document)).toEqual([]);
    expect(departures("charts", JSON.parse(charts))).toEqual([]);
    expect(heard).toContain("measuring norms");
  });

  it("says what is wrong with a file", () => {
    const whole = readFileSync(join(model, "model.safetensors"));
    const read = (file: NamedFile) => () => readCheckpoint(core, [file], quiet);
    expect(read(ofText("cut.safetensors", whole.subarray(0, 100_000)))).toThrow(
      /safetensors: cut.safetensors: .*data has/,
    );
    expect(read(ofText("none.safetensors", ""))).toThrow("file has 0 bytes, expected at least 8");
    expect(read(ofText("notes.txt", "hello"))).toThrow("checkpoint: notes.txt: format is not known");
    const extent = { a: { dtype: "U8", shape: [0, 2 ** 33], data_offsets: [0, 0] } };
    expect(read(ofText("wide.safetensors", header(extent)))).toThrow(
      "dimension of 8589934592, expected one that fits into 32 bits",
    );
    // The next file is read normally.
    expect(JSON.parse(readCheckpoint(core, [ofText("a.safetensors", whole)], quiet).report).schema).toBe(
      "normscope.report/1",
    );
  });
});

/** Paths at which two documents differ by more than the relative bound `bound`. */
function differences(a: unknown, b: unknown, bound: number, path = "$"): string[] {
  if (typeof a === "number" && typeof b === "number")
    return Math.abs(a - b) <= bound * Math.max(1, Math.abs(a), Math.abs(b)) ? [] : [`${path}: ${a}, ${b}`];
  if (a !== null && b !== null && typeof a === "object" && typeof b === "object") {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return keys.flatMap((key) => differences((a as never)[key], (b as never)[key], bound, `${path}.${key}`));
  }
  return a === b ? [] : [`${path}: ${JSON.stringify(a)}, ${JSON.stringify(b)}`];
}

const data = process.env["NORMSCOPE_DATA"] || join(repository, "../shared/data");
const command = process.env["NORMSCOPE"] ?? "";
const real = [
  "gpt_nano_sort.safetensors",
  "gpt_by_hand.safetensors",
  "mnist_vit_fpga.safetensors",
  "galileo_nano_encoder",
  "magika_v3_3.onnx",
  "presto.pt",
  "rwkv_tiny_5v2_730K.safetensors",
  "llama2c_stories260K.safetensors",
];

describe.skipIf(!existsSync(join(data, "checkpoints")) || command === "")("the report of a real checkpoint", () => {
  it.each(real)(
    "is the command's, within 1e-9: %s",
    (entry) => {
      const path = join(data, "checkpoints", entry);
      const files = statSync(path).isDirectory()
        ? readdirSync(path).map((name) => ({ ...onDisk(join(path, name)), name: `${entry}/${name}` }))
        : [onDisk(path)];
      const { report } = readCheckpoint(core, files, quiet, 3e12);
      // In a folder of its own, as the page has it: a tokenizer lies beside one of them.
      const folder = mkdtempSync(join(tmpdir(), "normscope-"));
      symlinkSync(path, join(folder, entry));
      const text = execFileSync(command, ["report", entry, "--json", "-", "--quiet"], {
        cwd: folder,
        maxBuffer: 1 << 30,
        encoding: "utf8",
      });
      rmSync(folder, { recursive: true });
      expect(differences(JSON.parse(report), JSON.parse(text), 1e-9)).toEqual([]);
    },
    120_000,
  );
});
