import citation from "../../CITATION.cff";
import { copyButton, el } from "../shared/dom";
import type { Source } from "./sources";

/** A value of CITATION.cff, which has one a line. */
function cited(key: string): string {
  const found = new RegExp(`^(?:  - )?${key}: (.+)$`, "m").exec(citation)?.[1];
  if (found === undefined) throw new Error(`CITATION.cff: no ${key}`);
  return found;
}

const entry = (kind: string, name: string, fields: [string, string][]): string =>
  `@${kind}{${name},\n${fields.map(([field, value]) => `  ${field} = {${value}}`).join(",\n")}\n}`;

const surname = ({ authors: [first = ""] }: Source): string => first.split(" ").at(-1)!.toLowerCase();

/** BibTeX of a source. */
function bibtex(source: Source): string {
  const { authors, title, year, venue, kind, arxiv, url } = source;
  return entry(kind, `${surname(source)}${year}`, [
    ["title", `{${title}}`],
    ["author", authors.join(" and ")],
    [kind === "inproceedings" ? "booktitle" : "howpublished", venue],
    ["year", String(year)],
    ...(arxiv === undefined
      ? []
      : ([
          ["eprint", arxiv],
          ["archiveprefix", "arXiv"],
        ] as [string, string][])),
    ["url", url],
  ]);
}

const normscope = (): string =>
  entry("software", "normscope", [
    ["title", `{${cited("title")}}`],
    ["author", `{${cited("name")}}`],
    ["version", cited("version")],
    ["abstract", cited("abstract")],
    ["license", cited("license")],
  ]);

const listed = (names: string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

function cite(name: string, text: string): HTMLElement {
  return el(
    "div",
    { class: "door" },
    el("b", {}, name),
    copyButton(text, `BibTeX of ${name}`),
    el("pre", { tabindex: 0, role: "group", "aria-label": `BibTeX of ${name}` }, text),
  );
}

/** The references of a chapter, and how to cite them and Normscope. */
export function references(sources: Source[]): HTMLElement {
  const link = ({ title, url }: Source) => el("a", { href: url }, title);
  return el(
    "section",
    { class: "references", "aria-label": "References" },
    el("h2", {}, "References"),
    el(
      "ul",
      {},
      ...sources.map((source) =>
        el(
          "li",
          {},
          `${listed(source.authors)} (${source.year}). `,
          link(source),
          `. ${source.venue}${source.arxiv === undefined ? "" : `, arXiv ${source.arxiv}`}.`,
        ),
      ),
    ),
    el(
      "details",
      { class: "cite" },
      el("summary", {}, "How to cite"),
      el("p", {}, cited("message")),
      ...sources.map((source) => cite(`${source.authors[0]?.split(" ").at(-1)} ${source.year}`, bibtex(source))),
      cite("Normscope", normscope()),
    ),
  );
}

/** Gives each `a[data-source]` of the text the address of that source. */
export function linkSources(text: HTMLElement, sources: Source[]): void {
  for (const link of text.querySelectorAll<HTMLAnchorElement>("a[data-source]")) {
    const source = sources.find((one) => surname(one) === link.dataset["source"]);
    if (source === undefined) throw new Error(`the chapter has no source ${link.dataset["source"]}`);
    link.href = source.url;
  }
}
