const data = (page, id, key) => page.$eval(id, (element, name) => element.dataset[name], key);

export async function check({ page, open, expect, wholeTicks }) {
  await open("counting?n=300");
  await page.waitForFunction(() =>
    ["lstm", "gru"].every((cell) => document.querySelector(`#figure-trace-${cell}`)?.dataset.drawn),
  );
  expect(Number(await data(page, "#figure-trace-lstm", "counters")) > 0, "the lstm has no counter");
  expect((await data(page, "#figure-trace-gru", "counters")) === "0", "the gru has a counter");
  expect((await page.$$eval("#figure-trace-lstm svg path", (paths) => paths.length)) > 5, "the trace has no lines");

  await open("counting?n=29");
  await page.waitForFunction(() => document.querySelector("#figure-trace-gru")?.dataset.n === "29");
  expect((await data(page, "#figure-trace-gru", "counters")) === "", "29 letters tell whether a unit counts");
  await page.waitForFunction(() => document.querySelector('[data-slot="gru-says"]').textContent.includes("Too short"));
  await open("counting?n=300");

  await page.waitForSelector("#figure-range-gru");
  const [lstm, gru] = [
    Number(await data(page, "#figure-range-lstm", "exactTo")),
    Number(await data(page, "#figure-range-gru", "exactTo")),
  ];
  expect(lstm > gru, `lstm is exact to ${lstm}, gru to ${gru}`);

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

  // A step of the slider changes the lines of the chart and leaves the rest as it is.
  await page.$eval("#figure-trace-lstm svg", (chart) => (chart.dataset.kept = "true"));
  const lines = () =>
    page.$$eval("#figure-trace-lstm .role-mark path", (paths) => paths.map((path) => path.getAttribute("d")).join());
  const before = await lines();
  await page.getByRole("slider", { name: "n", exact: true }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.querySelector("#figure-trace-lstm").dataset.n === "299");
  for (let attempt = 0; attempt < 40 && (await lines()) === before; ++attempt) await page.waitForTimeout(100);
  expect((await lines()) !== before, "the lines are those of another n");
  expect(
    (await page.locator("#figure-trace-lstm svg[data-kept]").count()) === 1,
    "a step of the slider draws the chart anew",
  );
  await open(page.url().split("#/")[1]);
  await page.waitForFunction(() => document.querySelector("#figure-trace-lstm")?.dataset.n === "299");

  // Letters are counted: a short word's axis has no ticks between two of them.
  await open("counting?n=2");
  await page.waitForSelector("#figure-trace-lstm[data-drawn]");
  await wholeTicks("#figure-trace-lstm", "letters read");
}
