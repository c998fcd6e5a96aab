import type { CheckpointAnswer, CheckpointQuestion, Documents, NamedFile, Tell } from "./checkpoint";

/** A report under way, in a worker of its own so that it can be stopped at any time. */
export interface Reading {
  documents: Promise<Documents>;
  /** Ends the work; `documents` stays unanswered. */
  cancel(): void;
}

export function startReading(files: NamedFile[], tell: Tell): Reading {
  const worker = new Worker(new URL("./checkpoint.js", document.baseURI), { type: "module" });
  const documents = new Promise<Documents>((resolve, reject) => {
    worker.addEventListener("message", ({ data }: MessageEvent<CheckpointAnswer>) => {
      if (data.kind === "progress") return tell(data.what, data.done, data.total);
      worker.terminate();
      if (data.kind === "done") resolve(data.documents);
      else reject(new Error(data.error));
    });
    worker.addEventListener("error", (event) => {
      worker.terminate();
      reject(new Error(event.message || "the core could not be started"));
    });
  });
  worker.postMessage({ files } satisfies CheckpointQuestion);
  return { documents, cancel: () => worker.terminate() };
}
