import { clock, gigabytes, span } from "../ui/format";
import type { Text } from "./en";

export const de: Text = {
  app: "Steno",
  language: "de",
  recordings: "Aufnahmen",
  addFiles: "Hinzufügen…",

  home: {
    title: "Aufnahmen hier ablegen",
    hint: "Ton oder Video, eine Datei, viele oder ein Ordner. Sie bleiben auf diesem Rechner.",
    choose: "Dateien wählen…",
    sample: "Mit der Beispielaufnahme ausprobieren",
  },

  views: { label: "Teile des Fensters", recordings: "Aufnahmen", models: "Modelle", settings: "Einstellungen" },

  device: {
    room: (free, total) => `${free} von ${total} frei für Steno`,
    unknown: "Wie viel Speicher frei ist, ist nicht bekannt.",
  },

  models: {
    title: "Gerät und Modell",
    recommended: "Empfohlen",
    demonstration: "Zeigt, wie Steno arbeitet. Auf seinen Text ist kein Verlass: nicht für eigene Aufnahmen.",
    parameters: (count) => `${count} Parameter`,
    multilingual: "viele Sprachen",
    english: "nur Englisch",
    disk: (size) => `${size} auf der Platte`,
    needs: (size, free, precision) => `braucht ${size} von ${free} (${precision})`,
    best: "Das beste der vorhandenen",
    unsuited: "Nicht für die eingestellte Sprache und Aufgabe",
    fit: { comfortable: "Passt", tight: "Passt gerade so", does_not_fit: "Passt nicht" },
    missing: (size) => `${size} fehlen`,
    none: "Es ist kein Modell installiert. Wählen Sie den Ordner eines Whisper-Modells.",
    again: "Erneut prüfen",
  },

  offers: {
    title: "Modelle zum Herunterladen",
    hint: "Heruntergeladen wird nur, wenn Sie den Knopf drücken.",
    folder: (folder, free) => `Sie kommen nach ${folder}${free === null ? "" : `, wo ${free} frei sind`}.`,
    offline: "Das Netz ist in den Einstellungen abgeschaltet.",
    off: "Netz aus",
    begun: "Unterwegs und unfertig",
    download: "Herunterladen",
    size: (size) => `${size} herunterzuladen`,
    interrupted: (done, total) => (total ? `Unterbrochen bei ${done} von ${total}` : "Unterbrochen"),
    damaged: (files) => `Beschädigt: ${files}`,
    slow: "Langsam ohne Grafikkarte",
    repair: "Reparieren",
    gone: "Es lässt sich nicht herunterladen: Entfernen Sie es, und importieren Sie es neu.",
    unknown: "Was es braucht, ist bekannt, sobald es da ist.",
    disk: "Auf dem Datenträger ist nicht genug Platz.",
    remove: "Entfernen",
    keep: "Behalten",
    removeModel: (model) => `${model} entfernen`,
    removeTitle: (model) => `${model} entfernen?`,
    removeText: "Seine Dateien werden von diesem Rechner gelöscht. Es lässt sich erneut herunterladen oder importieren.",
    importFolder: "Ordner importieren…",
    importFile: "Datei importieren…",
    inPlace: "Ordner an seinem Ort benutzen…",
    importHint: "Eine Kopie wird gemacht und geprüft: ein Ordner mit config.json, tokenizer.json und .safetensors-Dateien, eine .gguf-Datei oder eine ggml-Datei von whisper.cpp.",
  },

  transfers: {
    stage: {
      look: "Es wird gefragt, was es gibt",
      download: "Wird heruntergeladen",
      copy: "Wird kopiert",
      wait: "Wartet auf die Verbindung",
      verify: "Was kam, wird geprüft",
      install: "Fast fertig",
    },
    paused: "Angehalten",
    bytes: (done, total) => `${done} von ${total}`,
    speed: (bytes) => `${bytes} je s`,
    again: (seconds) => `erneut in ${seconds} s`,
    pause: "Anhalten",
    resume: "Weiter",
    cancel: "Abbrechen",
    retry: "Erneut versuchen",
    dismiss: "Schließen",
    remedies: {
      network_off: "Erlauben Sie das Netz in den Einstellungen.",
      network_failed: "Prüfen Sie die Verbindung und versuchen Sie es erneut: Es geht weiter, wo es aufgehört hat.",
      download_refused: "Wenn das Modell ein Konto verlangt, stimmen Sie auf seiner Seite den Bedingungen zu und setzen HF_TOKEN auf ein Token von Ihnen.",
      model_corrupt: "Versuchen Sie es erneut; hilft das nicht, verändert etwas auf dem Weg hierher die Dateien.",
      model_in_use: "Warten Sie, bis das andere Programm damit fertig ist.",
      disk_full: "Schaffen Sie Platz und versuchen Sie es erneut: Es geht weiter, wo es aufgehört hat.",
    },
  },

  memory: {
    title: "Speicher",
    starting: "Was die Arbeit an Speicher braucht, erscheint hier mit dem ersten Schritt.",
    none: "Vom Speicher dieser Aufnahme wurde nichts festgehalten.",
    device: "Speicher von",
    kinds: { gpu: "Grafikkarte", host: "Arbeitsspeicher" },
    chart: (kind) => `${kind} im Lauf der Zeit. Die Pfeiltasten gehen von Messpunkt zu Messpunkt; eine Tabelle steht darunter.`,
    ours: "Von Steno",
    others: "Andere Programme",
    free: "Frei",
    limit: "Grenze",
    peak: "Höchststand, vorhergesagt und gemessen",
    predicted: "Vorhergesagt",
    measured: "Gemessen",
    ofPredicted: (share) => `${share} der Vorhersage`,
    before: "schon vorher belegt",
    work: "Zwischenspeicher, Aktivierungen, Arbeitsbereich",
    parts: { context: "Programm", weights: "Gewichte", caches: "Zwischenspeicher", activations: "Aktivierungen", workspace: "Arbeitsbereich" },
    stagesTitle: "Schritte",
    stage: "Schritt",
    beforeStage: "Vorher",
    highest: "Höchststand",
    afterStage: "Danach",
    recovered: "Zurückgegeben",
    held: "bleibt geladen",
    notRecovered: "Es kam weniger zurück als nötig",
    stages: {
      preprocess: "Ton",
      speech_model: "Sprachmodell",
      transcribe: "Verschriftlichung",
      speaker_model: "Sprechermodell",
      diarize: "Sprecher",
      align: "Zuordnung",
    },
    table: (samples) => (samples === 1 ? "1 Messpunkt als Tabelle" : `${samples} Messpunkte als Tabelle`),
    latest: (samples) => `Die letzten ${samples}; die gespeicherte Tabelle hat alle.`,
    time: "Zeit",
    checkpoint: "Messpunkt",
    unknown: "nicht bekannt",
    saveTable: "Als csv speichern",
    savePicture: "Als Bild speichern",
  },

  severity: { info: "Hinweis", degraded: "In geringerer Form", failed: "Fehlt" },

  preferences: {
    title: "Einstellungen",
    look: "Aussehen",
    theme: "Farben",
    themes: { system: "Wie das System", light: "Hell", dark: "Dunkel" },
    language: "Sprache",
    systemLanguage: "Wie das System",
    memory: "Speicher und Rechenprogramm",
    network: "Netz",
    hint: "Für Aufnahmen, die ab jetzt begonnen werden. Sie stehen in der Datei, die auch die Kommandozeile liest.",
    unset: "Nicht gesetzt",
    overruled: (value) => `Die Umgebung sagt ${value}; das geht vor.`,
    wrong: "Die Einstellungsdatei ist nicht brauchbar; es gelten die Vorgaben.",
    switches: { true: "Ja", false: "Nein" },
    profiles: { safe: "Sicher: kleine Stapel, oft aufgeräumt", fast: "Schnell: so viel auf einmal, wie passt" },
    priorities: { low: "Niedrig", normal: "Gewöhnlich" },
    kept: { model: "das Modell", precision: "die Genauigkeit", gpu: "die Grafikkarte", speakers: "die Sprecher" },
    names: {
      memory_profile: ["Profil", "Mehrere der anderen auf einmal"],
      batch_size: ["Fenster auf einmal", "Eine Zahl ab 1; nicht gesetzt: so viele wie passen"],
      speaker_batch_size: ["Fenster der Sprechermodelle auf einmal", "Eine Zahl ab 1; nicht gesetzt: so viele wie passen"],
      skip_speakers: ["Sprecher nie unterscheiden", null],
      fast_path: ["Auf Sprecher verzichten, wo der Speicher nicht reicht", null],
      memory_fraction: ["Teil des freien Speichers für einen Puffer", "Über 0 und bis 1"],
      trim_every: ["Stapel zwischen Blicken auf Zerstückelung", "0: nie"],
      renew_after: ["Dateien, bis das Rechenprogramm erneuert wird", "0: nie; ab dem nächsten Start"],
      memory_limit: ["Höchstens vom Gerät, das rechnet", "Etwa 6GiB"],
      ram_limit: ["Höchstens vom Arbeitsspeicher", "Etwa 4GiB"],
      keep: ["Nie aufgeben", "Was nicht geändert werden darf, um Speicher zu sparen"],
      precision: ["Wie Gewichte gehalten werden", "f32, f16, bf16, q8_0 …; nicht gesetzt: wie gespeichert"],
      hf_endpoint: ["Woher Modelle geladen werden", "Eine Adresse; nicht gesetzt: huggingface.co"],
      proxy: ["Proxy für Downloads", "Etwa http://proxy:3128"],
      offline: ["Das Netz nie benutzen", null],
      threads: ["Threads zum Rechnen", "Eine Zahl ab 1; nicht gesetzt: einer je Kern"],
      priority: ["Vorrang des Rechenprogramms", "Niedrig lässt anderen Programmen den Prozessor; ab dem nächsten Start"],
    },
    folders: "Ordner der Modelle",
    help: "Hilfe bei Problemen",
    diagnostics: "Diagnose kopieren",
    diagnosticsHint: "Programm, Rechenprogramm, Karten, Modelle und Einstellungen für einen Fehlerbericht. Nichts von Ihren Aufnahmen und deren Text.",
    diagnosticsShow: "Was darin steht",
    copied: "Die Diagnose wurde kopiert.",
  },

  connections: {
    title: "Wofür das Netz benutzt wurde",
    none: "Es wurde nie benutzt.",
    at: "Zeit",
    host: "Rechner",
    bytes: "Menge",
    why: "Wofür",
    unfinished: "nicht beendet",
    again: "Erneut nachsehen",
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
    pause: "Warteschlange anhalten",
    resume: "Weiterarbeiten",
    paused: "Angehalten: Nichts Neues wird begonnen",
    saveAll: (files) => `Alle ${files} speichern`,
    removeSaved: "Gespeicherte entfernen",
  },

  decoding: {
    more: "Mehr…",
    label: "Weitere Einstellungen",
    beams: "Nach dem wahrscheinlichsten Text suchen",
    beamsHint: "Mehr dauert länger",
    beamsOf: (beams) => (beams === 1 ? "schnell" : `${beams} zugleich`),
    severalLanguages: "Mehrere Sprachen in einer Aufnahme",
    words: "Namen und Wörter, die vorkommen",
    wordsHint: "Durch Kommas getrennt",
  },

  own: {
    title: "Einstellungen dieser Aufnahme",
    differ: "Eigene Einstellungen",
    same: "Wie oben eingestellt",
    reset: "Die oben nehmen",
    all: (files) => (files === 1 ? "Für die 1 wartende nehmen" : `Für alle ${files} wartenden nehmen`),
  },

  presets: {
    title: "Vorlagen",
    none: "Die Einstellungen oben lassen sich unter einem Namen behalten und wieder nehmen.",
    name: "Name der Vorlage",
    save: "Behalten",
    apply: (name) => `${name} für neue Aufnahmen nehmen`,
    applyToWaiting: (name) => `${name} für alle wartenden Aufnahmen nehmen`,
    waiting: "Alle wartenden",
    use: "Nehmen",
    rename: (name) => `${name} umbenennen`,
    delete: (name) => `${name} löschen`,
    missing: (model) => `Ihr Modell ist nicht da: ${model}`,
    choose: "Eine Vorlage nehmen…",
    saved: (name) => `Die Einstellungen wurden als ${name} behalten.`,
  },

  watched: {
    title: "Überwachte Ordner",
    hint: "Neue Aufnahmen darin werden transkribiert, sobald sie vollständig sind, und ihr Text wird geschrieben. Was einmal transkribiert wurde, wird nicht noch einmal genommen.",
    none: "Kein Ordner wird überwacht.",
    add: "Einen Ordner überwachen…",
    present: "Auch transkribieren, was jetzt darin liegt",
    formats: "Texte werden geschrieben als",
    noFormat: "Texte werden nicht geschrieben.",
    place: "Wohin",
    beside: "Neben die Aufnahme",
    choose: "Einen Ordner wählen…",
    stop: (folder) => `${folder} nicht mehr überwachen`,
    stopShort: "Nicht mehr überwachen",
    line: (folders) => (folders === 1 ? "1 Ordner wird überwacht" : `${folders} Ordner werden überwacht`),
    gone: (folders) => (folders === 1 ? "1 überwachter Ordner ist nicht lesbar" : `${folders} überwachte Ordner sind nicht lesbar`),
    from: "aus einem überwachten Ordner",
    dialog: "Ordner zum Überwachen wählen",
    placeDialog: "Ordner für die Texte wählen",
  },

  work: {
    title: "Während der Arbeit",
    stayAwake: "Den Rechner wach halten",
    stayAwakeHint: "Er schläft nicht von selbst ein, solange transkribiert wird; der Bildschirm darf dunkel werden.",
    notify: "Sagen, wenn alles fertig ist",
    notifyHint: "Eine Meldung der Arbeitsfläche, solange dieses Fenster nicht vorn ist. Sie nennt weder Aufnahme noch Text.",
    ended: (finished) => (finished === 1 ? "1 Aufnahme ist fertig" : `${finished} Aufnahmen sind fertig`),
    failed: (failed) => (failed === 0 ? "" : failed === 1 ? "1 ist gescheitert" : `${failed} sind gescheitert`),
  },

  order: {
    label: "Reihenfolge",
    given: "Wie gegeben",
    shortest: "Die kürzeste zuerst",
    retryFailed: (files) => `${files} gescheiterte erneut versuchen`,
  },

  demonstration: {
    title: "Nur das Vorführmodell ist vorhanden",
    text: "Es ist winzig und zeigt, wie Steno arbeitet. Auf seinen Text ist kein Verlass. Ihre eigenen Aufnahmen warten auf ein richtiges Whisper-Modell.",
    waiting: (files) => (files === 1 ? "1 Aufnahme wartet." : `${files} Aufnahmen warten.`),
    choose: "Von der Platte importieren…",
    download: (model) => `${model} herunterladen`,
    looking: "Ein Modell, das zu diesem Rechner passt, wird gesucht…",
    downloadHint: (size, time) => `${size}, etwa ${time} bei 50 Mbit/s. Es wird einmal heruntergeladen; Ihre Aufnahmen bleiben auf diesem Rechner.`,
    downloading: (model) => `${model} ist unterwegs. Ihre Aufnahmen beginnen, sobald es da ist.`,
    offline: "Das Netz ist in den Einstellungen abgeschaltet; darum lässt sich nichts herunterladen.",
    chosen: "Gewählt ist das Vorführmodell",
    take: (model) => `${model} nehmen`,
    others: "Andere Modelle…",
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
    moveFile: (name) => `${name} verschieben: ziehen oder Pfeiltasten`,
    parts: "Teile dieser Aufnahme",
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
    again: "Noch einmal transkribieren",
    againAt: (from, to) => `${from}–${to} noch einmal transkribieren`,
    againRuns: "Wird noch einmal transkribiert …",
    goTo: (from, to) => `Text bei ${from}–${to} zeigen`,
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
    as: "Exportieren…",
    format: "Dateiformate",
    formats: {
      txt: "Text, ein Abschnitt je Zeile",
      srt: "Untertitel (SubRip)",
      vtt: "Untertitel (WebVTT)",
      json: "Alles, für andere Programme",
      md: "Markdown, in Absätzen",
      html: "Eine Seite für den Browser",
      docx: "Für Word und LibreOffice",
      csv: "Eine Tabelle für Tabellenprogramme",
      tsv: "Eine Tabelle wie von openai/whisper",
      whisperx: "json wie von WhisperX",
    },
    several: (formats) => `${formats} Dateien speichern`,
    subtitles: "Untertitel",
    shaped: "Kurze Zeilen, die auf einen Bildschirm passen",
    wordTimes: "Markieren, wann jedes Wort gesagt wird (vtt)",
    elsewhere: "Speichern unter…",
    besideRecording: "Neben der Aufnahme speichern",
    done: (file) => `Gespeichert: ${file}`,
    doneAll: (files) => (files === 1 ? "1 Datei wurde gespeichert." : `${files} Dateien wurden gespeichert.`),
    replace: "Ersetzen",
  },

  closing: {
    title: "Steno schließen?",
    unfinished: (files) =>
      files === 1 ? "1 Aufnahme ist nicht fertig; sie geht beim nächsten Start weiter." : `${files} Aufnahmen sind nicht fertig; sie gehen beim nächsten Start weiter.`,
    unsaved: (files) =>
      files === 1 ? "1 Transkript wurde nicht gespeichert; sein Text geht verloren." : `${files} Transkripte wurden nicht gespeichert; ihr Text geht verloren.`,
    stay: "Bleiben",
    close: "Schließen",
  },

  dialogs: {
    files: "Aufnahmen wählen",
    model: "Ordner eines Modells wählen",
    modelFile: "Datei eines Modells wählen",
    save: "Transkript speichern",
    folder: "Ordner für die Transkripte wählen",
    chart: "Speicher dieser Arbeit speichern",
  },

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
