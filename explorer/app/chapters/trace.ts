import { newest } from "../../engine/client";
import { mostTokens } from "../../engine/trace";
import type { TokenTrace } from "../../generated/token-trace";
import { button, el } from "../../shared/dom";
import { chapter } from "../chapter";
import type { Page } from "../chapter";
import { controls } from "../controls";
import { cppOf } from "../doors";
import { figure, ready } from "../figure";
import type { Table } from "../figure";
import { boundInText, numberInText } from "../numbers";
import { player } from "../player";
import { riechers, brody, gupta } from "../sources";
import { svgPixels, svgText } from "../svg";
import { messageOf, mountModels, noticePlace } from "./trace_own";
import type { OpenModel } from "./trace_own";
import { draw } from "./trace_picture";
import type { Drawn, NormSteps } from "./trace_picture";
import { titleOf } from "./trace_removal";
import type { Removal } from "./trace_removal";
import { bundled, defaults, firstLayer, nexts, rules } from "./trace_state";
import type { State } from "./trace_state";
import { captionOf, headsOf, lostAt, spoken, stepsOf, weightsAt } from "./trace_steps";
import type { Step } from "./trace_steps";
import text from "./trace.html";

/** What is on show: a text through a model, and what its norms make of one token. */
interface Shown {
  trace: TokenTrace;
  steps: Step[];
  at: number;
  position: number;
  norms: NormSteps | undefined;
  removal: Removal | undefined;
}

const clamp = (value: number, last: number): number => Math.max(0, Math.min(value, last));

/** Stands for the trace of the first text until there is one, so that nothing moves when it comes. */
function placeholder(text: string): TokenTrace {
  const tokens = Array.from({ length: bundled.tokens }, (_, i) => ({ token: 0, name: text.split(/\b/)[2 * i] ?? "a" }));
  const token = { length: 0, added: 0, ones_share: 0, sigma: 0, radius: 0, place: [] };
  const names = Array.from({ length: 2 * bundled.layers + 1 }, (_, i) => `norm ${i}`);
  const likely = { token: 0, name: "a", logit: 0, probability: 0, reach: null };
  return {
    schema: "normscope.token-trace/1",
    version: "",
    path: "",
    architecture: "",
    tokens,
    norms: names.map((name, i) => ({
      ...{ name, role: "", layer: i >> 1, kind: "layer", centers: true, width: 1, eps: 0, axes: [] },
      readers: i === 2 * bundled.layers ? ["unembedding"] : i % 2 === 0 ? ["attention"] : ["mlp"],
      tokens: tokens.map(() => token),
    })),
    heads: [],
    key_positions: tokens.length,
    first_query: 0,
    attention: Array.from({ length: bundled.layers * bundled.heads }, (_, i) => ({
      ...{ layer: Math.floor(i / bundled.heads), head: i % bundled.heads, key: 0, weights: [] },
      norm: names[2 * Math.floor(i / bundled.heads)]!,
    })),
    predictions: tokens.map(() => ({ likeliest: Array.from({ length: 10 }, () => likely), next: null })),
    final_norm: "",
    reach_refused: "",
    notes: [],
  };
}

/** The numbers of the step that is open. */
function tableOf({ trace, steps, at, position, removal }: Shown): Table {
  const step = steps[at]!;
  const named = trace.tokens.map(({ name }) => spoken(name));
  if (step.kind === "next")
    return {
      columns: ["token", "logit", "probability", "in reach"],
      rows: trace.predictions[position]!.likeliest.map(({ name, logit, probability, reach }) => [
        ...[spoken(name), logit ?? "", probability ?? "", reach ?? ""],
      ]),
    };
  if (step.kind === "removal" && removal !== undefined)
    return {
      columns: ["component", "frozen", "price", "exact"],
      rows: removal.effects.components.map(({ name, frozen, price, exact }) => [name, frozen, price, exact]),
    };
  if (step.kind === "heads")
    return {
      columns: ["head", "key", "token", "weight", "lost"],
      rows: headsOf(trace, step.norm).flatMap((head) => {
        const lost = new Set(lostAt(trace, head, position));
        return (weightsAt(trace, head, position) ?? []).map((weight, key) => [
          ...[head.head, key, named[key]!, weight, lost.has(key) ? "yes" : "no"],
        ]);
      }),
    };
  return {
    columns: ["norm", "length", "added", "share along all-ones", "sigma", "radius", "place on axis 1", "on axis 2"],
    rows: trace.norms.map(({ name, tokens }) => {
      const { length, added, ones_share, sigma, radius, place } = tokens[position]!;
      return [name, ...[length, added, ones_share, sigma, radius, place[0], place[1]].map((value) => value ?? "")];
    }),
  };
}

/** A picture that a pointer and the arrow keys move through. */
function pictureOf(page: Page<State>): { element: HTMLElement; show(shown: Shown): void; svg(): SVGSVGElement | null } {
  const { store } = page;
  const element = el("div", {
    class: "trace-picture",
    tabindex: 0,
    role: "group",
    "aria-label":
      "The text through the model. Up and down arrows go from step to step, left and right from token to token.",
  });
  let now: { shown: Shown; drawn: Drawn } | null = null;
  const paint = (shown: Shown) => {
    const drawn = draw({ ...shown, next: store.get().next, width: Math.max(300, element.clientWidth) });
    drawn.svg.setAttribute("role", "img");
    drawn.svg.setAttribute("aria-label", captionOf(shown.trace, shown.steps[shown.at]!, shown.position, shown.removal));
    element.replaceChildren(drawn.svg);
    now = { shown, drawn };
  };
  element.addEventListener("click", ({ clientX, clientY }) => {
    if (now === null) return;
    const { left, top } = now.drawn.svg.getBoundingClientRect();
    const { step, position, component } = now.drawn.hit(clientX - left, clientY - top);
    if (component !== null) return store.commit({ without: component === store.get().without ? "" : component });
    // What is open has other things in its columns than tokens.
    const isOpen = step === now.shown.at;
    store.commit({
      ...(step === null || isOpen ? {} : { step }),
      ...(position === null || (isOpen && now.shown.steps[step]!.kind !== "heads") ? {} : { at: position }),
    });
  });
  element.addEventListener("keydown", (event) => {
    if (now === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { shown } = now;
    const [steps, tokens] = [shown.steps.length - 1, shown.trace.tokens.length - 1];
    const moves: Record<string, Partial<State>> = {
      ArrowUp: { step: clamp(shown.at + 1, steps) },
      ArrowDown: { step: clamp(shown.at - 1, steps) },
      ArrowRight: { at: clamp(shown.position + 1, tokens) },
      ArrowLeft: { at: clamp(shown.position - 1, tokens) },
      Home: { step: 0 },
      End: { step: steps },
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    store.commit(move);
  });
  const sizes = new ResizeObserver(() => {
    if (now !== null && now.drawn.svg.clientWidth !== element.clientWidth) paint(now.shown);
  });
  sizes.observe(element);
  page.onLeave(() => sizes.disconnect());
  return { element, show: paint, svg: () => now?.drawn.svg ?? null };
}

/** A choice of what is removed, on show at the last step. */
function removalChoice({ store }: Page<State>): { element: HTMLElement; show(removal: Removal | undefined): void } {
  const input = el("select", { id: "trace-without" });
  input.addEventListener("change", () => store.commit({ without: input.value }));
  const element = el("div", { class: "control", hidden: true }, el("label", { for: "trace-without" }, "Remove"), input);
  let listed: Removal["effects"] | null = null;
  return {
    element,
    show(removal) {
      element.hidden = removal === undefined;
      if (removal === undefined) return;
      if (listed !== removal.effects) {
        listed = removal.effects;
        const names = listed.components.map(({ name }) => el("option", { value: name }, titleOf(name)));
        input.replaceChildren(el("option", { value: "" }, "nothing"), ...names);
      }
      input.value = removal.without?.component ?? "";
    },
  };
}

/** What `known`, of the same position, lacks for the last step. */
async function removed(
  { tracer }: OpenModel,
  known: Removal | undefined,
  position: number,
  without: string,
): Promise<Removal> {
  const effects = known?.effects ?? (await tracer.effects(position));
  const index = effects.components.findIndex(({ name }) => name === without);
  if (index < 0) return { effects, without: null };
  if (known?.without?.component === without) return known;
  return { effects, without: { component: without, tokens: await tracer.without(index, nexts.max) } };
}

/** A text as a word of the shell. */
const shellWord = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export default chapter<State>({
  text,
  defaults,
  rules,
  sources: [riechers, brody, gupta],
  presets: [
    {
      name: "A phrase of the book",
      claim: "After “children of” comes Israel, with 91 %, of 1024 tokens. Step down to see which heads look where.",
      state: { text: "And Moses spake unto the children of Israel, saying", at: 6, step: 18 },
    },
    {
      name: "Frozen, or not",
      claim:
        "With σ frozen, the MLP of layer 0 seems to be worth 2.97 of the logit of “be”. Without it the final norm divides by another σ, and the logit falls by 1.64.",
      state: { at: 6, step: 19, without: "0.mlp" },
    },
    {
      name: "A head that knows",
      claim: "Head 2 of layer 2 gives 0.96 of the logit of “be” after “Let there”: freezing says 1.16.",
      state: { at: 6, step: 19, without: "2.2" },
    },
  ],
  doors: ({ text }) => ({
    command: `normscope trace models/${bundled.folder} ${shellWord(text)}`,
    cpp: cppOf(
      ["files/checkpoint", "forward/tokenizer", "analysis/trace", "models/model"],
      `const normscope::files::Checkpoint checkpoint("models/${bundled.folder}");
const auto model = normscope::models::describe(checkpoint);
const normscope::forward::Tokenizer tokenizer("models/${bundled.folder}/${bundled.files.at(-1)}", model.vocabulary->size);
const auto trace = normscope::analysis::trace(checkpoint, model, tokenizer.encode(${JSON.stringify(text)}));
for (const auto& norm : trace.norms) {
  fmt::print("{} divides the last token by {}\\n", model.norms[norm.norm].name, norm.tokens.back().sigma);
}`,
    ),
    python: `import json, subprocess

words = ["normscope", "trace", "models/${bundled.folder}", ${JSON.stringify(text)}, "--json", "-"]
trace = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
for head in trace["attention"]:
    print(head["layer"], head["head"], head["weights"][-1])
`,
  }),
  async mount(page) {
    const { store } = page;
    let shown: Shown | null = null;
    const picture = pictureOf(page);
    const caption = el("p", { class: "readout trace-caption" });
    const placeOf = (trace: TokenTrace, steps: Step[], state: State) => ({
      at: clamp(state.step, steps.length - 1),
      position: clamp(state.at, trace.tokens.length - 1),
    });
    const lastStep = () => (shown?.steps.length ?? defaults.step + 1) - 1;
    const lastPosition = () => (shown?.trace.tokens.length ?? defaults.text.length + 1) - 1;
    const show = (trace: TokenTrace, norms: NormSteps | undefined, removal: Removal | undefined, state: State) => {
      const steps = stepsOf(trace);
      shown = { trace, steps, norms, removal, ...placeOf(trace, steps, state) };
      picture.show(shown);
      const told = captionOf(trace, steps[shown.at]!, shown.position, removal);
      caption.textContent = `${shown.at + 1} of ${steps.length}. ${told}`;
      remove.show(steps[shown.at]!.kind === "removal" ? removal : undefined);
      Object.assign(framed.dataset, { step: shown.at, at: shown.position });
    };
    const remove = removalChoice(page);
    const go = (by: number) => () => shown !== null && store.commit({ step: clamp(shown.at + by, lastStep()) });
    const framed = figure({
      id: "trace",
      content: picture.element,
      svg: () => Promise.resolve(svgText(picture.svg()!)),
      png: () => svgPixels(picture.svg()!),
      table: () => (shown === null ? { columns: [], rows: [] } : tableOf(shown)),
    });
    const play = player(page, {
      read: (state) => clamp(state.step, lastStep()),
      write: (value) => ({ step: Math.floor(value) }),
      from: 0,
      to: lastStep,
      pace: 1600,
      seen: { element: framed, opens: true, until: firstLayer },
    });
    const stepping = controls(
      "Steps",
      button("Back", go(-1), { class: "action" }),
      play,
      button("Next step", go(1), { class: "action" }),
      remove.element,
    );
    page.slot("picture").append(framed, caption, stepping);
    const notice = noticePlace();
    const models = mountModels(page, notice);
    page.slot("text").append(models.element, notice.element);
    boundInText(
      page,
      "at",
      "position of the chosen token, in the text",
      { read: (state) => clamp(state.at, lastPosition()), write: (at) => ({ at: clamp(at, lastPosition()) }) },
      { min: 0, max: mostTokens, step: 1 },
    );
    numberInText(page, "likeliest tokens, in the text", "next", { ...nexts, step: 1 });

    // What the core has answered last.
    let last: { key: string; model: OpenModel; trace: TokenTrace } | null = null;
    let asked: { trace: TokenTrace; position: number; norms: NormSteps; removal: Removal | undefined } | null = null;
    const update = async (state: State): Promise<void> => {
      const model = await models.open();
      const key = `${model.title}: ${state.text}`;
      if (last?.key !== key || last.model !== model) last = { key, model, trace: await model.trace(state.text) };
      const { trace } = last;
      const steps = stepsOf(trace);
      const { at, position } = placeOf(trace, steps, state);
      if (asked?.trace !== trace || asked.position !== position) {
        const values = await model.tracer.normSteps(position);
        asked = { trace, position, norms: { width: trace.norms[0]!.width, values }, removal: undefined };
      }
      if (steps[at]!.kind === "removal") asked.removal = await removed(model, asked.removal, position, state.without);
      show(trace, asked.norms, asked.removal, store.get());
      framed.dataset["text"] = state.text;
      framed.dataset["without"] = asked.removal?.without?.component ?? "";
      models.describe(model, trace);
      page.say(caption.textContent ?? "");
    };
    const redraw = newest(async (state: State) => {
      try {
        await update(state);
        notice.say("");
      } catch (error) {
        notice.say(messageOf(error), true);
      }
    });
    let alive = true;
    page.onLeave(() => (alive = false));
    const first = store.get();
    // Until the core has answered nothing is said, and a poster stands in the picture's place if there is one.
    const waiting = [picture.element, caption];
    for (const part of waiting) part.style.visibility = "hidden";
    show(placeholder(first.text), undefined, undefined, first);
    await update(first).catch((error: unknown) => notice.say(messageOf(error), true));
    if (!alive) return;
    for (const part of waiting) part.style.visibility = "";
    ready(framed);
    models.onChange(() => redraw(store.get()));
    page.onChange(redraw);
  },
});
