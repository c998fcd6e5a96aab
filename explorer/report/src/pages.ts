import { el, name, slot } from "../../shared/dom";

/** Takes a section of the report, and the link to it, out of the page. */
function remove(id: string): void {
  slot(id).remove();
  document.querySelector(`.contents a[href="#${id}"]`)?.closest("li")?.remove();
}

export const lastPart = (path: string): string => path.replace(/\/+$/, "").split("/").pop() ?? path;

/** Gives a section of the report, and the link to it, another title. */
export function rename(id: string, title: string): void {
  slot(`${id}-title`).textContent = title;
  const link = document.querySelector(`.contents a[href="#${id}"]`);
  if (link !== null) link.textContent = title;
}

/** Turns the page of a report into one of another result, without the sections `unused`. */
export function retitle(kicker: string, subject: string[], noun: string, unused: string[]): void {
  for (const id of unused) remove(id);
  document.querySelector("#overview .hint")?.remove();
  document.title = `${subject.join(" and ")} · Normscope ${noun}`;
  const above = document.querySelector(".kicker");
  if (above !== null) above.textContent = kicker;
  slot("model-name").replaceChildren(...subject.flatMap((one, i) => (i > 0 ? [" and ", name(one)] : [name(one)])));
}

/** The entries of #key-facts. */
export function showFacts(entries: [string, string | HTMLElement][]): void {
  slot("key-facts").append(...entries.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));
}
