import { tasks, Training } from "../../engine/playground";
import type { Answers, Score } from "../../engine/playground";
import { button, el } from "../../shared/dom";
import { pngOf } from "../../shared/files";
import { number, percent } from "../../shared/format";
import { color } from "../../shared/theme";
import { chapter } from "../chapter";
import { figure, ready } from "../figure";
import { numberInText } from "../numbers";
import { isUntouched, onTouch } from "../player";
import { still } from "../scrolly";
import { winsor } from "../sources";
import { FieldCanvas } from "./field_canvas";
import { mountControls, mountEditing } from "./playground_controls";
import { TrainingCurves } from "./playground_curves";
import { cells, groundOf } from "./playground_ground";
import type { Ground } from "./playground_ground";
import { mountLayers } from "./playground_layers";
import { Morph } from "./playground_morph";
import { NetDiagram } from "./playground_net";
import { presets } from "./playground_presets";
import {
  dataOf,
  defaults,
  depths,
  doors,
  keyOf,
  ownGrid,
  ownPoints,
  packed,
  radiusOf,
  rules,
  specOf,
  taskWords,
  widths,
} from "./playground_state";
import type { State } from "./playground_state";
import text from "./playground.html";

/** Milliseconds of training between two checks for input. */
const slice = 20;
/** Milliseconds of a training that shows nothing, after which what is learned so far is drawn. */
const silence = 1000;
/** Milliseconds of a frame that training may take. */
const framePart = 12;
/** Pictures of the training that opens the chapter. */
const openingFrames = 120;

/** Steps to the next of these pictures; on the octants most happens early. */
const openingPortion = ({ data, trained }: State, steps: number): number =>
  Math.ceil(data === "octants" ? Math.max(trained / 1000, steps / 24) : trained / openingFrames);

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
  sources: [winsor],
  presets,
  doors,
  async mount(page) {
    const known = tasks(page.engine);
    const plane = new FieldCanvas();
    const morph = new Morph();
    const net = new NetDiagram();
    const curves = new TrainingCurves(page.engine);
    for (const part of [plane, morph, net, curves]) page.keep(part);

    let morphSeen = false;
    const watch = new IntersectionObserver((entries) => (morphSeen = entries.at(-1)?.isIntersecting ?? false));
    watch.observe(morph.figure.element);
    page.onLeave(() => watch.disconnect());

    let running: Running | null = null;
    let playing = false;
    let left = false;
    let answers: Answers | null = null;
    /** While the first training is shown; ends it. */
    let opening: (() => void) | null = null;
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
      png: () => pngOf(plane.canvas),
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

    const colorsOf = (count: number) =>
      Array.from({ length: Math.max(2, count) }, (_, i) => color(`--series-${(i % 7) + 1}`));

    async function begin(state: State): Promise<Running> {
      const key = keyOf(state);
      const ground = running !== null && running.key === key ? running.ground : await groundOf(page.engine, state);
      const training = await Training.start(page.engine, specOf(state), dataOf(state));
      void running?.training.delete();
      running = { key, training, ground, steps: 0 };
      return running;
    }

    /** The recorded step that the figures show. */
    const shownStep = (state: State, run: Running) =>
      playing || state.at < 0 ? run.steps : Math.min(state.at, run.steps);

    async function drawPictures(state: State, run: Running): Promise<void> {
      const { training, ground } = run;
      const step = shownStep(state, run);
      const [field, score] = await Promise.all([
        ground.grid === null
          ? null
          : ground.map
            ? training.answers(ground.map, step)
            : training.field(ground.grid, step),
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
      for (const element of [planeFigure, net.element]) ready(element);
      planeFigure.dataset["ones"] = String(field?.classes.reduce((sum, label) => sum + Number(label === 1), 0) ?? 0);
      planeFigure.dataset["step"] = String(score.step);
      planeFigure.dataset["accuracy"] = score.accuracy.toFixed(4);
      planeFigure.dataset["held"] = score.held === null ? "" : score.held.toFixed(4);
      showStatus(run, score);
      showTime(run, score.step);
      await curves.draw(training, score, page.store.get().steps, playing || opening !== null);
    }

    /** The net's neurons and, unless it is out of sight during a training, the way of the samples through them. */
    async function drawInside(state: State, run: Running, step: number): Promise<void> {
      const { training, ground } = run;
      const [sheetStates, weights] = await Promise.all([
        ground.sheetPoints && training.steps(ground.sheetPoints, step),
        training.weights(step),
      ]);
      if (left || running !== run) return;
      const { labels, classes } = ground.samples;
      const colors = colorsOf(classes);
      net.element.hidden = sheetStates === null;
      if (sheetStates !== null && ground.sheet !== null) {
        // The input and the output of every layer.
        const neurons = { ...sheetStates, states: sheetStates.states.filter((_, i) => i % 2 === 0) };
        net.show({ weights, sheet: ground.sheet, states: neurons, colors });
      }
      if ((playing || opening !== null) && !morphSeen) return;
      const [states, sheetAnswers, head] = await Promise.all([
        training.steps(null, step),
        ground.sheetPoints && training.answers(ground.sheetPoints, step),
        training.head(step),
      ]);
      if (left || running !== run) return;
      morph.show(
        {
          samples: states,
          labels,
          sheet: ground.sheet,
          sheetStates,
          sheetAnswers,
          head,
          colors,
          radius: radiusOf(state),
        },
        state.layer,
      );
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
      opening?.();
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
      if (running === null || running.key !== keyOf(state) || running.steps > state.trained) {
        await begin(state);
        // Its folds follow one another for thousands of steps, so whoever comes to it is shown them.
        if (state.data === "octants" && opening === null && !still.matches && !left) openWithTraining();
      }
      const run = running!;
      let portion = 20;
      let drawn = performance.now();
      while (run.steps < Math.min(state.trained, state.steps)) {
        const started = performance.now();
        if (opening !== null) portion = openingPortion(state, run.steps);
        run.steps = (await run.training.advance(Math.min(portion, state.trained - run.steps))).steps;
        const took = performance.now() - started;
        portion = nextPortion(portion, took, slice);
        if (wanted !== null || left) return;
        if (opening !== null) {
          await drawPictures(state, run);
          arrived();
          continue;
        }
        if (performance.now() - drawn > silence) {
          await drawPictures(state, run);
          drawn = performance.now();
        }
        status.textContent = `Training: step ${run.steps} of ${state.trained}`;
      }
      opening?.();
      await drawPictures(state, run);
    }

    /** The reader's points without a net, while they cannot be learned. */
    function showOwn(state: State): void {
      if (state.data !== "own" || state.features !== 2) return;
      const { x, labels } = ownPoints(state);
      plane.show(ownGrid(cells), null, { x, labels }, colorsOf(7), color("--paper"));
    }

    const play = button(
      "Play",
      () => {
        if (opening !== null) {
          opening();
          page.store.show({ trained: running?.steps ?? 0 });
        } else if (playing) void pause();
        else start();
      },
      { class: "action main" },
    );
    const tellPlaying = (now: boolean) => {
      play.dataset["player"] = now ? "playing" : "still";
      play.textContent = now ? "Pause" : "Play";
    };
    tellPlaying(false);
    /** Shows the first training, until the reader touches something: then the rest is trained at once. */
    function openWithTraining(): void {
      tellPlaying(true);
      const forget = onTouch(play, () => opening?.());
      opening = () => {
        opening = null;
        forget();
        tellPlaying(false);
      };
      page.onLeave(() => opening?.());
    }
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
      tellPlaying(true);
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
          if (drawing === null)
            drawing = frame
              .then(() => drawPictures(state, now))
              .catch(failed)
              .finally(() => (drawing = null));
          if (now.steps >= state.steps) break;
          if (state.pace > 0) await drawing;
        }
        await drawing;
      } catch (error) {
        failed(error);
      }
      speed = null;
      playing = false;
      tellPlaying(false);
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
    const again = button("From the start", () => void pause().then(() => page.store.commit({ trained: 0, at: -1 })), {
      class: "action",
    });

    /** The samples on show become the reader's, thinned out and rounded so that they fit into a link. */
    function makeOwn(): void {
      const now = page.store.get();
      const from = running?.ground.samples;
      if (now.points.length > 0 || from === undefined || from.width !== 2)
        return page.store.commit({ data: "own", trained: 2000, at: -1 });
      const count = Math.min(120, from.labels.length);
      const x = Array.from(from.x.subarray(0, 2 * count), (value) => Number(value.toFixed(2)));
      page.store.commit({
        data: "own",
        features: 2,
        points: packed(2, x, from.labels.subarray(0, count)),
        trained: 2000,
        at: -1,
      });
    }

    mountControls(page, { play, once, again, timeInput, timeOutput, known, makeOwn, failed });

    mountEditing(page, plane);

    page.slot("plane").replaceWith(planeFigure);
    page.slot("net").append(net.element);
    page.onChange((state) => {
      const map =
        state.data === "octants" ? " The sphere is unrolled: the angle around it across, the height upward." : "";
      planeFigure.querySelector("figcaption p")!.textContent = said + map;
      net.element.querySelector("figcaption p")!.textContent =
        `Neurons over the ${map === "" ? "plane" : "sphere"}, blue below zero, orange above; lines are weights.`;
    });
    page.slot("curves").append(curves.element);
    page.slot("morph").replaceWith(morph.figure.element);
    mountLayers(page);
    numberInText(page, "width, in the text", "width", { values: widths });
    numberInText(page, "depth, in the text", "depth", { values: depths });
    numberInText(page, "seed, in the text", "seed", { min: 1, max: 40, step: 1 });
    page.onChange((state) => {
      const words = taskWords[state.data];
      for (const name of ["asks", "ends"] as const) page.slot(name).textContent = words?.[name] ?? "";
      page.slot("axes-note").textContent =
        state.width > 3
          ? `The first three of ${state.width} features.`
          : state.width < 3
            ? "Two features: everything stays in a plane."
            : "";
    });

    let last = "";
    /** Resolves the promise of the first picture. */
    let arrived = () => {};
    const first = new Promise<void>((done) => (arrived = done));
    if (!still.matches && isUntouched(page)) openWithTraining();
    page.onChange((state) => {
      // The slider of layers only moves existing points; other changes may need the core.
      const now = JSON.stringify([keyOf(state), state.trained, state.at, color("--paper")]);
      if (now === last) return morph.place(state.layer);
      last = now;
      void follow(state).then(arrived);
    });
    await first;
  },
});
