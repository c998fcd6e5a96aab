import {
  AmbientLight,
  Color,
  DirectionalLight,
  Fog,
  InstancedMesh,
  PerspectiveCamera,
  Plane,
  Raycaster,
  Scene as ThreeScene,
  TOUCH,
  Vector2,
  Vector3,
  WebGLRenderer,
} from "three";
import type { Object3D, Sprite } from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { el } from "../shared/dom";
import { pngOf } from "../shared/files";
import { color } from "../shared/theme";
import { figure } from "./figure";
import type { Table } from "./figure";
import { separate } from "./space_labels";

/** Callbacks of draggable objects, which are identified by their `userData.id`. */
interface Dragging {
  objects(): Object3D[];
  chosen(id: string): void;
  moved(id: string, to: [number, number, number]): void;
  done(): void;
}

interface SceneOptions {
  id: string;
  description: string;
  caption?: string;
  table?: () => Table;
  /** Position of the camera, which looks at the origin with z up. */
  eye: [number, number, number];
  /** Whether what is farther from the eye fades. */
  fades?: boolean;
  /** Width over height of what is to be in view; 1 without. */
  wide?: number;
}

interface Disposable {
  dispose(): void;
}

/** Frees what an object and those in it hold on the graphics card. */
const free = (root: Object3D): void =>
  root.traverse((object) => {
    if (object instanceof InstancedMesh) object.dispose();
    const { geometry, material } = object as {
      geometry?: Disposable;
      material?: Disposable & { map?: Disposable | null };
    };
    geometry?.dispose();
    material?.map?.dispose();
    material?.dispose();
  });

/** Degrees of the field of view. */
const view = 35;

/** Milliseconds after the last change until a picture that a processor draws gets smooth edges. */
const rest = 200;

let processor: boolean | undefined;
/** Whether a processor draws and no graphics card: smooth edges take it more time than all else. */
function drawnByProcessor(): boolean {
  if (processor !== undefined) return processor;
  const context = el("canvas").getContext("webgl2");
  let name = String(context?.getParameter(context.RENDERER));
  // Some browsers tell the drawer's name only by an extension, and others warn of that extension.
  const masked = name === "WebKit WebGL" ? context?.getExtension("WEBGL_debug_renderer_info") : null;
  if (masked) name = String(context?.getParameter(masked.UNMASKED_RENDERER_WEBGL));
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return (processor = /swiftshader|llvmpipe|softpipe|basic render/i.test(name));
}

/**
 * A picture in space. Nothing is drawn unless something has changed: `changed()` asks for one frame, and a
 * drag asks for one a frame. What is far out of view is drawn when it comes near. `data-frames` counts frames, for tests.
 */
export class SpaceFigure {
  readonly element: HTMLElement;
  readonly scene = new ThreeScene();
  private readonly canvas = el("canvas", { tabindex: 0, role: "img" });
  private readonly hint = el("p", { class: "space-hint", "aria-hidden": "true" });
  private readonly host = el("div", { class: "space" }, this.canvas, this.hint);
  /** Made for the first frame. */
  private renderer: WebGLRenderer | null | undefined;
  private slow = false;
  private smoothing: number | undefined;
  private readonly camera = new PerspectiveCamera(view, 1, 0.1, 200);
  /** Radius of the ball around the origin that is in view, but for the reader's zoom. */
  private framed: number;
  private readonly fog: Fog | null;
  private readonly orbit: OrbitControls;
  private readonly sizes: ResizeObserver;
  private asked = false;
  /** Whether it is in view or nearly so. */
  private near = false;
  /** Whether something has changed that no frame shows. */
  private stale = true;
  private readonly sight: IntersectionObserver;
  /** What has left the scene since the last frame. */
  private readonly dropped: Object3D[] = [];

  private readonly wide: number;

  constructor(options: SceneOptions) {
    this.wide = options.wide ?? 1;
    this.canvas.setAttribute("aria-label", `${options.description} Arrow keys turn it, plus and minus zoom.`);
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(...options.eye);
    this.camera.lookAt(0, 0, 0);
    this.framed = Math.hypot(...options.eye) * Math.sin((view * Math.PI) / 360);
    this.fog = options.fades === true ? new Fog(0) : null;
    this.scene.fog = this.fog;
    this.scene.add(new AmbientLight(0xffffff, 1.6), this.camera);
    const lamp = new DirectionalLight(0xffffff, 1.8);
    lamp.position.set(2, 3, 4);
    this.camera.add(lamp);
    this.orbit = new OrbitControls(this.camera, this.canvas);
    this.orbit.enablePan = false;
    this.orbit.touches = { ONE: TOUCH.ROTATE, TWO: TOUCH.DOLLY_ROTATE };
    // The browser scrolls for one finger that moves up or down; OrbitControls had taken every touch.
    this.canvas.style.touchAction = "pan-y";
    this.host.addEventListener("wheel", (event) => this.wheel(event), { capture: true, passive: true });
    this.host.addEventListener("pointerdown", ({ pointerType }) => {
      if (pointerType === "touch") this.advise("One finger across turns it, two zoom.");
    });
    this.orbit.addEventListener("change", () => this.changed());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.sizes = new ResizeObserver(() => this.changed());
    this.sizes.observe(this.host);
    this.sight = new IntersectionObserver(
      (entries) => {
        this.near = entries.at(-1)?.isIntersecting ?? false;
        if (this.stale) this.changed();
      },
      { rootMargin: "50%" },
    );
    this.sight.observe(this.host);
    addEventListener("beforeprint", this.complete);
    this.element = figure({
      id: options.id,
      content: this.host,
      caption: options.caption,
      table: options.table,
      png: () => {
        this.draw();
        return pngOf(this.canvas);
      },
    });
  }

  add(...objects: Object3D[]): void {
    this.scene.add(...objects);
  }

  /** Moves the eye so that a ball of `radius` around the origin is in view; the reader's turn and zoom stay. */
  frame(radius: number): void {
    if (radius === this.framed) return;
    this.camera.position.multiplyScalar(radius / this.framed);
    this.framed = radius;
    this.element.dataset["framed"] = radius.toPrecision(4);
    this.changed();
  }

  /** Up on the screen and toward the eye, as directions in the scene. */
  directions(): { up: Vector3; toward: Vector3 } {
    this.camera.updateMatrixWorld();
    const [up, toward] = [new Vector3(), new Vector3()];
    this.camera.matrixWorld.extractBasis(new Vector3(), up, toward);
    return { up: up.normalize(), toward: toward.normalize() };
  }

  /** Asks for one new frame. */
  changed(): void {
    this.stale = true;
    if (this.asked || !this.near) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      clearTimeout(this.smoothing);
      this.draw(!this.slow);
      this.freeDropped();
      if (this.slow) this.smoothing = setTimeout(() => this.draw(), rest);
    });
  }

  /**
   * Takes `parts` out of the scene for others in their place. They are freed after the next frame: a program of the
   * graphics card that no material uses is gone, and the new parts' materials would have it compiled anew.
   */
  drop(parts: Object3D[]): void {
    for (const part of parts) part.removeFromParent();
    this.dropped.push(...parts);
    this.changed();
    if (!this.near) this.freeDropped();
  }

  private freeDropped(): void {
    this.dropped.splice(0).forEach(free);
  }

  /** On paper everything is in view. */
  private readonly complete = (): void => {
    if (this.stale) this.draw();
  };

  /** Lets some objects be dragged, each in the plane through it that faces the eye. */
  draggable(dragging: Dragging): void {
    const caster = new Raycaster();
    const plane = new Plane();
    let held: string | null = null;
    const aim = (event: PointerEvent) => {
      const { left, top, width, height } = this.canvas.getBoundingClientRect();
      const [x, y] = [(event.clientX - left) / width, (event.clientY - top) / height];
      caster.setFromCamera(new Vector2(2 * x - 1, 1 - 2 * y), this.camera);
    };
    const grasp = (event: PointerEvent) => {
      aim(event);
      const hit = caster.intersectObjects(dragging.objects(), false)[0];
      if (hit === undefined || event.button !== 0) return;
      // This press would also rotate the figure.
      event.stopPropagation();
      held = String(hit.object.userData["id"]);
      plane.setFromNormalAndCoplanarPoint(this.camera.getWorldDirection(new Vector3()), hit.object.position);
      this.host.setPointerCapture(event.pointerId);
      dragging.chosen(held);
    };
    const release = () => {
      if (held !== null) dragging.done();
      held = null;
    };
    this.host.addEventListener("pointerdown", grasp, { capture: true });
    // A finger on an object drags it and does not scroll.
    this.host.addEventListener("touchstart", (event) => held !== null && event.preventDefault(), { passive: false });
    this.host.addEventListener("pointermove", (event) => {
      if (held === null) return;
      aim(event);
      const to = caster.ray.intersectPlane(plane, new Vector3());
      if (to !== null) dragging.moved(held, [to.x, to.y, to.z]);
    });
    this.host.addEventListener("pointerup", release);
    this.host.addEventListener("pointercancel", release);
  }

  /** Leaves the wheel to the page unless Ctrl (on a Mac, or ⌘) asks for zoom; a pinch on a trackpad arrives with Ctrl. */
  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) return;
    event.stopPropagation();
    this.advise("Hold Ctrl and scroll to zoom.");
  }

  private advised: number | undefined;
  /** Shows how the picture is moved, for a moment. */
  private advise(text: string): void {
    this.hint.textContent = text;
    this.hint.classList.add("shown");
    clearTimeout(this.advised);
    this.advised = setTimeout(() => this.hint.classList.remove("shown"), 1500);
  }

  /** Frees the figure's memory on the graphics card and its context, of which a browser keeps only a few alive. */
  dispose(): void {
    this.sizes.disconnect();
    this.sight.disconnect();
    removeEventListener("beforeprint", this.complete);
    this.orbit.dispose();
    clearTimeout(this.advised);
    clearTimeout(this.smoothing);
    this.freeDropped();
    free(this.scene);
    this.renderer?.dispose();
    this.renderer?.forceContextLoss();
    this.renderer = null;
  }

  private draw(smooth = true): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width === 0 || height === 0) return;
    if (this.renderer === undefined) this.renderer = this.start();
    if (this.renderer === null) return;
    this.stale = false;
    const paper = new Color(color("--paper"));
    this.scene.background = paper;
    this.renderer.setPixelRatio(this.slow ? (smooth ? 2 : 1) : Math.min(devicePixelRatio, 2));
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    // What is to be in view is so in a narrow picture too.
    const half = Math.tan((view * Math.PI) / 360) / Math.min(1, this.camera.aspect / this.wide);
    this.camera.fov = (Math.atan(half) * 360) / Math.PI;
    const distance = this.camera.position.length();
    [this.camera.near, this.camera.far] = [distance / 100, distance * 10];
    this.camera.updateProjectionMatrix();
    if (this.fog !== null) {
      this.fog.color = paper;
      [this.fog.near, this.fog.far] = [distance - 0.8 * this.framed, distance + 2.2 * this.framed];
    }
    const labels: Sprite[] = [];
    this.scene.traverse((object) => {
      const pixels = object.userData["pixels"] as [number, number] | undefined;
      if (pixels === undefined) return;
      object.scale.set((2 * half * pixels[0]) / height, (2 * half * pixels[1]) / height, 1);
      labels.push(object as Sprite);
    });
    this.camera.updateMatrixWorld();
    separate(labels, this.camera, [width, height]);
    this.renderer.render(this.scene, this.camera);
    this.element.dataset["frames"] = String(Number(this.element.dataset["frames"] ?? 0) + 1);
  }

  private key(event: KeyboardEvent): void {
    const turn = Math.PI / 24;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => this.turn(-turn, 0),
      ArrowRight: () => this.turn(turn, 0),
      ArrowUp: () => this.turn(0, -turn),
      ArrowDown: () => this.turn(0, turn),
      "+": () => this.camera.position.multiplyScalar(0.9),
      "-": () => this.camera.position.multiplyScalar(1 / 0.9),
    };
    const move = event.ctrlKey || event.metaKey || event.altKey ? undefined : moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
    this.orbit.update();
    this.changed();
  }

  private turn(around: number, over: number): void {
    const { position } = this.camera;
    const radius = position.length();
    const angle = Math.atan2(position.y, position.x) + around;
    const height = Math.min(1.5, Math.max(-1.5, Math.asin(position.z / radius) - over));
    position.set(
      radius * Math.cos(height) * Math.cos(angle),
      radius * Math.cos(height) * Math.sin(angle),
      radius * Math.sin(height),
    );
  }

  private start(): WebGLRenderer | null {
    try {
      this.slow = drawnByProcessor();
      return new WebGLRenderer({ canvas: this.canvas, antialias: !this.slow, preserveDrawingBuffer: false });
    } catch {
      this.host.append(
        el("p", { class: "notice" }, "This browser draws no WebGL: the picture is missing, its numbers are below."),
      );
      return null;
    }
  }
}
