import { existsSync } from "node:fs";
import { join } from "node:path";

const space = (page) => page.$eval("#figure-digits", (figure) => ({ ...figure.dataset }));
const trained = (page, steps) =>
  page.waitForFunction((wanted) => document.querySelector("#figure-digits")?.dataset.step === wanted, String(steps));

export async function check({ page, open, expect, site }) {
  await open("digits?steps=500");
  if (!existsSync(join(site, "digits"))) {
    await page.getByRole("button", { name: "Choose files" }).waitFor();
    expect(await page.locator("[data-slot=missing]").isVisible(), "nothing says that there are no digits");
    return;
  }
  await trained(page, 500);
  const { accuracy, held } = await space(page);
  expect(Number(accuracy) > 0.6 && Number(held) > 0.5, `it reads ${accuracy} and ${held} of new ones`);
  const says = () => page.$eval(".digits-says", (bars) => bars.dataset.digit);
  expect(/^\d$/.test(await says()), `the first digit is ${await says()}`);

  // The layers move without training.
  const { place, step } = await space(page);
  await page.getByRole("slider", { name: "Layer" }).fill("1");
  await page.waitForFunction(() => document.querySelector("#figure-digits").dataset.layer === "1.00");
  expect(
    (await space(page)).place !== place && (await space(page)).step === step,
    "the layers do not move, or they train",
  );

  // Drawing: a cleared pad is no digit, a line down the middle is one.
  await page.getByRole("button", { name: "Clear" }).click();
  await page.waitForFunction(() => document.querySelector(".digits-says").dataset.digit === "-1");
  const pad = page.locator("canvas.pad");
  await pad.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await pad.boundingBox();
  await page.mouse.move(x + width / 2, y + 0.2 * height);
  await page.mouse.down();
  await page.mouse.move(x + width / 2, y + 0.8 * height, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => document.querySelector(".digits-says").dataset.digit !== "-1");
  expect((await says()) === "1", `a line is taken for a ${await says()}`);

  // Another net begins anew.
  await page.getByLabel("Between layers").selectOption("none");
  await page.waitForFunction(
    (old) =>
      document.querySelector("#figure-digits").dataset.accuracy !== old &&
      document.querySelector("#figure-digits").dataset.step === "500",
    accuracy,
  );
  await page.waitForTimeout(200);
}
