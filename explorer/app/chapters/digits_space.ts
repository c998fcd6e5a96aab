import { BufferAttribute, BufferGeometry, Color, Points, PointsMaterial, Vector3 } from "three";
import type { States } from "../../engine/playground";
import { color } from "../../shared/theme";
import { digitTint } from "../colors";
import { ready } from "../figure";
import { SpaceFigure } from "../scene";
import { bead, Labels, ReferenceSphere } from "../space_marks";

/** A hue for each digit; the lightness goes with the theme. */
export const digitColor = (digit: number): string =>
  digitTint(digit, new Color(color("--paper")).getHSL({ h: 0, s: 0, l: 0 }).l <= 0.5);

/** The farthest point is drawn at this distance. */
const reach = 1.25;

/** Outputs of the layers, as the picture needs them. */
export interface Layers {
  states: States;
  labels: Int32Array;
  /** The drawn digit's, a row a layer; null without one. */
  own: States | null;
  /** Radius of the sphere behind the norms; null where there is none. */
  radius: number | null;
}

/** Digits in the space of three neurons, from layer to layer. */
export class DigitSpace {
  readonly figure: SpaceFigure;
  private readonly points = new Points(
    new BufferGeometry(),
    new PointsMaterial({ size: 0.055, vertexColors: true, map: bead(), alphaTest: 0.5 }),
  );
  private readonly own = new Points(
    new BufferGeometry().setAttribute("position", new BufferAttribute(new Float32Array(3), 3)),
    new PointsMaterial({ size: 0.17, map: bead(), alphaTest: 0.5 }),
  );
  private readonly sphere = new ReferenceSphere();
  private readonly labels = new Labels();
  private layers: Layers | null = null;

  constructor() {
    this.figure = new SpaceFigure({
      id: "digits",
      description: "Digits as points of three neurons after a layer, with the sphere on which the norm puts them.",
      caption:
        "Every dot is an image, coloured by its digit; numbers stand at the mean of each. The large dot is the digit on the pad.",
      eye: [2.4, -2.6, 1.6],
      fades: true,
      table: () => ({
        columns: ["layer", "digit", "x", "y", "z"],
        rows: (this.layers?.states.states ?? []).flatMap((state, layer) =>
          Array.from(this.layers!.labels, (digit, i) => [layer + 1, digit, ...this.row(state, i)]),
        ),
      }),
    });
    for (const object of [this.points, this.own]) object.frustumCulled = false;
    this.figure.add(this.points, this.own, this.sphere.group, this.labels.group);
    // Until there is something to show.
    this.own.visible = false;
    this.sphere.show(null);
  }

  dispose(): void {
    this.labels.dispose();
    this.figure.dispose();
  }

  show(layers: Layers, at: number): void {
    const count = layers.labels.length;
    if (this.points.geometry.getAttribute("position")?.count !== count) {
      this.points.geometry.dispose();
      this.points.geometry = new BufferGeometry()
        .setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3))
        .setAttribute("color", new BufferAttribute(new Float32Array(3 * count), 3));
    }
    this.layers = layers;
    const tints = Array.from({ length: 10 }, (_, digit) => new Color(digitColor(digit)));
    const target = this.points.geometry.getAttribute("color") as BufferAttribute;
    layers.labels.forEach((digit, i) => tints[digit]!.toArray(target.array, 3 * i));
    target.needsUpdate = true;
    this.place(at);
  }

  /** Points between two layers, `at` from 1. */
  place(at: number): void {
    const { layers } = this;
    if (layers === null) return;
    const { states } = layers.states;
    const moment = Math.min(at, states.length) - 1;
    const below = Math.floor(moment);
    const part = moment - below;
    const [from, to] = [states[below]!, states[Math.min(below + 1, states.length - 1)]!];
    const scale = layers.radius === null ? reach / farthest(states) : 1 / layers.radius;
    const position = this.points.geometry.getAttribute("position") as BufferAttribute;
    const sums = Array.from({ length: 10 }, () => ({ at: new Vector3(), count: 0 }));
    const point = new Vector3();
    layers.labels.forEach((digit, i) => {
      const [a, b] = [this.row(from, i), this.row(to, i)];
      point.set(...(a.map((value, k) => scale * ((1 - part) * value + part * b[k]!)) as [number, number, number]));
      point.toArray(position.array, 3 * i);
      const sum = sums[digit]!;
      sum.at.add(point);
      sum.count += 1;
    });
    position.needsUpdate = true;
    this.own.visible = layers.own !== null;
    if (layers.own !== null) {
      const [a, b] = [
        this.row(layers.own.states[below]!, 0),
        this.row(layers.own.states[Math.min(below + 1, states.length - 1)]!, 0),
      ];
      this.own.geometry
        .getAttribute("position")
        .setXYZ(0, ...(a.map((value, k) => scale * ((1 - part) * value + part * b[k]!)) as [number, number, number]));
      this.own.geometry.getAttribute("position").needsUpdate = true;
      this.own.material.color = new Color(color("--ink"));
    }
    this.sphere.show(layers.radius === null ? null : 1);
    this.labels.show(
      sums.flatMap(({ at: sum, count }, digit) =>
        count === 0
          ? []
          : [{ text: String(digit), at: sum.divideScalar(count).multiplyScalar(1.15), color: digitColor(digit) }],
      ),
    );
    ready(this.figure.element);
    this.figure.element.dataset["layer"] = (moment + 1).toFixed(2);
    this.figure.element.dataset["place"] = [...position.array.subarray(0, 3)]
      .map((value) => value.toFixed(3))
      .join(" ");
    this.figure.changed();
  }

  /** The first three features of a row. */
  private row(state: Float32Array, i: number): [number, number, number] {
    const width = this.layers?.states.width ?? 3;
    const value = (axis: number) => (axis < width ? (state[i * width + axis] ?? 0) : 0);
    return [value(0), value(1), value(2)];
  }
}

function farthest(states: Float32Array[]): number {
  let most = 1e-9;
  for (const state of states) for (const value of state) most = Math.max(most, Math.abs(value));
  return most;
}
