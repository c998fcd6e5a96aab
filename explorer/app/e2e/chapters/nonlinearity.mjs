const until = (page, figure, name, wanted) =>
  page.waitForFunction(
    ([id, key, value]) => document.querySelector(`#figure-${id}`)?.dataset[key] === value,
    [figure, name, wanted],
  );
const data = (page, figure, name) => page.$eval(`#figure-${figure}`, (element, key) => element.dataset[key], name);

export async function check({ page, open, expect, settled, save, wholeTicks }) {
  await page.emulateMedia({ reducedMotion: "reduce" });
  // XOR: 1 for any linear map, 0 behind one LN.
  await open("nonlinearity");
  await until(page, "xor", "before", "1.000");
  await until(page, "xor", "behind", "0.000");
  // The norm bends most where it folds.
  await page.getByRole("slider", { name: "fold at c", exact: true }).fill("0.5");
  await until(page, "bend", "top", "0.50");
  await page.keyboard.press("Control+z");
  // Along an axis each corner meets one of the other class.
  await page.getByRole("slider", { name: "direction", exact: true }).fill("0");
  await until(page, "xor", "behind", "1.000");
  const behind = await data(page, "xor", "behind");
  await open(page.url().split("#/")[1]);
  await until(page, "xor", "behind", behind);
  await page.locator('[data-handle="corner 0"]').focus();
  await page.keyboard.press("Shift+ArrowRight");
  await page.waitForFunction((old) => document.querySelector("#figure-xor").dataset.behind !== old, behind);
  await page.keyboard.press("Control+z");
  await until(page, "xor", "behind", behind);

  // Projection Merge: a point more, other labels, fold by fold.
  await until(page, "points", "total", "10");
  expect((await data(page, "points", "correct")) === "10", "a point of the defaults is wrong");
  const layers = Number(await data(page, "points", "layers"));
  expect(layers > 1 && layers <= 8, `${layers} layers for ten points`);
  await page.getByRole("button", { name: "Next" }).click();
  await until(page, "fold", "layer", "1");
  await page.getByRole("button", { name: "Add one" }).click();
  await until(page, "points", "total", "11");
  await page.locator("#figure-points svg").click({ position: { x: 60, y: 40 } });
  await until(page, "points", "total", "12");
  await until(page, "points", "correct", "12");
  await page.locator('[data-handle="point 11"]').focus();
  await page.keyboard.press("Delete");
  await until(page, "points", "total", "11");
  await page.getByRole("button", { name: "Random labels" }).click();
  await page.waitForFunction(() => /seed=2/.test(location.href));
  await page.getByLabel("Folds", { exact: true }).selectOption("stable");
  await until(page, "points", "correct", "11");

  await page.waitForSelector("#figure-folds[data-drawn]");
  await wholeTicks("#figure-folds", "layer", "runs left");

  await page.locator("#figure-group-curvature").scrollIntoViewIfNeeded();
  await page.getByLabel("entries", { exact: true }).selectOption("48");
  await until(page, "group-curvature", "groups", "1 2 3 4 6 8 12 16");

  // Handles stay with their points when the window changes.
  await page.setViewportSize({ width: 700, height: 800 });
  await page
    .waitForFunction(() => {
      const box = (selector) => document.querySelector(selector).getBoundingClientRect();
      const [plane, point] = [box("#figure-xor svg"), box('[data-handle="corner 1"]')];
      const share = (point.left + point.width / 2 - plane.left) / plane.width;
      return share > 0.69 && share < 0.78;
    })
    .catch(() => expect(false, "a point at 1 of -2.4 to 2.4 has not its handle there in another window"));
  await page.setViewportSize({ width: 1280, height: 800 });

  await settled("#figure-fold");

  for (const format of ["CSV", "SVG", "PNG"]) {
    const download = await save("fold", format);
    expect(download.suggestedFilename() === `normscope-fold.${format.toLowerCase()}`, download.suggestedFilename());
  }
}
