use std::path::Path;

use formats::{Array, read_npz};

use crate::Error;

/// Probabilistic linear discriminant analysis (Ioffe, 2006) of vectors of voices:
/// transforms them so that within one voice each number varies by 1, and between
/// voices by [`Plda::between`].
///
/// Kaldi keeps the transform T that whitens within voices and makes their
/// covariances diagonal, with the variances psi between voices. pyannote computes
/// both covariances from them and solves B v = x W v; since W = (T'T)^-1 and B =
/// (T' psi^-1 T)^-1, its solutions are T's rows and psi, in descending order.
#[derive(Debug, Clone)]
pub struct Plda {
    first_mean: Vec<f64>,
    /// (width of a voice, width)
    projection: Vec<f64>,
    second_mean: Vec<f64>,
    mean: Vec<f64>,
    /// (width, width), the dimension that varies most between voices first.
    transform: Vec<f64>,
    between: Vec<f64>,
}

impl Plda {
    /// Opens pyannote's `xvec_transform.npz` and `plda.npz`.
    ///
    /// # Errors
    /// [`Error::Files`] for one that can't be read, is damaged or of other sizes.
    pub fn open(transform: &Path, plda: &Path) -> Result<Self, Error> {
        let (mut first, mut second) = (read_npz(transform)?, read_npz(plda)?);
        let mut take = |name: &str, of_transform: bool, rank: usize| -> Result<Array, Error> {
            let (arrays, path) = if of_transform { (&mut first, transform) } else { (&mut second, plda) };
            let array = arrays.remove(name);
            let array = array.ok_or_else(|| Error::invalid(path, format!("the array {name} is missing")))?;
            if array.shape.len() != rank || array.values.iter().any(|x| !x.is_finite()) {
                return Err(Error::invalid(
                    path,
                    format!("the array {name} has the shape {:?} or infinite numbers", array.shape),
                ));
            }
            Ok(array)
        };
        let (first_mean, second_mean) = (take("mean1", true, 1)?, take("mean2", true, 1)?);
        let projection = take("lda", true, 2)?;
        let (mean, rows, psi) = (take("mu", false, 1)?, take("tr", false, 2)?, take("psi", false, 1)?);
        let (voice, width) = (first_mean.values.len(), second_mean.values.len());
        if projection.shape != [voice, width] || width == 0 {
            let text =
                format!("the array lda has the shape {:?}, not {:?}", projection.shape, [voice, width]);
            return Err(Error::invalid(transform, text));
        }
        if mean.values.len() != width || rows.shape != [width, width] || psi.values.len() != width {
            return Err(Error::invalid(plda, format!("its arrays are not those of {width} dimensions")));
        }
        if psi.values.iter().any(|x| *x < 0.0) {
            return Err(Error::invalid(plda, "the array psi has negative variances"));
        }
        let mut order: Vec<usize> = (0..width).collect();
        order.sort_by(|a, b| psi.values[*b].total_cmp(&psi.values[*a]));
        Ok(Self {
            first_mean: first_mean.values,
            projection: projection.values,
            second_mean: second_mean.values,
            mean: mean.values,
            transform: order.iter().flat_map(|row| &rows.values[row * width..][..width]).copied().collect(),
            between: order.iter().map(|row| psi.values[*row]).collect(),
        })
    }

    /// The width of the vectors that it takes.
    pub fn voice_width(&self) -> usize {
        self.first_mean.len()
    }

    /// The variances between voices, the largest first.
    pub fn between(&self) -> &[f64] {
        &self.between
    }

    /// The transformed vector of a voice, as many numbers as [`Plda::between`] has.
    ///
    /// # Panics
    /// If the vector has not [`Plda::voice_width`] numbers.
    pub fn features(&self, voice: &[f32]) -> Vec<f64> {
        assert_eq!(voice.len(), self.voice_width(), "a voice of another network");
        let mut x: Vec<f64> =
            voice.iter().zip(&self.first_mean).map(|(x, mean)| f64::from(*x) - mean).collect();
        lengthen(&mut x);
        let width = self.second_mean.len();
        let mut projected: Vec<f64> = self.second_mean.iter().map(|mean| -mean).collect();
        for (x, row) in x.iter().zip(self.projection.chunks_exact(width)) {
            projected.iter_mut().zip(row).for_each(|(sum, weight)| *sum += x * weight);
        }
        lengthen(&mut projected);
        projected.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x -= mean);
        let rows = self.transform.chunks_exact(width);
        rows.map(|row| row.iter().zip(&projected).map(|(weight, x)| weight * x).sum()).collect()
    }
}

/// Gives a vector the length of the root of its width.
fn lengthen(vector: &mut [f64]) {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
    let factor = (vector.len() as f64).sqrt() / length;
    vector.iter_mut().for_each(|x| *x *= factor);
}
