import type { NamedFile, Tell } from "../../engine/checkpoint";

/** The page whose policy lets it read files of other sites. The others may not, so that what is dropped on them stays. */
const remotePage = "remote.html";
export const onRemotePage = (): boolean => location.pathname.endsWith(`/${remotePage}`);

/** Turns to the same place of the page that may read from other sites, or back. */
export const turnToRemotePage = (): void => location.replace(`${remotePage}${location.search}${location.hash}`);
export const leaveRemotePage = (hash: string): void => location.replace(`./${location.search}${hash}`);

/** Whether the site has such a page: `normscope explore` serves none. */
export const hasRemotePage = async (): Promise<boolean> =>
  (await fetch(new URL(remotePage, document.baseURI), { method: "HEAD" })).ok;

/** Bytes that are read from another site, all files together. */
export const mostBytes = 600e6;
const mega = (bytes: number): number => Math.ceil(bytes / 1e6);

const instead = "download it, and drop it on this chapter's page";

/** The file at an address; null where the site answers that there is none. */
async function readFile(address: URL, room: number, tell: Tell, signal: AbortSignal): Promise<Blob | null> {
  const file = address.pathname.split("/").at(-1) ?? "";
  const tooLarge = (bytes: string) =>
    new Error(`${file} has ${bytes}, and at most ${mega(mostBytes)} MB are read from another site; ${instead}`);
  const response = await fetch(address, { credentials: "omit", referrerPolicy: "no-referrer", signal }).catch(
    (error: unknown) => {
      if (signal.aborted) throw error;
      throw new Error(`${address.host} cannot be reached, or does not let other sites read ${file}; ${instead}`);
    },
  );
  if (response.status === 404) return null;
  if (!response.ok || response.body === null)
    throw new Error(`${address.host} does not give ${file}: ${response.status}`);
  const size = Number(response.headers.get("content-length") ?? 0);
  if (size > room) {
    await response.body.cancel();
    throw tooLarge(`${mega(size)} MB`);
  }
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body.getReader();
  for (let read = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    read += value.length;
    // The length that a site states may be that of a compressed file, or be missing.
    if (read > room) {
      await reader.cancel();
      throw tooLarge("more than that");
    }
    parts.push(value);
    tell(`MB of ${file}`, mega(read), mega(Math.max(read, size)));
  }
}

/** A name for the folder of a file: on the hub, that of its repository. */
function folderOf(address: URL): string {
  const parts = decodeURIComponent(address.pathname).split("/").filter(Boolean).slice(0, -1);
  const resolve = parts.indexOf("resolve");
  return (resolve > 0 ? parts[resolve - 1] : parts.at(-1)) ?? address.hostname;
}

/** A checkpoint at an address of another site, with the configuration and the tokenizer that are beside it. */
export async function readRemote(address: URL, tell: Tell, signal: AbortSignal): Promise<NamedFile[]> {
  const file = decodeURIComponent(address.pathname.split("/").at(-1) ?? "");
  const files: NamedFile[] = [];
  let room = mostBytes;
  for (const name of [file, ...(file.endsWith(".safetensors") ? ["config.json", "tokenizer.json"] : [])]) {
    const data = await readFile(name === file ? address : new URL(name, address), room, tell, signal);
    if (data === null && name === file) throw new Error(`${address.host} has no ${file}`);
    if (data === null) continue;
    room -= data.size;
    files.push({ name: `${folderOf(address)}/${name}`, data });
  }
  return files;
}
