//! What products in 8 and in 16 bits have in common: the order in which their kernels read a right factor, panel after
//! panel of its columns, of each panel tile after tile of its rows; and how threads share the work.

use std::ops::Range;

use rayon::prelude::*;

/// Columns of a product that are computed together: two vectors of 16.
pub const PANEL: usize = 32;
/// Rows of a tile. In 8 bits the numbers of a column in it share a scale.
pub const BLOCK: usize = 32;
/// The most rows of activations that a kernel computes together; the numbers of others divide it.
pub const ROWS_TOGETHER: usize = 12;

/// Numbers of [`PANEL`] columns, row by row.
pub type Tile = [[f32; PANEL]; BLOCK];

/// So many numbers of a row or column, filled up to whole blocks.
pub fn padded(numbers: usize) -> usize {
    numbers.next_multiple_of(BLOCK)
}

/// Calls `write` with the tiles of the matrix whose columns are the `part` of the rows of `w`, of `width` numbers each.
/// What is missing in the last tiles is zero.
pub fn tiles_of_rows(w: &[f32], width: usize, part: Range<usize>, write: impl FnMut(&Tile)) {
    let (columns, depth) = (w.len() / width, part.len());
    tiles((depth, columns), write, |tile, first, start| {
        for (column, row) in w.chunks_exact(width).skip(first).take(PANEL).enumerate() {
            let numbers = &row[part.clone()][start..depth.min(start + BLOCK)];
            tile.iter_mut().zip(numbers).for_each(|(tile, number)| tile[column] = *number);
        }
    });
}

/// As [`tiles_of_rows`] of the matrix whose columns are those of `w` in the `part` of its rows.
pub fn tiles_of_columns(w: &[f32], width: usize, part: Range<usize>, write: impl FnMut(&Tile)) {
    tiles((w.len() / width, part.len()), write, |tile, first, start| {
        for (tile, row) in tile.iter_mut().zip(w.chunks_exact(width).skip(start)) {
            let numbers = &row[part.clone()][first..part.len().min(first + PANEL)];
            tile[..numbers.len()].copy_from_slice(numbers);
        }
    });
}

/// `read` fills a tile of zeros with the numbers from a first column and a first row on.
fn tiles(
    (depth, columns): (usize, usize),
    mut write: impl FnMut(&Tile),
    read: impl Fn(&mut Tile, usize, usize),
) {
    for first in (0..columns).step_by(PANEL) {
        for start in (0..depth).step_by(BLOCK) {
            let mut tile = [[0.0; PANEL]; BLOCK];
            read(&mut tile, first, start);
            write(&tile);
        }
    }
}

/// The product of the rows of `x`, each of `columns` numbers, with a matrix of `rows` rows: threads take some rows of `x`
/// each, which stay in the second-level cache, and `product` computes those of the result with what the thread keeps.
pub fn product_by_rows<S: Default + Send>(
    x: &[f32],
    (rows, columns): (usize, usize),
    product: impl Fn(&mut S, &mut [f32], &[f32]) + Sync,
) -> Vec<f32> {
    /// Rows of `x` that a thread takes at most.
    const MOST: usize = 96;
    let count = x.len() / columns.max(1);
    let mut out = vec![0.0; count * rows];
    if out.is_empty() {
        return out;
    }
    let task = count.div_ceil(rayon::current_num_threads()).next_multiple_of(ROWS_TOGETHER).min(MOST);
    out.par_chunks_mut(task * rows)
        .zip(x.par_chunks(task * columns))
        .for_each_init(S::default, |scratch, (out, x)| product(scratch, out, x));
    out
}
