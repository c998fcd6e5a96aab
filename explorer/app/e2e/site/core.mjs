// While the core loads the page says so, and if it cannot be loaded it says why and offers to try again.
const wasm = /drawing\.wasm$/;

export async function check({ page, expect, host }) {
  const visitor = await page.context().newPage();
  const drawn = () => visitor.waitForSelector("#figure-geometry[data-semi-axes]");
  const loading = visitor.getByRole("status").filter({ hasText: "Loading" });
  let go = () => {};
  await visitor.context().route(wasm, async (route) => {
    await new Promise((resolve) => (go = resolve));
    await route.continue();
  });
  await visitor.goto(`${host.url}?fresh#/geometry`);
  await loading.waitFor({ timeout: 10_000 });
  go();
  await drawn();
  expect((await loading.count()) === 0, "it says that it loads after it has loaded");
  await visitor.context().unroute(wasm);

  for (const file of [wasm, /drawing\.mjs$/, /worker\.js$/]) {
    await visitor.context().route(file, (route) => route.fulfill({ status: 404, body: "" }));
    await visitor.goto("about:blank");
    for (const place of ["#/geometry", "#/selectability", "#/"]) {
      // The first place loads the page; of one of the files, each does.
      if (file === wasm) await visitor.goto("about:blank");
      await visitor.goto(`${host.url}?fresh${place}`);
      const alert = visitor.getByRole("alert").filter({ hasText: "could not be loaded" });
      await alert
        .waitFor({ timeout: 10_000 })
        .catch(() => expect(false, `nothing says that ${file} is missing at ${place}`));
      expect((await loading.count()) === 0, "it loads for ever");
    }
    await visitor.context().unroute(file);
    await visitor.goto(`${host.url}?fresh#/geometry`);
    await visitor.getByRole("button", { name: "Try again" }).click();
    await drawn();
  }
  await visitor.close();
}
