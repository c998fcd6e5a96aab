import type { Page } from "../chapter";
import type { State } from "../link";
import { Store } from "../store";

/** The parts of a chapter's page that numbers in the text and players use. */
export function pageOf<S extends State>(defaults: S, html = ""): Page<S> & { arrive(): void; leave(): void } {
  const store = new Store(defaults);
  const text = document.createElement("article");
  text.innerHTML = html;
  document.body.replaceChildren(text);
  const clean: (() => void)[] = [];
  let arrive = () => {};
  const page = {
    store,
    text,
    mounted: new Promise<void>((done) => (arrive = done)),
    onChange: (draw: (state: S) => void) => {
      clean.push(store.subscribe(draw));
      draw(store.get());
    },
    onLeave: (work: () => void) => void clean.push(work),
    arrive: () => arrive(),
    leave: () => clean.forEach((work) => work()),
  };
  return page as unknown as Page<S> & { arrive(): void; leave(): void };
}
