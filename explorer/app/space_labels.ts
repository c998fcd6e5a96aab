import type { Camera, Sprite } from "three";
import { Vector3 } from "three";

/**
 * Where a label's place in space may be within it: in its middle or, if others are there, at one of its sides, or half
 * its size beyond one, so that of two labels in one place one stands next to the other.
 */
const anchors: [number, number][] = [
  [0.5, 0.5],
  [0, 0.5],
  [0.5, 0],
  [0.5, 1],
  [1, 0.5],
  [0.5, -0.5],
  [-0.5, 0.5],
  [1.5, 0.5],
  [0.5, 1.5],
];

interface Box {
  left: number;
  right: number;
  bottom: number;
  top: number;
}

const overlap = (a: Box, b: Box): boolean =>
  a.left < b.right && b.left < a.right && a.bottom < b.top && b.bottom < a.top;

/**
 * Moves labels that would cover one before them aside, by half their size or all of it; one that finds no room stays.
 * `userData.pixels` has a label's size in a picture of `width` by `height`.
 */
export function separate(labels: Sprite[], camera: Camera, [width, height]: [number, number]): void {
  const placed: Box[] = [];
  for (const label of labels) {
    const at = label.getWorldPosition(new Vector3()).project(camera);
    const [x, y] = [(width * at.x) / 2, (height * at.y) / 2];
    const [wide, high] = label.userData["pixels"] as [number, number];
    const boxes = anchors.map(([right, up]) => ({
      left: x - right * wide,
      right: x + (1 - right) * wide,
      bottom: y - up * high,
      top: y + (1 - up) * high,
    }));
    const free = boxes.findIndex((box) => !placed.some((other) => overlap(box, other)));
    label.center.set(...anchors[Math.max(0, free)]!);
    placed.push(boxes[Math.max(0, free)]!);
  }
}
