export async function check({ page, open, expect }) {
  await open("");
  const links = await page.$$eval(".chapters a", (all) => all.map((link) => link.getAttribute("href")));
  expect(links.length > 0 && links.every((link) => /^#\/[a-z]+$/.test(link)), `chapters: ${links}`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id === "main"), "the skip link leads nowhere");
}
