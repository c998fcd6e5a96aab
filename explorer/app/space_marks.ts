import {
  BufferAttribute,
  BufferGeometry,
  CanvasTexture,
  CatmullRomCurve3,
  Color,
  ConeGeometry,
  CylinderGeometry,
  DoubleSide,
  Group,
  InstancedMesh,
  LinearFilter,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  Sprite,
  SpriteMaterial,
  SRGBColorSpace,
  TubeGeometry,
  Vector3,
} from "three";
import type { Object3D } from "three";
import { el } from "../shared/dom";
import { color } from "../shared/theme";

/** A texture with which points look like beads under a lamp: shades of grey, by which their colours are multiplied. */
export function bead(): CanvasTexture {
  const canvas = el("canvas", { width: 64, height: 64 });
  const context = canvas.getContext("2d");
  if (context !== null) {
    const light = context.createRadialGradient(25, 22, 2, 32, 32, 32);
    light.addColorStop(0, "white");
    light.addColorStop(0.5, "rgb(225 225 225)");
    light.addColorStop(1, "rgb(115 115 115)");
    context.fillStyle = light;
    context.arc(32, 32, 31, 0, 2 * Math.PI);
    context.fill();
  }
  const texture = new CanvasTexture(canvas);
  texture.colorSpace = SRGBColorSpace;
  return texture;
}

const solid = (geometry: BufferGeometry, color: string): Mesh =>
  new Mesh(geometry, new MeshLambertMaterial({ color: new Color(color) }));

/** A round rod between two places; none where they are one. */
export function rod(from: Vector3, to: Vector3, radius: number, color: string): Object3D {
  const along = to.clone().sub(from);
  const length = along.length();
  if (length === 0) return new Group();
  const mesh = solid(new CylinderGeometry(radius, radius, length, 8), color);
  mesh.position.copy(from).addScaledVector(along, 0.5);
  mesh.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), along.divideScalar(length));
  return mesh;
}

/** A rod in dashes of about `dash`, which are drawn at once. */
export function dashes(from: Vector3, to: Vector3, radius: number, dash: number, color: string): Object3D {
  const along = to.clone().sub(from);
  const length = along.length();
  if (length === 0) return new Group();
  const count = Math.max(1, Math.round(length / dash / 2));
  const part = (0.55 * length) / count;
  const mesh = new InstancedMesh(
    new CylinderGeometry(radius, radius, part, 8),
    new MeshLambertMaterial({ color: new Color(color) }),
    count,
  );
  for (let i = 0; i < count; ++i)
    mesh.setMatrixAt(i, new Matrix4().makeTranslation(0, (i * length) / count + part / 2, 0));
  mesh.position.copy(from);
  mesh.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), along.divideScalar(length));
  return mesh;
}

/** An arrow from `from` that ends at `to`. */
export function arrow(from: Vector3, to: Vector3, radius: number, color: string): Object3D {
  const along = to.clone().sub(from);
  const head = Math.min(9 * radius, along.length());
  along.normalize();
  const neck = to.clone().addScaledVector(along, -head);
  const cone = solid(new ConeGeometry(3 * radius, head, 16), color);
  cone.position.copy(to).addScaledVector(along, -head / 2);
  cone.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), along);
  return new Group().add(rod(from, neck, radius, color), cone);
}

/** A closed rod through `places`. */
export const ring = (places: Vector3[], radius: number, color: string): Mesh => tube(places, radius, color, true);

/** A rod along `places`. */
export const tube = (places: Vector3[], radius: number, color: string, closed = false): Mesh =>
  solid(new TubeGeometry(new CatmullRomCurve3(places, closed), 2 * places.length, radius, 6, closed), color);

/** The material of what one looks through. Its colour is even, so that both sides can be drawn at once, in any order. */
export const glass = (color: string, opacity: number): MeshBasicMaterial =>
  new MeshBasicMaterial({
    color: new Color(color),
    transparent: true,
    opacity,
    side: DoubleSide,
    forceSinglePass: true,
    depthWrite: false,
  });

/** Circles of a reference sphere, and places around one. */
const parallels = 5;
const meridians = 6;
const roundPlaces = 48;

/** The sphere on which a norm puts its outputs, as thin circles one looks through. */
export class ReferenceSphere {
  readonly group: LineSegments;

  constructor() {
    const places: number[] = [];
    const circle = (at: (angle: number) => [number, number, number]) => {
      for (let i = 0; i < roundPlaces; ++i)
        for (const end of [i, i + 1]) places.push(...at((2 * Math.PI * end) / roundPlaces));
    };
    for (let k = 1; k <= parallels; ++k) {
      const polar = (Math.PI * k) / (parallels + 1);
      circle((angle) => [Math.sin(polar) * Math.cos(angle), Math.sin(polar) * Math.sin(angle), Math.cos(polar)]);
    }
    for (let k = 0; k < meridians; ++k) {
      const turn = (Math.PI * k) / meridians;
      circle((angle) => [Math.sin(angle) * Math.cos(turn), Math.sin(angle) * Math.sin(turn), Math.cos(angle)]);
    }
    const geometry = new BufferGeometry().setAttribute("position", new BufferAttribute(Float32Array.from(places), 3));
    this.group = new LineSegments(
      geometry,
      new LineBasicMaterial({ transparent: true, opacity: 0.55, depthWrite: false }),
    );
  }

  /** At that radius, or not at all. */
  show(radius: number | null): void {
    this.group.visible = radius !== null;
    this.group.scale.setScalar(radius ?? 1);
    (this.group.material as LineBasicMaterial).color = new Color(color("--rule"));
  }
}

/** Height of a label's letters, in pixels of the page. */
const letters = 15;
/** Pixels of a label's own picture for one of the page. */
const fine = 2;

/** Words in space, which face the eye at the same size wherever they are. Each is drawn once and kept. */
export class Labels {
  readonly group = new Group();
  private readonly kept = new Map<string, Sprite>();

  /** What is on show. */
  get words(): string {
    return this.group.children.map(({ name }) => name).join("; ");
  }

  /** Shows these words and no others. */
  show(all: { text: string; at: Vector3; color: string }[]): void {
    this.group.clear();
    const times = new Map<string, number>();
    for (const { text, at, color } of all) {
      const time = (times.get(text) ?? 0) + 1;
      times.set(text, time);
      const key = `${color} ${time} ${text}`;
      const sprite = this.kept.get(key) ?? Labels.drawn(text, color);
      this.kept.set(key, sprite);
      sprite.position.copy(at);
      this.group.add(sprite);
    }
  }

  dispose(): void {
    for (const { material } of this.kept.values()) {
      material.map?.dispose();
      material.dispose();
    }
    this.kept.clear();
  }

  private static drawn(text: string, color: string): Sprite {
    const canvas = el("canvas");
    const context = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const font = `600 ${letters * fine}px ${style.getPropertyValue("--sans")}`;
    if (context !== null) {
      context.font = font;
      canvas.width = Math.ceil(context.measureText(text).width) + 4 * fine;
      canvas.height = Math.ceil(1.5 * letters * fine);
      context.font = font;
      context.textBaseline = "middle";
      // Legible over points and lines.
      context.lineWidth = 2 * fine;
      context.lineJoin = "round";
      context.strokeStyle = style.backgroundColor;
      context.strokeText(text, 2 * fine, canvas.height / 2);
      context.fillStyle = color;
      context.fillText(text, 2 * fine, canvas.height / 2);
    }
    const map = new CanvasTexture(canvas);
    map.colorSpace = SRGBColorSpace;
    // Mipmaps would blur the letters.
    map.minFilter = LinearFilter;
    map.generateMipmaps = false;
    const sprite = new Sprite(new SpriteMaterial({ map, depthTest: false, sizeAttenuation: false, fog: false }));
    sprite.name = text;
    sprite.renderOrder = 1;
    sprite.userData["pixels"] = [canvas.width / fine, canvas.height / fine];
    return sprite;
  }
}
