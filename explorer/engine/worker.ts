import { Host, transferable } from "./host";
import type { Answer, Core, Question } from "./protocol";

const post = (answer: Answer, buffers: ArrayBuffer[] = []) =>
  (self as unknown as { postMessage(data: Answer, transfer: ArrayBuffer[]): void }).postMessage(answer, buffers);

// The worker's name is that of the module: "drawing", or "normscope" for all of the core.
const loaded = import(new URL(`./${self.name}.mjs`, self.location.href).href).then(
  async (module: { default: () => Promise<Core> }) => new Host(await module.default()),
);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

loaded.then(
  () => post({ unloaded: null }),
  (error: unknown) => post({ unloaded: messageOf(error) }),
);

self.addEventListener("message", (event: MessageEvent<Question>) => {
  const { id } = event.data;
  loaded
    .then((host) => host.answer(event.data))
    .then((value) => post({ id, value }, transferable(value)))
    .catch((error: unknown) => post({ id, error: messageOf(error) }));
});
