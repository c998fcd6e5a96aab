import { newest } from "../../engine/client";
import type { Engine } from "../../engine/client";
import { hierarchy, judge, range } from "../../engine/counting";
import type { Cell, Language, Range } from "../../engine/counting";
import type { EncoderClass, Hierarchy } from "../../generated/hierarchy";
import { button, definitions, el, table } from "../../shared/dom";
import { chapter } from "../chapter";
import type { Page } from "../chapter";
import { choice, controls, slider } from "../controls";
import { cppOf, pythonOf } from "../doors";
import { figure } from "../figure";
import { matching, oneOf, whole } from "../link";
import { boundInText, numberInText } from "../numbers";
import { player } from "../player";
import { merrill, weiss } from "../sources";
import { mark } from "../svg";
import { showStates } from "./counting_pictures";
import { defaults, languageOf, languages, powers } from "./counting_state";
import type { State } from "./counting_state";
import text from "./counting.html";

const lengths = { min: 1, max: 400 };
const longestWord = 2000;
/** The most letters of a kind that the numbers in the text give a word. */
const mostLetters = 150;
const cells: Cell[] = ["lstm", "gru"];
/** Number of members tested for the table of ranges; the cost grows with its square. */
const most = 250;

export default chapter<State>({
  text,
  defaults,
  rules: {
    language: oneOf(Object.keys(languages)),
    n: whole(lengths),
    word: matching(new RegExp(`^.{0,${longestWord}}$`, "s"), `a word of no more than ${longestWord} letters`),
    field: matching(/^[a-z-]+$/, "the name of a class of the table"),
  },
  sources: [weiss, merrill],
  presets: [
    {
      name: "As trained",
      claim:
        "Both accept the member. Only the LSTM counted, and only it refuses every other number of b’s: see how far each is right.",
      state: { n: 60 },
    },
    {
      name: "Three times further",
      claim:
        "Three times the trained length: the counter goes up and down as before; the GRU shows nothing that grows.",
      state: { n: 300 },
    },
    {
      name: "Three letters",
      claim: "For aⁿbⁿcⁿ several units count at once, up in one block and down in another.",
      state: { language: "anbncn", n: 60, word: "aabbcc" },
    },
  ],
  doors: (state) => ({
    command: `normscope nets count --cell lstm --language ${languageOf(state)} -n ${state.n} --figures figures`,
    cpp: cppOf(
      ["nets/rnn/counting", "nets/rnn/network"],
      `using namespace normscope::nets::rnn;
const Network& network = trained(CellKind::lstm, Language::${languageOf(state)});
fmt::print("{}\\n", accepts(network, member(Language::${languageOf(state)}, ${state.n})));`,
    ),
    python: pythonOf(["nets", "count", "--cell", "lstm", "--language", languageOf(state), "-n", String(state.n)]),
  }),
  async mount(page) {
    const n = { ...lengths, step: 1 };
    numberInText(page, "n, in the text", "n", n);
    const [lstm, gru] = [showStates(page, "lstm"), showStates(page, "gru")];
    const grow = player(page, {
      read: (state) => state.n,
      write: (value) => ({ n: Math.round(value) }),
      from: 4,
      to: () => defaults.n,
      pace: 90,
      seen: { element: lstm.element, opens: true },
    });
    page
      .slot("controls")
      .append(
        controls(
          "Words",
          choice(page, "Language", "language", Object.entries(languages)),
          slider(page, "n", "n", n),
          grow,
        ),
      );
    // Both networks show the same n, also while it moves.
    let drawn = "";
    const draw = async (next: State): Promise<void> => {
      const key = `${next.language} ${next.n} ${page.store.moving}`;
      if (key === drawn) return;
      drawn = key;
      for (const show of await Promise.all([lstm.read(next), gru.read(next)])) show();
    };
    const ready = new Promise<void>((done, fail) =>
      page.onChange(newest((next: State) => draw(next).then(done, fail))),
    );
    rangesOf(page);
    wordOf(page);
    mapOf(page, await hierarchy(page.engine));
    await ready;
  },
});

const known = new Map<Language, Range[]>();
/** The range of each network: nothing but the language changes it, so it is asked for until there is an answer. */
async function rangesIn(engine: Engine, language: Language): Promise<Range[]> {
  const found = known.get(language) ?? (await Promise.all(cells.map((cell) => range(engine, cell, language, most))));
  known.set(language, found);
  return found;
}

/** Members up to `most`: a strip a cell, tall where the member is accepted and nothing else is. */
function rangesOf(page: Page<State>): void {
  const slot = page.slot("range");
  let shown = "";
  const draw = newest(async (state: State) => {
    const language = languageOf(state);
    if (shown === language) return;
    shown = language;
    slot.replaceChildren(el("p", { class: "muted" }, "Asking both networks about every word near a member…"));
    const found = await rangesIn(page.engine, language);
    slot.replaceChildren(
      ...found.map((one, i) => strip(cells[i] ?? "lstm", one)),
      el(
        "p",
        { class: "muted" },
        `A bar for each n from 1 to ${most}: tall where the member is accepted and no word near it is, short elsewhere.`,
      ),
    );
  });
  page.onChange(draw);
}

/** The first n that `exactTo` asks about. */
const leastAsked = 5;
const rightFor = (exactTo: number): string =>
  exactTo < leastAsked
    ? `not every answer is right at n = ${leastAsked}`
    : exactTo === leastAsked
      ? `every answer right at n = ${leastAsked}, but not at ${leastAsked + 1}`
      : `every answer right from n = ${leastAsked} to ${exactTo}${exactTo >= most ? " and perhaps beyond" : ""}`;

function strip(cell: Cell, { member, another, exactTo }: Range): HTMLElement {
  const right = member.map((yes, n) => yes && !another[n]);
  const name = cell.toUpperCase();
  const says = `${name}: ${rightFor(exactTo)}.`;
  const bars = right.slice(1).map((good, i) => {
    const height = good ? 20 : 6;
    return mark("rect", { x: i, y: 20 - height, width: 1.02, height, class: good ? "right" : "wrong" });
  });
  const svg = mark(
    "svg",
    { viewBox: `0 0 ${most} 20`, preserveAspectRatio: "none", class: "strip", role: "img", "aria-label": says },
    ...bars,
  );
  const element = figure({
    id: `range-${cell}`,
    content: el("div", {}, svg, axis()),
    caption: says,
    table: () => ({
      columns: ["n", "member accepted", "another accepted"],
      rows: member.map((yes, n) => [n, Number(yes), Number(another[n])]),
    }),
  });
  element.dataset["exactTo"] = String(exactTo);
  return element;
}

/** Values of n under a strip, each under the middle of its bar. */
function axis(): SVGSVGElement {
  const svg = mark("svg", { class: "strip-axis", "aria-hidden": "true" });
  for (const n of [1, 50, 100, 150, 200, most]) {
    const x = `${(100 * (n - 0.5)) / most}%`;
    const anchor = n === 1 ? "start" : n === most ? "end" : "middle";
    svg.append(
      mark("line", { x1: x, x2: x, y1: 1, y2: 5 }),
      mark("text", { x, y: 17, "text-anchor": anchor }, n === 1 ? "n = 1" : String(n)),
    );
  }
  return svg;
}

/** The counts of the word's letters in the text; they make the word a block of each letter. */
function countsOf(page: Page<State>): void {
  const letters = ["a", "b", "c"];
  const countOf = (word: string, letter: string) => word.split(letter).length - 1;
  letters.forEach((letter, place) =>
    boundInText(
      page,
      `word-${place + 1}`,
      `letters ${letter} of the word`,
      {
        read: ({ word }) => countOf(word, letter),
        write: (count) => {
          const { word } = page.store.get();
          return { word: letters.map((one) => one.repeat(one === letter ? count : countOf(word, one))).join("") };
        },
      },
      { min: 0, max: mostLetters, step: 1 },
    ),
  );
  page.onChange((state) => (page.slot("third").hidden = languageOf(state) !== "anbncn"));
}

function wordOf(page: Page<State>): void {
  countsOf(page);
  const input = el("input", {
    id: "asked-word",
    type: "text",
    maxlength: longestWord,
    autocomplete: "off",
    spellcheck: "false",
  });
  input.addEventListener("input", () => page.store.drag({ word: input.value }));
  input.addEventListener("change", () => page.store.commit());
  page.slot("word").append(el("div", { class: "control word" }, el("label", { for: "asked-word" }, "Word"), input));
  const verdict = (yes: boolean) =>
    el("span", { class: yes ? "verdict-yes" : "verdict-no" }, yes ? "member" : "not a member");
  const draw = newest(async (state: State) => {
    if (input.value !== state.word) input.value = state.word;
    const judges = page.slot("judges");
    try {
      const found = await judge(page.engine, languageOf(state), state.word);
      judges.dataset["verdicts"] = [found.member, found.lstm, found.gru, found.constructed].map(Number).join("");
      judges.replaceChildren(
        table(
          "Is the word a member?",
          ["network", "says"],
          [
            ["In truth", verdict(found.member)],
            ["LSTM, trained", verdict(found.lstm)],
            ["GRU, trained", verdict(found.gru)],
            ["LSTM, set by hand", verdict(found.constructed)],
          ],
        ),
      );
    } catch (error) {
      judges.replaceChildren(el("p", { class: "notice" }, error instanceof Error ? error.message : String(error)));
    }
  });
  page.onChange(draw);
}

const spaces: [EncoderClass["space"], string][] = [
  ["constant", "constant"],
  ["logarithmic", "about nᵏ states"],
  ["linear", "about 2ⁿ states"],
];

function mapOf(page: Page<State>, map: Hierarchy): void {
  const fields = new Map<string, HTMLButtonElement>();
  const cell = (rational: boolean, space: EncoderClass["space"]) => {
    const found = map.classes.find((one) => one.rational === rational && one.space === space);
    if (found === undefined) return el("td", {});
    const field = button("", () => page.store.commit({ field: found.id }), { class: "field" });
    field.append(el("b", {}, found.name), el("span", {}, found.members));
    fields.set(found.id, field);
    return el("td", {}, field);
  };
  const row = (rational: boolean, name: string) =>
    el("tr", {}, el("th", { scope: "row" }, name), ...spaces.map(([space]) => cell(rational, space)));
  page
    .slot("map")
    .append(
      el(
        "table",
        { class: "hierarchy" },
        el("caption", { class: "offscreen" }, "Architectures by space and by whether they are rational"),
        el("thead", {}, el("tr", {}, el("td", {}), ...spaces.map(([, name]) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, row(false, "not rational"), row(true, "rational")),
      ),
    );
  page.onChange(({ field }) => {
    for (const [id, element] of fields) element.setAttribute("aria-pressed", String(id === field));
    const chosen = map.classes.find(({ id }) => id === field) ?? map.classes[0];
    if (chosen === undefined) return;
    const members = chosen.members.toLowerCase();
    const about = map.standings.filter(({ architecture }) =>
      members.includes(
        architecture
          .replace(/^two /, "")
          .replace(/ layers?$/, "")
          .split(" (")[0]!
          .toLowerCase(),
      ),
    );
    page.slot("class").dataset["field"] = chosen.id;
    page.slot("class").replaceChildren(
      el("h3", {}, chosen.name),
      el("p", {}, powers(chosen.says)),
      definitions([
        ["Who", chosen.members],
        ["Can, and those below cannot", powers(chosen.example)],
        ["Source", chosen.source],
      ]),
      ...(about.length === 0
        ? []
        : [
            el(
              "div",
              // It scrolls on a phone, by keys too.
              { class: "block", tabindex: 0, role: "group", "aria-label": "What they recognize" },
              table(
                "What they recognize",
                ["architecture", "read by", "language", "recognized", "source"],
                about.map(({ architecture, decoder, language, recognizes, source }) => [
                  architecture,
                  decoder,
                  powers(language),
                  el("span", { class: recognizes ? "verdict-yes" : "verdict-no" }, recognizes ? "yes" : "no"),
                  source,
                ]),
              ),
            ),
          ]),
    );
  });
}
