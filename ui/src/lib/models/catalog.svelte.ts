import { asFailure, type Backend } from "../backend";
import type { Failure, CatalogEntry, ModelCatalog, Transfer } from "../generated/contract";

/** The models that could be had, and what is being downloaded or imported. */
export class CatalogState {
  catalog = $state.raw<ModelCatalog | null>(null);
  failure = $state.raw<Failure | null>(null);
  transfers = $state.raw<Transfer[]>([]);
  /** The name of the model that is removed when the user says so. */
  removing = $state<string | null>(null);

  readonly entries = $derived(this.catalog?.entries ?? []);
  readonly recommended = $derived(this.entries.find((entry) => entry.id === this.catalog?.recommended) ?? null);
  readonly underWay = $derived(this.transfers.filter((transfer) => !transfer.failure));

  #backend: Backend;
  #fail: (failure: Failure) => void;

  constructor(backend: Backend, fail: (failure: Failure) => void) {
    this.#backend = backend;
    this.#fail = fail;
  }

  /** What is free, and what is there, changes by itself: asked for anew whenever it is shown. */
  async look(): Promise<void> {
    try {
      this.catalog = await this.#backend.catalog();
      this.failure = null;
    } catch (error) {
      this.failure = asFailure(error);
    }
  }

  apply(transfers: Transfer[]): void {
    const ended = this.underWay.some(({ id }) => !transfers.some((now) => now.id === id && !now.failure));
    this.transfers = transfers;
    if (ended) void this.look();
  }

  transferOf(id: string): Transfer | null {
    return this.transfers.find((transfer) => transfer.id === id) ?? null;
  }

  download = (entry: CatalogEntry) => this.#try(() => this.#backend.download(entry.id));
  /** After a failure it is begun again, and goes on where it ended. */
  again = (id: string) => this.#try(() => this.#backend.download(id));
  pause = (id: string, paused: boolean) => this.#try(() => this.#backend.pauseDownload(id, paused));
  stop = (id: string) => this.#try(() => this.#backend.stopDownload(id));
  importModel = (folder: boolean) => this.#try(() => this.#backend.importModel(folder));

  /** Asks first. */
  remove(id: string): void {
    this.removing = id;
  }

  async answerRemoving(really: boolean): Promise<void> {
    const id = this.removing;
    this.removing = null;
    if (!really || id === null) return;
    await this.#try(() => this.#backend.removeModel(id));
    await this.look();
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fail(asFailure(error));
    }
  }
}
