const shownWord = (page, word) =>
  page.waitForFunction((wanted) => document.querySelector("#figure-trace-norms")?.dataset.word === wanted, word);
const sigma = (page, norm) => page.$eval(`[data-norm="${norm}"]`, (card) => Number(card.dataset.sigma));
const readout = (page) => page.textContent("[data-slot=readout]");
const chosen = (page) => page.$eval(".trace-letters [aria-pressed=true]", (one) => one.textContent);

export async function check({ page, open, expect }) {
  await open("trace");
  await shownWord(page, "understanding");
  expect((await page.locator("[data-norm]").count()) === 9, "not every norm has a picture");
  expect((await page.locator(".trace-keys tbody tr").count()) === 16, "not every head has its keys");
  expect((await chosen(page)) === "s", `the chosen letter is ${await chosen(page)}`);
  // As `normscope trace models/wordlist_gpt $'\nunderstanding'` has it.
  const first = await sigma(page, "transformer.h.0.ln_1");
  const final = await sigma(page, "transformer.ln_f");
  expect(first > 0.2 && first < 0.35 && final > 0.7 && final < 1.5, `σ is ${first} and ${final}`);
  expect((await page.locator('.trace-keys [aria-label="selectable"]').count()) === 16 * 14, "a key behind a norm cannot be selected");

  // Another letter, by its button and with undo.
  await page.getByRole("button", { name: "u, position 1", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("[data-slot=readout]").textContent.includes("“u”"));
  expect(page.url().includes("at=1"), `the link says ${page.url()}`);
  expect((await sigma(page, "transformer.h.0.ln_1")) !== first, "σ is that of another letter");
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector("[data-slot=readout]").textContent.includes("“unders”"));

  // Another word: what the model cannot spell is left out.
  await page.getByLabel("Word, a to z").fill("Qu1");
  await shownWord(page, "qu");
  expect((await page.locator(".trace-letters button").count()) === 3, "a word of two letters has another number of positions");
  await open("trace?word=quick&at=1");
  await shownWord(page, "quick");
  const after = await readout(page);
  expect(/expects “u” with (9\d|100)/.test(after) && after.includes("rank 1"), `after q it says ${after}`);
  // A link that the rules do not allow opens the default and says so.
  await open("trace?word=%C3%A9t%C3%A9");
  await shownWord(page, "understanding");
}
