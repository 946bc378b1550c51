/**
 * Moving a row of the queue with the pointer. Not with the browser's own drag
 * and drop: the window takes that for files.
 */
export class Dragging {
  /** The job that is held. */
  job = $state<number | null>(null);
  /** It would come before this one; null: to the end. */
  before = $state<number | null>(null);

  begin(job: number): void {
    this.job = job;
    this.before = job;
  }

  /** The pointer is at this height; rows are the list's, in order. */
  over(y: number, rows: { job: number; top: number; height: number }[]): void {
    const next = rows.find((row) => y < row.top + row.height / 2);
    this.before = next?.job ?? null;
  }

  /** Where it is to go; undefined where it stays where it was. */
  drop(order: number[]): { job: number; before: number | null } | undefined {
    const { job, before } = this;
    this.job = null;
    if (job === null || before === job) return undefined;
    const after = order[order.indexOf(job) + 1] ?? null;
    return before === after ? undefined : { job, before };
  }
}

/** Before which job one has to come to change places with the row above or below it; undefined at the end of the list. */
export function neighbour(order: number[], job: number, step: 1 | -1): number | null | undefined {
  const at = order.indexOf(job);
  if (at < 0 || (step < 0 && at === 0) || (step > 0 && at === order.length - 1)) return undefined;
  return step < 0 ? order[at - 1] : (order[at + 2] ?? null);
}
