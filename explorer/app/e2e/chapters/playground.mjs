import { readFileSync } from "node:fs";

const plane = (page) => page.$eval("#figure-plane", (figure) => ({ ...figure.dataset }));
const planeIs = (page, key, value) =>
  page.waitForFunction(([k, v]) => document.querySelector("#figure-plane")?.dataset[k] === v, [key, String(value)]);
const planeIsNot = (page, key, value) =>
  page.waitForFunction(([k, v]) => document.querySelector("#figure-plane")?.dataset[k] !== v, [key, String(value)]);

/** A layer moves the samples in two steps, and after the last one the picture turns until the cut is seen edge-on. */
async function layers({ page, open, expect, save }) {
  await open("playground?trained=1200&seed=3");
  await planeIs(page, "step", 1200);
  const morph = () => page.$eval("#figure-morph", (figure) => ({ ...figure.dataset }));
  const moment = async (layer) => {
    await page.getByRole("slider", { name: "Layer" }).fill(String(layer));
    await page.waitForFunction(
      (wanted) => document.querySelector("#figure-morph").dataset.layer === wanted,
      layer.toFixed(2),
    );
    return { ...(await morph()), says: await page.textContent("[data-slot=layer-says]") };
  };
  const download = await save("morph", "CSV");
  const rows = readFileSync(await download.path(), "utf8")
    .split("\n")
    .map((row) => row.split(","));
  const first = (layer, step) =>
    rows
      .find(([number, name]) => number === String(layer) && name === step)
      .slice(3)
      .map(Number);
  for (const layer of [1, 2]) {
    const [linear, normed] = [first(layer, "linear"), first(layer, "activation")];
    const length = Math.hypot(...linear);
    expect(Math.abs(length - 1) > 0.05, `the linear map of layer ${layer} puts a sample on the sphere`);
    const off = Math.hypot(...linear.map((value, i) => value / length - normed[i]));
    expect(off < 1e-2, `the norm of layer ${layer} moves a sample off its ray, by ${off}`);
    for (const [at, wanted, words] of [
      [layer - 0.5, linear, `Layer ${layer} of 2, the linear map`],
      [layer, normed, `Layer ${layer} of 2, the norm`],
    ]) {
      const { place, scale, says } = await moment(at);
      const miss = Math.hypot(...place.split(" ").map((value, i) => value / scale - wanted[i]));
      expect(miss < 1e-2 && says.startsWith(words), `at ${at} a sample is ${miss} away, under the words ${says}`);
    }
  }
  const before = Number((await moment(2)).edge);
  const { edge, says } = await moment(3);
  expect(
    before > 0.05 && Number(edge) < 0.01 && says.includes("edge-on"),
    `the cut is at ${before} and then ${edge} to the eye: ${says}`,
  );
  const between = Number((await moment(2.25)).edge);
  expect(between < before && between > Number(edge), `on its way the cut is at ${between}, from ${before} to ${edge}`);
}

export async function check({ page, open, expect, settled, save }) {
  // A link is trained to where it says, the same way each time.
  await open("playground?trained=1200");
  await planeIs(page, "step", 1200);
  const first = await plane(page);
  expect(Number(first.accuracy) > 0.9, `accuracy after 1200 steps is ${first.accuracy}`);
  // The net's diagram has every neuron, and on a laptop everything is on one screen.
  const neurons = await page.$eval("#figure-net", (figure) => figure.dataset.neurons);
  expect(neurons === "2 3 3 2", `the diagram has ${neurons} neurons`);
  const below = await page.evaluate(() =>
    ["#figure-net", "#figure-plane", "#figure-curves svg", "[data-slot=controls]"]
      .map((part) => [part, document.querySelector(part).getBoundingClientRect().bottom])
      .filter(([, bottom]) => bottom > innerHeight + 10),
  );
  expect(below.length === 0, `below a laptop's screen: ${below}`);
  const transitions = await page.$eval("#figure-curves", (figure) => figure.dataset.transitions);
  expect(transitions === "1", `${transitions} transitions are marked`);

  expect(Number(first.held) > 0.8 && first.held !== first.accuracy, `accuracy on new samples is ${first.held}`);

  // Recorded time: back before the jump, and a link that knows it.
  const time = page.getByRole("slider", { name: "Step" });
  await time.fill("600");
  await planeIs(page, "step", 600);
  const before = await plane(page);
  expect(Number(before.accuracy) < 0.85, `accuracy before the jump is ${before.accuracy}`);
  expect(page.url().includes("at=600"), `the link says ${page.url()}`);
  await open(page.url().split("#/")[1]);
  await planeIs(page, "step", 600);
  expect((await plane(page)).ones === before.ones, "a link gives another boundary");
  await page.getByRole("slider", { name: "Step" }).fill("1200");
  await planeIs(page, "step", 1200);
  expect((await plane(page)).ones === first.ones, "the last step is not what it was");

  // Any control trains anew; undo takes it back.
  await page.getByLabel("Between layers").selectOption("none");
  await page.waitForFunction(() => Number(document.querySelector("#figure-plane").dataset.accuracy) < 0.7);
  await page.keyboard.press("Control+z");
  await planeIs(page, "ones", first.ones);

  // Step by step, and by itself.
  await page.getByRole("button", { name: "From the start" }).click();
  await planeIs(page, "step", 0);
  await page.getByRole("button", { name: "Step", exact: true }).click();
  await planeIs(page, "step", 1);
  await page.getByRole("button", { name: "Play" }).first().click();
  await page.waitForFunction(() => Number(document.querySelector("#figure-plane").dataset.step) > 100);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.waitForFunction(() => document.querySelector('[data-player="playing"]') === null);
  const stopped = (await plane(page)).step;
  await page.waitForTimeout(400);
  expect((await plane(page)).step === stopped, "it trains on after a pause");
  await page
    .waitForFunction((step) => location.hash.includes(`trained=${step}`), stopped)
    .catch(() => expect(false, `the link says ${page.url()} at step ${stopped}`));

  // The morph moves without the core, a frame a change.
  const morph = () => page.$eval("#figure-morph", (figure) => ({ ...figure.dataset }));
  await page.locator("#figure-morph").scrollIntoViewIfNeeded();
  await settled("#figure-morph");
  const [{ place, frames }, { step }] = [await morph(), await plane(page)];
  await page.getByRole("slider", { name: "Layer" }).fill("0.5");
  await page.waitForFunction(() => document.querySelector("#figure-morph").dataset.layer === "0.50");
  await page.waitForTimeout(300);
  const moved = await morph();
  expect(moved.place !== place, "the samples stay where they were");
  expect(Number(moved.frames) - Number(frames) <= 3, `${moved.frames - frames} frames for one change`);
  expect((await plane(page)).step === step, "the slider of layers trains");

  await layers({ page, open, expect, save });

  // A task by its picture, and noise, which makes it harder.
  await page.getByRole("button", { name: "XOR" }).click();
  await page.waitForFunction(
    () => location.hash.includes("data=xor") && Number(document.querySelector("#figure-plane").dataset.held) > 0.98,
  );
  expect((await morph()).sphere !== "none", "the norm's sphere is not shown");
  await page.getByRole("slider", { name: "Noise" }).fill("0.5");
  await page.waitForFunction(() => {
    const held = Number(document.querySelector("#figure-plane").dataset.held);
    return held > 0 && held < 0.97;
  });
  expect(page.url().includes("noise=0.5"), `the link says ${page.url()}`);

  // Points of one's own: by mouse and by keys.
  await open("playground?data=own&points=-0.5,0.5,0,0.5,0.5,1,-0.5,-0.5,1,0.5,-0.5,0&trained=400");
  await planeIs(page, "step", 400);
  expect((await plane(page)).accuracy === "1.0000", `XOR of four points: ${(await plane(page)).accuracy}`);
  const canvas = page.locator("canvas.boundary");
  const count = () => new URLSearchParams(page.url().split("?").at(-1)).get("points").split(",").length / 3;
  const box = await canvas.boundingBox();
  await canvas.click({ position: { x: box.width / 2, y: box.height / 10 } });
  expect(count() === 5, `${count()} points after a click`);
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  expect(count() === 6, `${count()} points after a key`);
  await page.keyboard.press("Delete");
  expect(count() === 5, `${count()} points after removing one`);
  await canvas.click({ position: { x: box.width / 2, y: box.height / 10 } });
  expect(count() === 4, `${count()} points after a click on one`);
  await planeIsNot(page, "step", "");
  await page.getByLabel("or a CSV file").setInputFiles({
    name: "points.csv",
    mimeType: "text/csv",
    buffer: Buffer.from("x,y,class\n0,0,red\n1,0,blue\n0,1,blue\n1,1,red\n"),
  });
  await page.waitForFunction(() => location.hash.includes("points=0%2C0%2C0%2C1%2C0%2C1"));

  for (const [figure, format] of [
    ["plane", "PNG"],
    ["plane", "CSV"],
    ["curves", "SVG"],
    ["morph", "CSV"],
  ]) {
    const download = await save(figure, format);
    expect(
      download.suggestedFilename() === `normscope-${figure}.${format.toLowerCase()}`,
      download.suggestedFilename(),
    );
  }

  // A link to a long training shows what has been learned before it is over, and the words are those of its task.
  // The page's clock runs fast, since a fast machine is done in less time than the page waits before it shows any.
  await page.evaluate(() => {
    const now = performance.now.bind(performance);
    performance.now = () => 100 * now();
    location.hash = "#/playground?data=octants&rows=1000&depth=4&rate=0.03&schedule=linear&steps=10000&trained=10000";
  });
  await page.waitForFunction(() => {
    const figure = document.querySelector("#figure-plane");
    const step = Number(figure?.dataset.step ?? 0);
    return figure?.textContent.includes("unrolled") && step > 0 && step < 10000;
  });
  const asks = await page.textContent('[data-slot="asks"]');
  expect(asks.includes("sphere"), `of the octants it says that the net learns to tell ${asks}`);
}
