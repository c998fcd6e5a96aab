import type { Head, Report, Token, Vocabulary } from "../../generated/report";
import { definitions, el, name, slot, table } from "../../shared/dom";
import { atMost, count, number, plural, unknown } from "../../shared/format";
import { countHeads, showSpreads } from "./spreads";

const shownRows = 200;

interface Group {
  first: Head;
  heads: number;
  keyValueHeads: number;
}

/** Heads of one layer that read the same norm through the same tensors, in order of appearance. */
function grouped(heads: Head[]): Group[] {
  const groups = new Map<string, { first: Head; heads: number; keyValues: Set<unknown> }>();
  for (const head of heads) {
    const key = JSON.stringify([head.stack, head.layer, head.norm, head.query, head.key, head.head_dim]);
    const group = groups.get(key) ?? { first: head, heads: 0, keyValues: new Set() };
    group.heads += 1;
    group.keyValues.add(head.key_value_head ?? head.head);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ first, heads: n, keyValues }) => ({
    first,
    heads: n,
    keyValueHeads: keyValues.size,
  }));
}

/** The reasons why no head's spreads are known, each once. */
function showRefusals(heads: Head[]): HTMLElement {
  const reasons = [...new Set(heads.map((head) => head.refused).filter((reason) => reason))];
  const shown = reasons.slice(0, 3).join("; ");
  const more = reasons.length > 3 ? `; and ${plural(reasons.length - 3, "more reason")}` : "";
  return el(
    "p",
    {},
    `How uniform and how sharp each head can be is not known${shown === "" ? "" : `: ${shown}${more}`}.`,
  );
}

function showHeads(heads: Head[], body: HTMLElement): void {
  if (heads.length === 0) {
    body.append(el("p", {}, "No attention heads were recognized."));
    return;
  }
  const groups = grouped(heads);
  const layers = new Set(heads.map((head) => `${head.stack}/${head.layer}`)).size;
  body.append(
    el(
      "p",
      {},
      `${plural(countHeads(heads), "attention head")} in ${plural(layers, "layer")}. ` +
        "Heads of one layer that read the same norm share a row.",
    ),
    el(
      "details",
      { open: groups.length <= 16 },
      el("summary", {}, `Heads by layer (${plural(groups.length, "row")})`),
      el(
        "div",
        { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of heads" },
        table(
          "",
          ["layer", "heads", "key/value heads", "size", "rotary", "norm", "query, key and value weights"],
          groups
            .slice(0, shownRows)
            .map(({ first, heads: n, keyValueHeads }) => [
              first.stack ? `${first.stack} ${count(first.layer)}` : count(first.layer),
              count(n),
              count(keyValueHeads),
              count(first.head_dim),
              first.rotary ? "yes" : "no",
              name(first.norm),
              name([...new Set([first.query, first.key, first.value])].map((weight) => weight ?? unknown).join(", ")),
            ]),
          [0, 1, 2, 3],
        ),
      ),
      groups.length > shownRows
        ? el(
            "p",
            { class: "muted" },
            `and ${plural(groups.length - shownRows, "more row")}, in the JSON of this report`,
          )
        : null,
    ),
  );
  const spreads = showSpreads(heads);
  body.append(spreads ?? showRefusals(heads));
}

/** Tokens with their names and bounds, behind a summary line. */
function showTokens(title: string, tokens: Token[]): HTMLElement | null {
  if (tokens.length === 0) return null;
  return el(
    "details",
    {},
    el("summary", {}, title),
    el(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": title },
      table(
        "",
        ["token", "name", "margin at most", "largest probability"],
        tokens.map(({ token, name: spelled, lead_at_most, probability }) => [
          String(token),
          spelled === null ? unknown : name(JSON.stringify(spelled)),
          atMost(lead_at_most, number),
          atMost(probability[1], number),
        ]),
        [0, 2, 3],
      ),
    ),
  );
}

/** Tokens of a group of equal weights that are named before the reader asks for all. */
const firstTied = 6;

function showTies({ ties, tie_groups }: NonNullable<Vocabulary["reach"]>): HTMLElement | null {
  if (ties.length === 0) return null;
  const spelled = ties.map((group) =>
    group.map(({ token, name }) => (name === null ? `token ${token}` : JSON.stringify(name))),
  );
  return el(
    "div",
    { id: "ties", dir: "auto" },
    el("p", {}, `${plural(tie_groups, "group")} of tokens have equal weights, so that their logits are always equal:`),
    el(
      "ul",
      {},
      ...spelled.map((group) => {
        const [begin, rest] = [group.slice(0, firstTied), group.slice(firstTied)];
        const list = el("li", {}, name(begin.join(" = ")));
        if (rest.length > 0)
          list.append(el("details", {}, el("summary", {}, `and ${rest.length} more`), name(rest.join(" = "))));
        return list;
      }),
      tie_groups > ties.length ? el("li", {}, "…") : null,
    ),
  );
}

function showReach(vocabulary: Vocabulary, body: HTMLElement): void {
  const { reach, refused } = vocabulary;
  if (reach === undefined) {
    if (refused) body.append(el("p", {}, `Which tokens can have the largest logit is not known: ${refused}.`));
    return;
  }
  const left = reach.left_out;
  const all = reach.unreachable === 0 && reach.undecided === 0 && left.tokens === 0;
  body.append(
    el(
      "p",
      {},
      all
        ? `Each of the ${plural(reach.reachable, "token")} can have the largest logit after the final norm.`
        : `After the final norm, ${plural(reach.reachable, "token")} can have the largest logit, ` +
            `${count(reach.unreachable)} never can, ${count(reach.undecided)} are undecided; without the ` +
            `norm's bound on hidden states, ${count(reach.unreachable_without_ball)} never could.`,
    ),
  );
  // Where the budget left the probabilities out, their bounds are those of the margins, in the same order.
  const alike =
    reach.nearest.length === reach.least_probable.length &&
    reach.nearest.every(({ token }, i) => token === reach.least_probable[i]?.token);
  const lists = [
    showTokens("Tokens that can never have the largest logit", reach.unreachable_tokens),
    showTies(reach),
    showTokens(
      alike
        ? "Tokens with the smallest margins and the smallest largest probabilities"
        : "Tokens with the smallest margins",
      reach.nearest,
    ),
    alike ? null : showTokens("Tokens with the smallest largest probabilities", reach.least_probable),
  ];
  body.append(...lists.filter((list) => list !== null));
  const parts = [
    left.tokens > 0 ? `${plural(left.tokens, "token")} not decided` : "",
    left.leads > 0 ? `${plural(left.leads, "token")} that may have smaller margins than those listed` : "",
    left.probabilities > 0 ? `the largest probabilities of ${plural(left.probabilities, "token")}` : "",
  ].filter((part) => part !== "");
  if (parts.length > 0) {
    body.append(el("p", {}, `Left out: ${parts.join("; ")}. normscope reach computes them.`));
  }
}

/** Fills the summary of heads and vocabulary. */
export function showHeadsAndVocabulary({ model, heads, vocabulary }: Report): void {
  const body = slot("heads-body");
  if (model.architecture === "unknown" && heads.length === 0 && vocabulary === null) {
    body.append(el("p", {}, "Heads and vocabulary are not modelled: ", name(model.title), "."));
    return;
  }
  showHeads(heads, body);
  if (vocabulary === null) {
    body.append(el("p", {}, "The checkpoint holds no unembedding, so nothing is known about a vocabulary."));
    return;
  }
  body.append(
    definitions([
      ["Vocabulary", vocabulary.size === null ? unknown : plural(vocabulary.size, "token")],
      ["Unembedding", name(vocabulary.unembedding ?? unknown)],
      ["Tied to the embedding", vocabulary.tied ? "yes" : "no"],
      ["After the norm", name(vocabulary.final_norm === "" ? unknown : vocabulary.final_norm)],
    ]),
  );
  showReach(vocabulary, body);
}
