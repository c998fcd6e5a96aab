import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const shownWord = (page, word) =>
  page.waitForFunction((wanted) => document.querySelector("#figure-trace-norms")?.dataset.word === wanted, word);
const sigma = (page, norm) => page.$eval(`[data-norm="${norm}"]`, (card) => Number(card.dataset.sigma));
const readout = (page) => page.textContent("[data-slot=readout]");
const root = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
const models = join(root, "models/wordlist_gpt");
const gguf = join(root, "tests/models/gguf/llama.gguf");
const filesOf = (...names) => names.map((name) => join(models, name));

/** Opens files of the repository as if they were the reader's. */
async function ownModel({ page, open, expect }) {
  await open("trace");
  const choose = (...names) =>
    page
      .locator('[data-slot=own] input[type="file"]')
      .first()
      .setInputFiles(filesOf(...names));
  await choose("README.md");
  await page.getByRole("alert").filter({ hasText: "none of the files has weights" }).waitFor();
  await choose("config.json", "model.safetensors", "vocab.json");
  // Its first text cannot be spelled, which is said, and another one can.
  await page.getByRole("alert").filter({ hasText: "not in the vocabulary" }).waitFor();
  await page.getByLabel("Text", { exact: true }).fill("quick");
  await page.waitForFunction(
    () =>
      document.querySelectorAll(".trace-letters button").length === 5 &&
      document.querySelector("#figure-trace-norms").dataset.word?.endsWith("quick"),
  );
  expect(
    (await page.textContent("[data-slot=word]")).includes("0.206 million parameters, 28 tokens"),
    "the model is not described",
  );
  await page.getByRole("button", { name: "Back to the words" }).click();
  await shownWord(page, "understanding");

  // Without a tokenizer, tokens are numbers.
  await choose("config.json", "model.safetensors");
  await page.getByLabel("Tokens, as numbers").fill("0 18 22 28");
  await page.getByRole("alert").filter({ hasText: "token 28 is not in the vocabulary" }).waitFor();
  await page.getByLabel("Tokens, as numbers").fill("0 18 22");
  await page.waitForFunction(
    () =>
      document.querySelectorAll(".trace-letters button").length === 3 &&
      document.querySelector("#figure-trace-norms").dataset.word?.endsWith("22"),
  );
  await page.getByRole("button", { name: "Back to the words" }).click();

  // A GGUF file has its configuration in itself.
  await page.locator('[data-slot=own] input[type="file"]').first().setInputFiles(gguf);
  // Until every norm of it has a picture, in place of those of the words.
  await page.waitForFunction(
    () =>
      document.querySelectorAll(".trace-letters button").length === 3 &&
      document.querySelectorAll("[data-norm]").length === 5,
  );
  expect((await page.textContent("[data-slot=word]")).startsWith("llama.gguf: Llama"), "the GGUF file is not named");
  await page.getByRole("button", { name: "Back to the words" }).click();
}

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
  expect(
    (await page.locator('.trace-keys [aria-label="selectable"]').count()) === 16 * 14,
    "a key behind a norm cannot be selected",
  );

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
  expect(
    (await page.locator(".trace-letters button").count()) === 3,
    "a word of two letters has another number of positions",
  );
  await open("trace?word=quick&at=1");
  await shownWord(page, "quick");
  const after = await readout(page);
  expect(/expects “u” with (9\d|100)/.test(after) && after.includes("rank 1"), `after q it says ${after}`);
  await ownModel({ page, open, expect });
  // A link that the rules do not allow opens the default and says so.
  await open("trace?word=%C3%A9t%C3%A9");
  await shownWord(page, "understanding");
}
