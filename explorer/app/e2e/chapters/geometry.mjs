import { readFileSync } from "node:fs";

const at = (page) => page.$eval("#figure-geometry", (figure) => figure.dataset.at);
const atIs = (page, place) =>
  page.waitForFunction((wanted) => document.querySelector("#figure-geometry")?.dataset.at === wanted, place);
/** The step "shift" moves the points of the defaults. */
async function shift({ page, open, expect, save }) {
  await open("geometry");
  await page.waitForFunction(() => document.querySelector("#figure-geometry")?.dataset.semiAxes);
  const download = await save("geometry", "CSV");
  const rows = readFileSync(await download.path(), "utf8")
    .split("\n")
    .map((row) => row.split(","));
  const first = (step) =>
    rows
      .find(([name]) => name === step)
      .slice(1)
      .map(Number);
  const moved = Math.hypot(...first("shift").map((value, axis) => value - first("stretch")[axis]));
  expect(moved > 0.5, `the step "shift" moves a point by ${moved}`);
}

/** Arrow keys in the list of presets go on from the one that is chosen. */
async function presets({ page, expect }) {
  const claims = [];
  const first = await page.textContent(".claim");
  await page.getByLabel("Presets").focus();
  for (let i = 0; i < 3; ++i) {
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(
      (before) => document.querySelector(".claim").textContent !== before,
      claims.at(-1) ?? first,
    );
    claims.push(await page.textContent(".claim"));
  }
  expect(new Set(claims).size === 3, `three presses choose ${claims.join(" ")}`);
  await page.getByLabel("gain 3", { exact: true }).fill("2");
  expect((await page.getByLabel("Presets").inputValue()) === "", "the list names a preset that is no longer on show");
}

/** The picture names what it shows, and all outputs are in it, whatever the gain. */
async function picture({ page, open, expect }) {
  await open("geometry?gain=0.5,1,17&at=4");
  await atIs(page, "4.000");
  const data = (name, figure = "geometry") =>
    page.$eval(`#figure-${figure}`, (element, key) => element.dataset[key], name);
  const longest = Number((await data("semiAxes")).split(" ")[0]);
  expect(
    longest > 20 && Number(await data("framed")) > longest,
    `a ball of ${await data("framed")} is in view of semi-axes of ${longest}`,
  );
  const words = (await data("words")).split("; ");
  for (const word of ["x₁", "x₂", "x₃", "all-ones", "null direction", "24.1"])
    expect(words.includes(word), `the picture has the words ${words}`);
  await page.waitForFunction(() => document.querySelector("#figure-eps-scaled").dataset.radii);
  const radii = (await data("radii", "eps-scaled")).split(" ").map(Number);
  expect(
    radii.length === 3 && 1 > radii[2] && radii[2] > radii[1] && radii[1] > radii[0],
    `a larger eps gives the radii ${radii}`,
  );
  // A point pressed in one of the pictures is ringed in all.
  // Again while the picture still takes its size.
  for (let tries = 0; tries < 20 && (await data("point", "eps-scaled")) === "158"; ++tries) {
    const box = await page.locator("#figure-eps-stretched svg").boundingBox();
    await page.locator("#figure-eps-stretched svg").click({ position: { x: box.width / 2, y: 0.55 * box.height } });
    await page.waitForTimeout(200);
  }
  expect((await data("point", "eps-scaled")) !== "158", "a press rings no point");
  await page.getByRole("slider", { name: "Step" }).fill("2");
  await atIs(page, "2.000");
  expect(Number(await data("framed")) < 3, `a ball of ${await data("framed")} is in view of a circle of 1.7`);
}

/** Reads a section of the story. */
const read = async (page, step) => {
  await page.$eval(`section[data-step="${step}"]`, (section) =>
    section.scrollIntoView({ block: "center", behavior: "instant" }),
  );
  await page.waitForFunction(
    (wanted) => document.querySelector(`section[data-step="${wanted}"]`).classList.contains("read"),
    step,
  );
};

/** The story moves the figure, the defaults' on show, but neither a link's state nor a preset's. */
async function story({ page, open, expect }) {
  const follow = page.getByRole("button", { name: "Follow the story" });
  await read(page, "2");
  await atIs(page, "2.000");
  expect(!(await follow.isVisible()), "the story is offered while it is told");
  expect(!page.url().includes("at="), `the story writes the link ${page.url()}`);

  await open("geometry?bias=1,-0.5,0.8&at=4");
  await atIs(page, "4.000");
  const { y } = await page.locator("#figure-geometry").boundingBox();
  expect(y < 400, `the figure begins ${y} pixels down the page`);
  await read(page, "1");
  await page.waitForTimeout(300);
  expect((await at(page)) === "4.000", `scrolling moves the linked state to ${await at(page)}`);
  await follow.click();
  await atIs(page, "1.000");
  await page.getByLabel("Presets").selectOption({ label: "RMSNorm" });
  await atIs(page, "4.000");
  await read(page, "2");
  await page.waitForTimeout(300);
  expect((await at(page)) === "4.000", `scrolling moves the preset to ${await at(page)}`);
}

/** Scrolling goes on over the picture, which zooms with Ctrl only. */
async function scrolling({ page, open, expect, settled }) {
  await open("geometry?at=4");
  await atIs(page, "4.000");
  const frames = await settled("#figure-geometry");
  const box = await page.locator("#figure-geometry canvas").boundingBox();
  // Where the canvas is before the page scrolls; then it stays at the top of the window.
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const hint = page.locator("#figure-geometry .space-hint");
  // It disappears again, perhaps before a slow test would look.
  await hint.evaluate((element) =>
    new MutationObserver(() => {
      if (element.classList.contains("shown")) element.dataset.seen = element.textContent;
    }).observe(element, { attributeFilter: ["class"] }),
  );
  await page.mouse.move(x, y);
  await page.mouse.wheel(0, 200);
  await page.waitForFunction(() => scrollY > 0).catch(() => expect(false, "the picture keeps the wheel to itself"));
  expect(/zoom/.test(await hint.getAttribute("data-seen")), "nothing says how to zoom");
  expect((await settled("#figure-geometry")) === frames, "the wheel zooms without Ctrl");
  const scrolled = await page.evaluate(() => scrollY);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 200);
  await page.keyboard.up("Control");
  expect((await settled("#figure-geometry")) > frames, "the wheel does not zoom with Ctrl");
  expect((await page.evaluate(() => scrollY)) === scrolled, "the page scrolls while the picture zooms");

  const finger = await page.context().newCDPSession(page);
  await finger.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  const below = y + box.height / 4;
  await finger.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y: below }] });
  for (let moved = 20; moved <= 200; moved += 20)
    await finger.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x, y: below - moved }] });
  await finger.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await finger.send("Emulation.setTouchEmulationEnabled", { enabled: false });
  await page
    .waitForFunction((before) => scrollY > before + 100, scrolled)
    .catch(() => expect(false, "one finger does not scroll over the picture"));
}

const semiAxes = (page) => page.$eval("#figure-geometry", (figure) => figure.dataset.semiAxes);

export async function check({ page, open, expect, settled, save }) {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open("geometry?gain=1,2,3&eps=0");
  // sqrt(3) times the roots that the tests of NormImage have for this gain.
  await page.waitForFunction(() => document.querySelector("#figure-geometry")?.dataset.semiAxes);
  expect((await semiAxes(page)) === "4.58258 2.64575", `semi-axes are ${await semiAxes(page)}`);

  const gain = page.getByLabel("gain 3", { exact: true });
  await gain.focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.querySelector("#figure-geometry").dataset.semiAxes !== "4.58258 2.64575");
  const moved = await semiAxes(page);
  expect(page.url().includes("gain=1%2C2%2C2.95"), `the link says ${page.url()}`);

  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector("#figure-geometry").dataset.semiAxes === "4.58258 2.64575");
  await page.keyboard.press("Control+Shift+z");
  await page.waitForFunction((wanted) => document.querySelector("#figure-geometry").dataset.semiAxes === wanted, moved);

  const link = page.url();
  await open(link.split("#/")[1]);
  await page.waitForFunction((wanted) => document.querySelector("#figure-geometry").dataset.semiAxes === wanted, moved);

  // One frame per change: dragging draws no additional frames.
  const step = page.getByRole("slider", { name: "Step" });
  await step.scrollIntoViewIfNeeded();
  const before = await settled("#figure-geometry");
  const solved = () => page.$eval("#figure-geometry", (figure) => figure.dataset.solved);
  const solvedBefore = await solved();
  await step.fill("1.5");
  await page.waitForFunction(() => document.querySelector("#figure-geometry").dataset.at === "1.500");
  const after = await settled("#figure-geometry");
  expect(after - before <= 3, `${after - before} frames for one change`);

  // Here a processor draws: pixels are fine when nothing moves, and coarse while something does.
  const pixels = () => page.$eval("#figure-geometry canvas", (canvas) => canvas.width / canvas.clientWidth);
  expect((await pixels()) === 2, `${await pixels()} pixels for one of the page at rest`);
  const moving = await step.evaluate(async (slider) => {
    const canvas = document.querySelector("#figure-geometry canvas");
    const seen = [];
    for (let i = 0; i < 10; ++i) {
      slider.value = String(1 + i / 10);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise(requestAnimationFrame);
      seen.push(canvas.width / canvas.clientWidth);
    }
    slider.value = "1.5";
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    slider.dispatchEvent(new Event("change", { bubbles: true }));
    return seen;
  });
  expect(moving.includes(1), `${moving} pixels for one of the page while the slider moves`);
  await settled("#figure-geometry");
  expect((await pixels()) === 2, "the picture stays coarse");

  expect((await solved()) === solvedBefore, "moving along the way asks the core again");

  const download = await save("geometry", "CSV");
  expect(download.suggestedFilename() === "normscope-geometry.csv", download.suggestedFilename());

  await picture({ page, open, expect });
  await shift({ page, open, expect, save });
  await story({ page, open, expect });
  await presets({ page, expect });
  await scrolling({ page, open, expect, settled });

  await page.getByLabel("Presets").selectOption({ label: "A dead gain" });
  await page.waitForFunction(() => document.querySelector(".claim").textContent.includes("erases"));
}
