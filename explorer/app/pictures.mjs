// Takes the explorer's pictures from a site that build.mjs has written:
// `node app/pictures.mjs SITE [posters] [thumbnails] [previews] [--chromium PROGRAM]`, by default all of them,
// writes app/posters/ID.webp, the first frame of every figure that a page begins with, app/thumbnails.json, the states that
// the front page's small pictures move between, app/preview.jpg, which other sites show with a link, and the README's
// picture. Build the site again for them.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { serve } from "./e2e/serve.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } },
});
const [site] = positionals.slice(0, 1).map((path) => resolve(path));
const wanted = positionals.slice(1);
if (site === undefined) {
  console.error("usage: node app/pictures.mjs SITE [posters] [thumbnails] [previews] [--chromium PROGRAM]");
  process.exit(2);
}
const host = await serve(site);
const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--enable-unsafe-swiftshader"],
});

/** A PNG file in another format, which is a fraction of its size. */
async function encoded(png, format, quality) {
  const page = await browser.newPage();
  const url = await page.evaluate(
    async ([source, format, quality]) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width, image.height];
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.toDataURL(`image/${format}`, quality);
    },
    [`data:image/png;base64,${png.toString("base64")}`, format, quality],
  );
  await page.close();
  return Buffer.from(url.split(",")[1], "base64");
}

/** A page of the site that is not in motion, at `#/link`. */
async function visit(link, size = { width: 1280, height: 800 }, reducedMotion = "reduce") {
  const page = await browser.newPage({ viewport: size, reducedMotion, bypassCSP: true });
  await page.goto(`${host.url}?fresh#/${link}`);
  const id = link.split("?")[0] || "contents";
  await page.waitForFunction((wanted) => document.documentElement.dataset.ready === wanted, id);
  return page;
}

/** The figures of a chapter's first block, by their names. */
async function posters(chapter) {
  // The front page moves from its first frame on.
  const page = await visit(chapter, undefined, chapter === "" ? "no-preference" : "reduce");
  // Drawn with smooth edges, a training at its end.
  if (chapter === "") await page.waitForSelector('#figure-hero[data-state="ready"]');
  else await page.waitForTimeout(3000);
  for (const figure of await page.$$(".hero figure, .lead figure:not([hidden]), .stage figure:not([hidden])")) {
    const id = (await figure.getAttribute("id")).replace(/^figure-/, "");
    const picture = await figure.$(".picture");
    if (picture === null || !(await picture.isVisible())) continue;
    const file = await encoded(await picture.screenshot(), "webp", 0.8);
    writeFileSync(join(here, "posters", `${id}.webp`), file);
    console.log(`${chapter}: ${id}, ${file.length} bytes`);
  }
  await page.close();
}

const round = (value) => Number(Number(value).toFixed(2));

/** The rows of a figure's table at a link, each an object. */
async function rows(link, figure) {
  const page = await visit(link);
  await page.waitForSelector(`#figure-${figure}[data-state="ready"]`, { state: "attached" });
  await page.waitForTimeout(1000);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.$eval(`[aria-label="Save ${figure} as CSV"]`, (button) => button.click()),
  ]);
  const [head, ...lines] = readFileSync(await download.path(), "utf8")
    .trim()
    .split("\n");
  await page.close();
  const names = head.split(",");
  return lines.map((line) => Object.fromEntries(line.split(",").map((value, i) => [names[i], value])));
}

const steps = (count, last) => Array.from({ length: count }, (_, i) => (i * last) / (count - 1));
/** The tables of one figure at several links, one after the other. */
async function each(values, linkOf, figure, read) {
  const frames = [];
  for (const value of values) frames.push(read(await rows(linkOf(value), figure)));
  return frames;
}
const flat = (table, ...names) => table.flatMap((row) => names.map((name) => round(row[name])));
const largest = (lists) => Math.max(...lists.flat().map(Math.abs));
const parts = (lists, whole) => lists.map((list) => list.map((value) => round(value / whole)));

/** The models of the chapter on signatures. */
async function models() {
  const { outputFiles } = await build({
    entryPoints: [join(here, "chapters/signature_state.ts")],
    bundle: true,
    format: "esm",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

/** What no table has, from the core itself: a text's trace, ellipses, and a circle through the four steps. */
async function asked() {
  const { modelA, modelB, defaults, sourceOf, outputCount } = await models();
  const page = await visit("");
  const given = {
    as: steps(13, 1).map((part) => modelA({ ...defaults, gain: [1, 1.8 - 1.6 * part, 0.6] })),
    b: modelB,
    source: sourceOf(defaults),
    count: outputCount,
  };
  const found = await page.evaluate(async ({ as, b, source, count }) => {
    const { default: load } = await import(new URL("normscope.mjs", document.baseURI));
    const core = await load();
    const files = await Promise.all(
      ["config.json", "model.safetensors", "tokenizer.json"].map(async (name) => ({
        name,
        bytes: new Uint8Array(await (await fetch(`example/kjv_gpt/${name}`)).arrayBuffer()),
      })),
    );
    const circle = Float64Array.from({ length: 3 * 49 }, (_, i) => {
      const angle = (2 * Math.PI * Math.floor(i / 3)) / 48;
      const [u, v] = [
        [1, -1, 0],
        [1, 1, -2],
      ].map((side) => side[i % 3] / Math.hypot(...side));
      return 3 * (u * Math.cos(angle) + v * Math.sin(angle));
    });
    const norm = { kind: "layer", width: 3, eps: 1e-4, gain: [1, 1.8, 0.6], bias: [0.8, -0.5, 0.6] };
    return {
      trace: JSON.parse(new core.Tracer(files).trace("And God said, Let there be light", 128)),
      ring: [circle, ...core.geometrySteps(norm, circle)].map((stage) => [...stage]),
      a: as.map((model) => [...core.signatureEllipse(model, 48)]),
      b: [...core.signatureEllipse(b, 48)],
      outputs: [...core.signaturePlaces(core.signatureOutputs(source, "float32", count, 1))],
    };
  }, given);
  await page.close();
  return found;
}

/** The corners of a hull, in order around their middle. */
function around(table) {
  const corners = table.filter(({ answer }) => answer === "selectable");
  return corners.sort((p, q) => Math.atan2(p.y, p.x) - Math.atan2(q.y, q.x)).map(({ key }) => Number(key));
}

async function thumbnails() {
  const { trace, ring, a, b, outputs } = await asked();
  const cloud = await rows("geometry", "geometry");
  const stages = ["input", "project", "scale", "stretch", "shift"].map((name) =>
    flat(cloud.filter(({ step }) => step === name).slice(0, 140), "x", "y", "z"),
  );
  const shifted = await each(
    steps(9, 1.6),
    (t) => `fold?shift=${t.toFixed(2)}`,
    "shift-circle",
    (table) => table,
  );
  const side = 24;
  const fields = await each(
    [0, 250, 500, 750, 1000, 1500, 3000],
    (at) => `playground?at=${at}`,
    "plane",
    (table) => {
      const cells = Math.sqrt(table.length);
      return Array.from({ length: side * side }, (_, i) => {
        const [column, row] = [i % side, Math.floor(i / side)].map((at) => Math.floor(((at + 0.5) * cells) / side));
        const { class: label, probability } = table[row * cells + column];
        return Math.round(100 * (label === "1" ? probability : 1 - probability));
      });
    },
  );
  const keys = await rows("selectability", "keys");
  const winners = await each(
    steps(37, 2 * Math.PI).slice(0, -1),
    (angle) => `selectability?query=${Math.cos(angle).toFixed(3)},${Math.sin(angle).toFixed(3)}`,
    "attention",
    (table) => table.reduce((best, row, i) => (Number(row.attention) > Number(table[best].attention) ? i : best), 0),
  );
  const folded = await each(
    steps(10, 90),
    (angle) => `nonlinearity?angle=${angle}`,
    "xor",
    (table) => flat(table, "on the circle x", "on the circle y"),
  );
  const states = await rows("counting", "trace-lstm");
  const units = Array.from({ length: 10 }, (_, unit) =>
    states.filter((_, i) => i % 2 === 0).map((row) => Number(row[`c${unit}`])),
  );
  const spread = largest(units);
  const digits = (await rows("digits", "digits")).map((row) => ({ ...row, layer: Number(row.layer) }));
  const layer = (number) => digits.filter((row) => row.layer === number).slice(0, 220);
  const profile = await rows("checkpoint", "profile");
  const names = [...new Set(profile.map(({ norm }) => norm))];
  const lengths = names.map((name) => profile.filter(({ norm }) => norm === name).map(({ length }) => Number(length)));
  const norms = trace.norms.map((norm) => norm.tokens.slice(1).map(({ length }) => length));
  const widest = largest([...a, b, outputs]);
  return {
    geometry: { stages, ring: ring.map((stage) => stage.map(round)) },
    fold: {
      frames: shifted.map((table) => flat(table, "x after", "y after")),
      before: shifted[0].map((row) => round(row["x before"])),
    },
    playground: { side, frames: fields },
    selectability: { keys: flat(keys, "x", "y"), corners: around(keys), winners },
    nonlinearity: { frames: folded },
    counting: {
      units: units.map((values) => values.map((value) => round(0.5 + value / spread / 2))),
      counter: units.findIndex((values) => largest([values]) === spread),
    },
    trace: {
      letters: trace.tokens.slice(1).map(({ name }) => name.replace(/^Ġ/, "")),
      lengths: parts(norms, largest(norms)),
    },
    signature: { a: parts(a, widest), b: parts([b], widest)[0], outputs: parts([outputs], widest)[0] },
    digits: {
      labels: layer(1).map(({ digit }) => Number(digit)),
      layers: [1, 2, 3].map((n) => flat(layer(n), "x", "y", "z")),
    },
    checkpoint: { norms: parts(lengths, largest(lengths)) },
  };
}

const bare = `.page { display: block; max-width: none; padding: 1.5rem 4rem; }
.contents, .entrances, .hero-steps button, .chapters b, .chapters span, .contents-title, main > .hint { display: none; }
.hero { padding-bottom: 0; }
.chapters { margin-top: 1rem; grid-template-columns: repeat(5, 1fr); }
.chapters li:nth-child(n + 6) { display: none; }`;
/** The front page as other sites and the README show it. */
async function previews() {
  for (const [size, file, quality] of [
    // Without what can only be pressed.
    [{ width: 1200, height: 630 }, join(here, "preview.jpg"), 0.85],
    [{ width: 1280, height: 1180 }, join(here, "../../docs/images/explorer.png"), 0],
  ]) {
    const page = await visit("", size);
    await page.waitForSelector('#figure-hero[data-state="ready"]');
    if (quality > 0) await page.addStyleTag({ content: bare });
    await page.waitForTimeout(1500);
    const picture = await page.screenshot();
    writeFileSync(file, quality === 0 ? picture : await encoded(picture, "jpeg", quality));
    await page.close();
  }
}

const takes = (what) => wanted.length === 0 || wanted.includes(what);
try {
  mkdirSync(join(here, "posters"), { recursive: true });
  const home = await visit("");
  const chapters = await home.$$eval("#chapter-list a", (links) => links.map(({ hash }) => hash.slice(2)));
  await home.close();
  if (takes("thumbnails")) writeFileSync(join(here, "thumbnails.json"), `${JSON.stringify(await thumbnails())}\n`);
  if (takes("posters")) {
    for (const file of readdirSync(join(here, "posters"))) rmSync(join(here, "posters", file));
    for (const chapter of ["", ...chapters]) await posters(chapter);
  }
  if (takes("previews")) await previews();
} finally {
  await browser.close();
  await host.close();
}
