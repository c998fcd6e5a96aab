import { execFileSync } from "node:child_process";
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { arrange, readCheckpoint } from "../checkpoint";
import type { NamedFile } from "../checkpoint";
import type { Core } from "../protocol";
import { loadCore } from "./core";
import { departures } from "./schema";

/** A range of a file on disk, or of a text, as the browser's Blob; it counts what is read. */
class FakeBlob {
  static bytesRead = 0;
  constructor(
    private readonly source: string | Buffer,
    readonly begin: number,
    readonly end: number,
    private readonly virtual = 0,
  ) {}
  get size(): number {
    return this.end - this.begin;
  }
  slice(begin: number, end: number): FakeBlob {
    const last = Math.min(this.begin + end, this.end);
    return new FakeBlob(this.source, this.begin + begin, last, this.virtual);
  }
  bytes(): Uint8Array {
    FakeBlob.bytesRead += this.size;
    const bytes = new Uint8Array(this.size);
    if (typeof this.source === "string") {
      const file = openSync(this.source, "r");
      readSync(file, bytes, 0, bytes.length, this.begin);
      closeSync(file);
    } else {
      // Beyond the buffer the file is a hole.
      bytes.set(this.source.subarray(Math.min(this.begin, this.source.length), Math.min(this.end, this.source.length)));
    }
    return bytes;
  }
}

const blob = (fake: FakeBlob): Blob => fake as unknown as Blob;
const onDisk = (path: string): NamedFile => {
  const file = openSync(path, "r");
  const { size } = fstatSync(file);
  closeSync(file);
  return { name: basename(path), data: blob(new FakeBlob(path, 0, size)) };
};
const ofText = (name: string, text: string | Buffer, size?: number): NamedFile => {
  const buffer = Buffer.from(text);
  return { name, data: blob(new FakeBlob(buffer, 0, size ?? buffer.length)) };
};

let core: Core;
beforeAll(async () => {
  // Functions that workers have and Node lacks.
  Object.assign(globalThis, {
    importScripts: () => undefined,
    self: { location: { href: "" } },
    FileReaderSync: class {
      readAsArrayBuffer = (fake: FakeBlob) => fake.bytes().buffer;
    },
  });
  core = await loadCore();
});

const quiet = () => undefined;
const repository = fileURLToPath(new URL("../../../", import.meta.url));
const model = join(repository, "models/wordlist_gpt");
const header = (json: object): Buffer => {
  const text = Buffer.from(JSON.stringify(json));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text]);
};

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

  it("may be larger than memory: of 20 GB a few kilobytes are read", () => {
    const elements = 5_000_000_000;
    const bytes = header({
      big: { dtype: "F32", shape: [2, elements / 2], data_offsets: [0, 4 * elements] },
      "norm.weight": { dtype: "F32", shape: [4], data_offsets: [4 * elements, 4 * elements + 16] },
      "norm.bias": { dtype: "F32", shape: [4], data_offsets: [4 * elements + 16, 4 * elements + 32] },
    });
    FakeBlob.bytesRead = 0;
    const { report } = readCheckpoint(
      core,
      [ofText("big.safetensors", bytes, bytes.length + 4 * elements + 32)],
      quiet,
    );
    expect(JSON.parse(report).model.files[0].bytes).toBe(bytes.length + 4 * elements + 32);
    expect(JSON.parse(report).norms[0].width).toBe(4);
    expect(FakeBlob.bytesRead).toBeLessThan(3 << 20);
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
      const page = join(process.env["TMPDIR"] ?? "/tmp", `normscope-${process.pid}-${entry}.html`);
      const text = execFileSync(command, ["report", entry, "-o", page, "--json", "-", "--quiet"], {
        cwd: dirname(path),
        maxBuffer: 1 << 30,
        encoding: "utf8",
      });
      execFileSync("rm", [page]);
      expect(differences(JSON.parse(report), JSON.parse(text), 1e-9)).toEqual([]);
    },
    120_000,
  );
});
