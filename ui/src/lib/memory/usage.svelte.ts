import type { Forecast, MemoryNotice, MemorySample, MemoryUpdate, StageUse } from "../generated/contract";

/** One job's memory as it comes. */
export class Usage {
  samples = $state.raw<MemorySample[]>([]);
  notices = $state.raw<MemoryNotice[]>([]);
  stages = $state.raw<StageUse[]>([]);
  forecast = $state.raw<Forecast | null>(null);

  constructor(readonly job: number) {}

  apply(update: MemoryUpdate): void {
    this.samples = [...this.samples.slice(0, update.from), ...update.samples];
    this.notices = update.notices;
    this.stages = update.stages;
    this.forecast = update.forecast;
  }
}
