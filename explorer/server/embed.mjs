// Writes the site as C++: `node server/embed.mjs SITE OUT` puts site_data.cpp, which the assembler fills with the
// files of SITE, into OUT.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
  ".wasm": "application/wasm",
  ".txt": "text/plain; charset=utf-8",
  ".bin": "application/octet-stream",
  ".safetensors": "application/octet-stream",
};

const [site, output] = process.argv.slice(2).map((path) => resolve(path));
const files = readdirSync(site, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(site.length + 1))
  .sort();
const page = readFileSync(join(site, "index.html"), "utf8");
const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1];
if (policy === undefined) throw new Error("embed: index.html states no policy");
const text = JSON.stringify;

const symbol = (index) => `normscope_site_${index}`;
const typed = files.map((file) => {
  const type = types[extname(file)];
  if (type === undefined) throw new Error(`embed: ${file} is of no known type`);
  return { file, type };
});
writeFileSync(
  join(output, "site_data.cpp"),
  `#include "site.hpp"

asm(".section .rodata\\n"
${typed
  .map(({ file }, i) => `    "${symbol(i)}:\\n.incbin " ${text(text(join(site, file)))} "\\n${symbol(i)}_end:\\n"`)
  .join("\n")}
    ".previous\\n");
extern "C" {
${typed.map((_, i) => `extern const char ${symbol(i)}[], ${symbol(i)}_end[];`).join("\n")}
}

namespace normscope::explorer {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::vector<SiteFile> site() {
  return {
${typed.map(({ file, type }, i) => `      site_file(${text(`/${file}`)}, ${text(type)}, between(${symbol(i)}, ${symbol(i)}_end)),`).join("\n")}
  };
}

std::string_view policy() { return ${text(policy)}; }

}  // namespace normscope::explorer
`,
);
