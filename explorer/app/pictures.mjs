// Takes the explorer's pictures from a site that build.mjs has written: `node app/pictures.mjs SITE [--chromium PROGRAM]`
// writes app/posters/ID.webp, the first frame of every figure that a chapter begins with. Build the site again for them.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { serve } from "./e2e/serve.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } },
});
const [site] = positionals.map((path) => resolve(path));
if (site === undefined) {
  console.error("usage: node app/pictures.mjs SITE [--chromium PROGRAM]");
  process.exit(2);
}
const host = await serve(site);
const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--enable-unsafe-swiftshader"],
});

/** A PNG file as WebP, which is a fraction of its size. */
async function webp(png, quality) {
  const page = await browser.newPage();
  const url = await page.evaluate(
    async ([source, quality]) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width, image.height];
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.toDataURL("image/webp", quality);
    },
    [`data:image/png;base64,${png.toString("base64")}`, quality],
  );
  await page.close();
  return Buffer.from(url.split(",")[1], "base64");
}

/** The figures of a chapter's first block, by their names. */
async function posters(chapter) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  await page.goto(`${host.url}?fresh#/${chapter}`);
  await page.waitForFunction((id) => document.documentElement.dataset.ready === id, chapter);
  // Drawn with smooth edges, a training at its end.
  await page.waitForTimeout(3000);
  for (const figure of await page.$$(".lead figure:not([hidden]), .stage figure:not([hidden])")) {
    const id = (await figure.getAttribute("id")).replace(/^figure-/, "");
    const picture = await figure.$(".picture");
    if (picture === null || !(await picture.isVisible())) continue;
    const file = await webp(await picture.screenshot(), 0.8);
    writeFileSync(join(here, "posters", `${id}.webp`), file);
    console.log(`${chapter}: ${id}, ${file.length} bytes`);
  }
  await page.close();
}

try {
  mkdirSync(join(here, "posters"), { recursive: true });
  for (const file of readdirSync(join(here, "posters"))) rmSync(join(here, "posters", file));
  const page = await browser.newPage();
  await page.goto(`${host.url}?fresh`);
  const chapters = await page.$$eval("#chapter-list a", (links) => links.map(({ hash }) => hash.slice(2)));
  await page.close();
  for (const chapter of chapters) await posters(chapter);
} finally {
  await browser.close();
  await host.close();
}
