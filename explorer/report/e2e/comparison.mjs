// Opens pages of `normscope compare` in a browser: `node e2e/comparison.mjs [--chromium PROGRAM] DIR`
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { contrastFailures } from "./contrast.mjs";
import { visitFigures } from "./figures.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } },
});
const files = readdirSync(positionals[0]).filter((name) => name.endsWith(".html"));
if (files.length === 0) throw new Error("no pages");

const browser = await chromium.launch({ executablePath: options.chromium });
let failed = 0;
for (const file of files) {
  const problems = [];
  const expect = (holds, what) => holds || problems.push(what);
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport: { width: 1100, height: 900 }, colorScheme });
    page.on("console", (message) => problems.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
    await page.goto(pathToFileURL(resolve(join(positionals[0], file))).href);
    await page.waitForSelector("html[data-ready]");
    const data = await page.$eval("#report-data", (element) => JSON.parse(element.textContent));
    expect((await page.textContent("#key-facts")).toLowerCase().includes(data.agreement), "no verdict");
    expect((await page.$$("#norms table:first-of-type tbody tr")).length >= data.norms.length, "norms are missing");
    expect((await page.$$("#findings li")).length === data.findings.length, "findings are missing");
    expect(
      ((await page.$("#heads")) !== null) === data.branches.length > 0,
      "heads and neurons are missing, or too many",
    );
    const isMoved = ({ heads, mlps }) =>
      heads.some((head) => head.old !== head.new || head.keys !== "none" || head.values !== "none" || !head.agrees) ||
      mlps.some((mlp) => mlp.moved + mlp.scaled + mlp.different > 0 || mlp.old_expert !== mlp.new_expert);
    const cards = await page.$$("#heads .branches > li");
    expect(cards.length === data.branches.filter(isMoved).length, `${cards.length} pictures of branches`);
    const slanted = await page.$$eval(
      "#heads .lines line",
      (lines) => lines.filter((line) => line.getAttribute("x1") !== line.getAttribute("x2")).length,
    );
    const exchanged = data.branches.flatMap(({ heads, mlps }) => [
      ...heads.filter((head) => head.old !== head.new),
      ...mlps.filter((mlp) => mlp.old_expert !== mlp.new_expert),
    ]);
    expect(slanted === exchanged.length, `${slanted} lines lead to another place`);
    await visitFigures(page);
    await page.waitForFunction(
      () => document.querySelector('figure[data-state="pending"], figure[data-state="drawing"]') === null,
    );
    const states = await page.$$eval("figure", (figures) => figures.map(({ dataset }) => dataset.state));
    expect(
      states.every((state) => state === "ready") && states.length === (data.agreement === "same" ? 0 : states.length),
      `figures are ${states}`,
    );
    expect(data.agreement === "same" || states.length > 0, "no figures");
    const pairs = await page.$$eval(".panels", (groups) =>
      groups.map((group) => ({
        titles: [...group.querySelectorAll("h4")].map(({ textContent }) => textContent.slice(0, 4)).join(),
        left: [...group.querySelectorAll("figure")].map((figure) => figure.getBoundingClientRect().left),
      })),
    );
    expect(pairs.length === (data.agreement === "same" ? 0 : 2), `${pairs.length} pairs of figures`);
    for (const { titles, left } of pairs) {
      expect(titles === "OLD:,NEW:", `a pair of figures is called ${titles}`);
      expect(left[0] < left[1], "OLD and NEW are not side by side");
    }
    expect((await page.$$('figure svg [class*="mark-symbol"] path')).length > 0 || states.length === 0, "no marks");
    for (const failure of await page.evaluate(contrastFailures))
      problems.push(`${colorScheme}: ${JSON.stringify(failure)}`);
    await page.close();
  }
  console.log(`${file}: ${problems.length === 0 ? "ok" : problems.join("; ")}`);
  failed += problems.length;
}
await browser.close();
process.exit(failed === 0 ? 0 : 1);
