import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const figure = "#figure-trace";
/** Waits until the figure shows that text, and what `data` says of it. */
const shown = (page, text, data = {}) =>
  page.waitForFunction(
    ([selector, wanted]) => {
      const { dataset } = document.querySelector(selector) ?? {};
      return dataset !== undefined && Object.entries(wanted).every(([key, value]) => dataset[key] === String(value));
    },
    [figure, { text, ...data }],
  );
const caption = (page) => page.textContent(".trace-caption");
const words = (page) =>
  page.$$eval(`${figure} svg > text`, (all) => all.map(({ firstChild }) => firstChild.textContent));
const root = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
const models = join(root, "models/wordlist_gpt");
const gguf = join(root, "tests/models/gguf/llama.gguf");
const filesOf = (...names) => names.map((name) => join(models, name));

const first = "And God said, Let there be light: and there was software.";

/** Opens files of the repository as if they were the reader's. */
async function ownModel({ page, open, expect }) {
  await open("trace");
  const choose = (files) => page.locator('[data-slot=own] input[type="file"]').first().setInputFiles(files);
  const back = page.getByRole("button", { name: "Back to the model of this page" });
  await choose(filesOf("README.md"));
  await page.getByRole("alert").filter({ hasText: "none of the files has weights" }).waitFor();
  await choose(filesOf("config.json", "model.safetensors", "vocab.json"));
  // Its first text cannot be spelled, which is said, and another one can.
  await page.getByRole("alert").filter({ hasText: "not in the vocabulary" }).waitFor();
  await page.getByLabel("Text", { exact: true }).fill("quick");
  await shown(page, "quick", { at: 4 });
  const facts = await page.textContent("[data-slot=text] .readout");
  expect(
    facts.includes("4 layers, 16 heads, 0.206 million parameters, 28 tokens"),
    `the model is described as ${facts}`,
  );
  await back.click();
  await shown(page, first);

  // Without a tokenizer, tokens are numbers.
  await choose(filesOf("config.json", "model.safetensors"));
  await page.getByLabel("Tokens, as numbers").fill("0 18 22 28");
  await page.getByRole("alert").filter({ hasText: "token 28 is not in the vocabulary" }).waitFor();
  await page.getByLabel("Tokens, as numbers").fill("0 18 22");
  await shown(page, "0 18 22", { at: 2 });
  await back.click();
  await shown(page, first);

  // A GGUF file has its configuration in itself, and norms that remove nothing.
  await choose(gguf);
  await shown(page, "0 1 2");
  const llama = await page.textContent("[data-slot=text] .readout");
  expect(llama.startsWith("llama.gguf: Llama"), `the GGUF file is described as ${llama}`);
  await page.locator(".trace-picture").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowUp");
  await shown(page, "0 1 2", { step: 1 });
  const norm = await caption(page);
  expect(/RMSNorm .* removes nothing/.test(norm), `of an RMSNorm it says: ${norm}`);
  await back.click();
}

export async function check({ page, open, expect }) {
  await open("trace");
  await shown(page, first);
  const opened = await caption(page);
  expect(
    /subtracts the mean, which is 2[67]\.\d\s% of the vector/.test(opened),
    `nothing is lost where it opens: ${opened}`,
  );

  // Step by step, by buttons and by keys; undo takes a step back.
  await open("trace?at=6&step=1");
  await shown(page, first, { step: 1, at: 6 });
  // As `normscope trace models/kjv_gpt` has it.
  const norm = await caption(page);
  expect(/LayerNorm transformer\.h\.0\.ln_1 subtracts the mean.* σ = 0\.457/.test(norm), `the norm is told as ${norm}`);
  await page.getByRole("button", { name: "Next step" }).click();
  await shown(page, first, { step: 2 });
  expect((await words(page)).filter((one) => /^head \d$/.test(one)).length === 4, "not every head has its weights");
  await page.locator(".trace-picture").focus();
  await page.keyboard.press("End");
  await shown(page, first, { step: 19 });
  // Without a head: its price of freezing, and other tokens.
  await page.getByLabel("Remove", { exact: true }).selectOption({ label: "head 3 of layer 0" });
  await shown(page, first, { without: "0.3" });
  const removed = await caption(page);
  expect(/Without head 3 of layer 0, the probability of “be” goes from 79\.7\s%/.test(removed), `it says ${removed}`);
  await page.keyboard.press("Control+z");
  await shown(page, first, { without: "" });
  await page.locator(".trace-picture").focus();
  await page.keyboard.press("ArrowDown");
  await shown(page, first, { step: 18 });
  expect(
    /likeliest token after “there” is “be” with 79\.7\s%/.test(await caption(page)),
    `it ends with ${await caption(page)}`,
  );
  await page.keyboard.press("ArrowLeft");
  await shown(page, first, { step: 18, at: 5 });
  await page.keyboard.press("Control+z");
  await shown(page, first, { step: 18, at: 6 });
  // A press on a column and a row.
  const { x, y, width } = await page.locator(".trace-picture").boundingBox();
  await page.mouse.click(x + width - 40, y + 500);
  await page.waitForFunction(
    (selector) => Number(document.querySelector(selector).dataset.at) > 10 && location.hash.includes("step="),
    figure,
  );

  await page.getByLabel("Text", { exact: true }).fill("In the beginning");
  await shown(page, "In the beginning", { at: 6 });
  await ownModel({ page, open, expect });
}
