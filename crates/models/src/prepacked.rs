//! Products with many rows of activations in 32 bits on the host: those of rten-gemm, which can keep a matrix in the order
//! that its kernels read it in. The `gemm` crate brings it into that order at every product: with 1,500 rows, a window
//! of Whisper, its products take up to a tenth longer, with 375, a window of Parakeet, twice as long.

use std::fmt;
use std::ops::Range;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, GemmUninitOptions, PackedBMatrix};
use rten_tensor::{MatrixLayout, NdTensorView};

use crate::Error;

/// The right factor of products, (depth, columns), in the order that the kernel reads it in.
pub struct PrepackedMatrix(PackedBMatrix<f32>);

impl fmt::Debug for PrepackedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns) = self.shape();
        write!(f, "PrepackedMatrix({rows} x {columns})")
    }
}

impl PrepackedMatrix {
    /// Its columns are the `part` of the rows of `w`, each of `width` numbers.
    pub fn of_rows(w: &[f32], width: usize, part: Range<usize>) -> Result<Self, Error> {
        Ok(Self(GemmExecutor::new().prepack_b(view(w, width, part)?.transposed())))
    }

    /// Its columns are those of `w` in the `part` of its rows, each of `width` numbers.
    pub fn of_columns(w: &[f32], width: usize, part: Range<usize>) -> Result<Self, Error> {
        Ok(Self(GemmExecutor::new().prepack_b(view(w, width, part)?)))
    }

    /// (depth, columns)
    pub fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.cols())
    }

    /// The product of the rows of `x`, as long as this matrix is deep: (count, columns).
    pub fn product(&self, x: &[f32]) -> Result<Vec<f32>, Error> {
        product(GemmInputB::Packed(&self.0), self.shape(), x)
    }

    /// Writes to `out`, (count, columns), `scale` times the product of the `part` of each row of `x`, of `width` numbers.
    pub fn scaled_product(
        &self,
        out: &mut [f32],
        x: &[f32],
        width: usize,
        part: Range<usize>,
        scale: f32,
    ) -> Result<(), Error> {
        let options = GemmOptions { alpha: scale, ..Default::default() };
        let x = GemmInputA::Unpacked(view(x, width, part)?);
        GemmExecutor::new().gemm(out, x, GemmInputB::Packed(&self.0), options).map_err(|error| failed(&error))
    }
}

/// `x W'`: `x` is (count, columns), W is (rows, columns), the result is (count, rows).
pub fn product_of_many_rows(w: &[f32], rows: usize, columns: usize, x: &[f32]) -> Result<Vec<f32>, Error> {
    let w = view(w, columns, 0..columns)?.transposed();
    product(GemmInputB::Unpacked(w), (columns, rows), x)
}

fn product(right: GemmInputB<f32>, (depth, columns): (usize, usize), x: &[f32]) -> Result<Vec<f32>, Error> {
    let x = view(x, depth, 0..depth)?;
    let count = x.rows() * columns;
    let mut out = Vec::with_capacity(count);
    let room = &mut out.spare_capacity_mut()[..count];
    let options = GemmUninitOptions::default();
    let written = GemmExecutor::new().gemm_uninit(room, GemmInputA::Unpacked(x), right, options);
    let written = written.map_err(|error| failed(&error))?.len();
    // SAFETY: the product initialised that many values.
    unsafe { out.set_len(written) };
    Ok(out)
}

/// The `part` of all rows of `width` numbers.
fn view(values: &[f32], width: usize, part: Range<usize>) -> Result<NdTensorView<'_, f32, 2>, Error> {
    let rows = values.len() / width.max(1);
    let view = NdTensorView::try_from_data([rows, width], values).map_err(|error| failed(&error))?;
    match part.end <= width {
        true => Ok(view.slice((.., part))),
        false => Err(failed(&format!("{part:?} of {width} columns"))),
    }
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
            let prepacked = PrepackedMatrix::of_rows(&weights, columns, 0..columns).unwrap();
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

    /// Parts of rows, as the heads of attention take them.
    #[test]
    fn products_of_parts_equal_plain_sums() {
        let (width, part, scale) = (20, 4..9, 0.25);
        let (keys, x) = (numbers(7 * width, 1), numbers(3 * width, 2));
        let plain = |f: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
            (0..3).flat_map(|row| (0..7).map(move |key| (row, key))).map(|(row, key)| f(row, key)).collect()
        };
        let expected = plain(&|row, key| {
            part.clone().map(|at| x[row * width + at] * keys[key * width + at]).sum::<f32>() * scale
        });
        let mut scores = vec![f32::NAN; 21];
        let transposed = PrepackedMatrix::of_rows(&keys, width, part.clone()).unwrap();
        transposed.scaled_product(&mut scores, &x, width, part.clone(), scale).unwrap();
        for (found, expected) in scores.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{found} and not {expected}");
        }
        let mut values = vec![f32::NAN; 3 * part.len()];
        let matrix = PrepackedMatrix::of_columns(&keys, width, part.clone()).unwrap();
        matrix.scaled_product(&mut values, &expected, 7, 0..7, 1.0).unwrap();
        for (at, found) in values.iter().enumerate() {
            let (row, column) = (at / part.len(), part.start + at % part.len());
            let sum: f32 = (0..7).map(|key| expected[row * 7 + key] * keys[key * width + column]).sum();
            assert!((found - sum).abs() < 1e-6, "{found} and not {sum}");
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(PrepackedMatrix::of_rows(&[0.0; 5], 3, 0..3).is_err());
        assert!(PrepackedMatrix::of_rows(&[0.0; 6], 3, 1..4).is_err());
        let prepacked = PrepackedMatrix::of_rows(&[0.0; 6], 3, 0..3).unwrap();
        assert!(prepacked.product(&[0.0; 4]).is_err());
        assert!(prepacked.scaled_product(&mut [0.0; 3], &[0.0; 6], 3, 0..3, 1.0).is_err());
    }
}
