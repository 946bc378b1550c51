import { clock, gigabytes, span } from "../ui/format";
import type { Text } from "./en";

export const de: Text = {
  app: "Steno",
  recordings: "Aufnahmen",
  noRecordingsHere: "Noch keine Aufnahmen",
  addFiles: "Hinzufügen…",

  home: {
    title: "Aufnahmen hier ablegen",
    hint: "Ton oder Video, eine Datei, viele oder ein Ordner. Sie bleiben auf diesem Rechner.",
    choose: "Dateien wählen…",
    sample: "Mit der Beispielaufnahme ausprobieren",
  },

  drag: (files) => (files === 1 ? "Loslassen, um 1 Datei zu verschriftlichen" : `Loslassen, um ${files} Dateien zu verschriftlichen`),

  settings: {
    label: "Einstellungen für die nächste Aufnahme",
    model: "Modell",
    noModel: "Keines",
    chooseModel: "Ordner eines Modells wählen…",
    demonstration: "Vorführung",
    language: "Sprache",
    detect: "Erkennen",
    translate: "Ins Englische",
  },

  engine: {
    label: "Rechengerät",
    starting: "Gerät wird gesucht…",
    missing: "Rechenprogramm nicht verfügbar",
    cpu: (threads) => (threads === 1 ? "Prozessor, 1 Thread" : `Prozessor, ${threads} Threads`),
    why: "Warum der Prozessor",
    memory: (free, total) => `${gigabytes(free)} von ${gigabytes(total)} frei`,
    noFfmpeg: "ffmpeg ist nicht installiert: Einige seltene Formate lassen sich nicht öffnen.",
    version: (version) => `Rechenprogramm ${version}`,
    again: "Erneut suchen",
    close: "Schließen",
  },

  queue: {
    stopAll: "Alle anhalten",
    saveAll: (files, format) => `Alle ${files} als .${format} speichern`,
    removeSaved: "Gespeicherte entfernen",
  },

  demonstration: {
    title: "Nur das Vorführmodell ist vorhanden",
    text: "Es ist winzig und zeigt, wie Steno arbeitet. Auf seinen Text ist kein Verlass. Wählen Sie für eigene Aufnahmen ein richtiges Whisper-Modell: den Ordner mit config.json und den .safetensors-Dateien.",
    waiting: (files) => (files === 1 ? "1 Aufnahme wartet." : `${files} Aufnahmen warten.`),
    choose: "Ordner eines Modells wählen…",
    anyway: "Trotzdem das Vorführmodell nehmen",
    banner: "Vom Vorführmodell geschrieben: Auf diesen Text ist kein Verlass.",
  },

  state: (job) => {
    switch (job.state) {
      case "held":
        return "Wartet auf ein Modell";
      case "waiting":
        return "Wartet";
      case "running":
        return job.progress ? de.stage(job.progress) : "Beginnt";
      case "stopping":
        return "Hält an";
      case "finished":
        return "Fertig";
      case "failed":
        return "Fehlgeschlagen";
      case "cancelled":
        return "Angehalten";
    }
  },

  stage: (progress) => {
    switch (progress.stage) {
      case "load_model":
        return "Modell wird geladen";
      case "preprocess":
        return "Aufnahme wird gelesen";
      case "transcribe":
        return "Wird verschriftlicht";
      case "diarize":
        return "Sprecher werden unterschieden";
      case "align":
        return "Wörter werden zeitlich zugeordnet";
    }
  },

  progress: {
    label: "Fortschritt",
    position: (position, duration) => (duration === null ? clock(position) : `${clock(position)} von ${clock(duration)}`),
    speed: (speed) => `${speed.toFixed(speed < 10 ? 1 : 0).replace(".", ",")}× Echtzeit`,
    left: (seconds) => `noch ${span(seconds, "de")}`,
  },

  job: {
    stop: "Anhalten",
    retry: "Erneut versuchen",
    remove: "Aus der Liste entfernen",
    stopFile: (name) => `${name} anhalten`,
    retryFile: (name) => `${name} erneut versuchen`,
    removeFile: (name) => `${name} aus der Liste entfernen`,
    sample: "Beispielaufnahme",
  },

  transcript: {
    label: "Transkript",
    waiting: "Die Wörter erscheinen hier, sobald die ersten geschrieben sind.",
    waitingTurn: "Diese Aufnahme ist an der Reihe, sobald die davor fertig sind.",
    none: "In dieser Aufnahme wurde keine Sprache gefunden.",
    nothing: "Bis zum Anhalten wurde nichts geschrieben.",
    partial: "Vor dem Ende angehalten: Das wurde bis dahin geschrieben.",
    failedPartial: "Das wurde bis dahin geschrieben.",
    newest: "Zum Neuesten",
    copy: "Kopieren",
    search: "Suchen",
    searchIn: "In diesem Transkript suchen",
    matches: (at, all) => (all === 0 ? "Nichts gefunden" : `${at} von ${all}`),
    next: "Nächste Stelle",
    previous: "Vorige Stelle",
    copied: "Der Text wurde kopiert.",
    doubtful: (reasons) => `Zweifelhaft: ${reasons.map((reason) => de.suspicion[reason]).join(", ")}`,
    gaps: (gaps) =>
      gaps === 1 ? "An 1 Stelle war Sprache zu hören, aber ohne Text:" : `An ${gaps} Stellen war Sprache zu hören, aber ohne Text:`,
    notices: "Hinweise zu diesem Transkript",
  },

  suspicion: {
    loop: "immer wieder dieselben Wörter",
    too_fast: "mehr Wörter, als jemand in der Zeit spricht",
    over_silence: "Text, wo keine Sprache zu hören war",
    low_confidence: "das Modell war unsicher",
  },

  save: {
    label: "Speichern",
    beside: (format) => `.${format} speichern`,
    besideHint: (folder) => `Speichert neben der Aufnahme, in ${folder}`,
    as: "Speichern unter…",
    format: "Dateiformat",
    formats: {
      txt: "Text, ein Abschnitt je Zeile",
      srt: "Untertitel (SubRip)",
      vtt: "Untertitel (WebVTT)",
      json: "Alles, für andere Programme",
    },
    done: (file) => `Gespeichert: ${file}`,
    doneAll: (files) => (files === 1 ? "1 Datei wurde gespeichert." : `${files} Dateien wurden gespeichert.`),
    replace: "Ersetzen",
  },

  closing: {
    title: "Steno schließen?",
    unfinished: (files) =>
      files === 1 ? "1 Aufnahme ist nicht fertig; sie wird angehalten." : `${files} Aufnahmen sind nicht fertig; sie werden angehalten.`,
    unsaved: (files) =>
      files === 1 ? "1 Transkript wurde nicht gespeichert; sein Text geht verloren." : `${files} Transkripte wurden nicht gespeichert; ihr Text geht verloren.`,
    stay: "Bleiben",
    close: "Schließen",
  },

  dialogs: { files: "Aufnahmen wählen", model: "Ordner eines Modells wählen", save: "Transkript speichern" },

  toasts: { label: "Meldungen", dismiss: "Meldung schließen" },

  errors: {
    file_not_found: "Datei nicht gefunden",
    file_unreadable: "Datei nicht lesbar",
    not_a_file: "Keine Datei",
    file_empty: "Leere Datei",
    no_audio_track: "Kein Ton in dieser Datei",
    no_such_track: "Keine solche Tonspur",
    unknown_format: "Keine Aufnahme",
    unsupported_codec: "Format nicht unterstützt",
    needs_ffmpeg: "Dieses Format braucht ffmpeg",
    audio_broken: "Beschädigte Aufnahme",
    model_not_found: "Kein Modell",
    model_invalid: "Kein brauchbares Modell",
    model_unsupported: "Modell nicht unterstützt",
    language_unknown: "Unbekannte Sprache",
    bad_settings: "Diese Einstellungen passen nicht",
    device_unavailable: "Gerät nicht verfügbar",
    out_of_memory: "Zu wenig Speicher",
    network_off: "Das Netz ist abgeschaltet",
    network_failed: "Keine Verbindung",
    download_refused: "Herunterladen nicht erlaubt",
    model_corrupt: "Beschädigtes Modell",
    model_in_use: "Am Modell wird gearbeitet",
    disk_full: "Datenträger voll",
    output_exists: "Eine solche Datei gibt es schon",
    output_unwritable: "Dort lässt sich nicht speichern",
    engine_not_found: "Rechenprogramm nicht gefunden",
    engine_failed: "Das Rechenprogramm hat unerwartet aufgehört",
    engine_silent: "Das Rechenprogramm antwortet nicht",
    protocol_mismatch: "Rechenprogramm einer anderen Version",
    cancelled: "Angehalten",
    internal: "In Steno ist etwas schiefgegangen",
  },
};
