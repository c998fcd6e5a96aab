// The rules that need types, for the programs that are pages: `npm run lint`. They take several times as long as the others,
// which the tests run.
import { defineConfig } from "eslint/config";
import ts from "typescript-eslint";
import plain from "./eslint.config.mjs";

export default defineConfig(plain, {
  files: ["**/*.ts"],
  // Tests read JSON as it comes.
  ignores: ["*/tests/**"],
  extends: [ts.configs.recommendedTypeCheckedOnly],
  languageOptions: { parserOptions: { project: "./tsconfig.json" } },
});
