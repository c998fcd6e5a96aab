import {
  ArrowHelper,
  BufferGeometry,
  Color,
  DoubleSide,
  Group,
  Line,
  LineBasicMaterial,
  LineLoop,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  SphereGeometry,
  Vector3,
} from "three";
import type { Object3D } from "three";
import type { Selection, Verdict } from "../../engine/selectability";
import { percent } from "../../shared/format";
import { color } from "../../shared/theme";
import type { PlaneFigure, Point } from "../plane";
import type { SpaceFigure } from "../scene";
import type { Labels } from "../space_marks";

/** The data of both figures. */
export interface Scene {
  /** Before the steps. */
  original: number[];
  selection: Selection;
  width: 2 | 3;
  /** Whether the steps have moved the keys from their original positions. */
  moved: boolean;
  /** Whether all keys have one length. */
  scaled: boolean;
  chosen: number;
  query: number[];
}

const pairAt = (values: ArrayLike<number>, index: number): Point => [
  values[2 * index] ?? 0,
  values[2 * index + 1] ?? 0,
];

const tint = (verdict: Verdict | undefined): string =>
  verdict?.answer === "unselectable"
    ? "var(--series-2)"
    : verdict?.answer === "undecided"
      ? "var(--muted)"
      : "var(--series-1)";

/** The keys in the plane, their hull, and the proof of the chosen one. */
export function paintPlane(plane: PlaneFigure, scene: Scene): void {
  const { selection, original, chosen, moved } = scene;
  const place = (index: number) => pairAt(selection.keys, index);
  for (const face of selection.faces) {
    const outline = [...face].map(place);
    plane.path(outline, {
      fill: "var(--tint)",
      stroke: "var(--muted)",
      "stroke-width": 1.5,
      "stroke-linejoin": "round",
    });
  }
  if (scene.scaled) plane.circle([0, 0], Math.hypot(...place(0)), { "stroke-dasharray": "5 4" });
  const verdict = selection.verdicts[chosen];
  if (verdict !== undefined) paintProof(plane, place, chosen, verdict);
  selection.verdicts.forEach((other, index) => {
    const at = place(index);
    if (moved)
      plane.line(pairAt(original, index), at, { "stroke-dasharray": "2 3", stroke: tint(other), opacity: 0.7 });
    paintKey(plane, at, other, index === chosen ? 9 : 7);
    plane.text(
      at,
      String(index),
      { "text-anchor": "middle", "font-size": 12, "font-weight": index === chosen ? 700 : 400 },
      [0, -13],
    );
  });
  plane.arrow([0, 0], scene.query as Point, { stroke: "var(--ink)" });
}

/** A disk for a key that can be selected, a ring for one that cannot. */
function paintKey(plane: PlaneFigure, at: Point, verdict: Verdict, radius: number): void {
  const lost = verdict.answer !== "selectable";
  plane.dot(at, lost ? radius - 1 : radius, {
    fill: lost ? "var(--paper)" : tint(verdict),
    stroke: lost ? tint(verdict) : "var(--paper)",
    "stroke-width": lost ? 3 : 1.5,
  });
}

function paintProof(plane: PlaneFigure, place: (index: number) => Point, chosen: number, verdict: Verdict): void {
  const at = place(chosen);
  if (verdict.answer === "selectable" && Number.isFinite(verdict.margin)) {
    const length = Math.hypot(...verdict.query);
    if (length === 0) return;
    const [ux, uy] = [(verdict.query[0] ?? 0) / length, (verdict.query[1] ?? 0) / length];
    // The band without other keys: from the key back by its margin.
    const corner = (along: number, across: number): Point => [
      at[0] + along * ux - across * uy,
      at[1] + along * uy + across * ux,
    ];
    const [back, wide] = [-verdict.margin, 12];
    plane.path([corner(0, -wide), corner(0, wide), corner(back, wide), corner(back, -wide)], {
      fill: "var(--series-3)",
      "fill-opacity": 0.2,
      stroke: "none",
    });
    plane.line(corner(0, -wide), corner(0, wide), { stroke: "var(--series-3)", "stroke-width": 1.5 });
    plane.arrow(at, corner(0.8, 0), { stroke: "var(--series-3)" });
    return;
  }
  verdict.others.forEach((other, i) => {
    const to = place(other);
    plane.line(at, to, { stroke: "var(--series-2)", "stroke-width": 1 + 5 * (verdict.shares[i] ?? 0) });
    const middle: Point = [at[0] + 0.6 * (to[0] - at[0]), at[1] + 0.6 * (to[1] - at[1])];
    plane.text(middle, percent(verdict.shares[i] ?? 0), {
      "text-anchor": "middle",
      "font-weight": 600,
      stroke: "var(--tint)",
      "stroke-width": 3,
      "paint-order": "stroke",
    });
  });
}

const vectorAt = (values: ArrayLike<number>, index: number) =>
  new Vector3(values[3 * index] ?? 0, values[3 * index + 1] ?? 0, values[3 * index + 2] ?? 0);

const line = (ends: Vector3[], tinted: string, closed = false) =>
  new (closed ? LineLoop : Line)(
    new BufferGeometry().setFromPoints(ends),
    new LineBasicMaterial({ color: new Color(tinted) }),
  );

const ball = (at: Vector3, radius: number, tinted: string, id?: string): Mesh => {
  const mesh = new Mesh(new SphereGeometry(radius, 20, 14), new MeshLambertMaterial({ color: new Color(tinted) }));
  mesh.position.copy(at);
  if (id !== undefined) mesh.userData["id"] = id;
  return mesh;
};

/** Paints the keys in three dimensions, each with its number. Returns the objects that can be dragged. */
export function paintSpace(space: SpaceFigure, marks: Group, labels: Labels, scene: Scene): Object3D[] {
  space.drop([...marks.children]);
  const { selection, original, chosen, moved } = scene;
  const place = (index: number) => vectorAt(selection.keys, index);
  const grips: Object3D[] = [];
  for (const axis of [new Vector3(3, 0, 0), new Vector3(0, 3, 0), new Vector3(0, 0, 3)])
    marks.add(line([axis.clone().negate(), axis], color("--rule")));
  for (const face of selection.faces) marks.add(...polygon([...face].map(place)));
  selection.verdicts.forEach((verdict, index) => {
    const tinted = color(verdict.answer === "unselectable" ? "--series-2" : "--series-1");
    const at = place(index);
    const key = ball(at, index === chosen ? 0.15 : 0.11, tinted, moved ? undefined : `key ${index}`);
    marks.add(key);
    if (!moved) return void grips.push(key);
    const from = vectorAt(original, index);
    const ghost = ball(from, 0.06, color("--muted"), `key ${index}`);
    marks.add(ghost, line([from, at], color("--rule")));
    grips.push(ghost);
  });
  const verdict = selection.verdicts[chosen];
  if (verdict?.answer === "selectable" && verdict.query.length === 3) {
    marks.add(
      new ArrowHelper(vectorAt(verdict.query, 0).normalize(), place(chosen), 1, color("--series-3"), 0.22, 0.13),
    );
  } else if (verdict !== undefined) {
    for (const other of verdict.others) marks.add(line([place(chosen), place(other)], color("--series-2")));
  }
  const query = new Vector3(...scene.query);
  const above = new Vector3(0, 0, 0.3);
  labels.show([
    ...selection.verdicts.map((_, index) => ({
      text: String(index),
      at: place(index).add(above),
      color: color("--ink"),
    })),
    { text: "query", at: query.clone().add(above), color: color("--muted") },
  ]);
  marks.add(new ArrowHelper(query.clone().normalize(), new Vector3(), query.length(), color("--ink"), 0.22, 0.13));
  const tip = ball(query, 0.09, color("--ink"), "query");
  marks.add(tip);
  return [...grips, tip];
}

function polygon(corners: Vector3[]): Object3D[] {
  const outline = line(corners, color("--muted"), true);
  if (corners.length < 3) return [outline];
  const fan = corners.slice(2).flatMap((corner, i) => [corners[0]!, corners[i + 1]!, corner]);
  const sheet = new Mesh(
    new BufferGeometry().setFromPoints(fan),
    new MeshBasicMaterial({
      color: new Color(color("--series-7")),
      transparent: true,
      opacity: 0.16,
      side: DoubleSide,
      depthWrite: false,
    }),
  );
  return [sheet, outline];
}
