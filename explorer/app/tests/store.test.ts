import { expect, test } from "vitest";
import { Store } from "../store";

const defaults = { n: 1, word: "a" };

test("a drag is one step of the history", () => {
  const store = new Store(defaults);
  for (const n of [2, 3, 4]) {
    store.drag({ n });
    expect(store.moving).toBe(true);
  }
  expect(store.canUndo).toBe(false);
  store.commit();
  expect([store.get().n, store.moving]).toEqual([4, false]);
  store.undo();
  expect([store.get().n, store.canUndo, store.canRedo]).toEqual([1, false, true]);
  store.redo();
  expect([store.get().n, store.canRedo]).toEqual([4, false]);
});

test("a drag that ends where it began is no step, but it ends", () => {
  const store = new Store(defaults);
  store.drag({ n: 2 });
  store.drag({ n: 1 });
  const seen: boolean[] = [];
  store.subscribe(() => seen.push(store.moving));
  store.commit();
  expect([seen, store.canUndo]).toEqual([[false], false]);
});

test("a change after undo forgets what was undone", () => {
  const store = new Store(defaults);
  store.commit({ n: 2 });
  store.undo();
  store.commit({ word: "b" });
  expect(store.canRedo).toBe(false);
  store.undo();
  expect(store.get()).toEqual(defaults);
});

test("undo during a drag takes the drag back with the step before it", () => {
  const store = new Store(defaults);
  store.commit({ n: 2 });
  store.drag({ n: 3 });
  store.undo();
  expect(store.get().n).toBe(1);
  store.commit();
  expect(store.canUndo).toBe(false);
});

test("what plays and what the story tells leave no trace in the history", () => {
  const store = new Store(defaults);
  const told: boolean[] = [];
  store.subscribe(() => told.push(store.told));
  store.show({ n: 2 });
  store.tell({ n: 3 });
  store.rest(true);
  store.rest(false);
  expect(told).toEqual([false, true, true]);
  expect([store.told, store.moving, store.canUndo]).toEqual([false, false, false]);
});

test("a listener hears the state before, until it stops listening", () => {
  const store = new Store(defaults);
  const heard: number[] = [];
  const stop = store.subscribe((now, before) => heard.push(before.n, now.n));
  store.commit({ n: 5 });
  stop();
  store.commit({ n: 6 });
  expect(heard).toEqual([1, 5]);
});
