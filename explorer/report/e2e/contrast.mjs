/** Runs inside the page: texts whose contrast with what is behind them is below WCAG AA. */
export function contrastFailures() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) known.set(color, drawn(color));
    return known.get(color);
  };
  const drawn = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => {
    const [r, g, b] = color
      .slice(0, 3)
      .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const failures = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (
      walker.currentNode.data.trim() === "" ||
      element.closest("script, noscript, option, .skip") ||
      !element.checkVisibility()
    )
      continue;
    const style = getComputedStyle(element);
    const kind = `${element.tagName}.${element.getAttribute("class") ?? ""}`;
    const color = element instanceof SVGElement ? style.fill : style.color;
    const key = `${kind} ${color}`;
    if (color === "none" || failures.has(key)) continue;
    const [low, high] = [luminance(rgba(color)), luminance(behind(element))].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    failures.set(
      key,
      ratio < needed ? `${kind} "${walker.currentNode.data.trim().slice(0, 30)}" ${ratio.toFixed(2)}` : null,
    );
  }
  return [...failures.values()].filter((failure) => failure !== null);
}
