import { slot } from "./dom";

export type Theme = "light" | "dark";

const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");

export const theme = (): Theme =>
  (root.dataset["theme"] as Theme | undefined) ?? (systemDark.matches ? "dark" : "light");

/** The value style.css gives a colour variable in the present theme. */
export function color(variable: string): string {
  const probe = slot("color-probe");
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

/** Wires the toggle and paper's light theme; `changed` runs after each change. */
export function startTheme(changed: () => void): void {
  const toggle = slot("theme-toggle");
  const label = () => {
    toggle.textContent = theme() === "dark" ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Switch to the ${theme() === "dark" ? "light" : "dark"} theme`);
  };
  let shown = theme();
  const update = () => {
    label();
    if (theme() === shown) return;
    shown = theme();
    changed();
  };
  const set = (to: Theme | undefined) => {
    if (to === undefined) delete root.dataset["theme"];
    else root.dataset["theme"] = to;
    update();
  };
  toggle.addEventListener("click", () => set(theme() === "dark" ? "light" : "dark"));
  systemDark.addEventListener("change", update);

  let before: Theme | undefined;
  addEventListener("beforeprint", () => {
    before = root.dataset["theme"] as Theme | undefined;
    set("light");
  });
  addEventListener("afterprint", () => set(before));
  label();
}
