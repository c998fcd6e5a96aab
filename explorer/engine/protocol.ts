/** Requests of a page to the core: call a function, or create, use and delete an object in the worker. */
export type Request =
  | { kind: "call"; name: string; args: unknown[] }
  | { kind: "new"; type: string; args: unknown[] }
  | { kind: "method"; handle: number; name: string; args: unknown[] }
  | { kind: "delete"; handle: number };

export type Question = Request & { id: number };
/** An answer; or, once and before all answers, why the core could not be loaded, null if it has been. */
export type Answer = { id: number; value: unknown } | { id: number; error: string } | { unloaded: string | null };

/** The core as Emscripten hands it over. */
export type Core = Record<string, unknown>;

export interface CoreObject {
  delete(): void;
  [method: string]: unknown;
}
