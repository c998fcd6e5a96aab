/** Text that lies outside of its figure, as a legend does that was laid out for another width. */
export function textCut(page) {
  return page.$$eval("figure svg", (figures) =>
    figures.flatMap((figure) => {
      const { top, bottom, left, right } = figure.getBoundingClientRect();
      return [...figure.querySelectorAll("text")]
        .filter((text) => {
          const box = text.getBoundingClientRect();
          const outside = box.top < top - 2 || box.bottom > bottom + 2 || box.left < left - 2 || box.right > right + 2;
          return outside && box.width > 0 && text.getAttribute("opacity") !== "0";
        })
        .map((text) => `${figure.closest("figure").id}: ${text.textContent}`);
    }),
  );
}

/** What `cut` finds and goes on finding: figures are laid out anew a moment after the window has another size. */
export async function staysCut(page, cut = textCut) {
  for (const end = performance.now() + 30_000; ; await page.waitForTimeout(200)) {
    const found = await cut(page);
    if (found.length === 0 || performance.now() > end) return found;
  }
}
