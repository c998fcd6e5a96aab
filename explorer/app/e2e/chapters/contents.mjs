import { serve } from "../serve.mjs";

/** After the first visit, the site opens without a server. */
async function offline(page, site, expect) {
  const host = await serve(site);
  const visitor = await page.context().newPage();
  await visitor.goto(host.url);
  await visitor.evaluate(() => navigator.serviceWorker.ready);
  await visitor.waitForFunction(() => caches.keys().then((keys) => keys.length > 0));
  await visitor.waitForFunction(async () => (await (await caches.open((await caches.keys())[0])).keys()).length > 5);
  await visitor.reload();
  await visitor.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await host.close();
  await visitor.goto(`${host.url}#/geometry`);
  await visitor.reload();
  await visitor.waitForFunction(() => document.querySelector("#figure-geometry")?.dataset.semiAxes);
  expect((await visitor.title()).startsWith("Geometry"), "offline: the chapter did not open");
  await visitor.close();
}

export async function check({ page, accessible, open, expect, site }) {
  await open("");
  const links = await page.$$eval(".chapters a", (all) => all.map((link) => link.getAttribute("href")));
  expect(links.length > 0 && links.every((link) => /^#\/[a-z]+$/.test(link)), `chapters: ${links}`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id === "main"), "the skip link leads nowhere");
  await open("counting");
  await page.getByText("The same elsewhere").click();
  await accessible("the same elsewhere");
  await offline(page, site, expect);
}
