const plane = (page) => page.$eval("#figure-signature", (figure) => ({ ...figure.dataset }));
/** Waits until that many of 16 outputs are consistent with A and with B. */
const consistent = (page, counts) =>
  page.waitForFunction((wanted) => document.querySelector("#figure-signature")?.dataset.consistent === wanted, counts);

export async function check({ page, open, expect }) {
  await open("signature");
  await consistent(page, "16 0");
  expect((await page.locator("[data-slot=table] tbody tr").count()) === 16, "not every output has its row");

  // A gain that is moved by keys: no recorded output fits, undo takes it back, and a link keeps it.
  const gain = page.getByRole("slider", { name: "gain 2 of A" });
  await gain.focus();
  await page.keyboard.press("ArrowRight");
  await consistent(page, "0 0");
  const { refused, farthest } = await plane(page);
  expect(refused === "16 16" && Number(farthest) > 1e3, `${refused} are refused, up to ${farthest} units away`);
  expect(page.url().includes("gain=1%2C1.81%2C0.6"), `the link says ${page.url()}`);
  await open(page.url().split("#/")[1]);
  await consistent(page, "0 0");
  await page.getByLabel("Outputs of").selectOption("now");
  await consistent(page, "16 0");
  await page.keyboard.press("Control+z");
  await consistent(page, "0 0");

  // What float32 tells apart, bfloat16 does not.
  await page.getByLabel("Presets").selectOption({ label: "The same in bfloat16" });
  await page.waitForFunction(() => !document.querySelector("#figure-signature").dataset.consistent.startsWith("0 "));
  await page.getByLabel("Presets").selectOption({ label: "Outputs of B" });
  await consistent(page, "0 16");
}
