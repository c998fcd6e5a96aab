import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The licence texts of the packages whose files are in the bundle, each text once. */
export function licences(here, inputs) {
  const folders = new Set(inputs.flatMap((path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []));
  const packages = [...folders].sort().map((folder) => {
    const { name, version, license, repository } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
    const file = readdirSync(join(here, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    return {
      label: `${name} ${version} (${license})`,
      // Some packages of a repository have no text of their own; another package has it.
      origin: `${license} ${JSON.stringify(repository?.url ?? repository)}`,
      text: file && readFileSync(join(here, folder, file), "utf8").trim(),
    };
  });
  const labels = new Map();
  for (const { label, origin, text } of packages) {
    const found = text ?? packages.find((other) => other.origin === origin && other.text)?.text;
    if (found === undefined) throw new Error(`build: ${label} comes without its licence text`);
    labels.set(found, [...(labels.get(found) ?? []), label]);
  }
  return [...labels].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join("\n\n----\n\n");
}
