// Writes pages of `normscope trace` and `attribute` and opens them in a browser: `node e2e/trace.mjs [--chromium PROGRAM] NORMSCOPE MODEL`
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { visitFigures } from "./figures.mjs";
import { textCut } from "./text_cut.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } },
});
const [normscope, model] = positionals;
const text = "understanding";
const folder = mkdtempSync(join(tmpdir(), "normscope-trace-"));
/** Tables of each page, with the number of rows that its result says. */
const pages = {
  trace: {
    options: [],
    tables: ({ tokens, norms, attention }) => [
      ["What the model expects after each token", tokens],
      ["The tokens of this text at each norm", norms],
      ["What each head attends to from the last token, and the keys of this text that it can select", attention],
    ],
  },
  attribute: {
    options: ["--target", "s", "--keep", "3.mlp"],
    tables: ({ components, bounds, circuit }) => [
      ["Change of the logit when a component is removed", components],
      ["What is left of any logit over what freezing predicts", bounds],
      ["The logit with only 3.mlp kept", [circuit]],
    ],
  },
};
const problems = [];
const expect = (holds, what) => holds || problems.push(what);
let browser;
try {
  browser = await chromium.launch({ executablePath: options.chromium });
  for (const [name, colorScheme, width] of [
    ["trace", "light", 1280],
    ["trace", "dark", 390],
    ["attribute", "dark", 1280],
    ["attribute", "light", 390],
  ]) {
    const file = join(folder, `${name}.html`);
    const { options: own, tables } = pages[name];
    execFileSync(normscope, [name, model, text, ...own, "-o", file], { stdio: ["ignore", "ignore", "inherit"] });
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
    page.on(
      "console",
      (message) => ["error", "warning"].includes(message.type()) && problems.push(`console: ${message.text()}`),
    );
    page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
    page.on(
      "request",
      (request) => /^(file|data|blob):/.test(request.url()) || problems.push(`asked for ${request.url()}`),
    );
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector("html[data-ready]");
    const data = await page.$eval("#report-data", (element) => JSON.parse(element.textContent));
    expect((await page.textContent("#overview")).includes(text), "the text is not shown");
    const rows = async (title) => await page.locator("table", { hasText: title }).locator("tbody tr").count();
    expect(data.tokens.length === text.length, `${data.tokens.length} tokens`);
    for (const [title, items] of tables(data))
      expect((await rows(title)) === items.length, `"${title}" has not ${items.length} rows`);
    for (const section of ["findings", "ranges", "guide"])
      expect((await page.$(`#${section}`)) === null, `${section} of reports is left`);
    await visitFigures(page);
    await page.waitForFunction(
      () => document.querySelector('figure[data-state="pending"], figure[data-state="drawing"]') === null,
    );
    const states = await page.$$eval("figure", (figures) => figures.map(({ dataset }) => dataset.state));
    expect(states.length >= 2 && states.every((state) => state === "ready"), `figures are ${states}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide <= width, `at ${width} px the page is ${wide} wide`);
    for (const cut of await textCut(page)) problems.push(`${width} px: cut off: ${cut}`);
    await page.close();
  }
} finally {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`trace: ${problems.length === 0 ? "ok" : problems.join("; ")}`);
process.exit(problems.length === 0 ? 0 : 1);
