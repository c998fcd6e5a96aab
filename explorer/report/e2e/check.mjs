// Opens reports in a browser and fails on anything a reader would notice:
// `node e2e/check.mjs [--chromium PROGRAM] [--screenshots DIR] [--briefly DIR]… FILE.html|DIR…`
// Those of `--briefly` are opened, scrolled through and shown on a phone; the others are used and printed as well.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { contrastFailures } from "./contrast.mjs";
import { staysCut } from "./text_cut.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" },
    screenshots: { type: "string" },
    briefly: { type: "string", multiple: true, default: [] },
  },
});
const pages = (path) =>
  statSync(path).isDirectory()
    ? readdirSync(path)
        .filter((name) => name.endsWith(".html"))
        .sort()
        .map((name) => join(path, name))
    : [path];
const brief = new Set(options.briefly.flatMap(pages));
const files = [...positionals.flatMap(pages), ...brief];
if (files.length === 0) {
  console.error("usage: node e2e/check.mjs [--chromium PROGRAM] [--screenshots DIR] [--briefly DIR]… FILE.html|DIR…");
  process.exit(2);
}

function expect(condition, message) {
  if (!condition) throw new Error(message);
}

/**
 * Waits until no figure is being drawn, then expects each to be drawn or to say that it is empty, or to be far from the
 * window and `pending`.
 */
async function figuresReady(page, when, { pending = false } = {}) {
  await page.waitForFunction(() => document.querySelector('figure[data-state="drawing"]') === null);
  const good = ["ready", "empty", ...(pending ? ["pending"] : [])];
  const bad = await page.$$eval(
    "figure",
    (figures, good) =>
      figures
        .filter(({ dataset }) => !good.includes(dataset.state))
        .map(
          (figure) =>
            `${figure.id} is ${figure.dataset.state}: ${figure.querySelector(".plot").textContent.slice(0, 200)}`,
        ),
    good,
  );
  expect(bad.length === 0, `${when}: ${bad.join("; ")}`);
  const blank = await page.$$eval('figure[data-state="ready"]', (figures) =>
    figures
      .filter((figure) => figure.querySelectorAll("svg path, svg line, svg text").length < 3)
      .map((figure) => figure.id),
  );
  expect(blank.length === 0, `${when}: ${blank.join(", ")} drawn without marks`);
  const unnamed = await page.$$eval("figure svg text", (texts) =>
    texts.filter((text) => text.textContent === "undefined").map((text) => text.closest("figure").id),
  );
  expect(unnamed.length === 0, `${when}: ${unnamed.join(", ")} names what it has no name for`);
}

async function scrollThrough(page) {
  // The appendix is closed until one opens it.
  await page.evaluate(() => document.querySelectorAll("details.part").forEach((part) => (part.open = true)));
  const figures = await page.$$("figure");
  for (const figure of figures) {
    await figure.evaluate((element) => element.scrollIntoView({ block: "center", behavior: "instant" }));
    await page.waitForFunction((element) => element.dataset.state !== "pending", figure, { polling: 50 });
  }
  await page.waitForFunction(() => document.querySelector('figure[data-state="pending"]') === null, undefined, {
    polling: 50,
  });
  await figuresReady(page, "after scrolling");
}

/** Sorts by each column in both directions and compares with the report's order of its numbers. */
async function checkSort(page, table) {
  const problems = await page.evaluate((table) => {
    const value = (text) => {
      const plain = text
        .replaceAll("−", "-")
        .replace(/[\u202f\u00a0%≤≥]/g, "")
        .replace(/^(-?)10(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])/, "$11·10");
      const [factor, power] = plain.split("·10");
      const digits = (power ?? "").replace("⁻", "-").replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c));
      return plain === "–" ? null : Number(factor) * 10 ** Number(digits || 0);
    };
    const problems = [];
    const heads = [...document.querySelectorAll(`${table} > thead th`)].filter((head) => head.querySelector("button"));
    heads.forEach((head, column) => {
      for (let press = 0; press < 2; press += 1) {
        head.querySelector("button").click();
        const direction = head.getAttribute("aria-sort");
        if (direction === "none") problems.push(`${head.textContent}: aria-sort stays none`);
        if (heads.filter((other) => other.getAttribute("aria-sort") !== "none").length !== 1)
          problems.push("two columns sorted");
        if (!head.classList.contains("number")) continue;
        const cells = [...document.querySelectorAll(`${table} > tbody > tr:not(.opened)`)].map((row) =>
          value(row.cells[column]?.matches("td.number, th") ? row.cells[column].textContent : "–"),
        );
        const known = cells.filter((cell) => cell !== null);
        const sign = direction === "ascending" ? 1 : -1;
        if (known.some((cell, i) => i > 0 && sign * (cell - known[i - 1]) < -1e-12))
          problems.push(`${head.textContent}: not ${direction}`);
        if (cells.findLastIndex((cell) => cell !== null) >= known.length)
          problems.push(`${head.textContent}: unknown not last`);
      }
    });
    heads[0]?.querySelector("button").click();
    return problems;
  }, table);
  expect(problems.length === 0, `sorting: ${problems.join("; ")}`);
}

async function checkFilter(page, total) {
  const visible = () =>
    page.$$eval(".norms > tbody > tr:not(.opened)", (rows) => rows.filter((row) => !row.hidden).length);
  await page.fill("#norm-filter", "no norm is called this");
  expect((await visible()) === 0, "filter: a text found nowhere leaves rows");
  await page.fill("#norm-filter", "");
  expect((await visible()) === total, "filter: an empty text hides rows");
  const option = await page.$(".controls select option:nth-child(2)");
  if (option === null) return;
  const role = await option.evaluate((element) => element.value);
  await page.selectOption(".controls select >> nth=0", role);
  const shown = await visible();
  expect(shown > 0 && shown <= total, "filter: a role of the table finds no row");
  await page.selectOption(".controls select >> nth=0", "");
}

async function checkKeyboard(page, total) {
  await page.keyboard.press("Tab");
  expect(
    await page.evaluate(() => document.activeElement?.classList.contains("skip")),
    "keyboard: the first stop is not the skip link",
  );
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id === "main"), "keyboard: the skip link leads nowhere");
  if (total === 0) return;
  await page.focus(".norms .opener");
  for (const open of [true, false]) {
    await page.keyboard.press("Enter");
    expect(
      (await page.$$(".norms .opened")).length === Number(open),
      `keyboard: Enter does not ${open ? "open" : "close"} a row`,
    );
  }
  await page.evaluate(() => {
    location.hash = "#norm-0";
  });
  await page.waitForSelector("#norm-0 + .opened", { timeout: 2000 });
}

async function checkActions(page) {
  const figure = await page.$('figure[data-state="ready"]');
  for (const format of figure === null ? [] : ["PNG", "SVG"]) {
    const [download] = await Promise.all([
      page.waitForEvent("download", { timeout: 10_000 }),
      (await figure.$(`button:text("${format}")`)).click(),
    ]);
    expect(statSync(await download.path()).size > 1000, `${format}: the saved figure is empty`);
  }
  const copy = await page.$(".command button");
  if (copy === null) return;
  await copy.click();
  await page.waitForFunction(() => /Copied/.test(document.querySelector(".command button").textContent), undefined, {
    timeout: 2000,
  });
}

/** Every head's row has a cell for each column, says nothing trivial, and its reason is in sight without scrolling. */
async function checkHeads(page, when) {
  const bad = await page.evaluate(() => {
    for (const details of document.querySelectorAll("#heads details")) details.open = true;
    const problems = [];
    const columns = document.querySelectorAll(".spreads > thead th").length;
    for (const row of document.querySelectorAll(".spreads > tbody > tr")) {
      const cells = [...row.cells];
      if (cells.reduce((sum, cell) => sum + cell.colSpan, 0) !== columns) problems.push("a row of another length");
      const trivial = cells.find((cell) => /^≥\s?0$/.test(cell.textContent));
      if (trivial) problems.push(`a cell says ${trivial.textContent}`);
      const reason = row.querySelector(".reason");
      if (reason === null) continue;
      const [frame, box] = [row.closest(".table-scroll"), reason].map((element) => element.getBoundingClientRect());
      if (box.right > frame.right + 1 || reason.scrollWidth > reason.clientWidth) {
        problems.push(`"${reason.textContent.slice(0, 30)}…" is cut off`);
      }
    }
    return problems;
  });
  expect(bad.length === 0, `${when}: heads: ${bad.slice(0, 3).join("; ")}`);
}

/** What the report begins with, and the tokens that use coordinates, are those of the data; no table is there twice. */
async function checkStory(page) {
  const problems = await page.evaluate(() => {
    const { verdict, causes, features } = JSON.parse(document.getElementById("report-data").textContent);
    const charts = JSON.parse(document.getElementById("chart-data").textContent);
    const problems = [];
    // A mark that turns the direction of text is shown by its code.
    const seen = (text) => text.replaceAll("\u202e", "\\u202e");
    if (document.getElementById("verdict").textContent !== seen(verdict)) problems.push("the verdict is another");
    const shown = [...document.querySelectorAll("#causes .causes > li, #causes .smaller > li")];
    if (shown.length !== causes.length) problems.push(`${shown.length} of ${causes.length} causes`);
    causes.slice(0, 4).forEach((cause, i) => {
      const text = shown[i]?.textContent ?? "";
      const parts = [cause.title, cause.why, cause.advice, cause.reproduce];
      for (const number of cause.numbers) parts.push(number.name, number.text, number.usual);
      for (const part of parts) if (!text.includes(seen(part))) problems.push(`cause ${i + 1} lacks "${part}"`);
      if (charts.some(({ id }) => id === cause.chart) && !shown[i]?.querySelector(`#chart-${cause.chart}`))
        problems.push(`cause ${i + 1} lacks its picture`);
      for (const link of shown[i]?.querySelectorAll('a[href^="#norm"]') ?? [])
        if (document.querySelector(link.hash) === null) problems.push(`${link.hash} is not there`);
    });
    const rows = document.querySelectorAll("#embedding-rows tbody tr").length;
    const joined = features.filter(({ embedding }) => embedding !== null).length;
    if (rows !== joined) problems.push(`${rows} coordinates joined to tokens, expected ${joined}`);
    const tables = [...document.querySelectorAll("#heads tbody")].map((body) => body.textContent);
    if (new Set(tables).size < tables.length) problems.push("a table is there twice");
    return problems;
  });
  expect(problems.length === 0, `story: ${problems.slice(0, 3).join("; ")}`);
}

/** Figures of one question stand next to each other, or below each other. */
async function checkPanels(page, side) {
  const bad = await page.$$eval(
    ".panels",
    (groups, side) =>
      groups
        .map((group) => [...group.querySelectorAll("figure")].map((figure) => figure.getBoundingClientRect()))
        .filter((boxes) => boxes.length > 1 && (side ? boxes[1].left <= boxes[0].left : boxes[1].top <= boxes[0].top))
        .length,
    side,
  );
  expect(bad === 0, `panels are not ${side ? "side by side" : "below each other"}`);
}

/** Tables of which no measured number is in sight until one scrolls; of norms there are to be two. */
const numbersHidden = (page) =>
  page.$$eval(".table-scroll", (frames) =>
    frames
      .filter((frame) => frame.clientWidth > 0 && frame.querySelector("tbody > tr > td.number:not(.places)") !== null)
      .filter((frame) => {
        frame.scrollLeft = 0;
        const { right } = frame.getBoundingClientRect();
        const wanted = frame.querySelector(".norms") === null ? 1 : 2;
        const seen = [...frame.querySelectorAll(":scope > table > tbody > tr:not(.opened)")].map(
          (row) =>
            [...row.querySelectorAll(":scope > td.number:not(.places)")]
              .map((cell) => cell.getBoundingClientRect())
              .filter((box) => box.width > 0 && box.right <= right).length,
        );
        return Math.max(...seen) < wanted;
      })
      .map((frame) => frame.ariaLabel),
  );

const sideways = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** What a reader does with a page: keys, sorting, filters, saved figures, the dark theme, paper. */
async function use(page, file, total, shot) {
  await checkKeyboard(page, total);
  if (total > 0) {
    for (const table of [".norms", ".spreads"]) await checkSort(page, table);
    await checkFilter(page, total);
  }
  await checkActions(page);
  const faint = await page.evaluate(contrastFailures);
  expect(faint.length === 0, `light: faint text: ${faint.join("; ")}`);

  await page.click("#theme-toggle");
  expect(await page.evaluate(() => document.documentElement.dataset.theme === "dark"), "dark: the toggle does nothing");
  await scrollThrough(page);
  const faintDark = await page.evaluate(contrastFailures);
  expect(faintDark.length === 0, `dark: faint text: ${faintDark.join("; ")}`);
  await shot("dark");

  await page.reload();
  await page.waitForSelector("html[data-ready]");
  expect(
    await page.evaluate(() => document.documentElement.dataset.theme === "dark"),
    "dark: a reload loses the theme",
  );
  await page.evaluate(() =>
    addEventListener("beforeprint", () =>
      queueMicrotask(() => {
        globalThis.paper = getComputedStyle(document.documentElement).backgroundColor;
      }),
    ),
  );
  const pdf = await page.pdf({
    format: "A4",
    printBackground: true,
    ...(options.screenshots && { path: join(options.screenshots, `${basename(file, ".html")}.pdf`) }),
  });
  expect(pdf.length > 10_000, `print: only ${pdf.length} bytes of PDF`);
  expect((await page.evaluate(() => globalThis.paper)) === "rgb(255, 255, 255)", "print: the paper is not white");
  await figuresReady(page, "print", { pending: true });
}

async function checkFile(browser, file) {
  const started = Date.now();
  const bytes = statSync(file).size;
  expect(bytes < 10e6, `${bytes} bytes, more than 10 MB`);
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, colorScheme: "light" });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    const complaints = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()))
        complaints.push(`console ${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
    const address = pathToFileURL(resolve(file)).href;
    page.on("request", (request) => {
      if (!request.url().startsWith(address) && !/^(data|blob):/.test(request.url()))
        complaints.push(`request: ${request.url()}`);
    });
    const shot = async (kind) => {
      if (options.screenshots === undefined) return;
      await page.screenshot({
        path: join(options.screenshots, `${basename(file, ".html")}-${kind}.png`),
        fullPage: true,
      });
    };

    await page.goto(address);
    await page.waitForSelector("html[data-ready]", { timeout: 10_000 });
    const title = await page.title();
    expect(/^.+ · Normscope report$/s.test(title), `title is "${title}"`);
    expect((await page.$$("script:not([type]), img, iframe, object")).length === 1, "data became markup");
    await scrollThrough(page);
    const total = (await page.$$(".norms > tbody > tr")).length;
    await page.evaluate(() => scrollTo(0, 0));
    await checkStory(page);
    await checkPanels(page, true);
    await shot("light");
    if (!brief.has(file)) await use(page, file, total, shot);

    await checkHeads(page, "desk");
    await page.setViewportSize({ width: 360, height: 740 });
    await page.waitForTimeout(100);
    await checkHeads(page, "phone");
    const wide = await page.$$eval(
      ".causes .numbers .block",
      (blocks) => blocks.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1).length,
    );
    expect(wide === 0, `phone: the numbers of ${wide} causes are wider than the page`);
    await checkPanels(page, false);
    const cut = await staysCut(page);
    expect(cut.length === 0, `phone: figures cut off ${cut.slice(0, 3).join(", ")}`);
    // As when the bar of a phone's browser comes or goes.
    await page.setViewportSize({ width: 360, height: 660 });
    await page.waitForTimeout(250);
    const cutByBar = await staysCut(page);
    expect(cutByBar.length === 0, `phone: another height cuts off ${cutByBar.slice(0, 3).join(", ")}`);
    expect((await sideways(page)) <= 0, `phone: the page scrolls sideways by ${await sideways(page)} pixels`);
    const hidden = await numbersHidden(page);
    expect(hidden.length === 0, `phone: no number is in sight: ${hidden.join(", ")}`);
    await shot("phone");
    await page.setViewportSize({ width: 2200, height: 1200 });
    expect((await sideways(page)) <= 0, "wide screen: the page scrolls sideways");

    expect(complaints.length === 0, complaints.slice(0, 3).join("; "));
    const charts = (await page.$$("figure")).length;
    const seconds = (Date.now() - started) / 1000;
    return `${total} norms, ${charts} figures, ${(bytes / 1e6).toFixed(2)} MB, ${seconds.toFixed(1)} s`;
  } finally {
    await context.close();
  }
}

if (options.screenshots !== undefined) mkdirSync(options.screenshots, { recursive: true });
const home = mkdtempSync(join(tmpdir(), "normscope-check-"));
/** Starts a browser, one for each page that is open: of several pages in one, some may be given no frames. */
const launch = () =>
  chromium.launch({
    executablePath: options.chromium,
    env: { ...process.env, HOME: home },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
let failed = 0;
const waiting = [...files];
/** Checks what is waiting, until nothing is. A check mostly waits for frames, so that several go at a time. */
async function checkWaiting() {
  const browser = await launch();
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    try {
      console.log(`ok    ${basename(file)}: ${await checkFile(browser, file)}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${basename(file)}: ${error.message.split("\n")[0]}`);
    }
  }
  await browser.close();
}
await Promise.all([1, 2, 3].map(checkWaiting));
rmSync(home, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
