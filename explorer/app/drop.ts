import type { NamedFile } from "../engine/checkpoint";
import { button, el } from "../shared/dom";

const named = (file: File): NamedFile => ({ name: file.webkitRelativePath || file.name, data: file });

/** Every file of a dropped folder, by its path. */
async function filesOf(entry: FileSystemEntry): Promise<NamedFile[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ name: entry.fullPath.replace(/^\//, ""), data: file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: NamedFile[] = [];
  for (;;) {
    // A reader gives a folder in portions and ends with an empty one.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return found;
    for (const child of part) found.push(...(await filesOf(child)));
  }
}

function dropped(data: DataTransfer): Promise<NamedFile[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return Promise.resolve([...data.files].map(named));
  return Promise.all(entries.map(filesOf)).then((all) => all.flat());
}

/** Files that were dropped on a page that does not read them. */
let brought: Promise<NamedFile[]> | null = null;

/** The files that were dropped on another page, once. */
export function takeBrought(): Promise<NamedFile[]> | null {
  const files = brought;
  brought = null;
  return files;
}

/** Lets files be dropped anywhere on the page, which says `words` meanwhile, and keeps them for `takeBrought`; gives what ends it. */
export function dropAnywhere(words: string, arrived: () => void): () => void {
  const curtain = el("div", { class: "curtain", hidden: true, "aria-hidden": "true" }, el("p", {}, words));
  document.body.append(curtain);
  const over = (event: DragEvent) => {
    if (event.dataTransfer?.types.includes("Files") !== true) return;
    event.preventDefault();
    curtain.hidden = false;
  };
  const out = (event: DragEvent) => {
    // Between two elements of the page, the pointer is still on it.
    if (event.relatedTarget === null) curtain.hidden = true;
  };
  const drop = (event: DragEvent) => {
    curtain.hidden = true;
    if (event.dataTransfer?.types.includes("Files") !== true) return;
    event.preventDefault();
    brought = dropped(event.dataTransfer);
    arrived();
  };
  addEventListener("dragover", over);
  addEventListener("dragleave", out);
  addEventListener("drop", drop);
  return () => {
    curtain.remove();
    removeEventListener("dragover", over);
    removeEventListener("dragleave", out);
    removeEventListener("drop", drop);
  };
}

const checkpoint = {
  label: "Choose a checkpoint",
  words: "Drop a checkpoint here: a file, several that belong together, or a folder.",
};

/** An area to drop files or a folder on, with buttons to choose them, followed by `more`. */
export function dropZone(
  taken: (files: Promise<NamedFile[]>) => void,
  more: HTMLElement[] = [],
  { label, words } = checkpoint,
): HTMLElement {
  const chooser = (label: string, attributes: Record<string, boolean>) => {
    const input = el("input", { type: "file", hidden: true, "aria-label": label, ...attributes });
    input.addEventListener("change", () => {
      const files = [...(input.files ?? [])].map(named);
      input.value = "";
      if (files.length > 0) taken(Promise.resolve(files));
    });
    return [input, button(label, () => input.click(), { class: "action" })];
  };
  const zone = el(
    "div",
    { class: "drop", role: "group", "aria-label": label },
    el("p", {}, words),
    el(
      "div",
      { class: "panel" },
      ...chooser("Choose files", { multiple: true }),
      ...chooser("Choose a folder", { webkitdirectory: true }),
      ...more,
    ),
  );
  const over = (is: boolean) => zone.classList.toggle("over", is);
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  zone.addEventListener("dragleave", () => over(false));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    if (event.dataTransfer !== null) taken(dropped(event.dataTransfer));
  });
  return zone;
}
