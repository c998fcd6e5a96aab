// The service worker: keeps every file of the site, so that it opens without a network once it has been seen.
export {};
declare const FILES: string[];
declare const VERSION: string;

interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetch extends Extendable {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

const cacheName = `normscope-${VERSION}`;

self.addEventListener("install", (event) => {
  const work = caches.open(cacheName).then((cache) => cache.addAll(["./", ...FILES]));
  (event as Extendable).waitUntil(work);
});

self.addEventListener("activate", (event) => {
  const work = caches
    .keys()
    .then((keys) =>
      Promise.all(
        keys.filter((key) => key.startsWith("normscope-") && key !== cacheName).map((key) => caches.delete(key)),
      ),
    );
  (event as Extendable).waitUntil(work);
});

self.addEventListener("fetch", (event) => {
  const { request } = event as Fetch;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  // Network first; the cache answers when the server cannot be reached.
  const answer = fetch(request).catch(async (error: unknown) => {
    const kept = await caches.match(request, { ignoreSearch: true });
    if (kept === undefined) throw error;
    return kept;
  });
  (event as Fetch).respondWith(answer);
});
