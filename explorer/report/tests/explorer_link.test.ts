import { expect, test } from "vitest";
import { explorerOf } from "../src/explorer_link";

test("a page's address may name an explorer, and nothing that is no page", () => {
  const of = (query: string) => explorerOf(new URL(`https://a.example/reports/gpt2.html${query}`));
  expect(of("")).toBeNull();
  expect(of("?explorer=../")).toBe("https://a.example/");
  expect(of("?explorer=javascript:alert(1)")).toBeNull();
  expect(of("?explorer=http://%20")).toBeNull();
});
