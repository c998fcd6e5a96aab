/**
 * Images of digits, small enough for a page: MNIST's 28 × 28 pixels as 14 × 14 of 16 levels. The file that a site may
 * bring has the number of images to learn and of those held out (16 bits each), a label for each image, then its pixels,
 * two in a byte.
 */

export const side = 14;
export const pixels = side * side;
const bytesEach = pixels / 2;

/** Images to learn and images held out. */
export const counts = { learned: 1200, held: 400 };

export interface Images {
  /** Intensities from 0 to 1, `pixels` an image. */
  shades: Float64Array;
  labels: Int32Array;
}

export interface Digits {
  learned: Images;
  held: Images;
}

/** An IDX file of bytes: its extents and its elements. */
export function readIdx(bytes: Uint8Array, what: string): { extents: number[]; data: Uint8Array } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const axes = bytes[3] ?? 0;
  if (
    bytes.length < 8 ||
    view.getUint16(0) !== 0 ||
    bytes[2] !== 8 ||
    axes < 1 ||
    axes > 3 ||
    bytes.length < 4 + 4 * axes
  )
    throw new Error(`${what} is no IDX file of bytes`);
  const extents = Array.from({ length: axes }, (_, i) => view.getUint32(4 + 4 * i));
  const data = bytes.subarray(4 + 4 * axes);
  const size = extents.reduce((product, extent) => product * extent, 1);
  if (data.length !== size) throw new Error(`${what} has ${data.length} bytes of data, expected ${size}`);
  return { extents, data };
}

/** The first `count` images of MNIST's files, a pixel the mean of four. */
export function shrink(images: Uint8Array, labels: Uint8Array, count: number, what: string): Images {
  const { extents, data } = readIdx(images, `${what}'s images`);
  const { extents: many, data: named } = readIdx(labels, `${what}'s labels`);
  if (extents.length !== 3 || extents[1] !== 2 * side || extents[2] !== 2 * side)
    throw new Error(
      `${what}'s images are of ${extents.slice(1).join(" × ")} pixels, expected ${2 * side} × ${2 * side}`,
    );
  if (many.length !== 1 || many[0] !== extents[0])
    throw new Error(`${what} has ${many[0]} labels for ${extents[0]} images`);
  if (extents[0]! < count) throw new Error(`${what} has ${extents[0]} images, expected at least ${count}`);
  const shades = new Float64Array(count * pixels);
  for (let image = 0; image < count; ++image) {
    for (let row = 0; row < 2 * side; ++row) {
      for (let column = 0; column < 2 * side; ++column) {
        const to = image * pixels + (row >> 1) * side + (column >> 1);
        shades[to] = (shades[to] ?? 0) + (data[(image * 2 * side + row) * 2 * side + column] ?? 0) / (4 * 255);
      }
    }
  }
  const found = Int32Array.from(named.subarray(0, count));
  if (found.some((label) => label > 9)) throw new Error(`${what}'s labels are not all digits`);
  return { shades, labels: found };
}

/** Digits as one file. */
export function pack({ learned, held }: Digits): Uint8Array {
  const all = [learned, held];
  const total = learned.labels.length + held.labels.length;
  const bytes = new Uint8Array(4 + total * (1 + bytesEach));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, learned.labels.length);
  view.setUint16(2, held.labels.length);
  bytes.set(
    all.flatMap(({ labels }) => [...labels]),
    4,
  );
  const level = (shade: number) => Math.round(15 * shade);
  let at = 4 + total;
  for (const { shades } of all)
    for (let i = 0; i < shades.length; i += 2) bytes[at++] = (level(shades[i]!) << 4) | level(shades[i + 1]!);
  return bytes;
}

export function unpack(bytes: Uint8Array): Digits {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sizes = bytes.length < 4 ? [0, 0] : [view.getUint16(0), view.getUint16(2)];
  const total = sizes[0]! + sizes[1]!;
  if (total === 0 || bytes.length !== 4 + total * (1 + bytesEach)) throw new Error("the file of digits is damaged");
  let [label, at] = [4, 4 + total];
  const read = (count: number): Images => {
    const labels = Int32Array.from(bytes.subarray(label, label + count));
    const shades = new Float64Array(count * pixels);
    for (let i = 0; i < shades.length; i += 2) {
      const both = bytes[at++]!;
      shades[i] = (both >> 4) / 15;
      shades[i + 1] = (both & 15) / 15;
    }
    label += count;
    return { shades, labels };
  };
  return { learned: read(sizes[0]!), held: read(sizes[1]!) };
}

/** About the mean of MNIST's pixels and their standard deviation. */
const [mean, deviation] = [0.13, 0.31];
/** What the net is given: shades with mean 0 and variance 1, about. */
export const features = (shades: Float64Array): Float64Array => shades.map((shade) => (shade - mean) / deviation);

/**
 * A drawing moved so that its centre of mass is in the middle, as MNIST's digits are, by whole pixels; what leaves the
 * edge is lost.
 */
export function centred(shades: Float64Array): Float64Array {
  let [mass, x, y] = [0, 0, 0];
  shades.forEach((shade, i) => {
    mass += shade;
    x += shade * (i % side);
    y += shade * Math.floor(i / side);
  });
  if (mass === 0) return shades;
  const middle = (side - 1) / 2;
  const [right, down] = [Math.round(middle - x / mass), Math.round(middle - y / mass)];
  const moved = new Float64Array(pixels);
  for (let row = 0; row < side; ++row) {
    for (let column = 0; column < side; ++column) {
      const [from, to] = [row - down, column - right];
      if (from >= 0 && from < side && to >= 0 && to < side) moved[row * side + column] = shades[from * side + to]!;
    }
  }
  return moved;
}
