import { toQuery } from "./link";
import type { State } from "./link";

type Listener<S> = (state: S, before: S) => void;

/** A chapter's state with its history. */
export class Store<S extends State> {
  private state: S;
  private past: S[] = [];
  private future: S[] = [];
  /** Whether the newest change is one of many, as in a drag or a play, and not a step of the history. */
  moving = false;
  /** Whether the newest change is the story's, which shows what its text is about, and not the reader's. */
  told = false;
  /** The state before the change under way, a drag for instance, which one undo takes back. */
  private pending: S | null = null;
  private readonly listeners = new Set<Listener<S>>();

  constructor(
    readonly defaults: S,
    start: S = defaults,
  ) {
    this.state = start;
  }

  get(): S {
    return this.state;
  }

  /** Changes part of the state; further changes join this step of the history until `commit`. */
  drag(part: Partial<S>): void {
    this.pending ??= this.state;
    this.move({ ...this.state, ...part }, true);
  }

  /** Changes part of the state as a step of its own, or ends a drag. */
  commit(part: Partial<S> = {}): void {
    const before = this.pending ?? this.state;
    this.pending = null;
    const next = { ...this.state, ...part };
    if (toQuery(next, before) === "") {
      // A drag that ends where it began is no step, but it has ended.
      if (this.moving) this.move(next);
      return;
    }
    this.past.push(before);
    this.future = [];
    this.move(next);
  }

  /** Changes part of the state without a trace in the history, as playing does. */
  show(part: Partial<S>): void {
    this.move({ ...this.state, ...part }, true);
  }

  /** Changes part of the state as the story does. */
  tell(part: Partial<S>): void {
    this.told = true;
    this.move({ ...this.state, ...part }, true);
    this.told = false;
  }

  /** Ends what has been playing, so that figures are drawn in full; `told` if the story played it. */
  rest(told: boolean): void {
    if (!this.moving) return;
    this.told = told;
    this.move(this.state);
    this.told = false;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }
  get canRedo(): boolean {
    return this.future.length > 0;
  }
  undo(): void {
    this.travel(this.past, this.future);
  }
  redo(): void {
    this.travel(this.future, this.past);
  }

  subscribe(listener: Listener<S>): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private travel(from: S[], to: S[]): void {
    const next = from.pop();
    if (next === undefined) return;
    to.push(this.state);
    this.pending = null;
    this.move(next);
  }

  private move(next: S, moving = false): void {
    const before = this.state;
    this.state = next;
    this.moving = moving;
    for (const listener of this.listeners) listener(next, before);
  }
}
