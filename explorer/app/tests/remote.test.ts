import { afterEach, expect, test, vi } from "vitest";
import { mostBytes, readRemote } from "../chapters/checkpoint_remote";

const address = new URL("https://models.test/org/small/resolve/main/model.safetensors?download=1");
const beside = "https://models.test/org/small/resolve/main/";

/** Answers requests as `give` says, by the address; gives what was asked for. */
function answers(give: (url: string) => Response): [string, RequestInit][] {
  const asked: [string, RequestInit][] = [];
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => {
    asked.push([String(url), init]);
    return give(String(url));
  });
  return asked;
}
const read = () => readRemote(address, () => {}, new AbortController().signal);
const missing = () => new Response("", { status: 404 });

afterEach(() => void vi.unstubAllGlobals());

test("a checkpoint is read with what is beside it, and nothing of the reader's is sent", async () => {
  const asked = answers((url) => (url.endsWith("config.json") ? missing() : new Response(url)));
  const files = await read();
  expect(files.map(({ name }) => name)).toEqual(["small/model.safetensors", "small/tokenizer.json"]);
  expect(await files[0]!.data.text()).toBe(String(address));
  expect(asked.map(([url]) => url)).toEqual([String(address), `${beside}config.json`, `${beside}tokenizer.json`]);
  for (const [, { credentials, referrerPolicy, method }] of asked)
    expect([credentials, referrerPolicy, method]).toEqual(["omit", "no-referrer", undefined]);
});

test("what the site refuses is said with its reason", async () => {
  answers(missing);
  await expect(read()).rejects.toThrow("models.test has no model.safetensors");
  answers(() => new Response("", { status: 403 }));
  await expect(read()).rejects.toThrow("models.test does not give model.safetensors: 403");
  answers(() => {
    throw new TypeError("Failed to fetch");
  });
  await expect(read()).rejects.toThrow("models.test cannot be reached, or does not let other sites read");
});

test("no more is read than the limit, whatever length the site states", async () => {
  let given = 0;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull: (stream) => {
        given += 1e7;
        stream.enqueue(new Uint8Array(1e7));
      },
    });
  answers(() => new Response(endless(), { headers: { "content-length": String(mostBytes + 1) } }));
  await expect(read()).rejects.toThrow("model.safetensors has 601 MB, and at most 600 MB are read from another site");
  expect(given).toBeLessThanOrEqual(1e7);
  answers(() => new Response(endless(), { headers: { "content-length": "5" } }));
  await expect(read()).rejects.toThrow("at most 600 MB are read from another site");
  expect(given).toBeLessThan(mostBytes + 4e7);
});
