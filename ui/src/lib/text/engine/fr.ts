import type { CardProblem, Pinned, Relief, Stage, Trouble } from "../../generated/contract";
import { clock, languageName, list, memorySize, percent, round } from "../../ui/format";
import type { EngineText } from "./en";

const MOMENTS: Record<Stage, string> = {
  preprocess: "pendant la lecture de l’enregistrement",
  speech_model: "pendant le chargement du modèle",
  transcribe: "pendant la transcription",
  speaker_model: "pendant le chargement du modèle des locuteurs",
  diarize: "pendant l’identification des locuteurs",
  align: "pendant l’alignement des mots",
  embedding_model: "pendant le chargement du modèle de plongement",
  embed: "pendant le plongement des textes",
  adapt: "pendant l’adaptation du modèle",
};

const TROUBLES: Record<Trouble, string> = {
  refused: "La mémoire ne suffisait pas",
  out_of_memory: "La mémoire s’est épuisée",
  died: "Le moteur a épuisé la mémoire et s’est arrêté",
  killed: "Le système a arrêté le moteur plusieurs fois",
  device_error: "Le périphérique a cessé de fonctionner",
  no_code: "Le moteur ne peut pas calculer sur cette carte graphique",
};

const PINNED: Record<Pinned, string> = { model: "« Modèle »", precision: "« Précision »", gpu: "« Carte graphique »", speakers: "« Locuteurs »" };

const happened = (trouble: Trouble, stage: Stage) => `${TROUBLES[trouble]} ${MOMENTS[stage]}`;
const step = (trouble: Trouble, stage: Stage, done: string) => `${happened(trouble, stage)} : ${done}`;

function cardProblem(problem: CardProblem): string {
  switch (problem.by) {
    case "capability":
      return `${problem.card} a la capacité de calcul ${problem.found}, et ce moteur est compilé pour ${list(problem.built_for)}. Installez un moteur compilé pour elle.`;
    case "code":
      return `Le pilote NVIDIA n’accepte pas le code de ce moteur (${problem.detail}). Mettez le pilote à jour ou installez un moteur compilé pour cette carte.`;
    case "result":
      return `L’opération « ${problem.operation} » a donné un résultat faux. Mettez à jour le pilote NVIDIA ou installez un moteur compilé pour cette carte.`;
  }
}

function relief(told: Relief): string {
  switch (told.by) {
    case "others":
      return `D’autres programmes occupent ${memorySize(told.bytes)} : en fermer un est le plus utile.`;
    case "batch":
      return `Un lot plus petit (actuellement ${told.windows}) en demande moins.`;
    case "precision":
      return `Le même modèle en ${told.precision} en demande moins.`;
    case "model":
      return `Un modèle plus petit (${told.model}) en demande moins.`;
    case "nothing":
      return "Rien n’a échoué. Si la mémoire s’épuise, la tâche continue avec moins.";
  }
}

export const engine: EngineText = {
  details: "Détails",
  batch: (number) => `Lot ${number}`,
  checkpoints: {
    pipeline_start: "Début de la tâche",
    before_preprocess: "Avant la lecture de l’enregistrement",
    after_preprocess: "Après la lecture de l’enregistrement",
    before_audio_release: "Avant la libération des tampons audio",
    after_audio_release: "Après la libération des tampons audio",
    before_speech_model_load: "Avant le chargement du modèle",
    after_speech_model_load: "Après le chargement du modèle",
    before_transcribe: "Avant la transcription",
    batch: "Lot",
    after_transcribe: "Après la transcription",
    before_decoding_release: "Avant la libération des tampons de décodage",
    after_decoding_release: "Après la libération des tampons de décodage",
    before_speech_model_release: "Avant le déchargement du modèle",
    after_speech_model_release: "Après le déchargement du modèle",
    before_speaker_model_load: "Avant le chargement du modèle des locuteurs",
    after_speaker_model_load: "Après le chargement du modèle des locuteurs",
    before_diarize: "Avant l’identification des locuteurs",
    after_diarize: "Après l’identification des locuteurs",
    before_waveform_release: "Avant la libération du son",
    after_waveform_release: "Après la libération du son",
    before_speaker_model_release: "Avant le déchargement du modèle des locuteurs",
    after_speaker_model_release: "Après le déchargement du modèle des locuteurs",
    before_align: "Avant l’alignement des mots",
    after_align: "Après l’alignement des mots",
    before_alignment_release: "Avant la libération des tampons d’alignement",
    after_alignment_release: "Après la libération des tampons d’alignement",
    before_embedding_model_load: "Avant le chargement du modèle de plongement",
    after_embedding_model_load: "Après le chargement du modèle de plongement",
    before_embed: "Avant le plongement des textes",
    after_embed: "Après le plongement des textes",
    before_embedding_release: "Avant la libération des tampons de plongement",
    after_embedding_release: "Après la libération des tampons de plongement",
    before_embedding_model_release: "Avant le déchargement du modèle de plongement",
    after_embedding_model_release: "Après le déchargement du modèle de plongement",
    before_adapt: "Avant l’adaptation",
    before_epoch: "Avant le passage",
    after_epoch: "Après le passage",
    after_adapt: "Après l’adaptation",
    before_adaptation_release: "Avant la libération des tampons d’adaptation",
    after_adaptation_release: "Après la libération des tampons d’adaptation",
    before_recovery: "Avant la récupération de mémoire",
    after_recovery: "Après la récupération de mémoire",
    before_trim: "Avant la libération de la mémoire inutilisée",
    after_trim: "Après la libération de la mémoire inutilisée",
    before_final_cleanup: "Avant le nettoyage final",
    final_cleanup: "Nettoyage final",
  },
  notices: {
    "memory.elevated": ({ kind, share, relief: told }) =>
      `La mémoire ${kind === "gpu" ? "de la carte graphique" : "vive"} est occupée à ${percent(share)}. ${relief(told)}`,
    "memory.critical": ({ kind, share, relief: told }) =>
      `La mémoire ${kind === "gpu" ? "de la carte graphique" : "vive"} est presque pleine (${percent(share)}). ${relief(told)}`,
    "memory.occupied": ({ kind, used, total, ours, others, programs }) => {
      const named = programs.map(({ name, pid, bytes }) => `${name ?? "processus"} [${pid}] ${memorySize(bytes)}`);
      return (
        `${memorySize(used)} sur ${memorySize(total)} de mémoire ${kind === "gpu" ? "de la carte graphique" : "vive"} étaient occupés avant tout chargement : ` +
        `Steno ${memorySize(ours)}, autres programmes ${memorySize(others)}${named.length > 0 ? ` (${list(named)})` : ""}.`
      );
    },
    "memory.not_recovered": ({ stage, taken, share, remaining, fragmented }) =>
      `La mémoire utilisée ${MOMENTS[stage]} n’a pas été entièrement libérée : ${percent(share)} de ${memorySize(taken)} ont été libérés, ${memorySize(remaining)} ` +
      (fragmented ? "sont libres mais fragmentés." : "sont encore utilisés."),
    "memory.release_failed": () => "La mémoire n’a pas pu être libérée. Le moteur est redémarré ; le résultat n’est pas affecté.",
    "memory.leak": ({ grown, files }) =>
      `L’utilisation de la mémoire a augmenté de ${memorySize(grown)} sur les ${files} derniers fichiers. Le moteur est redémarré avant le prochain.`,
    "memory.fragmentation": ({ sign }) =>
      sign.by === "idle"
        ? `${memorySize(sign.reserved)} sont réservés, dont seulement ${memorySize(sign.allocated)} utilisés : la mémoire est fragmentée. La mémoire inutilisée est libérée ; si cela ne suffit pas, le moteur est redémarré.`
        : `${memorySize(sign.asked)} n’ont pas pu être alloués alors que ${memorySize(sign.free)} étaient libres : la mémoire est fragmentée. Le moteur est redémarré.`,
    "memory.spike": ({ before, after, peak, held }) =>
      `Entre « ${engine.checkpoints[before]} » et « ${engine.checkpoints[after]} », la mémoire est montée un instant à ${memorySize(peak)}, puis redescendue à ${memorySize(held)}. Un lot plus petit réduit un tel pic.`,
    "memory.unavailable": () => "L’utilisation de la mémoire ne peut pas être mesurée.",
    "memory.retried": ({ stage, trouble }) =>
      step(trouble, stage, "la mémoire inutilisée a été libérée et la même étape est reprise. Le résultat reste le même."),
    "memory.engine_renewed": ({ stage, trouble }) => step(trouble, stage, "le moteur a été redémarré et la même étape est reprise. Le résultat reste le même."),
    "memory.batch_halved": ({ stage, trouble, speakers, from, to }) =>
      step(trouble, stage, `le lot${speakers ? " des locuteurs" : ""} a été réduit de moitié, de ${from} à ${to}. C’est plus long ; le résultat reste le même.`),
    "memory.precision_lowered": ({ stage, trouble, model, from, to }) =>
      step(trouble, stage, `${model} continue en ${to} au lieu de ${from}. ${stage === "adapt" ? "Ce qui est appris peut légèrement différer." : "À partir d’ici, certains mots peuvent différer."}`),
    "memory.smaller_model": ({ stage, trouble, from, to }) =>
      step(trouble, stage, `${to} continue à la place de ${from}. Attendez-vous à plus d’erreurs à partir d’ici.`),
    "memory.moved_to_cpu": ({ stage, trouble }) =>
      step(trouble, stage, "la tâche continue sur le processeur. À partir d’ici, elle prend plusieurs fois plus de temps."),
    "memory.speakers_skipped": ({ stage, trouble }) => step(trouble, stage, "les locuteurs ne sont pas identifiés. La transcription ne dira pas qui parle."),
    "memory.gave_up": ({ stage, trouble, kept }) =>
      `${happened(trouble, stage)}, et il ne reste rien de plus petit. Fermez d’autres programmes, ou ` +
      (kept.length === 0 ? "choisissez un modèle plus petit." : `décochez sous « Toujours conserver », dans les réglages : ${list(kept.map((one) => PINNED[one]))}.`),
    "memory.will_not_fit": ({ model, precision }) => `${model} (${precision}) ne tient pas dans la mémoire libre.`,
    "audio.truncated": ({ decoded, declared }) =>
      `Le fichier est endommagé ou tronqué : seules ${clock(decoded)}${declared === null ? "" : ` sur ${clock(declared)}`} ont pu être décodées.`,
    "audio.damaged": ({ silenced }) => `Des parties du fichier sont endommagées${silenced ? " ; elles sont remplacées par du silence" : ""}.`,
    "audio.phase": ({ channel, decibels }) =>
      `Les canaux s’annulent : mélangés, ils seraient plus faibles de ${round(decibels)} dB. Seul le canal ${channel} est transcrit.`,
    "audio.mono": () => "L’enregistrement n’a qu’un canal, qui est transcrit.",
    "audio.several_tracks": ({ tracks, taken, language }) =>
      `Le fichier a ${tracks} pistes audio ; la piste ${taken + 1}${language === null ? "" : ` (${languageName(language)})`} est transcrite.`,
    "speakers.maybe_known": ({ speaker, person }) =>
      `${speaker} est peut-être ${person}. Écoutez et, si c’est le cas, renommez ${speaker}.`,
    "model.of_language": ({ language, probability, model }) =>
      `Langue reconnue : ${languageName(language)} (${percent(probability)}). Le modèle ${model} transcrit cet enregistrement.`,
    "model.language_not_identified": () => "La langue n’a pas pu être identifiée, donc le modèle choisi transcrit.",
    "speakers.voices_unreadable": () => "Les voix connues n’ont pas pu être lues. Les locuteurs ont des numéros au lieu de noms.",
    "transcript.gaps": ({ gaps }) =>
      gaps <= 1 ? `À ${gaps} endroit, plus de 2 s de parole sont sans texte.` : `À ${gaps} endroits, plus de 2 s de parole sont sans texte.`,
    "transcript.discarded": ({ passages }) =>
      passages <= 1 ? `${passages} passage de texte sans parole a été omis.` : `${passages} passages de texte sans parole ont été omis.`,
    "transcript.again": ({ from, to, model }) => `La partie de ${clock(from)} à ${clock(to)} a été retranscrite avec le modèle ${model}.`,
    "transcript.again_failed": () => "Cette partie n’a pas pu être retranscrite.",
    "engine.restarted": () => "Le moteur s’est arrêté de façon inattendue et a été redémarré. La transcription reprend là où elle s’est arrêtée.",
    "engine.window_skipped": ({ times }) => `Le moteur s’est arrêté ${times} fois ici ; ce passage est ignoré.`,
    "device.waiting": ({ device }) => `Un autre Steno utilise ${device === "cpu" ? "le processeur" : device}. Cet enregistrement est le prochain.`,
    "device.unusable": ({ device, problem }) => `${device} n’est pas utilisé, et le processeur calcule. ${cardProblem(problem)}`,
    "journal.unavailable": () => "La progression ne peut pas être enregistrée : si Steno s’arrête maintenant, cet enregistrement reprendra du début.",
    "journal.file_changed": () => "L’enregistrement a changé depuis son interruption : il reprend du début.",
    "history.unavailable": () => "La transcription n’est pas dans l’historique : elle peut être enregistrée, mais pas modifiée.",
    "history.damaged": () => "Seul le début de cette transcription a pu être lu.",
    "export.failed": ({ file }) => `La transcription n’a pas été enregistrée${file === null ? "" : ` : ${file}`}.`,
  },
  remedies: {
    file_not_found: "Il a peut-être été déplacé, renommé ou supprimé, ou son disque n’est pas connecté.",
    folder_not_found: "Il a peut-être été déplacé, renommé ou supprimé, ou son disque n’est pas connecté. Steno continue de vérifier.",
    file_unreadable: "Vérifiez les droits du fichier et son disque.",
    not_a_file: "Choisissez un enregistrement ou un dossier.",
    file_empty: "Il n’a peut-être pas été copié entièrement.",
    file_incomplete: "Copiez de nouveau le fichier depuis sa source : l’index à sa fin manque. Un enregistrement interrompu doit être réparé avec un autre programme.",
    no_recordings: "Choisissez un dossier contenant des fichiers audio ou vidéo.",
    no_audio_track: "Choisissez un fichier avec du son.",
    no_such_track: "Choisissez une autre piste audio.",
    unknown_format: "Choisissez un fichier audio ou vidéo.",
    unsupported_codec: "Convertissez l’enregistrement en WAV ou FLAC, ou installez ffmpeg.",
    needs_ffmpeg: "Installez ffmpeg, ou convertissez l’enregistrement en WAV ou FLAC.",
    audio_broken: "Copiez de nouveau le fichier depuis sa source, ou convertissez-le en WAV ou FLAC.",
    no_voice: "Choisissez un enregistrement où cette personne parle davantage.",
    model_not_found: "Téléchargez un modèle ou choisissez-en un autre.",
    model_invalid: "Téléchargez ou importez de nouveau le modèle.",
    model_unsupported: "Choisissez un modèle Whisper.",
    language_unknown: "Choisissez une autre langue, ou un modèle multilingue.",
    bad_settings: "Vérifiez les réglages.",
    name_taken: "Ce nom est déjà utilisé. Choisissez-en un autre.",
    name_missing: "Saisissez un nom.",
    recording_gone: "Ajoutez de nouveau l’enregistrement.",
    transcript_gone: "Ouvrez-la depuis l’historique.",
    bad_pattern: "Corrigez l’expression, ou cherchez du texte simple.",
    device_unavailable: "Choisissez un autre périphérique ou mettez à jour son pilote.",
    out_of_memory: "Fermez d’autres programmes, ou choisissez un modèle plus petit.",
    network_off: "Autorisez l’accès au réseau dans les réglages.",
    network_failed: "Vérifiez la connexion et réessayez.",
    download_refused: "Si le modèle nécessite un compte, acceptez ses conditions sur sa page et placez votre jeton dans HF_TOKEN.",
    server_refused: "Saisissez dans les réglages un jeton de l’autre machine.",
    server_busy: "Steno réessaie automatiquement.",
    recording_refused: "Autorisez des enregistrements plus grands sur l’autre machine, ou transcrivez-le sur cet ordinateur.",
    model_corrupt: "Téléchargez de nouveau le modèle.",
    model_in_use: "Attendez que l’autre programme ait fini de l’utiliser.",
    disk_full: "Libérez de l’espace disque et réessayez.",
    output_exists: "Remplacez-le, ou enregistrez ailleurs.",
    output_unwritable: "Choisissez un autre dossier, ou vérifiez les droits de celui-ci.",
    output_name_too_long: "Choisissez un nom plus court, ou un modèle de nom plus court dans les réglages.",
    engine_not_found: "Réinstallez Steno : une partie manque.",
    engine_failed: "Réessayez. Si l’échec se répète, copiez le diagnostic dans les réglages pour le signaler.",
    engine_silent: "Réessayez. Si cela se répète, fermez d’autres programmes ou choisissez un modèle plus petit.",
    no_microphone: "Branchez un microphone, et installez pw-record (PipeWire), parecord (PulseAudio) ou arecord (ALSA).",
    no_embedding_model: "Téléchargez un modèle pour la recherche par le sens sur la page Modèles.",
    recording_too_short: "Si le texte a besoin de chapitres, ajoutez-les à la main.",
    one_subject: "Si le texte a besoin de chapitres, ajoutez-les à la main.",
    no_chapters: "Trouvez d’abord les chapitres au-dessus du texte, ou ajoutez-les à la main.",
    no_speakers: "Identifiez d’abord les locuteurs au-dessus du texte.",
    player_failed: "Relancez la lecture, ou convertissez d’abord l’enregistrement en WAV ou FLAC.",
    protocol_mismatch: "Réinstallez Steno : ses parties sont de versions différentes.",
    cancelled: "Arrêté avant la fin.",
    internal: "Réessayez. Si l’échec se répète, copiez le diagnostic dans les réglages pour le signaler.",
  },
};
