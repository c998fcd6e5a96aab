// What every chapter has: a question, numbers in its sentences that can be dragged, references with how to cite them, and a
// first figure that plays by itself once, until the reader touches something.
import { readFileSync } from "node:fs";

/** The first figure of each chapter, and what of its data moves. */
const openings = {
  geometry: ["#figure-geometry", "at"],
  fold: ["#figure-stretch-circle", "landed"],
  playground: ["#figure-plane", "step"],
  selectability: ["[data-slot=picture]", "query"],
  nonlinearity: ["#figure-xor", "angle"],
  counting: ["#figure-trace-lstm", "n"],
  trace: ["#figure-trace", "step"],
  signature: ["#figure-signature", "gain"],
  digits: ["#figure-digits", "step"],
  checkpoint: ["#figure-profile", "at"],
};
const version = /^version: (.+)$/m.exec(readFileSync(new URL("../../../CITATION.cff", import.meta.url), "utf8"))[1];

/** Each number of the text moves by arrow keys, undo takes it back, and one moves with the mouse. */
async function numbers({ page, expect }, id) {
  const names = await page.$$eval("[data-number]", (all) => [
    ...new Set(all.filter((one) => one.checkVisibility()).map(({ dataset }) => dataset.number)),
  ]);
  expect(names.length >= 2, `${id}: the text has the numbers ${names}`);
  for (const name of names) {
    const number = page.locator(`[data-number="${name}"]`).first();
    const now = () => number.getAttribute("aria-valuenow");
    const [before, most] = [await now(), await number.getAttribute("aria-valuemax")];
    const [there, back] = before === most ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
    await number.focus();
    await page.keyboard.press(there);
    expect(
      (await now()) !== before && (await number.getAttribute("aria-label")) !== "",
      `${id}: ${there} leaves ${name} at ${before}`,
    );
    expect(
      (await number.textContent()) === (await number.getAttribute("aria-valuetext")),
      `${id}: ${name} shows another value than it says`,
    );
    const address = page.url();
    expect(address.includes(`${name.replace(/-\d+$/, "")}=`), `${id}: ${name} is not in the link ${address}`);
    await page.keyboard.press(back);
    expect(
      Math.abs(Number(await now()) - Number(before)) < 1e-6,
      `${id}: ${back} takes ${name} to ${await now()} and not back to ${before}`,
    );
  }
  const number = page.locator(`[data-number="${names[0]}"]`).first();
  const before = await number.getAttribute("aria-valuenow");
  await number.scrollIntoViewIfNeeded();
  for (const pixels of [60, -60]) {
    const { x, y, width, height } = await number.boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2 + pixels, y + height / 2, { steps: 4 });
    await page.mouse.up();
    if ((await number.getAttribute("aria-valuenow")) !== before) break;
  }
  expect((await number.getAttribute("aria-valuenow")) !== before, `${id}: the mouse leaves ${names[0]} at ${before}`);
  await page.getByRole("button", { name: "Undo" }).click();
  expect((await number.getAttribute("aria-valuenow")) === before, `${id}: a drag is more than one step of the history`);
}

async function citations({ page, expect }, id) {
  const links = await page.$$eval(".references li a, a[data-source]", (all) => all.map(({ href }) => href));
  expect(
    links.length > 0 &&
      links.every((href) => /^https:\/\/(arxiv\.org\/abs\/\d{4}\.\d{5}$|www\.lesswrong\.com\/posts\/)/.test(href)),
    `${id}: the references are ${links}`,
  );
  await page.getByText("How to cite").click();
  const entries = await page.$$eval(".cite pre", (all) => all.map(({ textContent }) => textContent));
  expect(
    entries.length === (await page.locator(".references li").count()) + 1,
    `${id}: ${entries.length} entries of BibTeX`,
  );
  for (const entry of entries)
    expect(/^@\w+\{\w+,\n( {2}\w+ = \{.+\},?\n)+\}$/.test(entry), `${id}: no BibTeX: ${entry}`);
  expect(entries.at(-1).includes(`version = {${version}}`), `${id}: Normscope is cited as ${entries.at(-1)}`);
  await page
    .getByRole("button", { name: /^Copy BibTeX/ })
    .first()
    .click();
  await page.waitForFunction(() => document.querySelector(".cite button").textContent === "Copied");
  expect((await page.evaluate(() => navigator.clipboard.readText())) === entries[0], `${id}: another text is copied`);
}

/**
 * Runs in a page that was told of a figure: counts the changes of the figure while it plays, touches the page at the second
 * one, and counts those that follow. In the page, since a slow test would come when all is over.
 */
function watchOpening() {
  const told = location.protocol === "http:" && sessionStorage.getItem("opening");
  if (!told) return;
  sessionStorage.removeItem("opening");
  const [figure, attribute] = JSON.parse(told);
  const seen = (window.opening = { button: "", before: 0, after: 0, hash: "", stop: () => changes.disconnect() });
  const touches = 2;
  const changes = new MutationObserver((records) => {
    for (const { target, attributeName } of records) {
      if (attributeName === "data-player" && target.dataset.player === "playing") seen.button = target.textContent;
      if (attributeName !== attribute || !target.matches(figure)) continue;
      if (seen.before === touches) seen.after += 1;
      else if (document.querySelector('[data-player="playing"]') !== null && (seen.before += 1) === touches) {
        seen.hash = location.hash;
        document
          .querySelector("h1")
          .dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, pointerType: "mouse" }));
      }
    }
  });
  changes.observe(document, { subtree: true, attributes: true });
}

const tell = (page, id) => {
  const [figure, key] = openings[id];
  return page.evaluate((told) => sessionStorage.setItem("opening", told), JSON.stringify([figure, `data-${key}`]));
};
const opening = (page) => page.evaluate(() => ({ ...window.opening, stop: undefined }));

/** The first figure of a chapter that `load` loads plays by itself until the first touch. */
export async function opens({ page, expect }, id, load) {
  await page.addInitScript(watchOpening);
  await tell(page, id);
  await load();
  // Only where it is out of view: the story of a chapter goes on with every scroll.
  const below = await page.$eval(openings[id][0], (element) => element.getBoundingClientRect().bottom - innerHeight);
  if (below > 100) await page.mouse.wheel(0, below);
  await page
    .waitForFunction(() => window.opening.before === 2)
    .catch(async () =>
      expect(false, `${id}: the first figure does not play by itself: ${JSON.stringify(await opening(page))}`),
    );
  await page.waitForTimeout(1500);
  const { button, after, hash } = await opening(page);
  await page.evaluate(() => window.opening.stop());
  expect(button === "Pause", `${id}: while the first figure plays, its button says ${button}`);
  expect(!hash.includes("?"), `${id}: playing writes the link ${hash}`);
  // What was being drawn, and the end of a training.
  expect(after <= 3, `${id}: the first figure changes ${after} times after the reader's touch`);
}

/** Where motion is unwelcome, the first figure waits for its button. */
async function opensStill({ page, open, expect }, id) {
  await tell(page, id);
  await page.evaluate(watchOpening);
  await open(id);
  expect(
    await page.locator('article [data-player="still"]').first().isVisible(),
    `${id}: nothing offers to play the first figure`,
  );
  await page.waitForTimeout(1500);
  expect((await opening(page)).before === 0, `${id}: the first figure plays though motion is unwelcome`);
  await page.evaluate(() => window.opening.stop());
}

/** The requirements on the text and the opening of a chapter. */
export async function explained(test, id) {
  const { page, expect } = test;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await opensStill(test, id);
  const question = await page.$eval("h1 + .question", ({ textContent }) => textContent).catch(() => "");
  expect(/^[A-Z][^?]+\?$/.test(question), `${id}: below the title stands "${question}"`);
  await numbers(test, id);
  await citations(test, id);
}
