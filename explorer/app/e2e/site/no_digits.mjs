// A site that was built without digits says so, shows no empty picture, and learns from files that the reader gives.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "../serve.mjs";

const build = fileURLToPath(new URL("../../build.mjs", import.meta.url));
const side = 28;

/** A file of MNIST's kind, as it is unpacked. */
function idx(extents, data) {
  const head = Buffer.alloc(4 + 4 * extents.length);
  head.writeUInt16BE(0x0800 + extents.length, 2);
  extents.forEach((extent, i) => head.writeUInt32BE(extent, 4 + 4 * i));
  return Buffer.concat([head, data]);
}

/** Images of "digits" that are bars, each with a place of its own, and their labels. */
function files(begin, count) {
  const images = Buffer.alloc(count * side * side);
  for (let image = 0; image < count; ++image)
    for (let row = 0; row < side; ++row)
      images.fill(
        255,
        (image * side + row) * side + 2 * (image % 10) + 2,
        (image * side + row) * side + 2 * (image % 10) + 6,
      );
  const labels = Buffer.from(Array.from({ length: count }, (_, image) => image % 10));
  return [
    {
      name: `${begin}-images-idx3-ubyte`,
      mimeType: "application/octet-stream",
      buffer: idx([count, side, side], images),
    },
    { name: `${begin}-labels-idx1-ubyte`, mimeType: "application/octet-stream", buffer: idx([count], labels) },
  ];
}

export async function check({ page, expect, site }) {
  const folder = mkdtempSync(join(tmpdir(), "normscope-no-digits-"));
  let host;
  try {
    // The site's folder has the core too.
    execFileSync(process.execPath, [build, folder, site], { stdio: "inherit" });
    host = await serve(folder);
    const visitor = await page.context().newPage();
    const problems = [];
    visitor.on("pageerror", (error) => problems.push(error.message));
    await visitor.goto(`${host.url}?fresh#/digits?steps=500`);
    const chooser = visitor.getByRole("group", { name: "Choose MNIST's files" });
    await chooser.waitFor();
    expect(await visitor.locator("[data-slot=missing]").isVisible(), "nothing says that there are no digits");
    const picture = visitor.locator("#figure-digits");
    expect(!(await picture.isVisible()), "there is a picture of no digits");
    const input = chooser.locator("input[multiple]");
    await input.setInputFiles(files("train", 1200));
    await visitor.getByRole("alert").filter({ hasText: "t10k-images-idx3-ubyte.gz is missing" }).waitFor();
    await input.setInputFiles([...files("train", 1200), ...files("t10k", 400)]);
    await visitor.waitForFunction(() => document.querySelector("#figure-digits")?.dataset.step === "500");
    expect(await picture.isVisible(), "the digits that were given have no picture");
    expect(Number((await picture.getAttribute("data-accuracy")) ?? 0) > 0.6, "nothing is learned from them");
    expect(!(await visitor.locator("[data-slot=missing]").isVisible()), "digits are still said to be missing");
    expect(problems.length === 0, problems.join("; "));
    await visitor.close();
  } finally {
    await host?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
