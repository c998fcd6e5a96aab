import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
}

const folder = join(dirname(fileURLToPath(import.meta.url)), "../../../docs/schemas");

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value;

function check(root: Schema, schema: Schema, value: unknown, at: string): string[] {
  if (schema.$ref !== undefined)
    return check(root, root.$defs?.[schema.$ref.replace("#/$defs/", "")] as Schema, value, at);
  const kind = kindOf(value);
  const types = schema.type === undefined ? [kind] : [schema.type].flat();
  if (!types.includes(kind) && !(kind === "integer" && types.includes("number")))
    return [`${at}: is ${kind}, expected ${types.join(" or ")}`];
  if ("const" in schema && value !== schema.const) return [`${at}: expected ${JSON.stringify(schema.const)}`];
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${at}: ${JSON.stringify(value)} is not listed`];
  if (schema.anyOf !== undefined) {
    const found = schema.anyOf.map((choice) => check(root, choice, value, at));
    return found.some((one) => one.length === 0) ? [] : found.flat();
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Infinity, items = {} } = schema;
    if (value.length < minItems || value.length > maxItems) return [`${at}: has ${value.length} items`];
    return value.flatMap((item, i) => check(root, items, item, `${at}[${i}]`));
  }
  if (kind !== "object") return [];
  const object = value as Record<string, unknown>;
  const missing = (schema.required ?? []).filter((name) => !Object.hasOwn(object, name));
  return [
    ...missing.map((name) => `${at}.${name}: is not there`),
    ...Object.entries(object).flatMap(([name, part]) => {
      const known = schema.properties?.[name] ?? schema.additionalProperties ?? schema.properties === undefined;
      if (typeof known === "boolean") return known ? [] : [`${at}.${name}: is not listed`];
      return check(root, known, part, `${at}.${name}`);
    }),
  ];
}

/**
 * The paths at which a document differs from docs/schemas/`name`.schema.json, or has a field that it does not list.
 * Supports the keywords that determine types; the tests of the command check the others.
 */
export function departures(name: string, document: unknown): string[] {
  const schema = JSON.parse(readFileSync(join(folder, `${name}.schema.json`), "utf8")) as Schema;
  return check(schema, schema, document, "$");
}
