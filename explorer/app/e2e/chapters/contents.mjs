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

/** A site without a service worker removes the one that another site left at its address. */
async function leftBehind(page, site, expect) {
  const first = await serve(site);
  const visitor = await page.context().newPage();
  await visitor.goto(first.url);
  await visitor.evaluate(() => navigator.serviceWorker.ready);
  await visitor.waitForFunction(() => caches.keys().then((keys) => keys.length > 0));
  await first.close();
  const second = await serve(site, { port: first.port, missing: ["offline.js"] });
  await visitor.goto("about:blank");
  await visitor.goto(second.url);
  await visitor
    .waitForFunction(
      async () => (await navigator.serviceWorker.getRegistrations()).length + (await caches.keys()).length === 0,
    )
    .catch(() => expect(false, "the service worker of another site stays, or its files"));
  await visitor.close();
  await second.close();
}

/** Back, forward and reload return to the place that was left, and a reload to the theme. */
async function returning(page, open, expect) {
  await open("nonlinearity");
  await page.waitForSelector("#figure-group-curvature[data-drawn]");
  await page.$eval("#figure-group-curvature", (figure) =>
    figure.scrollIntoView({ block: "center", behavior: "instant" }),
  );
  const top = () => page.$eval("#figure-group-curvature", (figure) => figure.getBoundingClientRect().top);
  const left = await top();
  const comes = async (how) => {
    await page.waitForSelector("#figure-group-curvature[data-drawn]");
    for (let attempt = 0; attempt < 300 && Math.abs((await top()) - left) > 40; ++attempt)
      await page.waitForTimeout(100);
    expect(Math.abs((await top()) - left) <= 40, `${how}: a figure that was at ${left} is at ${await top()}`);
  };
  await page.locator('nav a[href="#/counting"]').click();
  await page.waitForFunction(() => document.documentElement.dataset.ready === "counting");
  expect((await page.evaluate(() => scrollY)) === 0, "a chapter begins where the one before was left");
  await page.goBack();
  await comes("back");
  await page.locator("#theme-toggle").click();
  const [shown, other] = await page.evaluate(() => [
    document.documentElement.dataset.theme,
    document.querySelector("#theme-toggle").textContent,
  ]);
  expect(shown === "dark" && other === "Light", `the toggle gives the theme ${shown} and offers ${other}`);
  await page.reload();
  await comes("reload");
  expect((await page.evaluate(() => document.documentElement.dataset.theme)) === "dark", "a reload loses the theme");
  await page.evaluate(() => localStorage.removeItem("theme"));
}

/** The front page moves until it is paused, and takes a checkpoint that is dropped anywhere on it. */
async function front(page, open, painted, expect) {
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await open("", { fresh: true });
  await page.waitForSelector('#figure-hero[data-at="1"]');
  await page.getByRole("button", { name: "Pause" }).click();
  const look = () => page.$$eval("main canvas", (all) => all.map((canvas) => canvas.toDataURL()));
  await painted();
  const before = await look();
  expect(before.length === 11, `the front page has ${before.length} pictures`);
  await page.waitForTimeout(700);
  const after = await look();
  expect(String(before) === String(after), "pictures of the front page move though they are paused");
  await page.emulateMedia({ reducedMotion: "reduce" });
  const files = await page.evaluateHandle(async () => {
    const data = new DataTransfer();
    for (const name of ["config.json", "model.safetensors"])
      data.items.add(new File([await (await fetch(`example/kjv_gpt/${name}`)).blob()], name));
    return data;
  });
  await page.dispatchEvent("h1", "dragover", { dataTransfer: files });
  expect(await page.locator(".curtain").isVisible(), "nothing says that a checkpoint can be dropped");
  await page.dispatchEvent("h1", "drop", { dataTransfer: files });
  await page.waitForSelector("[data-slot=report][data-model]");
  expect(page.url().endsWith("#/checkpoint"), `a checkpoint that is dropped leads to ${page.url()}`);
}

export async function check({ page, accessible, open, painted, expect, site }) {
  await open("");
  const links = await page.$$eval(".chapters a", (all) => all.map((link) => link.getAttribute("href")));
  expect(links.length > 0 && links.every((link) => /^#\/[a-z]+$/.test(link)), `chapters: ${links}`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id === "main"), "the skip link leads nowhere");
  await open("counting");
  await page.getByText("The same elsewhere").click();
  await accessible("the same elsewhere");
  await front(page, open, painted, expect);
  await returning(page, open, expect);
  await leftBehind(page, site, expect);
  await offline(page, site, expect);
}
