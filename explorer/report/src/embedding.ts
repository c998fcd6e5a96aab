import type { Report } from "../../generated/report";
import { el, name, table } from "../../shared/dom";
import { measured, number, percent } from "../../shared/format";

/** The coordinates that stand out, with the tokens whose embedding rows use them; null where no embedding was read. */
export function embeddingTable({ features }: Report): HTMLElement | null {
  const rows = features.flatMap(({ coordinate, stack, outlier_in, switched_off_by, norms, embedding }) =>
    embedding === null
      ? []
      : [
          [
            stack === "" ? String(coordinate) : `${stack} ${coordinate}`,
            `${outlier_in.length + switched_off_by.length} of ${norms}`,
            measured(embedding.over_mean),
            el(
              "span",
              {},
              ...embedding.rows.flatMap(({ token, name: spelled, entry, share }, i) => [
                i === 0 ? "" : ", ",
                name(spelled === null ? `#${token}` : JSON.stringify(spelled)),
                ` ${number(entry)} (${percent(share)})`,
              ]),
            ),
          ],
        ],
  );
  if (rows.length === 0) return null;
  return el(
    "div",
    { id: "embedding-rows" },
    el("h3", {}, "Which tokens use the coordinates that stand out?"),
    el(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of coordinates and tokens" },
      table(
        "The tokens whose rows of the token embedding have the largest entries there, with these entries and the " +
          "share of the row's squared length that they hold.",
        ["coordinate", "unusual in norms", "mean square, × average", "tokens"],
        rows,
        [0, 1, 2],
      ),
    ),
  );
}
