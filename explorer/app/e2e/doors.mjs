// Tests every chapter's "the same elsewhere": `node app/e2e/doors.mjs NORMSCOPE INCLUDE COMPILER`
// runs the commands and the Python of its defaults and presets, and lets the compiler read the C++. The defaults and
// presets also have to keep the rules of links.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [normscope, include, compiler] = process.argv.slice(2).map((path) => resolve(path));
if (compiler === undefined) {
  console.error("usage: node app/e2e/doors.mjs NORMSCOPE INCLUDE COMPILER");
  process.exit(2);
}

const work = mkdtempSync(join(tmpdir(), "normscope-doors-"));
const env = { ...process.env, PATH: `${dirname(normscope)}${delimiter}${process.env.PATH}` };
let failed = 0;

// The lab is a program beside the command, which not every build has.
const withLab = existsSync(join(dirname(normscope), "normscope-lab"));
if (!withLab) console.log("normscope-lab is not built: what needs it is left out");
const mnist = join(process.env.NORMSCOPE_DATA ?? "", "mnist");
const withDigits = process.env.NORMSCOPE_DATA !== undefined && existsSync(mnist);
if (!withDigits) console.log("there is no MNIST: what needs it is left out");
const runs = (text) => (withLab || !/normscope lab|"lab"/.test(text)) && (withDigits || !text.includes("mnist:mnist"));

function expectToRun(what, program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: work,
    env,
    encoding: "utf8",
    timeout: 120_000,
  });
  if (status === 0) return;
  failed += 1;
  console.error(`${what}: ends with ${status ?? error?.message}\n${stdout.slice(-1000)}${stderr.slice(-2000)}`);
}

// Headers of others that nearly all of the C++ includes, by itself or by headers of ours, each of which includes all that
// it needs (house.headers_stand_alone): the compiler reads them once. Ours it reads for each program, which has to name the right ones.
const others = [
  "fmt/core.h",
  "algorithm",
  "array",
  "filesystem",
  "functional",
  "map",
  "memory",
  "optional",
  "span",
  "string",
  "variant",
  "vector",
];
const common = join(work, "common.hpp");
const reads = ["-std=c++20", "-Wall", "-I", include];
writeFileSync(common, others.map((name) => `#include <${name}>\n`).join(""));
expectToRun("headers of others", compiler, [...reads, "-x", "c++-header", common, "-o", `${common}.gch`]);

// The models that the chapter on checkpoints names.
const models = join(here, "../../../models");
symlinkSync(models, join(work, "models"));
if (withDigits) symlinkSync(mnist, join(work, "mnist"));
symlinkSync(join(models, "kjv_gpt/model.safetensors"), join(work, "model.safetensors"));

try {
  await build({
    entryPoints: [join(here, "../chapters.ts")],
    outfile: join(work, "chapters.mjs"),
    bundle: true,
    format: "esm",
    loader: { ".html": "text", ".jsonl": "text" },
    logLevel: "error",
  });
  // The browser functions that modules use when they are loaded.
  globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
  globalThis.document = { documentElement: { dataset: {} } };
  const { chapters } = await import(pathToFileURL(join(work, "chapters.mjs")).href);
  const commands = new Set();
  for (const { id, load } of chapters) {
    const { default: chapter } = await load();
    const states = [chapter.defaults, ...chapter.presets.map(({ state }) => ({ ...chapter.defaults, ...state }))];
    states.forEach((state, index) => {
      for (const [key, rule] of Object.entries(chapter.rules)) {
        if (rule.allows(state[key], state)) continue;
        failed += 1;
        console.error(`${id}, state ${index}: ${key}=${state[key]}: expected ${rule.expected}`);
      }
      const { command, cpp, python } = chapter.doors(state);
      const name = `${id}, ${index === 0 ? "defaults" : chapter.presets[index - 1].name}`;
      if (runs(command) && !commands.has(command)) {
        commands.add(command);
        expectToRun(`${name}: ${command}`, "bash", ["-c", command]);
      }
      if (index > 0) return;
      if (runs(python)) expectToRun(`${name}: Python`, "/usr/bin/python3", ["-c", python]);
      const source = join(work, `${id}.cpp`);
      writeFileSync(source, cpp);
      expectToRun(`${name}: C++\n${cpp}`, compiler, [...reads, "-include", common, "-fsyntax-only", source]);
    });
    console.log(`${id}: ${states.length} states`);
  }
  console.log(`${commands.size} commands ran`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);
