import type { Engine } from "../engine/client";
import { el } from "../shared/dom";
import { chapters } from "./chapters";
import { dropAnywhere } from "./drop";
import { hero, reached } from "./hero";
import { Motion } from "./motion";
import type { States } from "./thumbnails";

/** A way into the site, with what stands behind it. */
const entrance = (href: string, label: string, words: string): HTMLElement =>
  el("a", { class: "entrance", href }, el("b", {}, label), el("span", {}, words));

/** The front page: the four steps of a norm, two entrances, and every chapter with a picture that moves. */
export function showContents(main: HTMLElement, engine: Engine): { redraw(): void; leave(): void } {
  const motion = new Motion(reached(3));
  const pictures = chapters.map(({ id }) =>
    el("canvas", { class: "thumbnail-canvas", "data-of": id, "aria-hidden": "true" }),
  );
  main.replaceChildren(
    el(
      "div",
      { class: "hero" },
      el(
        "header",
        {},
        el("h1", {}, "What normalization layers do"),
        el(
          "p",
          {},
          "Before every attention and every MLP block of a transformer stands a normalization layer, a norm for short: " +
            "LayerNorm or RMSNorm. It decides which tokens a head can attend to, bends what straight lines cannot " +
            "separate, and bounds what the model can say.",
        ),
        el(
          "div",
          { class: "entrances" },
          entrance(
            "#/geometry",
            "Learn what a norm does",
            "Ten chapters with figures that you can move, from one vector to a model.",
          ),
          entrance("#/checkpoint", "Check my model", "Drop a checkpoint anywhere on this page. Nothing is uploaded."),
        ),
      ),
      hero(engine, motion),
    ),
    el("h2", { class: "contents-title" }, "The chapters"),
    el(
      "ol",
      { class: "chapters" },
      ...chapters.map(({ id, title, question }, i) =>
        el("li", {}, el("a", { href: `#/${id}` }, pictures[i]!, el("b", {}, title), el("span", {}, question))),
      ),
    ),
    el("p", { class: "hint" }, "Every figure is computed here, in your browser, by the library itself."),
  );
  // In parts of their own, so that words and poster are there first.
  void Promise.all([import("./thumbnails"), import("./thumbnails.json")]).then(
    ([{ thumbnails }, { default: states }]) => {
      for (const [i, { id }] of chapters.entries()) {
        const name = id as keyof States;
        const draw = thumbnails[name] as (state: unknown) => ReturnType<(typeof thumbnails)[typeof name]>;
        motion.add(pictures[i]!, draw((states as unknown as States)[name]), true);
      }
    },
  );
  const stop = dropAnywhere("Drop it to check this model", () => (location.hash = "#/checkpoint"));
  return {
    redraw: () => motion.repaint(),
    leave: () => {
      motion.dispose();
      stop();
    },
  };
}
