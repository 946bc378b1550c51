import type { CardProblem, Pinned, Relief, Stage, Trouble } from "../../generated/contract";
import { clock, languageName, list, memorySize, percent, round } from "../../ui/format";
import type { EngineText } from "./en";

const MOMENTS: Record<Stage, string> = {
  preprocess: "録音の読み取り中に",
  speech_model: "モデルの読み込み中に",
  transcribe: "文字起こし中に",
  speaker_model: "話者モデルの読み込み中に",
  diarize: "話者の識別中に",
  align: "単語の時刻合わせ中に",
  embedding_model: "埋め込みモデルの読み込み中に",
  embed: "テキストの埋め込み中に",
  adapt: "モデルの適応中に",
};

const TROUBLES: Record<Trouble, string> = {
  refused: "メモリが足りませんでした",
  out_of_memory: "メモリがなくなりました",
  died: "エンジンがメモリを使い切って終了しました",
  killed: "システムがエンジンを複数回終了させました",
  device_error: "デバイスに障害が起きました",
  no_code: "エンジンはこのグラフィックカードで計算できませんでした",
};

const PINNED: Record<Pinned, string> = { model: "「モデル」", precision: "「精度」", gpu: "「グラフィックスカード」", speakers: "「話者」" };

const happened = (trouble: Trouble, stage: Stage) => `${MOMENTS[stage]}${TROUBLES[trouble]}`;
const step = (trouble: Trouble, stage: Stage, done: string) => `${happened(trouble, stage)}。${done}`;

function cardProblem(problem: CardProblem): string {
  switch (problem.by) {
    case "capability":
      return `${problem.card}のCompute Capabilityは${problem.found}ですが、このエンジンは${list(problem.built_for)}向けに作られています。このカード向けのエンジンをインストールしてください。`;
    case "code":
      return `NVIDIAドライバーがこのエンジンのコードを受け付けません（${problem.detail}）。ドライバーを更新するか、このカード向けのエンジンをインストールしてください。`;
    case "result":
      return `演算「${problem.operation}」の結果が正しくありませんでした。NVIDIAドライバーを更新するか、このカード向けのエンジンをインストールしてください。`;
  }
}

function relief(told: Relief): string {
  switch (told.by) {
    case "others":
      return `ほかのプログラムが${memorySize(told.bytes)}を使用しています。そのいずれかを終了するのが最も効果的です。`;
    case "batch":
      return `バッチを小さくすると（現在${told.windows}）減ります。`;
    case "precision":
      return `同じモデルを${told.precision}で使うと減ります。`;
    case "model":
      return `小さいモデル（${told.model}）を使うと減ります。`;
    case "nothing":
      return "まだ何も失敗していません。メモリがなくなった場合は、使用量を減らして続行します。";
  }
}

export const engine: EngineText = {
  details: "詳細",
  batch: (number) => `バッチ${number}`,
  checkpoints: {
    pipeline_start: "ジョブの開始",
    before_preprocess: "録音の読み取り前",
    after_preprocess: "録音の読み取り後",
    before_audio_release: "音声バッファーの解放前",
    after_audio_release: "音声バッファーの解放後",
    before_speech_model_load: "モデルの読み込み前",
    after_speech_model_load: "モデルの読み込み後",
    before_transcribe: "文字起こしの前",
    batch: "バッチ",
    after_transcribe: "文字起こしの後",
    before_decoding_release: "デコード用バッファーの解放前",
    after_decoding_release: "デコード用バッファーの解放後",
    before_speech_model_release: "モデルの解放前",
    after_speech_model_release: "モデルの解放後",
    before_speaker_model_load: "話者モデルの読み込み前",
    after_speaker_model_load: "話者モデルの読み込み後",
    before_diarize: "話者の識別前",
    after_diarize: "話者の識別後",
    before_waveform_release: "波形の解放前",
    after_waveform_release: "波形の解放後",
    before_speaker_model_release: "話者モデルの解放前",
    after_speaker_model_release: "話者モデルの解放後",
    before_align: "単語の時刻合わせ前",
    after_align: "単語の時刻合わせ後",
    before_alignment_release: "時刻合わせ用バッファーの解放前",
    after_alignment_release: "時刻合わせ用バッファーの解放後",
    before_embedding_model_load: "埋め込みモデルの読み込み前",
    after_embedding_model_load: "埋め込みモデルの読み込み後",
    before_embed: "テキストの埋め込み前",
    after_embed: "テキストの埋め込み後",
    before_embedding_release: "埋め込み用バッファーの解放前",
    after_embedding_release: "埋め込み用バッファーの解放後",
    before_embedding_model_release: "埋め込みモデルの解放前",
    after_embedding_model_release: "埋め込みモデルの解放後",
    before_adapt: "適応の前",
    before_epoch: "エポック前",
    after_epoch: "エポック後",
    after_adapt: "適応の後",
    before_adaptation_release: "適応用バッファーの解放前",
    after_adaptation_release: "適応用バッファーの解放後",
    before_recovery: "メモリ回復の前",
    after_recovery: "メモリ回復の後",
    before_trim: "未使用メモリの解放前",
    after_trim: "未使用メモリの解放後",
    before_final_cleanup: "最終整理の前",
    final_cleanup: "最終整理",
  },
  notices: {
    "memory.elevated": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "グラフィックスカードのメモリ" : "メインメモリ"}の使用率が${percent(share)}になりました。${relief(told)}`,
    "memory.critical": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "グラフィックスカードのメモリ" : "メインメモリ"}がほぼいっぱいです（${percent(share)}）。${relief(told)}`,
    "memory.occupied": ({ kind, used, total, ours, others, programs }) => {
      const named = programs.map(({ name, pid, bytes }) => `${name ?? "プロセス"}［${pid}］${memorySize(bytes)}`);
      return (
        `読み込みを始める前に、${kind === "gpu" ? "グラフィックスカードのメモリ" : "メインメモリ"}${memorySize(total)}のうち${memorySize(used)}が使用されていました。` +
        `Steno：${memorySize(ours)}、ほかのプログラム：${memorySize(others)}${named.length > 0 ? `（${list(named)}）` : ""}。`
      );
    },
    "memory.not_recovered": ({ stage, taken, share, remaining, fragmented }) =>
      `${MOMENTS[stage]}使用したメモリが完全には解放されませんでした。${memorySize(taken)}のうち${percent(share)}が解放され、${memorySize(remaining)}は` +
      (fragmented ? "空いていますが断片化しています。" : "まだ使用中です。"),
    "memory.release_failed": () => "メモリを解放できませんでした。エンジンを再起動します。結果に影響はありません。",
    "memory.leak": ({ grown, files }) => `直近${files}件のファイルでメモリの使用量が${memorySize(grown)}増えました。次のファイルの前にエンジンを再起動します。`,
    "memory.fragmentation": ({ sign }) =>
      sign.by === "idle"
        ? `確保済みの${memorySize(sign.reserved)}のうち、使用中は${memorySize(sign.allocated)}だけです。メモリが断片化しているため未使用分を解放し、改善しない場合はエンジンを再起動します。`
        : `${memorySize(sign.free)}が空いているのに、${memorySize(sign.asked)}を確保できませんでした。メモリが断片化しているため、エンジンを再起動します。`,
    "memory.spike": ({ before, after, peak, held }) =>
      `「${engine.checkpoints[before]}」と「${engine.checkpoints[after]}」の間で、メモリの使用量が一時的に${memorySize(peak)}まで増え、${memorySize(held)}に戻りました。バッチを小さくするとこのピークは下がります。`,
    "memory.unavailable": () => "メモリの使用量を測定できません。",
    "memory.retried": ({ stage, trouble }) => step(trouble, stage, "未使用のメモリを解放し、同じ処理をやり直します。結果は変わりません。"),
    "memory.engine_renewed": ({ stage, trouble }) => step(trouble, stage, "エンジンを再起動し、同じ処理をやり直します。結果は変わりません。"),
    "memory.batch_halved": ({ stage, trouble, speakers, from, to }) =>
      step(trouble, stage, `${speakers ? "話者のバッチ" : "バッチ"}を${from}から${to}に半減しました。時間は長くなりますが、結果は変わりません。`),
    "memory.precision_lowered": ({ stage, trouble, model, from, to }) =>
      step(trouble, stage, `${model}を${from}ではなく${to}で続行します。${stage === "adapt" ? "学習した内容が少し異なる場合があります。" : "以降、一部の単語が異なる場合があります。"}`),
    "memory.smaller_model": ({ stage, trouble, from, to }) => step(trouble, stage, `${from}の代わりに${to}で続行します。以降、誤りが増える可能性があります。`),
    "memory.moved_to_cpu": ({ stage, trouble }) => step(trouble, stage, "CPUで続行します。以降、数倍の時間がかかります。"),
    "memory.speakers_skipped": ({ stage, trouble }) => step(trouble, stage, "話者は識別されません。誰が話しているかは文字起こしに記録されません。"),
    "memory.gave_up": ({ stage, trouble, kept }) =>
      `${happened(trouble, stage)}。これ以上減らせるものがありません。ほかのプログラムを終了するか、` +
      (kept.length === 0 ? "小さいモデルを選択してください。" : `設定の「常に維持」で${list(kept.map((one) => PINNED[one]))}のチェックを外してください。`),
    "memory.will_not_fit": ({ model, precision }) => `${model}（${precision}）は空きメモリに収まりません。`,
    "audio.truncated": ({ decoded, declared }) =>
      `ファイルが破損しているか、途中で切れています。${declared === null ? "" : `${clock(declared)}のうち`}${clock(decoded)}だけデコードできました。`,
    "audio.damaged": ({ silenced }) => `ファイルの一部が破損しています${silenced ? "。その部分は無音になっています" : ""}。`,
    "audio.phase": ({ channel, decibels }) =>
      `チャンネルが互いに打ち消し合うため（混合すると${round(decibels)}dB小さくなります）、チャンネル${channel}だけを文字起こしします。`,
    "audio.mono": () => "この録音にはチャンネルが1つしかないため、それを文字起こしします。",
    "audio.several_tracks": ({ tracks, taken, language }) =>
      `このファイルには音声トラックが${tracks}本あります。トラック${taken + 1}${language === null ? "" : `（${languageName(language)}）`}を文字起こしします。`,
    "speakers.maybe_known": ({ speaker, person }) => `${speaker}は${person}かもしれません。聞いて確認し、正しければ${speaker}の名前を変更してください。`,
    "model.of_language": ({ language, probability, model }) =>
      `言語は${languageName(language)}（${percent(probability)}）なので、モデル${model}でこの録音を文字起こしします。`,
    "model.language_not_identified": () => "言語を識別できなかったため、選択したモデルで文字起こしします。",
    "speakers.voices_unreadable": () => "登録済みの声を読み取れませんでした。話者は名前ではなく番号で表示されます。",
    "transcript.gaps": ({ gaps }) => `2秒を超える発話にテキストのない箇所が${gaps}か所あります。`,
    "transcript.discarded": ({ passages }) => `発話のないテキスト${passages}か所を除外しました。`,
    "transcript.again": ({ from, to, model }) => `${clock(from)}から${clock(to)}までを、モデル${model}でもう一度文字起こししました。`,
    "transcript.again_failed": () => "この部分をもう一度文字起こしできませんでした。",
    "engine.restarted": () => "エンジンが予期せず停止したため、再起動しました。文字起こしは停止したところから再開します。",
    "engine.window_skipped": ({ times }) => `この箇所でエンジンが${times}回停止したため、この箇所を飛ばします。`,
    "device.waiting": ({ device }) => `別のStenoが${device === "cpu" ? "CPU" : device}を使用しています。次はこの録音の番です。`,
    "device.unusable": ({ device, problem }) => `${device}は使用されず、CPUで計算します。${cardProblem(problem)}`,
    "journal.unavailable": () => "進行状況を保存できません。今Stenoが終了すると、この録音は最初からやり直しになります。",
    "journal.file_changed": () => "中断した後に録音が変更されたため、最初からやり直します。",
    "history.unavailable": () => "この文字起こしは履歴にありません。保存はできますが、編集はできません。",
    "history.damaged": () => "この文字起こしは冒頭だけ読み取れました。",
    "export.failed": ({ file }) => `文字起こしは保存されませんでした${file === null ? "" : `：${file}`}。`,
  },
  remedies: {
    file_not_found: "移動、名前の変更、削除が行われたか、ディスクが接続されていない可能性があります。",
    folder_not_found: "移動、名前の変更、削除が行われたか、ディスクが接続されていない可能性があります。Stenoは確認を続けます。",
    file_unreadable: "ファイルのアクセス権とディスクを確認してください。",
    not_a_file: "録音またはフォルダーを選択してください。",
    file_empty: "コピーが完了していない可能性があります。",
    file_incomplete: "元の場所からもう一度コピーしてください。ファイルの末尾にあるインデックスがありません。中断された録音は、修復できるプログラムが必要です。",
    no_recordings: "音声または動画ファイルのあるフォルダーを選択してください。",
    no_audio_track: "音声のあるファイルを選択してください。",
    no_such_track: "別の音声トラックを選択してください。",
    unknown_format: "音声または動画ファイルを選択してください。",
    unsupported_codec: "録音をWAVまたはFLACに変換するか、ffmpegをインストールしてください。",
    needs_ffmpeg: "ffmpegをインストールするか、録音をWAVまたはFLACに変換してください。",
    audio_broken: "元の場所からもう一度コピーするか、WAVまたはFLACに変換してください。",
    no_voice: "この人の発話がもっと多い録音を選択してください。",
    model_not_found: "モデルをダウンロードするか、別のモデルを選択してください。",
    model_invalid: "モデルをもう一度ダウンロードまたはインポートしてください。",
    model_unsupported: "Whisperのモデルを選択してください。",
    language_unknown: "別の言語、または多言語のモデルを選択してください。",
    bad_settings: "設定を確認してください。",
    name_taken: "この名前は使用されています。別の名前を選択してください。",
    name_missing: "名前を入力してください。",
    recording_gone: "録音をもう一度追加してください。",
    transcript_gone: "履歴から開いてください。",
    bad_pattern: "正規表現を修正するか、通常の文字列で検索してください。",
    device_unavailable: "別のデバイスを選択するか、ドライバーを更新してください。",
    out_of_memory: "ほかのプログラムを終了するか、小さいモデルを選択してください。",
    network_off: "設定でネットワークへのアクセスを許可してください。",
    network_failed: "接続を確認して、もう一度お試しください。",
    download_refused: "アカウントが必要なモデルの場合は、モデルのページで利用条件に同意し、ご自分のトークンをHF_TOKENに設定してください。",
    server_refused: "設定で、別のコンピューターのトークンを入力してください。",
    server_busy: "Stenoが自動的に再試行します。",
    recording_refused: "別のコンピューターでより大きな録音を許可するか、このコンピューターで文字起こししてください。",
    model_corrupt: "モデルをもう一度ダウンロードしてください。",
    model_in_use: "ほかのプログラムでの使用が終わるまでお待ちください。",
    disk_full: "ディスクの空き容量を増やして、もう一度お試しください。",
    output_exists: "置き換えるか、別の場所に保存してください。",
    output_unwritable: "別のフォルダーを選択するか、このフォルダーのアクセス権を確認してください。",
    output_name_too_long: "もっと短い名前にするか、設定でファイル名のテンプレートを短くしてください。",
    engine_not_found: "Stenoをもう一度インストールしてください。一部が見つかりません。",
    engine_failed: "もう一度お試しください。再び失敗する場合は、設定で診断情報をコピーして報告してください。",
    engine_silent: "もう一度お試しください。再び起きる場合は、ほかのプログラムを終了するか、小さいモデルを選択してください。",
    no_microphone: "マイクを接続し、pw-record（PipeWire）、parecord（PulseAudio）、arecord（ALSA）のいずれかをインストールしてください。",
    no_embedding_model: "「モデル」ページで意味による検索用のモデルをダウンロードしてください。",
    recording_too_short: "チャプターが必要な場合は、手動で追加してください。",
    one_subject: "チャプターが必要な場合は、手動で追加してください。",
    no_chapters: "先にテキストの上でチャプターを検出するか、手動で追加してください。",
    no_speakers: "先にテキストの上で話者を識別してください。",
    player_failed: "もう一度再生するか、録音を先にWAVまたはFLACに変換してください。",
    protocol_mismatch: "Stenoをもう一度インストールしてください。各部のバージョンが異なります。",
    cancelled: "完了前に停止されました。",
    internal: "もう一度お試しください。再び失敗する場合は、設定で診断情報をコピーして報告してください。",
  },
};
