use candle_core::{DType, Tensor, Var};

use super::{Adapters, Gradients};
use crate::Error;

/// AdamW (Loshchilov and Hutter, 2019, arXiv:1711.05101), with the defaults of PyTorch but no
/// decay of weights: adapters begin at zero and are few. Its moments can be stored, so that
/// training goes on where it was interrupted.
#[derive(Debug)]
pub struct AdamW {
    /// First and second moment by variable.
    moments: Vec<(Var, Var)>,
    steps: u32,
}

impl AdamW {
    const BETA_1: f64 = 0.9;
    const BETA_2: f64 = 0.999;
    const EPSILON: f64 = 1e-8;

    /// Without any step.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device has no memory left.
    pub fn new(adapters: &Adapters) -> Result<Self, Error> {
        let zeros = |var: &Var| Var::zeros(var.shape(), DType::F32, var.device());
        let moments = adapters.variables().into_iter().map(|var| Ok((zeros(var)?, zeros(var)?)));
        Ok(Self { moments: moments.collect::<Result<_, Error>>()?, steps: 0 })
    }

    /// Steps done.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Changes every variable that has a gradient.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left.
    pub fn step(&mut self, adapters: &Adapters, gradients: &Gradients, rate: f64) -> Result<(), Error> {
        self.steps += 1;
        let correction = |beta: f64| 1.0 - beta.powi(self.steps as i32);
        let (first_correction, second_correction) = (correction(Self::BETA_1), correction(Self::BETA_2));
        let all = adapters.variables().into_iter().zip(gradients.all()).zip(&self.moments);
        for ((variable, gradient), (first, second)) in all {
            let Some(gradient) = gradient else { continue };
            let next = ((first.as_tensor() * Self::BETA_1)? + (gradient * (1.0 - Self::BETA_1))?)?;
            first.set(&next)?;
            let squared = ((second.as_tensor() * Self::BETA_2)? + (gradient.sqr()? * (1.0 - Self::BETA_2))?)?;
            second.set(&squared)?;
            let divisor = ((squared / second_correction)?.sqrt()? + Self::EPSILON)?;
            let change = ((next * (rate / first_correction))? / divisor)?;
            variable.set(&(variable.as_tensor() - change)?)?;
        }
        Ok(())
    }

    /// First and second moments of all variables, one after the other.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails.
    pub fn state(&self) -> Result<Vec<f32>, Error> {
        let mut all = Vec::new();
        for moment in self.moments.iter().flat_map(|(first, second)| [first, second]) {
            all.extend(moment.to_device(&candle_core::Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(all)
    }

    /// Goes on from a state of [`AdamW::state`] after so many steps; `false`: it is that of other adapters.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left.
    pub fn restore(&mut self, state: &[f32], steps: u32) -> Result<bool, Error> {
        let needed: usize = self.moments.iter().map(|(first, _)| 2 * first.elem_count()).sum();
        if state.len() != needed {
            return Ok(false);
        }
        let mut rest = state;
        for moment in self.moments.iter().flat_map(|(first, second)| [first, second]) {
            let (values, behind) = rest.split_at(moment.elem_count());
            moment.set(&Tensor::from_slice(values, moment.shape(), moment.device())?)?;
            rest = behind;
        }
        self.steps = steps;
        Ok(true)
    }
}

/// The learning rate at step `step` of `steps`, from 0: it rises over the first tenth, then
/// follows a cosine down to a hundredth of `highest`.
pub fn cosine(step: u32, steps: u32, highest: f64) -> f64 {
    const LAST: f64 = 0.01;
    let warm_up = steps.div_ceil(10);
    if step < warm_up {
        return highest * f64::from(step + 1) / f64::from(warm_up + 1);
    }
    let done = f64::from(step - warm_up) / f64::from((steps - warm_up).max(1));
    let share = 0.5 * (1.0 + (std::f64::consts::PI * done.min(1.0)).cos());
    highest * (LAST + (1.0 - LAST) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_then_falls_to_a_hundredth() {
        let rates: Vec<f64> = (0..=100).map(|step| cosine(step, 100, 1.0)).collect();
        assert!(rates[..=10].windows(2).all(|pair| pair[0] < pair[1]), "{rates:?}");
        assert!(rates[10..].windows(2).all(|pair| pair[0] > pair[1]), "{rates:?}");
        assert!((rates[10] - 1.0).abs() < 1e-9 && (rates[100] - 0.01).abs() < 1e-9);
        assert!(cosine(0, 1, 1.0) > 0.0);
    }
}
