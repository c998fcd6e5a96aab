import type { Core } from "./protocol";

/** A file as it was dropped; its name may hold the folders it came in. */
export interface NamedFile {
  name: string;
  data: Blob;
}

/** The documents of `normscope report` as texts. */
export interface Documents {
  report: string;
  charts: string;
}

export type Tell = (what: string, done: number, total: number) => void;

/** Requests to the worker, and its replies. */
export interface CheckpointQuestion {
  files: NamedFile[];
}
export type CheckpointAnswer =
  | { kind: "progress"; what: string; done: number; total: number }
  | { kind: "done"; documents: Documents }
  | { kind: "failed"; error: string };

/**
 * Tokens² · width that a page spends on a vocabulary: a quarter of a minute on one thread. The command spends more.
 */
export const vocabularyWork = 2e8;

/** The part of Emscripten's file system that is used here. */
interface FileSystem {
  mkdir(path: string): void;
  rmdir(path: string): void;
  mount(type: unknown, options: object, path: string): void;
  unmount(path: string): void;
  chdir(path: string): void;
}

const folder = "/checkpoint";

/** Names below one folder: no empty parts, no way out of it. */
const safeName = (name: string): string =>
  name
    .split("/")
    .filter((part) => part !== "" && part !== "." && part !== "..")
    .join("/") || "file";

/** The path to open and the name of each of `files`: one file, one folder, or several files as a folder "model". */
export function arrange(files: NamedFile[]): { path: string; files: NamedFile[] } {
  const named = files.map(({ name, data }) => ({ name: safeName(name), data }));
  const [first] = named;
  if (first === undefined) throw new Error("no file was chosen");
  if (named.length === 1) return { path: first.name, files: named };
  const top = first.name.split("/")[0] as string;
  if (first.name.includes("/") && named.every(({ name }) => name.startsWith(`${top}/`)))
    return { path: top, files: named };
  const [index, ...others] = named.filter(({ name }) => /^[^/]*\.safetensors\.index\.json$/.test(name));
  return {
    path: index !== undefined && others.length === 0 ? `model/${index.name}` : "model",
    files: named.map(({ name, data }) => ({ name: `model/${name}`, data })),
  };
}

/**
 * The report of a checkpoint whose files stay where they are: the core reads ranges of them as it needs them.
 * Runs where files can be read in step, in a worker.
 */
export function readCheckpoint(core: Core, given: NamedFile[], tell: Tell, work = vocabularyWork): Documents {
  const { path, files } = arrange(given);
  const fs = core["FS"] as FileSystem;
  fs.mkdir(folder);
  try {
    fs.mount(core["WORKERFS"], { blobs: files }, folder);
    try {
      fs.chdir(folder);
      return (core["checkpointReport"] as (path: string, work: number, tell: Tell) => Documents)(path, work, tell);
    } finally {
      fs.chdir("/");
      fs.unmount(folder);
    }
  } finally {
    fs.rmdir(folder);
  }
}
