// How a report begins, as a picture:
// `node e2e/picture.mjs REPORT.html OUT.png [--size WIDTHxHEIGHT] [--chromium PROGRAM]`
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { visitFigures } from "./figures.mjs";

const {
  values: options,
  positionals: [report, out],
} = parseArgs({
  allowPositionals: true,
  options: {
    chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" },
    size: { type: "string", default: "1200x1300" },
  },
});
const [width, height] = options.size.split("x").map(Number);
if (!report || !out || !(width > 0) || !(height > 0)) {
  console.error("usage: node e2e/picture.mjs REPORT.html OUT.png [--size WIDTHxHEIGHT] [--chromium PROGRAM]");
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width, height }, colorScheme: "light" });
await page.goto(pathToFileURL(resolve(report)).href);
await page.waitForSelector("html[data-ready]");
await visitFigures(page, ".causes figure");
await page.waitForFunction(() => document.querySelector('.causes figure:not([data-state="ready"])') === null);
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: out });
await browser.close();
