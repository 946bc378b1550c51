//! Products with many rows of activations in 32 bits on the host: those of rten-gemm, which can keep weights in the order
//! that its kernels read them in. The `gemm` crate brings them into that order at every product. For 1,500 rows, a window
//! of Whisper, that takes a tenth of its time; for 375, a window of Parakeet, half.

use std::fmt;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, PackedBMatrix};
use rten_tensor::NdTensorView;

use crate::Error;

/// A matrix of 32-bit weights in the order that the kernel reads them in, for products with many rows.
pub struct PrepackedMatrix {
    weights: PackedBMatrix<f32>,
    rows: usize,
    columns: usize,
}

impl fmt::Debug for PrepackedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrepackedMatrix({} x {})", self.rows, self.columns)
    }
}

impl PrepackedMatrix {
    /// `weights` is (rows, columns).
    pub fn new(weights: &[f32], rows: usize, columns: usize) -> Result<Self, Error> {
        Ok(Self {
            weights: GemmExecutor::new().prepack_b(transposed(weights, rows, columns)?),
            rows,
            columns,
        })
    }

    /// (rows, columns)
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// `x W'`: (count, columns) -> (count, rows).
    pub fn product(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        product(GemmInputB::Packed(&self.weights), self.rows, self.columns, x)
    }
}

/// `x W'`: `x` is (count, columns), W is (rows, columns), the result is (count, rows).
pub fn product_of_many_rows(
    weights: &[f32],
    rows: usize,
    columns: usize,
    x: &[f32],
) -> Result<Vec<f32>, Error> {
    product(GemmInputB::Unpacked(transposed(weights, rows, columns)?), rows, columns, x)
}

fn product(weights: GemmInputB<f32>, rows: usize, columns: usize, x: &[f32]) -> Result<Vec<f32>, Error> {
    let count = x.len() / columns.max(1);
    let x = NdTensorView::try_from_data([count, columns], x).map_err(|error| failed(&error))?;
    let mut out = Vec::with_capacity(count * rows);
    let room = &mut out.spare_capacity_mut()[..count * rows];
    let written = GemmExecutor::new().gemm_uninit(room, GemmInputA::Unpacked(x), weights, Default::default());
    let written = written.map_err(|error| failed(&error))?.len();
    // SAFETY: the product initialised that many values.
    unsafe { out.set_len(written) };
    Ok(out)
}

/// (rows, columns) -> a view of (columns, rows)
fn transposed(weights: &[f32], rows: usize, columns: usize) -> Result<NdTensorView<'_, f32, 2>, Error> {
    let view = NdTensorView::try_from_data([rows, columns], weights).map_err(|error| failed(&error))?;
    Ok(view.transposed())
}

fn failed(error: &dyn fmt::Display) -> Error {
    candle_core::Error::Msg(format!("a product of matrices: {error}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::numbers;

    /// Prepacked or not, and the same for a row alone and among others.
    #[test]
    fn products_equal_plain_sums() {
        for (rows, columns, count) in [(1, 1, 1), (5, 17, 3), (300, 384, 130), (33, 1100, 40)] {
            let (weights, x) = (numbers(rows * columns, 1), numbers(count * columns, 2));
            let prepacked = PrepackedMatrix::new(&weights, rows, columns).unwrap();
            let found = prepacked.product(&x).unwrap();
            assert_eq!(found.len(), count * rows);
            let others = product_of_many_rows(&weights, rows, columns, &x).unwrap();
            for (at, (found, other)) in found.iter().zip(&others).enumerate() {
                let row = &weights[at % rows * columns..][..columns];
                let x = &x[at / rows * columns..][..columns];
                let expected: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                assert!((f64::from(*found) - expected).abs() < 1e-5, "{rows} x {columns} at {at}: {found}");
                assert!((f64::from(*other) - expected).abs() < 1e-5, "{rows} x {columns} at {at}: {other}");
            }
            for (x, found) in x.chunks(columns).zip(found.chunks(rows)) {
                assert_eq!(prepacked.product(x).unwrap(), found, "{rows} x {columns}: a row alone");
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(PrepackedMatrix::new(&[0.0; 5], 2, 3).is_err());
        let prepacked = PrepackedMatrix::new(&[0.0; 6], 2, 3).unwrap();
        assert!(prepacked.product(&[0.0; 4]).is_err());
    }
}
