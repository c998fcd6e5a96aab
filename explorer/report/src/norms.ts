import type { Norm } from "../../generated/report";
import { button, el, name, slot } from "../../shared/dom";
import { kindName, plural } from "../../shared/format";
import { cell, classes, columnsFor, compare } from "./norm_columns";
import type { Column } from "./norm_columns";
import { detail } from "./norm_detail";

/** Additional content for a norm's row; null for none. */
export type Beside = (norm: Norm) => HTMLElement | null;

interface Row {
  norm: Norm;
  element: HTMLTableRowElement;
  toggle: HTMLButtonElement;
  panel: HTMLTableRowElement | null;
}

/** The table of norms: sorted by any column, filtered by text, role and kind; each row opens. */
class NormTable {
  private readonly rows: Row[];
  private readonly body = el("tbody");
  private readonly heads: HTMLTableCellElement[];
  private readonly search = el("input", {
    type: "search",
    id: "norm-filter",
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly role: HTMLSelectElement;
  private readonly kind: HTMLSelectElement;
  private readonly status = el("output", { class: "muted", for: "norm-filter" });
  private readonly columns: Column[];
  private sorted: Column;
  private direction: 1 | -1 = 1;

  constructor(
    private readonly norms: Norm[],
    host: HTMLElement,
    private readonly beside: Beside = () => null,
  ) {
    const { shown, common } = columnsFor(norms);
    this.columns = shown;
    this.rows = norms.map((norm) => this.row(norm));
    this.role = this.choice(
      "Every role",
      norms.map((norm) => norm.role),
    );
    this.kind = this.choice(
      "Every kind",
      norms.map((norm) => kindName(norm.kind, norm.groups)),
    );
    this.search.addEventListener("input", () => this.filter());
    const [first] = shown;
    if (first === undefined) throw new Error("the table of norms has no columns");
    this.sorted = first;
    this.heads = shown.map((column) =>
      el(
        "th",
        { scope: "col", class: classes(column), title: column.about },
        button(column.title, () => this.sortBy(column)),
      ),
    );
    host.append(
      el(
        "div",
        { class: "controls" },
        el("label", {}, "Find ", this.search),
        el("label", {}, "Role ", this.role),
        el("label", {}, "Kind ", this.kind),
        this.status,
      ),
      el(
        "div",
        { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of norms" },
        el(
          "table",
          { class: "norms sortable" },
          el(
            "caption",
            {},
            el("b", {}, "Table 1. "),
            common.length > 0 ? `The same for all: ${common.join(", ")}. ` : null,
            el("span", { class: "screen" }, "A column head sorts; a row opens the details of its norm."),
          ),
          el("thead", {}, el("tr", {}, ...this.heads)),
          this.body,
        ),
      ),
    );
    this.arrange();
    this.filter();
  }

  /** Opens the row of that norm and brings it into view. */
  reveal(index: number): void {
    const row = this.rows.find(({ norm }) => norm.index === index);
    if (row === undefined) return;
    if (row.element.hidden) {
      this.search.value = this.role.value = this.kind.value = "";
      this.filter();
    }
    this.open(row, true);
    row.element.scrollIntoView({ block: "start" });
    row.toggle.focus({ preventScroll: true });
  }

  private row(norm: Norm): Row {
    const toggle = button("", () => this.open(row, row.panel === null), {
      class: "opener",
      "aria-expanded": "false",
      "aria-controls": `detail-${norm.index}`,
    });
    toggle.append(name(norm.name));
    const element = el(
      "tr",
      { id: `norm-${norm.index}` },
      ...this.columns.map((column) =>
        column.title === "Norm"
          ? el("th", { scope: "row" }, toggle)
          : el("td", { class: classes(column) }, cell(column, norm)),
      ),
    );
    element.addEventListener("click", (event) => {
      if (!toggle.contains(event.target as Node) && getSelection()?.isCollapsed !== false) toggle.click();
    });
    const row: Row = { norm, element, toggle, panel: null };
    return row;
  }

  private open(row: Row, open: boolean): void {
    if (open === (row.panel !== null)) return;
    if (open) {
      row.panel = el(
        "tr",
        { id: `detail-${row.norm.index}`, class: "opened" },
        el("td", { colspan: this.columns.length }, detail(row.norm, this.beside(row.norm))),
      );
      row.element.after(row.panel);
    } else {
      row.panel?.remove();
      row.panel = null;
    }
    row.toggle.setAttribute("aria-expanded", String(open));
  }

  private choice(every: string, values: string[]): HTMLSelectElement {
    const options = [...new Set(values)].filter((value) => value !== "").sort();
    const select = el(
      "select",
      {},
      el("option", { value: "" }, every),
      ...options.map((value) => el("option", { value }, value)),
    );
    select.addEventListener("change", () => this.filter());
    return select;
  }

  private sortBy(column: Column): void {
    this.direction = column === this.sorted ? (this.direction === 1 ? -1 : 1) : 1;
    this.sorted = column;
    this.arrange();
  }

  private arrange(): void {
    this.rows.sort((a, b) => compare(this.sorted, a.norm, b.norm, this.direction));
    this.body.append(...this.rows.flatMap((row) => (row.panel ? [row.element, row.panel] : [row.element])));
    this.columns.forEach((column, i) => {
      const order = column !== this.sorted ? "none" : this.direction === 1 ? "ascending" : "descending";
      this.heads[i]?.setAttribute("aria-sort", order);
    });
  }

  private filter(): void {
    const sought = this.search.value.trim().toLowerCase();
    let visible = 0;
    for (const { norm, element, panel } of this.rows) {
      const kind = kindName(norm.kind, norm.groups);
      const matches =
        (this.role.value === "" || this.role.value === norm.role) &&
        (this.kind.value === "" || this.kind.value === kind) &&
        `${norm.name} ${norm.role} ${kind} ${norm.gain?.tensor ?? ""}`.toLowerCase().includes(sought);
      element.hidden = !matches;
      if (panel) panel.hidden = !matches;
      visible += Number(matches);
    }
    this.status.textContent =
      visible === this.norms.length ? plural(visible, "norm") : `${visible} of ${plural(this.norms.length, "norm")}`;
  }
}

/** Fills the table of norms. */
export function showNorms(norms: Norm[], beside?: Beside): { reveal: (index: number) => void } {
  const body = slot("norms-body");
  if (norms.length === 0) {
    body.append(el("p", {}, "No normalization layer was recognized in this checkpoint."));
    return { reveal: () => undefined };
  }
  const shown = new NormTable(norms, body, beside);
  return { reveal: (index) => shown.reveal(index) };
}
