// Links that do not fit their chapter: they are refused in words, and the chapter shows its defaults.
const refused = {
  "geometry?gain=1,2": "gain=1,2: expected three numbers",
  "geometry?kind=foo&eps=1": "kind=foo: expected one of layer, rms, spherical",
  "geometry?gains=1,2,3": "gains=1,2,3: no such value, expected kind, gain",
  "fold?stretch=-1": "stretch=-1: expected a number from 0.1 to 10",
  "playground?groups=2&trained=0": "groups=2: expected one of 1, 2, 3",
  "playground?data=own&points=1,2&trained=0": "points=1,2: expected up to 1000 points",
  "selectability?keys=1,2,3": "keys=1,2,3: expected 2 to 60 keys",
  "selectability?scale=yes": "scale=yes: expected 0 or 1",
  "nonlinearity?labels=0,1": "labels=0,1: expected a class for every point",
  "counting?n=100000": "n=100000: expected a whole number from 1 to 400",
  "counting?n=": "n=: expected a whole number",
  "signature?gain=1,2&precision=int8": "precision=int8: expected one of float32, float16, bfloat16",
  "digits?width=5": "width=5: expected one of 3, 6, 16, 32",
  "checkpoint?example=../secret": "example=../secret: expected kjv_gpt",
  "checkpoint?url=http://a/b.gguf": "url=http://a/b.gguf: expected the address of a file, which begins with https://",
};
const drawn = {
  geometry: "#figure-geometry[data-semi-axes]",
  fold: "#figure-shift-circle[data-landed]",
  playground: "#figure-plane[data-accuracy]",
  selectability: "[data-slot=picture][data-lost]",
  nonlinearity: "#figure-points[data-correct]",
  counting: "#figure-trace-lstm[data-n]",
  signature: "#figure-signature[data-consistent]",
  digits: "#figure-digits",
  checkpoint: ".drop",
};

export async function check({ page, open, expect }) {
  const alert = page.getByRole("alert").filter({ hasText: "This link does not fit" });
  for (const [link, said] of Object.entries(refused)) {
    await open(link);
    const text = await alert.textContent({ timeout: 5_000 }).catch(() => "nothing");
    expect(text.includes(said), `${link}: it says ${text}`);
    await page.waitForSelector(drawn[link.split("?")[0]], { state: "attached" });
    expect(page.url().endsWith(link), `${link}: the address has become ${page.url()}`);
  }
  await open("counting?n=100000");
  await page.getByRole("button", { name: "Use the defaults" }).click();
  await alert.waitFor({ state: "detached" });
  await page.waitForURL(/#\/counting$/);

  await open("geometry?gain=17,0.5,-3&eps=0&at=4");
  await page.waitForSelector(drawn.geometry);
  expect((await alert.count()) === 0, `a good link is refused: ${await alert.allTextContents()}`);
}
