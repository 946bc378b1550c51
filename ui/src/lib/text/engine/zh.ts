import type { CardProblem, Pinned, Relief, Stage, Trouble } from "../../generated/contract";
import { clock, languageName, list, memorySize, percent, round } from "../../ui/format";
import type { EngineText } from "./en";

const MOMENTS: Record<Stage, string> = {
  preprocess: "读取录音时",
  speech_model: "加载模型时",
  transcribe: "转写时",
  speaker_model: "加载说话人模型时",
  diarize: "识别说话人时",
  align: "对齐词语时",
  embedding_model: "加载嵌入模型时",
  embed: "嵌入文本时",
  adapt: "适配模型时",
};

const TROUBLES: Record<Trouble, string> = {
  refused: "内存不足",
  out_of_memory: "内存耗尽",
  died: "引擎因内存耗尽而退出",
  killed: "系统多次终止了引擎",
  device_error: "设备发生故障",
  no_code: "引擎无法在此显卡上计算",
};

const PINNED: Record<Pinned, string> = { model: "“模型”", precision: "“精度”", gpu: "“显卡”", speakers: "“说话人”" };

const happened = (trouble: Trouble, stage: Stage) => `${MOMENTS[stage]}${TROUBLES[trouble]}`;
const step = (trouble: Trouble, stage: Stage, done: string) => `${happened(trouble, stage)}：${done}`;

function cardProblem(problem: CardProblem): string {
  switch (problem.by) {
    case "capability":
      return `${problem.card} 的计算能力为 ${problem.found}，而此引擎是为 ${list(problem.built_for)} 构建的。请安装为该显卡构建的引擎。`;
    case "code":
      return `NVIDIA 驱动程序不接受此引擎的代码（${problem.detail}）。请更新驱动程序，或安装为此显卡构建的引擎。`;
    case "result":
      return `运算“${problem.operation}”的结果有误。请更新 NVIDIA 驱动程序，或安装为此显卡构建的引擎。`;
  }
}

function relief(told: Relief): string {
  switch (told.by) {
    case "others":
      return `其他程序占用 ${memorySize(told.bytes)}：关闭其中一个最有帮助。`;
    case "batch":
      return `减小批次（当前为 ${told.windows}）可降低占用。`;
    case "precision":
      return `使用 ${told.precision} 精度的同一模型可降低占用。`;
    case "model":
      return `使用更小的模型（${told.model}）可降低占用。`;
    case "nothing":
      return "目前没有任何失败。如果内存耗尽，任务会以较低的占用继续。";
  }
}

export const engine: EngineText = {
  details: "详细信息",
  batch: (number) => `批次 ${number}`,
  checkpoints: {
    pipeline_start: "任务开始",
    before_preprocess: "读取录音前",
    after_preprocess: "读取录音后",
    before_audio_release: "释放音频缓冲区前",
    after_audio_release: "释放音频缓冲区后",
    before_speech_model_load: "加载模型前",
    after_speech_model_load: "加载模型后",
    before_transcribe: "转写前",
    batch: "批次",
    after_transcribe: "转写后",
    before_decoding_release: "释放解码缓冲区前",
    after_decoding_release: "释放解码缓冲区后",
    before_speech_model_release: "卸载模型前",
    after_speech_model_release: "卸载模型后",
    before_speaker_model_load: "加载说话人模型前",
    after_speaker_model_load: "加载说话人模型后",
    before_diarize: "识别说话人前",
    after_diarize: "识别说话人后",
    before_waveform_release: "释放声音前",
    after_waveform_release: "释放声音后",
    before_speaker_model_release: "卸载说话人模型前",
    after_speaker_model_release: "卸载说话人模型后",
    before_align: "对齐词语前",
    after_align: "对齐词语后",
    before_alignment_release: "释放对齐缓冲区前",
    after_alignment_release: "释放对齐缓冲区后",
    before_embedding_model_load: "加载嵌入模型前",
    after_embedding_model_load: "加载嵌入模型后",
    before_embed: "嵌入文本前",
    after_embed: "嵌入文本后",
    before_embedding_release: "释放嵌入缓冲区前",
    after_embedding_release: "释放嵌入缓冲区后",
    before_embedding_model_release: "卸载嵌入模型前",
    after_embedding_model_release: "卸载嵌入模型后",
    before_adapt: "适配前",
    before_epoch: "轮次前",
    after_epoch: "轮次后",
    after_adapt: "适配后",
    before_adaptation_release: "释放适配缓冲区前",
    after_adaptation_release: "释放适配缓冲区后",
    before_recovery: "回收内存前",
    after_recovery: "回收内存后",
    before_trim: "释放未使用的内存前",
    after_trim: "释放未使用的内存后",
    before_final_cleanup: "最终清理前",
    final_cleanup: "最终清理",
  },
  notices: {
    "memory.elevated": ({ kind, share, relief: told }) => `${kind === "gpu" ? "显存" : "系统内存"}已使用 ${percent(share)}。${relief(told)}`,
    "memory.critical": ({ kind, share, relief: told }) => `${kind === "gpu" ? "显存" : "系统内存"}即将用尽（${percent(share)}）。${relief(told)}`,
    "memory.occupied": ({ kind, used, total, ours, others, programs }) => {
      const named = programs.map(({ name, pid, bytes }) => `${name ?? "进程"} [${pid}] ${memorySize(bytes)}`);
      return (
        `加载前${kind === "gpu" ? "显存" : "系统内存"} ${memorySize(total)} 中已有 ${memorySize(used)} 被占用：` +
        `Steno ${memorySize(ours)}，其他程序 ${memorySize(others)}${named.length > 0 ? `（${list(named)}）` : ""}。`
      );
    },
    "memory.not_recovered": ({ stage, taken, share, remaining, fragmented }) =>
      `${MOMENTS[stage]}占用的内存未完全释放：${memorySize(taken)} 中释放了 ${percent(share)}，${memorySize(remaining)} ` +
      (fragmented ? "虽然空闲，但已碎片化。" : "仍被占用。"),
    "memory.release_failed": () => "无法释放内存。引擎将重新启动；结果不受影响。",
    "memory.leak": ({ grown, files }) => `在最近 ${files} 个文件中，内存占用增加了 ${memorySize(grown)}。引擎将在下一个文件之前重新启动。`,
    "memory.fragmentation": ({ sign }) =>
      sign.by === "idle"
        ? `已预留 ${memorySize(sign.reserved)}，其中仅使用 ${memorySize(sign.allocated)}：内存已碎片化。将释放未使用的内存；如果无效，引擎将重新启动。`
        : `有 ${memorySize(sign.free)} 空闲，却无法分配 ${memorySize(sign.asked)}：内存已碎片化。引擎将重新启动。`,
    "memory.spike": ({ before, after, peak, held }) =>
      `在“${engine.checkpoints[before]}”与“${engine.checkpoints[after]}”之间，内存短暂升至 ${memorySize(peak)}，随后回落到 ${memorySize(held)}。减小批次可降低这样的峰值。`,
    "memory.unavailable": () => "无法测量内存占用。",
    "memory.retried": ({ stage, trouble }) => step(trouble, stage, "已释放未使用的内存，并重试同一步骤。结果不变。"),
    "memory.engine_renewed": ({ stage, trouble }) => step(trouble, stage, "引擎已重新启动，并重试同一步骤。结果不变。"),
    "memory.batch_halved": ({ stage, trouble, speakers, from, to }) =>
      step(trouble, stage, `${speakers ? "说话人批次" : "批次"}已从 ${from} 减半为 ${to}。耗时更长；结果不变。`),
    "memory.precision_lowered": ({ stage, trouble, model, from, to }) =>
      step(trouble, stage, `${model} 以 ${to} 代替 ${from} 继续。${stage === "adapt" ? "学到的内容可能略有不同。" : "此后个别词语可能有所不同。"}`),
    "memory.smaller_model": ({ stage, trouble, from, to }) => step(trouble, stage, `由 ${to} 代替 ${from} 继续。此后错误可能增多。`),
    "memory.moved_to_cpu": ({ stage, trouble }) => step(trouble, stage, "任务在 CPU 上继续。此后耗时为原来的数倍。"),
    "memory.speakers_skipped": ({ stage, trouble }) => step(trouble, stage, "不再识别说话人。文稿不会标明谁在说话。"),
    "memory.gave_up": ({ stage, trouble, kept }) =>
      `${happened(trouble, stage)}，且没有更小的选择。请关闭其他程序，或` +
      (kept.length === 0 ? "选择更小的模型。" : `在设置的“始终保留”中取消勾选${list(kept.map((one) => PINNED[one]))}。`),
    "memory.will_not_fit": ({ model, precision }) => `可用内存容纳不下 ${model}（${precision}）。`,
    "audio.truncated": ({ decoded, declared }) =>
      `文件已损坏或被截断：${declared === null ? "" : `在 ${clock(declared)} 中`}仅能解码 ${clock(decoded)}。`,
    "audio.damaged": ({ silenced }) => `文件的部分内容已损坏${silenced ? "，这些位置以静音代替" : ""}。`,
    "audio.phase": ({ channel, decibels }) => `各声道相互抵消：混合后音量会降低 ${round(decibels)} dB。仅转写声道 ${channel}。`,
    "audio.mono": () => "该录音只有一个声道，将转写该声道。",
    "audio.several_tracks": ({ tracks, taken, language }) =>
      `该文件有 ${tracks} 条音轨；正在转写音轨 ${taken + 1}${language === null ? "" : `（${languageName(language)}）`}。`,
    "speakers.maybe_known": ({ speaker, person }) => `${speaker} 可能是 ${person}。请试听，如果正确，请将 ${speaker} 改名。`,
    "model.of_language": ({ language, probability, model }) =>
      `语言为${languageName(language)}（${percent(probability)}），因此由模型 ${model} 转写此录音。`,
    "model.language_not_identified": () => "无法识别语言，因此由所选模型转写。",
    "speakers.voices_unreadable": () => "无法读取已知声音。说话人以编号代替名字。",
    "transcript.gaps": ({ gaps }) => `有 ${gaps} 处超过 2 秒的语音没有文本。`,
    "transcript.discarded": ({ passages }) => `已略去 ${passages} 处无语音的文本。`,
    "transcript.again": ({ from, to, model }) => `已使用模型 ${model} 重新转写 ${clock(from)} 至 ${clock(to)} 的部分。`,
    "transcript.again_failed": () => "无法重新转写这一部分。",
    "engine.restarted": () => "引擎意外停止并已重新启动。转写从中断处继续。",
    "engine.window_skipped": ({ times }) => `引擎在此处停止了 ${times} 次，因此跳过此处。`,
    "device.waiting": ({ device }) => `另一个 Steno 正在使用 ${device === "cpu" ? "CPU" : device}。下一个轮到此录音。`,
    "device.unusable": ({ device, problem }) => `不使用 ${device}，由 CPU 计算。${cardProblem(problem)}`,
    "journal.unavailable": () => "无法保存进度：如果 Steno 现在退出，此录音将从头开始。",
    "journal.file_changed": () => "录音在中断后发生了更改：将从头开始。",
    "history.unavailable": () => "该文稿不在历史记录中：可以保存，但无法编辑。",
    "history.damaged": () => "只能读取该文稿的开头部分。",
    "export.failed": ({ file }) => `文稿未保存${file === null ? "" : `：${file}`}。`,
  },
  remedies: {
    file_not_found: "文件可能已被移动、重命名或删除，或其磁盘未连接。",
    folder_not_found: "文件夹可能已被移动、重命名或删除，或其磁盘未连接。Steno 会继续检查。",
    file_unreadable: "请检查文件权限及其所在磁盘。",
    not_a_file: "请选择录音或文件夹。",
    file_empty: "文件可能未复制完整。",
    file_incomplete: "请从来源重新复制文件：文件末尾的索引缺失。中断的录音需要用其他程序修复。",
    no_recordings: "请选择包含音频或视频文件的文件夹。",
    no_audio_track: "请选择有声音的文件。",
    no_such_track: "请选择其他音轨。",
    unknown_format: "请选择音频或视频文件。",
    unsupported_codec: "请将录音转换为 WAV 或 FLAC，或安装 ffmpeg。",
    needs_ffmpeg: "请安装 ffmpeg，或将录音转换为 WAV 或 FLAC。",
    audio_broken: "请从来源重新复制文件，或将其转换为 WAV 或 FLAC。",
    no_voice: "请选择此人发言更多的录音。",
    model_not_found: "请下载模型或选择其他模型。",
    model_invalid: "请重新下载或导入该模型。",
    model_unsupported: "请选择 Whisper 模型。",
    language_unknown: "请选择其他语言，或支持多种语言的模型。",
    bad_settings: "请检查设置。",
    name_taken: "该名称已被使用。请选择其他名称。",
    name_missing: "请输入名称。",
    recording_gone: "请重新添加该录音。",
    transcript_gone: "请从历史记录中打开。",
    bad_pattern: "请更正表达式，或搜索普通文本。",
    device_unavailable: "请选择其他设备，或更新其驱动程序。",
    out_of_memory: "请关闭其他程序，或选择更小的模型。",
    network_off: "请在设置中允许网络访问。",
    network_failed: "请检查网络连接，然后重试。",
    download_refused: "如果该模型需要账户，请在其页面上接受条款，并将 HF_TOKEN 设为您的令牌。",
    server_refused: "请在设置中输入另一台电脑的令牌。",
    server_busy: "Steno 会自动重试。",
    recording_refused: "请在另一台电脑上允许更大的录音，或在本机转写。",
    model_corrupt: "请重新下载该模型。",
    model_in_use: "请等待另一个程序使用完毕。",
    disk_full: "请释放磁盘空间，然后重试。",
    output_exists: "请替换该文件，或保存到其他位置。",
    output_unwritable: "请选择其他文件夹，或检查此文件夹的权限。",
    output_name_too_long: "请使用更短的名称，或在设置中缩短文件名模板。",
    engine_not_found: "请重新安装 Steno：缺少一部分。",
    engine_failed: "请重试。如果再次失败，请在设置中复制诊断信息并报告。",
    engine_silent: "请重试。如果再次发生，请关闭其他程序或选择更小的模型。",
    no_microphone: "请连接麦克风，并安装 pw-record（PipeWire）、parecord（PulseAudio）或 arecord（ALSA）。",
    no_embedding_model: "请在“模型”页面下载用于语义搜索的模型。",
    recording_too_short: "如果文本需要章节，请手动添加。",
    one_subject: "如果文本需要章节，请手动添加。",
    no_chapters: "请先在文本上方查找章节，或手动添加。",
    no_speakers: "请先在文本上方识别说话人。",
    player_failed: "请重新播放，或先将录音转换为 WAV 或 FLAC。",
    protocol_mismatch: "请重新安装 Steno：各部分的版本不一致。",
    cancelled: "在完成之前已停止。",
    internal: "请重试。如果再次失败，请在设置中复制诊断信息并报告。",
  },
};
