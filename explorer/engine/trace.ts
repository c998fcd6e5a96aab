import type { Attribute } from "../generated/attribute";
import type { TokenTrace } from "../generated/token-trace";
import { parseDocument } from "../shared/printable";
import type { NamedFile } from "./checkpoint";
import type { Engine, Remote } from "./client";

/** A file of a model. */
export interface ModelFile {
  name: string;
  bytes: Uint8Array;
}

export interface Limits {
  architecture: string;
  parameters: number;
  /** Tokens of the vocabulary, and of the longest text. */
  vocabulary: number;
  positions: number;
  /** Why texts cannot be turned into tokens; empty if they can. */
  unspelled: string;
}

/** Probabilities of a token: of the model, and without a component, as the norm divides what is left and frozen. */
export interface ChangedToken {
  token: number;
  name: string | null;
  before: number;
  exact: number;
  frozen: number;
}

/** Tokens of the longest text that a page shows. */
export const mostTokens = 128;
/** Bytes of the largest model that is read into a page: 32 million parameters in float64. */
const mostBytes = 256e6;

/** Where the core keeps a model's files, which nobody needs to know. */
const plain = (error: unknown): Error =>
  new Error((error instanceof Error ? error.message : String(error)).replaceAll(/\/traced\/\d+(\/|(?=:))/g, ""));

/** A model in the core through which texts are traced; `delete` frees it. */
export class Tracer {
  private constructor(
    private readonly remote: Remote,
    readonly limits: Limits,
  ) {}

  static async open(engine: Engine, files: ModelFile[]): Promise<Tracer> {
    try {
      const remote = await engine.create("Tracer", files);
      return new Tracer(remote, await remote.call("limits"));
    } catch (error) {
      throw plain(error);
    }
  }

  /** The document of `normscope trace` for `text`. */
  trace(text: string): Promise<TokenTrace> {
    return this.traced("trace", text);
  }

  /** Traces tokens in place of a text. */
  traceTokens(tokens: number[]): Promise<TokenTrace> {
    return this.traced("traceTokens", Float64Array.from(tokens));
  }

  /** What each norm makes of a token of the last text: x, then x behind its four steps, norm after norm. */
  async normSteps(position: number): Promise<Float64Array> {
    return this.remote.call("normSteps", position);
  }

  /** What each component of the stream gives the logit of the likeliest token after a position of the last text. */
  async effects(position: number): Promise<Attribute> {
    return parseDocument(await this.remote.call<string>("effects", position)) as Attribute;
  }

  /** The likeliest tokens with and without the component of that index, at the position of the last `effects`. */
  async without(component: number, likeliest: number): Promise<ChangedToken[]> {
    return this.remote.call("without", component, likeliest);
  }

  private async traced(method: string, input: unknown): Promise<TokenTrace> {
    try {
      return parseDocument(await this.remote.call<string>(method, input, mostTokens)) as TokenTrace;
    } catch (error) {
      throw plain(error);
    }
  }

  delete(): Promise<void> {
    return this.remote.delete();
  }
}

const weights = /\.(safetensors|gguf)$|^pytorch_model.*\.bin$/;
const beside = /^(config\.json|tokenizer\.json|vocab\.json|vocab\.txt|merges\.txt|.*\.index\.json)$/;

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/**
 * What a model needs of files that were dropped: weights, configuration and tokenizer. Another .bin file is taken for a
 * tokenizer of llama2.c, which has no fixed name.
 */
export function modelFiles(files: NamedFile[]): NamedFile[] {
  const named = files.map(({ name, data }) => ({ name: name.split("/").at(-1) ?? name, data }));
  const taken = named.filter(({ name }) => weights.test(name) || beside.test(name));
  if (!taken.some(({ name }) => weights.test(name)))
    throw new Error(
      "none of the files has weights, expected .safetensors or .gguf, alone or in a folder with config.json",
    );
  const names = taken.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`there are several files ${twice}, expected the files of one model`);
  const size = taken.reduce((sum, { data }) => sum + data.size, 0);
  if (size > mostBytes)
    throw new Error(
      `the model's files have ${megabytes(size)}, expected at most ${megabytes(mostBytes)}: a page runs models of up to about ` +
        "30 million parameters; `normscope trace` runs larger ones",
    );
  const spelled = names.some((name) => /^(tokenizer\.json|vocab\.(json|txt))$/.test(name));
  const tokenizer = spelled ? undefined : named.find(({ name }) => name.endsWith(".bin") && !weights.test(name));
  return tokenizer === undefined ? taken : [...taken, { name: "tokenizer.bin", data: tokenizer.data }];
}

export const readFiles = (files: NamedFile[]): Promise<ModelFile[]> =>
  Promise.all(files.map(async ({ name, data }) => ({ name, bytes: new Uint8Array(await data.arrayBuffer()) })));

/** Token ids written as numbers apart from each other. */
export function tokensOf(text: string): number[] {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  const wrong = words.find((word) => !/^\d{1,9}$/.test(word));
  if (wrong !== undefined) throw new Error(`“${wrong.slice(0, 20)}” is not the number of a token`);
  return words.map(Number);
}
