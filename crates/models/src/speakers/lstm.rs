//! Long short-term memory (Hochreiter and Schmidhuber, 1997) in torch's layout:
//! gates in the order input, forget, cell, output.

use candle_core::{D, Tensor};
use rayon::prelude::*;

use super::tensors::NamedTensors;
use crate::Error;
use crate::fused::{self, is_host_f32, sigmoid};
use crate::matrix::with_values;
use crate::vectorised::{Kernel, vectorised};

/// Layers one above the other, each in one direction or in both.
#[derive(Debug)]
pub struct Lstm {
    layers: Vec<Layer>,
    /// Width of a state.
    pub hidden: usize,
    directions: usize,
}

#[derive(Debug)]
struct Layer {
    /// Per direction: weights of the input, (input, 4 hidden), and the bias, (4 hidden).
    input: Vec<(Tensor, Tensor)>,
    /// Weights of the state, (directions, hidden, 4 hidden).
    state: Tensor,
}

/// Rows that one thread takes through all steps. With more, each step's gates do
/// not stay in the core's cache.
const ROWS_PER_TASK: usize = 32;

impl Lstm {
    /// Reads `lstm.weight_ih_l0` and so on; their shapes say how many layers,
    /// directions and states there are.
    pub fn read(tensors: &NamedTensors) -> Result<Self, Error> {
        let hidden = tensors.any("lstm.weight_hh_l0")?.dim(1)?;
        let directions: &[&str] =
            if tensors.contains("lstm.weight_ih_l0_reverse") { &["", "_reverse"] } else { &[""] };
        let mut width = tensors.any("lstm.weight_ih_l0")?.dim(1)?;
        let mut layers = Vec::new();
        while tensors.contains(&format!("lstm.weight_ih_l{}", layers.len())) {
            let mut layer = Vec::new();
            let mut states = Vec::new();
            for direction in directions {
                let name = |part: &str| format!("lstm.{part}_l{}{direction}", layers.len());
                let weights = tensors.get(&name("weight_ih"), &[4 * hidden, width])?;
                let state = tensors.get(&name("weight_hh"), &[4 * hidden, hidden])?;
                let bias = (tensors.get(&name("bias_ih"), &[4 * hidden])?
                    + tensors.get(&name("bias_hh"), &[4 * hidden])?)?;
                layer.push((weights.t()?.contiguous()?, bias));
                states.push(state.t()?.contiguous()?);
            }
            layers.push(Layer { input: layer, state: Tensor::stack(&states, 0)? });
            width = directions.len() * hidden;
        }
        Ok(Self { layers, hidden, directions: directions.len() })
    }

    /// The states of the last layer: (steps, rows, directions x hidden) of an
    /// input (steps, rows, width).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let mut x = x.contiguous()?;
        for layer in &self.layers {
            let (steps, rows, width) = x.dims3()?;
            let flat = x.reshape((steps * rows, width))?;
            let mut gates = Vec::new();
            for (direction, (weights, bias)) in layer.input.iter().enumerate() {
                let of_input = flat.matmul(weights)?.broadcast_add(bias)?;
                let of_input = of_input.reshape((steps, rows, 4 * self.hidden))?;
                // The second direction reads from the end.
                gates.push(if direction == 0 { of_input } else { of_input.flip(&[0])? });
            }
            let gates = if let [one] = &gates[..] { one.unsqueeze(0)? } else { Tensor::stack(&gates, 0)? };
            let states = if is_host_f32(&gates) {
                recurrence_on_host(&gates, &layer.state, self.hidden)?
            } else {
                recurrence(&gates, &layer.state, self.hidden)?
            };
            x = if self.directions == 1 {
                states.squeeze(0)?
            } else {
                let backward = states.narrow(0, 1, 1)?.squeeze(0)?.flip(&[0])?;
                Tensor::cat(&[states.narrow(0, 0, 1)?.squeeze(0)?, backward], D::Minus1)?.contiguous()?
            };
        }
        Ok(x)
    }
}

/// States after each step, (directions, steps, rows, hidden), of gates that the
/// input contributes, (directions, steps, rows, 4 hidden), by candle's operations.
fn recurrence(gates: &Tensor, weights: &Tensor, hidden: usize) -> Result<Tensor, Error> {
    let (directions, steps, rows, _) = gates.dims4()?;
    let mut h = Tensor::zeros((directions, rows, hidden), gates.dtype(), gates.device())?;
    let mut c = h.clone();
    let mut states = Vec::with_capacity(steps);
    for step in 0..steps {
        let of_input = gates.narrow(1, step, 1)?.squeeze(1)?;
        let all = (of_input + h.matmul(weights)?)?;
        let gate = |number: usize| all.narrow(D::Minus1, number * hidden, hidden)?.contiguous();
        let (input, forget) = (candle_nn::ops::sigmoid(&gate(0)?)?, candle_nn::ops::sigmoid(&gate(1)?)?);
        c = ((forget * c)? + (input * gate(2)?.tanh()?)?)?;
        h = (candle_nn::ops::sigmoid(&gate(3)?)? * c.tanh()?)?;
        states.push(h.clone());
    }
    Ok(Tensor::stack(&states, 1)?)
}

/// As [`recurrence`], on the host: threads take blocks of rows, each through all
/// steps, so that they never wait for each other.
fn recurrence_on_host(gates: &Tensor, weights: &Tensor, hidden: usize) -> Result<Tensor, Error> {
    let (directions, steps, rows, _) = gates.dims4()?;
    let tasks: Vec<(usize, usize)> = (0..directions)
        .flat_map(|direction| (0..rows).step_by(ROWS_PER_TASK).map(move |row| (direction, row)))
        .collect();
    let blocks: Vec<Vec<f32>> = with_values(gates, |gates| {
        with_values(weights, |weights| {
            tasks
                .par_iter()
                .map(|(direction, first)| {
                    let gates = &gates[direction * steps * rows * 4 * hidden..][..steps * rows * 4 * hidden];
                    let weights = &weights[direction * hidden * 4 * hidden..][..hidden * 4 * hidden];
                    let count = ROWS_PER_TASK.min(rows - first);
                    run_rows(gates, weights, (steps, rows, hidden), *first, count)
                })
                .collect()
        })
    })??;
    let mut out = vec![0.0; directions * steps * rows * hidden];
    for ((direction, first), block) in tasks.into_iter().zip(blocks) {
        let count = block.len() / (steps * hidden).max(1);
        for (step, states) in block.chunks_exact((count * hidden).max(1)).enumerate() {
            let at = ((direction * steps + step) * rows + first) * hidden;
            out[at..at + states.len()].copy_from_slice(states);
        }
    }
    Ok(Tensor::from_vec(out, (directions, steps, rows, hidden), gates.device())?)
}

/// The states of `count` rows from `first` on, (steps, count, hidden).
fn run_rows(
    gates: &[f32],
    weights: &[f32],
    (steps, rows, hidden): (usize, usize, usize),
    first: usize,
    count: usize,
) -> Vec<f32> {
    let mut states = vec![0.0; steps * count * hidden];
    let mut cells = vec![0.0; count * hidden];
    let mut sums = vec![0.0; count * 4 * hidden];
    for step in 0..steps {
        let of_input = &gates[(step * rows + first) * 4 * hidden..][..count * 4 * hidden];
        let (before, now) = states.split_at_mut(step * count * hidden);
        if step == 0 {
            sums.copy_from_slice(of_input);
        } else {
            let before = &before[(step - 1) * count * hidden..];
            fused::matrix_product(&mut sums, before, weights, (count, hidden, 4 * hidden));
            vectorised(AddKernel { to: &mut sums, from: of_input });
        }
        let h = &mut now[..count * hidden];
        vectorised(CellKernel { gates: &sums, cells: &mut cells, states: h, hidden });
    }
    states
}

struct AddKernel<'a> {
    to: &'a mut [f32],
    from: &'a [f32],
}

impl Kernel for AddKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self.to.iter_mut().zip(self.from).for_each(|(to, from)| *to += from);
    }
}

/// One step of rows whose gates are known, (rows, 4 hidden): `cells` and `states` are (rows, hidden).
pub(crate) fn step(gates: &[f32], cells: &mut [f32], states: &mut [f32], hidden: usize) {
    vectorised(CellKernel { gates, cells, states, hidden });
}

/// One step of rows whose gates are known.
struct CellKernel<'a> {
    gates: &'a [f32],
    cells: &'a mut [f32],
    states: &'a mut [f32],
    hidden: usize,
}

impl Kernel for CellKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let hidden = self.hidden;
        let rows = self.gates.chunks_exact(4 * hidden);
        let rows = rows.zip(self.cells.chunks_exact_mut(hidden)).zip(self.states.chunks_exact_mut(hidden));
        for ((gates, cells), states) in rows {
            let (input, rest) = gates.split_at(hidden);
            let (forget, rest) = rest.split_at(hidden);
            let (new, output) = rest.split_at(hidden);
            for n in 0..hidden {
                cells[n] = sigmoid(forget[n]) * cells[n] + sigmoid(input[n]) * tanh(new[n]);
                states[n] = sigmoid(output[n]) * tanh(cells[n]);
            }
        }
    }
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};

    /// (directions, steps, rows, hidden): one row, a full block and a rest.
    #[test]
    fn the_host_computes_what_candle_does() {
        for (directions, steps, rows, hidden) in [(1, 1, 1, 3), (2, 40, 5, 16), (1, 25, 70, 24)] {
            let gates =
                Tensor::randn(0f32, 2.0, (directions, steps, rows, 4 * hidden), &Device::Cpu).unwrap();
            let weights = Tensor::randn(0f32, 0.3, (directions, hidden, 4 * hidden), &Device::Cpu).unwrap();
            let expected = recurrence(&gates, &weights, hidden).unwrap();
            let found = recurrence_on_host(&gates, &weights, hidden).unwrap();
            assert_eq!(found.dtype(), DType::F32);
            let off =
                (found - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(off < 2e-5, "{directions} x {steps} x {rows} x {hidden}: off by {off}");
        }
    }
}
