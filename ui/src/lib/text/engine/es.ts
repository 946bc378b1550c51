import type { CardProblem, Pinned, Relief, Stage, Trouble } from "../../generated/contract";
import { clock, languageName, list, memorySize, percent, round } from "../../ui/format";
import type { EngineText } from "./en";

const MOMENTS: Record<Stage, string> = {
  preprocess: "al leer la grabación",
  speech_model: "al cargar el modelo",
  transcribe: "durante la transcripción",
  speaker_model: "al cargar el modelo de hablantes",
  diarize: "al identificar a los hablantes",
  align: "al alinear las palabras",
  embedding_model: "al cargar el modelo de incrustación",
  embed: "al incrustar los textos",
  adapt: "al adaptar el modelo",
};

const TROUBLES: Record<Trouble, string> = {
  refused: "No había memoria suficiente",
  out_of_memory: "Se agotó la memoria",
  died: "El motor agotó la memoria y se cerró",
  killed: "El sistema cerró el motor más de una vez",
  device_error: "Falló el dispositivo",
  no_code: "El motor no puede calcular en esta tarjeta gráfica",
};

const PINNED: Record<Pinned, string> = { model: "«Modelo»", precision: "«Precisión»", gpu: "«Tarjeta gráfica»", speakers: "«Hablantes»" };

const happened = (trouble: Trouble, stage: Stage) => `${TROUBLES[trouble]} ${MOMENTS[stage]}`;
const step = (trouble: Trouble, stage: Stage, done: string) => `${happened(trouble, stage)}: ${done}`;

function cardProblem(problem: CardProblem): string {
  switch (problem.by) {
    case "capability":
      return `${problem.card} tiene la capacidad de cómputo ${problem.found} y este motor está compilado para ${list(problem.built_for)}. Instalar un motor compilado para ella.`;
    case "code":
      return `El controlador de NVIDIA no acepta el código de este motor (${problem.detail}). Actualizar el controlador o instalar un motor compilado para esta tarjeta.`;
    case "result":
      return `La operación «${problem.operation}» dio un resultado incorrecto. Actualizar el controlador de NVIDIA o instalar un motor compilado para esta tarjeta.`;
  }
}

function relief(told: Relief): string {
  switch (told.by) {
    case "others":
      return `Otros programas ocupan ${memorySize(told.bytes)}: lo que más ayuda es cerrar uno de ellos.`;
    case "batch":
      return `Un lote más pequeño (ahora ${told.windows}) necesita menos.`;
    case "precision":
      return `El mismo modelo en ${told.precision} necesita menos.`;
    case "model":
      return `Un modelo más pequeño (${told.model}) necesita menos.`;
    case "nothing":
      return "No ha fallado nada. Si se agota la memoria, el trabajo continúa con menos.";
  }
}

export const engine: EngineText = {
  details: "Detalles",
  batch: (number) => `Lote ${number}`,
  checkpoints: {
    pipeline_start: "Inicio del trabajo",
    before_preprocess: "Antes de leer la grabación",
    after_preprocess: "Después de leer la grabación",
    before_audio_release: "Antes de liberar los búferes de audio",
    after_audio_release: "Después de liberar los búferes de audio",
    before_speech_model_load: "Antes de cargar el modelo",
    after_speech_model_load: "Después de cargar el modelo",
    before_transcribe: "Antes de la transcripción",
    batch: "Lote",
    after_transcribe: "Después de la transcripción",
    before_decoding_release: "Antes de liberar los búferes de decodificación",
    after_decoding_release: "Después de liberar los búferes de decodificación",
    before_speech_model_release: "Antes de descargar el modelo de la memoria",
    after_speech_model_release: "Después de descargar el modelo de la memoria",
    before_speaker_model_load: "Antes de cargar el modelo de hablantes",
    after_speaker_model_load: "Después de cargar el modelo de hablantes",
    before_diarize: "Antes de identificar a los hablantes",
    after_diarize: "Después de identificar a los hablantes",
    before_waveform_release: "Antes de liberar el sonido",
    after_waveform_release: "Después de liberar el sonido",
    before_speaker_model_release: "Antes de descargar de la memoria el modelo de hablantes",
    after_speaker_model_release: "Después de descargar de la memoria el modelo de hablantes",
    before_align: "Antes de alinear las palabras",
    after_align: "Después de alinear las palabras",
    before_alignment_release: "Antes de liberar los búferes de alineación",
    after_alignment_release: "Después de liberar los búferes de alineación",
    before_embedding_model_load: "Antes de cargar el modelo de incrustación",
    after_embedding_model_load: "Después de cargar el modelo de incrustación",
    before_embed: "Antes de incrustar los textos",
    after_embed: "Después de incrustar los textos",
    before_embedding_release: "Antes de liberar los búferes de incrustación",
    after_embedding_release: "Después de liberar los búferes de incrustación",
    before_embedding_model_release: "Antes de descargar de la memoria el modelo de incrustación",
    after_embedding_model_release: "Después de descargar de la memoria el modelo de incrustación",
    before_adapt: "Antes de la adaptación",
    before_epoch: "Antes de la pasada",
    after_epoch: "Después de la pasada",
    after_adapt: "Después de la adaptación",
    before_adaptation_release: "Antes de liberar los búferes de adaptación",
    after_adaptation_release: "Después de liberar los búferes de adaptación",
    before_recovery: "Antes de recuperar memoria",
    after_recovery: "Después de recuperar memoria",
    before_trim: "Antes de liberar la memoria sin usar",
    after_trim: "Después de liberar la memoria sin usar",
    before_final_cleanup: "Antes de la limpieza final",
    final_cleanup: "Limpieza final",
  },
  notices: {
    "memory.elevated": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "La memoria de la tarjeta gráfica" : "La memoria RAM"} está ocupada al ${percent(share)}. ${relief(told)}`,
    "memory.critical": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "La memoria de la tarjeta gráfica" : "La memoria RAM"} está casi llena (${percent(share)}). ${relief(told)}`,
    "memory.occupied": ({ kind, used, total, ours, others, programs }) => {
      const named = programs.map(({ name, pid, bytes }) => `${name ?? "proceso"} [${pid}] ${memorySize(bytes)}`);
      return (
        `${memorySize(used)} de ${memorySize(total)} de la memoria ${kind === "gpu" ? "de la tarjeta gráfica" : "RAM"} estaban en uso antes de cargar nada: ` +
        `Steno ${memorySize(ours)}, otros programas ${memorySize(others)}${named.length > 0 ? ` (${list(named)})` : ""}.`
      );
    },
    "memory.not_recovered": ({ stage, taken, share, remaining, fragmented }) =>
      `La memoria usada ${MOMENTS[stage]} no se liberó por completo: se liberó el ${percent(share)} de ${memorySize(taken)}; ${memorySize(remaining)} ` +
      (fragmented ? "están libres, pero fragmentados." : "siguen en uso."),
    "memory.release_failed": () => "No se pudo liberar memoria. El motor se reinicia; el resultado no cambia.",
    "memory.leak": ({ grown, files }) => `El uso de memoria creció ${memorySize(grown)} en los últimos ${files} archivos. El motor se reinicia antes del siguiente.`,
    "memory.fragmentation": ({ sign }) =>
      sign.by === "idle"
        ? `Hay ${memorySize(sign.reserved)} reservados y solo ${memorySize(sign.allocated)} en uso: la memoria está fragmentada. Se libera la que no se usa y, si no basta, se reinicia el motor.`
        : `No se pudieron reservar ${memorySize(sign.asked)} aunque había ${memorySize(sign.free)} libres: la memoria está fragmentada. El motor se reinicia.`,
    "memory.spike": ({ before, after, peak, held }) =>
      `Entre «${engine.checkpoints[before]}» y «${engine.checkpoints[after]}» la memoria subió un momento a ${memorySize(peak)} y volvió a ${memorySize(held)}. Un lote más pequeño reduce estos picos.`,
    "memory.unavailable": () => "No se puede medir el uso de memoria.",
    "memory.retried": ({ stage, trouble }) => step(trouble, stage, "se liberó la memoria sin usar y se repite el mismo paso. El resultado no cambia."),
    "memory.engine_renewed": ({ stage, trouble }) => step(trouble, stage, "se reinició el motor y se repite el mismo paso. El resultado no cambia."),
    "memory.batch_halved": ({ stage, trouble, speakers, from, to }) =>
      step(trouble, stage, `el lote${speakers ? " de hablantes" : ""} se redujo a la mitad, de ${from} a ${to}. Tarda más; el resultado no cambia.`),
    "memory.precision_lowered": ({ stage, trouble, model, from, to }) =>
      step(trouble, stage, `${model} continúa en ${to} en lugar de ${from}. ${stage === "adapt" ? "Lo aprendido puede variar un poco." : "A partir de aquí, algunas palabras pueden salir distintas."}`),
    "memory.smaller_model": ({ stage, trouble, from, to }) =>
      step(trouble, stage, `${to} continúa en lugar de ${from}. A partir de aquí cabe esperar más errores.`),
    "memory.moved_to_cpu": ({ stage, trouble }) => step(trouble, stage, "el trabajo continúa en la CPU. A partir de aquí tarda varias veces más."),
    "memory.speakers_skipped": ({ stage, trouble }) => step(trouble, stage, "no se identifican los hablantes. La transcripción no dirá quién habla."),
    "memory.gave_up": ({ stage, trouble, kept }) =>
      `${happened(trouble, stage)} y no queda nada más pequeño. Cerrar otros programas o ` +
      (kept.length === 0 ? "elegir un modelo más pequeño." : `desactivar en «Conservar siempre», en los ajustes: ${list(kept.map((one) => PINNED[one]))}.`),
    "memory.will_not_fit": ({ model, precision }) => `${model} (${precision}) no cabe en la memoria libre.`,
    "audio.truncated": ({ decoded, declared }) =>
      `El archivo está dañado o cortado: solo se pudieron decodificar ${clock(decoded)}${declared === null ? "" : ` de ${clock(declared)}`}.`,
    "audio.damaged": ({ silenced }) => `Hay partes del archivo dañadas${silenced ? "; en su lugar hay silencio" : ""}.`,
    "audio.phase": ({ channel, decibels }) =>
      `Los canales se anulan entre sí: mezclados sonarían ${round(decibels)} dB más bajo. Se transcribe solo el canal ${channel}.`,
    "audio.mono": () => "La grabación tiene un solo canal, que es el que se transcribe.",
    "audio.several_tracks": ({ tracks, taken, language }) =>
      `El archivo tiene ${tracks} pistas de audio; se transcribe la pista ${taken + 1}${language === null ? "" : ` (${languageName(language)})`}.`,
    "speakers.maybe_known": ({ speaker, person }) => `${speaker} puede ser ${person}. Conviene escuchar y, si lo es, cambiar el nombre de ${speaker}.`,
    "model.of_language": ({ language, probability, model }) =>
      `El idioma es ${languageName(language)} (${percent(probability)}), por lo que el modelo ${model} transcribe esta grabación.`,
    "model.language_not_identified": () => "No se pudo identificar el idioma, por lo que transcribe el modelo elegido.",
    "speakers.voices_unreadable": () => "No se pudieron leer las voces conocidas. Los hablantes tienen números en lugar de nombres.",
    "transcript.gaps": ({ gaps }) => (gaps === 1 ? "En 1 lugar hay más de 2 s de voz sin texto." : `En ${gaps} lugares hay más de 2 s de voz sin texto.`),
    "transcript.discarded": ({ passages }) =>
      passages === 1 ? "Se omitió 1 pasaje de texto sin voz." : `Se omitieron ${passages} pasajes de texto sin voz.`,
    "transcript.again": ({ from, to, model }) => `La parte de ${clock(from)} a ${clock(to)} se volvió a transcribir con el modelo ${model}.`,
    "transcript.again_failed": () => "No se pudo volver a transcribir esta parte.",
    "engine.restarted": () => "El motor se detuvo de forma inesperada y se reinició. La transcripción continúa donde se detuvo.",
    "engine.window_skipped": ({ times }) => `El motor se detuvo aquí ${times} veces, así que este pasaje se omite.`,
    "device.waiting": ({ device }) => `Otro Steno usa ${device === "cpu" ? "la CPU" : device}. Esta grabación es la siguiente.`,
    "device.unusable": ({ device, problem }) => `${device} no se usa y calcula la CPU. ${cardProblem(problem)}`,
    "journal.unavailable": () => "No se puede guardar el progreso: si Steno se cierra ahora, esta grabación empieza de nuevo.",
    "journal.file_changed": () => "La grabación cambió desde que se interrumpió: empieza de nuevo.",
    "history.unavailable": () => "La transcripción no está en el historial: se puede guardar, pero no editar.",
    "history.damaged": () => "Solo se pudo leer el principio de esta transcripción.",
    "export.failed": ({ file }) => `La transcripción no se guardó${file === null ? "" : `: ${file}`}.`,
  },
  remedies: {
    file_not_found: "Puede que se haya movido, renombrado o eliminado, o que su disco no esté conectado.",
    folder_not_found: "Puede que se haya movido, renombrado o eliminado, o que su disco no esté conectado. Steno sigue comprobándolo.",
    file_unreadable: "Comprobar los permisos del archivo y su disco.",
    not_a_file: "Elegir una grabación o una carpeta.",
    file_empty: "Puede que no se haya copiado por completo.",
    file_incomplete: "Copiar el archivo de nuevo desde su origen: falta el índice del final. Una grabación interrumpida necesita un programa que la repare.",
    no_recordings: "Elegir una carpeta con archivos de audio o vídeo.",
    no_audio_track: "Elegir un archivo con sonido.",
    no_such_track: "Elegir otra pista de audio.",
    unknown_format: "Elegir un archivo de audio o vídeo.",
    unsupported_codec: "Convertir la grabación a WAV o FLAC, o instalar ffmpeg.",
    needs_ffmpeg: "Instalar ffmpeg o convertir la grabación a WAV o FLAC.",
    audio_broken: "Copiar el archivo de nuevo desde su origen o convertirlo a WAV o FLAC.",
    no_voice: "Elegir una grabación en la que esta persona hable más.",
    model_not_found: "Descargar un modelo o elegir otro.",
    model_invalid: "Descargar o importar el modelo de nuevo.",
    model_unsupported: "Elegir un modelo Whisper.",
    language_unknown: "Elegir otro idioma o un modelo para muchos idiomas.",
    bad_settings: "Comprobar los ajustes.",
    name_taken: "Este nombre ya está en uso. Elegir otro.",
    name_missing: "Escribir un nombre.",
    recording_gone: "Añadir la grabación de nuevo.",
    transcript_gone: "Abrirla desde el historial.",
    bad_pattern: "Corregir la expresión o buscar texto normal.",
    device_unavailable: "Elegir otro dispositivo o actualizar su controlador.",
    out_of_memory: "Cerrar otros programas o elegir un modelo más pequeño.",
    network_off: "Permitir el acceso a la red en los ajustes.",
    network_failed: "Comprobar la conexión y reintentar.",
    download_refused: "Si el modelo requiere una cuenta, aceptar las condiciones en su página y poner en HF_TOKEN el token de la cuenta.",
    server_refused: "Introducir en los ajustes un token del otro equipo.",
    server_busy: "Steno lo intenta de nuevo automáticamente.",
    recording_refused: "Permitir grabaciones más grandes en el otro equipo, o transcribirla en este.",
    model_corrupt: "Descargar el modelo de nuevo.",
    model_in_use: "Esperar a que el otro programa termine de usarlo.",
    disk_full: "Liberar espacio en el disco y reintentar.",
    output_exists: "Reemplazarlo o guardar en otro lugar.",
    output_unwritable: "Elegir otra carpeta o comprobar los permisos de esta.",
    output_name_too_long: "Elegir un nombre más corto o una plantilla de nombres más corta en los ajustes.",
    engine_not_found: "Instalar Steno de nuevo: falta una parte.",
    engine_failed: "Reintentar. Si vuelve a fallar, copiar el diagnóstico en los ajustes para informar del problema.",
    engine_silent: "Reintentar. Si vuelve a ocurrir, cerrar otros programas o elegir un modelo más pequeño.",
    no_microphone: "Conectar un micrófono e instalar pw-record (PipeWire), parecord (PulseAudio) o arecord (ALSA).",
    no_embedding_model: "Descargar un modelo para la búsqueda por significado en la página Modelos.",
    recording_too_short: "Si el texto necesita capítulos, añadirlos a mano.",
    one_subject: "Si el texto necesita capítulos, añadirlos a mano.",
    no_chapters: "Buscar primero los capítulos encima del texto o añadirlos a mano.",
    no_speakers: "Identificar primero los hablantes encima del texto.",
    player_failed: "Reproducir de nuevo o convertir antes la grabación a WAV o FLAC.",
    protocol_mismatch: "Instalar Steno de nuevo: sus partes son de versiones distintas.",
    cancelled: "Se detuvo antes de terminar.",
    internal: "Reintentar. Si vuelve a fallar, copiar el diagnóstico en los ajustes para informar del problema.",
  },
};
