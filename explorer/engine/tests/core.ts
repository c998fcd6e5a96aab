import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Host } from "../host";
import type { Engine } from "../client";
import type { TrainSpec } from "../playground";
import type { Core, Request } from "../protocol";
import type { FakeBlob } from "./files";

const folder = process.env["NORMSCOPE_WASM"];
if (folder === undefined) throw new Error("NORMSCOPE_WASM must name the folder of normscope.mjs");
const path = (file: string): string => join(resolve(folder), file);

/** Gives Node what workers have and it lacks: the core asks once, when it is loaded, where it is. */
function actAsWorker(): void {
  Object.assign(globalThis, {
    importScripts: () => undefined,
    self: { location: { href: "" } },
    FileReaderSync: class {
      readAsArrayBuffer = (fake: FakeBlob) => fake.bytes().buffer;
    },
  });
}

async function load(): Promise<Core> {
  actAsWorker();
  const module = (await import(/* @vite-ignore */ `/@fs${path("normscope.mjs")}`)) as {
    default(options: object): Promise<Core>;
  };
  return module.default({ wasmBinary: readFileSync(path("normscope.wasm")) });
}

/** A training of a net of two norms, three neurons wide. */
export const smallNet: TrainSpec = {
  width: 3,
  depth: 2,
  activation: "norm",
  norm: "spherical",
  groups: 1,
  eps: 1e-5,
  optimizer: "adam",
  rate: 0.01,
  schedule: "constant",
  steps: 200,
  batch: 0,
  seed: 1,
};

let loaded: Promise<Core> | null = null;
/** The core, loaded once for all tests. */
export const loadCore = (): Promise<Core> => (loaded ??= load());

/** The core without a worker, for tests of the calls that chapters make. */
export async function coreEngine(): Promise<Engine> {
  const host = new Host(await loadCore());
  const { Remote } = await import("../client");
  const engine = {
    ask: async (request: Request) => host.answer(request),
    call: async (name: string, ...args: unknown[]) => host.answer({ kind: "call", name, args }),
    create: async (type: string, ...args: unknown[]) =>
      new Remote(engine as unknown as Engine, host.answer({ kind: "new", type, args }) as number),
  };
  return engine as unknown as Engine;
}
