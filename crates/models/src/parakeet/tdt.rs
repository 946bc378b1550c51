//! The token-and-duration transducer (Xu and others, arXiv:2304.06795): a recurrent network predicts from the tokens
//! so far, a joint network says from that and a frame which token comes and how far to go on.

use candle_core::{DType, Device, Tensor};
use formats::{ParakeetConfig, ParakeetHead};

use super::model::on_host;
use crate::boost::{Boost, Detour, Outcome, Progress, likeliest};
use crate::fused::log_sum_exp;
use crate::largest::arg_max;
use crate::layers::{Linear, Loader, Tick, tick};
use crate::matrix::{Matrix, with_values};
use crate::packed::FEW_ROWS;
use crate::speakers::lstm;
use crate::{Error, Token};

/// Prediction network and joint network. They compute on the host.
#[derive(Debug)]
pub struct Tdt {
    embedding: Matrix,
    layers: Vec<Recurrent>,
    predicted: Linear,
    frames: Linear,
    head: Linear,
    pub(super) durations: Vec<usize>,
    max_symbols: usize,
    pub(super) blank: u32,
    pub(super) vocabulary: usize,
    width: usize,
}

/// Weights of a layer of long short-term memory: (4 width, width) for the input and for the state, and their biases.
#[derive(Debug)]
struct Recurrent {
    input: Matrix,
    state: Matrix,
    bias: Vec<f32>,
}

/// What the prediction network remembers of the tokens before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PredictorState {
    /// Of each layer.
    states: Vec<Vec<f32>>,
    cells: Vec<Vec<f32>>,
}

/// A window that is being read.
struct Row<'a> {
    /// Its frames as the joint network takes them, (frames, width).
    frames: Vec<f32>,
    length: usize,
    place: Place,
    boost: Option<&'a Boost>,
    /// Where another token than the network's own choice was taken for a word to expect, and how it was before; while it
    /// is not known whether that is the word.
    detour: Option<(Detour, Place)>,
    /// The next token is the network's own choice.
    is_refused: bool,
}

/// How far a window is read.
#[derive(Clone, Default)]
pub(super) struct Place {
    /// The frame that is read, and the tokens that were written at it.
    pub(super) at: usize,
    pub(super) symbols: usize,
    last: u32,
    state: PredictorState,
    /// What follows from the last token, and the state behind it; `None` where that was not computed yet.
    prediction: Option<(Vec<f32>, PredictorState)>,
    pub(super) tokens: Vec<Token>,
    pub(super) progress: Progress,
}

impl Place {
    /// Goes on with a token to frame `at`, where `symbols` are written already.
    pub(super) fn write(&mut self, token: Token, (at, symbols): (usize, usize), boost: Option<&Boost>) {
        self.tokens.push(token);
        self.last = token.id;
        if let Some((_, state)) = self.prediction.take() {
            self.state = state;
        }
        (self.at, self.symbols) = (at, symbols);
        if let Some(boost) = boost {
            boost.advance(&mut self.progress, token.id, token.probability.ln());
        }
    }
}

impl Row<'_> {
    /// Goes back to where the network's own choice was left if that led to no word to expect.
    fn settle(&mut self) {
        let (Some(boost), Some((detour, _))) = (self.boost, &self.detour) else { return };
        if self.place.at >= self.length {
            boost.end(&mut self.place.progress);
        }
        match self.place.progress.outcome(*detour) {
            Outcome::Open => {}
            Outcome::Kept => self.detour = None,
            Outcome::Lost => {
                if let Some((_, before)) = self.detour.take() {
                    self.place = before;
                    self.is_refused = true;
                }
            }
        }
    }
}

impl Tdt {
    pub(super) fn load(loader: Loader, config: &ParakeetConfig) -> Result<Self, Error> {
        let of = &config.dimensions;
        let (width, vocabulary) = (of.predictor_width as usize, of.vocabulary as usize);
        let ParakeetHead::Tdt { durations, max_symbols } = &config.head else {
            return Err(candle_core::Error::Msg("a transducer without durations".into()).into());
        };
        let layer = |number: u64| -> Result<Recurrent, Error> {
            let matrix = |part: &str| {
                loader.matrix(&format!("decoder.lstm.weight_{part}_l{number}"), 4 * width, width)
            };
            let bias = |part: &str| loader.get(&format!("decoder.lstm.bias_{part}_l{number}"), &[4 * width]);
            Ok(Recurrent {
                input: matrix("ih")?,
                state: matrix("hh")?,
                bias: (bias("ih")? + bias("hh")?)?.to_vec1()?,
            })
        };
        Ok(Self {
            embedding: loader.matrix("decoder.embedding.weight", vocabulary, width)?,
            layers: (0..of.predictor_layers).map(layer).collect::<Result<_, _>>()?,
            predicted: loader.linear("decoder.decoder_projector", width, width, true)?,
            frames: loader.linear("encoder_projector", of.encoder.width as usize, width, true)?,
            head: loader.linear("joint.head", width, vocabulary + durations.len(), true)?,
            durations: durations.clone(),
            max_symbols: *max_symbols,
            blank: config.blank,
            vocabulary,
            width,
        })
    }

    /// The state before the first token.
    pub fn start(&self) -> PredictorState {
        let zeros = vec![vec![0.0; self.width]; self.layers.len()];
        PredictorState { states: zeros.clone(), cells: zeros }
    }

    /// Frames of the encoder, (frames, width of the encoder), as the joint network takes them, (frames, width).
    ///
    /// # Errors
    /// [`Error::Candle`] if memory runs out.
    pub fn project(&self, frames: &Tensor) -> Result<Tensor, Error> {
        self.frames.forward(&on_host(frames)?)
    }

    /// What follows from a token and the state before it, for several sequences: (sequences, width), and the states
    /// behind the tokens.
    ///
    /// # Errors
    /// [`Error::Candle`] for a token that is none, or if memory runs out.
    pub fn predict(
        &self,
        tokens: &[u32],
        before: &[&PredictorState],
    ) -> Result<(Tensor, Vec<PredictorState>), Error> {
        let (rows, width) = (tokens.len(), self.width);
        let ids = Tensor::from_slice(tokens, rows, &Device::Cpu)?;
        let mut x = self.embedding.rows(&ids, DType::F32)?;
        let mut after: Vec<PredictorState> = before.iter().map(|state| (*state).clone()).collect();
        for (number, layer) in self.layers.iter().enumerate() {
            let flat = |of: &dyn Fn(&PredictorState) -> &Vec<f32>| -> Vec<f32> {
                after.iter().flat_map(|state| of(state).iter().copied()).collect()
            };
            let states = Tensor::from_vec(flat(&|state| &state.states[number]), (rows, width), &Device::Cpu)?;
            let mut cells = flat(&|state| &state.cells[number]);
            let gates = (layer.input.product(&x)? + layer.state.product(&states)?)?;
            let mut gates: Vec<f32> = gates.flatten_all()?.to_vec1()?;
            for gates in gates.chunks_exact_mut(4 * width) {
                gates.iter_mut().zip(&layer.bias).for_each(|(gate, bias)| *gate += bias);
            }
            let mut states = vec![0.0; rows * width];
            lstm::step(&gates, &mut cells, &mut states, width);
            for (row, state) in after.iter_mut().enumerate() {
                state.states[number].copy_from_slice(&states[row * width..(row + 1) * width]);
                state.cells[number].copy_from_slice(&cells[row * width..(row + 1) * width]);
            }
            x = Tensor::from_vec(states, (rows, width), &Device::Cpu)?;
        }
        Ok((self.predicted.forward(&x)?, after))
    }

    /// Logits of all tokens and durations, (rows, vocabulary + durations), for rows of frames as [`Self::project`]
    /// gives them with a prediction added to each.
    ///
    /// # Errors
    /// [`Error::Candle`] if memory runs out.
    pub fn join(&self, sums: &Tensor) -> Result<Tensor, Error> {
        self.head.forward(&sums.relu()?)
    }

    /// Reads windows together, greedily, each as if it were alone (NeMo's label looping, Bataev and others,
    /// arXiv:2406.06220): the prediction network is asked once per token that was written.
    pub(super) fn read(
        &self,
        windows: &[Tensor],
        boost: Option<&Boost>,
        on_step: &Tick,
    ) -> Result<Vec<Vec<Token>>, Error> {
        let mut read = Vec::with_capacity(windows.len());
        // Products of few rows are the same however many there are.
        for windows in windows.chunks(FEW_ROWS) {
            let mut rows =
                windows.iter().map(|window| self.row(window, boost)).collect::<Result<Vec<_>, _>>()?;
            while self.step(&mut rows)? {
                tick(on_step)?;
            }
            read.extend(rows.into_iter().map(|row| row.place.tokens));
        }
        Ok(read)
    }

    fn row<'a>(&self, window: &Tensor, boost: Option<&'a Boost>) -> Result<Row<'a>, Error> {
        let frames = self.project(window)?;
        Ok(Row {
            length: frames.dim(0)?,
            frames: frames.flatten_all()?.to_vec1()?,
            place: self.beginning(),
            boost,
            detour: None,
            is_refused: false,
        })
    }

    /// Before the first frame.
    pub(super) fn beginning(&self) -> Place {
        Place {
            at: 0,
            symbols: 0,
            last: self.blank,
            state: self.start(),
            prediction: None,
            tokens: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// Takes every window one token or blank further; whether there was one that had not ended.
    fn step(&self, rows: &mut [Row]) -> Result<bool, Error> {
        let mut open: Vec<&mut Row> = rows.iter_mut().filter(|row| row.place.at < row.length).collect();
        if open.is_empty() {
            return Ok(false);
        }
        let places = open.iter_mut().map(|row| (&row.frames[..], &mut row.place)).collect();
        let logits = self.ask(places)?;
        let answers = self.vocabulary + self.durations.len();
        with_values(&logits, |logits| {
            for (row, logits) in open.iter_mut().zip(logits.chunks_exact(answers)) {
                self.take(row, logits);
            }
        })?;
        Ok(true)
    }

    /// What the networks say at places in windows whose frames are these: as [`Self::join`].
    pub(super) fn ask(&self, mut places: Vec<(&[f32], &mut Place)>) -> Result<Tensor, Error> {
        let width = self.width;
        let asked: Vec<usize> = (0..places.len()).filter(|row| places[*row].1.prediction.is_none()).collect();
        if !asked.is_empty() {
            let tokens: Vec<u32> = asked.iter().map(|row| places[*row].1.last).collect();
            let states: Vec<&PredictorState> = asked.iter().map(|row| &places[*row].1.state).collect();
            let (predicted, after) = self.predict(&tokens, &states)?;
            let predicted: Vec<Vec<f32>> = predicted.to_vec2()?;
            for ((row, prediction), state) in asked.into_iter().zip(predicted).zip(after) {
                places[row].1.prediction = Some((prediction, state));
            }
        }
        let mut sums = Vec::with_capacity(places.len() * width);
        for (frames, place) in &places {
            let frame = &frames[place.at * width..(place.at + 1) * width];
            let prediction = place.prediction.as_ref().map_or(&[][..], |(prediction, _)| prediction);
            sums.extend(frame.iter().zip(prediction).map(|(frame, prediction)| frame + prediction));
        }
        self.join(&Tensor::from_vec(sums, (places.len(), width), &Device::Cpu)?)
    }

    /// The frame that is read after a token, or a blank, that takes `frames`, and the tokens that are written at it.
    pub(super) fn behind(&self, place: &Place, is_blank: bool, frames: usize) -> (usize, usize) {
        if is_blank {
            // Nothing would change at the same frame.
            return (place.at + frames.max(1), 0);
        }
        match place.symbols + 1 {
            _ if frames > 0 => (place.at + frames, 0),
            // As NeMo: a network that never goes on is taken further.
            symbols if symbols >= self.max_symbols => (place.at + 1, 0),
            symbols => (place.at, symbols),
        }
    }

    /// What the logits say of a window's frame.
    fn take(&self, row: &mut Row, logits: &[f32]) {
        let (tokens, durations) = logits.split_at(self.vocabulary);
        let own = arg_max(tokens);
        let frames = self.durations.get(arg_max(durations)).copied().unwrap_or_default();
        if own == self.blank as usize {
            (row.place.at, row.place.symbols) = self.behind(&row.place, true, frames);
            row.settle();
            return;
        }
        let mut id = own;
        // Where the network hears no token there is none, whatever is expected.
        if let Some(boost) = row.boost
            && !std::mem::take(&mut row.is_refused)
        {
            id = likeliest(tokens, own, boost.all_bonuses(&row.place.progress));
            if id != own && row.detour.is_none() {
                row.detour = Some((Detour(row.place.tokens.len()), row.place.clone()));
            }
        }
        let place = &mut row.place;
        let probability = (tokens[id] - log_sum_exp(tokens)).exp();
        let token = Token { id: id as u32, frame: place.at, frames, probability };
        place.write(token, self.behind(place, false, frames), row.boost);
        row.settle();
    }
}
