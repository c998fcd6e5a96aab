import type { Finding, Report } from "../../generated/report";
import { button, command, el, normLink, slot } from "../../shared/dom";
import { plural } from "../../shared/format";

const shownAtFirst = 12;

const strength = (severity: number): string => (severity >= 0.7 ? "strong" : severity >= 0.35 ? "notable" : "slight");

function meter(finding: Finding): HTMLElement {
  const severity = Math.min(1, Math.max(0, finding.severity ?? 0));
  const bar = el("i", {});
  bar.style.width = `${Math.round(severity * 100)}%`;
  return el(
    "span",
    { class: `severity ${strength(severity)}` },
    strength(severity),
    el("span", { class: "bar", "aria-hidden": "true" }, bar),
  );
}

/** One finding; `explained` leaves out why it matters, which an earlier one of its kind has said. */
function item(finding: Finding, explained: boolean): HTMLElement {
  return el(
    "li",
    {},
    meter(finding),
    el(
      "div",
      {},
      el("p", { class: "sentence", dir: "auto" }, finding.text),
      finding.why === "" || explained ? null : el("p", { class: "why" }, finding.why),
      finding.norm_index === null
        ? null
        : el("p", { class: "about" }, normLink(finding.norm_index, finding.norm ?? "its norm")),
      command(finding.reproduce),
    ),
  );
}

/** Fills the findings, the most severe first; a button shows the rest of a long list. */
export function showFindings({ findings }: Report): void {
  const body = slot("findings-body");
  if (findings.length === 0) {
    body.append(el("p", {}, "Nothing unusual: no norm of this checkpoint is unusual by the measures taken."));
    return;
  }
  const sorted = [...findings].sort((a, b) => (b.severity ?? 0) - (a.severity ?? 0));
  const first = Math.min(shownAtFirst, sorted.length);
  const rows = sorted.map((finding, i) =>
    item(
      finding,
      sorted.slice(0, i).some((earlier) => earlier.kind === finding.kind),
    ),
  );
  const listed = el("ol", { class: "findings" }, ...rows);
  body.append(listed);
  if (rows.length <= first) return;
  for (const row of rows.slice(first)) row.classList.add("later");
  const more = button(
    `Show ${plural(rows.length - first, "more finding")}`,
    () => {
      listed.classList.add("all");
      more.remove();
      rows[first]?.querySelector<HTMLElement>("a, button")?.focus();
    },
    { class: "more" },
  );
  body.append(more);
}
