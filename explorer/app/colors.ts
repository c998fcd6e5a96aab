/** A colour for each point by its direction, so that it can be followed when it moves. */
export function directionColors(points: Float64Array): Float32Array {
  const colors = new Float32Array(points.length);
  for (let i = 0; i < points.length; i += 3) {
    const [x = 0, y = 0, z = 0] = points.subarray(i, i + 3);
    const length = Math.hypot(x, y, z) || 1;
    colors.set([0.5 + (0.4 * x) / length, 0.48 + (0.36 * y) / length, 0.52 + (0.4 * z) / length], i);
  }
  return colors;
}

/** A hue for each digit, light on dark paper. */
export const digitTint = (digit: number, dark: boolean): string =>
  `hsl(${(36 * digit + 15) % 360}, 62%, ${dark ? 66 : 40}%)`;

/** The colour of each point by its direction, as CSS has it. */
export function cssColors(points: Float64Array): string[] {
  const colors = directionColors(points);
  return Array.from({ length: points.length / 3 }, (_, i) => {
    const parts = [...colors.subarray(3 * i, 3 * i + 3)].map((part) => Math.round(255 * part));
    return `rgb(${parts.join(" ")})`;
  });
}
