// Until the core has answered, a chapter's first figure shows its poster; then it takes the poster's place.
export async function check({ page, open, expect }) {
  let release = () => {};
  const released = new Promise((done) => (release = done));
  await page.route("**/*.wasm", (route) => released.then(() => route.continue()));
  await open("", { fresh: true });
  await page.waitForSelector("#figure-hero .poster");
  const chapters = await page.$$eval("#chapter-list a", (links) => links.map(({ hash }) => hash));
  for (const chapter of chapters) {
    await page.evaluate((to) => (location.hash = to), chapter);
    await page.waitForSelector(`#chapter-${chapter.slice(2)}`);
    if ((await page.locator("article :is(.lead, .stage)").count()) === 0) continue;
    const shown = await page
      .waitForFunction(
        () => {
          const poster = document.querySelector("article figure .poster");
          return poster?.complete && poster.naturalWidth > 0 && poster.checkVisibility() && poster.clientWidth > 100;
        },
        undefined,
        { timeout: 5_000 },
      )
      .then(
        () => true,
        () => false,
      );
    expect(shown, `${chapter}: no poster while the core is loaded`);
  }
  await page.evaluate(() => (location.hash = "#/geometry"));
  await page.waitForSelector("#figure-geometry .poster");
  const height = () => page.$eval("#figure-geometry", (figure) => figure.clientHeight);
  const before = await height();
  release();
  await page.waitForSelector('#figure-geometry[data-state="ready"]');
  expect((await page.locator("#figure-geometry .poster").count()) === 0, "the poster stays over the figure");
  expect((await height()) === before, `the figure is ${before} high with its poster and then ${await height()}`);
}
