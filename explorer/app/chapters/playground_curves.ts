import type { Engine } from "../../engine/client";
import { curvesFigure } from "../../engine/playground";
import type { Curves, Score, Training } from "../../engine/playground";
import { color } from "../../shared/theme";
import { ChartFigure } from "../figure";

/** Records in the chart, and milliseconds between two drawings of it while the training runs. */
const mostRecords = 400;
const every = 250;

/** Loss and accuracy of a training as a chart. */
export class TrainingCurves {
  private curves: Curves | null = null;
  private readonly chart = new ChartFigure("curves", () => ({
    columns: ["step", "loss", "accuracy"],
    rows: Array.from(this.curves?.step ?? [], (step, i) => [
      step,
      this.curves!.loss[i] ?? 0,
      this.curves!.accuracy[i] ?? 0,
    ]),
  }));
  readonly element = this.chart.element;
  private drawn = 0;
  private frame = "";

  constructor(private readonly engine: Engine) {}

  dispose(): void {
    this.chart.dispose();
  }

  /** The chart is redrawn if its frame changes; otherwise it only gets new data, and not too often if `running`. */
  async draw(training: Training, score: Score, steps: number, running: boolean): Promise<void> {
    if (running && performance.now() - this.drawn < every) return;
    this.drawn = performance.now();
    this.curves = await training.curves(mostRecords);
    const { step, loss, accuracy, transitions } = this.curves;
    const records = Array.from(step, (at, i) => ({ step: at, loss: loss[i] ?? 0, accuracy: accuracy[i] ?? 0 }));
    if (records.length === 0) records.push({ step: score.step, loss: score.loss, accuracy: score.accuracy });
    const data = { records, transitions, now: [{ step: score.step }] };
    const frame = JSON.stringify([this.element.clientWidth, steps, color("--paper")]);
    if (frame !== this.frame) {
      this.frame = frame;
      await this.chart.draw(
        await curvesFigure(this.engine, steps, data),
        "Loss and accuracy over the steps of the training.",
      );
    } else {
      for (const [name, rows] of Object.entries(data)) await this.chart.update(name, rows);
    }
    this.element.dataset["records"] = String(records.length);
    this.element.dataset["transitions"] = String(transitions.length);
  }
}
