const data = (page, id, key) => page.$eval(id, (element, name) => element.dataset[name], key);

export async function check({ page, open, expect, settled }) {
  await open("counting?n=300");
  await page.waitForFunction(() =>
    ["lstm", "gru"].every((cell) => document.querySelector(`#figure-trace-${cell}`)?.dataset.n === "300"),
  );
  expect(Number(await data(page, "#figure-trace-lstm", "counters")) > 0, "the lstm has no counter");
  expect((await data(page, "#figure-trace-gru", "counters")) === "0", "the gru has a counter");
  for (const [id, lines] of [
    ["trace-lstm", 10],
    ["trace-gru", 10],
    ["expected-lstm", 3],
    ["expected-gru", 3],
  ])
    await page.waitForFunction(
      ([figure, wanted]) => document.querySelectorAll(`#figure-${figure} svg path`).length === wanted,
      [id, lines],
    );
  const words = await page.$$eval("#figure-trace-lstm text", (all) => all.map(({ textContent }) => textContent));
  expect(
    words.some((word) => /^c\d counts$/.test(word)),
    `the counter has no name among ${words}`,
  );

  await open("counting?n=29");
  await page.waitForFunction(() => document.querySelector("#figure-trace-gru")?.dataset.n === "29");
  expect((await data(page, "#figure-trace-gru", "counters")) === "0", "a unit of the gru counts 29 letters");
  await open("counting?n=300");

  await page.waitForSelector("#figure-range-gru");
  const [lstm, gru] = [
    Number(await data(page, "#figure-range-lstm", "exactTo")),
    Number(await data(page, "#figure-range-gru", "exactTo")),
  ];
  expect(lstm > gru, `lstm is exact to ${lstm}, gru to ${gru}`);
  const range = await page.textContent("#figure-range-gru figcaption");
  expect(!/from n = (\d+) to \1\D/.test(range), `a range of one number: ${range}`);
  const marks = await page.$$eval("#figure-range-gru .strip-axis text", (all) =>
    all.map(({ textContent }) => textContent),
  );
  expect(marks.length > 2 && marks.at(-1) === "250", `below the bars stand ${marks}`);

  await page.getByRole("textbox", { name: "Word" }).fill("aaaabbb");
  await page.waitForFunction(() => document.querySelector('[data-slot="judges"]').dataset.verdicts?.startsWith("0"));
  await page.getByRole("textbox", { name: "Word" }).fill("abx");
  await page.waitForFunction(() => document.querySelector('[data-slot="judges"]').textContent.includes("x"));

  // Where one types, Ctrl+Z takes back what was typed and not the change before it.
  await page.getByRole("slider", { name: "n", exact: true }).fill("200");
  await page.waitForFunction(() => document.querySelector("#figure-trace-lstm").dataset.n === "200");
  await page.getByRole("textbox", { name: "Word" }).focus();
  await page.keyboard.type("b");
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector("#asked-word").value === "abx");
  await page.waitForTimeout(300);
  expect(
    new URLSearchParams(page.url().split("?").at(-1)).get("n") === "200",
    `Ctrl+Z in the word makes the link ${page.url()}`,
  );
  await page.getByRole("slider", { name: "n", exact: true }).fill("300");
  await page.waitForFunction(() => document.querySelector("#figure-trace-lstm").dataset.n === "300");

  // On a phone no word is broken.
  await page.setViewportSize({ width: 390, height: 844 });
  const broken = await page.evaluate(() =>
    [...document.querySelectorAll(".field b, .hierarchy th, .control label")]
      .filter((place) => {
        const range = document.createRange();
        const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
        for (let text = walker.nextNode(); text !== null; text = walker.nextNode())
          for (const { index, 0: word } of text.data.matchAll(/\S+/g)) {
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) return true;
          }
        return false;
      })
      .map((place) => place.textContent),
  );
  expect(broken.length === 0, `on a phone ${broken} are broken within a word`);
  await page.setViewportSize({ width: 1280, height: 800 });

  await page.getByRole("button", { name: /Finite state/ }).click();
  await page.waitForFunction(() => document.querySelector('[data-slot="class"]').dataset.field === "finite-state");
  expect(page.url().includes("field=finite-state"), `the link says ${page.url()}`);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector('[data-slot="class"]').dataset.field === "counter-aware");

  // Languages are written as in the rest of the chapter.
  const cells = await page.$$eval('[data-slot="class"] td', (all) => all.map(({ textContent }) => textContent));
  expect(cells.includes("aⁿbⁿ"), `the table of what is recognized has ${cells}`);
  await page.getByRole("button", { name: /rational series/ }).click();
  await page.waitForFunction(() => document.querySelector('[data-slot="class"]').textContent.includes("2ⁿ"));

  // A step of the slider draws each picture once, with few points until the slider is released.
  const has = (least, most) =>
    page.waitForFunction(
      ([from, to]) => {
        const points = document.querySelector("#figure-trace-lstm svg path").getAttribute("d").split("L").length;
        return from <= points && points < to;
      },
      [least, most],
    );
  await open("counting?n=300");
  const frames = await settled("#figure-trace-lstm");
  await has(200, 500);
  const slider = page.getByRole("slider", { name: "n", exact: true });
  await slider.evaluate((input) => {
    input.value = "299";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await has(1, 100);
  const times = (await settled("#figure-trace-lstm")) - frames;
  expect(times === 1, `a step of the slider draws ${times} times`);
  await slider.evaluate((input) => input.dispatchEvent(new Event("change", { bubbles: true })));
  await has(200, 500);
  await open(page.url().split("#/")[1]);
  await page.waitForFunction(() => document.querySelector("#figure-trace-lstm")?.dataset.n === "299");

  // Letters are counted: a short word's axis has no ticks between two of them.
  await open("counting?n=2");
  await page.waitForFunction(() => document.querySelector("#figure-trace-lstm")?.dataset.n === "2");
  const ticks = await page.$$eval('#figure-trace-lstm text[text-anchor="middle"]', (all) =>
    all.map(({ textContent }) => textContent).filter((text) => /^[\d.]+$/.test(text)),
  );
  expect(ticks.join() === "0,1,2,3,4", `letters are numbered ${ticks}`);
}
