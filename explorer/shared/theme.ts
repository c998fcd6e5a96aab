import { slot } from "./dom";

export type Theme = "light" | "dark";

const kept = "theme";
const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");

/** The theme that the reader chose; storage may be refused. */
function chosen(): string | null {
  try {
    return localStorage.getItem(kept);
  } catch {
    return null;
  }
}

function choose(theme: Theme): void {
  root.dataset["theme"] = theme;
  try {
    localStorage.setItem(kept, theme);
  } catch {
    // As above: the choice lasts until the page is closed.
  }
}

export const theme = (): Theme =>
  (root.dataset["theme"] as Theme | undefined) ?? (systemDark.matches ? "dark" : "light");

/** The value style.css gives a colour variable in the present theme. */
export function color(variable: string): string {
  const probe = slot("color-probe");
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

/** Restores the theme of the last visit and wires the toggle; `changed` runs after each change of theme. Paper is always light. */
export function startTheme(changed: () => void): void {
  const before = chosen();
  if (before === "light" || before === "dark") root.dataset["theme"] = before;
  const toggle = slot("theme-toggle");
  const label = () => {
    toggle.textContent = theme() === "dark" ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Switch to the ${theme() === "dark" ? "light" : "dark"} theme`);
  };
  const update = () => {
    label();
    changed();
  };
  toggle.addEventListener("click", () => {
    choose(theme() === "dark" ? "light" : "dark");
    update();
  });
  systemDark.addEventListener("change", update);
  addEventListener("beforeprint", () => root.classList.add("printing"));
  addEventListener("afterprint", () => root.classList.remove("printing"));
  label();
}
