import { randomTableFigure, randomTableRow, tableCounts } from "../../engine/selectability";
import { theme } from "../../shared/theme";
import type { Page } from "../chapter";
import { choice, controls, slider, toggle } from "../controls";
import { ChartFigure } from "../figure";
import { numberInText } from "../numbers";
import { runs } from "./selectability_state";
import type { State } from "./selectability_state";

/** Rows of the table between two drawings of it. */
const together = 6;

/** The table of random keys, computed row by row when it becomes visible and drawn as it grows. */
export function mountTable(page: Page<State>): void {
  const [least, most] = tableCounts;
  let cells: number[] = [];
  const chart = new ChartFigure("random-keys", () => ({
    columns: ["width", "keys", "any", "mean"],
    rows: Array.from({ length: cells.length / 4 }, (_, i) => cells.slice(4 * i, 4 * i + 4)),
  }));
  page.keep(chart);
  const { element } = chart;
  const sets = { ...runs, step: 5 };
  numberInText(page, "sets a cell, in the text", "runs", sets);
  page.slot("table").append(element);
  page.slot("table-controls").append(
    controls(
      "The table",
      toggle(page, "behind LayerNorm", "tableNorm"),
      choice(page, "Colour", "tableMean", [
        [0, "share of sets that lose a key"],
        [1, "mean share of keys lost"],
      ]),
      slider(page, "sets a cell", "runs", sets),
      slider(page, "seed", "tableSeed", { min: 1, max: 50, step: 1 }),
    ),
  );
  let seen = false;
  let work = 0;
  let wanted = "";
  let look = "";
  const draw = async (state: State) => {
    const table = { runs: state.runs, seed: state.tableSeed, norm: state.tableNorm };
    const title = state.tableMean === 1 ? "Mean share of keys lost" : "Share of sets that lose a key";
    const spec = await randomTableFigure(page.engine, table, cells, state.tableMean === 1, title);
    const done = cells.at(-3) === most;
    await chart.draw(spec, `${title}, over the width and the number of random keys.`);
    element.dataset["rows"] = String(cells.length / 52);
    element.dataset["done"] = String(done);
  };
  const fill = async (state: State) => {
    const mine = (work += 1);
    cells = [];
    element.dataset["done"] = "false";
    const table = { runs: state.runs, seed: state.tableSeed, norm: state.tableNorm };
    for (let count = least; count <= most; ++count) {
      const row = await randomTableRow(page.engine, table, count);
      if (mine !== work) return;
      cells.push(...row);
      if (count % together === 0) await draw(page.store.get());
    }
    const last = cells.slice(-52);
    const share = (width: number) => last[4 * (width - 3) + 2] ?? 0;
    page.slot("table-words").textContent =
      `Of ${table.runs} sets of ${most} ${table.norm ? "normalized" : "random"} keys, ` +
      `${Math.round(share(3) * table.runs)} lose a key in 3 dimensions, ${Math.round(share(8) * table.runs)} in 8, ` +
      `${Math.round(share(15) * table.runs)} in 15.`;
  };
  page.onChange((state) => {
    if (!seen) return;
    const task = JSON.stringify([state.runs, state.tableSeed, state.tableNorm]);
    const style = `${state.tableMean} ${theme()}`;
    if (task !== wanted) {
      wanted = task;
      void fill(state);
    } else if (style !== look && cells.length > 0) {
      void draw(state);
    }
    look = style;
  });
  const sight = new IntersectionObserver((entries) => {
    if (seen || !entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen = true;
    sight.disconnect();
    page.store.show({});
  });
  sight.observe(element);
  page.onLeave(() => {
    work += 1;
    sight.disconnect();
  });
}
