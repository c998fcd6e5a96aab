export default {
  // The core lies in a build folder, outside this one.
  server: { fs: { strict: false } },
  test: { include: ["tests/*.test.ts"] },
};
