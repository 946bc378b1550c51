import { Channel, invoke } from "@tauri-apps/api/core";
import type { Command, EngineInfo, Format, Place, Settings, Setup, TextUpdate, WindowEvent } from "../generated/contract";
import { t } from "../text";
import type { Backend } from ".";

/** `invoke`, for commands that the shell has. */
function call<T>(command: Command, args?: Record<string, unknown>): Promise<T> {
  return invoke<T>(command, args);
}

export class TauriBackend implements Backend {
  attach(onEvent: (event: WindowEvent) => void): Promise<Setup> {
    return call("attach", { events: new Channel<WindowEvent>(onEvent) });
  }
  describe(): Promise<EngineInfo> {
    return call("describe");
  }
  chooseFiles(): Promise<void> {
    return call("choose_files", { title: t.dialogs.files });
  }
  addSample(): Promise<void> {
    return call("add_sample");
  }
  chooseModel(): Promise<void> {
    return call("choose_model", { title: t.dialogs.model });
  }
  changeSettings(settings: Settings): Promise<void> {
    return call("change_settings", { settings });
  }
  startAnyway(): Promise<void> {
    return call("start_anyway");
  }
  watch(job: number, onUpdate: (update: TextUpdate) => void): Promise<void> {
    return call("watch", { job, updates: new Channel<TextUpdate>(onUpdate) });
  }
  cancel(job: number): Promise<void> {
    return call("cancel", { job });
  }
  retry(job: number): Promise<void> {
    return call("retry", { job });
  }
  remove(job: number): Promise<void> {
    return call("remove", { job });
  }
  save(job: number, format: Format, place: Place): Promise<string | null> {
    return call("save", { job, format, place, title: t.dialogs.save });
  }
  close(really: boolean): Promise<void> {
    return call("close", { really });
  }
}
