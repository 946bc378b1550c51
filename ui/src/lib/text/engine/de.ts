import type { CardProblem, Pinned, Relief, Stage, Trouble } from "../../generated/contract";
import { clock, languageName, list, memorySize, percent, round } from "../../ui/format";
import type { EngineText } from "./en";

const MOMENTS: Record<Stage, string> = {
  preprocess: "Beim Lesen der Aufnahme",
  speech_model: "Beim Laden des Modells",
  transcribe: "Beim Transkribieren",
  speaker_model: "Beim Laden des Sprechermodells",
  diarize: "Beim Erkennen der Sprecher",
  align: "Beim Zuordnen der Wörter",
  embedding_model: "Beim Laden des Einbettungsmodells",
  embed: "Beim Einbetten der Texte",
  adapt: "Beim Anpassen des Modells",
};

const TROUBLES: Record<Trouble, string> = {
  refused: "reichte der Speicher nicht",
  out_of_memory: "ging der Speicher aus",
  died: "ging der Engine der Speicher aus, und sie wurde beendet",
  killed: "beendete das System die Engine mehrmals",
  device_error: "fiel das Gerät aus",
  no_code: "konnte die Engine auf dieser Grafikkarte nicht rechnen",
};

const PINNED: Record<Pinned, string> = { model: "„Modell“", precision: "„Präzision“", gpu: "„Grafikkarte“", speakers: "„Sprecher“" };

const happened = (trouble: Trouble, stage: Stage) => `${MOMENTS[stage]} ${TROUBLES[trouble]}`;
const step = (trouble: Trouble, stage: Stage, done: string) => `${happened(trouble, stage)}: ${done}`;

function cardProblem(problem: CardProblem): string {
  switch (problem.by) {
    case "capability":
      return `${problem.card} hat die Compute Capability ${problem.found}, und diese Engine ist für ${list(problem.built_for)} gebaut. Installieren Sie eine, die für diese Karte gebaut ist.`;
    case "code":
      return `Der NVIDIA-Treiber nimmt den Code dieser Engine nicht an (${problem.detail}). Aktualisieren Sie den Treiber, oder installieren Sie eine Engine, die für diese Karte gebaut ist.`;
    case "result":
      return `Die Operation „${problem.operation}“ ergab ein falsches Ergebnis. Aktualisieren Sie den NVIDIA-Treiber, oder installieren Sie eine Engine, die für diese Karte gebaut ist.`;
  }
}

function relief(told: Relief): string {
  switch (told.by) {
    case "others":
      return `Andere Programme belegen ${memorySize(told.bytes)}: Am meisten hilft es, eines davon zu schließen.`;
    case "batch":
      return `Ein kleinerer Stapel (jetzt ${told.windows}) braucht weniger.`;
    case "precision":
      return `Dasselbe Modell in ${told.precision} braucht weniger.`;
    case "model":
      return `Ein kleineres Modell (${told.model}) braucht weniger.`;
    case "nothing":
      return "Es ist nichts fehlgeschlagen. Geht der Speicher aus, läuft der Auftrag mit weniger weiter.";
  }
}

export const engine: EngineText = {
  details: "Details",
  batch: (number) => `Stapel ${number}`,
  checkpoints: {
    pipeline_start: "Beginn des Auftrags",
    before_preprocess: "Vor dem Lesen der Aufnahme",
    after_preprocess: "Nach dem Lesen der Aufnahme",
    before_audio_release: "Vor dem Freigeben der Tonpuffer",
    after_audio_release: "Nach dem Freigeben der Tonpuffer",
    before_speech_model_load: "Vor dem Laden des Modells",
    after_speech_model_load: "Nach dem Laden des Modells",
    before_transcribe: "Vor der Transkription",
    batch: "Stapel",
    after_transcribe: "Nach der Transkription",
    before_decoding_release: "Vor dem Freigeben der Dekodierpuffer",
    after_decoding_release: "Nach dem Freigeben der Dekodierpuffer",
    before_speech_model_release: "Vor dem Entladen des Modells",
    after_speech_model_release: "Nach dem Entladen des Modells",
    before_speaker_model_load: "Vor dem Laden des Sprechermodells",
    after_speaker_model_load: "Nach dem Laden des Sprechermodells",
    before_diarize: "Vor dem Erkennen der Sprecher",
    after_diarize: "Nach dem Erkennen der Sprecher",
    before_waveform_release: "Vor dem Freigeben des Tons",
    after_waveform_release: "Nach dem Freigeben des Tons",
    before_speaker_model_release: "Vor dem Entladen des Sprechermodells",
    after_speaker_model_release: "Nach dem Entladen des Sprechermodells",
    before_align: "Vor dem Zuordnen der Wörter",
    after_align: "Nach dem Zuordnen der Wörter",
    before_alignment_release: "Vor dem Freigeben der Zuordnungspuffer",
    after_alignment_release: "Nach dem Freigeben der Zuordnungspuffer",
    before_embedding_model_load: "Vor dem Laden des Einbettungsmodells",
    after_embedding_model_load: "Nach dem Laden des Einbettungsmodells",
    before_embed: "Vor dem Einbetten der Texte",
    after_embed: "Nach dem Einbetten der Texte",
    before_embedding_release: "Vor dem Freigeben der Einbettungspuffer",
    after_embedding_release: "Nach dem Freigeben der Einbettungspuffer",
    before_embedding_model_release: "Vor dem Entladen des Einbettungsmodells",
    after_embedding_model_release: "Nach dem Entladen des Einbettungsmodells",
    before_adapt: "Vor dem Anpassen",
    before_epoch: "Vor Durchgang",
    after_epoch: "Nach Durchgang",
    after_adapt: "Nach dem Anpassen",
    before_adaptation_release: "Vor dem Freigeben der Anpassungspuffer",
    after_adaptation_release: "Nach dem Freigeben der Anpassungspuffer",
    before_recovery: "Vor dem Zurückgewinnen von Speicher",
    after_recovery: "Nach dem Zurückgewinnen von Speicher",
    before_trim: "Vor dem Freigeben von ungenutztem Speicher",
    after_trim: "Nach dem Freigeben von ungenutztem Speicher",
    before_final_cleanup: "Vor dem abschließenden Aufräumen",
    final_cleanup: "Abschließendes Aufräumen",
  },
  notices: {
    "memory.elevated": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "Der Speicher der Grafikkarte" : "Der Arbeitsspeicher"} ist zu ${percent(share)} belegt. ${relief(told)}`,
    "memory.critical": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "Der Speicher der Grafikkarte" : "Der Arbeitsspeicher"} ist fast voll (${percent(share)}). ${relief(told)}`,
    "memory.occupied": ({ kind, used, total, ours, others, programs }) => {
      const named = programs.map(({ name, pid, bytes }) => `${name ?? "Prozess"} [${pid}] ${memorySize(bytes)}`);
      return (
        `${memorySize(used)} von ${memorySize(total)} ${kind === "gpu" ? "Grafikspeicher" : "Arbeitsspeicher"} waren belegt, bevor etwas geladen wurde: ` +
        `Steno ${memorySize(ours)}, andere Programme ${memorySize(others)}${named.length > 0 ? ` (${list(named)})` : ""}.`
      );
    },
    "memory.not_recovered": ({ stage, taken, share, remaining, fragmented }) =>
      `${MOMENTS[stage]} belegter Speicher wurde nicht vollständig freigegeben: ${percent(share)} von ${memorySize(taken)} wurden freigegeben, ${memorySize(remaining)} ` +
      (fragmented ? "sind frei, aber fragmentiert." : "sind noch belegt."),
    "memory.release_failed": () => "Speicher konnte nicht freigegeben werden. Die Engine wird neu gestartet; das Ergebnis ist davon nicht betroffen.",
    "memory.leak": ({ grown, files }) => `Über die letzten ${files} Dateien wuchs der Speicherverbrauch um ${memorySize(grown)}. Vor der nächsten Datei wird die Engine neu gestartet.`,
    "memory.fragmentation": ({ sign }) =>
      sign.by === "idle"
        ? `${memorySize(sign.reserved)} sind reserviert, davon nur ${memorySize(sign.allocated)} in Gebrauch: Der Speicher ist fragmentiert. Ungenutzter Speicher wird freigegeben; hilft das nicht, wird die Engine neu gestartet.`
        : `${memorySize(sign.asked)} konnten nicht belegt werden, obwohl ${memorySize(sign.free)} frei waren: Der Speicher ist fragmentiert. Die Engine wird neu gestartet.`,
    "memory.spike": ({ before, after, peak, held }) =>
      `Zwischen „${engine.checkpoints[before]}“ und „${engine.checkpoints[after]}“ stieg der Verbrauch kurz auf ${memorySize(peak)} und fiel auf ${memorySize(held)} zurück. Ein kleinerer Stapel senkt solche Spitzen.`,
    "memory.unavailable": () => "Der Speicherverbrauch kann nicht gemessen werden.",
    "memory.retried": ({ stage, trouble }) => step(trouble, stage, "Ungenutzter Speicher wurde freigegeben, derselbe Schritt wird wiederholt. Das Ergebnis bleibt gleich."),
    "memory.engine_renewed": ({ stage, trouble }) =>
      step(trouble, stage, "Die Engine wurde neu gestartet, derselbe Schritt wird wiederholt. Das Ergebnis bleibt gleich."),
    "memory.batch_halved": ({ stage, trouble, speakers, from, to }) =>
      step(trouble, stage, `Der ${speakers ? "Stapel für Sprecher" : "Stapel"} wurde von ${from} auf ${to} halbiert. Das dauert länger; das Ergebnis bleibt gleich.`),
    "memory.precision_lowered": ({ stage, trouble, model, from, to }) =>
      step(trouble, stage, `${model} läuft in ${to} statt ${from} weiter. ${stage === "adapt" ? "Das Gelernte kann etwas anders ausfallen." : "Ab hier können einzelne Wörter anders ausfallen."}`),
    "memory.smaller_model": ({ stage, trouble, from, to }) =>
      step(trouble, stage, `${to} läuft anstelle von ${from} weiter. Ab hier ist mit mehr Fehlern zu rechnen.`),
    "memory.moved_to_cpu": ({ stage, trouble }) => step(trouble, stage, "Der Auftrag läuft auf dem Prozessor weiter. Ab hier dauert es ein Mehrfaches."),
    "memory.speakers_skipped": ({ stage, trouble }) => step(trouble, stage, "Sprecher werden nicht erkannt. Im Transkript steht nicht, wer spricht."),
    "memory.gave_up": ({ stage, trouble, kept }) =>
      `${happened(trouble, stage)}, und es gibt nichts Kleineres mehr. Schließen Sie andere Programme, oder ` +
      (kept.length === 0 ? "wählen Sie ein kleineres Modell." : `deaktivieren Sie unter „Immer beibehalten“ in den Einstellungen: ${list(kept.map((one) => PINNED[one]))}.`),
    "memory.will_not_fit": ({ model, precision }) => `${model} (${precision}) passt nicht in den freien Speicher.`,
    "audio.truncated": ({ decoded, declared }) =>
      `Die Datei ist beschädigt oder abgeschnitten: Nur ${clock(decoded)}${declared === null ? "" : ` von ${clock(declared)}`} ließen sich dekodieren.`,
    "audio.damaged": ({ silenced }) => `Teile der Datei sind beschädigt${silenced ? "; an ihrer Stelle ist Stille" : ""}.`,
    "audio.phase": ({ channel, decibels }) =>
      `Die Kanäle löschen einander aus: Gemischt wären sie ${round(decibels)} dB leiser. Nur Kanal ${channel} wird transkribiert.`,
    "audio.mono": () => "Die Aufnahme hat nur einen Kanal; er wird transkribiert.",
    "audio.several_tracks": ({ tracks, taken, language }) =>
      `Die Datei hat ${tracks} Tonspuren; transkribiert wird Spur ${taken + 1}${language === null ? "" : ` (${languageName(language)})`}.`,
    "speakers.maybe_known": ({ speaker, person }) => `${speaker} ist vielleicht ${person}. Hören Sie hinein, und benennen Sie ${speaker} um, wenn das stimmt.`,
    "model.of_language": ({ language, probability, model }) =>
      `Die Sprache ist ${languageName(language)} (${percent(probability)}), daher transkribiert das Modell ${model} diese Aufnahme.`,
    "model.language_not_identified": () => "Die Sprache konnte nicht bestimmt werden, daher transkribiert das gewählte Modell.",
    "speakers.voices_unreadable": () => "Die bekannten Stimmen konnten nicht gelesen werden. Sprecher haben Nummern statt Namen.",
    "transcript.gaps": ({ gaps }) =>
      gaps === 1 ? "An 1 Stelle haben mehr als 2 s Sprache keinen Text." : `An ${gaps} Stellen haben mehr als 2 s Sprache keinen Text.`,
    "transcript.discarded": ({ passages }) =>
      passages === 1 ? "1 Stelle mit Text ohne Sprache wurde ausgelassen." : `${passages} Stellen mit Text ohne Sprache wurden ausgelassen.`,
    "transcript.again": ({ from, to, model }) => `Der Teil von ${clock(from)} bis ${clock(to)} wurde mit dem Modell ${model} erneut transkribiert.`,
    "transcript.again_failed": () => "Dieser Teil konnte nicht erneut transkribiert werden.",
    "engine.restarted": () => "Die Engine wurde unerwartet beendet und neu gestartet. Die Transkription wird an derselben Stelle fortgesetzt.",
    "engine.window_skipped": ({ times }) => `Die Engine wurde an dieser Stelle ${times}-mal beendet; die Stelle wird übersprungen.`,
    "device.waiting": ({ device }) => `Ein anderes Steno verwendet ${device === "cpu" ? "den Prozessor" : device}. Diese Aufnahme ist als nächste an der Reihe.`,
    "device.unusable": ({ device, problem }) => `${device} wird nicht verwendet; stattdessen rechnet der Prozessor. ${cardProblem(problem)}`,
    "journal.unavailable": () => "Der Fortschritt kann nicht gespeichert werden: Wird Steno jetzt beendet, beginnt diese Aufnahme von vorn.",
    "journal.file_changed": () => "Die Aufnahme wurde seit der Unterbrechung geändert: Sie beginnt von vorn.",
    "history.unavailable": () => "Das Transkript ist nicht im Verlauf: Es kann gespeichert, aber nicht bearbeitet werden.",
    "history.damaged": () => "Nur der Anfang dieses Transkripts konnte gelesen werden.",
    "export.failed": ({ file }) => `Das Transkript wurde nicht gespeichert${file === null ? "" : `: ${file}`}.`,
  },
  remedies: {
    file_not_found: "Sie wurde vielleicht verschoben, umbenannt oder gelöscht, oder ihr Datenträger ist nicht angeschlossen.",
    folder_not_found: "Er wurde vielleicht verschoben, umbenannt oder gelöscht, oder sein Datenträger ist nicht angeschlossen. Steno prüft es weiter.",
    file_unreadable: "Prüfen Sie die Rechte der Datei und den Datenträger.",
    not_a_file: "Wählen Sie eine Aufnahme oder einen Ordner.",
    file_empty: "Vielleicht wurde sie nicht vollständig kopiert.",
    file_incomplete: "Kopieren Sie die Datei noch einmal von ihrer Quelle: Der Index an ihrem Ende fehlt. Eine unterbrochene Aufnahme muss ein anderes Programm reparieren.",
    no_recordings: "Wählen Sie einen Ordner mit Audio- oder Videodateien.",
    no_audio_track: "Wählen Sie eine Datei mit Ton.",
    no_such_track: "Wählen Sie eine andere Tonspur.",
    unknown_format: "Wählen Sie eine Audio- oder Videodatei.",
    unsupported_codec: "Wandeln Sie die Aufnahme in WAV oder FLAC um, oder installieren Sie ffmpeg.",
    needs_ffmpeg: "Installieren Sie ffmpeg, oder wandeln Sie die Aufnahme in WAV oder FLAC um.",
    audio_broken: "Kopieren Sie die Datei noch einmal von ihrer Quelle, oder wandeln Sie sie in WAV oder FLAC um.",
    no_voice: "Wählen Sie eine Aufnahme, in der diese Person mehr spricht.",
    model_not_found: "Laden Sie ein Modell herunter, oder wählen Sie ein anderes.",
    model_invalid: "Laden oder importieren Sie das Modell noch einmal.",
    model_unsupported: "Wählen Sie ein Whisper-Modell.",
    language_unknown: "Wählen Sie eine andere Sprache oder ein Modell für viele Sprachen.",
    bad_settings: "Prüfen Sie die Einstellungen.",
    name_taken: "Dieser Name ist vergeben. Wählen Sie einen anderen.",
    name_missing: "Geben Sie einen Namen ein.",
    recording_gone: "Fügen Sie die Aufnahme noch einmal hinzu.",
    transcript_gone: "Öffnen Sie es aus dem Verlauf.",
    bad_pattern: "Berichtigen Sie den Ausdruck, oder suchen Sie nach einfachem Text.",
    device_unavailable: "Wählen Sie ein anderes Gerät, oder aktualisieren Sie seinen Treiber.",
    out_of_memory: "Schließen Sie andere Programme, oder wählen Sie ein kleineres Modell.",
    network_off: "Erlauben Sie den Netzwerkzugriff in den Einstellungen.",
    network_failed: "Prüfen Sie die Verbindung und versuchen Sie es erneut.",
    download_refused: "Falls das Modell ein Konto erfordert, stimmen Sie auf seiner Seite den Bedingungen zu und setzen Sie HF_TOKEN auf Ihr Token.",
    server_refused: "Geben Sie in den Einstellungen ein Token des anderen Rechners ein.",
    server_busy: "Steno versucht es automatisch erneut.",
    recording_refused: "Erlauben Sie auf dem anderen Rechner größere Aufnahmen, oder transkribieren Sie sie auf diesem Computer.",
    model_corrupt: "Laden Sie das Modell noch einmal herunter.",
    model_in_use: "Warten Sie, bis das andere Programm damit fertig ist.",
    disk_full: "Geben Sie Speicherplatz frei, und versuchen Sie es erneut.",
    output_exists: "Ersetzen Sie sie, oder speichern Sie an einem anderen Ort.",
    output_unwritable: "Wählen Sie einen anderen Ordner, oder prüfen Sie die Rechte dieses Ordners.",
    output_name_too_long: "Wählen Sie einen kürzeren Namen oder eine kürzere Vorlage für Dateinamen in den Einstellungen.",
    engine_not_found: "Installieren Sie Steno neu: Ein Teil davon fehlt.",
    engine_failed: "Versuchen Sie es erneut. Schlägt es wieder fehl, kopieren Sie die Diagnosedaten in den Einstellungen und melden Sie das Problem.",
    engine_silent: "Versuchen Sie es erneut. Geschieht es wieder, schließen Sie andere Programme, oder wählen Sie ein kleineres Modell.",
    no_microphone: "Schließen Sie ein Mikrofon an, und installieren Sie pw-record (PipeWire), parecord (PulseAudio) oder arecord (ALSA).",
    no_embedding_model: "Laden Sie auf der Seite „Modelle“ ein Modell für die Suche nach Bedeutung herunter.",
    recording_too_short: "Wenn der Text Kapitel braucht, fügen Sie sie von Hand hinzu.",
    one_subject: "Wenn der Text Kapitel braucht, fügen Sie sie von Hand hinzu.",
    no_chapters: "Finden Sie zuerst über dem Text die Kapitel, oder fügen Sie sie von Hand hinzu.",
    no_speakers: "Lassen Sie zuerst über dem Text die Sprecher erkennen.",
    player_failed: "Spielen Sie erneut ab, oder wandeln Sie die Aufnahme zuerst in WAV oder FLAC um.",
    protocol_mismatch: "Installieren Sie Steno neu: Seine Teile haben verschiedene Versionen.",
    cancelled: "Der Vorgang wurde vor dem Ende abgebrochen.",
    internal: "Versuchen Sie es erneut. Schlägt es wieder fehl, kopieren Sie die Diagnosedaten in den Einstellungen und melden Sie das Problem.",
  },
};
