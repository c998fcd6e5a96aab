// Leaving a chapter releases what it drew with: after 30 more changes no more charts, WebGL contexts, nodes and memory are
// in use. The first chapter asks for no more than its budget.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** Bytes, compressed, of what a first chapter may load besides the core. */
const budget = 300e3;

const chapters = ["geometry", "fold", "selectability", "nonlinearity", "counting", "playground?trained=0"];
/** What each of them draws last. Pictures in space are drawn when they come into view. */
const drawn = {
  geometry: ["#figure-geometry", "semiAxes"],
  fold: ["#figure-surface", "frames"],
  selectability: ["#figure-attention", "drawn"],
  nonlinearity: ["#figure-folds", "drawn"],
  counting: ["#figure-trace-lstm", "n"],
  playground: ["#figure-morph", "frames"],
};

/** Counts the contexts and listeners that are alive. A chart as wide as its container listens to the window's size. */
function watch() {
  // Weakly, since a context keeps its canvas and all around it.
  const contexts = [];
  const { getContext } = HTMLCanvasElement.prototype;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    const context = getContext.call(this, kind, ...rest);
    if (/webgl/.test(kind) && context !== null) contexts.push(new WeakRef(context));
    return context;
  };
  let listeners = 0;
  const [add, remove] = [window.addEventListener, window.removeEventListener];
  window.addEventListener = function (type, ...rest) {
    if (type === "resize") {
      listeners += 1;
      rest[1]?.signal?.addEventListener("abort", () => (listeners -= 1), { once: true });
    }
    return add.call(this, type, ...rest);
  };
  window.removeEventListener = function (type, ...rest) {
    if (type === "resize") listeners -= 1;
    return remove.call(this, type, ...rest);
  };
  window.alive = () => ({
    contexts: contexts.filter((context) => context.deref()?.isContextLost() === false).length,
    charts: listeners,
  });
}

export async function check({ page, open, expect, host, site }) {
  const asked = host.requests.length;
  await open("geometry");
  const parts = [...new Set(host.requests.slice(asked))]
    .map((path) => path || "index.html")
    .filter((path) => !path.endsWith(".wasm"));
  const bytes = parts.reduce((sum, path) => sum + gzipSync(readFileSync(join(site, path.split("?")[0]))).length, 0);
  expect(parts.length > 5 && bytes < budget, `the first chapter loads ${bytes} bytes in ${parts}`);
  expect(
    !host.requests.slice(asked).some((path) => path.includes("normscope.wasm")),
    "the first chapter loads all of the core",
  );
  await page.addInitScript(watch);
  await open("", { fresh: true });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const visit = async (link) => {
    await page.evaluate((hash) => (location.hash = hash), `#/${link}`);
    const id = link.split("?")[0];
    // Not waitForSelector, whose answer would keep the chapter's nodes alive.
    await page.waitForFunction(
      ([wanted, selector, key]) => {
        if (document.documentElement.dataset.ready !== wanted) return false;
        const figure = document.querySelector(selector);
        if (figure?.dataset[key] === undefined) figure?.scrollIntoView({ block: "center", behavior: "instant" });
        return figure?.dataset[key] !== undefined;
      },
      [id, ...drawn[id]],
    );
  };
  const around = async (times) => {
    for (let i = 0; i < times; ++i) for (const link of chapters) await visit(link);
    // The core answers in order: when it draws this one, no question of an earlier chapter is open.
    await visit("geometry");
    await page.evaluate(() => (location.hash = "#/"));
    await page.waitForFunction(() => document.documentElement.dataset.ready === "contents");
    await page.waitForTimeout(500);
    await session.send("HeapProfiler.collectGarbage");
    const { metrics } = await session.send("Performance.getMetrics");
    const [nodes, heap] = ["Nodes", "JSHeapUsedSize"].map(
      (wanted) => metrics.find(({ name }) => name === wanted).value,
    );
    return { ...(await page.evaluate(() => window.alive())), nodes, heap };
  };
  const before = await around(1);
  const after = await around(5);
  expect(after.contexts === 0, `${after.contexts} WebGL contexts are alive outside of the chapters`);
  expect(
    after.charts <= before.charts,
    `${before.charts} charts are alive before and ${after.charts} after 30 changes`,
  );
  // What the browser compiles meanwhile is 2 MB; charts that stay alive are about 24 MB.
  expect(after.heap < before.heap + 3e6, `the heap is ${before.heap} before and ${after.heap} after 30 changes`);
  expect(
    after.nodes < before.nodes + 2000,
    `${before.nodes} nodes are alive before and ${after.nodes} after 30 changes`,
  );
}
