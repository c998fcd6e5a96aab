import { el } from "./dom";
import { number } from "./format";

let made: HTMLElement | null = null;

const text = (value: unknown): string => (typeof value === "number" ? number(value, 4) : String(value));

/** Shows the values of the mark under the pointer, as text only. */
export function showTooltip(_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void {
  const box = (made ??= el("div", { class: "tooltip", "aria-hidden": "true" }));
  if (value === null || value === undefined || value === "") {
    box.remove();
    return;
  }
  const entries: [string, unknown][] = typeof value === "object" ? Object.entries(value) : [["", value]];
  box.replaceChildren(
    ...entries.map(([key, entry]) =>
      el("div", {}, key === "" ? null : el("span", {}, `${key} `), el("bdi", {}, text(entry))),
    ),
  );
  document.body.append(box);
  const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const below = event.clientY + 16;
  const top = below + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : below;
  box.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
}
