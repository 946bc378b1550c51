//! The ladder as a host sees it: what an engine was given, what it may be
//! given instead, and how that stands in a job.

use memory::Stage;
use memory::ladder::{Installed, Ladder, LadderSettings, LadderState, Processor, Rung, Trouble};
use wire::{Alternative, DeviceChoice, Job};

/// The top of a job's ladder, for an engine that died before it said where it
/// began: as far as the job tells. `place` is where that engine computes.
pub fn top(job: &Job, place: Processor) -> LadderState {
    let known = job.alternatives.iter().find(|known| known.path == job.model);
    let installed = known.map(|known| &known.installed);
    let precision = job.precision.map(|wanted| wanted.as_str().to_owned());
    LadderState::new(LadderSettings {
        model: installed.map(|it| it.model.clone()).unwrap_or_default(),
        precision: precision.or(installed.map(|it| it.precision.clone())).unwrap_or_default(),
        batch: job.memory.batch_size.unwrap_or(1),
        place,
        speakers: job.speakers,
        speaker_batch: job.memory.speaker_batch_size.unwrap_or(1),
        speaker_place: place,
    })
}

/// What may take over, with what is in use among it: weights are widened
/// on some machines and then go by another precision than their file's.
pub fn installed(job: &Job, now: &LadderSettings) -> Vec<Installed> {
    let mut installed: Vec<_> = job.alternatives.iter().map(|known| known.installed.clone()).collect();
    let of_model = || installed.iter().filter(|known| known.model == now.model);
    if of_model().all(|known| known.precision != now.precision)
        && let Some(known) = of_model().max_by_key(|known| known.host_bytes.max(known.gpu_bytes)).cloned()
    {
        installed.push(Installed { precision: now.precision.clone(), ..known });
    }
    installed
}

/// Writes a ladder's settings into the job.
pub fn apply(job: &mut Job, settings: &LadderSettings) {
    let named = |known: &&Alternative| known.installed.model == settings.model;
    let exact = job.alternatives.iter().filter(named).find(|it| it.installed.precision == settings.precision);
    if let Some(known) = exact.or(job.alternatives.iter().find(named)) {
        job.model = known.path.clone();
    }
    if let Ok(precision) = settings.precision.parse() {
        job.precision = Some(precision);
    }
    job.memory.batch_size = Some(settings.batch);
    job.memory.speaker_batch_size = Some(settings.speaker_batch);
    job.speakers &= settings.speakers;
    if settings.place == Processor::Cpu {
        job.device = DeviceChoice::Cpu;
    }
}

/// The next step down after an engine died for lack of memory, and the job as
/// the next engine gets it; `None` where no step is left. `place` is where the
/// engine computed. For jobs that are not transcriptions; a [`Supervisor`](crate::Supervisor)
/// decides for those.
pub fn step_down(job: &Job, place: Processor) -> Option<(Rung, Job)> {
    step_down_in(Stage::Transcribe, job, place)
}

/// As [`step_down`], of an engine that died in this stage.
pub(crate) fn step_down_in(stage: Stage, job: &Job, place: Processor) -> Option<(Rung, Job)> {
    let told = job.resume.as_ref().and_then(|resume| resume.ladder.clone());
    let state = told.unwrap_or_else(|| top(job, place));
    let ladder = Ladder { pins: job.memory.pins(), installed: installed(job, &state.settings) };
    let rung = ladder.next(stage, &state, Trouble::Died)?;
    let mut next = job.clone();
    take(&mut next, &rung);
    Some((rung, next))
}

/// Has the job go on from a step that was taken.
pub fn take(job: &mut Job, rung: &Rung) {
    apply(job, &rung.to.settings);
    job.resume.get_or_insert_default().ladder = Some(rung.to.clone());
}

/// Whether what was learned from one job holds for another.
pub fn is_comparable(a: &Job, b: &Job) -> bool {
    a.model == b.model && a.device == b.device && a.precision == b.precision && a.memory == b.memory
}

#[cfg(test)]
mod tests {
    use memory::ladder::Step;

    use super::*;

    /// As `learning` asks for it: the model as it is, and with its matrices in 16 bits.
    fn training(batch: u32) -> Job {
        let way = |precision: &str, bytes| Alternative {
            path: "small".into(),
            installed: Installed {
                model: "small".into(),
                precision: precision.into(),
                parameters: 242_000_000,
                gpu_bytes: bytes,
                host_bytes: bytes,
                suits: true,
            },
        };
        let mut job = Job::new(1, "", "small");
        job.alternatives = vec![way("f32", 1000), way("bf16", 500)];
        let settings = LadderSettings { batch, ..top(&job, Processor::Gpu).settings };
        job.resume.get_or_insert_default().ladder = Some(LadderState::new(settings));
        job
    }

    #[test]
    fn training_that_dies_of_memory_goes_on_with_less_of_it() {
        let mut job = training(2);
        let mut taken = Vec::new();
        while let Some((rung, next)) = step_down_in(Stage::Adapt, &job, Processor::Gpu) {
            let to = &rung.to.settings;
            taken.push((rung.step, to.batch, to.precision.clone(), to.place));
            job = next;
        }
        let step = |step, precision: &str, place| (step, 1, precision.to_owned(), place);
        assert_eq!(
            taken,
            [
                step(Step::HalveBatch, "f32", Processor::Gpu),
                step(Step::LowerPrecision, "bf16", Processor::Gpu),
                step(Step::Cpu, "bf16", Processor::Cpu),
            ]
        );

        let mut pinned = training(1);
        pinned.memory.pins.precision = true;
        let (rung, _) = step_down_in(Stage::Adapt, &pinned, Processor::Gpu).unwrap();
        assert_eq!(rung.step, Step::Cpu);
    }
}
