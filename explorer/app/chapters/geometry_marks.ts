import { BufferAttribute, BufferGeometry, Group, Mesh, SphereGeometry, Vector3 } from "three";
import type { Object3D } from "three";
import type { Image } from "../../engine/geometry";
import { number } from "../../shared/format";
import { color } from "../../shared/theme";
import type { SpaceFigure } from "../scene";
import { arrow, dashes, glass, Labels, ring, rod } from "../space_marks";

/** What the marks show of the state. */
interface Shown {
  /** Whether the norm takes the mean away. */
  projects: boolean;
  gain: number[];
  bias: number[];
  /** From 0 (input) to 4 (shift). */
  at: number;
  /** Radius of the ball in view. */
  reach: number;
}

const ones = new Vector3(1, 1, 1).normalize();
/** Two directions of the plane that the mean is taken away into. */
export const across = [new Vector3(1, -1, 0).normalize(), new Vector3(1, 1, -2).normalize()] as const;
const subscripts = "₁₂₃";

const rowOf = (values: Float64Array, index: number): Vector3 =>
  new Vector3(...values.subarray(3 * index, 3 * index + 3));
const span = (part: number): number => Math.min(1, Math.max(0, part));

/** Axes, plane, sphere or ellipsoid, its semi-axes and the erased direction, at any moment of the four steps. */
export class GeometryMarks {
  readonly group = new Group();
  private readonly labels = new Labels();

  constructor(private readonly space: SpaceFigure) {
    space.add(this.group);
  }

  dispose(): void {
    this.labels.dispose();
  }

  /** The words in the picture. */
  get words(): string {
    return this.labels.words;
  }

  draw(found: Image, shown: Shown): void {
    this.labels.group.removeFromParent();
    this.space.drop([...this.group.children]);
    const { projects, at, reach } = shown;
    const thin = 0.005 * reach;
    const words: Parameters<Labels["show"]>[0] = [];
    const name = (text: string, where: Vector3, tint: string) => words.push({ text, at: where, color: color(tint) });
    const add = (...parts: Object3D[]) => this.group.add(...parts);

    const ends = [new Vector3(1, 0, 0), new Vector3(0, 1, 0), new Vector3(0, 0, 1)].map((axis) =>
      axis.multiplyScalar(0.8 * reach),
    );
    ends.forEach((end) => {
      add(rod(end.clone().negate(), end, 0.6 * thin, color("--rule")));
    });

    // Points move in straight lines, as if the gain grew from one to what it is.
    const part = span(at - 2);
    const gain = new Vector3(...shown.gain.map((value) => 1 + (value - 1) * part));
    const center = new Vector3(...shown.bias).multiplyScalar(span(at - 3));
    const stretched = (direction: Vector3) => direction.clone().multiply(gain);

    if (projects) {
      const [u, v] = across.map(stretched) as [Vector3, Vector3];
      const normal = u.clone().cross(v);
      if (at > 0 && normal.length() > 1e-9) {
        normal.normalize();
        add(sheet(center, u.normalize(), normal.clone().cross(u), 0.62 * reach, 0.16 * span(at)));
      }
      const tip = ones.clone().multiplyScalar(0.72 * reach);
      if (part < 1) {
        add(arrow(new Vector3(), tip, thin, color("--alarm")));
        name("all-ones (1, 1, 1)", tip.clone().multiplyScalar(1.08), "--alarm");
      } else {
        add(dashes(new Vector3(), tip, 0.6 * thin, 0.03 * reach, color("--muted")));
        name("all-ones", tip.clone().multiplyScalar(1.06), "--muted");
      }
    }
    if (at > 1) this.solid(found, gain, center, span(at - 1), projects, thin);
    if (part === 1) {
      const tints = ["--series-1", "--series-3", "--series-5"];
      found.semiAxes.forEach((length, i) => {
        const axis = rowOf(found.axes, i).multiplyScalar(length);
        const tint = tints[i] ?? "--ink";
        for (const side of [axis, axis.clone().negate()])
          add(dashes(center, center.clone().add(side), 1.4 * thin, 0.03 * reach, color(tint)));
        name(number(length, 3), center.clone().addScaledVector(axis, 1 + (0.09 * reach) / length), tint);
      });
      for (let i = 0; i < found.nullSpace.length / 3; ++i) {
        const tip = rowOf(found.nullSpace, i)
          .multiplyScalar(0.6 * reach)
          .add(center);
        add(arrow(center, tip, thin, color("--alarm")));
        name("null direction", tip.clone().addScaledVector(rowOf(found.nullSpace, i), 0.06 * reach), "--alarm");
      }
    }
    // The last ones: where there is no room for all, names of axes make way.
    ends.forEach((end, i) => name(`x${subscripts[i]}`, end.clone().multiplyScalar(1.07), "--muted"));
    this.labels.show(words);
    this.group.add(this.labels.group);
  }

  /** The sphere, or what the gain makes of it, and where the plane cuts it. */
  private solid(
    { radius }: Image,
    gain: Vector3,
    center: Vector3,
    there: number,
    projects: boolean,
    thin: number,
  ): void {
    const skin = new Mesh(new SphereGeometry(radius, 48, 32), glass(color("--series-1"), 0.13 * there));
    skin.scale.copy(gain);
    skin.position.copy(center);
    this.group.add(skin);
    const circles = projects
      ? [across]
      : [
          [new Vector3(1, 0, 0), new Vector3(0, 1, 0)] as const,
          [new Vector3(1, 0, 0), new Vector3(0, 0, 1)] as const,
          [new Vector3(0, 1, 0), new Vector3(0, 0, 1)] as const,
        ];
    for (const [a, b] of there < 1 ? [] : circles) {
      const places = Array.from({ length: 96 }, (_, i) => {
        const angle = (2 * Math.PI * i) / 96;
        const place = a
          .clone()
          .multiplyScalar(radius * Math.cos(angle))
          .addScaledVector(b, radius * Math.sin(angle));
        return place.multiply(gain).add(center);
      });
      this.group.add(ring(places, (projects ? 0.9 : 0.6) * thin, color(projects ? "--ink" : "--muted")));
    }
  }
}

/** A square of half side `half` that one looks through. */
function sheet(center: Vector3, u: Vector3, v: Vector3, half: number, opacity: number): Mesh {
  const corner = (x: number, y: number) =>
    center
      .clone()
      .addScaledVector(u, half * x)
      .addScaledVector(v, half * y);
  const geometry = new BufferGeometry().setFromPoints([corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)]);
  geometry.setIndex(new BufferAttribute(new Uint16Array([0, 1, 2, 0, 2, 3]), 1));
  return new Mesh(geometry, glass(color("--series-7"), opacity));
}
