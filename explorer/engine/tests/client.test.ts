import { describe, expect, it } from "vitest";
import { newest } from "../client";
import { Host, transferable } from "../host";

describe("newest", () => {
  it("runs the first and the last of a burst, in order", async () => {
    const done: number[] = [];
    const run = newest(async (input: number) => {
      await Promise.resolve();
      done.push(input);
    });
    for (let i = 0; i < 100; ++i) run(i);
    await new Promise((later) => setTimeout(later, 10));
    expect(done).toEqual([0, 99]);
  });
});

describe("Host", () => {
  class Counter {
    private at = 0;
    step(by: number): number {
      return (this.at += by);
    }
    delete(): void {
      this.at = NaN;
    }
  }
  const host = new Host({ Counter, twice: (x: number) => 2 * x });

  it("calls functions, and makes, uses and drops objects", () => {
    expect(host.answer({ kind: "call", name: "twice", args: [4] })).toBe(8);
    const handle = host.answer({ kind: "new", type: "Counter", args: [] }) as number;
    expect(host.answer({ kind: "method", handle, name: "step", args: [3] })).toBe(3);
    host.answer({ kind: "delete", handle });
    expect(() => host.answer({ kind: "method", handle, name: "step", args: [3] })).toThrow("is not there");
  });

  it("knows nothing but the core's own names", () => {
    expect(() => host.answer({ kind: "call", name: "constructor", args: [] })).toThrow("has no constructor");
  });
});

describe("transferable", () => {
  it("finds each buffer once", () => {
    const array = new Float64Array(4);
    expect(transferable({ a: array, b: [array, array.subarray(1)], c: 1, d: null })).toEqual([array.buffer]);
  });
});
