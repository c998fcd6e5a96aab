import type { Norm } from "../../generated/report";
import { el } from "../../shared/dom";
import { factsOf, number } from "../../shared/format";

/**
 * Where the explorer's chapter Geometry shows three gains of a norm: the least, the typical and the largest there are.
 * `explorer` is the address of the explorer, empty within it; null for norms that the chapter cannot show.
 */
export function geometryLink(norm: Norm, explorer = ""): HTMLElement | null {
  const { gain } = norm;
  // The others have no eps that the chapter could show, or no ellipsoid.
  if (factsOf(norm.kind)?.divisor !== "root_mean_square") return null;
  if (gain?.min == null || gain.max == null || gain.median_abs == null) return null;
  const gains = [gain.min, gain.median_abs, gain.max].map((value) => Number(value.toPrecision(4)));
  const query = new URLSearchParams({
    kind: norm.kind,
    gain: gains.join(","),
    bias: "0,0,0",
    eps: String(norm.eps ?? 0),
  });
  return el(
    "p",
    {},
    el("a", { href: `${explorer}#/geometry?${query}` }, "See its stretch in three dimensions"),
    `: a norm of the gains ${gains.map((value) => number(value)).join(", ")}, the least, the median in size and the ` +
      `largest of this norm's ${number(norm.width)}.`,
  );
}

/** The explorer that the address of a page names, `report.html?explorer=../`; null where it names none. */
export function explorerOf(page: URL): string | null {
  const named = page.searchParams.get("explorer");
  if (named === null) return null;
  const address = URL.canParse(named, page.href) ? new URL(named, page.href) : null;
  return address !== null && ["http:", "https:", "file:"].includes(address.protocol) ? address.href : null;
}
