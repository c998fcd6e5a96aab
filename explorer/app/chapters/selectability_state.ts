export const defaults = {
  dimension: 2,
  keys: [-2.1, 0.4, -0.9, 1.8, 1.1, 1.6, 2.3, 0.1, 1.2, -1.5, -1.1, -1.4, -0.3, 0.5, 0.9, -0.2, -0.8, -0.3],
  solid: [
    1.6, 0.2, -0.4, -1.2, 1.3, 0.3, 0.2, -1.6, 0.8, 0.5, 0.9, 1.7, -0.7, -0.6, -1.8, 0.1, 0.2, 0.1, -0.4, 0.3, -0.3,
    0.5, -0.3, 0.2, -1.7, -0.5, 0.6, 0.3, 1.4, -1.2,
  ],
  project: false,
  scale: false,
  chosen: 6,
  query: [1.2, 1.1],
  query3: [0.9, 1.2, 0.8],
  sharp: 3,
  seed: 1,
  runs: 20,
  tableSeed: 1,
  tableNorm: false,
  tableMean: 0,
};
export type State = typeof defaults;
