/**
 * Where the reader was on each page of this tab's history: back, forward and reload return there. The browser itself
 * cannot, since a chapter is as long as its figures only when they are drawn.
 */
const kept = "places";
/** Milliseconds after a chapter is ready in which its figures may still move the place. */
const settling = 3000;

const places = new Map<string, number>(Object.entries(read()));
let here = "";
let returning = new AbortController();

function read(): Record<string, number> {
  try {
    return JSON.parse(sessionStorage.getItem(kept) ?? "{}") as Record<string, number>;
  } catch {
    // Storage may be refused.
    return {};
  }
}

/** Keeps the places over a reload. */
export function keepPlaces(): void {
  history.scrollRestoration = "manual";
  addEventListener("pagehide", () => {
    places.set(here, scrollY);
    try {
      sessionStorage.setItem(kept, JSON.stringify(Object.fromEntries(places)));
    } catch {
      // As above.
    }
  });
}

/** Remembers the place on the page that is left, and finds out which page of the history it is left for. */
export function leavePlace(): void {
  returning.abort();
  if (here !== "") places.set(here, scrollY);
  const state = history.state as { place?: string } | null;
  here = state?.place ?? `${Date.now()} ${Math.random()}`;
  history.replaceState({ place: here }, "");
}

/** Scrolls to where the page was left: now and whenever its length changes, until it has settled or the reader moves. */
export function returnToPlace(page: HTMLElement, ready: Promise<void>): void {
  const y = places.get(here) ?? 0;
  scrollTo(0, y);
  if (y === 0) return;
  returning = new AbortController();
  const { signal } = returning;
  const lengths = new ResizeObserver(() => scrollTo(0, y));
  lengths.observe(page);
  signal.addEventListener("abort", () => lengths.disconnect());
  const end = returning.abort.bind(returning);
  for (const move of ["wheel", "touchstart", "keydown", "pointerdown"])
    addEventListener(move, () => end(), { passive: true, signal });
  void ready.finally(() => setTimeout(end, settling));
}
