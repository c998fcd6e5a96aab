import type { Answer, Request } from "./protocol";

interface Pending {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** An object that lives in the core; `delete` frees it. */
export class Remote {
  constructor(
    private readonly engine: Engine,
    private readonly handle: number,
  ) {}

  call<T>(name: string, ...args: unknown[]): Promise<T> {
    return this.engine.ask<T>({ kind: "method", handle: this.handle, name, args });
  }

  delete(): Promise<void> {
    return this.engine.ask({ kind: "delete", handle: this.handle });
  }
}

/** The core could not be loaded, which every call says. */
export class Unloaded extends Error {}

/** The core in a worker. Calls return promises, which errors of the core reject. */
export class Engine {
  private readonly pending = new Map<number, Pending>();
  private next = 0;
  private unloaded: Unloaded | null = null;
  /** Ends when the core has been loaded, or with `Unloaded`. */
  readonly ready: Promise<void>;

  constructor(private readonly worker: Worker) {
    this.ready = new Promise((resolve, reject) => {
      const fail = (why: string) => {
        this.unloaded = new Unloaded(why);
        reject(this.unloaded);
        for (const { reject: refuse } of this.pending.values()) refuse(this.unloaded);
        this.pending.clear();
      };
      worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
        if (!("unloaded" in data)) return;
        if (data.unloaded === null) resolve();
        else fail(data.unloaded);
      });
      worker.addEventListener("error", (event) => fail(event.message || "its program is missing"));
    });
    worker.addEventListener("message", (event: MessageEvent<Answer>) => {
      const answer = event.data;
      if ("unloaded" in answer) return;
      const asked = this.pending.get(answer.id);
      this.pending.delete(answer.id);
      if ("error" in answer) asked?.reject(new Error(answer.error));
      else asked?.resolve(answer.value);
    });
  }

  ask<T>(request: Request): Promise<T> {
    if (this.unloaded !== null) return Promise.reject(this.unloaded);
    const id = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.worker.postMessage({ ...request, id });
    });
  }

  call<T>(name: string, ...args: unknown[]): Promise<T> {
    return this.ask<T>({ kind: "call", name, args });
  }

  async create(type: string, ...args: unknown[]): Promise<Remote> {
    return new Remote(this, await this.ask<number>({ kind: "new", type, args }));
  }
}

/**
 * Runs `work` for the newest input only: during a run, a new input replaces one that waits, so that a slider
 * dragged faster than the core answers does not build up a queue.
 */
export function newest<T>(work: (input: T) => Promise<void>): (input: T) => void {
  let running = false;
  let waiting: { input: T } | null = null;
  const run = async (input: T): Promise<void> => {
    running = true;
    try {
      await work(input);
    } finally {
      running = false;
      const next = waiting;
      waiting = null;
      if (next !== null) void run(next.input);
    }
  };
  return (input) => {
    if (running) waiting = { input };
    else void run(input);
  };
}
