import { BufferAttribute, BufferGeometry, Color, Points, PointsMaterial, SRGBColorSpace } from "three";
import { newest } from "../../engine/client";
import { normals } from "../../engine/random";
import { image, stepNames, steps } from "../../engine/geometry";
import type { Image, NormSpec } from "../../engine/geometry";
import { table } from "../../shared/dom";
import { factsOf, kinds, normalizingKinds, number } from "../../shared/format";
import { chapter } from "../chapter";
import { between, listOf, oneOf, seed, whole } from "../link";
import { choice, controls, entrySlider, slider } from "../controls";
import { ready } from "../figure";
import { entryInText, numberInText } from "../numbers";
import { player } from "../player";
import { SpaceFigure } from "../scene";
import { followStory, glide } from "../scrolly";
import { riechers } from "../sources";
import { directionColors } from "../colors";
import { cppOf, numbersOf, pythonOf } from "../doors";
import { bead } from "../space_marks";
import { mountEps, shownPoints } from "./geometry_eps";
import { GeometryMarks } from "./geometry_marks";
import text from "./geometry.html";

const defaults = {
  kind: "layer",
  gain: [1, 1.8, 0.6],
  bias: [0.8, -0.5, 0.6],
  eps: 0.0001,
  at: 0,
  seed: 1,
  /** The point that is ringed behind three values of eps. */
  point: 158,
};
type State = typeof defaults;

const three = listOf(between({ min: -1e6, max: 1e6 }), (count) => count === 3, "three numbers");
const pointCount = 800;
const places = ["input", ...stepNames];

const specOf = (state: State): NormSpec => ({
  kind: state.kind as NormSpec["kind"],
  width: 3,
  eps: state.eps,
  gain: state.gain,
  bias: state.bias,
});

/** Number of axes of the image: one less if the mean is removed, and one less for each zero gain. */
const axesOf = ({ kind, gain }: State): number => {
  const zero = gain.filter((value) => value === 0).length;
  return factsOf(kind)?.centers && zero === 0 ? 2 : 3 - zero;
};

export default chapter<State>({
  text,
  defaults,
  rules: {
    kind: oneOf(normalizingKinds),
    gain: three,
    bias: three,
    eps: between({ min: 0, max: 1e6 }),
    at: between({ min: 0, max: 4 }),
    seed,
    point: whole({ min: 0, max: shownPoints - 1 }),
  },
  sources: [riechers],
  presets: [
    {
      name: "Plain LayerNorm",
      claim: "Gain one, bias zero: a circle of radius √3, its normal the all-ones direction.",
      state: { gain: [1, 1, 1], bias: [0, 0, 0], at: 4 },
    },
    {
      name: "RMSNorm",
      claim: "No projection: a whole sphere, stretched to an ellipsoid. Nothing is erased.",
      state: { kind: "rms", at: 4 },
    },
    {
      name: "A dead gain",
      claim: "A gain of zero erases a coordinate outright, and the ellipse collapses to a segment.",
      state: { gain: [1, 1.5, 0], at: 4 },
    },
    {
      name: "A large eps",
      claim: "With ε as large as the variance of the input, scaling barely reaches the circle: the disk fills.",
      state: { eps: 1, gain: [1, 1, 1], at: 2 },
    },
    {
      name: "Shifted",
      claim: "The bias moves the ellipse; its axes and its normal stay.",
      state: { bias: [1.6, -1.2, 1.4], at: 4 },
    },
  ],
  doors: (state) => ({
    command: `normscope geometry --norm ${state.kind} --gain=${numbersOf(state.gain)} --axes ${axesOf(state)}`,
    cpp: cppOf(
      ["norm/image", "norm/norm"],
      `const normscope::NormSpec norm{.kind = normscope::NormKind::${state.kind}, .width = 3, .eps = ${state.eps},
                               .gain = {${numbersOf(state.gain)}}, .bias = {${numbersOf(state.bias)}}};
const normscope::norm::NormImage image(norm);
for (double length : image.semi_axes()) fmt::print("{}\\n", length);`,
    ),
    python: pythonOf([
      "geometry",
      "--norm",
      state.kind,
      `--gain=${numbersOf(state.gain)}`,
      "--axes",
      String(axesOf(state)),
    ]),
  }),
  async mount(page) {
    let input = new Float64Array(3 * pointCount);
    let stages: Float64Array[] = [];

    const space = new SpaceFigure({
      id: "geometry",
      description: "Points in space carried through the four steps of a norm.",
      // Far from the all-ones direction, along which a projection cannot be seen.
      eye: [8.6, -3.7, 3.6],
      fades: true,
      table: () => ({
        columns: ["step", "x", "y", "z"],
        rows: [input, ...stages].flatMap((stage, step) =>
          Array.from({ length: pointCount }, (_, i) => [places[step] ?? "", ...stage.subarray(3 * i, 3 * i + 3)]),
        ),
      }),
    });
    page.keep(space);
    const positions = new BufferAttribute(new Float32Array(3 * pointCount), 3);
    const geometry = new BufferGeometry().setAttribute("position", positions);
    const look = new PointsMaterial({ vertexColors: true, map: bead(), alphaTest: 0.5 });
    const points = new Points(geometry, look);
    points.frustumCulled = false;
    const marks = new GeometryMarks(space);
    page.keep(marks);
    space.add(points);

    /** Points between two of the steps, `at` from 0 (input) to 4 (shift). */
    const place = (at: number) => {
      const from = Math.min(3, Math.floor(at));
      const [a, b] = [from === 0 ? input : stages[from - 1], stages[from]];
      if (a === undefined || b === undefined) return;
      const part = at - from;
      for (let i = 0; i < a.length; ++i) positions.array[i] = (1 - part) * (a[i] ?? 0) + part * (b[i] ?? 0);
      positions.needsUpdate = true;
      space.changed();
      space.element.dataset["at"] = at.toFixed(3);
    };

    let found: Image | null = null;
    let solved = "";
    /** What has to be in view after each step. */
    let reaches: number[] = [];
    /** Results that depend only on the norm, which the steps between input and output reuse. */
    const solve = async (spec: NormSpec) => {
      [found, stages] = await Promise.all([image(page.engine, spec), steps(page.engine, spec, input)]);
      reaches = reachesOf([input, ...stages], found, spec);
      axesTable.replaceChildren(tableOf(found));
      page.slot("radius").textContent =
        `Radius of the sphere: ${number(found.radius, 4)}. ` +
        `Of ${pointCount} points, ${inside(stages[1], found.radius)} stay more than 1 % short of it.`;
      space.element.dataset["semiAxes"] = [...found.semiAxes].map((length) => length.toPrecision(6)).join(" ");
      space.element.dataset["solved"] = String(Number(space.element.dataset["solved"] ?? 0) + 1);
    };
    const draw = newest(async (state: State) => {
      const spec = specOf(state);
      const key = JSON.stringify(spec);
      if (key !== solved) await solve(spec);
      solved = key;
      if (found === null) return;
      place(state.at);
      const reach = interpolated(reaches, state.at);
      space.frame(reach);
      look.size = 0.085 * reach;
      marks.draw(found, { ...state, projects: factsOf(state.kind)?.centers ?? false, reach });
      space.element.dataset["words"] = marks.words;
      ready(space.element);
      page.say(
        `${places[Math.round(state.at)]}: semi-axes ${[...found.semiAxes].map((length) => number(length)).join(", ")}`,
      );
    });

    const axesTable = page.slot("axes");
    page.slot("space").append(space.element);
    const at = slider(page, "Step", "at", {
      min: 0,
      max: 4,
      step: 0.01,
      show: (value) => places[Math.round(value)] ?? "",
    });
    const kind = choice(
      page,
      "Kind",
      "kind",
      normalizingKinds.map((kind) => [kind, kinds[kind].title]),
    );
    page.slot("steps").append(
      controls(
        "Step",
        at,
        player(page, {
          read: (state) => state.at,
          write: (value) => ({ at: value }),
          from: 0,
          to: () => 4,
          pace: 1500,
          seen: { element: space.element, opens: true },
        }),
        kind,
      ),
    );
    const epsRange = { min: 1e-8, max: 10, step: 0.1, log: true };
    page.slot("scaling").append(slider(page, "eps", "eps", epsRange));
    numberInText(page, "eps, in the text", "eps", epsRange);
    const sliders = (name: string, key: "gain" | "bias", most: number) => {
      const range = { min: -most, max: most, step: 0.05 };
      for (const i of [0, 1, 2]) entryInText(page, `${key} ${i + 1}, in the text`, key, i, range);
      return controls(name, ...[0, 1, 2].map((i) => entrySlider(page, `${key} ${i + 1}`, key, i, range)));
    };
    page.slot("gains").append(sliders("Gain", "gain", 3));
    page.slot("biases").append(sliders("Bias", "bias", 2));

    input = Float64Array.from(await normals(page.engine, 3 * pointCount, page.store.get().seed));
    geometry.setAttribute("color", new BufferAttribute(linear(directionColors(input)), 3));
    page.onChange(draw);
    mountEps(page, input, specOf);

    followStory(page, (step) =>
      glide(page.store.get().at, Number(step), 900, (value) => page.store.tell({ at: rounded(value) })),
    );
  },
});

/** Colours as they are mixed with light. */
function linear(colors: Float32Array): Float32Array {
  const color = new Color();
  for (let i = 0; i < colors.length; i += 3) {
    color.setRGB(colors[i] ?? 0, colors[i + 1] ?? 0, colors[i + 2] ?? 0, SRGBColorSpace).toArray(colors, i);
  }
  return colors;
}

const rounded = (value: number): number => Number(value.toFixed(3));

function inside(points: Float64Array | undefined, radius: number): number {
  let count = 0;
  for (let i = 0; points !== undefined && i < points.length; i += 3) {
    count += Number(Math.hypot(points[i] ?? 0, points[i + 1] ?? 0, points[i + 2] ?? 0) < 0.99 * radius);
  }
  return count;
}

/** Radius of the ball that holds nearly all points, and of the outputs the whole image. */
function reachesOf(stages: Float64Array[], { semiAxes, radius }: Image, { bias = [] }: NormSpec): number[] {
  const room = 1.25;
  const cloud = (points: Float64Array | undefined) => {
    const lengths = Array.from({ length: pointCount }, (_, i) =>
      Math.hypot(...(points?.subarray(3 * i, 3 * i + 3) ?? [])),
    );
    return room * (lengths.sort((a, b) => a - b)[Math.floor(0.97 * pointCount)] ?? 1);
  };
  const image = Math.max(1e-3, ...semiAxes);
  return [cloud(stages[0]), cloud(stages[1]), room * radius, room * image, room * (image + 0.7 * Math.hypot(...bias))];
}

/** Between two neighbours of a list. */
function interpolated(list: number[], at: number): number {
  const from = Math.min(list.length - 2, Math.floor(at));
  return (list[from] ?? 1) + (at - from) * ((list[from + 1] ?? 1) - (list[from] ?? 1));
}

function tableOf({ semiAxes, axes, nullSpace }: Image): HTMLElement {
  const vector = (values: Float64Array, index: number) =>
    `(${[...values.subarray(3 * index, 3 * index + 3)].map((value) => number(value)).join(", ")})`;
  return table(
    "Principal axes of the image",
    ["axis", "length", "direction"],
    [
      ...[...semiAxes].map((length, i) => [String(i + 1), number(length, 4), vector(axes, i)]),
      ...Array.from({ length: nullSpace.length / 3 }, (_, i) => ["erased", "0", vector(nullSpace, i)]),
    ],
    [1],
  );
}
