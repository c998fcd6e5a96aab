/** Scrolls to each figure, which is drawn when it comes into view; the figures before it may still move it. */
export async function visitFigures(page, selector = "figure") {
  for (const figure of await page.$$(selector))
    await figure.evaluate(
      (element) =>
        new Promise((done) => {
          element.scrollIntoView();
          requestAnimationFrame(() => requestAnimationFrame(done));
        }),
    );
}
