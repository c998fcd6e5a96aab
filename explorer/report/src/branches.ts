import type { Compare } from "../../generated/compare";
import { el, name, table } from "../../shared/dom";
import { count, measured, plural } from "../../shared/format";

type Branch = Compare["branches"][number];
type Head = Branch["heads"][number];
type Mlp = Branch["mlps"][number];

/** A head or expert of OLD, and that of NEW which it was compared with. */
interface Pair {
  from: number;
  to: number;
  agrees: boolean;
  multiplied: boolean;
  error: number;
}

const width = 240;
const height = 70;
/** Beyond these, numbers would overlap. */
const mostNumbers = 16;

const headPair = (head: Head): Pair => ({
  from: head.old,
  to: head.new,
  agrees: head.agrees,
  multiplied: head.keys !== "none" || head.values !== "none",
  error: head.error,
});

const expertPair = (mlp: Mlp): Pair[] =>
  mlp.old_expert === null || mlp.new_expert === null
    ? []
    : [
        {
          from: mlp.old_expert,
          to: mlp.new_expert,
          agrees: mlp.different === 0,
          multiplied: mlp.scaled > 0,
          error: mlp.error,
        },
      ];

const svg = (tag: string, attributes: Record<string, string | number>, text = ""): SVGElement => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.textContent = text;
  return element;
};

const stateOf = ({ from, to, agrees, multiplied }: Pair): string =>
  !agrees ? "different" : multiplied ? "multiplied" : from !== to ? "moved" : "";

/** A line from each head or expert of OLD, above, to that of NEW. */
function lines(pairs: Pair[], noun: string): SVGElement {
  const moved = pairs.filter(({ from, to }) => from !== to).length;
  const different = pairs.filter(({ agrees }) => !agrees).length;
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "lines",
    "aria-label": `${plural(pairs.length, noun)}: ${count(moved)} in another place, ${count(different)} different`,
  });
  const at = (index: number): number => ((index + 0.5) / pairs.length) * width;
  for (const pair of pairs) {
    const line = svg("line", { x1: at(pair.from), y1: 15, x2: at(pair.to), y2: height - 15, class: stateOf(pair) });
    line.append(svg("title", {}, `${noun} ${pair.from} of OLD, ${pair.to} of NEW; error ${measured(pair.error)}`));
    picture.append(line);
    if (pairs.length > mostNumbers) continue;
    picture.append(
      svg("text", { x: at(pair.from), y: 10 }, String(pair.from)),
      svg("text", { x: at(pair.to), y: height - 4 }, String(pair.to)),
    );
  }
  return picture;
}

const sum = (mlps: Mlp[], of: (mlp: Mlp) => number): number => mlps.reduce((total, mlp) => total + of(mlp), 0);

/** The factor furthest from 1 of all of them. */
const largestScale = (mlps: Mlp[]): number =>
  mlps
    .map(({ largest_scale }) => largest_scale)
    .reduce((most, scale) => (Math.abs(Math.log(scale)) > Math.abs(Math.log(most)) ? scale : most), 1);

function neurons(mlps: Mlp[]): HTMLElement {
  const all = sum(mlps, (mlp) => mlp.neurons);
  const parts = [
    [sum(mlps, (mlp) => mlp.moved), "moved", "in another place"],
    [
      sum(mlps, (mlp) => mlp.scaled),
      "multiplied",
      `times a factor, the furthest from 1 being ${measured(largestScale(mlps))}`,
    ],
    [sum(mlps, (mlp) => mlp.different), "different", "different"],
  ] as const;
  const shown = parts.filter(([some]) => some > 0);
  return el(
    "div",
    { class: "neurons" },
    ...shown.map(([some, state]) => {
      const filled = el("i", { class: state });
      filled.style.width = `${(100 * some) / all}%`;
      return el("span", { class: "bar", "aria-hidden": "true" }, filled);
    }),
    el(
      "p",
      {},
      `${plural(all, "neuron")}: ${shown.length === 0 ? "all in place" : shown.map(([some, , what]) => `${count(some)} ${what}`).join(", ")}`,
    ),
  );
}

const place = ({ layer, stack, norm }: Branch): string =>
  layer === null ? norm : `${stack === null ? "Layer" : `${stack} layer`} ${layer}`;

function card(branch: Branch): HTMLElement {
  const experts = branch.mlps.flatMap(expertPair);
  const title = `${place(branch)}, ${branch.heads.length > 0 ? "heads" : experts.length > 0 ? "experts" : "neurons"}`;
  return el(
    "li",
    {},
    el("h4", {}, title),
    branch.heads.length > 0 ? lines(branch.heads.map(headPair), "head") : null,
    experts.length > 0 ? lines(experts, "expert") : null,
    branch.mlps.length > 0 ? neurons(branch.mlps) : null,
  );
}

const isChanged = ({ heads, mlps }: Branch): boolean =>
  heads.map(headPair).some(({ from, to, agrees, multiplied }) => from !== to || !agrees || multiplied) ||
  mlps.some((mlp) => mlp.moved + mlp.scaled + mlp.different > 0 || mlp.old_expert !== mlp.new_expert);

const largestError = (branches: Branch[]): number =>
  Math.max(0, ...branches.flatMap(({ heads, mlps }) => [...heads, ...mlps].map(({ error }) => error)));

const multiplied: Record<Head["keys"], string> = { none: "–", scales: "scales", matrix: "a matrix" };

function everything(branches: Branch[]): HTMLElement {
  const heads = branches.flatMap((branch) =>
    branch.heads.map((head) => [
      place(branch),
      String(head.old),
      String(head.new),
      multiplied[head.keys],
      multiplied[head.values],
      measured(head.error),
    ]),
  );
  const mlps = branches.flatMap((branch) =>
    branch.mlps.map((mlp) => [
      name(branch.norm),
      mlp.old_expert === null ? "–" : String(mlp.old_expert),
      mlp.new_expert === null ? "–" : String(mlp.new_expert),
      count(mlp.neurons),
      count(mlp.moved),
      count(mlp.scaled),
      measured(mlp.largest_scale),
      count(mlp.different),
      measured(mlp.error),
    ]),
  );
  const headNames = ["Place", "OLD", "NEW", "Keys times", "Values times", "Error"];
  const mlpNames = ["Reads", "OLD", "NEW", "Neurons", "Moved", "Scaled", "Largest scale", "Different", "Error"];
  const scroll = (child: HTMLElement): HTMLElement => el("div", { class: "table-scroll" }, child);
  return el(
    "details",
    {},
    el("summary", {}, "Every head and MLP, with its error"),
    heads.length > 0 ? scroll(table("Heads", headNames, heads, [1, 2, 5])) : null,
    mlps.length > 0 ? scroll(table("MLPs and experts", mlpNames, mlps, [1, 2, 3, 4, 5, 6, 7, 8])) : null,
  );
}

/** What matches what, layer by layer: pictures of the layers in which anything is not in its place. */
export function matchedBranches({ branches }: Compare): HTMLElement[] {
  const changed = branches.filter(isChanged);
  const error = measured(largestError(branches));
  if (changed.length === 0) {
    return [
      el("p", {}, `Every head, neuron and expert of NEW is that of OLD in its place, to ${error} relative.`),
      everything(branches),
    ];
  }
  const rest = branches.length - changed.length;
  const pairs = changed.flatMap(({ heads, mlps }) => [...heads.map(headPair), ...mlps.flatMap(expertPair)]);
  const mlps = changed.flatMap((branch) => branch.mlps);
  const states = new Set([
    ...pairs.map(stateOf),
    ...(mlps.some(({ moved }) => moved > 0) ? ["moved"] : []),
    ...(mlps.some(({ scaled }) => scaled > 0) ? ["multiplied"] : []),
    ...(mlps.some(({ different }) => different > 0) ? ["different"] : []),
  ]);
  const key = (state: string, text: string): HTMLElement | null =>
    states.has(state) ? el("span", {}, el("i", { class: state, "aria-hidden": "true" }), text) : null;
  return [
    el(
      "p",
      {},
      "Lines lead from each head or expert of OLD, above, to the one of NEW that stands for it" +
        (rest === 0 ? "." : `; in ${plural(rest, "other branch", "other branches")} nothing moved.`),
    ),
    el(
      "p",
      { class: "key" },
      key("", "in its place"),
      key("moved", "in another place"),
      key("multiplied", "multiplied, which another map undoes"),
      key("different", "different"),
    ),
    el("ul", { class: "branches" }, ...changed.map(card)),
    everything(branches),
  ];
}
