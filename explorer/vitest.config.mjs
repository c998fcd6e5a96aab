export default {
  // The core lies in a build folder, outside this one.
  server: { fs: { strict: false } },
  // The page's own build reads CITATION.cff and runs of the lab as text.
  plugins: [
    {
      name: "texts",
      transform: (text, id) => (/\.(cff|jsonl)$/.test(id) ? `export default ${JSON.stringify(text)}` : null),
    },
  ],
  test: {
    include: ["{engine,app,report}/tests/*.test.ts"],
    // In one thread and without a world for each file, the core is loaded once.
    pool: "threads",
    poolOptions: { threads: { singleThread: true } },
    isolate: false,
  },
};
