import { beforeAll, describe, expect, it } from "vitest";
import { readCheckpoint } from "../checkpoint";
import type { NamedFile } from "../checkpoint";
import type { Core } from "../protocol";
import { loadCore } from "./core";
import { FakeBlob, header, ofPieces } from "./files";
import type { Piece } from "./files";

/** Elements of the tensor that is not read: 4 GB and more, which no 32-bit memory holds. */
const many = 1_250_000_000;
const gains = Buffer.from(Float32Array.of(1, 2, 3, 4, 0, 0, 0, 0.5).buffer);

const number = (value: number, bytes: 2 | 4 | 8): Buffer => {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64LE(BigInt(value));
  return buffer.subarray(0, bytes);
};

/** Writes a file from front to back, with holes. */
class Writer {
  readonly pieces: Piece[] = [];
  size = 0;
  put(bytes: Buffer): this {
    this.pieces.push({ at: this.size, bytes });
    this.size += bytes.length;
    return this;
  }
  hole(size: number): this {
    this.size += size;
    return this;
  }
  file = (name: string): NamedFile => ofPieces(name, this.pieces, this.size);
}

function safetensors(): NamedFile {
  const begin = header({
    big: { dtype: "F32", shape: [2, many / 2], data_offsets: [0, 4 * many] },
    "norm.weight": { dtype: "F32", shape: [4], data_offsets: [4 * many, 4 * many + 16] },
    "norm.bias": { dtype: "F32", shape: [4], data_offsets: [4 * many + 16, 4 * many + 32] },
  });
  return new Writer()
    .put(begin)
    .hole(4 * many)
    .put(gains)
    .file("big.safetensors");
}

function crc32(bytes: Buffer): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/** A pickle of tensors in storages, as torch.save writes it: name, storage, its elements, offset, shape. */
function pickle(tensors: [string, string, number, number, number[]][]): Buffer {
  const parts: Buffer[] = [];
  const op = (text: string) => parts.push(Buffer.from(text, "latin1"));
  const text = (value: string) => parts.push(Buffer.from("X"), number(value.length, 4), Buffer.from(value));
  const integers = (values: number[]) => {
    op("(");
    for (const value of values) parts.push(Buffer.from("J"), number(value, 4));
    op("t");
  };
  op("\x80\x02}(");
  for (const [name, storage, elements, offset, shape] of tensors) {
    text(name);
    op("ctorch._utils\n_rebuild_tensor_v2\n((");
    text("storage");
    op("ctorch\nFloatStorage\n");
    text(storage);
    text("cpu");
    parts.push(Buffer.from("J"), number(elements, 4), Buffer.from("tQJ"), number(offset, 4));
    integers(shape);
    integers(shape.map((_, i) => shape.slice(i + 1).reduce((product, extent) => product * extent, 1)));
    op("\x89ccollections\nOrderedDict\n)RtR");
  }
  op("u.");
  return Buffer.concat(parts);
}

/** A zip64 of stored members, of which those that are numbers are holes of that size. */
function torch(): NamedFile {
  const data = pickle([
    ["big", "0", many, 0, [2, many / 2]],
    ["norm.weight", "1", 8, 0, [4]],
    ["norm.bias", "1", 8, 4, [4]],
  ]);
  const zip = new Writer();
  const directory: Buffer[] = [];
  const members: [string, Buffer | number][] = [
    ["m/data.pkl", data],
    ["m/data/0", 4 * many],
    ["m/data/1", gains],
  ];
  for (const [name, content] of members) {
    const size = typeof content === "number" ? content : content.length;
    const shared = Buffer.concat([
      ...[Buffer.alloc(8), number(typeof content === "number" ? 0 : crc32(content), 4)],
      ...[Buffer.alloc(8, 0xff), number(name.length, 2)],
    ]);
    const extra = Buffer.concat([
      number(1, 2),
      number(24, 2),
      ...[size, size, zip.size].map((value) => number(value, 8)),
    ]);
    directory.push(
      ...[Buffer.from("PK\x01\x02"), Buffer.alloc(4), shared, number(extra.length, 2), Buffer.alloc(10)],
      ...[Buffer.alloc(4, 0xff), Buffer.from(name), extra],
    );
    zip.put(Buffer.concat([Buffer.from("PK\x03\x04"), Buffer.alloc(2), shared, Buffer.alloc(2), Buffer.from(name)]));
    if (typeof content === "number") zip.hole(content);
    else zip.put(content);
  }
  const [begin, entries] = [zip.size, Buffer.concat(directory)];
  const end = begin + entries.length;
  const counts = [members.length, members.length, entries.length, begin].map((value) => number(value, 8));
  return zip
    .put(Buffer.concat([entries, Buffer.from("PK\x06\x06"), Buffer.alloc(20), ...counts]))
    .put(Buffer.concat([Buffer.from("PK\x06\x07"), Buffer.alloc(4), number(end, 8), Buffer.alloc(4)]))
    .put(Buffer.concat([Buffer.from("PK\x05\x06"), Buffer.alloc(4), Buffer.alloc(12, 0xff), Buffer.alloc(2)]))
    .file("big.pt");
}

const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Buffer.from([...bytes, value]);
};
/** The beginning of a field of so many bytes. */
const opened = (field: number, size: number): Buffer => Buffer.concat([varint(8 * field + 2), varint(size)]);
const message = (field: number, content: Buffer | string): Buffer =>
  Buffer.concat([opened(field, content.length), Buffer.from(content)]);

function onnx(): NamedFile {
  const tensor = (name: string, shape: number[]) =>
    Buffer.concat([
      ...shape.map((extent) => Buffer.concat([varint(8), varint(extent)])),
      varint(16),
      varint(1),
      message(8, name),
    ]);
  const stated = Buffer.concat([tensor("big", [2, many / 2]), opened(9, 4 * many)]);
  const small = ["norm.weight", "norm.bias"].map((name, i) =>
    message(5, Buffer.concat([tensor(name, [4]), message(9, gains.subarray(16 * i, 16 * i + 16))])),
  );
  const node = message(
    1,
    Buffer.concat([
      ...["x", "norm.weight", "norm.bias"].map((name) => message(1, name)),
      ...[message(2, "y"), message(3, "norm"), message(4, "LayerNormalization")],
    ]),
  );
  const before = Buffer.concat([opened(5, stated.length + 4 * many), stated]);
  const after = Buffer.concat([...small, node]);
  return new Writer()
    .put(Buffer.concat([varint(8), varint(8), opened(7, before.length + 4 * many + after.length), before]))
    .hole(4 * many)
    .put(after)
    .file("big.onnx");
}

describe("a checkpoint larger than memory", () => {
  let core: Core;
  beforeAll(async () => {
    core = await loadCore();
  });

  it.each([
    ["safetensors", safetensors, 3],
    ["PyTorch", torch, 5],
    ["ONNX", onnx, 3],
  ])("is read in ranges: %s", (_, make, mebibytes) => {
    const file = make();
    FakeBlob.bytesRead = 0;
    const memory = () => (core["HEAP8"] as Int8Array).length;
    const before = memory();
    const { report } = readCheckpoint(core, [file], () => undefined);
    expect(memory() - before).toBeLessThan(64 * 2 ** 20);
    const { model, norms } = JSON.parse(report);
    expect(model.files[0].bytes).toBe(file.data.size);
    expect(norms).toHaveLength(1);
    expect(norms[0].width).toBe(4);
    expect(norms[0].gain.max).toBe(4);
    expect(FakeBlob.bytesRead).toBeLessThan(mebibytes * 2 ** 20);
  });

  it("is refused in words where the format is read as a whole", () => {
    const size = 2 ** 30 + 1;
    const begin = Buffer.from("\x80\x02", "latin1");
    FakeBlob.bytesRead = 0;
    expect(() => readCheckpoint(core, [ofPieces("big.pt", [{ at: 0, bytes: begin }], size)], () => undefined)).toThrow(
      "checkpoint: big.pt: has 1073741825 bytes, expected at most 1073741824 for a format that is loaded whole; " +
        "safetensors, GGUF, PyTorch and ONNX files may have any size",
    );
    expect(FakeBlob.bytesRead).toBeLessThanOrEqual(2 ** 20);
  });
});
