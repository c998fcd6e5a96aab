// Writes a page of `normscope trace` and opens it in a browser: `node e2e/trace.mjs [--chromium PROGRAM] NORMSCOPE MODEL`
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { textCut } from "./text_cut.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } },
});
const [normscope, model] = positionals;
const text = "understanding";
const folder = mkdtempSync(join(tmpdir(), "normscope-trace-"));
const file = join(folder, "trace.html");
const problems = [];
const expect = (holds, what) => holds || problems.push(what);
let browser;
try {
  execFileSync(normscope, ["trace", model, text, "-o", file], { stdio: ["ignore", "ignore", "inherit"] });
  browser = await chromium.launch({ executablePath: options.chromium });
  for (const [colorScheme, width] of [
    ["light", 1280],
    ["dark", 390],
  ]) {
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
    expect((await rows("What the model expects after each token")) === data.tokens.length, "a token has no row");
    expect((await rows("The tokens of this text at each norm")) === data.norms.length, "a norm has no row");
    expect((await rows("Keys of this text that each head can select")) === data.heads.length, "a head has no row");
    for (const section of ["findings", "ranges", "guide"])
      expect((await page.$(`#${section}`)) === null, `${section} of reports is left`);
    for (const figure of await page.$$("figure")) await figure.scrollIntoViewIfNeeded();
    await page.waitForFunction(
      () => document.querySelector('figure[data-state="pending"], figure[data-state="drawing"]') === null,
    );
    const states = await page.$$eval("figure", (figures) => figures.map(({ dataset }) => dataset.state));
    expect(states.length > 2 && states.every((state) => state === "ready"), `figures are ${states}`);
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
