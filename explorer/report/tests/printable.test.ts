import { expect, test } from "vitest";
import { parseDocument, printable } from "../../shared/printable";

test("what is invisible or changes the direction of text is escaped", () => {
  expect(printable("a\u202eb\u2028c\u2029d\u200be\u2066f\u061cg\ufeffh\u00adi\u{e0041}j")).toBe(
    "a\\u202eb\\u2028c\\u2029d\\u200be\\u2066f\\u061cg\\ufeffh\\u00adi\\ue0041j",
  );
  expect(printable("\u0000\u001b[31m\u007f\u009b")).toBe("\\x00\\x1b[31m\\x7f\\u009b");
});

test("other text stays as it is", () => {
  const text = "שכבה.נרמול 層 🦜 1\u202f000\nW₁ – µ";
  expect(printable(text)).toBe(text);
});

test("so are the texts of a document", () => {
  expect(parseDocument('{"a": ["x\\u202ey", 1, null], "b": {"c": "z"}}')).toEqual({
    a: ["x\\u202ey", 1, null],
    b: { c: "z" },
  });
});
