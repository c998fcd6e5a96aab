import { readCheckpoint } from "./checkpoint";
import type { CheckpointAnswer, CheckpointQuestion } from "./checkpoint";
import type { Core } from "./protocol";

const post = (answer: CheckpointAnswer) => self.postMessage(answer);

/** Milliseconds between two progress messages. */
const pause = 50;

const loaded = import(new URL("./normscope.mjs", self.location.href).href).then(
  (module: { default: () => Promise<Core> }) => module.default(),
);

self.addEventListener("message", (event: MessageEvent<CheckpointQuestion>) => {
  let last = 0;
  const tell = (what: string, done: number, total: number) => {
    const now = performance.now();
    if (now - last < pause && done < total) return;
    last = now;
    post({ kind: "progress", what, done, total });
  };
  loaded
    .then((core) => post({ kind: "done", documents: readCheckpoint(core, event.data.files, tell) }))
    .catch((error: unknown) => post({ kind: "failed", error: error instanceof Error ? error.message : String(error) }));
});
