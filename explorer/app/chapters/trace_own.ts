import type { NamedFile } from "../../engine/checkpoint";
import type { Engine } from "../../engine/client";
import { modelFiles, mostTokens, readFiles, tokensOf, Tracer } from "../../engine/trace";
import type { TokenTrace } from "../../generated/token-trace";
import { button, el, name } from "../../shared/dom";
import { number, plural } from "../../shared/format";
import type { Page } from "../chapter";
import { controls } from "../controls";
import { dropZone } from "../drop";
import { bundled, defaults } from "./trace_state";
import type { State } from "./trace_state";

/** A model that texts are traced through. */
export interface OpenModel {
  title: string;
  isBundled: boolean;
  tracer: Tracer;
  trace(text: string): Promise<TokenTrace>;
}

const opened = (title: string, tracer: Tracer, isBundled: boolean): OpenModel => ({
  title,
  isBundled,
  tracer,
  trace: (text) =>
    tracer.limits.unspelled === ""
      ? tracer.trace(text)
      : Promise.resolve().then(() => tracer.traceTokens(tokensOf(text))),
});

async function openBundled(engine: Engine): Promise<OpenModel> {
  const files = bundled.files.map(async (name) => {
    const response = await fetch(new URL(`example/${bundled.folder}/${name}`, document.baseURI));
    if (!response.ok) throw new Error(`${name} of the model is not there: ${response.status}`);
    return { name, bytes: new Uint8Array(await response.arrayBuffer()) };
  });
  return opened(bundled.folder, await Tracer.open(engine, await Promise.all(files)), true);
}

/** The models of this page's core, which stay when the chapter is left: the bundled one, and one of the reader's. */
let kept: { engine: Engine; bundled: Promise<OpenModel>; own: OpenModel | null } | null = null;

function modelsOf(engine: Engine): NonNullable<typeof kept> {
  if (kept?.engine === engine) return kept;
  kept = { engine, bundled: openBundled(engine), own: null };
  kept.bundled.catch(() => (kept = null));
  return kept;
}

/** What is traced first. */
const firstText = ({ limits }: Tracer): string => (limits.unspelled === "" ? "Once upon a time" : "0 1 2");

const titleOf = (files: NamedFile[]): string => {
  const named = files.map((file) => file.name);
  const folder = named[0]?.includes("/") ? named[0].split("/")[0] : undefined;
  return folder ?? named.find((one) => /\.(safetensors|gguf)$/.test(one)) ?? "a model";
};

interface Notice {
  element: HTMLElement;
  say(words: string, alarm?: boolean): void;
}

/** A place for what is under way or went wrong. */
export function noticePlace(): Notice {
  const element = el("p", { class: "notice", hidden: true });
  return {
    element,
    say(words, alarm = false) {
      element.setAttribute("role", alarm ? "alert" : "status");
      element.textContent = words;
      element.hidden = words === "";
    },
  };
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A text to type, and a place to drop a model of the reader's. */
export interface Models {
  element: HTMLElement;
  /** The model that is open. */
  open(): Promise<OpenModel>;
  describe(model: OpenModel, trace: TokenTrace): void;
  /** Called when another model has been opened. */
  onChange(changed: () => void): void;
}

/** Milliseconds without a key after which a text is traced: a larger model takes seconds a text. */
const pause = 350;

export function mountModels(page: Page<State>, notice: Notice): Models {
  const { store } = page;
  const engine = page.whole();
  let changed = () => {};
  const input = el("textarea", {
    id: "trace-text",
    rows: 2,
    maxlength: 300,
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "none",
  });
  let later: number | undefined;
  input.addEventListener("input", () => {
    clearTimeout(later);
    if (input.value !== "") later = setTimeout(() => store.commit({ text: input.value, at: mostTokens }), pause);
  });
  page.onLeave(() => clearTimeout(later));
  page.onChange(({ text }) => {
    if (document.activeElement !== input) input.value = text;
  });
  const label = el("label", { for: "trace-text" }, "Text");
  const facts = el("p", { class: "readout" });
  const forget = () => {
    const models = modelsOf(engine);
    void models.own?.tracer.delete();
    models.own = null;
  };
  const close = button(
    "Back to the model of this page",
    () => {
      forget();
      store.commit(defaults);
      changed();
    },
    { class: "quiet", hidden: true },
  );
  const own = el("div");
  const openFiles = async (dropped: Promise<NamedFile[]>): Promise<void> => {
    ownNotice.say("Opening the model…");
    try {
      const files = modelFiles(await dropped);
      const title = titleOf(await dropped);
      const tracer = await Tracer.open(engine, await readFiles(files));
      forget();
      modelsOf(engine).own = opened(title, tracer, false);
      ownNotice.say("");
      notice.say("");
      store.commit({ text: firstText(tracer), at: mostTokens });
      changed();
      page.slot("text").scrollIntoView({ block: "start" });
    } catch (error) {
      ownNotice.say(messageOf(error), true);
    }
  };
  const ownNotice = noticePlace();
  own.append(
    dropZone((files) => void openFiles(files)),
    ownNotice.element,
  );
  page.slot("own").append(own);
  return {
    element: el(
      "div",
      {},
      controls("The text", el("div", { class: "control trace-text" }, label, input), close),
      facts,
    ),
    open: () => {
      const models = modelsOf(engine);
      return models.own === null ? models.bundled : Promise.resolve(models.own);
    },
    describe(model, trace) {
      const { architecture, parameters, vocabulary, unspelled } = model.tracer.limits;
      close.hidden = model.isBundled;
      label.textContent = unspelled === "" ? "Text" : "Tokens, as numbers";
      const layers = new Set(trace.attention.map(({ layer }) => layer)).size;
      facts.replaceChildren(
        name(model.title),
        `: ${architecture}, ${plural(layers, "layer")}, ${plural(trace.attention.length, "head")}, ` +
          `${number(parameters / 1e6)} million parameters, ${vocabulary} tokens.` +
          (unspelled === "" ? "" : ` Texts cannot be read: ${unspelled}.`),
      );
    },
    onChange: (then) => (changed = then),
  };
}
