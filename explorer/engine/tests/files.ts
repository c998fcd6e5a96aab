import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import type { NamedFile } from "../checkpoint";

/** Bytes at a place of a file, all others of which are zero. */
export interface Piece {
  at: number;
  bytes: Uint8Array;
}

/** A range of a file on disk, or of pieces, as the browser's Blob; it counts what is read. */
export class FakeBlob {
  static bytesRead = 0;
  constructor(
    private readonly source: string | Piece[],
    readonly begin: number,
    readonly end: number,
  ) {}
  get size(): number {
    return this.end - this.begin;
  }
  slice(begin: number, end: number): FakeBlob {
    return new FakeBlob(this.source, this.begin + begin, Math.min(this.begin + end, this.end));
  }
  bytes(): Uint8Array {
    FakeBlob.bytesRead += this.size;
    const bytes = new Uint8Array(this.size);
    if (typeof this.source === "string") {
      const file = openSync(this.source, "r");
      readSync(file, bytes, 0, bytes.length, this.begin);
      closeSync(file);
    } else {
      for (const piece of this.source) {
        const [from, to] = [piece.at, piece.at + piece.bytes.length].map((at) =>
          Math.min(this.end, Math.max(this.begin, at)),
        ) as [number, number];
        bytes.set(piece.bytes.subarray(from - piece.at, to - piece.at), from - this.begin);
      }
    }
    return bytes;
  }
}

const blob = (fake: FakeBlob): Blob => fake as unknown as Blob;

export function onDisk(path: string): NamedFile {
  const file = openSync(path, "r");
  const { size } = fstatSync(file);
  closeSync(file);
  return { name: basename(path), data: blob(new FakeBlob(path, 0, size)) };
}

/** A file of `size` bytes, most of which are none of these pieces. */
export const ofPieces = (name: string, pieces: Piece[], size: number): NamedFile => ({
  name,
  data: blob(new FakeBlob(pieces, 0, size)),
});

export function ofText(name: string, text: string | Buffer): NamedFile {
  const bytes = Buffer.from(text);
  return ofPieces(name, [{ at: 0, bytes }], bytes.length);
}

/** The beginning of a safetensors file. */
export function header(json: object): Buffer {
  const text = Buffer.from(JSON.stringify(json));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text]);
}
