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

/** Wires the toggle; `changed` runs after each change of theme. Paper is always light. */
export function startTheme(changed: () => void): void {
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
    root.dataset["theme"] = theme() === "dark" ? "light" : "dark";
    update();
  });
  systemDark.addEventListener("change", update);
  addEventListener("beforeprint", () => root.classList.add("printing"));
  addEventListener("afterprint", () => root.classList.remove("printing"));
  label();
}
