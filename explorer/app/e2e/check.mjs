// Opens the explorer in a browser and fails on anything a reader would notice:
// `node app/e2e/check.mjs SITE [--chromium PROGRAM] [--screenshots DIR] [--only TEST] [--late MS]`
// With --late, frames are drawn that much later, as on a machine that has too much to do: no test may depend on it.
// Each file of e2e/chapters/ tests one chapter: it moves controls and checks that the figure's data change. Each of
// e2e/site/ tests what all chapters have in common.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { contrastFailures } from "../../report/e2e/contrast.mjs";
import { visitFigures } from "../../report/e2e/figures.mjs";
import { staysCut, textCut } from "../../report/e2e/text_cut.mjs";
import { explained, opens } from "./explanations.mjs";
import { serve } from "./serve.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" },
    screenshots: { type: "string" },
    only: { type: "string" },
    late: { type: "string" },
  },
});
const [site] = positionals.map((path) => resolve(path));
if (site === undefined) {
  console.error(
    "usage: node app/e2e/check.mjs SITE [--chromium PROGRAM] [--screenshots DIR] [--only TEST] [--late MS]",
  );
  process.exit(2);
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

const sizes = { phone: [390, 844], laptop: [1280, 800], desk: [1440, 900], wide: [1920, 1080] };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const host = await serve(site);
const profile = mkdtempSync(join(tmpdir(), "normscope-e2e-"));
// Software WebGL is slow, and the checks do not depend on its speed.
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: options.chromium,
  headless: true,
  args: ["--no-sandbox", "--enable-unsafe-swiftshader"],
  viewport: { width: sizes.laptop[0], height: sizes.laptop[1] },
  bypassCSP: false,
});

/** A page of the site that collects all errors in `problems`. */
async function newPage() {
  const page = await browser.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !/GPU stall due to ReadPixels/.test(message.text()))
      page.problems.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.problems.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(host.url))
      page.problems.push(`asked for ${request.url()}`);
  });
  page.setDefaultTimeout(120_000);
  // Playwright would ask with every frame, and a page that is asked draws every frame.
  const wait = page.waitForFunction.bind(page);
  page.waitForFunction = (condition, argument, options) => wait(condition, argument, { polling: 50, ...options });
  // The first figure of a chapter would play by itself.
  await page.emulateMedia({ reducedMotion: "reduce" });
  if (options.late !== undefined)
    await page.addInitScript((wait) => {
      const frame = requestAnimationFrame.bind(window);
      const cancelled = new Set();
      window.cancelAnimationFrame = (id) => cancelled.add(id);
      window.requestAnimationFrame = (draw) => {
        const id = setTimeout(() => frame((now) => cancelled.has(id) || draw(now)), wait);
        return id;
      };
    }, Number(options.late));
  return page;
}

/** Waits until the page has drawn what it was asked for: figures are painted in a frame after the change, and again if their size is new. */
const painted = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

/**
 * Goes to `#/path` and waits until the chapter has been mounted and painted: by a link on the page that is open or, if
 * `fresh`, by loading the page anew.
 */
async function open(page, path, { fresh = false } = {}) {
  const id = path.split("?")[0];
  const hash = `#/${path === "contents" ? "" : path}`;
  if (fresh || !page.url().startsWith(host.url)) {
    await page.goto("about:blank");
    await page.goto(`${host.url}?fresh${hash}`);
  } else {
    await page.evaluate((to) => {
      // A link to the page on show is followed too.
      history.pushState(null, "", to);
      dispatchEvent(new HashChangeEvent("hashchange"));
    }, hash);
  }
  await page.waitForFunction((wanted) => document.documentElement.dataset.ready === wanted, id || "contents");
  await painted(page);
}

/** The rules whose outcome depends on the theme, in which nothing but colours changes. */
const ofColors = ["color-contrast", "link-in-text-block"];
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

/** Runs in the page: what violates axe's rules. */
async function violations(options) {
  const { violations } = await window.axe.run(document, options);
  return violations.map(({ id, nodes }) => {
    const places = nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary}`);
    return `${id}: ${places.join(" | ")}`;
  });
}

/** Runs in the page: the same without what is drawn, of whose colours axe knows nothing and which would take it most of its time. */
async function violationsOutsideDrawings(options) {
  const drawn = [...document.querySelectorAll("svg")].map((svg) => [svg, [...svg.childNodes]]);
  for (const [svg] of drawn) svg.replaceChildren();
  try {
    return await violations(options);
  } finally {
    // What has been drawn meanwhile stays.
    for (const [svg, parts] of drawn) if (svg.childNodes.length === 0) svg.append(...parts);
  }
}

async function inPage(session, where, expression) {
  // Through the debugger, to which the page's policy does not apply.
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    expression,
    awaitPromise: true,
    returnByValue: true,
  });
  expect(exceptionDetails === undefined, `${where}: axe: ${exceptionDetails?.exception?.description}`);
  return result.value;
}

/** Fails on what violates axe's rules in the theme on show or, with `themes`, in both, and on faint text. */
async function accessible(page, where, themes = [null]) {
  const session = await page.context().newCDPSession(page);
  if (!(await page.evaluate(() => "axe" in window)))
    await inPage(session, where, `${axe}; ${violations}; ${violationsOutsideDrawings}; 0`);
  // Otherwise axe would also list all elements that are as they should be.
  const resultTypes = ["violations"];
  const others = Object.fromEntries(ofColors.map((rule) => [rule, { enabled: false }]));
  const found = await inPage(
    session,
    where,
    `violations(${JSON.stringify({ runOnly: tags, rules: others, resultTypes })})`,
  );
  for (const colorScheme of themes) {
    if (colorScheme !== null) await page.emulateMedia({ colorScheme });
    const options = JSON.stringify({ runOnly: { type: "rule", values: ofColors }, resultTypes });
    const bad = [
      ...(await inPage(session, where, `violationsOutsideDrawings(${options})`)),
      ...(await page.evaluate(contrastFailures)),
    ];
    found.push(...bad.map((one) => (colorScheme === null ? one : `${colorScheme}: ${one}`)));
  }
  await session.detach();
  expect(found.length === 0, `${where}: ${found.join("\n  ")}`);
}

/** Waits until nothing draws `figure` any more: it has been drawn as often as half a second ago. */
async function settled(page, figure) {
  const frames = () => page.$eval(figure, (element) => Number(element.dataset.frames));
  let before = await frames();
  for (let attempt = 0; attempt < 40; ++attempt) {
    await page.waitForTimeout(500);
    const now = await frames();
    if (now === before) return now;
    before = now;
  }
  throw new Error(`${figure} is drawn on and on though nothing changes`);
}

/** Saves a figure by its menu; gives the download. */
async function save(page, figure, format) {
  const menu = page.locator(`#figure-${figure} .menu`);
  if (!(await menu.evaluate(({ open }) => open))) await menu.locator("summary").click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: `Save ${figure} as ${format}`, exact: true }).click(),
  ]);
  return download;
}

/** The labels along the axes with that title in a chart. */
const ticks = (page, figure, title) =>
  page.$$eval(
    `${figure} .role-axis`,
    (axes, wanted) =>
      axes
        .filter((axis) => axis.querySelector(".role-axis-title")?.textContent === wanted)
        .flatMap((axis) => [...axis.querySelectorAll(".role-axis-label text")].map(({ textContent }) => textContent)),
    title,
  );

/** Fails unless these axes, which number things, have whole ticks. */
async function wholeTicks(page, figure, ...titles) {
  for (const title of titles) {
    const labels = await ticks(page, figure, title);
    expect(
      labels.length > 1 && labels.every((label) => /^\d+$/.test(label)),
      `${figure}: ${title} has the ticks ${labels}`,
    );
  }
}

/** Opens a chapter in a window of that size: nothing on show moves while the figures arrive and the first one plays. */
async function openStill(page, id, name) {
  const [width, height] = sizes[name];
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await open(page, id, { fresh: true });
  await page.waitForTimeout(700);
  const moved = await page.evaluate(
    () =>
      new Promise((done) => {
        const shifts = [];
        new PerformanceObserver((list) => shifts.push(...list.getEntries())).observe({
          type: "layout-shift",
          buffered: true,
        });
        setTimeout(() => done(shifts.reduce((sum, { value }) => sum + value, 0)), 100);
      }),
  );
  expect(moved < 0.02, `${id}: ${name}: the layout shifts by ${moved.toFixed(3)} while it loads`);
}

/** No more motion: a touch ends what plays. */
async function still(page) {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.$eval("h1", (title) =>
    title.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, pointerType: "mouse" })),
  );
}

/** What is cut off by a container that does not scroll. */
const contentCut = (page) =>
  page.$$eval("body *", (all) =>
    all
      // Formulas carry their source, which is not shown.
      .filter((element) => !element.matches("svg, svg *, math, math *, .offscreen, #color-probe"))
      .filter((element) => {
        const { overflowX, overflowY } = getComputedStyle(element);
        const hides = (overflow) => overflow === "hidden" || overflow === "clip";
        return (
          (hides(overflowX) && element.scrollWidth > element.clientWidth + 1) ||
          (hides(overflowY) && element.scrollHeight > element.clientHeight + 1)
        );
      })
      .map((element) => `${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`),
  );

/** The page fits its window. */
async function fits(page, where) {
  const [seen, whole] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  expect(whole <= seen, `${where}: the page is ${whole} wide and the window ${seen}`);
}

/** Nothing on the page is cut off, and everybody can read it, in both themes. */
async function readable(page, where) {
  const cut = await staysCut(page, async () => [...(await textCut(page)), ...(await contentCut(page))]);
  expect(cut.length === 0, `${where}: cut off: ${cut.join(", ")}`);
  await accessible(page, where, ["dark", "light"]);
}

/** Pictures of the page in both themes, where they are asked for. */
async function pictures(page, name) {
  if (options.screenshots === undefined) return;
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    // What is far out of view is drawn when it comes near.
    await visitFigures(page);
    await page.waitForTimeout(700);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(options.screenshots, `${name}-${colorScheme}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** A page begins with its figure: all of it is above the fold, and few words and keyboard stops are before it. */
async function begins(page, where) {
  const { bottom, fold, words, stops } = await page.evaluate(() => {
    const main = document.querySelector("main");
    const figure = main.querySelector("figure:not([hidden])");
    const before = (selector) =>
      [...main.querySelectorAll(selector)].filter(
        (one) => one.checkVisibility() && figure.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING,
      );
    return {
      bottom: figure.querySelector(".picture").getBoundingClientRect().bottom + scrollY,
      fold: innerHeight,
      words: before("h1, h2, h3, p").map(({ textContent }) => textContent.slice(0, 30)),
      stops: before("a[href], button, input, select, textarea, summary, [tabindex]").filter(
        ({ tabIndex, disabled }) => tabIndex >= 0 && !disabled,
      ).length,
    };
  });
  expect(bottom <= fold, `${where}: the first figure ends at ${bottom}, and the window at ${fold}`);
  expect(stops <= 3 && words.length <= 3, `${where}: ${stops} keyboard stops and ${words} before the first figure`);
}

/** Requirements on every chapter. */
async function common(test, id) {
  const { page } = test;
  await openStill(page, id, "phone");
  await still(page);
  await fits(page, `${id}: phone`);
  await begins(page, `${id}: phone`);
  await readable(page, `${id}: phone`);
  await pictures(page, `${id}-phone`);

  await (id === "contents" ? openStill(page, id, "laptop") : opens(test, id, () => openStill(page, id, "laptop")));
  await still(page);
  for (const [name, [width, height]] of Object.entries(sizes).slice(1)) {
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(300);
    await fits(page, `${id}: ${name}`);
    if (name === "desk") await begins(page, `${id}: ${name}`);
    if (name === "desk") await readable(page, `${id}: ${name}`);
    await pictures(page, `${id}-${name}`);
  }
  await page.setViewportSize({ width: sizes.laptop[0], height: sizes.laptop[1] });
}

let failed = 0;
try {
  if (options.screenshots !== undefined) mkdirSync(options.screenshots, { recursive: true });
  const tests = ["chapters", "site"]
    .flatMap((folder) =>
      readdirSync(join(here, folder))
        .sort()
        .map((file) => join(folder, file)),
    )
    .filter((file) => file.endsWith(".mjs"))
    .filter((file) => options.only === undefined || basename(file, ".mjs") === options.only);
  expect(tests.length > 0, `there is no test of ${options.only}`);
  for (const file of tests) {
    const id = basename(file, ".mjs");
    const page = await newPage();
    const started = performance.now();
    try {
      const test = {
        page,
        accessible: (where) => accessible(page, where),
        open: (path, how) => open(page, path, how),
        painted: () => painted(page),
        settled: (figure) => settled(page, figure),
        save: (figure, format) => save(page, figure, format),
        wholeTicks: (...axes) => wholeTicks(page, ...axes),
        expect,
        host,
        site,
      };
      if (file.startsWith("chapters")) await common(test, id);
      if (file.startsWith("chapters") && id !== "contents") await explained(test, id);
      const { check } = await import(pathToFileURL(join(here, file)).href);
      await check(test);
      expect(page.problems.length === 0, page.problems.join("\n  "));
      console.log(`${id}: good, ${((performance.now() - started) / 1000).toFixed(1)} s`);
    } catch (error) {
      failed += 1;
      console.error(`${id}: ${error.stack}`);
      for (const problem of page.problems) console.error(`  ${problem}`);
    }
    await page.close();
  }
} finally {
  await browser.close();
  await host.close();
  rmSync(profile, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);
