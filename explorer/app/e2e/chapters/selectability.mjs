const picture = "[data-slot=picture]";
const data = (page, name) => page.$eval(picture, (slot, key) => slot.dataset[key], name);
const until = (page, name, wanted) =>
  page
    .waitForFunction(
      ([key, value]) => document.querySelector("[data-slot=picture]")?.dataset[key] === value,
      [name, wanted],
    )
    .catch(async () => {
      throw new Error(`${name} is ${await data(page, name)}, expected ${wanted}: ${page.url()}`);
    });

/** Drags a handle with the mouse. A pressed handle has the focus; otherwise the page has moved under the mouse. */
async function drag(page, handle, [x, y], expect) {
  for (let attempt = 0; attempt < 20; ++attempt) {
    await page.locator(handle).hover();
    await page.mouse.down();
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), handle)) {
      const box = await page.locator(handle).boundingBox();
      await page.mouse.move(box.x + box.width / 2 + x, box.y + box.height / 2 + y, { steps: 4 });
      await page.mouse.up();
      return;
    }
    await page.mouse.up();
    await page.waitForTimeout(250);
  }
  expect(false, `${handle} cannot be taken with the mouse`);
}

export async function check({ page, open, expect, settled, save }) {
  await page.emulateMedia({ reducedMotion: "reduce" });
  // A square with a key in the middle.
  const square = "selectability?keys=-1,-1,1,-1,1,1,-1,1,0.2,0.1&chosen=4&query=1,0.5";
  await open(square);
  await until(page, "lost", "1");
  await until(page, "answer", "unselectable");
  expect((await data(page, "verified")) === "true", "a proof was not borne out");
  expect((await data(page, "best")) === "2", `the query goes to key ${await data(page, "best")}`);

  // By keyboard: the chosen key moves out of the square to the right and can be selected.
  await page.locator('[data-handle="key 4"]').focus();
  // Several key presses before the first redraw: none may be lost.
  await page.evaluate(() => {
    for (let i = 0; i < 8; ++i)
      document.activeElement.dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true }),
      );
    document.activeElement.dispatchEvent(new KeyboardEvent("keyup", { key: "ArrowRight", bubbles: true }));
  });
  await until(page, "answer", "selectable");
  await until(page, "lost", "0");
  expect(page.url().includes("keys=-1%2C-1%2C1%2C-1"), `the link says ${page.url()}`);
  const link = page.url();
  await page.keyboard.press("Control+z");
  await until(page, "lost", "1");
  await open(link.split("#/")[1]);
  await until(page, "lost", "0");

  // The story does not touch the keys of a link until it is asked for.
  await open(square);
  await until(page, "lost", "1");
  await page.$eval('section[data-step="scale"]', (section) =>
    section.scrollIntoView({ block: "center", behavior: "instant" }),
  );
  await page.waitForFunction(() => document.querySelector('section[data-step="scale"]').classList.contains("read"));
  await page.waitForTimeout(300);
  expect((await data(page, "lost")) === "1", "scrolling scales the keys of a link");
  await page.getByRole("button", { name: "Follow the story" }).click();
  await until(page, "lost", "0");

  // By mouse: the query's tip to the left.
  await open(square);
  await until(page, "lost", "1");
  await drag(page, '[data-handle="query"]', [-150, 40], expect);
  await page
    .waitForFunction(() => ["0", "3"].includes(document.querySelector("[data-slot=picture]").dataset.best))
    .catch(async () => expect(false, `the dragged query goes to key ${await data(page, "best")}: ${page.url()}`));

  await page.getByRole("switch", { name: "scale", exact: true }).check();
  await until(page, "lost", "0");

  // In space, by the sliders.
  await open("selectability?dimension=3&solid=0,0,0,1,0,0,0,1,0,0,0,1,0.2,0.2,0.2&chosen=4");
  await until(page, "lost", "1");
  const words = await page.$eval("#figure-keys-in-space", (figure) => figure.dataset.words);
  expect(words === "0; 1; 2; 3; 4; query", `the picture in space has the words ${words}`);
  await page.getByLabel("x of the key").fill("1.5");
  await until(page, "lost", "0");
  await page.getByRole("button", { name: "Ask with its query" }).click();
  await until(page, "best", "4");

  // Nothing is drawn where nothing changes.
  await open(square);
  await until(page, "lost", "1");
  await settled("#figure-keys");

  for (const format of ["CSV", "SVG", "PNG"]) {
    const download = await save("keys", format);
    expect(download.suggestedFilename() === `normscope-keys.${format.toLowerCase()}`, download.suggestedFilename());
  }

  // Keys lost by layer: as in the page of results.
  await open("selectability?layerStep=20000");
  await page.locator("#figure-lost-by-layer").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector("#figure-lost-by-layer")?.dataset.lost !== undefined);
  const lost = await page.$eval("#figure-lost-by-layer", (figure) => [figure.dataset.lost, figure.dataset.lostScaled]);
  expect(String(lost) === "0.272 0.252 0.322 0.422,0.000 0.000 0.000 0.000", `by layer are lost ${lost}`);

  // Two networks learn the majority task to the step of the link; stopped, they wait.
  await open("selectability?taskWidth=3&taskAt=60&taskEqual=1");
  await page.locator("#figure-majority").scrollIntoViewIfNeeded();
  const task = (name) => page.$eval("#figure-majority", (figure, key) => figure.dataset[key] ?? "", name);
  await page.waitForFunction(() => document.querySelector("#figure-majority").dataset.step === "60");
  const learned = (await task("accuracies")).split(" ").map(Number);
  expect(
    learned.every((part) => part > 0.35),
    `after 60 steps ${learned} of the tokens are right`,
  );
  const angles = await task("angles");
  await page.getByRole("slider", { name: "step", exact: true }).fill("20");
  await page.waitForFunction(() => document.querySelector("#figure-majority").dataset.step === "20");
  expect((await task("angles")) !== angles, "going back to step 20 changes nothing");
  expect(page.url().includes("taskAt=20"), `the link says ${page.url()}`);

  await open("selectability?runs=5");
  await page.locator("#figure-random-keys").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector("#figure-random-keys")?.dataset.done === "true", undefined, {
    timeout: 120_000,
  });
  expect(
    /sets of 60 random keys/.test(await page.locator("[data-slot=table-words]").textContent()),
    "no words on the table",
  );
}
