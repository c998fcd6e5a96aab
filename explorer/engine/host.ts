import type { Core, CoreObject, Request } from "./protocol";

type Function = (...args: unknown[]) => unknown;
type Constructor = new (...args: unknown[]) => CoreObject;

/** Answers requests with the core; it runs where the core runs, in a worker or in a test. */
export class Host {
  private readonly objects = new Map<number, CoreObject>();
  private next = 1;

  constructor(private readonly core: Core) {}

  answer(request: Request): unknown {
    switch (request.kind) {
      case "call":
        return this.function(request.name)(...request.args);
      case "new": {
        const type = this.function(request.type) as unknown as Constructor;
        const handle = this.next++;
        this.objects.set(handle, new type(...request.args));
        return handle;
      }
      case "method": {
        const object = this.object(request.handle);
        const method = object[request.name];
        if (typeof method !== "function") throw new Error(`core: no method ${request.name}`);
        return (method as Function).apply(object, request.args);
      }
      case "delete":
        this.object(request.handle).delete();
        this.objects.delete(request.handle);
        return null;
    }
  }

  private function(name: string): Function {
    const found = Object.hasOwn(this.core, name) ? this.core[name] : undefined;
    if (typeof found !== "function") throw new Error(`core: has no ${name}`);
    return found as Function;
  }

  private object(handle: number): CoreObject {
    const found = this.objects.get(handle);
    if (found === undefined) throw new Error(`core: object ${handle} is not there`);
    return found;
  }
}

/** The buffers of an answer that may move to its reader instead of being copied. */
export function transferable(value: unknown): ArrayBuffer[] {
  const found = new Set<ArrayBuffer>();
  const visit = (part: unknown): void => {
    if (ArrayBuffer.isView(part)) {
      if (part.buffer instanceof ArrayBuffer) found.add(part.buffer);
    } else if (Array.isArray(part)) {
      part.forEach(visit);
    } else if (part !== null && typeof part === "object") {
      Object.values(part).forEach(visit);
    }
  };
  visit(value);
  return [...found];
}
