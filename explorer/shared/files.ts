/** A canvas as a PNG; null where the browser gives none. */
export const pngOf = (canvas: HTMLCanvasElement): Promise<Blob | null> =>
  new Promise((done) => canvas.toBlob(done));

/** Text as an SVG file. */
export const svgOf = (text: string): Blob => new Blob([text], { type: "image/svg+xml" });

/** Hands `blob` to the reader as a file of that name. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
