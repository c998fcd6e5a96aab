import type { ChangedToken } from "../../engine/trace";
import type { Attribute } from "../../generated/attribute";
import { measured, percent } from "../../shared/format";
import { mark } from "../svg";
import { box, told, words } from "./trace_marks";

/** What each component of the stream does to the logit of the likeliest token, and the likeliest tokens without one. */
export interface Removal {
  effects: Attribute;
  without: { component: string; tokens: ChangedToken[] } | null;
}

type Effects = Attribute;

export interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const roomOfNames = 16;
const roomOfLayers = 13;
const rowHeight = 19;

/** "head 1 of layer 2", "the MLP of layer 2", "the embedding". */
export function titleOf(component: string): string {
  const head = /^(\d+)\.(\d+)$/.exec(component);
  if (head !== null) return `head ${head[2]} of layer ${head[1]}`;
  const [layer, part] = component.split(".");
  if (part === undefined) return component === "position" ? "the embedding of the position" : "the embedding";
  const names: Record<string, string> = {
    mlp: "the MLP",
    mlp_bias: "the bias of the MLP",
    attention_bias: "the bias of the heads",
  };
  return `${names[part] ?? part} of layer ${layer}`;
}

const layerOf = (component: string): string | undefined => /^(\d+)\./.exec(component)?.[1];

const short = (component: string): string => {
  const head = /^\d+\.(\d+)$/.exec(component);
  const part = component.split(".")[1];
  return head?.[1] ?? (part === undefined ? component[0]! : part === "mlp" ? "M" : "b");
};

/** Where each component has its bar. */
const slotsOf = ({ components }: Effects, { left, right }: Area): { wide: number; x: (i: number) => number } => {
  const wide = (right - left) / components.length;
  return { wide, x: (i) => left + i * wide };
};

/** The component whose bar is at a place of the area. */
export function componentAt(effects: Effects, area: Area, x: number): string | undefined {
  const { wide } = slotsOf(effects, area);
  return x < area.left ? undefined : effects.components[Math.floor((x - area.left) / wide)]?.name;
}

/**
 * A bar for every component: what it gives the token's logit while the norm's divisor is kept, and, narrow from there, the
 * price of keeping it.
 */
export function effectBars(effects: Effects, chosen: string, area: Area): SVGElement[] {
  const { components } = effects;
  const { wide, x } = slotsOf(effects, area);
  const most = Math.max(...components.flatMap(({ frozen, exact }) => [Math.abs(frozen), Math.abs(exact)]), 1e-300);
  const least = Math.min(...components.flatMap(({ frozen, exact }) => [-frozen, -exact, 0]));
  const largest = Math.max(...components.flatMap(({ frozen, exact }) => [-frozen, -exact, most / 20]));
  const top = area.top + roomOfLayers;
  const tall = area.bottom - roomOfNames - top;
  const unit = tall / (largest - least);
  const zero = top + largest * unit;
  const parts: SVGElement[] = [
    mark("line", { x1: area.left, x2: area.right, y1: zero, y2: zero, stroke: "var(--muted)" }),
  ];
  components.forEach(({ name, frozen, price, exact }, i) => {
    const layer = layerOf(name);
    if (layer !== undefined && layer !== layerOf(components[i - 1]?.name ?? "")) {
      parts.push(
        mark("line", { x1: x(i), x2: x(i), y1: area.top, y2: area.bottom, stroke: "var(--rule)" }),
        ...(wide >= 14 ? [words(`layer ${layer}`, x(i) + 4, area.top + 8, { "font-size": 10 })] : []),
      );
    }
    const here = name === chosen;
    const inset = Math.min(3, wide * 0.15);
    const bar = wide - 2 * inset;
    // What the component gives is what its removal takes.
    const [from, to] = [zero + frozen * unit, zero + exact * unit];
    const group = mark(
      "g",
      {},
      box(x(i), area.top, wide, area.bottom - area.top, { fill: here ? "var(--ramp-low)" : "transparent" }),
      box(x(i) + inset, Math.min(zero, from), bar, Math.abs(from - zero), {
        fill: here ? "var(--ink)" : "var(--series-1)",
      }),
      box(x(i) + inset + bar / 4, Math.min(from, to), bar / 2, Math.abs(to - from), { fill: "var(--series-2)" }),
    );
    if (wide >= 9)
      group.append(
        words(short(name), x(i) + wide / 2, area.bottom - 3, {
          "text-anchor": "middle",
          "font-size": 10,
          fill: here ? "var(--ink)" : "var(--muted)",
        }),
      );
    parts.push(
      told(
        group,
        `without ${titleOf(name)} the logit changes by ${measured(exact)}: ${measured(frozen)} with σ kept, and ${measured(price)} as σ changes`,
      ),
    );
  });
  return parts;
}

/** The likeliest tokens before and after. */
export function tokenBars(tokens: ChangedToken[], named: (token: ChangedToken) => string, area: Area): SVGElement[] {
  const rows = Math.min(tokens.length, Math.floor((area.bottom - area.top) / rowHeight));
  const room = area.right - area.left - 150;
  return tokens.slice(0, rows).flatMap((token, k) => {
    const y = area.top + k * rowHeight;
    const wide = (share: number): number => Math.max(1, room * share);
    const end = Math.max(token.before, token.exact, token.frozen);
    return [
      words(named(token), area.left - 8, y + 14, { "text-anchor": "end", fill: "var(--ink)", "font-size": 12 }),
      box(area.left, y + 2, wide(token.before), rowHeight - 4, { fill: "var(--ramp-line)", opacity: 0.6 }),
      box(area.left, y + 5, wide(token.exact), rowHeight - 10, { fill: "var(--ink)" }),
      mark("line", {
        ...{ x1: area.left + wide(token.frozen), x2: area.left + wide(token.frozen), y1: y + 1, y2: y + rowHeight - 1 },
        ...{ stroke: "var(--series-2)", "stroke-width": 2.5 },
      }),
      words(
        token.exact === token.before ? percent(token.before) : `${percent(token.before)} → ${percent(token.exact)}`,
        area.left + wide(end) + 6,
        y + 14,
      ),
    ];
  });
}

/** One sentence about what is removed, or may be. */
export function removalCaption({ effects, without }: Removal, target: string): string {
  const { components } = effects;
  const chosen = without?.component ?? "";
  const effect = components.find(({ name }) => name === chosen);
  if (effect === undefined) {
    const [most] = [...components].sort((a, b) => a.exact - b.exact);
    return `What each head and MLP gives the logit of ${target} through the final norm: the most, ${measured(-(most?.exact ?? 0))}, comes from ${titleOf(most?.name ?? "")}; press a bar to remove it.`;
  }
  const row = without?.tokens.find(({ token }) => token === effects.target.token);
  return `Without ${titleOf(chosen)}, the probability of ${target} goes from ${percent(row?.before ?? null)} to ${percent(row?.exact ?? null)}; with σ frozen it would be ${percent(row?.frozen ?? null)}. Its logit changes by ${measured(effect.exact)}: ${measured(effect.frozen)} is the frozen share, and ${measured(effect.price)} the price of freezing, as the norm divides what is left by another σ.`;
}
