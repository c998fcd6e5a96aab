import { describe, expect, it } from "vitest";
import { moduleOf, typeOf } from "../../types.mjs";

const object = (properties: object, ...required: string[]) => ({ type: "object", properties, required });

describe("the types of a schema", () => {
  it("are what its values may be", () => {
    expect(typeOf({ enum: ["layer", "rms", null] })).toBe('"layer" | "rms" | null');
    expect(typeOf({ type: ["integer", "null"], minimum: 0 })).toBe("number | null");
    expect(typeOf({ type: "array", items: { type: ["number", "null"] } })).toBe("(number | null)[]");
    expect(typeOf({ type: "array", items: { type: "number" }, minItems: 2, maxItems: 2 })).toBe("[number, number]");
    expect(typeOf({ type: ["array", "null"], items: { type: "string" } })).toBe("string[] | null");
    expect(typeOf({ type: "object", additionalProperties: { type: "string" } })).toBe("Record<string, string>");
    expect(typeOf({ anyOf: [{ $ref: "#/$defs/null_space" }, { type: "null" }] })).toBe("NullSpace | null");
    expect(typeOf(object({ a: { const: "x/1" }, "b-c": { type: "boolean" } }, "a"))).toBe(
      '{\n  a: "x/1";\n  "b-c"?: boolean;\n}',
    );
  });

  it("are named after the schema and its definitions", () => {
    const text = moduleOf("select-table", { ...object({}), title: "T", $defs: { cell: { type: "string" } } });
    expect(text).toContain("/** T */\nexport type SelectTable = Record<string, never>;");
    expect(text).toContain("export type Cell = string;");
    expect(() => moduleOf("cell", { type: "null", $defs: { cell: {} } })).toThrow("one name");
  });

  it("are refused where a schema says what they cannot", () => {
    expect(() => typeOf({ allOf: [] })).toThrow('"allOf" has no type');
    expect(() => typeOf({ type: "text" })).toThrow('"text" is not a type');
    expect(() => typeOf(object({}, "gone"))).toThrow('"gone" is required');
    expect(() => typeOf({ $ref: "other.json" })).toThrow("not one of its own");
  });
});
