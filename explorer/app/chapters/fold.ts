import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DoubleSide,
  Line,
  LineBasicMaterial,
  Mesh,
  MeshLambertMaterial,
} from "three";
import { newest } from "../../engine/client";
import { curve, facts, move, share, surface } from "../../engine/fold";
import type { Move } from "../../engine/fold";
import { number, percent } from "../../shared/format";
import { color } from "../../shared/theme";
import { chapter } from "../chapter";
import { between, oneOf } from "../link";
import type { Page } from "../chapter";
import { choice, controls, slider } from "../controls";
import { cppOf } from "../doors";
import { PlaneFigure } from "../plane";
import type { Point } from "../plane";
import { numberInText } from "../numbers";
import { player } from "../player";
import { SpaceFigure } from "../scene";
import { winsor } from "../sources";
import text from "./fold.html";

const defaults = {
  eps: 0.01,
  stretch: 1,
  shift: 0,
  /** The point that is followed, in degrees around the circle. */
  angle: 50,
  path: "shift",
};
type State = typeof defaults;

const stretches = { min: 0.1, max: 10 };
const shifts = { min: 0, max: 3 };
const stretchRange = { ...stretches, step: 0.01, log: true };
const shiftRange = { ...shifts, step: 0.01 };
const epsRange = { min: 1e-4, max: 1, step: 0.05, log: true };
const paths: [string, string][] = [
  ["stretch", "the stretched circle"],
  ["shift", "the shifted circle"],
  ["line", "a straight line, y = 0.5"],
];

const around = 72;
const curvePoints = 200;
/** Half sides of the surface, and its cells along them. */
const reach: Point = [3.2, 1.6];
const surfaceCells: [number, number] = [96, 48];

/** Without eps, u of the origin would be undefined. */
const epsOf = (state: State): number => Math.max(state.eps, 1e-12);

const radians = (degrees: number): number => (degrees * Math.PI) / 180;
const onCircle = (degrees: number): Point => [Math.cos(radians(degrees)), Math.sin(radians(degrees))];
const circle = (count: number): Float64Array =>
  new Float64Array(Array.from({ length: count }, (_, i) => onCircle((360 * (i + 0.5)) / count)).flat());
const pair = (values: Float64Array, i: number): Point => [values[2 * i] ?? 0, values[2 * i + 1] ?? 0];

/** From the left's colour over grey to the right's, by where a point was. */
const tint = (x: number): string => {
  const share = Math.round(Math.abs(x) * 100);
  return `color-mix(in srgb, var(${x < 0 ? "--series-1" : "--series-2"}) ${share}%, var(--muted))`;
};

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
      ["lnnet/circle"],
      `namespace lnnet = normscope::lnnet;
for (const double x : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
  fmt::print("{}: stretched {}, folded {}\\n", x, lnnet::stretched(${state.stretch}, x, ${state.eps}),
             lnnet::folded(${state.shift}, x, ${state.eps}));
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
    const parts = [...(["stretch", "shift"] as const).map((name) => moves(page, name)), sigmoid(page), space(page)];
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

/** Draws for the newest state whenever `key` of it changes; done after the first time. */
function settled(
  page: Page<State>,
  key: (state: State) => string,
  draw: (state: State) => Promise<void>,
): Promise<void> {
  return new Promise((done, fail) => {
    let last = "";
    const run = newest((state: State) => draw(state).then(done, fail));
    page.onChange((state) => {
      if (key(state) === last) return;
      last = key(state);
      run(state);
    });
  });
}

/** The circle after a move, and the first coordinate over the first coordinate, side by side. */
function moves(page: Page<State>, name: Move): Promise<void> {
  const shift = name === "shift";
  const start = circle(around);
  const xs = Float64Array.from({ length: curvePoints + 1 }, (_, i) => -1 + (2 * i) / curvePoints);
  let landed = new Float64Array();
  let moved = new Float64Array();
  let heights = new Float64Array();
  let followed: { moved: Point; landed: Point } = { moved: [0, 0], landed: [0, 0] };
  const rows = () => Array.from({ length: around }, (_, i) => [...pair(start, i), ...pair(landed, i)]);
  const columns = ["x before", "y before", "x after", "y after"];
  const left = new PlaneFigure({
    id: `${name}-circle`,
    description: `The circle's points after a ${name} and the norm, coloured by where they were from left to right.`,
    caption: shift
      ? "Faint: the shifted circle. Dots: where its points land, coloured by where they were (blue left, orange right). Drag the disc to follow a point."
      : "Faint: the stretched circle. Dots: where its points land, coloured by where they were (blue left, orange right). Drag the disc to follow a point.",
    x: shift ? [-1.3, 3.2] : [-2, 2],
    y: [-1.3, 1.3],
    table: () => ({ columns, rows: rows() }),
  });
  const right = new PlaneFigure({
    id: `${name}-curve`,
    description: `First coordinate after the ${name} over first coordinate before it.`,
    caption: "The same points: the output of the first neuron over its input.",
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
            seen: { element: left.element },
          })
        : player(page, {
            read: (state) => state.stretch,
            write: (value) => ({ stretch: value }),
            from: 1,
            to: () => 5,
            pace: 900,
            seen: { element: left.element, opens: true },
          }),
    ),
  );

  left.painted(() => {
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
    const before: Point = [onCircle(page.store.get().angle)[0], followed.landed[0]];
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
      followed = { moved: pair(one.moved, 0), landed: pair(one.landed, 0) };
      left.element.dataset["landed"] = followed.landed.map((value) => value.toFixed(4)).join(" ");
      left.changed();
      right.changed();
      const what =
        fact === null
          ? `t = ${number(t)}: ${percent(beyond)} of the circle lies beyond ±0.9 (without eps).`
          : `t = ${number(t)}: ` +
            (fact.winding === null
              ? "the circle passes through the origin."
              : fact.winding === 1
                ? "the image goes once around the origin"
                : "the image goes there and back: folded") +
            (fact.speed === null ? "" : `; the fastest point turns ${number(fact.speed)} times as fast`) +
            (fact.minimum === null ? "." : `; between the ends the output falls to ${number(fact.minimum)}.`);
      page.slot(`${name}-readout`).textContent = what.endsWith(".") ? what : `${what}.`;
      page.say(what);
    },
  );
}

/** The surface in space, with the path that a move takes on it. */
async function space(page: Page<State>): Promise<void> {
  const [columns, rows] = surfaceCells;
  const places = new Float64Array(2 * (columns + 1) * (rows + 1));
  for (let row = 0; row <= rows; ++row) {
    for (let column = 0; column <= columns; ++column) {
      const at = 2 * (row * (columns + 1) + column);
      places[at] = reach[0] * ((2 * column) / columns - 1);
      places[at + 1] = reach[1] * ((2 * row) / rows - 1);
    }
  }
  const count = places.length / 2;
  let heights = new Float64Array();
  const figure = new SpaceFigure({
    id: "surface",
    description:
      "The surface x over the length of (x, y), a ridge and a valley that meet at the origin, and a path on it.",
    caption:
      "Height is the first coordinate of u. The line on it is the path that the input takes; its height is the activation curve.",
    eye: [3.0, -6.5, 4.8],
    wide: 1.5,
    table: () => ({
      columns: ["x", "y", "height"],
      rows: Array.from({ length: count }, (_, i) => [...pair(places, i), heights[i] ?? 0]),
    }),
  });
  page.keep(figure);
  page.slot("surface").replaceWith(figure.element);
  page.slot("surface-controls").append(controls("The path", choice(page, "Path", "path", paths)));
  const geometry = new BufferGeometry()
    .setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3))
    .setAttribute("color", new BufferAttribute(new Float32Array(3 * count), 3));
  const index: number[] = [];
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const at = row * (columns + 1) + column;
      index.push(at, at + 1, at + columns + 1, at + 1, at + columns + 2, at + columns + 1);
    }
  }
  geometry.setIndex(index);
  const sheet = new Mesh(
    geometry,
    new MeshLambertMaterial({ vertexColors: true, side: DoubleSide, transparent: true, opacity: 0.85 }),
  );
  const path = new Line(new BufferGeometry(), new LineBasicMaterial());
  const shadow = new Line(new BufferGeometry(), new LineBasicMaterial());
  for (const object of [sheet, path, shadow]) object.frustumCulled = false;
  figure.add(sheet, path, shadow);
  const full = circle(240);
  await settled(
    page,
    (state) =>
      String([state.eps, state.path, state.path === "stretch" ? state.stretch : state.shift, color("--paper")]),
    async (state) => {
      const line = new Float64Array(Array.from({ length: 241 }, (_, i) => [reach[0] * (i / 120 - 1), 0.5]).flat());
      const taken =
        state.path === "line"
          ? line
          : (
              await move(
                page.engine,
                state.path as Move,
                state.path === "stretch" ? state.stretch : state.shift,
                epsOf(state),
                full,
              )
            ).moved;
      const [over, along] = await Promise.all([
        surface(page.engine, epsOf(state), places),
        surface(page.engine, epsOf(state), taken),
      ]);
      heights = Float64Array.from(over);
      const [low, high, middle] = [
        new Color(color("--series-1")),
        new Color(color("--series-2")),
        new Color(color("--rule")),
      ];
      const position = geometry.getAttribute("position") as BufferAttribute;
      const tints = geometry.getAttribute("color") as BufferAttribute;
      const mixed = new Color();
      for (let i = 0; i < count; ++i) {
        const height = heights[i] ?? 0;
        position.setXYZ(i, ...pair(places, i), height);
        mixed.copy(middle).lerp(height < 0 ? low : high, Math.abs(height));
        tints.setXYZ(i, mixed.r, mixed.g, mixed.b);
      }
      position.needsUpdate = true;
      tints.needsUpdate = true;
      geometry.computeVertexNormals();
      const closed = state.path !== "line";
      const points = (height: (i: number) => number) =>
        Float32Array.from(
          Array.from({ length: along.length + (closed ? 1 : 0) }, (_, i) => i % along.length).flatMap((i) => [
            ...pair(taken, i),
            height(i),
          ]),
        );
      path.geometry.dispose();
      path.geometry = new BufferGeometry().setAttribute(
        "position",
        new BufferAttribute(
          points((i) => (along[i] ?? 0) + 0.015),
          3,
        ),
      );
      shadow.geometry.dispose();
      shadow.geometry = new BufferGeometry().setAttribute(
        "position",
        new BufferAttribute(
          points(() => -1.15),
          3,
        ),
      );
      path.material.color = new Color(color("--ink"));
      shadow.material.color = new Color(color("--muted"));
      figure.element.dataset["path"] = `${state.path} ${Math.min(...along).toFixed(4)}`;
      figure.changed();
    },
  );
}
