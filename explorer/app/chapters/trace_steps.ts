import type { TokenTrace } from "../../generated/token-trace";
import { factsOf, kindName, measured, percent, plural } from "../../shared/format";
import { removalCaption } from "./trace_removal";
import type { Removal } from "./trace_removal";

/** A step of a text through a model, in the order of the forward pass; `norm` is an index of the trace's norms. */
export type Step =
  | { kind: "stream" }
  | { kind: "norm"; norm: number }
  | { kind: "heads"; norm: number }
  | { kind: "mlp"; norm: number }
  | { kind: "next" }
  | { kind: "removal" };

type Token = TokenTrace["tokens"][number];
type Attention = TokenTrace["attention"][number];

/** Byte-level BPE has Ġ for a space and Ċ for the end of a line, llama2.c's tokenizers have ▁ or a space itself. */
export const named = ({ token, name }: Token): string =>
  name === null
    ? `#${token}`
    : name
        .replaceAll(/[\nĊ]/g, "⏎")
        .replaceAll(/[ Ġ▁](?=$|[ Ġ▁])/g, "␣")
        .replaceAll(/[ Ġ▁]/g, "");
export const spoken = (name: string | null): string =>
  name === "\n" ? "end of line" : name === null ? "unknown" : name.replaceAll(/[Ġ▁]/g, " ");
export const quoted = (token: Token): string => {
  const word = token.name === null ? "" : spoken(token.name).trim();
  return `“${word === "" ? named(token) : word}”`;
};

export function stepsOf({ norms }: TokenTrace): Step[] {
  const steps: Step[] = [{ kind: "stream" }];
  norms.forEach(({ readers }, norm) => {
    steps.push({ kind: "norm", norm });
    if (readers.includes("attention")) steps.push({ kind: "heads", norm });
    if (readers.includes("mlp")) steps.push({ kind: "mlp", norm });
  });
  steps.push({ kind: "next" }, { kind: "removal" });
  return steps;
}

/** The heads that read a norm. */
export const headsOf = ({ norms, attention }: TokenTrace, norm: number): Attention[] =>
  attention.filter((head) => head.norm === norms[norm]?.name);

/** The weights of the query at a position; undefined if the document leaves them out. */
export const weightsAt = ({ first_query }: TokenTrace, head: Attention, position: number): number[] | undefined =>
  head.weights[position - first_query];

/** Positions of keys that no query at `position` or later selects. */
export const lostAt = ({ heads }: TokenTrace, head: Attention, position: number): number[] =>
  (heads.find(({ layer, key }) => layer === head.layer && key === head.key)?.lost ?? [])
    .filter(({ from }) => from <= position)
    .map((lost) => lost.position);

/** Keys of a head and a position, as counted below: heads that share their keys have them once. */
function keysLost(trace: TokenTrace, norm: number, position: number): { lost: number; keys: number } {
  const sharing = new Map(headsOf(trace, norm).map((head) => [head.key, head]));
  const lost = [...sharing.values()].map((head) => lostAt(trace, head, position).length);
  return { lost: lost.reduce((sum, one) => sum + one, 0), keys: sharing.size * (position + 1) };
}

/** How a norm of that kind is called, with its name in the model. */
const titleOf = ({ kind, name }: TokenTrace["norms"][number]): string => `${kindName(kind, 1)} ${name}`;

function normCaption(trace: TokenTrace, index: number, position: number): string {
  const norm = trace.norms[index]!;
  const { ones_share, sigma, length } = norm.tokens[position]!;
  const title = `${titleOf(norm)}${index === trace.norms.length - 1 ? ", the final norm," : ""} `;
  const divisor = factsOf(norm.kind)?.divisor === "length" ? "its length" : "σ";
  if (!norm.centers)
    return `${title}removes nothing of the vector, whose length is ${measured(length)}: it divides all of it by ${divisor} = ${measured(sigma)} and stretches the result by its gain.`;
  const removed = ones_share === null ? null : Math.sqrt(ones_share);
  return `${title}subtracts the mean, which is ${percent(removed)} of the vector’s length, divides the rest by σ = ${measured(sigma)} and stretches it by its gain.`;
}

function headsCaption(trace: TokenTrace, index: number, position: number): string {
  const heads = headsOf(trace, index);
  const { layer } = heads[0] ?? { layer: 0 };
  let best = { weight: -1, head: 0, key: 0 };
  for (const head of heads) {
    weightsAt(trace, head, position)?.forEach((weight, key) => {
      if (weight > best.weight) best = { weight, head: head.head, key };
    });
  }
  const looks =
    best.weight < 0
      ? `${plural(heads.length, "head")} of layer ${layer} read the norm`
      : `of the ${plural(heads.length, "head")} of layer ${layer}, head ${best.head} gives a single key the most weight, ${percent(best.weight)} to ${quoted(trace.tokens[best.key]!)}`;
  const { lost, keys } = keysLost(trace, index, position);
  const told =
    lost === 0
      ? `each of the ${keys} keys so far wins for some query`
      : `${lost} of the ${keys} keys so far ${lost === 1 ? "is" : "are"} lost: no query can give ${lost === 1 ? "it" : "them"} the highest score`;
  return `${looks[0]!.toUpperCase()}${looks.slice(1)}; ${told}.`;
}

/** What entered the stream behind the readers of a norm. */
function addedCaption(trace: TokenTrace, index: number, position: number): string {
  const { layer, readers } = trace.norms[index]!;
  const after = trace.norms[index + 1]?.tokens[position];
  const what = `the MLP${layer === null ? "" : ` of layer ${layer}`}`;
  const both = readers.includes("attention") ? `${what} and the heads beside it` : what;
  if (after === undefined || !after.added) return `${what[0]!.toUpperCase()}${what.slice(1)} reads the norm, too.`;
  return `${both[0]!.toUpperCase()}${both.slice(1)} add${readers.includes("attention") ? "" : "s"} a vector of length ${measured(after.added)} to the stream, which then has length ${measured(after.length)}.`;
}

function nextCaption({ tokens, predictions }: TokenTrace, position: number): string {
  const { likeliest, next } = predictions[position]!;
  const [first, second] = likeliest;
  if (first === undefined) return "";
  const ahead = second === undefined ? "" : `, ahead of ${quoted(second)} with ${percent(second.probability)}`;
  const follows =
    next === null
      ? ""
      : next.rank === 0
        ? "; it does follow"
        : `; ${quoted(next)}, which follows, has ${percent(next.probability)} and rank ${next.rank + 1}`;
  return `The likeliest token after ${quoted(tokens[position]!)} is ${quoted(first)} with ${percent(first.probability)}${ahead}${follows}.`;
}

/** A sentence about a step, with the numbers of the model at hand. */
export function captionOf(trace: TokenTrace, step: Step, position: number, removal?: Removal): string {
  const token = trace.tokens[position]!;
  switch (step.kind) {
    case "stream": {
      const { width, tokens } = trace.norms[0]!;
      return `${quoted(token)}, at position ${position}, enters the residual stream as a vector of ${width} numbers, of length ${measured(tokens[position]!.length)}.`;
    }
    case "norm":
      return normCaption(trace, step.norm, position);
    case "heads":
      return headsCaption(trace, step.norm, position);
    case "mlp":
      return addedCaption(trace, step.norm, position);
    case "next":
      return nextCaption(trace, position);
    case "removal":
      return removal === undefined ? "" : removalCaption(removal, quoted(removal.effects.target));
  }
}
