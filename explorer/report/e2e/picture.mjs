// A report, shortened to its overview, its first findings and some figures, as a picture for the README:
// `node e2e/picture.mjs REPORT.html OUT.png [--findings N] [--figures ID,…] [--chromium PROGRAM]`
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const {
  values: options,
  positionals: [report, out],
} = parseArgs({
  allowPositionals: true,
  options: {
    chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" },
    findings: { type: "string", default: "3" },
    figures: { type: "string", default: "longest-axis,head-spread" },
  },
});
if (!report || !out) {
  console.error("usage: node e2e/picture.mjs REPORT.html OUT.png [--findings N] [--figures ID,…] [--chromium PROGRAM]");
  process.exit(2);
}

const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 1000 }, colorScheme: "light" });
await page.goto(pathToFileURL(resolve(report)).href);
await page.waitForSelector("html[data-ready]");
const figures = options.figures.split(",");
const missing = await page.evaluate(
  ({ findings, figures }) => {
    const drop = (selector, keep) => {
      for (const element of [...document.querySelectorAll(selector)].filter((e, i) => !keep(e, i))) element.remove();
    };
    drop(".findings li", (_, i) => i < findings);
    drop("figure", ({ id }) => figures.includes(id.replace("chart-", "")));
    drop(".question", (question) => question.querySelector("figure") !== null);
    drop("#embedding-rows, #findings .more, #overview .remarks, #norms, #heads, #ranges, #guide, footer", () => false);
    return figures.filter((id) => document.getElementById(`chart-${id}`) === null);
  },
  { findings: Number(options.findings), figures },
);
if (missing.length > 0) throw new Error(`${report}: holds no figure ${missing.join(", ")}`);
for (const figure of await page.$$("figure")) await figure.scrollIntoViewIfNeeded();
await page.waitForFunction(() => document.querySelector('figure:not([data-state="ready"])') === null);
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: out, fullPage: true });
await browser.close();
