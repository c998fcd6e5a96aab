import type { Chapter } from "./chapter";

export interface Entry {
  id: string;
  title: string;
  question: string;
  load(): Promise<{ default: Chapter }>;
}

/** The chapters in the order they are read. Each is fetched when it is opened. */
export const chapters: Entry[] = [
  {
    id: "geometry",
    title: "Geometry",
    question: "What shape does a norm give to everything?",
    load: () => import("./chapters/geometry"),
  },
  {
    id: "fold",
    title: "Stretch and fold",
    question: "How can dividing by a length bend anything?",
    load: () => import("./chapters/fold"),
  },
  {
    id: "playground",
    title: "Playground",
    question: "Can a net learn with a norm as its only nonlinearity?",
    load: () => import("./chapters/playground"),
  },
  {
    id: "selectability",
    title: "Selectability",
    question: "Which tokens can ever get most of a head's attention?",
    load: () => import("./chapters/selectability"),
  },
  {
    id: "nonlinearity",
    title: "Nonlinearity",
    question: "How much can a norm do that no straight line can?",
    load: () => import("./chapters/nonlinearity"),
  },
  {
    id: "counting",
    title: "Counting",
    question: "Which networks can count, and which only seem to?",
    load: () => import("./chapters/counting"),
  },
  {
    id: "trace",
    title: "A token through a model",
    question: "What becomes of a text in a model, and what is lost?",
    load: () => import("./chapters/trace"),
  },
  {
    id: "signature",
    title: "Signature",
    question: "Whose output is this?",
    load: () => import("./chapters/signature"),
  },
  {
    id: "digits",
    title: "Digits",
    question: "Can a net read with nothing but norms between its layers?",
    load: () => import("./chapters/digits"),
  },
  {
    id: "checkpoint",
    title: "Your checkpoint",
    question: "What do the norms of your own model do?",
    load: () => import("./chapters/checkpoint"),
  },
];
