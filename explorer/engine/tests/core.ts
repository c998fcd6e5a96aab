import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Host } from "../host";
import type { Engine } from "../client";
import type { Core, Request } from "../protocol";

const folder = process.env["NORMSCOPE_WASM"];
if (folder === undefined) throw new Error("NORMSCOPE_WASM must name the folder of normscope.mjs");
const path = (file: string): string => join(resolve(folder), file);

async function load(): Promise<Core> {
  const module = (await import(/* @vite-ignore */ `/@fs${path("normscope.mjs")}`)) as {
    default(options: object): Promise<Core>;
  };
  return module.default({ wasmBinary: readFileSync(path("normscope.wasm")) });
}

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
