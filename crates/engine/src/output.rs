use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use transcript::{Segment, Transcript};
use wire::{Envelope, Event, write_frame};

/// Where every thread puts its events. Putting one there never waits for the
/// host: a thread of its own does that.
#[derive(Debug, Clone)]
pub struct Output {
    queue: Sender<Message>,
}

#[derive(Debug)]
enum Message {
    Event(Box<Envelope>),
    Flush(Sender<()>),
}

impl Output {
    /// Starts the writing thread. `broken` is called on it once the host takes
    /// no more.
    pub fn start(
        to: impl Write + Send + 'static,
        broken: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, messages) = mpsc::channel();
        thread::Builder::new().name("writer".into()).spawn(move || {
            if let Err(error) = write_all(messages, to) {
                eprintln!("steno-engine: the host takes no more events: {error}");
                broken();
            }
        })?;
        Ok(Self { queue })
    }

    pub fn send(&self, mut event: Envelope) {
        make_finite(&mut event.body);
        // Fails only where the host is gone, which ends the engine elsewhere.
        let _ = self.queue.send(Message::Event(Box::new(event)));
    }

    /// Waits until everything sent before has left, or for `limit`.
    pub fn flush(&self, limit: Duration) {
        let (done, wait) = mpsc::channel();
        if self.queue.send(Message::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(limit);
        }
    }
}

/// Takes `messages` by value: once this returns no caller waits for a flush.
fn write_all(messages: Receiver<Message>, to: impl Write) -> Result<(), wire::FrameError> {
    let mut to = BufWriter::new(to);
    for message in messages {
        match message {
            Message::Event(event) => write_frame(&mut to, &event)?,
            Message::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
    Ok(())
}

/// JSON knows no infinity and no NaN: a mean over nothing would make the whole
/// message unreadable on the other side, and the transcript with it.
fn make_finite(event: &mut Event) {
    match event {
        Event::Segment { segment, .. } => make_segment_finite(segment),
        Event::Finished { transcript, .. } => make_transcript_finite(transcript),
        Event::Cancelled { partial: Some(transcript), .. }
        | Event::Failed { partial: Some(transcript), .. } => make_transcript_finite(transcript),
        Event::Vectors { vectors, per_second, .. } => {
            vectors.iter_mut().for_each(|one| one.vector.iter_mut().for_each(clamp));
            clamp(per_second);
        }
        Event::Adapting { progress } => {
            [&mut progress.loss, &mut progress.held_back_loss, &mut progress.left]
                .into_iter()
                .flatten()
                .for_each(clamp);
        }
        Event::Adapted { adapted, .. } => {
            adapted.losses.iter_mut().chain(&mut adapted.held_back).for_each(clamp);
        }
        Event::Language { probabilities, .. } => probabilities.iter_mut().for_each(|(_, p)| clamp(p)),
        _ => {}
    }
}

fn make_transcript_finite(transcript: &mut Transcript) {
    transcript.segments.iter_mut().for_each(make_segment_finite);
    if let Some(run) = &mut transcript.run {
        for stage in &mut run.stages {
            clamp_f64(&mut stage.seconds);
            clamp_f64(&mut stage.processor_seconds);
        }
        clamp_f64(&mut run.real_time_factor);
    }
}

fn make_segment_finite(segment: &mut Segment) {
    clamp(&mut segment.temperature);
    clamp(&mut segment.mean_log_probability);
    clamp(&mut segment.no_speech_probability);
    clamp(&mut segment.compression_ratio);
    segment.words.iter_mut().for_each(|word| clamp(&mut word.probability));
}

/// Infinities become the largest number of their sign, NaN becomes zero.
fn clamp(value: &mut f32) {
    *value = if value.is_nan() { 0.0 } else { value.clamp(f32::MIN, f32::MAX) };
}

fn clamp_f64(value: &mut f64) {
    *value = if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) };
}
