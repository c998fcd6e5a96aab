// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { linkSources, references } from "../citations";
import { cppOf, numbersOf, pythonOf } from "../doors";
import { csv } from "../figure";
import { ticks } from "../plane";
import { powers } from "../chapters/counting_state";
import { brody, riechers } from "../sources";
import thumbnails from "../thumbnails.json";

test("references are listed, and each can be cited", () => {
  const section = references([riechers, brody]);
  const links = [...section.querySelectorAll<HTMLAnchorElement>("li a")];
  expect(links.map((link) => link.getAttribute("href"))).toEqual([riechers.url, brody.url]);
  const entries = [...section.querySelectorAll("pre")].map(({ textContent }) => textContent);
  expect(entries).toHaveLength(3);
  expect(entries[1]).toMatch(new RegExp(`^@\\w+\\{brody${brody.year},\n`));
  expect(entries[1]).toContain(`author = {${brody.authors.join(" and ")}}`);
  expect(entries[2]).toMatch(/^@software\{normscope,\n/);
  for (const entry of entries) expect(entry!.split("{")).toHaveLength(entry!.split("}").length);
});

test("a source that the text names gets its address, and no other may be named", () => {
  const text = document.createElement("p");
  text.innerHTML = '<a data-source="riechers">Riechers</a>';
  linkSources(text, [riechers]);
  expect(text.querySelector("a")!.getAttribute("href")).toBe(riechers.url);
  text.innerHTML = '<a data-source="nobody">Nobody</a>';
  expect(() => linkSources(text, [riechers])).toThrow();
});

test("a table's cells keep commas, quotes and lines", () => {
  const rows = [
    ['say "a, b"', 1.5],
    ["two\nlines", -0],
    ["plain", 1e-9],
  ];
  expect(csv({ columns: ["name", "value"], rows })).toBe(
    'name,value\n"say ""a, b""",1.5\n"two\nlines",0\nplain,1e-9\n',
  );
});

test("ticks are round numbers inside their range", () => {
  expect(ticks([-1.2, 1.2], 5)).toEqual([-1, -0.5, 0, 0.5, 1]);
  expect(ticks([0, 0.3], 3)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(ticks([17, 1234], 4)).toEqual([500, 1000]);
  expect(ticks([0, 2], 6)).toEqual([0, 0.5, 1, 1.5, 2]);
  expect(ticks([0, 2], 6, 1)).toEqual([0, 1, 2]);
});

test("languages are written with powers", () => {
  expect(powers("a^n b^n c^n")).toBe("aⁿbⁿcⁿ");
  expect(powers("a^n b^n and anything after, n > 0")).toBe("aⁿbⁿ and anything after, n > 0");
  expect(powers("grows like 2^n")).toBe("grows like 2ⁿ");
});

test("doors are programs", () => {
  expect(numbersOf([1, -0.5, 1e-9])).toBe("1,-0.5,1e-9");
  expect(cppOf(["norm/image"], "one();\ntwo();")).toBe(
    "#include <fmt/core.h>\n#include <normscope/norm/image.hpp>\n\nint main() {\n  one();\n  two();\n}\n",
  );
  expect(pythonOf(["select", "1,2"])).toContain('["normscope","select","--json","-","1,2"]');
});

test("the front page shows tokens as they are read", () => {
  expect(thumbnails.trace.letters.join(" ")).not.toMatch(/[ĠĊ▁]/);
});
