import { curve, facts, move, share, surface } from "../../engine/fold";
import type { Move } from "../../engine/fold";
import { number, percent } from "../../shared/format";
import { chapter } from "../chapter";
import { between, oneOf } from "../link";
import type { Page } from "../chapter";
import { controls, slider } from "../controls";
import { cppOf } from "../doors";
import { ready } from "../figure";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { numberInText } from "../numbers";
import { player } from "../player";
import { winsor } from "../sources";
import { circle, defaults, epsOf, onCircle, pair, paths, settled } from "./fold_state";
import type { State } from "./fold_state";
import { showSurface } from "./fold_surface";
import text from "./fold.html";

const stretches = { min: 0.1, max: 10 };
const shifts = { min: 0, max: 3 };
const stretchRange = { ...stretches, step: 0.01, log: true };
const shiftRange = { ...shifts, step: 0.01 };
const epsRange = { min: 1e-4, max: 1, step: 0.05, log: true };

const around = 72;
const curvePoints = 200;

/** From the left's colour over grey to the right's, by where a point was. */
const tint = (x: number): string => {
  const share = Math.round(Math.abs(x) * 100);
  return `color-mix(in srgb, var(${x < 0 ? "--series-1" : "--series-2"}) ${share}%, var(--muted))`;
};

const timesAsFast = (speed: number): string =>
  number(speed) === "1" ? "as fast as on the circle" : `${number(speed)} times as fast as on the circle`;

/** The experiment of the lab that shows the same. */
const experimentOf = ({ path }: State): string =>
  `winsor-${path === "stretch" ? "stretch" : path === "shift" ? "fold" : "surface"}`;

export default chapter<State>({
  text,
  defaults,
  rules: {
    eps: between({ min: 0, max: 1 }),
    stretch: between(stretches),
    shift: between(shifts),
    angle: between({ min: 0, max: 360 }),
    path: oneOf(paths.map(([path]) => path)),
  },
  sources: [winsor],
  presets: [
    {
      name: "Hot or cold",
      claim: "At t = 5 three quarters of the circle lie beyond 0.9 on either side; before, it was less than a third.",
      state: { stretch: 5 },
    },
    {
      name: "Forgetting the side",
      claim: "At t = 0.2 the points bunch at top and bottom: what is left of x is almost nothing.",
      state: { stretch: 0.2 },
    },
    {
      name: "Just before the fold",
      claim:
        "At t = 0.9 the circle still goes around the origin, but its left side is stretched over most of the way: there points turn ten times as fast.",
      state: { shift: 0.9, angle: 160 },
    },
    {
      name: "Just after the fold",
      claim: "At t = 1.1 the circle goes there and back. Both ends land on one point.",
      state: { shift: 1.1, angle: 160 },
    },
    {
      name: "An absolute value",
      claim: "At t = 2 both extremes give 1, and what lies between gives less, down to 0.866 at x = −0.5.",
      state: { shift: 2 },
    },
    {
      name: "The sigmoid on the surface",
      claim: "Along a straight line the surface is a sigmoid, the steeper the nearer the line passes to the origin.",
      state: { path: "line" },
    },
  ],
  doors: (state) => ({
    command: `normscope lab run ${experimentOf(state)} -o figures`,
    cpp: cppOf(
      ["nets/circle"],
      `namespace nets = normscope::nets;
for (const double x : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
  fmt::print("{}: stretched {}, folded {}\\n", x, nets::stretched(${state.stretch}, x, ${state.eps}),
             nets::folded(${state.shift}, x, ${state.eps}));
}`,
    ),
    python: `import json, subprocess

words = ["normscope", "lab", "run", "${experimentOf(state)}", "-o", "figures", "--json", "-"]
done = subprocess.run(words, check=True, capture_output=True)
for claim in json.loads(done.stdout)["experiments"][0]["claims"]:
    print(claim["claim"], claim["ours"])
`,
  }),
  async mount(page) {
    numberInText(page, "eps, in the text", "eps", epsRange);
    numberInText(page, "stretch, in the text", "stretch", stretchRange);
    numberInText(page, "shift, in the text", "shift", shiftRange);
    const parts = [
      ...(["stretch", "shift"] as const).map((name) => moves(page, name)),
      sigmoid(page),
      showSurface(page),
    ];
    await Promise.all(parts);
  },
});

/** u of one number. */
function sigmoid(page: Page<State>): Promise<void> {
  const plane = new PlaneFigure({
    id: "sigmoid",
    description: "u of a single number: a sigmoid between −1 and 1.",
    x: [-2, 2],
    y: [-1.1, 1.1],
    xTitle: "x",
    yTitle: "u(x)",
    aspect: 0.36,
    table: () => ({ columns: ["x", "u"], rows: Array.from(xs, (x, i) => [x, heights[i] ?? 0]) }),
  });
  page.keep(plane);
  page.slot("sigmoid").replaceWith(plane.element);
  page.slot("sigmoid-controls").append(controls("The norm", slider(page, "eps", "eps", epsRange)));
  const xs = Float64Array.from({ length: 401 }, (_, i) => (i - 200) / 100);
  let heights = new Float64Array();
  plane.painted(() => {
    plane.path(
      Array.from(xs, (x, i): Point => [x, heights[i] ?? 0]),
      { stroke: "var(--series-1)", "stroke-width": 2.2 },
    );
  });
  return settled(
    page,
    (state) => String(state.eps),
    async (state) => {
      heights = Float64Array.from(
        await surface(page.engine, epsOf(state), new Float64Array(Array.from(xs, (x) => [x, 0]).flat())),
      );
      plane.element.dataset["slope"] = ((heights[201] ?? 0) / 0.01).toPrecision(4);
      plane.changed();
    },
  );
}

/** The circle after a move, and the first coordinate over the first coordinate, side by side. */
function moves(page: Page<State>, name: Move): Promise<void> {
  const shift = name === "shift";
  const start = circle(around);
  const xs = Float64Array.from({ length: curvePoints + 1 }, (_, i) => -1 + (2 * i) / curvePoints);
  let landed = new Float64Array();
  let moved = new Float64Array();
  let heights = new Float64Array();
  let followed: { start: Point; moved: Point; landed: Point } = { start: [0, 0], moved: [0, 0], landed: [0, 0] };
  let readout = "";
  const rows = () => Array.from({ length: around }, (_, i) => [...pair(start, i), ...pair(landed, i)]);
  const columns = ["x before", "y before", "x after", "y after"];
  const left = new PlaneFigure({
    id: `${name}-circle`,
    description: `The circle's points after a ${name} and the norm, coloured by where they were from left to right.`,
    caption: `Dashed: the ${shift ? "shifted" : "stretched"} circle. Dots: where its points land, coloured by where they were (blue left, orange right). Drag the large disc to follow a point.`,
    // As wide as each other, so that both have one scale.
    x: shift ? [-1.3, 3.1] : [-2.2, 2.2],
    y: [-1.3, 1.3],
    table: () => ({ columns, rows: rows() }),
  });
  const right = new PlaneFigure({
    id: `${name}-curve`,
    description: `First coordinate after the ${name} over first coordinate before it.`,
    caption: `The ${shift ? "shifted" : "stretched"} points again: first coordinate after the norm, over first coordinate before the move.`,
    x: [-1.05, 1.05],
    y: [-1.1, 1.1],
    xTitle: "x before",
    yTitle: "x after",
    aspect: 0.72,
    table: () => ({ columns: ["x before", "x after"], rows: Array.from(xs, (x, i) => [x, heights[i] ?? 0]) }),
  });
  for (const plane of [left, right]) page.keep(plane);
  page.slot(`${name}-circle`).replaceWith(left.element);
  page.slot(`${name}-curve`).replaceWith(right.element);
  page.slot(`${name}-controls`).append(
    controls(
      `${shift ? "Shift" : "Stretch"}`,
      shift ? slider(page, "Shift t", "shift", shiftRange) : slider(page, "Stretch t", "stretch", stretchRange),
      shift
        ? player(page, {
            read: (state) => state.shift,
            write: (value) => ({ shift: value }),
            from: 0,
            to: () => 2,
            pace: 3000,
            seen: { element: left.element, until: defaults.shift },
          })
        : player(page, {
            read: (state) => state.stretch,
            write: (value) => ({ stretch: value }),
            from: 1,
            to: () => 5,
            pace: 2400,
            seen: { element: left.element, opens: true, until: defaults.stretch },
          }),
    ),
  );

  left.painted(() => {
    page.slot(`${name}-readout`).textContent = readout;
    left.circle([0, 0], 1, { stroke: "var(--rule)", "stroke-width": 1.5 });
    const ghost = Array.from({ length: around }, (_, i) => pair(moved, i));
    left.path([...ghost, ghost[0] ?? [0, 0]], { stroke: "var(--muted)", "stroke-width": 1, "stroke-dasharray": "3 3" });
    for (let i = 0; i < around; ++i) left.dot(pair(landed, i), 4, { fill: tint(pair(start, i)[0]) });
    left.dot([0, 0], 2.5);
    left.line([0, 0], followed.moved, { stroke: "var(--ink)", "stroke-width": 1, "stroke-dasharray": "2 3" });
    left.dot(followed.landed, 6, { fill: "var(--ink)" });
    left.handles([
      {
        id: "followed",
        label: "The point that is followed, on the circle before the move",
        at: () => onCircle(page.store.get().angle),
        move: ([x, y]) => {
          // Keys move by steps too small for a whole degree at the poles, so keep tenths.
          const degrees = Number(((Math.atan2(y, x) * 180) / Math.PI).toFixed(1));
          page.store.drag({ angle: degrees < 0 ? degrees + 360 : degrees });
        },
        done: () => page.store.commit(),
      },
    ]);
  });
  right.painted(() => {
    right.path(
      Array.from(xs, (x, i): Point => [x, heights[i] ?? 0]),
      { stroke: "var(--muted)", "stroke-width": 1.2 },
    );
    for (let i = 0; i < around; ++i) {
      const x = pair(start, i)[0];
      right.dot([x, pair(landed, i)[0]], 3.4, { fill: tint(x) });
    }
    const before: Point = [followed.start[0], followed.landed[0]];
    right.line([before[0], -1.1], before, { stroke: "var(--ink)", "stroke-width": 1, "stroke-dasharray": "2 3" });
    right.dot(before, 6, { fill: "var(--ink)" });
  });
  return settled(
    page,
    (state) => String([state.eps, state[name], state.angle]),
    async (state) => {
      const t = state[name];
      const point = new Float64Array(onCircle(state.angle));
      const [all, one, line, fact, beyond] = await Promise.all([
        move(page.engine, name, t, epsOf(state), start),
        move(page.engine, name, t, epsOf(state), point),
        curve(page.engine, name, t, epsOf(state), xs),
        shift ? facts(page.engine, t) : null,
        shift ? 0 : share(page.engine, t, 0.9),
      ]);
      [moved, landed, heights] = [Float64Array.from(all.moved), Float64Array.from(all.landed), Float64Array.from(line)];
      followed = { start: pair(point, 0), moved: pair(one.moved, 0), landed: pair(one.landed, 0) };
      left.element.dataset["landed"] = followed.landed.map((value) => value.toFixed(4)).join(" ");
      const what =
        fact === null
          ? `t = ${number(t)}: ${percent(beyond)} of the circle lands beyond x = ±0.9 (without eps).`
          : `t = ${number(t)}: ` +
            (fact.winding === null
              ? "the circle passes through the origin."
              : fact.winding === 1
                ? "the image goes once around the origin"
                : "the image goes there and back: folded") +
            (fact.speed === null ? "" : `; the fastest point turns ${timesAsFast(fact.speed)}`) +
            (fact.minimum === null ? "." : `; between the ends the output falls to ${number(fact.minimum)}.`);
      readout = what.endsWith(".") ? what : `${what}.`;
      for (const plane of [left, right]) {
        plane.changed();
        ready(plane.element);
      }
      page.say(what);
    },
  );
}
