import { newest } from "../../engine/client";
import type { Engine } from "../../engine/client";
import { Tracer } from "../../engine/trace";
import type { TokenTrace } from "../../generated/token-trace";
import { button, el } from "../../shared/dom";
import { chapter } from "../chapter";
import type { Page } from "../chapter";
import { controls } from "../controls";
import { cppOf } from "../doors";
import { figure } from "../figure";
import type { Table } from "../figure";
import { boundInText, numberInText } from "../numbers";
import { player } from "../player";
import { riechers, brody, gupta } from "../sources";
import { messageOf, mountOwn, noticePlace, ownModel, traceOwn } from "./trace_own";
import { bars, keys, keyTable, named, nextTable, normCards, normTable, readout, spoken } from "./trace_pictures";
import { cleaned, defaults, longest, nexts, rules } from "./trace_state";
import type { State } from "./trace_state";
import text from "./trace.html";

const model = "wordlist_gpt";

let opened: { engine: Engine; tracer: Promise<Tracer> } | null = null;

/** The model in the core of this page, read once. */
function tracerOf(engine: Engine): Promise<Tracer> {
  if (opened?.engine === engine) return opened.tracer;
  const files = Promise.all(
    ["config.json", "model.safetensors", "vocab.json"].map(async (name) => {
      const response = await fetch(new URL(`example/${model}/${name}`, document.baseURI));
      if (!response.ok) throw new Error(`${name} of the model is not there: ${response.status}`);
      return { name, bytes: new Uint8Array(await response.arrayBuffer()) };
    }),
  );
  const tracer = files.then((read) => Tracer.open(engine, read));
  tracer.catch(() => (opened = null));
  opened = { engine, tracer };
  return tracer;
}

const wordTraced = async (engine: Engine, word: string): Promise<TokenTrace> =>
  (await tracerOf(engine)).trace(`\n${word}`);

const positionOf = (state: State, trace: TokenTrace): number => Math.min(state.at, trace.tokens.length - 1);

/** The tokens of the end of a line and a word, as models/wordlist_gpt/vocab.json numbers them. */
const tokensOf = (word: string): string =>
  [0, ...Array.from(word, (one) => (one === "'" ? 1 : one.charCodeAt(0) - 95))].join(",");

/** Stands for the trace of `word` until there is one, out of sight, so that nothing moves when it comes. */
function placeholder(word: string): TokenTrace {
  const tokens = ["\n", ...word].map((name) => ({ token: 0, name }));
  const token = { length: 0, ones_share: 0, sigma: 0, radius: 0, place: [] };
  const likely = { token: 0, name: "a", logit: 0, probability: 0, reach: null };
  return {
    schema: "normscope.token-trace/1",
    version: "",
    path: "",
    architecture: "",
    tokens,
    norms: Array.from({ length: 9 }, (_, i) => ({
      ...{ name: `h.${i}.ln_1`, role: "", layer: i, kind: "layer", centers: true, width: 64, eps: 0, axes: [] },
      tokens: tokens.map(() => token),
    })),
    heads: Array.from({ length: 16 }, (_, i) => ({
      ...{ layer: i >> 2, head: i % 4, key: i % 4, norm: "", selectable: [], undecided: [], refused: "" },
    })),
    key_positions: tokens.length,
    predictions: tokens.map(() => ({ likeliest: Array.from({ length: 10 }, () => likely), next: null })),
    final_norm: "",
    reach_refused: "",
    notes: [],
  };
}

/** Letter by letter through the word, or as far as the model has read. */
const reader = (page: Page<State>, seen: HTMLElement, last: () => number): HTMLElement =>
  player(page, {
    read: (state) => state.at,
    write: (value) => ({ at: Math.floor(value) }),
    from: 0,
    to: last,
    pace: 700,
    seen: { element: seen, opens: true, until: defaults.at },
  });

function wordControls(page: Page<State>): { element: HTMLElement; show(trace: TokenTrace, chosen: number): void } {
  const input = el("input", {
    id: "trace-word",
    type: "text",
    maxlength: longest,
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "none",
  });
  input.addEventListener("input", () => {
    const word = cleaned(input.value);
    if (word !== input.value) input.value = word;
    if (word !== "") page.store.drag({ word, at: word.length });
  });
  input.addEventListener("change", () => page.store.commit());
  page.onChange(({ word }) => {
    if (cleaned(input.value) !== word) input.value = word;
  });
  const row = el("div", { class: "trace-letters", role: "group", "aria-label": "Chosen letter" });
  const asked = el("div", { class: "control" }, el("label", { for: "trace-word" }, "Word, a to z"), input);
  const element = controls("The word", el("div", { class: "trace-word" }, asked, row));
  return {
    element,
    show(trace, chosen) {
      asked.hidden = ownModel(page.whole()) !== null;
      while (row.children.length > trace.tokens.length) row.lastElementChild?.remove();
      while (row.children.length < trace.tokens.length) {
        const position = row.children.length;
        row.append(button("", () => page.store.commit({ at: position })));
      }
      trace.tokens.forEach((token, position) => {
        const one = row.children[position] as HTMLButtonElement;
        one.textContent = named(token);
        one.setAttribute(
          "aria-label",
          `${token.name === null ? named(token) : spoken(token.name)}, position ${position}`,
        );
        one.setAttribute("aria-pressed", String(position === chosen));
      });
    },
  };
}

export default chapter<State>({
  text,
  defaults,
  rules,
  sources: [riechers, brody, gupta],
  presets: [
    {
      name: "A word half read",
      claim:
        "After “unders” a t leads with 39 %, and h, i and e are not far behind: the model does not know the word yet. Choose the letters after it.",
      state: { at: 6 },
    },
    {
      name: "Only q knows",
      claim: "After q comes u, with 98 %: one letter decides the next.",
      state: { word: "quick", at: 1 },
    },
    {
      name: "Nobody's word",
      claim: "No word is spelled “zzzzzzzz”, yet each z lands on the same ellipsoids as the letters of words do.",
      state: { word: "zzzzzzzz", at: 8 },
    },
  ],
  doors: ({ word }) => ({
    command: `normscope trace models/${model} --tokens ${tokensOf(word)}`,
    cpp: cppOf(
      ["files/checkpoint", "forward/tokenizer", "analysis/trace", "models/model"],
      `const normscope::files::Checkpoint checkpoint("models/${model}");
const auto model = normscope::models::describe(checkpoint);
const normscope::forward::Tokenizer tokenizer("models/${model}/vocab.json", model.vocabulary->size);
const auto trace = normscope::analysis::trace(checkpoint, model, tokenizer.encode("\\n${word}"));
for (const auto& norm : trace.norms) {
  fmt::print("{} divides the last letter by {}\\n", model.norms[norm.norm].name, norm.tokens.back().sigma);
}`,
    ),
    python: `import json, subprocess

words = ["normscope", "trace", "models/${model}", "--tokens", "${tokensOf(word)}", "--json", "-"]
trace = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
for norm in trace["norms"]:
    print(norm["name"], norm["tokens"][-1]["sigma"])
`,
  }),
  async mount(page) {
    let shown: { trace: TokenTrace; chosen: number } | null = null;
    const word = wordControls(page);
    const lastPosition = () => (shown?.trace.tokens.length ?? defaults.word.length + 1) - 1;
    word.element.append(reader(page, page.slot("word"), lastPosition));
    page.slot("word").append(word.element);
    const position = {
      read: (state: State) => Math.min(state.at, lastPosition()),
      write: (at: number) => ({ at: Math.min(at, lastPosition()) }),
    };
    boundInText(page, "at", "position of the chosen letter, in the text", position, { min: 0, max: longest, step: 1 });
    numberInText(page, "likeliest tokens, in the text", "next", { ...nexts, step: 1 });
    const cards = el("div", { class: "trace-norms" });
    const keyHost = el("div", {
      class: "trace-scroll",
      tabindex: 0,
      role: "region",
      "aria-label": "Keys of each head",
    });
    const next = el("div", { class: "trace-next", role: "list", "aria-label": "Likeliest next tokens" });
    const empty: Table = { columns: [], rows: [] };
    const parts: [string, HTMLElement, string, (trace: TokenTrace, chosen: number) => Table][] = [
      ["norms", cards, "The letters on the ellipsoid of each norm, along its two longest axes.", normTable],
      ["keys", keyHost, "The keys of the word that each head can select.", (trace) => keyTable(trace)],
      ["next", next, "The likeliest tokens after the chosen letter.", nextTable],
    ];
    for (const [name, content, caption, table] of parts) {
      page.slot(name).append(
        figure({
          id: `trace-${name}`,
          content,
          caption,
          table: () => (shown === null ? empty : table(shown.trace, shown.chosen)),
        }),
      );
    }
    const show = (trace: TokenTrace, state: State) => {
      const chosen = positionOf(state, trace);
      shown = { trace, chosen };
      word.show(trace, chosen);
      cards.replaceChildren(...normCards(trace, chosen));
      keyHost.replaceChildren(keys(trace, chosen));
      next.replaceChildren(...bars(trace, chosen, state.next));
      cards.closest("figure")!.dataset["at"] = String(chosen);
      page.slot("readout").textContent = readout(trace, chosen);
    };
    const arrived = (word: string) => (cards.closest("figure")!.dataset["word"] = word);
    const notice = noticePlace();
    page.slot("word").append(notice.element);
    let last: { key: string; trace: TokenTrace } | null = null;
    const draw = newest(async (state: State) => {
      const from = ownModel(page.whole());
      const key = from === null ? state.word : `${from.title}: ${state.text}`;
      own.show();
      if (last?.key !== key) {
        if (from !== null) notice.say("The model runs…");
        try {
          last = {
            key,
            trace: await (from === null ? wordTraced(page.whole(), state.word) : traceOwn(from, state.text)),
          };
        } catch (error) {
          return notice.say(messageOf(error), true);
        }
        notice.say("");
      }
      show(last.trace, state);
      arrived(key);
      page.say(page.slot("readout").textContent ?? "");
    });
    const own = mountOwn(page, () => draw(page.store.get()));
    own.show();
    let alive = true;
    page.onLeave(() => (alive = false));
    const first = page.store.get();
    const hosts = ["readout", "norms", "keys", "next"].map((name) => page.slot(name));
    if (ownModel(page.whole()) === null) {
      for (const host of hosts) host.style.visibility = "hidden";
      show(placeholder(first.word), first);
      last = { key: first.word, trace: await wordTraced(page.whole(), first.word) };
      if (!alive) return;
      show(last.trace, first);
      for (const host of hosts) host.style.visibility = "";
      arrived(first.word);
    }
    page.onChange(draw);
  },
});
