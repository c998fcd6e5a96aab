import { startReading } from "../../engine/checkpoint_client";
import type { Documents, NamedFile, Tell } from "../../engine/checkpoint";
import type { Reading } from "../../engine/checkpoint_client";
import type { Charts } from "../../generated/charts";
import type { Report } from "../../generated/report";
import { geometryLink } from "../../report/src/explorer_link";
import { showPair } from "../../report/src/pair";
import type { Side } from "../../report/src/pair";
import { openAround, showReport } from "../../report/src/report";
import type { Shown } from "../../report/src/report";
import sections from "../../report/sections.html";
import { button, el } from "../../shared/dom";
import { parseDocument } from "../../shared/printable";
import { chapter } from "../chapter";
import { cppOf, pythonOf } from "../doors";
import { dropZone, takeBrought } from "../drop";
import { between, matching, whole } from "../link";
import { brody, gupta, riechers } from "../sources";
import { axes, mountProfile, norms, profileDefaults } from "./checkpoint_profile";
import {
  hasRemotePage,
  leaveRemotePage,
  mostBytes,
  onRemotePage,
  readRemote,
  turnToRemotePage,
} from "./checkpoint_remote";
import text from "./checkpoint.html";

/**
 * `example`: "kjv_gpt", served with the site; "served/" and a random name, the folder of what `normscope explore
 * MODEL` was given; or none. `url`: the address of a checkpoint on another site, or none.
 */
const defaults = { example: "", url: "", ...profileDefaults };
type State = typeof defaults;

const exampleFiles = ["config.json", "model.safetensors", "tokenizer.json"];

async function fetched(path: string): Promise<Response> {
  const response = await fetch(new URL(path, document.baseURI));
  if (!response.ok) throw new Error(`${path} is not there: ${response.status}`);
  return response;
}

const exampleNamed = (name: string): Promise<NamedFile[]> =>
  Promise.all(
    exampleFiles.map(async (file) => ({
      name: `${name}/${file}`,
      data: await (await fetched(`example/${name}/${file}`)).blob(),
    })),
  );

/**
 * The report shown last and its example, "" for the reader's own files, and what was put beside it: they stay when the
 * chapter is left.
 */
let kept: { example: string; documents: Documents; other?: Documents } | null = null;

const parsed = ({ report, charts }: Documents): Side => ({
  report: parseDocument(report) as Report,
  charts: parseDocument(charts) as Charts,
});

/** Where the model is from the repository's root, for the example, or next to the reader otherwise. */
const pathOf = ({ example }: State): string => (example === "kjv_gpt" ? "models/kjv_gpt" : "model.safetensors");

const isServed = (example: string): boolean => example.startsWith("served/");

async function served(folder: string): Promise<Documents> {
  const [report, charts] = await Promise.all(
    ["report.json", "charts.json"].map(async (name) => (await fetched(`${folder}/${name}`)).text()),
  );
  return { report: report as string, charts: charts as string };
}

const selectabilityHint = (): HTMLElement =>
  el(
    "p",
    { class: "hint" },
    "What a head's keys must be like for a query to select them, in two and three dimensions: ",
    el("a", { href: "#/selectability" }, "Selectability"),
    ".",
  );

export default chapter<State>({
  text,
  defaults,
  rules: {
    example: matching(/^(|kjv_gpt|served\/[0-9a-f]{32})$/, "kjv_gpt, or the link that normscope explore prints"),
    url: {
      allows: (value) => value === "" || /^https:\/\/[^/\s]+\/\S*[^/\s]$/.test(String(value)),
      expected: "the address of a file, which begins with https://",
    },
    norm: between(norms),
    axis: whole(axes),
  },
  sources: [riechers, brody, gupta],
  presets: [
    {
      name: "A small GPT",
      claim:
        "Trained in this repository on the King James Bible: nine norms, gains that stand out, and tokens that it can never say.",
      state: { example: "kjv_gpt" },
    },
  ],
  doors: (state) => ({
    command: `normscope report ${pathOf(state)} -o report.html`,
    python: pythonOf(["report", pathOf(state)]),
    cpp: cppOf(
      ["analysis/report", "files/checkpoint", "results/documents"],
      `const normscope::files::Checkpoint checkpoint("${pathOf(state)}");
const auto report = normscope::analysis::audit(checkpoint);
fmt::print("{}\\n", normscope::json_text(normscope::results::report(report), 1));`,
    ),
  }),
  async mount(page) {
    const state = page.slot("state");
    const host = page.slot("report");
    let reading: Reading | null = null;
    let leaving = new AbortController();
    let shown: Shown | null = null;
    let run = 0;

    /** Shows the small GPT where there is no report. */
    const introduce = () => {
      const hidden = page.store.get().example !== "" || shown !== null || onRemotePage();
      for (const name of ["opening", "opening-words"]) page.slot(name).hidden = hidden;
    };
    introduce();

    const clear = () => {
      run += 1;
      reading?.cancel();
      reading = null;
      leaving.abort();
      leaving = new AbortController();
      shown = null;
      host.replaceChildren();
      delete host.dataset["model"];
      state.replaceChildren();
      introduce();
    };

    const forget = () => {
      kept = null;
      clear();
    };

    const fail = (error: unknown) => {
      forget();
      const message = error instanceof Error ? error.message : String(error);
      state.replaceChildren(el("p", { class: "notice", role: "alert" }, message));
    };

    const closeButton = (label: string): HTMLButtonElement => {
      const close = button(label, () => page.store.commit({ example: "", url: "" }), { class: "quiet" });
      close.addEventListener("click", forget);
      return close;
    };

    const show = (documents: Documents) => {
      kept = { example: page.store.get().example, documents };
      state.replaceChildren(
        closeButton("Close this report"),
        onRemotePage()
          ? ""
          : el(
              "details",
              { class: "beside" },
              el("summary", {}, "Put another checkpoint beside it"),
              dropZone((files) => void putBeside(documents, files)),
            ),
      );
      host.replaceChildren(
        el("h2", { id: "model-name", tabindex: -1 }, "a model"),
        el("p", { id: "model-line" }),
        el("div", { class: "report" }),
        el("p", { id: "colophon", class: "muted" }),
      );
      // The sections are part of the program, like a chapter's text, and therefore trusted.
      host.querySelector(".report")!.innerHTML = sections;
      const { report, charts } = parsed(documents);
      shown = showReport(report, charts, { beside: (norm) => geometryLink(norm), signal: leaving.signal });
      if (report.heads.length > 0) host.querySelector("#heads-body")?.append(selectabilityHint());
      host.dataset["model"] = report.model.name;
      introduce();
      page.say(`The report of ${report.model.name} is below: ${report.norms.length} norms.`);
      host.querySelector<HTMLElement>("#model-name")?.focus({ preventScroll: true });
    };

    /** Both reports side by side instead of the first one, which a button shows again. */
    const showBoth = (documents: Documents, other: Documents) => {
      kept = { example: page.store.get().example, documents, other };
      const alone = button(
        "Show the first one alone",
        () => {
          clear();
          show(documents);
        },
        { class: "quiet" },
      );
      state.replaceChildren(closeButton("Close both reports"), alone);
      host.replaceChildren(
        el("h2", { id: "model-name", tabindex: -1 }, "Two checkpoints side by side"),
        el("div", { id: "pair", class: "report" }),
      );
      const sides: [Side, Side] = [parsed(documents), parsed(other)];
      const { redraw } = showPair(sides, leaving.signal);
      shown = { redraw, reveal: () => undefined };
      const names = sides.map(({ report }) => report.model.name);
      host.dataset["model"] = names.join(" and ");
      introduce();
      page.say(`The reports of ${names.join(" and ")} are below, side by side.`);
      host.querySelector<HTMLElement>("#model-name")?.focus({ preventScroll: true });
    };

    /** Shows the result of `documents`, unless another request has been made since. */
    const arrive = async (documents: () => Promise<Documents>) => {
      forget();
      const mine = run;
      try {
        const found = await documents();
        if (mine === run) show(found);
      } catch (error) {
        if (mine === run) fail(error);
      }
    };

    /** The report of `files`, with its progress and a button that stops it. */
    const reportOf = async (files: (tell: Tell) => Promise<NamedFile[]>, stopped: () => void): Promise<Documents> => {
      const mine = run;
      const bar = el("progress", { "aria-label": "Progress" });
      const words = el("span", {}, "reading the file");
      state.replaceChildren(
        el("div", { class: "panel", id: "reading" }, bar, words, button("Cancel", stopped, { class: "action" })),
      );
      const tell: Tell = (what, done, total) => {
        words.textContent = `${what}, ${done} of ${total}`;
        bar.max = Math.max(1, total);
        bar.value = done;
      };
      const chosen = await files(tell);
      if (mine !== run) throw new Error("cancelled");
      reading = startReading(chosen, tell);
      return reading.documents;
    };

    const read = (files: (tell: Tell) => Promise<NamedFile[]>) =>
      arrive(() =>
        reportOf(files, () => {
          page.store.commit({ example: "", url: "" });
          clear();
        }),
      );

    /** Reads a second checkpoint and shows both; the first one is shown again if that fails or is stopped. */
    const putBeside = async (documents: Documents, files: Promise<NamedFile[]>) => {
      clear();
      const mine = run;
      const back = () => {
        clear();
        show(documents);
      };
      try {
        const other = await reportOf(() => files, back);
        if (mine === run) showBoth(documents, other);
      } catch (error) {
        if (mine !== run) return;
        back();
        const message = error instanceof Error ? error.message : String(error);
        state.append(el("p", { class: "notice", role: "alert" }, message));
      }
    };

    /** Asks before anything is read from another site, on the page that may. */
    const offer = async (url: string): Promise<void> => {
      forget();
      if (url === "") return leaveRemotePage(location.hash);
      if (!onRemotePage()) {
        if (await hasRemotePage()) return turnToRemotePage();
        throw new Error(`This server lets no page read from another site. Download ${url}, and drop it on this page.`);
      }
      const address = new URL(url);
      const from = `Read from ${address.host}`;
      state.replaceChildren(
        el(
          "div",
          { class: "panel", id: "remote" },
          el(
            "p",
            {},
            "This link is about a checkpoint on another site: ",
            el("code", {}, url),
            `. If you agree, this page reads it from there, up to ${mostBytes / 1e6} MB, with the configuration and the ` +
              "tokenizer beside it. Nothing but the request is sent.",
          ),
          button(from, () => void read((tell) => readRemote(address, tell, leaving.signal)), { class: "action main" }),
          closeButton("Leave it"),
        ),
      );
    };

    // What is dropped would be on a page that may send it.
    page.slot("drop").parentElement!.hidden = onRemotePage();
    page.slot("drop").append(
      dropZone(
        (files) => {
          page.store.commit({ example: "" });
          void read(() => files);
        },
        [button("Try a small GPT", () => page.store.commit({ example: "kjv_gpt" }), { class: "action" })],
      ),
    );

    host.addEventListener("click", (event) => {
      const link = (event.target as Element).closest<HTMLAnchorElement>('a[href^="#"]:not([href^="#/"])');
      if (link === null) return;
      // The address belongs to the chapters; places within the report are found without it.
      event.preventDefault();
      const norm = /^#norm-(\d+)$/.exec(link.hash)?.[1];
      if (norm !== undefined) shown?.reveal(Number(norm));
      else {
        const place = host.querySelector(link.hash);
        if (place === null) return;
        openAround(place);
        place.scrollIntoView();
      }
    });

    let example = "";
    if (kept !== null && [kept.example, ""].includes(page.store.get().example)) {
      example = kept.example;
      page.store.show({ example });
      if (kept.other === undefined) show(kept.documents);
      else showBoth(kept.documents, kept.other);
    }
    let offered = "";
    page.onChange((now) => {
      if (now.url !== offered) {
        offered = now.url;
        return void offer(now.url).catch(fail);
      }
      if (now.example === example) return void shown?.redraw();
      example = now.example;
      if (isServed(example)) void arrive(() => served(now.example));
      else if (example !== "") void read(() => exampleNamed("kjv_gpt"));
      else forget();
    });
    page.onLeave(clear);
    const brought = takeBrought();
    if (brought !== null) void read(() => brought);
    await mountProfile(page, async () => (await fetched("example/kjv_gpt/model.safetensors")).arrayBuffer());
  },
});
