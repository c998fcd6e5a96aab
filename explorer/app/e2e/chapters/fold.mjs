const landed = (page, name) => page.$eval(`#figure-${name}-circle`, (figure) => figure.dataset.landed);
const landsAt = (page, name, where) =>
  page.waitForFunction(
    ([id, wanted]) => document.querySelector(`#figure-${id}-circle`)?.dataset.landed === wanted,
    [name, where],
  );
const leaves = (page, name, where) =>
  page.waitForFunction(
    ([id, old]) => document.querySelector(`#figure-${id}-circle`)?.dataset.landed !== old,
    [name, where],
  );

/** The chapter opens with a stretch and a fold that play by themselves, until the reader moves something. */
async function plays({ page, open, expect }) {
  const slider = (name) => page.getByRole("slider", { name });
  await open("fold");
  const said = await page.textContent('[data-slot="shift-readout"]');
  expect(
    Number(await slider("Stretch t").inputValue()) >= 0.3 && said.includes("folded"),
    `without motion, it opens with a stretch of 10^${await slider("Stretch t").inputValue()} and the words ${said}`,
  );
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await open("fold");
  await page.waitForFunction(() => document.querySelectorAll('article [data-player="playing"]').length === 2);
  await page.waitForFunction(() => document.querySelector('article [data-player="playing"]') === null);
  const end = await page.textContent('[data-slot="shift-readout"]');
  expect(end === said, `it plays to where it is said: ${end}`);
  await open("fold");
  await page.waitForFunction(() => document.querySelectorAll('article [data-player="playing"]').length === 2);
  await slider("Shift t").fill("0.5");
  await page.waitForTimeout(500);
  expect(
    (await slider("Shift t").inputValue()) === "0.5",
    `it plays on to ${await slider("Shift t").inputValue()} though the reader has moved it`,
  );
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open("fold?shift=0");
  const once = await page.textContent('[data-slot="shift-readout"]');
  expect(once.includes("as fast as on the circle") && !once.includes("1 times"), `unmoved, it says ${once}`);
}

/** On a phone, too, an axis has two ticks or more. */
async function hasScale({ page, open, expect }) {
  await page.setViewportSize({ width: 390, height: 844 });
  await open("fold");
  const ticks = await page.$$eval('#figure-sigmoid .plane text[text-anchor="end"]', (texts) =>
    texts.map(({ textContent }) => textContent),
  );
  expect(ticks.length > 1, `phone: the sigmoid's axis has the ticks ${ticks}`);
  await page.setViewportSize({ width: 1280, height: 800 });
}

export async function check({ page, open, expect, settled, save }) {
  await plays({ page, open, expect });
  await hasScale({ page, open, expect });
  // (cos 60°, sin 60°) stretched by 2 is (1, √3/2); shifted by 2, (5/2, √3/2).
  await open("fold?stretch=2&shift=2&angle=60&eps=0");
  await landsAt(page, "stretch", "0.7559 0.6547");
  await landsAt(page, "shift", "0.9449 0.3273");
  const readout = await page.textContent('[data-slot="shift-readout"]');
  expect(readout.includes("folded") && readout.includes("0.866"), `it says ${readout}`);

  const slider = page.getByRole("slider", { name: "Stretch t" });
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  await leaves(page, "stretch", "0.7559 0.6547");
  expect((await landed(page, "shift")) === "0.9449 0.3273", "the stretch moves the shifted circle");
  expect(/stretch=2\.\d/.test(page.url()), `the link says ${page.url()}`);
  const moved = await landed(page, "stretch");
  await page.keyboard.press("Control+z");
  await landsAt(page, "stretch", "0.7559 0.6547");
  await page.keyboard.press("Control+Shift+z");
  await landsAt(page, "stretch", moved);
  await open(page.url().split("#/")[1]);
  await landsAt(page, "stretch", moved);

  // The followed point, by keys and by mouse, in both pictures.
  const handle = page.locator("#figure-shift-circle [data-handle=followed]");
  await handle.focus();
  await page.keyboard.press("ArrowUp");
  await leaves(page, "shift", "0.9449 0.3273");
  await leaves(page, "stretch", moved);
  const before = await landed(page, "shift");
  await handle.scrollIntoViewIfNeeded();
  const box = await handle.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x - 40, box.y + 10, { steps: 4 });
  await page.mouse.up();
  await leaves(page, "shift", before);

  const path = () => page.$eval("#figure-surface", (figure) => figure.dataset.path);
  expect((await path()).startsWith("shift 0.866"), `the path's lowest place is ${await path()}`);
  await page.getByLabel("Path", { exact: true }).selectOption("line");
  await page.waitForFunction(() => document.querySelector("#figure-surface").dataset.path.startsWith("line"));

  await settled("#figure-shift-circle");

  for (const [figure, format] of [
    ["shift-circle", "SVG"],
    ["stretch-curve", "CSV"],
    ["surface", "PNG"],
  ]) {
    const download = await save(figure, format);
    expect(
      download.suggestedFilename() === `normscope-${figure}.${format.toLowerCase()}`,
      download.suggestedFilename(),
    );
  }
  await page.getByLabel("Presets").selectOption({ label: "Just before the fold" });
  await page.waitForFunction(() =>
    document.querySelector('[data-slot="shift-readout"]').textContent.includes("10 times"),
  );
}
