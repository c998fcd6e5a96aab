import { PerspectiveCamera, Sprite } from "three";
import { expect, test } from "vitest";
import { separate } from "../space_labels";

/** Labels of 20 by 10 pixels in a picture of 100 by 100, in which a unit has 50 pixels. */
function centers(...places: [number, number][]): [number, number][] {
  const camera = new PerspectiveCamera(90, 1, 0.1, 10);
  camera.position.set(0, 0, 1);
  camera.updateMatrixWorld();
  const labels = places.map(([x, y]) => {
    const label = new Sprite();
    label.position.set(x, y, 0);
    label.updateMatrixWorld();
    label.userData["pixels"] = [20, 10];
    return label;
  });
  separate(labels, camera, [100, 100]);
  return labels.map(({ center }) => [center.x, center.y]);
}

test("labels with room stay in their places", () => {
  expect(centers([0, 0], [0.5, 0], [0, 0.3])).toEqual([
    [0.5, 0.5],
    [0.5, 0.5],
    [0.5, 0.5],
  ]);
});

test("a label that would cover another one moves aside, if there is room", () => {
  // Ten pixels to the right, five up, five down.
  expect(centers([0, 0], [0.25, 0])[1]).toEqual([0, 0.5]);
  expect(centers([0, 0], [0, 0.15])[1]).toEqual([0.5, 0]);
  expect(centers([0, 0], [0, -0.15])[1]).toEqual([0.5, 1]);
});

test("labels in nearly the same place stand next to one another", () => {
  // Ten pixels up, twenty to the right, to the left, and ten down; the sixth finds no room.
  expect(centers(...Array.from({ length: 6 }, (): [number, number] => [0, 0]))).toEqual([
    [0.5, 0.5],
    [0.5, -0.5],
    [-0.5, 0.5],
    [1.5, 0.5],
    [0.5, 1.5],
    [0.5, 0.5],
  ]);
  expect(centers([0, 0], [0.02, -0.02])[1]).not.toEqual([0.5, 0.5]);
});
