// A link to a checkpoint on another site: it is read after a click, from the page whose policy permits it, and by no other.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const model = fileURLToPath(new URL("../../../../models/wordlist_gpt/", import.meta.url));
const other = "https://models.test";

export async function check({ page, expect, host }) {
  // Not of the page's own, which counts requests to other sites as problems.
  const visitor = await page.context().newPage();
  const asked = [];
  await visitor.route(`${other}/**`, (route) => {
    const { pathname } = new URL(route.request().url());
    asked.push(pathname);
    const [folder, file] = pathname.split("/").slice(-2);
    // A header for another site is none for this one.
    const allowed = folder === "closed" ? "https://elsewhere.test" : "*";
    const headers = { "access-control-allow-origin": allowed };
    if (file === "tokenizer.json") return route.fulfill({ status: 404, headers });
    return route.fulfill({ body: readFileSync(`${model}${file}`), headers });
  });
  const linkTo = (path) => `${host.url}?fresh#/checkpoint?url=${encodeURIComponent(`${other}/${path}`)}`;
  const reads = () =>
    visitor.evaluate(
      (url) =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      `${other}/org/small/config.json`,
    );
  const agree = visitor.getByRole("button", { name: "Read from models.test" });

  await visitor.goto(linkTo("org/small/model.safetensors"));
  await agree.waitFor();
  expect(new URL(visitor.url()).pathname === "/remote.html", `the link is opened at ${visitor.url()}`);
  expect(asked.length === 0, `before a click, ${asked} is asked for`);
  expect((await visitor.locator(".drop:visible").count()) === 0, "files can be dropped on a page that may send them");
  await agree.click();
  await visitor.waitForSelector('[data-slot=report][data-model="small"]');
  expect(
    String(asked.map((path) => path.split("/").at(-1))) === "model.safetensors,config.json,tokenizer.json",
    `${asked}`,
  );
  expect((await visitor.locator("table.norms > tbody > tr").count()) > 1, "the report has no norms");
  expect(await reads(), "the page for other sites may not read from them");

  // Elsewhere on the site, nothing of other sites is read.
  await visitor.locator('nav a[href="#/counting"]').click();
  await visitor.waitForFunction(() => document.documentElement.dataset.ready === "counting");
  expect(new URL(visitor.url()).pathname === "/", `a chapter is opened at ${visitor.url()}`);
  expect(!(await reads()), "every page may read from other sites");

  await visitor.goto(linkTo("closed/model.safetensors"));
  await agree.click();
  const said = await visitor.getByRole("alert").filter({ hasText: "models.test" }).textContent();
  expect(said.includes("does not let other sites read model.safetensors"), `a site that is closed gives: ${said}`);
  await visitor.close();
}
