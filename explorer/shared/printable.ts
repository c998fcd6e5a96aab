const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");

/** Controls but not line breaks and tabs, and what is invisible, breaks a line or changes the direction of text. */
const hidden =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu; // eslint-disable-line no-control-regex

/** Text from a file that cannot look like other text; the command's `printable` (core/text.hpp) does the same. */
export const printable = (text: string): string =>
  text.replace(hidden, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x80 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
  });

/** A document of the core, with the texts in it `printable`. */
export const parseDocument = (text: string): unknown =>
  JSON.parse(text, (_key, value: unknown) => (typeof value === "string" ? printable(value) : value));
