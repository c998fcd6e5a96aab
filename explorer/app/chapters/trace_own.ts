import type { NamedFile } from "../../engine/checkpoint";
import type { Engine } from "../../engine/client";
import { modelFiles, readFiles, tokensOf, Tracer } from "../../engine/trace";
import type { TokenTrace } from "../../generated/token-trace";
import { button, el, name } from "../../shared/dom";
import { number } from "../../shared/format";
import type { Page } from "../chapter";
import { controls } from "../controls";
import { dropZone } from "../drop";
import type { State } from "./trace_state";

/** A model of the reader's, open in the core. */
export interface OwnModel {
  engine: Engine;
  title: string;
  tracer: Tracer;
}

/** It stays when the chapter is left. */
let kept: OwnModel | null = null;

export const ownModel = (engine: Engine): OwnModel | null => (kept?.engine === engine ? kept : null);

/** What is traced first. */
const firstText = ({ limits }: Tracer): string => (limits.unspelled === "" ? "Once upon a time" : "0 1 2");

export const traceOwn = ({ tracer }: OwnModel, text: string): Promise<TokenTrace> => {
  const given = text === "" ? firstText(tracer) : text;
  return tracer.limits.unspelled === ""
    ? tracer.trace(given)
    : Promise.resolve().then(() => tracer.traceTokens(tokensOf(given)));
};

const titleOf = (files: NamedFile[]): string => {
  const named = files.map((file) => file.name);
  const folder = named[0]?.includes("/") ? named[0].split("/")[0] : undefined;
  return folder ?? named.find((one) => /\.(safetensors|gguf)$/.test(one)) ?? "a model";
};

/** A place for what is under way or went wrong. */
export function noticePlace(): { element: HTMLElement; say(words: string, alarm?: boolean): void } {
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

/** Opens a model of the reader's and asks for a text. `changed` is called when another model is to be traced. */
export function mountOwn(page: Page<State>, changed: () => void): { show(): void } {
  const input = el("input", {
    id: "trace-text",
    type: "text",
    maxlength: 300,
    autocomplete: "off",
    spellcheck: "false",
  });
  let later: number | undefined;
  input.addEventListener("input", () => {
    // A larger model takes seconds a text, so it waits until one pauses.
    clearTimeout(later);
    later = setTimeout(() => page.store.commit({ text: input.value, at: 0 }), 350);
  });
  page.onLeave(() => clearTimeout(later));
  const label = el("label", { for: "trace-text" }, "Text");
  const facts = el("p", { class: "readout" });
  const forget = () => {
    void kept?.tracer.delete();
    kept = null;
  };
  const close = button(
    "Back to the words",
    () => {
      forget();
      page.store.commit({ text: "", at: page.store.defaults.at });
      changed();
    },
    { class: "quiet" },
  );
  const asked = controls("Text for your model", el("div", { class: "control word" }, label, input), close);
  const open = async (dropped: Promise<NamedFile[]>): Promise<void> => {
    notice.say("Opening the model…");
    try {
      const files = modelFiles(await dropped);
      const title = titleOf(await dropped);
      const tracer = await Tracer.open(page.whole(), await readFiles(files));
      forget();
      kept = { engine: page.whole(), title, tracer };
      page.store.commit({ text: firstText(tracer), at: 0 });
      notice.say("");
      changed();
      page.slot("word").scrollIntoView({ block: "start" });
    } catch (error) {
      notice.say(messageOf(error), true);
    }
  };
  const notice = noticePlace();
  page.slot("own").append(
    dropZone((files) => void open(files)),
    notice.element,
  );
  facts.hidden = asked.hidden = true;
  page.slot("word").prepend(facts, asked);
  return {
    show() {
      const own = ownModel(page.whole());
      facts.hidden = asked.hidden = own === null;
      if (own === null) return;
      const { architecture, parameters, vocabulary, unspelled } = own.tracer.limits;
      label.textContent = unspelled === "" ? "Text" : "Tokens, as numbers";
      if (document.activeElement !== input) input.value = page.store.get().text;
      facts.replaceChildren(
        name(own.title),
        `: ${architecture}, ${number(parameters / 1e6)} million parameters, ${vocabulary} tokens.` +
          (unspelled === "" ? "" : ` Texts cannot be read: ${unspelled}.`),
      );
    },
  };
}
