// Makes TypeScript types of the results' schemas: `node types.mjs` writes generated/<name>.ts for each
// ../docs/schemas/<name>.schema.json. A file whose text stays the same is left alone.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Keywords that narrow values without changing their type, and those that are read below. */
const narrowing = ["minimum", "maximum", "exclusiveMinimum", "pattern", "dependentRequired", "if", "then"];
const known = new Set([
  ...["$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "anyOf", "oneOf"],
  ...["properties", "required", "additionalProperties", "items", "minItems", "maxItems", ...narrowing],
]);

const plain = { string: "string", number: "number", integer: "number", boolean: "boolean", null: "null" };

/** "select-table" and "score_or_null" as SelectTable and ScoreOrNull. */
export const pascal = (name) => name.replace(/(?:^|[-_])([a-z])/g, (_, letter) => letter.toUpperCase());

const union = (types) => [...new Set(types)].join(" | ");
const comment = (text, indent) => (text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /")} */\n`);

function listType(schema, indent) {
  const item = schema.items === undefined ? "unknown" : typeOf(schema.items, indent);
  if (schema.minItems !== undefined && schema.minItems === schema.maxItems)
    return `[${Array(schema.minItems).fill(item).join(", ")}]`;
  return item.includes(" | ") && schema.items.type !== "object" ? `(${item})[]` : `${item}[]`;
}

function objectType({ properties, required = [], additionalProperties }, indent) {
  if (properties === undefined) {
    const value = typeof additionalProperties === "object" ? typeOf(additionalProperties, indent) : "unknown";
    return `Record<string, ${value}>`;
  }
  for (const name of required)
    if (!(name in properties)) throw new Error(`"${name}" is required and not among the properties`);
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, value]) => {
    const key = /^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name);
    const optional = required.includes(name) ? "" : "?";
    return `${comment(value.description, inner)}${inner}${key}${optional}: ${typeOf(value, inner)};\n`;
  });
  return fields.length === 0 ? "Record<string, never>" : `{\n${fields.join("")}${indent}}`;
}

/** The TypeScript type of the values that `schema` allows. */
export function typeOf(schema, indent = "") {
  for (const keyword of Object.keys(schema))
    if (!known.has(keyword)) throw new Error(`the keyword "${keyword}" has no type yet`);
  if (schema.$ref !== undefined) {
    const name = /^#\/\$defs\/([\w-]+)$/.exec(schema.$ref)?.[1];
    if (name === undefined) throw new Error(`"${schema.$ref}" is not one of its own definitions`);
    return pascal(name);
  }
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  const choices = schema.anyOf ?? schema.oneOf;
  // Alternatives beside properties state which properties occur together; no code relies on that.
  if (choices !== undefined && schema.properties === undefined)
    return union(choices.map((choice) => typeOf(choice, indent)));
  if (schema.type === undefined) return "unknown";
  return union(
    [schema.type].flat().map((type) => {
      if (type === "object") return objectType(schema, indent);
      if (type === "array") return listType(schema, indent);
      if (plain[type] === undefined) throw new Error(`"${type}" is not a type of JSON Schema`);
      return plain[type];
    }),
  );
}

/** A module that exports the schema's type and one for each of its definitions. */
export function moduleOf(name, schema) {
  const { $defs: definitions = {}, ...document } = schema;
  const named = { [name]: document, ...definitions };
  if (new Set(Object.keys(named).map(pascal)).size < Object.keys(definitions).length + 1)
    throw new Error("two of its types have one name");
  const types = Object.entries(named).map(([key, value]) => {
    const { title, description } = value;
    const about = [title, description].filter((part) => part !== undefined).join(". ") || undefined;
    return `${comment(about, "")}export type ${pascal(key)} = ${typeOf(value)};\n`;
  });
  return `// Made by types.mjs from docs/schemas/${name}.schema.json.\n\n${types.join("\n")}`;
}

/** Writes the module of every schema in `from` into `to`, and removes those of schemas that are gone. */
export function writeTypes(from, to) {
  mkdirSync(to, { recursive: true });
  const suffix = ".schema.json";
  const names = readdirSync(from)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -suffix.length));
  for (const name of names) {
    let text;
    try {
      text = moduleOf(name, JSON.parse(readFileSync(join(from, name + suffix), "utf8")));
    } catch (error) {
      throw new Error(`types: ${name}${suffix}: ${error.message}`);
    }
    const path = join(to, `${name}.ts`);
    if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
    // Several build trees may share this folder.
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  }
  for (const file of readdirSync(to))
    if (file.endsWith(".ts") && !names.includes(file.slice(0, -3))) rmSync(join(to, file), { force: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const here = dirname(fileURLToPath(import.meta.url));
  try {
    writeTypes(join(here, "../docs/schemas"), join(here, "generated"));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
