import type { TokenTrace } from "../generated/token-trace";
import type { Engine, Remote } from "./client";

/** A file of a model. */
export interface ModelFile {
  name: string;
  bytes: Uint8Array;
}

/** A model in the core through which texts are traced; `delete` frees it. */
export class Tracer {
  private constructor(
    private readonly remote: Remote,
    /** Tokens of the vocabulary, and of the longest text. */
    readonly limits: { vocabulary: number; positions: number },
  ) {}

  static async open(engine: Engine, files: ModelFile[]): Promise<Tracer> {
    const remote = await engine.create("Tracer", files);
    return new Tracer(remote, await remote.call("limits"));
  }

  /** The document of `normscope trace` for `text`. */
  async trace(text: string): Promise<TokenTrace> {
    return JSON.parse(await this.remote.call<string>("trace", text)) as TokenTrace;
  }

  delete(): Promise<void> {
    return this.remote.delete();
  }
}
