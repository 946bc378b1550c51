//! `--timings`: what the time of a command went into.

use std::time::{Duration, Instant};

use transcript::StageTime;

/// Begins with the command.
#[derive(Debug)]
pub struct Timings {
    started: Instant,
    cores: Vec<CoreTime>,
}

/// What a core of the machine did since it was started, whoever asked for it, in the system's ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CoreTime {
    idle: u64,
    all: u64,
}

impl Timings {
    pub fn begin() -> Self {
        Self { started: Instant::now(), cores: cores() }
    }

    /// Lines with the stages of a job, what remains of the time since the command began (or since the last
    /// table), and how long each core of the machine was idle.
    pub fn table(&mut self, stages: &[StageTime]) -> String {
        let took = self.started.elapsed();
        let cores = cores();
        let text = table(stages, took, &idle_shares(&self.cores, &cores));
        *self = Self { started: Instant::now(), cores };
        text
    }
}

fn table(stages: &[StageTime], took: Duration, idle: &[f64]) -> String {
    let took = took.as_secs_f64();
    let share = |seconds: f64| if took > 0.0 { 100.0 * seconds / took } else { 0.0 };
    let line = |name: &str, seconds: f64| format!("  {name:<40} {seconds:>9.3} s {:>5.1} %", share(seconds));
    let mut lines: Vec<String> = stages
        .iter()
        .map(|stage| {
            let busy = if stage.seconds > 0.0 { stage.processor_seconds / stage.seconds } else { 0.0 };
            format!("{}   {busy:.1} cores busy", line(title(&stage.name), stage.seconds))
        })
        .collect();
    let known: f64 = stages.iter().map(|stage| stage.seconds).sum();
    lines.push(line("starting the engine, waiting, writing files", (took - known).max(0.0)));
    lines.push(line("all", took));
    if !idle.is_empty() {
        let each: Vec<String> =
            idle.iter().enumerate().map(|(core, share)| format!("{core}: {:.0} %", 100.0 * share)).collect();
        lines.push(format!("  time in which a core of this machine was idle: {}", each.join(", ")));
    }
    lines.join("\n")
}

/// What a stage of the engine is called here; one that a later engine adds has its own name.
fn title(stage: &str) -> &str {
    match stage {
        "load_model" => "reading the model",
        "preview" => "first words of a long recording",
        "preprocess" => "decoding the file, finding speech",
        "language" => "finding the language",
        "log_mel" => "log-mel",
        "encode" => "encoder",
        "decode" => "decoder",
        "word_times" => "times of words",
        "transcribe" => "other parts of transcribing",
        "speakers" => "telling speakers apart",
        other => other,
    }
}

/// Which share of the time each core was idle.
fn idle_shares(before: &[CoreTime], after: &[CoreTime]) -> Vec<f64> {
    before
        .iter()
        .zip(after)
        .map(|(before, after)| {
            let all = after.all.saturating_sub(before.all);
            if all == 0 { 0.0 } else { after.idle.saturating_sub(before.idle) as f64 / all as f64 }
        })
        .collect()
}

/// Empty where the system doesn't tell.
fn cores() -> Vec<CoreTime> {
    std::fs::read_to_string("/proc/stat").map(|text| parse(&text)).unwrap_or_default()
}

/// Lines `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; guests are in `user` already.
fn parse(text: &str) -> Vec<CoreTime> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.strip_prefix("cpu")?.split_whitespace();
            // The line of all cores has no number.
            line.as_bytes().get(3)?.is_ascii_digit().then(|| fields.next())?;
            let times: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
            Some(CoreTime { idle: times.get(3..5)?.iter().sum(), all: times.iter().sum() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_stage_took_is_a_line_of_its_own() {
        let stage = |name: &str, seconds, processor_seconds| StageTime {
            name: name.into(),
            seconds,
            processor_seconds,
        };
        let stages = [stage("load_model", 0.5, 0.5), stage("encode", 1.0, 1.9), stage("new_stage", 0.0, 0.0)];
        let text = table(&stages, Duration::from_secs(2), &[0.25, 0.0]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["reading", "the", "model", "0.500", "s", "25.0", "%", "1.0", "cores", "busy"]);
        assert_eq!(lines[1], ["encoder", "1.000", "s", "50.0", "%", "1.9", "cores", "busy"]);
        assert_eq!(lines[2], ["new_stage", "0.000", "s", "0.0", "%", "0.0", "cores", "busy"]);
        assert_eq!(lines[3][6..], ["0.500", "s", "25.0", "%"]);
        assert_eq!(lines[4], ["all", "2.000", "s", "100.0", "%"]);
        assert!(text.ends_with("0: 25 %, 1: 0 %"), "{text}");
    }

    #[test]
    fn cores_are_read_from_what_the_system_writes() {
        let text =
            "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 5 0 5 40 0 0 0 0 3 0\ncpu1 5 0 5 30 10 0 0 0 0 0\nintr 5\n";
        let before = [CoreTime { idle: 40, all: 50 }, CoreTime { idle: 40, all: 50 }];
        assert_eq!(parse(text), before);
        let after = [CoreTime { idle: 45, all: 60 }, CoreTime { idle: 50, all: 60 }];
        assert_eq!(idle_shares(&before, &after), [0.5, 1.0]);
        assert_eq!(idle_shares(&before, &before), [0.0, 0.0]);
    }
}
