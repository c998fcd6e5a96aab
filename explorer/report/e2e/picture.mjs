// The top of a report as a picture, as the README shows it:
// `node e2e/picture.mjs REPORT.html OUT.png [--height PIXELS] [--chromium PROGRAM]`
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const { values: options, positionals: [report, out] } = parseArgs({
  allowPositionals: true,
  options: { chromium: { type: "string", default: "/usr/bin/chromium" }, height: { type: "string", default: "1000" } },
});
if (!report || !out) {
  console.error("usage: node e2e/picture.mjs REPORT.html OUT.png [--height PIXELS] [--chromium PROGRAM]");
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: Number(options.height) }, colorScheme: "light" });
await page.goto(pathToFileURL(resolve(report)).href);
await page.waitForTimeout(500);
await page.screenshot({ path: out });
await browser.close();
