/** Numbers as the command line and C++ take them. */
export const numbersOf = (values: number[]): string => values.map(String).join(",");

/** A program around `body`. */
export const cppOf = (headers: string[], body: string): string =>
  `#include <fmt/core.h>\n${headers.map((header) => `#include <normscope/${header}.hpp>`).join("\n")}\n
int main() {\n${body.replace(/^(?=.)/gm, "  ")}\n}\n`;

/** The command from Python, its answer as an object. */
export const pythonOf = ([subcommand = "", ...words]: string[]): string =>
  `import json, subprocess\n
answer = subprocess.run(${JSON.stringify(["normscope", subcommand, "--json", "-", ...words])},
                        check=True, capture_output=True, text=True).stdout
print(json.loads(answer))\n`;
