import { curvesFigure, tasks, Training } from "../../engine/playground";
import type { Answers, Curves, Score } from "../../engine/playground";
import { button, el } from "../../shared/dom";
import { pngOf } from "../../shared/files";
import { number, percent } from "../../shared/format";
import { color } from "../../shared/theme";
import { chapter } from "../chapter";
import { controls, slider } from "../controls";
import { ChartFigure, figure } from "../figure";
import { player } from "../player";
import { FieldCanvas } from "./field_canvas";
import { mountControls, mountEditing } from "./playground_controls";
import { cells, groundOf } from "./playground_ground";
import type { Ground } from "./playground_ground";
import { Morph } from "./playground_morph";
import { NetDiagram } from "./playground_net";
import { dataOf, defaults, doors, keyOf, ownGrid, ownPoints, packed, radiusOf, rules, specOf } from "./playground_state";
import type { State } from "./playground_state";
import text from "./playground.html";

/** Records in a chart, and milliseconds between two drawings of it while the training runs. */
const mostRecords = 400;
const chartEvery = 250;
/** Milliseconds of training between two checks for input. */
const slice = 20;
/** Milliseconds of a frame that training may take. */
const framePart = 12;

/** The number of steps that take about `wanted` milliseconds, estimated from the last portion, which took `took`. */
const nextPortion = (portion: number, took: number, wanted: number): number =>
  Math.max(5, Math.min(5000, Math.round(portion * Math.min(2, wanted / Math.max(1, took)))));

interface Running {
  key: string;
  training: Training;
  ground: Ground;
  steps: number;
}

export default chapter<State>({
  text,
  defaults,
  rules,
  presets: [
    {
      name: "A jump",
      claim: "Play from the start: after a long plateau the accuracy jumps within some hundred steps. Those jumps are marked by dashed lines.",
      state: { trained: 0, pace: 10 },
    },
    {
      name: "Without the norm",
      claim: "Two linear maps in a row are one linear map: the boundary is a straight line, and accuracy stays near 59 %.",
      state: { kind: "none", seed: 1 },
    },
    {
      name: "A sphere in eight parts",
      claim: "Neighbouring octants have opposite classes. Four norms of width 3 fold the sphere until one plane separates them.",
      state: { data: "octants", rows: 1000, seed: 1, depth: 4, rate: 0.03, schedule: "linear", steps: 10000, trained: 10000, layer: 4 },
    },
    {
      name: "XOR with one norm",
      claim: "One layer is enough: a norm bends the plane so that a straight cut separates classes that no line in the plane does.",
      state: { data: "xor", rows: 400, seed: 1, depth: 1, steps: 2000, trained: 2000, layer: 1 },
    },
    {
      name: "A ring in a ring",
      claim: "The inner ring ends as a cap of the sphere, the outer as a ring around it.",
      state: { data: "rings", rows: 400, seed: 1, steps: 2000, trained: 2000 },
    },
    {
      name: "LayerNorm of three",
      claim: "Taking the mean away leaves a circle of the sphere: from the first layer on all points lie on one, and a circle folds too little: accuracy stays near 77 %.",
      state: { kind: "layer", seed: 1 },
    },
    {
      name: "ReLU, for comparison",
      claim: "The usual nonlinearity, at the same width and depth: straight pieces instead of arcs.",
      state: { kind: "relu", seed: 1 },
    },
  ],
  doors,
  async mount(page) {
    const known = tasks(page.engine);
    const plane = new FieldCanvas();
    const morph = new Morph();
    const net = new NetDiagram();
    let curves: Curves | null = null;
    const chart = new ChartFigure("curves", () => ({
      columns: ["step", "loss", "accuracy"],
      rows: Array.from(curves?.step ?? [], (step, i) => [step, curves!.loss[i] ?? 0, curves!.accuracy[i] ?? 0]),
    }));
    for (const part of [plane, morph, net, chart]) page.keep(part);

    let morphSeen = false;
    const watch = new IntersectionObserver((entries) => (morphSeen = entries.at(-1)?.isIntersecting ?? false));
    watch.observe(morph.figure.element);
    page.onLeave(() => watch.disconnect());

    let running: Running | null = null;
    let playing = false;
    let left = false;
    let answers: Answers | null = null;
    let drawnChart = 0;
    let chartFrame = "";
    page.onLeave(() => {
      left = true;
      playing = false;
      void running?.training.delete();
    });

    const said = "The class the net gives each point, the samples as dots.";
    const planeFigure = figure({
      id: "plane",
      content: plane.canvas,
      caption: said,
      png: async () => pngOf(plane.canvas),
      table: () => {
        const grid = running?.ground.grid;
        return {
          columns: ["column", "row", "class", "probability"],
          rows: Array.from(answers?.classes ?? [], (label, i) => [
            i % (grid?.columns ?? 1),
            Math.floor(i / (grid?.columns ?? 1)),
            label,
            answers!.probabilities[i] ?? 0,
          ]),
        };
      },
    });

    const colorsOf = (count: number) => Array.from({ length: Math.max(2, count) }, (_, i) => color(`--series-${(i % 7) + 1}`));

    async function begin(state: State): Promise<Running> {
      const key = keyOf(state);
      const ground = running !== null && running.key === key ? running.ground : await groundOf(page.engine, state);
      const training = await Training.start(page.engine, specOf(state), dataOf(state));
      void running?.training.delete();
      running = { key, training, ground, steps: 0 };
      return running;
    }

    /** The recorded step that the figures show. */
    const shownStep = (state: State, run: Running) => (playing || state.at < 0 ? run.steps : Math.min(state.at, run.steps));

    async function drawPictures(state: State, run: Running): Promise<void> {
      const { training, ground } = run;
      const step = shownStep(state, run);
      const [field, score] = await Promise.all([
        ground.grid === null ? null : ground.map ? training.answers(ground.map, step) : training.field(ground.grid, step),
        training.score(step),
        drawInside(state, run, step),
      ]);
      if (left || running !== run) return;
      answers = field;
      const colors = colorsOf(ground.samples.classes);
      planeFigure.hidden = ground.grid === null;
      // The reader's points are shown where they are now, even while the net is still trained on older ones.
      const own = page.store.get();
      const marks = own.data === "own" ? ownPoints(own) : { x: ground.marks, labels: ground.samples.labels };
      if (ground.grid !== null) plane.show(ground.grid, field, marks, colors, color("--paper"));
      planeFigure.dataset["ones"] = String(field?.classes.reduce((sum, label) => sum + Number(label === 1), 0) ?? 0);
      planeFigure.dataset["step"] = String(score.step);
      planeFigure.dataset["accuracy"] = score.accuracy.toFixed(4);
      planeFigure.dataset["held"] = score.held === null ? "" : score.held.toFixed(4);
      showStatus(run, score);
      showTime(run, score.step);
      await drawChart(run, score);
    }

    /** The net's neurons and, unless it is out of sight during a training, the way of the samples through them. */
    async function drawInside(state: State, run: Running, step: number): Promise<void> {
      const { training, ground } = run;
      const [sheetStates, weights] = await Promise.all([
        ground.sheetPoints && training.states(ground.sheetPoints, step),
        training.weights(step),
      ]);
      if (left || running !== run) return;
      const { labels, classes } = ground.samples;
      const colors = colorsOf(classes);
      net.element.hidden = sheetStates === null;
      if (sheetStates !== null && ground.sheet !== null) net.show({ weights, sheet: ground.sheet, states: sheetStates, colors });
      if (playing && !morphSeen) return;
      const [states, sheetAnswers, head] = await Promise.all([
        training.states(null, step),
        ground.sheetPoints && training.answers(ground.sheetPoints, step),
        training.head(step),
      ]);
      if (left || running !== run) return;
      morph.show({ samples: states, labels, sheet: ground.sheet, sheetStates, sheetAnswers, head, colors, radius: radiusOf(state) }, state.layer);
    }

    /** The chart is redrawn if its frame changes; otherwise it only gets new data. */
    async function drawChart(run: Running, score: Score): Promise<void> {
      if (playing && performance.now() - drawnChart < chartEvery) return;
      drawnChart = performance.now();
      curves = await run.training.curves(mostRecords);
      const { step, loss, accuracy, transitions } = curves;
      const records = Array.from(step, (at, i) => ({ step: at, loss: loss[i] ?? 0, accuracy: accuracy[i] ?? 0 }));
      if (records.length === 0) records.push({ step: score.step, loss: score.loss, accuracy: score.accuracy });
      const data = { records, transitions, now: [{ step: score.step }] };
      const width = chart.element.clientWidth;
      const { steps } = page.store.get();
      const frame = JSON.stringify([width, steps, color("--paper")]);
      if (frame !== chartFrame) {
        chartFrame = frame;
        await chart.draw(await curvesFigure(page.engine, steps, data), "Loss and accuracy over the steps of the training.");
      } else {
        for (const [name, rows] of Object.entries(data)) await chart.update(name, rows);
      }
      chart.element.dataset["records"] = String(records.length);
      chart.element.dataset["transitions"] = String(transitions.length);
    }

    const status = page.slot("status");
    let speed: number | null = null;
    const showStatus = (run: Running, score: Score) => {
      status.textContent =
        `Step ${score.step} of ${page.store.get().steps}: loss ${number(score.loss)}, accuracy ${percent(score.accuracy)}` +
        (score.held === null ? "" : `, on new samples ${percent(score.held)}`) +
        (speed === null ? "." : `; ${number(speed, 2)} steps a second.`);
      status.dataset["step"] = String(score.step);
      if (!playing) page.say(`Step ${score.step}, accuracy ${percent(score.accuracy)}`);
      void run;
    };

    /** The slider over the recorded steps. */
    const timeInput = el("input", { type: "range", min: 0, max: 1, step: 1, id: "playground-time" });
    const timeOutput = el("output", { for: "playground-time" });
    const showTime = (run: Running, step: number) => {
      timeInput.max = String(Math.max(1, run.steps));
      timeInput.value = String(step);
      timeOutput.textContent = String(step);
      timeInput.setAttribute("aria-valuetext", `step ${step} of ${run.steps}`);
    };
    timeInput.addEventListener("input", () => {
      const step = Number(timeInput.value);
      playing = false;
      page.store.drag({ at: step >= (running?.steps ?? 0) ? -1 : step });
    });
    timeInput.addEventListener("change", () => page.store.commit());

    const notice = page.slot("notice");
    const failed = (error: unknown) => {
      notice.textContent = error instanceof Error ? error.message : String(error);
      notice.hidden = false;
      playing = false;
    };

    let wanted: State | null = null;
    let working = false;
    /** Trains to the step of the state, and shows it; a newer state replaces an older one. */
    async function follow(state: State): Promise<void> {
      wanted = state;
      if (working || playing) return;
      working = true;
      try {
        await playback;
        while (wanted !== null && !left) {
          const now: State = wanted;
          wanted = null;
          await reach(now);
        }
      } catch (error) {
        showOwn(page.store.get());
        failed(error);
      } finally {
        working = false;
      }
    }

    async function reach(state: State): Promise<void> {
      notice.hidden = true;
      if (running === null || running.key !== keyOf(state) || running.steps > state.trained) await begin(state);
      const run = running!;
      let portion = 20;
      while (run.steps < Math.min(state.trained, state.steps)) {
        const started = performance.now();
        run.steps = (await run.training.advance(Math.min(portion, state.trained - run.steps))).steps;
        const took = performance.now() - started;
        portion = nextPortion(portion, took, slice);
        if (wanted !== null || left) return;
        status.textContent = `Training: step ${run.steps} of ${state.trained}`;
      }
      await drawPictures(state, run);
    }

    /** The reader's points without a net, while they cannot be learned. */
    function showOwn(state: State): void {
      if (state.data !== "own" || state.features !== 2) return;
      const { x, labels } = ownPoints(state);
      plane.show(ownGrid(cells), null, { x, labels }, colorsOf(7), color("--paper"));
    }

    const play = button("Play", () => (playing ? void pause() : void start()), { class: "action main" });
    let playback: Promise<void> = Promise.resolve();
    async function pause(): Promise<void> {
      playing = false;
      await playback;
    }
    function start(): void {
      playback = run();
    }
    async function run(): Promise<void> {
      playing = true;
      while (working) await new Promise((later) => setTimeout(later, 10));
      play.textContent = "Pause";
      page.store.show({ at: -1 });
      let began = performance.now();
      let from = running?.steps ?? 0;
      let portion = 10;
      let drawing: Promise<void> | null = null;
      if (running !== null && running.steps >= page.store.get().steps) running.steps = Infinity;
      try {
        while (playing) {
          const state = page.store.get();
          if (running === null || running.key !== keyOf(state) || running.steps > state.steps) {
            notice.hidden = true;
            await begin(state);
            [began, from] = [performance.now(), 0];
          }
          const now = running!;
          const frame = new Promise((next) => requestAnimationFrame(next));
          const asked = performance.now();
          now.steps = (await now.training.advance(state.pace > 0 ? state.pace : portion)).steps;
          portion = nextPortion(portion, performance.now() - asked, framePart);
          speed = (1000 * (now.steps - from)) / Math.max(1, performance.now() - began);
          if (performance.now() - began > 1500) [began, from] = [performance.now(), now.steps];
          // At full speed the training does not wait for the figures.
          if (drawing === null) drawing = frame.then(() => drawPictures(state, now)).catch(failed).finally(() => (drawing = null));
          if (now.steps >= state.steps) break;
          if (state.pace > 0) await drawing;
        }
        await drawing;
      } catch (error) {
        failed(error);
      }
      speed = null;
      playing = false;
      play.textContent = "Play";
      if (running !== null && !left) page.store.show({ trained: running.steps });
    }
    const once = button(
      "Step",
      () => {
        if (playing) return void pause();
        const { trained, steps } = page.store.get();
        page.store.commit({ trained: Math.min(steps, trained + 1), at: -1 });
      },
      { class: "action" },
    );
    const again = button(
      "From the start",
      () => void pause().then(() => page.store.commit({ trained: 0, at: -1 })),
      { class: "action" },
    );

    /** The samples on show become the reader's, thinned out and rounded so that they fit into a link. */
    function makeOwn(): void {
      const now = page.store.get();
      const from = running?.ground.samples;
      if (now.points.length > 0 || from === undefined || from.width !== 2)
        return page.store.commit({ data: "own", trained: 2000, at: -1 });
      const count = Math.min(120, from.labels.length);
      const x = Array.from(from.x.subarray(0, 2 * count), (value) => Number(value.toFixed(2)));
      page.store.commit({ data: "own", features: 2, points: packed(2, x, from.labels.subarray(0, count)), trained: 2000, at: -1 });
    }

    mountControls(page, { play, once, again, timeInput, timeOutput, known, makeOwn, failed });

    mountEditing(page, plane);

    page.slot("plane").replaceWith(planeFigure);
    page.slot("net").append(net.element);
    page.onChange((state) => {
      const map = state.data === "octants" ? " The sphere is unrolled: the angle around it across, the height upward." : "";
      planeFigure.querySelector("figcaption p")!.textContent = said + map;
    });
    page.slot("curves").append(chart.element);
    page.slot("morph").replaceWith(morph.figure.element);
    const layerSlider = slider(page, "Layer", "layer", {
      min: 0,
      max: 6,
      step: 0.01,
      show: (value) => (value <= 0 ? "input" : value.toFixed(1)),
    });
    page.onChange((state) => (layerSlider.querySelector("input")!.max = String(state.depth)));
    page.slot("layers").append(
      controls("Layer", layerSlider, player(page, { read: (state) => Math.min(state.layer, state.depth), write: (layer) => ({ layer }), from: 0, to: () => page.store.get().depth, pace: 1500 })),
    );
    page.onChange((state) => {
      page.slot("axes-note").textContent =
        state.width > 3 ? `The first three of ${state.width} features.` : state.width < 3 ? "Two features: everything stays in a plane." : "";
    });

    let last = "";
    let first: Promise<void> | null = null;
    page.onChange((state) => {
      // The slider of layers only moves existing points; other changes may need the core.
      const now = JSON.stringify([keyOf(state), state.trained, state.at, color("--paper")]);
      if (now === last) return morph.place(state.layer);
      last = now;
      const done = follow(state);
      first ??= done;
    });
    await first;
  },
});
