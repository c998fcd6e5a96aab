// Measures the explorer's pages in a browser: what a reader who opens a chapter first has to load, how long it takes
// until its figure is drawn and follows a control with the processor slowed down four times, how many frames a second it
// draws while a control is moved without that, and how much memory 30 changes of the chapter leave behind:
// `run.mjs SITE [--only CHAPTER] [--without-speed] [--json FILE]`. Speed needs a machine that does nothing else.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { serve } from "../../explorer/app/e2e/serve.mjs";

const { chromium } = createRequire(new URL("../../explorer/app/e2e/serve.mjs", import.meta.url))("playwright-core");

const slowdown = 4;
const dragged = 3; // seconds

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" },
    only: { type: "string" },
    "without-speed": { type: "boolean", default: false },
    json: { type: "string" },
  },
});
const [site] = positionals.map((path) => resolve(path));
if (site === undefined) {
  console.error("usage: node bench/explorer/run.mjs SITE [--only CHAPTER] [--without-speed] [--json FILE]");
  process.exit(2);
}

const host = await serve(site);
const browser = await chromium.launch({
  executablePath: options.chromium,
  headless: true,
  args: ["--no-sandbox", "--enable-unsafe-swiftshader"],
});

/** A page with nothing cached. */
async function freshPage() {
  // What plays by itself would be part of the start.
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    serviceWorkers: "block",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  return page;
}

const ready = (page, id) => page.waitForFunction((wanted) => document.documentElement.dataset.ready === wanted, id);

/** Every figure in view has drawn, and the page has nothing to do for a tenth of a second. */
const settled = (page) =>
  page.evaluate(
    () =>
      new Promise((done) => {
        let last = performance.now();
        let quiet = last;
        const watch = (now) => {
          const idle = now - last < 60;
          last = now;
          if (!idle) quiet = now;
          if (now - quiet > 100) done(now);
          else requestAnimationFrame(watch);
        };
        requestAnimationFrame(watch);
      }),
  );

async function load(id) {
  const page = await freshPage();
  if (!options["without-speed"]) {
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
  }
  const asked = host.requests.length;
  const begun = performance.now();
  await page.goto(`${host.url}?fresh#/${id}`);
  await ready(page, id);
  await settled(page);
  const seconds = (performance.now() - begun) / 1000;
  const files = [...new Set(host.requests.slice(asked))].filter((path) => !path.startsWith("favicon"));
  const bytes = files.reduce((sum, path) => sum + gzipSync(readFileSync(join(site, path || "index.html"))).length, 0);
  await page.context().close();
  return { seconds: options["without-speed"] ? null : seconds, bytes };
}

/** Frames a second while the first slider of the chapter moves in every frame; null without a slider. */
async function drag(id) {
  const page = await freshPage();
  await page.goto(`${host.url}?fresh#/${id}`);
  await ready(page, id);
  await settled(page);
  const frames = await page.evaluate(
    (seconds) =>
      new Promise((done) => {
        const slider = [...document.querySelectorAll("main input[type=range]")].find(
          (one) => one.offsetParent !== null && !one.disabled,
        );
        if (slider === undefined) return void done(null);
        slider.scrollIntoView({ block: "center", behavior: "instant" });
        const [least, most] = [Number(slider.min), Number(slider.max)];
        let begun = 0;
        let count = 0;
        const step = (now) => {
          begun ||= now;
          if (now - begun > 1000 * seconds) return void done((1000 * count) / (now - begun));
          count += 1;
          slider.value = String(least + (most - least) * (0.5 + 0.4 * Math.sin((now - begun) / 300)));
          slider.dispatchEvent(new Event("input", { bubbles: true }));
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
    dragged,
  );
  await page.context().close();
  return frames;
}

/** Bytes of the heap and number of nodes in the contents, after visits of `ids` one after the other. */
async function left(page, session, ids) {
  for (const id of [...ids, "contents"]) {
    await page.evaluate((hash) => (location.hash = hash), `#/${id === "contents" ? "" : id}`);
    await ready(page, id);
    await settled(page);
  }
  await page.waitForTimeout(500);
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const [heap, nodes] = ["JSHeapUsedSize", "Nodes"].map((wanted) => metrics.find(({ name }) => name === wanted).value);
  return { heap, nodes };
}

/** Memory before and after `changes` of the chapter, when each has been visited once already. */
async function growth(ids, changes) {
  const page = await freshPage();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  await page.goto(`${host.url}?fresh#/`);
  await ready(page, "contents");
  const before = await left(page, session, ids);
  const after = await left(
    page,
    session,
    Array.from({ length: changes }, (_, i) => ids[i % ids.length]),
  );
  await page.context().close();
  return { changes, before, after };
}

const page = await freshPage();
await page.goto(`${host.url}?fresh#/`);
await ready(page, "contents");
const chapters = await page.$$eval('main a[href^="#/"]', (links) => [
  ...new Set(links.map((link) => link.hash.slice(2).split("?")[0])),
]);
await page.context().close();

const rows = [];
const measured = chapters.filter((one) => one !== "" && (options.only === undefined || one === options.only));
console.log("chapter          loaded, KB   drawn at 1/4 speed, s   frames a second");
for (const id of measured) {
  const { seconds, bytes } = await load(id);
  const frames = options["without-speed"] ? null : await drag(id);
  rows.push({ chapter: id, bytes, seconds, frames });
  const shown = options["without-speed"] ? "-" : frames === null ? "no slider" : frames.toFixed(0);
  console.log(
    `${id.padEnd(16)} ${(bytes / 1000).toFixed(0).padStart(10)} ${(seconds?.toFixed(1) ?? "-").padStart(23)} ${shown.padStart(17)}`,
  );
}
const memory = await growth(measured, 30);
const shown = ({ heap, nodes }) => `${(heap / 1e6).toFixed(1)} MB and ${nodes} nodes`;
console.log(`${memory.changes} changes of the chapter: ${shown(memory.before)} before, ${shown(memory.after)} after`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ chapters: rows, memory }, null, 1)}\n`);
await browser.close();
host.close();
