import type { TokenTrace } from "../../generated/token-trace";
import { measured, percent } from "../../shared/format";
import { mark } from "../svg";
import type { Attributes } from "../svg";
import { box, hatch, told, words } from "./trace_marks";
import { headsOf, lostAt, named, quoted, weightsAt } from "./trace_steps";
import { componentAt, effectBars, tokenBars } from "./trace_removal";
import type { Area, Removal } from "./trace_removal";
import type { Step } from "./trace_steps";
import { adding, entering, normStrips, stripBars } from "./trace_strips";
import type { Strip } from "./trace_strips";

/** What the core makes of the chosen token at each norm: x, then x behind each of the norm's four steps. */
export interface NormSteps {
  width: number;
  /** Norms × 5 × width. */
  values: Float64Array;
}

export interface View {
  trace: TokenTrace;
  steps: Step[];
  /** The step that is open, an index of `steps`, and the chosen position. */
  at: number;
  position: number;
  /** Undefined until the core has answered. */
  norms: NormSteps | undefined;
  removal: Removal | undefined;
  /** Tokens that may come next, on show. */
  next: number;
  /** Pixels from left to right. */
  width: number;
}

/** Where a pointer hits the picture. */
export interface Hit {
  step: number | null;
  position: number | null;
  component: string | null;
}

export interface Drawn {
  svg: SVGSVGElement;
  hit(x: number, y: number): Hit;
}

const gutter = 92;
const margin = 10;
const widestColumn = 64;
/** From this width on there is room for the ellipsoid beside what the norm does. */
const roomy = 600;
const letterWidth = 6.6;
/** Height of a row of tokens that need not be turned. */
const levelHeight = 20;

/** Heights of what is open, from the numbers of heads and tokens on show. */
const stripHeight = 45;
const flowHeight = 52;
const nextRow = 19;

class Painter {
  readonly svg: SVGSVGElement;
  private readonly cell: number;
  private readonly right: number;
  private readonly closed: number;
  private readonly open: number;
  /** Heights of the rows of tokens. */
  private readonly labels: { tokens: number; next: number };
  private readonly tops: number[] = [];
  private readonly heightsOf: number[] = [];
  private readonly height: number;

  constructor(private readonly view: View) {
    const { trace, steps, width } = view;
    const count = trace.tokens.length;
    this.cell = Math.min(widestColumn, (width - gutter - margin) / count);
    this.right = gutter + this.cell * count;
    this.closed = Math.max(8, Math.min(13, 260 / steps.length));
    const heightOf = (tokens: TokenTrace["tokens"]): number => {
      const longest = Math.max(...tokens.map((token) => named(token).length)) * letterWidth;
      return longest + 4 <= this.cell ? levelHeight : Math.min(76, 17 + longest * 0.71);
    };
    this.labels = {
      tokens: heightOf(trace.tokens),
      next: heightOf(trace.predictions.map(({ likeliest }) => likeliest[0]!)),
    };
    // Its height does not depend on the step, so that nothing below moves.
    this.open = Math.max(4 * stripHeight + 14, this.headsHeight(), nextRow * 10 + 12);
    let y = 4;
    // The stream runs upward.
    for (let i = steps.length - 1; i >= 0; --i) {
      const own = i === view.at ? this.open : steps[i]!.kind === "next" ? this.labels.next : this.closed;
      this.tops[i] = y;
      this.heightsOf[i] = own;
      y += own;
    }
    this.height = y + this.labels.tokens + 4;
    this.svg = mark("svg", {
      viewBox: `0 0 ${width} ${this.height}`,
      width,
      height: this.height,
      "font-family": "var(--sans)",
    });
    this.stream();
    steps.forEach((step, i) => (i === view.at ? this.opened(step, i) : this.closedStep(step, i)));
    this.layers();
    this.tokens(this.height - this.labels.tokens - 2, trace.tokens, true);
  }

  hit(x: number, y: number): Hit {
    const step = this.tops.findIndex((top, i) => y >= top && y < top + this.heightsOf[i]!);
    const position = Math.floor((x - gutter) / this.cell);
    const inside = position >= 0 && position < this.view.trace.tokens.length;
    const { removal, steps, at } = this.view;
    const area = step === at && steps[at]!.kind === "removal" ? this.effectsArea() : null;
    const component =
      area !== null && removal !== undefined && y < area.bottom ? componentAt(removal.effects, area, x) : undefined;
    return { step: step < 0 ? null : step, position: inside ? position : null, component: component ?? null };
  }

  private add(...parts: SVGElement[]): void {
    this.svg.append(...parts);
  }
  private x(position: number): number {
    return gutter + (position + 0.5) * this.cell;
  }
  private headRow(count: number): number {
    return Math.max(13, Math.min(34, 140 / count));
  }
  private headsHeight(): number {
    const { trace } = this.view;
    const most = Math.max(1, ...trace.norms.map((_, norm) => headsOf(trace, norm).length));
    return flowHeight + most * this.headRow(most) + 8;
  }
  private label(text: string, y: number, attributes: Attributes = {}): void {
    this.add(words(text, gutter - 8, y, { "text-anchor": "end", ...attributes }));
  }

  /** The norm whose input shows how the stream is at a step. */
  private normOf(step: Step): number {
    const { norms } = this.view.trace;
    if (step.kind === "stream") return 0;
    if (step.kind === "next" || step.kind === "removal") return norms.length - 1;
    return step.kind === "norm" ? step.norm : Math.min(step.norm + 1, norms.length - 1);
  }

  /** A line for every position, as wide as its vector is long. */
  private stream(): void {
    const { trace, steps, at, position } = this.view;
    const lengths = trace.norms.map(({ tokens }) => tokens.map(({ length }) => length ?? 0));
    const longest = Math.max(...lengths.flat(), 1e-300);
    steps.forEach((step, i) => {
      const top = this.tops[i]!;
      if (i === at) {
        this.add(box(0, top, this.view.width, this.heightsOf[i]!, { fill: "var(--tint)" }));
        if (step.kind !== "heads") return;
      }
      if (step.kind === "next" || step.kind === "removal") return;
      for (const t of trace.tokens.keys()) {
        const wide = 1 + Math.min(9, this.cell * 0.6) * ((lengths[this.normOf(step)]?.[t] ?? 0) / longest);
        this.add(
          mark("line", {
            ...{ x1: this.x(t), x2: this.x(t), y1: top, y2: top + this.heightsOf[i]! },
            stroke: t === position ? "var(--series-1)" : "var(--ramp-line)",
            "stroke-width": wide,
            opacity: i === at && t !== position ? 0.35 : 1,
          }),
        );
      }
    });
  }

  private closedStep(step: Step, i: number): void {
    const { trace, position } = this.view;
    const [top, tall] = [this.tops[i]!, this.heightsOf[i]!];
    const middle = top + tall / 2;
    const small = { "font-size": Math.min(11, tall) };
    if (step.kind === "next") {
      this.tokens(
        top,
        trace.predictions.map(({ likeliest }) => likeliest[0]!),
        false,
      );
      return this.label("likeliest", top + this.labels.next - 6, small);
    }
    if (step.kind === "stream") return this.label("embedding", middle + 4, small);
    if (step.kind === "removal") return this.label("left out", middle + 4, small);
    const last = step.kind === "norm" && step.norm === trace.norms.length - 1;
    this.label(last ? "final norm" : step.kind === "mlp" ? "MLP" : step.kind, middle + 4, small);
    if (step.kind === "norm") {
      for (const t of trace.tokens.keys()) {
        const chosen = t === position;
        this.add(
          mark("line", {
            ...{ x1: this.x(t) - this.cell * 0.3, x2: this.x(t) + this.cell * 0.3, y1: middle, y2: middle },
            stroke: chosen ? "var(--ink)" : "var(--muted)",
            "stroke-width": chosen ? 3 : 1.5,
          }),
        );
      }
      return;
    }
    if (step.kind === "mlp") {
      const side = Math.min(tall - 4, 9);
      const [x, y] = [this.x(position), middle];
      this.add(
        mark("path", {
          d: `M${x - side} ${y}L${x} ${y - side / 2}L${x + side} ${y}L${x} ${y + side / 2}z`,
          fill: "var(--series-3)",
        }),
      );
      return;
    }
    const { means, lost } = this.attention(step.norm);
    const side = Math.min(tall - 3, this.cell - 2);
    means.forEach((weight, key) => {
      const at = [this.x(key) - side / 2, middle - side / 2] as const;
      this.add(box(...at, side, side, { fill: "var(--series-1)", opacity: Math.min(1, 0.08 + 1.4 * weight) }));
      if (lost.has(key)) this.add(hatch(...at, side, side));
    });
  }

  /** Weights of the chosen position's queries, the mean over the heads, and keys that some head has lost. */
  private attention(norm: number): { means: number[]; lost: Set<number> } {
    const { trace, position } = this.view;
    const heads = headsOf(trace, norm);
    const means = Array.from({ length: position + 1 }, () => 0);
    for (const head of heads) {
      weightsAt(trace, head, position)?.forEach((weight, key) => (means[key]! += weight / heads.length));
    }
    return { means, lost: new Set(heads.flatMap((head) => lostAt(trace, head, position))) };
  }

  private opened(step: Step, i: number): void {
    const [top, tall] = [this.tops[i]!, this.heightsOf[i]!];
    switch (step.kind) {
      case "stream":
        return this.strips(top, tall, [entering(this.row(0, 0))]);
      case "norm":
        return this.norm(step.norm, top, tall);
      case "heads":
        return this.heads(step.norm, top, tall);
      case "mlp":
        return this.strips(top, tall, adding(this.row(step.norm, 0), this.row(this.normOf(step), 0)));
      case "next":
        return this.next(top, tall);
      case "removal":
        return this.removal();
    }
  }

  private row(norm: number, step: number): Float64Array {
    const { norms } = this.view;
    if (norms === undefined) return new Float64Array(1);
    const from = (norm * 5 + step) * norms.width;
    return norms.values.subarray(from, from + norms.width);
  }

  private norm(index: number, top: number, tall: number): void {
    const { trace, position, width } = this.view;
    const norm = trace.norms[index]!;
    const strips = normStrips(norm, norm.tokens[position]!, (step) => this.row(index, step));
    const beside = width >= roomy && norm.axes.length > 1;
    const side = beside ? tall - 24 : 0;
    this.strips(top, tall, strips, width - margin - (beside ? side + 18 : 0));
    if (beside) this.ellipse(index, width - margin - side, top + 6, side);
  }

  /** Strips from below, and a lens that shows whose numbers they are. */
  private strips(top: number, tall: number, strips: Strip[], right = this.view.width - margin): void {
    const { position } = this.view;
    const bottom = top + tall;
    const x = this.x(position);
    const lens = { fill: "var(--series-1)", opacity: 0.12 };
    const half = Math.max(1.5, this.cell * 0.3);
    const room = (tall - 14) / strips.length;
    const each = Math.min(stripHeight, room);
    const used = each * strips.length;
    const first = bottom - 7 - (tall - 14 - used) / 2;
    this.add(
      mark("path", { d: `M${x - half} ${bottom}L${gutter} ${first}H${right}L${x + half} ${bottom}z`, ...lens }),
      mark("path", { d: `M${x - half} ${top}L${gutter} ${first - used}H${right}L${x + half} ${top}z`, ...lens }),
    );
    strips.forEach((strip, k) => {
      const middle = first - (k + 0.5) * each;
      this.label(strip.label, middle - 1, { fill: "var(--ink)" });
      this.label(strip.value, middle + 12, { "font-size": 10.5 });
      this.add(...stripBars(strip, middle, each / 2 - 3, gutter, right));
    });
  }

  /** The image of a norm along its two longest axes, with the tokens as dots. */
  private ellipse(index: number, left: number, top: number, side: number): void {
    const { trace, position } = this.view;
    const norm = trace.norms[index]!;
    const [long, short] = norm.axes;
    const ratio = short!.length / long!.length;
    const [cx, cy, r] = [left + side / 2, top + side / 2, side / 2 - 4];
    const line = { fill: "none", stroke: "var(--muted)" };
    this.add(
      mark("path", {
        d: `M${cx - r} ${cy}a${r} ${r * ratio} 0 1 0 ${2 * r} 0a${r} ${r * ratio} 0 1 0 ${-2 * r} 0z`,
        ...line,
      }),
      mark("path", {
        d: `M${cx - r} ${cy}h${2 * r}M${cx} ${cy - r * ratio}v${2 * r * ratio}`,
        ...line,
        "stroke-dasharray": "3 3",
      }),
    );
    const order = [...norm.tokens.keys()].sort((a, b) => Number(a === position) - Number(b === position));
    for (const t of order) {
      const { place } = norm.tokens[t]!;
      const here = t === position;
      this.add(
        told(
          mark("circle", {
            ...{ cx: cx + r * (place[0] ?? 0), cy: cy - r * ratio * (place[1] ?? 0), r: here ? 6 : 3 },
            fill: here ? "var(--series-2)" : "var(--series-3)",
            opacity: here ? 1 : 0.7,
          }),
          `${quoted(trace.tokens[t]!)}, position ${t}`,
        ),
      );
    }
    this.add(
      words("its two longest axes", cx, Math.min(top + side, cy + r * ratio) + 14, {
        "text-anchor": "middle",
        "font-size": 10.5,
      }),
    );
  }

  private heads(index: number, top: number, tall: number): void {
    const { trace, position } = this.view;
    const heads = headsOf(trace, index);
    const each = this.headRow(heads.length);
    const first = top + (tall - flowHeight - each * heads.length) / 2 + flowHeight;
    this.flow(this.attention(index).means, top, first - 6);
    this.label("mean", top + (first - top) / 2 + 4, { fill: "var(--ink)" });
    heads.forEach((head, k) => {
      const bottom = first + (k + 1) * each - 2;
      const room = each - 5;
      this.label(`head ${head.head}`, bottom - room / 2 + 4, {
        fill: "var(--ink)",
        "font-size": Math.min(11, each - 1),
      });
      this.add(mark("line", { x1: gutter, x2: this.right, y1: bottom, y2: bottom, stroke: "var(--rule)" }));
      const lost = new Set(lostAt(trace, head, position));
      const weights = weightsAt(trace, head, position);
      for (let key = 0; key <= position; ++key) {
        const weight = weights?.[key] ?? 0;
        const wide = Math.max(1.5, this.cell * 0.7);
        const x = this.x(key) - wide / 2;
        const says = `head ${head.head}: ${percent(weight)} on ${quoted(trace.tokens[key]!)}, position ${key}`;
        const cell = mark(
          "g",
          {},
          box(x, bottom - room, wide, room, { fill: "var(--paper)", opacity: 0.7 }),
          box(x, bottom - room * weight, wide, room * weight, { fill: "var(--series-1)" }),
        );
        if (lost.has(key)) cell.append(hatch(x, bottom - room, wide, room));
        this.add(told(cell, lost.has(key) ? `${says}; no query gives this key the highest score` : says));
        if (weight > 0.295 && wide >= 26 && room >= 15) {
          const inside = room * weight > 15;
          this.add(
            words(
              `${Math.round(100 * weight)}`,
              x + wide / 2,
              inside ? bottom - room * weight + 11 : bottom - room * weight - 2,
              {
                "text-anchor": "middle",
                "font-size": 10,
                fill: inside ? "var(--paper)" : "var(--ink)",
              },
            ),
          );
        }
      }
    });
    if (heads.every((head) => weightsAt(trace, head, position) === undefined))
      this.add(words("The weights of so many heads and tokens are left out.", gutter, top + 14));
  }

  /** What flows from the positions of the keys to the chosen one, the mean over the heads. */
  private flow(means: number[], top: number, bottom: number): void {
    const to = this.x(this.view.position);
    means.forEach((weight, key) => {
      if (weight < 0.004) return;
      const from = this.x(key);
      const middle = (top + bottom) / 2;
      this.add(
        told(
          mark("path", {
            d: `M${from} ${bottom}C${from} ${middle} ${to} ${middle} ${to} ${top}`,
            ...{ fill: "none", stroke: "var(--series-1)", opacity: 0.55 },
            "stroke-width": Math.max(0.6, Math.min(18, this.cell) * weight),
          }),
          `${percent(weight)} from position ${key}, the mean over the heads`,
        ),
      );
    });
  }

  private next(top: number, tall: number): void {
    const { trace, position, next, width } = this.view;
    const { likeliest, next: follows } = trace.predictions[position]!;
    const shown = likeliest.slice(0, next);
    const first = top + (tall - shown.length * nextRow) / 2;
    const room = width - gutter - 170;
    const [x, half, bottom] = [this.x(position), Math.max(1.5, this.cell * 0.3), top + tall];
    const last = first + shown.length * nextRow + 2;
    this.add(
      mark("path", {
        d: `M${x - half} ${bottom}L${gutter} ${last}H${width - margin}L${x + half} ${bottom}z`,
        ...{ fill: "var(--series-1)", opacity: 0.12 },
      }),
    );
    shown.forEach((token, k) => {
      const y = first + k * nextRow;
      const wide = Math.max(1, room * (token.probability ?? 0));
      const here = token.token === follows?.token;
      const bar = box(gutter, y + 3, wide, nextRow - 6, { fill: here ? "var(--series-2)" : "var(--series-1)" });
      const reach = token.reach === "no" ? "out of reach" : token.reach === "undecided" ? "reach not decided" : "";
      const says = [percent(token.probability), `logit ${measured(token.logit)}`, reach].filter((one) => one !== "");
      this.label(named(token), y + 14, { fill: "var(--ink)", "font-size": 12 });
      this.add(bar, words(says.join(" · "), gutter + wide + 6, y + 14));
    });
  }

  private effectsArea(): Area {
    const i = this.view.at;
    const top = this.tops[i]!;
    return { left: gutter, right: this.view.width - margin, top: top + 8, bottom: top + 0.56 * this.heightsOf[i]! };
  }

  /** What each component gives, and the likeliest tokens without the chosen one. */
  private removal(): void {
    const { removal, trace, position, next, at } = this.view;
    if (removal === undefined) return;
    const area = this.effectsArea();
    this.add(...effectBars(removal.effects, removal.without?.component ?? "", area));
    this.label("gives", area.top + 12, { fill: "var(--ink)" });
    this.label(`the logit of ${named(removal.effects.target)}`, area.top + 25, { "font-size": 10.5 });
    const tokens =
      removal.without?.tokens ??
      trace.predictions[position]!.likeliest.map((token) => {
        const share = token.probability ?? 0;
        return { ...token, before: share, exact: share, frozen: share };
      });
    const bottom = this.tops[at]! + this.heightsOf[at]! - 4;
    if (this.view.width >= roomy) {
      const legend =
        removal.without === null
          ? "above: wide, the frozen share; narrow, its price"
          : "wide: with it · narrow: without · line: with σ frozen";
      this.add(words(legend, area.right, bottom - 6, { "text-anchor": "end" }));
    }
    this.add(...tokenBars(tokens.slice(0, next), named, { ...area, top: area.bottom + 8, bottom }));
  }

  /** The layers at the left. */
  private layers(): void {
    const { trace, steps } = this.view;
    const ranges = new Map<number, { top: number; bottom: number }>();
    steps.forEach((step, i) => {
      if (!("norm" in step)) return;
      const { layer } = trace.norms[step.norm]!;
      if (layer === null || step.norm === trace.norms.length - 1) return;
      const [top, bottom] = [this.tops[i]!, this.tops[i]! + this.heightsOf[i]!];
      const known = ranges.get(layer) ?? { top, bottom };
      ranges.set(layer, { top: Math.min(known.top, top), bottom: Math.max(known.bottom, bottom) });
    });
    for (const [layer, { top, bottom }] of ranges) {
      const middle = (top + bottom) / 2;
      this.add(
        mark("line", { x1: 15, x2: 15, y1: top + 2, y2: bottom - 2, stroke: "var(--rule)", "stroke-width": 2 }),
        words(bottom - top > 50 ? `layer ${layer}` : String(layer), 10, middle, {
          "text-anchor": "middle",
          transform: `rotate(-90 10 ${middle})`,
        }),
      );
    }
  }

  /** A row of tokens, which stand below or above their columns. */
  private tokens(top: number, tokens: TokenTrace["tokens"], below: boolean): void {
    const { position } = this.view;
    const tall = below ? this.labels.tokens : this.labels.next;
    const level = tall === levelHeight;
    const apart = level ? 1 : Math.max(1, Math.ceil(11 / this.cell));
    tokens.forEach((token, t) => {
      const chosen = t === position;
      if (!chosen && (t % apart !== 0 || Math.abs(t - position) < apart)) return;
      const x = this.x(t);
      const y = level ? top + 14 : below ? top + 12 : top + tall - 6;
      // To the left, where there is room for the first ones.
      const turn = level ? {} : { transform: `rotate(${below ? -45 : 45} ${x} ${y})` };
      this.add(
        told(
          words(named(token), level ? x : x + 3, y, {
            ...turn,
            "text-anchor": level ? "middle" : "end",
            "font-size": 12,
            fill: chosen ? "var(--ink)" : "var(--muted)",
            "font-weight": chosen ? 700 : 400,
          }),
          `${quoted(token)}, position ${t}`,
        ),
      );
    });
  }
}

export function draw(view: View): Drawn {
  const painter = new Painter(view);
  return { svg: painter.svg, hit: (x, y) => painter.hit(x, y) };
}
