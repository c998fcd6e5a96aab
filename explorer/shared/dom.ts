type Child = Node | string | null;
type Attributes = Record<string, string | number | boolean | null>;

/** An element with attributes and children; strings become text nodes, so no data is read as markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** A name from a file, isolated so that right-to-left letters do not affect the surrounding sentence. */
export const name = (text: string): HTMLElement => el("bdi", { class: "name" }, text);

/** A link that opens a norm's row in the table. */
export const normLink = (index: number, text: string): HTMLElement => el("a", { href: `#norm-${index}` }, name(text));

export function button(label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const result = el("button", { type: "button", ...attributes }, label);
  result.addEventListener("click", onClick);
  return result;
}

/** The template's element of that id. */
export function slot(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`report page: the template has no #${id}`);
  return element;
}

/** A definition list; entries without a value are left out. */
export function definitions(entries: [string, Child][], className = "facts"): HTMLElement {
  return el(
    "dl",
    { class: className },
    ...entries
      .filter(([, value]) => value !== null && value !== "")
      .map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))),
  );
}

/** A small table: a caption, column heads and rows; `numeric` columns align right. */
export function table(caption: string, heads: string[], rows: Child[][], numeric: number[] = []): HTMLElement {
  const align = (column: number) => ({ class: numeric.includes(column) ? "number" : null });
  return el(
    "table",
    { class: "small" },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", ...align(i) }, head)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) => el("td", align(i), cell))))),
  );
}

/** Puts `text` on the clipboard and says so on the button. */
export function copyButton(text: string, what: string): HTMLButtonElement {
  const result = button(
    "Copy",
    () => {
      void copy(text).then((done) => {
        result.textContent = done ? "Copied" : "Select and copy";
        setTimeout(() => (result.textContent = "Copy"), 1600);
      });
    },
    { class: "quiet", "aria-label": `Copy ${what}` },
  );
  result.ariaLive = "polite";
  return result;
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers may refuse the clipboard to pages opened from a file; the older way needs no permission.
    const area = el("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A shell command with a button that copies it; nothing for an empty command. */
export function command(text: string): HTMLElement | null {
  if (text === "") return null;
  return el(
    "div",
    { class: "command" },
    el("code", { dir: "ltr", tabindex: 0, role: "group", "aria-label": "Command" }, text),
    copyButton(text, "the command"),
  );
}
