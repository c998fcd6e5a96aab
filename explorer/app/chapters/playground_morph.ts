import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DoubleSide,
  Group,
  Line,
  LineBasicMaterial,
  Mesh,
  MeshBasicMaterial,
  PlaneGeometry,
  Points,
  PointsMaterial,
  Quaternion,
  Vector3,
} from "three";
import type { Answers, States } from "../../engine/playground";
import { color } from "../../shared/theme";
import { SpaceFigure } from "../scene";
import { bead, ReferenceSphere } from "../space_marks";

/** A sheet of columns × rows points; a round one is closed behind its last column. */
export interface Sheet {
  columns: number;
  rows: number;
  round: boolean;
}

/** Distance of the farthest point that is drawn at full size. */
const farthest = 1.9;

/** Part of the turn at the end in which the cut comes to be seen edge-on; in the rest everything turns around once. */
const tilting = 0.35;

export interface Picture {
  /** The samples, and the points of the sheet, after every linear map and every activation. */
  samples: States;
  labels: ArrayLike<number>;
  sheet: Sheet | null;
  sheetStates: States | null;
  sheetAnswers: Answers | null;
  head: { weight: Float64Array; bias: Float64Array };
  colors: string[];
  /** Radius of the sphere behind the norms; null where there is none. */
  radius: number | null;
}

/** Samples, and the sheet they lie on, from layer to layer. */
export class Morph {
  readonly figure: SpaceFigure;
  private readonly points = new Points(
    new BufferGeometry(),
    new PointsMaterial({ size: 0.06, vertexColors: true, map: bead(), alphaTest: 0.5 }),
  );
  /** The samples again, faint and in front of everything: those on the far side show through the sheet. */
  private readonly far = new Points(
    this.points.geometry,
    new PointsMaterial({
      ...{ size: 0.06, vertexColors: true, map: bead(), alphaTest: 0.2 },
      ...{ transparent: true, opacity: 0.4, depthTest: false, depthWrite: false },
    }),
  );
  private readonly sheet = new Mesh(
    new BufferGeometry(),
    new MeshBasicMaterial({
      vertexColors: true,
      side: DoubleSide,
      transparent: true,
      opacity: 0.45,
      depthWrite: false,
    }),
  );
  private readonly plane = new Mesh(
    new PlaneGeometry(2.3, 2.3),
    new MeshBasicMaterial({ side: DoubleSide, transparent: true, opacity: 0.28, depthWrite: false }),
  );
  private readonly axes = new Group();
  private readonly sphere = new ReferenceSphere();
  /** All of the picture, which turns in the end. */
  private readonly turning = new Group();
  /** The largest number of each of the picture's states. */
  private reaches: number[] = [];
  private picture: Picture | null = null;
  private at = 0;

  constructor() {
    this.figure = new SpaceFigure({
      id: "morph",
      description: "The samples in space, carried through the layers of the net.",
      caption:
        "Dots are samples, faint where the sheet is before them; the sheet is the whole input around them, coloured by the class the net gives it. " +
        "The thin sphere is where the norm puts everything; the grey plane is where the last, linear layer cuts.",
      eye: [2.8, -3.0, 2.0],
      table: () => ({
        columns: ["layer", "step", "class", ...["x", "y", "z"].slice(0, this.picture?.samples.width ?? 3)],
        rows: (this.picture?.samples.states ?? []).flatMap((state, index) =>
          Array.from({ length: this.picture!.labels.length }, (_, i) => [
            Math.ceil(index / 2),
            index === 0 ? "input" : index % 2 === 1 ? "linear" : "activation",
            this.picture!.labels[i] ?? 0,
            ...state.subarray(
              i * this.picture!.samples.width,
              i * this.picture!.samples.width + Math.min(3, this.picture!.samples.width),
            ),
          ]),
        ),
      }),
    });
    for (const object of [this.points, this.far, this.sheet]) object.frustumCulled = false;
    this.far.renderOrder = 1;
    this.turning.add(this.sheet, this.points, this.far, this.plane, this.axes, this.sphere.group);
    this.figure.add(this.turning);
  }

  dispose(): void {
    this.figure.dispose();
  }

  show(picture: Picture, at: number): void {
    const old = this.picture;
    this.picture = picture;
    this.reaches = picture.samples.states.map((state) =>
      state.reduce((most, value) => Math.max(most, Math.abs(value)), 0),
    );
    this.drawAxes();
    const count = picture.labels.length;
    if (old === null || old.labels.length !== count) {
      this.points.geometry.dispose();
      this.points.geometry = new BufferGeometry()
        .setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3))
        .setAttribute("color", new BufferAttribute(new Float32Array(3 * count), 3));
    }
    this.far.geometry = this.points.geometry;
    for (const { material } of [this.points, this.far]) material.size = count > 60 ? 0.06 : 0.13;
    const tints = picture.colors.map((css) => new Color(css));
    const paint = (
      target: BufferAttribute,
      classOf: (i: number) => number,
      share: (i: number) => number,
      paper: Color,
    ) => {
      const mixed = new Color();
      for (let i = 0; i < target.count; ++i) {
        mixed.copy(paper).lerp(tints[classOf(i)] ?? paper, share(i));
        target.setXYZ(i, mixed.r, mixed.g, mixed.b);
      }
      target.needsUpdate = true;
    };
    const paper = new Color(color("--paper"));
    paint(
      this.points.geometry.getAttribute("color") as BufferAttribute,
      (i) => picture.labels[i] ?? 0,
      () => 1,
      paper,
    );
    this.sheet.visible = picture.sheet !== null;
    this.far.visible = this.sheet.visible;
    if (picture.sheet !== null) {
      const vertices = picture.sheet.columns * picture.sheet.rows;
      if (
        this.sheet.geometry.getAttribute("position")?.count !== vertices ||
        old?.sheet?.round !== picture.sheet.round
      ) {
        this.sheet.geometry.dispose();
        this.sheet.geometry = new BufferGeometry()
          .setAttribute("position", new BufferAttribute(new Float32Array(3 * vertices), 3))
          .setAttribute("color", new BufferAttribute(new Float32Array(3 * vertices), 3));
        this.sheet.geometry.setIndex(triangles(picture.sheet));
      }
      const answers = picture.sheetAnswers!;
      const least = 1 / Math.max(2, tints.length);
      paint(
        this.sheet.geometry.getAttribute("color") as BufferAttribute,
        (i) => answers.classes[i] ?? 0,
        (i) => 0.15 + 0.85 * Math.max(0, ((answers.probabilities[i] ?? 0) - least) / (1 - least)),
        paper,
      );
    }
    this.place(at);
  }

  /**
   * The moment between the layers: 0 the input, 1 after the first layer. In the first half of a layer its linear map moves
   * the points, in the second its activation; in the unit after the last layer the picture turns.
   */
  place(at: number): void {
    this.at = at;
    const { picture, reaches } = this;
    if (picture === null) return;
    const last = reaches.length - 1;
    const moment = Math.min(2 * at, last);
    const below = Math.min(Math.floor(moment), Math.max(0, last - 1));
    const [from = 1, to = from] = [reaches[below], reaches[below + 1]];
    const scale = Math.min(1, farthest / (from + (moment - below) * (to - from)));
    between(picture.samples, moment, scale, this.points.geometry.getAttribute("position") as BufferAttribute);
    if (picture.sheetStates !== null)
      between(picture.sheetStates, moment, scale, this.sheet.geometry.getAttribute("position") as BufferAttribute);
    const normal = this.normal();
    this.placePlane(normal, moment === last && last > 0, scale);
    // Before the first norm nothing is on it.
    this.sphere.show(
      picture.radius === null || picture.samples.width < 3 || moment < 1 ? null : scale * picture.radius,
    );
    this.turn(normal, Math.min(1, Math.max(0, at - last / 2)));
    const { dataset } = this.figure.element;
    dataset["sphere"] = this.sphere.group.visible ? (scale * (picture.radius ?? 0)).toFixed(3) : "none";
    dataset["scale"] = scale.toFixed(4);
    dataset["layer"] = at.toFixed(2);
    dataset["place"] = [...(this.points.geometry.getAttribute("position") as BufferAttribute).array.subarray(0, 3)]
      .map((value) => value.toFixed(3))
      .join(" ");
    this.figure.changed();
  }

  /** Turns the picture by a part of the way: the plane of the cut to be seen edge-on, and then all of it around once. */
  private turn(normal: Vector3 | null, part: number): void {
    const { up, toward } = this.figure.directions();
    const level = normal === null ? new Quaternion() : new Quaternion().setFromUnitVectors(normal, up);
    const around = new Quaternion().setFromAxisAngle(up, 2 * Math.PI * Math.max(0, (part - tilting) / (1 - tilting)));
    this.turning.quaternion.slerpQuaternions(new Quaternion(), level, Math.min(1, part / tilting)).premultiply(around);
    const turned = normal?.clone().applyQuaternion(this.turning.quaternion);
    // 0 where the plane is a line on the screen.
    this.figure.element.dataset["edge"] = turned === undefined ? "" : Math.abs(turned.dot(toward)).toFixed(3);
  }

  /** The direction that separates two classes in three dimensions, not yet of length 1. */
  private separating(): Vector3 | null {
    const { head, samples } = this.picture!;
    const { weight, bias } = head;
    if (samples.width !== 3 || bias.length !== 2 || weight.length !== 6) return null;
    const found = new Vector3(weight[3]! - weight[0]!, weight[4]! - weight[1]!, weight[5]! - weight[2]!);
    return found.length() > 0 ? found : null;
  }

  private normal(): Vector3 | null {
    return this.separating()?.normalize() ?? null;
  }

  /** The boundary of two classes in three dimensions, w·h + b = 0. */
  private placePlane(normal: Vector3 | null, shown: boolean, scale: number): void {
    this.plane.visible = shown && normal !== null;
    if (!this.plane.visible || normal === null) return;
    const { bias } = this.picture!.head;
    const length = this.separating()!.length();
    this.plane.quaternion.copy(new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), normal));
    this.plane.position.copy(normal).multiplyScalar((-scale * (bias[1]! - bias[0]!)) / length);
    this.plane.material.color = new Color(color("--muted"));
  }

  private drawAxes(): void {
    const tint = new Color(color("--rule"));
    if (this.axes.children.length === 0) {
      for (const axis of [new Vector3(1, 0, 0), new Vector3(0, 1, 0), new Vector3(0, 0, 1)]) {
        const ends = [axis.clone().multiplyScalar(-1.6), axis.clone().multiplyScalar(1.6)];
        this.axes.add(new Line(new BufferGeometry().setFromPoints(ends), new LineBasicMaterial()));
      }
    }
    for (const line of this.axes.children) ((line as Line).material as LineBasicMaterial).color = tint;
  }

  /** The layer on show. */
  get layer(): number {
    return this.at;
  }
}

/** Rows on the line between two states, their first three features. */
function between(states: States, at: number, scale: number, target: BufferAttribute): void {
  const below = Math.min(Math.floor(at), states.states.length - 1);
  const from = states.states[below]!;
  const to = states.states[Math.min(below + 1, states.states.length - 1)]!;
  const part = at - below;
  for (let i = 0; i < target.count; ++i) {
    for (let axis = 0; axis < 3; ++axis) {
      const index = i * states.width + axis;
      const value = axis < states.width ? (1 - part) * (from[index] ?? 0) + part * (to[index] ?? 0) : 0;
      target.array[3 * i + axis] = scale * value;
    }
  }
  target.needsUpdate = true;
}

function triangles({ columns, rows, round }: Sheet): number[] {
  const index: number[] = [];
  for (let row = 0; row + 1 < rows; ++row) {
    for (let column = 0; column + (round ? 0 : 1) < columns; ++column) {
      const right = (column + 1) % columns;
      const [a, b, c, d] = [
        row * columns + column,
        row * columns + right,
        (row + 1) * columns + column,
        (row + 1) * columns + right,
      ];
      index.push(a, b, c, b, d, c);
    }
  }
  return index;
}
