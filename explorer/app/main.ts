import { Engine, Unloaded } from "../engine/client";
import { button, copyButton, el, slot } from "../shared/dom";
import { startTheme } from "../shared/theme";
import type { Chapter, Page } from "./chapter";
import { chapters } from "./chapters";
import { leaveRemotePage, onRemotePage } from "./chapters/checkpoint_remote";
import { linkSources, references } from "./citations";
import type { Entry } from "./chapters";
import { showContents } from "./contents";
import { fromQuery, toQuery } from "./link";
import type { State } from "./link";
import { keepPlaces, leavePlace, returnToPlace } from "./place";
import { Store } from "./store";

const load = (name: "drawing" | "normscope"): Engine =>
  watched(new Engine(new Worker(new URL("./worker.js", document.baseURI), { type: "module", name })));
const redraws = new Set<() => void>();
const main = slot("main");

/** The chapter on show. */
interface Open {
  entry: Entry;
  chapter: Chapter;
  store: Store<State>;
  leave(): void;
}
let open: Open | null = null;

const hashOf = (entry: Entry, chapter: Chapter, state: State): string => {
  const query = toQuery(state, chapter.defaults);
  return `#/${entry.id}${query === "" ? "" : `?${query}`}`;
};

let toWrite: number | undefined;
/** Writes the address, but rarely while something moves: browsers refuse more than about a hundred changes a minute. */
function writeAddress(hash: () => string, moving: boolean): void {
  if (moving) {
    toWrite ??= setTimeout(() => writeAddress(hash, false), 400);
    return;
  }
  clearTimeout(toWrite);
  toWrite = undefined;
  history.replaceState(history.state, "", hash());
}

let lastSaid = 0;
let toSay: number | undefined;
function say(text: string): void {
  clearTimeout(toSay);
  // What plays would be spoken of every second.
  if (main.querySelector('[data-player="playing"]') !== null) return;
  toSay = setTimeout(
    () => {
      lastSaid = performance.now();
      slot("live").textContent = text;
    },
    Math.max(0, 1000 - (performance.now() - lastSaid)),
  );
}

function toolbar(
  entry: Entry,
  chapter: Chapter,
  store: Store<State>,
  refused: boolean,
  clean: (() => void)[],
): HTMLElement {
  const address = () => hashOf(entry, chapter, store.get());
  const undo = button("↶", () => store.undo(), {
    class: "quiet icon",
    "aria-label": "Undo",
    title: "Undo",
    "aria-keyshortcuts": "Control+Z",
  });
  const redo = button("↷", () => store.redo(), {
    class: "quiet icon",
    "aria-label": "Redo",
    title: "Redo",
    "aria-keyshortcuts": "Control+Shift+Z",
  });
  const reset = button("Reset", () => store.commit(chapter.defaults), { class: "quiet" });
  const claim = el("p", { class: "claim", "aria-live": "polite" });
  const presets = el(
    "select",
    { "aria-label": "Presets" },
    el("option", { value: "" }, "Presets…"),
    ...chapter.presets.map(({ name }, index) => el("option", { value: index }, name)),
  );
  let chosen = chapter.defaults;
  presets.addEventListener("change", () => {
    const preset = chapter.presets[presets.selectedIndex - 1];
    if (preset === undefined) return;
    chosen = { ...chapter.defaults, ...(preset.state as State) };
    store.commit(chosen);
    claim.textContent = preset.claim;
  });
  const doors = el("div", { class: "doors", hidden: true });
  const elsewhere = button("", () => openDoors(doors.hidden), {
    class: "quiet elsewhere",
    title: "What is on show as a link, a command, C++ and Python",
    "aria-expanded": "false",
  });
  elsewhere.append(el("span", {}, "The same "), "elsewhere");
  const showDoors = () => {
    const { command, cpp, python } = chapter.doors(store.get());
    const texts: [string, string][] = [
      ["Link", new URL(address(), location.href).href],
      ["Command", command],
      ["C++", cpp],
      ["Python", python],
    ];
    doors.replaceChildren(
      ...texts.map(([label, text]) =>
        el(
          "div",
          { class: "door" },
          el("b", {}, label),
          copyButton(text, label),
          el("pre", { tabindex: 0, role: "group", "aria-label": label }, text),
        ),
      ),
    );
  };
  const openDoors = (open: boolean) => {
    doors.hidden = !open;
    elsewhere.setAttribute("aria-expanded", String(open));
    if (open) showDoors();
  };
  const update = (link = true) => {
    // The list stays at the preset while it is on show, so that arrow keys go on from it.
    if (toQuery(store.get(), chosen) !== "") presets.value = "";
    undo.disabled = !store.canUndo;
    redo.disabled = !store.canRedo;
    // A reload has the story tell itself again.
    if (link && !store.told) writeAddress(address, store.moving);
    if (!doors.hidden) showDoors();
  };
  clean.push(store.subscribe(() => update()));
  // The address of a link that is refused stays, so that it can be mended.
  update(!refused);
  return el(
    "div",
    { class: "toolbar" },
    el(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "This chapter" },
      chapter.presets.length === 0 ? null : presets,
      undo,
      redo,
      reset,
      elsewhere,
    ),
    claim,
    doors,
  );
}

/** Says what is wrong with a link, whose address stays until another state replaces it. */
function refusal(problems: string[], store: Store<State>, clean: (() => void)[]): HTMLElement {
  const notice = el(
    "div",
    { class: "notice", role: "alert" },
    el("p", {}, "This link does not fit the chapter, which shows its defaults instead:"),
    el("ul", {}, ...problems.map((problem) => el("li", {}, problem))),
    button("Use the defaults", () => store.show({}), { class: "action" }),
  );
  clean.push(
    store.subscribe(() => {
      if (!store.told) notice.remove();
    }),
  );
  return notice;
}

/** Shows the chapter; done when it has been mounted. */
async function mount(entry: Entry, chapter: Chapter, query: string): Promise<void> {
  const { state, problems } = fromQuery(query, chapter.defaults, chapter.rules);
  const store = new Store<State>(chapter.defaults, state);
  const clean: (() => void)[] = [];
  let left = false;
  let arrived = () => {};
  // A chapter that waits for the core may be left before it has made its figures.
  const onLeave = (work: () => void): void => {
    if (left) work();
    else clean.push(work);
  };
  const article = el("article", { id: `chapter-${entry.id}` });
  // The text is part of the program, like the page's own markup, and therefore trusted.
  article.innerHTML = chapter.text;
  linkSources(article, chapter.sources);
  // Posters show what the chapter begins with.
  article.classList.toggle("linked", toQuery(state, chapter.defaults) !== "");
  const page: Page<State> = {
    engine,
    whole: () => (whole ??= load("normscope")),
    store,
    text: article,
    mounted: new Promise((done) => (arrived = done)),
    slot: (name) => {
      const found = article.querySelector<HTMLElement>(`[data-slot="${name}"]`);
      if (found === null) throw new Error(`chapter ${entry.id}: its text has no slot ${name}`);
      return found;
    },
    onChange: (draw) => {
      if (left) return;
      const run = () => draw(store.get());
      onLeave(store.subscribe(run));
      redraws.add(run);
      onLeave(() => redraws.delete(run));
      run();
    },
    onLeave,
    keep: (part) => onLeave(() => part.dispose()),
    say,
  };
  main.replaceChildren(
    el(
      "div",
      { class: "head" },
      el("header", {}, el("h1", {}, entry.title), el("p", { class: "question" }, entry.question)),
      toolbar(entry, chapter, store, problems.length > 0, clean),
    ),
    failure,
    ...(problems.length === 0 ? [] : [refusal(problems, store, clean)]),
    article,
    references(chapter.sources),
    nextLink(entry),
  );
  const leave = () => {
    left = true;
    clean.forEach((work) => work());
  };
  open = { entry, chapter, store, leave };
  try {
    await chapter.mount(page);
    if (!left) document.documentElement.dataset["ready"] = entry.id;
    arrived();
  } catch (error) {
    showFailure(error);
  }
}

let missing = false;
const failure = el("div", { class: "notice", role: "alert", hidden: true });
/** Says on the page what went wrong; that the core is missing outlasts all that follows from it. */
function showFailure(error: unknown): void {
  const said = error instanceof Error ? error.message : String(error);
  if (error instanceof Unloaded) {
    missing = true;
    failure.replaceChildren(
      el("p", {}, `The library that computes the figures could not be loaded: ${said}`),
      button("Try again", () => location.reload(), { class: "action" }),
    );
  } else if (!missing) {
    failure.replaceChildren(el("p", {}, `A figure could not be drawn: ${said}`));
  }
  failure.hidden = false;
}
addEventListener("unhandledrejection", ({ reason }) => showFailure(reason));

/** Milliseconds of loading that nothing is said about. */
const soon = 400;
const loading = el(
  "p",
  { class: "loading", role: "status", hidden: true },
  "Loading the library that computes the figures…",
);
/** Says that the engine is loaded while it is, or that it cannot be. */
function watched(engine: Engine): Engine {
  const late = setTimeout(() => (loading.hidden = false), soon);
  document.body.append(loading);
  loading.hidden = true;
  engine.ready.catch(showFailure).finally(() => {
    clearTimeout(late);
    loading.remove();
  });
  return engine;
}
const engine = load("drawing");
let whole: Engine | null = null;

function nextLink(entry: Entry): HTMLElement {
  const next = chapters[chapters.indexOf(entry) + 1];
  return el(
    "footer",
    {},
    next === undefined
      ? null
      : el("p", {}, "Next: ", el("a", { href: `#/${next.id}` }, next.title), `. ${next.question}`),
  );
}

let frontPage: ReturnType<typeof showContents> | null = null;
let arrivals = 0;
async function arrive(): Promise<void> {
  const [, id = "", query = ""] = /^#\/([a-z]*)(?:\?(.*))?$/.exec(location.hash) ?? [];
  if (onRemotePage() && !(id === "checkpoint" && new URLSearchParams(query).has("url")))
    return leaveRemotePage(location.hash);
  const entry = chapters.find((other) => other.id === id);
  const arrival = ++arrivals;
  leavePlace();
  open?.leave();
  open = null;
  frontPage?.leave();
  frontPage = null;
  if (!missing) failure.hidden = true;
  clearTimeout(toWrite);
  toWrite = undefined;
  delete document.documentElement.dataset["ready"];
  for (const link of document.querySelectorAll<HTMLElement>("nav a")) {
    if (link.getAttribute("href") === `#/${id}`) {
      link.setAttribute("aria-current", "page");
      // On a phone the list is one line, which scrolls.
      slot("chapter-list").scrollLeft = link.offsetLeft - innerWidth / 3;
    } else link.removeAttribute("aria-current");
  }
  document.title = entry === undefined ? "Normscope" : `${entry.title} · Normscope`;
  if (entry === undefined) {
    frontPage = showContents(main, engine);
    main.prepend(failure);
    document.documentElement.dataset["ready"] = "contents";
    returnToPlace(main, Promise.resolve());
  } else {
    const { default: chapter } = await entry.load();
    if (arrival === arrivals) returnToPlace(main, mount(entry, chapter, query));
  }
}

slot("chapter-list").replaceChildren(
  ...chapters.map((entry) => el("li", {}, el("a", { href: `#/${entry.id}` }, entry.title))),
);
keepPlaces();
startTheme(() => {
  redraws.forEach((redraw) => redraw());
  frontPage?.redraw();
});
addEventListener("hashchange", () => void arrive());
addEventListener("keydown", (event) => {
  if (open === null || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  // Where one types, it takes back what was typed.
  const typed = 'input:is([type="text"], [type="number"]), textarea, [contenteditable]';
  if (event.target instanceof Element && event.target.matches(typed)) return;
  event.preventDefault();
  if (event.shiftKey) open.store.redo();
  else open.store.undo();
});
/** Keeps the site for a visit without a network, if it has a service worker; else removes an earlier site's. */
async function keepOffline(): Promise<void> {
  // A registration of the same address would succeed without a look at the server. HEAD is no matter of the worker's.
  const { ok } = await fetch("./offline.js", { method: "HEAD", cache: "no-store" });
  if (ok) return void (await navigator.serviceWorker.register("./offline.js"));
  // `normscope explore` serves none; an earlier program at this port may have left one, and its files.
  for (const worker of await navigator.serviceWorker.getRegistrations()) await worker.unregister();
  for (const key of await caches.keys()) await caches.delete(key);
}
// Without a network or with storage refused, the page works as it is.
if ("serviceWorker" in navigator && !location.search.includes("fresh")) keepOffline().catch(() => {});
void arrive();
