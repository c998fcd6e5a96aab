import { color } from "../shared/theme";
import { still } from "./scrolly";

/** Draws on a canvas in units of half its height around its middle, y upward. */
export class Pen {
  /** Half the width, in units of half the height. */
  aspect = 1;
  private unit = 1;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly context: CanvasRenderingContext2D,
  ) {}

  /** Clears the canvas at its present size; false where it has none. */
  begin(): boolean {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(devicePixelRatio, 2);
    if (width === 0 || height === 0) return false;
    const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== columns || this.canvas.height !== rows)
      [this.canvas.width, this.canvas.height] = [columns, rows];
    [this.unit, this.aspect] = [rows / 2, width / height];
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, columns, rows);
    this.context.setTransform(1, 0, 0, 1, Math.round(columns / 2), Math.round(rows / 2));
    this.context.lineJoin = "round";
    return true;
  }

  dot(x: number, y: number, radius: number, fill: string, alpha = 1): void {
    const { context, unit } = this;
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    context.beginPath();
    context.arc(x * unit, -y * unit, radius * unit, 0, 2 * Math.PI);
    context.fill();
  }

  /** A line through points, two numbers each; filled where there is a `fill`. */
  line(points: ArrayLike<number>, stroke: string, width: number, alpha = 1, fill?: string): void {
    const { context, unit } = this;
    context.globalAlpha = alpha;
    context.beginPath();
    for (let i = 0; i + 1 < points.length; i += 2) context.lineTo(points[i]! * unit, -points[i + 1]! * unit);
    if (fill !== undefined) {
      context.fillStyle = fill;
      context.fill();
    }
    context.strokeStyle = stroke;
    context.lineWidth = width * unit;
    if (width > 0) context.stroke();
  }

  box(x: number, y: number, width: number, height: number, fill: string, alpha: number): void {
    const { context, unit } = this;
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    // Neighbours meet at a pixel's edge, so that there is no seam between them.
    const [left, right, low, high] = [x, x + width, -y, -y - height].map((value) => Math.round(value * unit + 1e-6));
    context.fillRect(left!, low!, right! - left!, high! - low!);
  }

  text(words: string, x: number, y: number, size: number, fill: string, alpha = 1): void {
    const { context, unit } = this;
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    context.font = `${size * unit}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.fillText(words, x * unit, -y * unit);
  }
}

const palette = new Map<string, string>();
/** A colour variable of style.css, looked up once a theme. */
export const ink = (variable: string): string => {
  const known = palette.get(variable) ?? color(variable);
  palette.set(variable, known);
  return known;
};

/** Eased from 0 to 1. */
export const eased = (part: number): number => {
  const inside = Math.min(1, Math.max(0, part));
  return inside * inside * (3 - 2 * inside);
};

/** Back and forth between 0 and 1 in `period` seconds, with a rest at both ends. */
export function swing(seconds: number, period: number): number {
  const phase = (seconds / period) % 1;
  return eased(1.3 * (phase < 0.5 ? 2 * phase : 2 - 2 * phase) - 0.15);
}

/** Where `at`, from 0 to 1, lies between two of `frames`, number by number. */
export function between(frames: number[][], at: number): number[] {
  const place = Math.min(1, Math.max(0, at)) * (frames.length - 1);
  const from = Math.min(frames.length - 2, Math.floor(place));
  const [a = [], b = []] = [frames[from], frames[from + 1]];
  return a.map((value, i) => value + (place - from) * (b[i]! - value));
}

/** Draws a moment of a picture that moves, `seconds` after it began. */
export type Moving = (pen: Pen, seconds: number) => void;

/** Canvases that move together while they are in view, until they are paused; drawn once where motion is unwelcome. */
export class Motion {
  playing = !still.matches;
  private readonly parts = new Map<Element, { pen: Pen; draw: Moving; small: boolean; seen: boolean }>();
  private readonly sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const part = this.parts.get(target);
      if (part !== undefined) part.seen = isIntersecting;
    }
    this.ask();
  });
  private readonly sizes = new ResizeObserver(() => this.ask());
  private frame = 0;
  private last = 0;
  private seconds = 0;
  private disposed = false;
  private frames = 0;

  /** `seconds` is the moment that is drawn where nothing moves. */
  constructor(stillAt: number) {
    this.seconds = this.playing ? 0 : stillAt;
  }

  add(canvas: HTMLCanvasElement, draw: Moving, small = false): void {
    const context = canvas.getContext("2d");
    if (context === null || this.disposed) return;
    this.parts.set(canvas, { pen: new Pen(canvas, context), draw, small, seen: false });
    this.sight.observe(canvas);
    this.sizes.observe(canvas);
  }

  play(playing: boolean): void {
    this.playing = playing;
    this.last = 0;
    this.ask();
  }

  /** Goes to a moment and stays there. */
  rest(seconds: number): void {
    this.seconds = seconds;
    this.play(false);
  }

  /** The theme has changed. */
  repaint(): void {
    palette.clear();
    this.ask();
  }

  dispose(): void {
    this.disposed = true;
    cancelAnimationFrame(this.frame);
    this.sight.disconnect();
    this.sizes.disconnect();
    this.parts.clear();
  }

  private ask(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame((now) => this.step(now));
  }

  private step(now: number): void {
    // A long frame, as after a while in another tab, moves nothing by a leap.
    if (this.playing && this.last > 0) this.seconds += Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    const seen = [...this.parts.values()].filter((part) => part.seen);
    this.frames += 1;
    // Small pictures are drawn in every other frame, half of them in each.
    const due = this.playing ? seen.filter(({ small }, i) => !small || (this.frames + i) % 2 === 0) : seen;
    for (const { pen, draw } of due) if (pen.begin()) draw(pen, this.seconds);
    if (this.playing && seen.length > 0) this.ask();
  }
}
