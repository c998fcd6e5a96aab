import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../client";
import { hierarchy, judge, range, states, trace } from "../counting";
import { coreEngine } from "./core";
import { departures } from "./schema";

let engine: Engine;
beforeAll(async () => {
  engine = await coreEngine();
});

describe("counting", () => {
  it("shows an lstm that counts and a gru that does not, beyond what they were trained on", async () => {
    const lstm = await trace(engine, "lstm", "anbn", 200);
    const gru = await trace(engine, "gru", "anbn", 200);
    expect(lstm.signals[1]?.name).toBe("c");
    const counters = lstm.drifts.filter((unit) => unit.counts).length;
    expect(counters).toBeGreaterThan(0);
    expect(gru.drifts.some((unit) => unit.counts)).toBe(false);
    const seen = await states(engine, "lstm", "anbn", 200);
    expect([seen.accepted, seen.counts.filter(Boolean).length]).toEqual([lstm.accepted, counters]);
    expect([...seen.values.subarray(4000)]).toEqual(lstm.signals[1]?.values[400]);
    expect(seen.outputs).toEqual(["a", "b", "end"]);
    expect(seen.probabilities.length).toBe(3 * 401);
    expect([...(await states(engine, "gru", "anbn", 200)).values.subarray(0, 10)]).toEqual(
      gru.signals.find(({ name }) => name === "h")?.values[0],
    );
    // A growing word begins too short to tell; its counting units are those of the long word.
    for (const cell of ["lstm", "gru"] as const)
      expect((await states(engine, cell, "anbn", 4)).counts).toEqual((await states(engine, cell, "anbn", 60)).counts);
  });

  it("writes traces by their schema, without drifts where a word is too short to tell a slope", async () => {
    for (const [cell, n] of [
      ["lstm", 29],
      ["gru", 30],
    ] as const) {
      const data = await trace(engine, cell, "anbncn", n);
      expect(departures("trace", data)).toEqual([]);
      expect(data.drifts.length).toBe(n < 30 ? 0 : 10);
    }
  });

  it("agrees with the trained networks' tests on how far each is exact", async () => {
    const lstm = await range(engine, "lstm", "anbn", 160);
    const gru = await range(engine, "gru", "anbn", 160);
    expect(lstm.member.length).toBe(161);
    expect(lstm.exactTo).toBeGreaterThan(gru.exactTo);
    expect(lstm.exactTo).toBeGreaterThan(100);
  });

  it("judges words, the constructed lstm always rightly", async () => {
    for (const word of ["", "ab", "aabb", "aab", "abab", "ba", "a".repeat(60) + "b".repeat(60)]) {
      const found = await judge(engine, "anbn", word);
      expect(found.constructed).toBe(found.member);
    }
    expect((await judge(engine, "anbncn", "aabbcc")).member).toBe(true);
    await expect(judge(engine, "anbn", "abc")).rejects.toThrow("c");
  });

  it("holds the hierarchy", async () => {
    const map = await hierarchy(engine);
    expect(map.classes.map(({ id }) => id)).toContain("counter-aware");
    expect(map.standings.length).toBeGreaterThan(5);
    expect(departures("hierarchy", map)).toEqual([]);
  });
});
