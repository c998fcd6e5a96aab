import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// A file to drop: smaller than the example, with as many norms.
const model = fileURLToPath(new URL("../../../../models/wordlist_gpt/", import.meta.url));
const shown = (page, name) =>
  page.waitForFunction((wanted) => document.querySelector('[data-slot="report"]')?.dataset.model === wanted, name, {
    timeout: 120_000,
  });
const files = (page) => page.locator('[data-slot="drop"] input[type="file"][multiple]');

export async function check({ page, accessible, open, expect, host }) {
  await open("checkpoint?example=kjv_gpt");
  await shown(page, "kjv_gpt");
  const norms = await page.locator("table.norms > tbody > tr").count();
  expect(norms > 1, `the report has ${norms} norms`);
  expect((await page.locator("#verdict").textContent()) !== "", "the report has no verdict");
  await page.locator("#charts summary").click();
  await page.locator("#norms summary").first().click();
  await page.locator("#charts figure").first().scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector('figure[data-state="ready"]') !== null);

  await accessible("the report");

  // Figures of one question look as others do; the chapter's own question is set in italics.
  const slanted = await page.$$eval("[data-slot=report] .question figcaption", (captions) =>
    captions.map((caption) => getComputedStyle(caption).fontStyle),
  );
  expect(slanted.length > 1 && slanted.every((style) => style === "normal"), `captions are set in ${slanted}`);

  // A norm's row leads to the chapter Geometry with gains of its own.
  await page.locator("table.norms .opener").first().click();
  const link = page.locator("table.norms").getByRole("link", { name: "See its stretch in three dimensions" });
  const gains = new URLSearchParams((await link.getAttribute("href")).split("?")[1]).get("gain").split(",").map(Number);
  expect(gains.length === 3 && gains[0] <= gains[2], `the link has the gains ${gains}`);
  await link.click();
  await page.waitForFunction(() => document.querySelector("#figure-geometry")?.dataset.semiAxes);

  // A local file without its folder: the same norms, and no request to another site.
  await open("checkpoint", { fresh: true });
  const before = host.requests.length;
  await files(page).setInputFiles(join(model, "model.safetensors"));
  await shown(page, "model.safetensors");
  expect((await page.locator("table.norms > tbody > tr").count()) === norms, "the file has another number of norms");
  const asked = host.requests
    .slice(before)
    .filter((path) => !/^(checkpoint\.js|normscope\.(mjs|wasm)|parts\/.*)$/.test(path));
  expect(asked.length === 0, `reading a file asks for ${asked}`);

  // The report stays when one leaves the chapter, until it is closed.
  const visit = async (id) => {
    await page.locator(`nav a[href="#/${id}"]`).click();
    await page.waitForFunction((wanted) => document.documentElement.dataset.ready === wanted, id);
  };
  await visit("signature");
  const reads = host.requests.length;
  await visit("checkpoint");
  await shown(page, "model.safetensors");
  expect(
    (await page.locator("table.norms > tbody > tr").count()) === norms,
    "the report that was kept has other norms",
  );
  expect(!host.requests.slice(reads).includes("checkpoint.js"), "the report that was kept is read anew");

  // A second checkpoint beside the first: what each begins with, and figures in pairs, which stay too.
  await page.locator(".beside summary").click();
  await page.locator('.beside input[type="file"][multiple]').setInputFiles(join(model, "model.safetensors"));
  await shown(page, "model.safetensors and model.safetensors");
  expect((await page.locator("#pair .side .verdict").count()) === 2, "not both reports begin with a verdict");
  const pairs = await page.$$eval("#pair .question", (questions) =>
    questions.map((question) => question.querySelectorAll("figure").length),
  );
  expect(pairs.length > 3 && pairs.every((figures) => figures % 2 === 0), `figures in groups of ${pairs}`);
  await visit("signature");
  await visit("checkpoint");
  await shown(page, "model.safetensors and model.safetensors");
  await page.getByRole("button", { name: "Show the first one alone" }).click();
  await shown(page, "model.safetensors");

  await page.getByRole("button", { name: "Close this report" }).click();
  await visit("signature");
  await visit("checkpoint");
  expect((await page.locator("table.norms").count()) === 0, "a report that was closed is shown again");

  await files(page).setInputFiles({
    name: "cut.safetensors",
    mimeType: "application/octet-stream",
    buffer: readFileSync(join(model, "model.safetensors")).subarray(0, 100_000),
  });
  const alert = page.getByRole("alert");
  await alert.waitFor();
  const said = await alert.textContent();
  expect(/^safetensors: cut\.safetensors: .*data has/.test(said), `a file cut short gives: ${said}`);
  expect((await page.locator("table.norms").count()) === 0, "the report of the file before is still shown");

  // Undo and redo move between the example and none.
  await page.getByRole("button", { name: "Try a small GPT" }).click();
  await shown(page, "kjv_gpt");
  expect(page.url().includes("example=kjv_gpt"), `the link says ${page.url()}`);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector("table.norms") === null);
}
