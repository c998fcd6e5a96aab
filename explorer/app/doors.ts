/** Numbers in the form that the command line and C++ accept. */
export const numbersOf = (values: number[]): string => values.map(String).join(",");

/** A program around `body`. */
export const cppOf = (headers: string[], body: string): string =>
  `#include <fmt/core.h>\n${headers.map((header) => `#include <normscope/${header}.hpp>`).join("\n")}\n
int main() {\n${body.replace(/^(?=.)/gm, "  ")}\n}\n`;

/** The command called from Python, its result as an object. */
export const pythonOf = (words: string[]): string => {
  // Before arguments that begin with a minus sign, which follow "--".
  const end = words[0] === "nets" || words[0] === "signature" ? 2 : 1;
  const all = ["normscope", ...words.slice(0, end), "--json", "-", ...words.slice(end)];
  return `import json, subprocess\n
answer = subprocess.run(${JSON.stringify(all)},
                        check=True, capture_output=True, text=True).stdout
print(json.loads(answer))\n`;
};
