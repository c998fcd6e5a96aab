// Bundles the explorer: `node app/build.mjs DIR WASM [MNIST]` writes a site any web host can serve into DIR, with the core
// from the folder WASM (drawing and normscope, each .mjs and .wasm). With MNIST, the folder of its four files, the site gets a few of
// its digits; without, the chapter on digits asks for them. $NORMSCOPE_SITE is the address of the site with a slash at its
// end: sites that show a link's picture want the whole address of it.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { build } from "esbuild";
import katex from "katex";
import { licences } from "../shared/licences.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const [output, wasm, mnist] = process.argv
  .slice(2)
  .filter((path) => path !== "")
  .map((path) => resolve(path));
if (output === undefined || wasm === undefined) {
  console.error("usage: node app/build.mjs DIR WASM [MNIST]");
  process.exit(2);
}

/** A chapter's text: \(…\) and \[…\] are converted to MathML here, so that the page needs no formula engine. */
const formulas = (html, file) =>
  html.replace(/\\\(([\s\S]*?)\\\)('s\b|[.,;:?!)]*)|\\\[([\s\S]*?)\\\]/g, (_, inline, after, display) => {
    const tex = (inline ?? display).replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
    try {
      const markup = katex.renderToString(tex, {
        output: "mathml",
        displayMode: display !== undefined,
        throwOnError: true,
        strict: "error",
      });
      // Bars as the letter that text fonts have, where there is no font of mathematics, without the space around a relation.
      const math = markup
        .replace(/^<span class="katex">|<\/span>$/g, "")
        .replaceAll('<mo stretchy="false">\u2223', '<mo stretchy="false" lspace="0" rspace="0">|')
        .replaceAll("\u2223", "|");
      // A line may break before what stands right behind a formula.
      return after ? `<span class="whole">${math}${after}</span>` : math;
    } catch (error) {
      throw new Error(`${file}: ${tex}: ${error.message}`);
    }
  });

const texts = {
  name: "chapter-texts",
  setup(plugins) {
    plugins.onLoad({ filter: /\.html$/ }, ({ path }) => ({
      contents: formulas(readFileSync(path, "utf8"), path),
      loader: "text",
      watchFiles: [path],
    }));
  },
};

const options = {
  absWorkingDir: root,
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

rmSync(output, { recursive: true, force: true });
mkdirSync(join(output, "posters"), { recursive: true });
// Figures' first frames, which `node app/pictures.mjs` takes.
const posters = readdirSync(join(here, "posters"));
for (const file of posters) copyFileSync(join(here, "posters", file), join(output, "posters", file));
const pages = await build({
  ...options,
  entryPoints: { main: join(here, "main.ts"), style: join(here, "style.css") },
  outdir: output,
  splitting: true,
  chunkNames: "parts/[name]-[hash]",
  plugins: [texts],
  loader: { ".cff": "text", ".jsonl": "text" },
  define: {
    HAS_DIGITS: String(mnist !== undefined),
    POSTERS: JSON.stringify(posters.map((file) => basename(file, ".webp"))),
  },
});
const worker = await build({
  ...options,
  entryPoints: { worker: join(root, "engine/worker.ts"), checkpoint: join(root, "engine/checkpoint_worker.ts") },
  outdir: output,
  external: ["./*.mjs"],
});
for (const file of ["drawing.mjs", "drawing.wasm", "normscope.mjs", "normscope.wasm"])
  copyFileSync(join(wasm, file), join(output, file));
for (const file of ["icon.svg", "preview.jpg"]) copyFileSync(join(here, file), join(output, file));
const example = join(output, "example/kjv_gpt");
mkdirSync(example, { recursive: true });
for (const file of ["config.json", "model.safetensors", "tokenizer.json"])
  copyFileSync(join(root, "../models/kjv_gpt", file), join(example, file));

/** The first of MNIST's digits as the page's own module packs them. */
async function digits(folder) {
  const scratch = mkdtempSync(join(tmpdir(), "normscope-digits-"));
  const program = join(scratch, "digits.mjs");
  await build({ ...options, entryPoints: [join(root, "engine/digits.ts")], outfile: program });
  const { counts, pack, shrink } = await import(pathToFileURL(program).href);
  rmSync(scratch, { recursive: true });
  const read = (name) => {
    const plain = join(folder, name);
    return new Uint8Array(existsSync(plain) ? readFileSync(plain) : gunzipSync(readFileSync(`${plain}.gz`)));
  };
  const part = (begin, count) =>
    shrink(read(`${begin}-images-idx3-ubyte`), read(`${begin}-labels-idx1-ubyte`), count, begin);
  return pack({ learned: part("train", counts.learned), held: part("t10k", counts.held) });
}
if (mnist !== undefined) {
  mkdirSync(join(output, "digits"));
  writeFileSync(join(output, "digits/mnist.bin"), await digits(mnist));
}
const mnistLicence = `MNIST (CC BY-SA 3.0)

digits/mnist.bin has the first digits of MNIST by Yann LeCun and Corinna Cortes, shrunk to 14 × 14 pixels of 16 levels. It is
under the Creative Commons licence Attribution-ShareAlike 3.0, https://creativecommons.org/licenses/by-sa/3.0/`;

const inputs = [...Object.keys(pages.metafile.inputs), ...Object.keys(worker.metafile.inputs)];
const notices = [licences(root, inputs), ...(mnist === undefined ? [] : [mnistLicence])];
writeFileSync(join(output, "licences.txt"), notices.join("\n\n----\n\n") + "\n");

/** The policy of a page that may connect to `connect`. */
const policyFor = (connect) =>
  [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "worker-src 'self'",
    `connect-src ${connect}`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
const page = readFileSync(join(here, "index.html"), "utf8").replace("@SITE@", process.env["NORMSCOPE_SITE"] ?? "");
writeFileSync(join(output, "index.html"), page.replace("@POLICY@", policyFor("'self'")));
// Reads the checkpoint of a link from another site, and takes no file of the reader's.
writeFileSync(join(output, "remote.html"), page.replace("@POLICY@", policyFor("'self' https:")));

/** Every file of the site, from its root. */
const files = readdirSync(output, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(output.length + 1))
  .sort();
const version = createHash("sha256");
for (const file of files) version.update(file).update(readFileSync(join(output, file)));
await build({
  ...options,
  entryPoints: { offline: join(here, "offline.ts") },
  outdir: output,
  format: "iife",
  define: { FILES: JSON.stringify(files), VERSION: JSON.stringify(version.digest("hex").slice(0, 16)) },
});
