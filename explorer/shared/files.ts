/** A canvas as a PNG; null where the browser gives none. Not `toBlob`, which waits seconds for an idle browser. */
export function pngOf(canvas: HTMLCanvasElement): Blob | null {
  const head = "data:image/png;base64,";
  const address = canvas.toDataURL("image/png");
  if (!address.startsWith(head)) return null;
  return new Blob([Uint8Array.from(atob(address.slice(head.length)), (byte) => byte.charCodeAt(0))], {
    type: "image/png",
  });
}

/** Text as an SVG file. */
export const svgOf = (text: string): Blob => new Blob([text], { type: "image/svg+xml" });

/** Offers `blob` for download under that name. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
