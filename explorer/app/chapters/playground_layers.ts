import { factsOf, isNormalizingKind } from "../../shared/format";
import type { Page } from "../chapter";
import { controls, slider } from "../controls";
import { player } from "../player";
import { between, depths } from "./playground_state";
import type { State } from "./playground_state";

/** Milliseconds of a layer, and of the turn behind the last one. */
const pace = 3200;

/** A moment of the way through the net: a layer's linear map, what follows it, or the turn at the end. */
interface Moment {
  short: string;
  says: string;
}

function momentOf({ layer, depth, kind, width, groups }: State): Moment {
  const at = Math.min(layer, depth + 1);
  if (at <= 0) return { short: "input", says: "The input: every sample where it was drawn." };
  if (at > depth)
    return {
      short: "turned",
      says:
        width === 3
          ? "After the last layer: the picture turns until the plane of the cut is seen edge-on, then around once. The classes lie on its two sides."
          : "After the last layer: the picture turns around once.",
    };
  const number = Math.ceil(at);
  const where = `Layer ${number} of ${depth}`;
  if (at - (number - 1) <= 0.5)
    return {
      short: `${number}: linear`,
      says: `${where}, the linear map: it turns, stretches and shifts all points alike.`,
    };
  const what = between[kind as keyof typeof between];
  const others: Record<string, string> = {
    none: "nothing follows it: the points stay.",
    relu: "ReLU: numbers below zero become zero.",
  };
  const normalized =
    groups > 1
      ? "every group of features moves along its ray onto a sphere of its own."
      : `every point ${factsOf(kind)?.centers ? "loses its mean and then " : ""}moves along its ray onto the sphere.`;
  const follows = isNormalizingKind(kind) ? `the norm: ${normalized}` : (others[kind] ?? what);
  return {
    short: `${number}: ${kind === "none" ? "nothing" : kind === "relu" ? what : "norm"}`,
    says: `${where}, ${follows}`,
  };
}

/** The slider through the layers, its player, and what happens at the moment on show. */
export function mountLayers(page: Page<State>): void {
  const range = { min: 0, max: Math.max(...depths) + 1, step: 0.01, show: () => momentOf(page.store.get()).short };
  const layers = slider(page, "Layer", "layer", range);
  layers.classList.add("wide");
  const input = layers.querySelector("input")!;
  const says = page.slot("layer-says");
  page.onChange((state) => {
    input.max = String(state.depth + 1);
    // The browser has kept the value inside the former range.
    input.value = String(Math.min(state.layer, state.depth + 1));
    says.textContent = momentOf(state).says;
  });
  const play = player(page, {
    read: (state) => Math.min(state.layer, state.depth + 1),
    write: (layer) => ({ layer }),
    from: 0,
    to: () => page.store.get().depth + 1,
    pace,
    label: "Play the layers",
  });
  page.slot("layers").append(controls("Layer", layers, play));
}
