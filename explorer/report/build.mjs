// Bundles the page: `node build.mjs DIR` writes DIR/report-page.html and DIR/report_page_data.cpp.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { licences } from "../shared/licences.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, entry)],
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    target: "es2022",
    legalComments: "eof",
    charset: "utf8",
    logLevel: "warning",
  });
  return { text: result.outputFiles[0].text.trim(), inputs: Object.keys(result.metafile.inputs) };
}

/** A C++ string literal, one line of the page a line. */
function literal(page) {
  const escapes = { "\\": "\\\\", '"': '\\"', "?": "\\?" };
  return page
    .split("\n")
    .map((line, index, lines) => {
      const body = line
        .replace(/[\\"?]/g, (c) => escapes[c])
        // eslint-disable-next-line no-control-regex -- These are what has to be escaped.
        .replace(/[\x00-\x1f]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`);
      return `"${body}${index < lines.length - 1 ? "\\n" : ""}"`;
    })
    .join("\n");
}

const output = resolve(process.argv[2] ?? "dist");
const script = await bundle("src/main.ts");
const style = await bundle("style.css");
const notice = licences(root, script.inputs).replaceAll("*/", "* /");
const code = `${script.text}\n/*! The libraries in this page and their licences:\n\n${notice}\n*/`;
if (/<\/script|<!--/i.test(code)) throw new Error("build: the bundle holds text that would end its script element");

const hash = createHash("sha256").update(code).digest("base64");
const policy = [
  "default-src 'none'",
  `script-src 'sha256-${hash}'`,
  "style-src 'unsafe-inline'",
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const sections = readFileSync(join(here, "sections.html"), "utf8").trimEnd();
const parts = { POLICY: policy, STYLE: style.text, SECTIONS: sections, SCRIPT: code };
const page = readFileSync(join(here, "template.html"), "utf8").replace(
  /@(POLICY|STYLE|SECTIONS|SCRIPT)@/g,
  (_, part) => parts[part],
);

for (const id of ["report-data", "chart-data", "activation-data"]) {
  if (page.split(`<script type="application/json" id="${id}">null</script>`).length !== 2) {
    throw new Error(`build: the page must hold the place of ${id} exactly once`);
  }
}
mkdirSync(output, { recursive: true });
writeFileSync(join(output, "report-page.html"), page);
writeFileSync(
  join(output, "report_page_data.cpp"),
  `#include "report_page.hpp"

namespace normscope::report {
std::string_view page() {
  static const char text[] =
${literal(page)};
  return {text, sizeof text - 1};
}
}  // namespace normscope::report
`,
);
