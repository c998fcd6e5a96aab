import { readPoints } from "../../engine/playground";
import type { Task } from "../../engine/playground";
import { el } from "../../shared/dom";
import { color } from "../../shared/theme";
import type { Page } from "../chapter";
import { choice, controls, ownLabels, slider } from "../controls";
import type { FieldCanvas } from "./field_canvas";
import { drawSamples, thumbnail } from "./playground_thumbnails";
import {
  between,
  depths,
  groupCounts,
  lengths,
  mostOwn,
  noises,
  optimizers,
  ownPoints,
  paces,
  packed,
  rates,
  schedules,
  taskNames,
  widths,
} from "./playground_state";
import type { State } from "./playground_state";

interface Parts {
  play: HTMLButtonElement;
  once: HTMLButtonElement;
  again: HTMLButtonElement;
  timeInput: HTMLInputElement;
  timeOutput: HTMLOutputElement;
  known: Promise<Task[]>;
  makeOwn(): void;
  failed: (error: unknown) => void;
}

/** Everything that is chosen before and during a training. */
export function mountControls(page: Page<State>, parts: Parts): void {
  const thumbnails = new Map(taskNames.map(([value, label]) => [value, thumbnail(label, () => void choose(value))]));
  const choose = async (wanted: string) => {
    const task = (await parts.known).find(({ name }) => name === wanted);
    if (task === undefined) return parts.makeOwn();
    const { rows, depth, rate, schedule, steps } = task;
    page.store.commit({
      data: task.name,
      rows,
      depth,
      rate,
      schedule,
      steps,
      trained: Math.min(steps, task.name === "octants" ? steps : 3000),
      at: -1,
      layer: depth,
    });
  };
  let pictured = "";
  page.onChange((state) => {
    for (const [value, { element }] of thumbnails) element.setAttribute("aria-pressed", String(value === state.data));
    const look = String([state.noise, color("--paper")]);
    if (look === pictured) return;
    pictured = look;
    for (const [value, { draw }] of thumbnails) void drawSamples(page.engine, value, state.noise).then(draw);
  });
  const noise = slider(page, "Noise", "noise", { ...noises, step: 0.01 });
  page.onChange(({ data }) => (noise.hidden = data === "own"));
  const file = el("input", { type: "file", id: "playground-file", accept: ".csv,.tsv,.txt,text/csv" });
  file.addEventListener("change", () => {
    void file.files?.[0]
      ?.text()
      .then((content) => {
        const { width, x, labels } = readPoints(content);
        if (labels.length > mostOwn)
          throw new Error(`the file has ${labels.length} rows, expected no more than ${mostOwn}`);
        page.store.commit({ data: "own", features: width, points: packed(width, x, labels), trained: 2000, at: -1 });
      })
      .catch(parts.failed)
      .finally(() => (file.value = ""));
  });
  const groups = choice(page, "Groups", "groups", ownLabels(groupCounts));
  page.onChange(({ width }) => {
    for (const option of groups.querySelectorAll("option")) option.disabled = width % Number(option.value) !== 0;
  });
  page.slot("controls").append(
    controls(
      "Samples",
      el("div", { class: "thumbnails" }, ...[...thumbnails.values()].map(({ element }) => element)),
      el("div", { class: "control" }, el("label", { for: "playground-file" }, "or a CSV file"), file),
      slider(page, "Seed", "seed", { min: 1, max: 40, step: 1 }),
      noise,
    ),
    controls(
      "The net",
      choice(page, "Between layers", "kind", Object.entries(between)),
      choice(page, "Width", "width", ownLabels(widths)),
      choice(page, "Layers", "depth", ownLabels(depths)),
      groups,
    ),
    controls(
      "Training",
      choice(page, "Optimizer", "optimizer", optimizers),
      slider(page, "Rate", "rate", { ...rates, step: 0.05, log: true }),
      choice(page, "Rate over time", "schedule", schedules),
      choice(
        page,
        "Length",
        "steps",
        lengths.map((value) => [value, `${value} steps`]),
      ),
    ),
  );
  page
    .slot("transport")
    .append(
      controls(
        "Time",
        parts.play,
        parts.once,
        parts.again,
        el(
          "div",
          { class: "control slider time" },
          el("label", { for: "playground-time" }, "Step"),
          parts.timeInput,
          parts.timeOutput,
        ),
        choice(page, "Pace", "pace", paces),
      ),
    );
}

/** The reader's own points, added and removed on the plane. */
export function mountEditing(page: Page<State>, plane: FieldCanvas): void {
  let brush = 0;
  const brushes = el(
    "fieldset",
    { class: "brushes" },
    el("legend", {}, "New points are of class"),
    ...[0, 1, 2, 3].map((label) => {
      const input = el("input", { type: "radio", name: "brush", id: `brush-${label}`, value: label });
      input.checked = label === brush;
      input.addEventListener("change", () => (brush = label));
      return el(
        "span",
        {},
        input,
        el("label", { for: `brush-${label}`, class: `class-${label}` }, String.fromCharCode(65 + label)),
      );
    }),
  );
  page.slot("brushes").append(brushes);
  const editing = {
    add: (x: number, y: number) => {
      const { points } = page.store.get();
      if (points.length >= 3 * mostOwn) return page.say(`There are ${mostOwn} points already.`);
      page.store.commit({ points: [...points, Number(x.toFixed(2)), Number(y.toFixed(2)), brush] });
      page.say(`Added a point of class ${String.fromCharCode(65 + brush)}.`);
    },
    remove: (index: number) => {
      const points = [...page.store.get().points];
      points.splice(3 * index, 3);
      page.store.commit({ points });
      page.say("Removed a point.");
    },
    say: page.say,
  };
  page.onChange((state) => {
    const own = state.data === "own" && state.features === 2;
    page.slot("own").hidden = state.data !== "own";
    brushes.hidden = !own;
    if (own) plane.place(ownPoints(state));
    plane.canvas.classList.toggle("map", state.data === "octants");
    plane.edit(
      own ? editing : null,
      own
        ? "The plane of your points. Arrow keys move a cross, Enter adds a point there, Delete removes the one next to it."
        : `${taskNames.find(([value]) => value === state.data)?.[1] ?? ""}: the class the net gives each point, and the samples.`,
    );
  });
}
