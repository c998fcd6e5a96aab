import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
  ".wasm": "application/wasm",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/**
 * Serves the files of `folder` on loopback, as a plain web host would, those of `missing` excepted; gives
 * {url, port, requests, close}.
 */
export async function serve(folder, { port = 0, missing = [] } = {}) {
  const files = new Set(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1)),
  );
  const requests = [];
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    const file = path === "/" ? "index.html" : path.slice(1);
    requests.push(file);
    if (!files.has(file) || missing.includes(file)) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
    response.end(readFileSync(join(folder, file)));
  });
  await new Promise((ready) => server.listen(port, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    port: server.address().port,
    requests,
    close: () => new Promise((done) => (server.closeAllConnections(), server.close(done))),
  };
}
