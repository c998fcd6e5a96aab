/** A paper or post that a chapter is after; docs/papers says of each what was reproduced. */
export interface Source {
  authors: string[];
  title: string;
  year: number;
  venue: string;
  /** Its type in BibTeX. */
  kind: "inproceedings" | "misc";
  arxiv?: string;
  url: string;
}

const preprint = (arxiv: string) => ({ arxiv, url: `https://arxiv.org/abs/${arxiv}` });

export const riechers: Source = {
  authors: ["Paul M. Riechers"],
  title: "Geometry and Dynamics of LayerNorm",
  year: 2024,
  venue: "Preprint",
  kind: "misc",
  ...preprint("2405.04134"),
};

export const winsor: Source = {
  authors: ["Eric Winsor"],
  title: "Re-Examining LayerNorm",
  year: 2022,
  venue: "Conjecture, LessWrong, 1 December 2022",
  kind: "misc",
  url: "https://www.lesswrong.com/posts/jfG6vdJZCwTQmG7kb/re-examining-layernorm",
};

export const brody: Source = {
  authors: ["Shaked Brody", "Uri Alon", "Eran Yahav"],
  title: "On the Expressivity Role of LayerNorm in Transformers' Attention",
  year: 2023,
  venue: "Findings of ACL 2023, pages 14211–14221",
  kind: "inproceedings",
  ...preprint("2305.02582"),
};

export const ni: Source = {
  authors: ["Yunhao Ni", "Yuxin Guo", "Junlong Jia", "Lei Huang"],
  title: "On the Nonlinearity of Layer Normalization",
  year: 2024,
  venue: "ICML 2024",
  kind: "inproceedings",
  ...preprint("2406.01255"),
};

export const weiss: Source = {
  authors: ["Gail Weiss", "Yoav Goldberg", "Eran Yahav"],
  title: "On the Practical Computational Power of Finite Precision RNNs for Language Recognition",
  year: 2018,
  venue: "ACL 2018, pages 740–745",
  kind: "inproceedings",
  ...preprint("1805.04908"),
};

export const merrill: Source = {
  authors: ["William Merrill", "Gail Weiss", "Yoav Goldberg", "Roy Schwartz", "Noah A. Smith", "Eran Yahav"],
  title: "A Formal Hierarchy of RNN Architectures",
  year: 2020,
  venue: "ACL 2020, pages 443–459",
  kind: "inproceedings",
  ...preprint("2004.08500"),
};

export const finlayson: Source = {
  authors: ["Matthew Finlayson", "Xiang Ren", "Swabha Swayamdipta"],
  title: "Every Language Model Has a Forgery-Resistant Signature",
  year: 2026,
  venue: "ICLR 2026",
  kind: "inproceedings",
  ...preprint("2510.14086"),
};

export const gupta: Source = {
  authors: ["Akshat Gupta", "Atahan Ozdemir", "Caoqinwei Gong", "Gopala Anumanchipalli"],
  title: "Geometric Interpretation of Layer Normalization and a Comparative Analysis with RMSNorm",
  year: 2026,
  venue: "Findings of EACL 2026",
  kind: "inproceedings",
  ...preprint("2409.12951"),
};
