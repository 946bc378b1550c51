//! The order in which the kernels for 8 and for 16 bits read a right factor: panel after panel of its columns, of each
//! panel tile after tile of its rows.

use std::ops::Range;

/// Columns of a product that are computed together: two vectors of 16.
pub const PANEL: usize = 32;
/// Rows of a tile. In 8 bits the numbers of a column in it share a scale.
pub const BLOCK: usize = 32;
/// The numbers of rows that the kernels compute together divide this one.
pub const ROWS_OF_A_TILE: usize = 12;

/// Of so many rows of activations, how many a thread takes at a time: they stay in the second-level cache, and every thread
/// has some.
pub fn rows_per_task(count: usize) -> usize {
    const MOST: usize = 96;
    count.div_ceil(rayon::current_num_threads().max(1)).next_multiple_of(ROWS_OF_A_TILE).clamp(1, MOST)
}

/// Numbers of [`PANEL`] columns, row by row.
pub type Tile = [[f32; PANEL]; BLOCK];

/// Calls `write` with the tiles of W', W having rows of `width` numbers, of which the `part` is taken. What is missing in
/// the last tiles is zero.
pub fn tiles_of_transposed(w: &[f32], width: usize, part: Range<usize>, write: impl FnMut(&Tile)) {
    let (columns, depth) = (w.len() / width, part.len());
    tiles((depth, columns), write, |tile, first, start| {
        for (column, row) in w.chunks_exact(width).skip(first).take(PANEL).enumerate() {
            let numbers = &row[part.clone()][start..depth.min(start + BLOCK)];
            tile.iter_mut().zip(numbers).for_each(|(tile, number)| tile[column] = *number);
        }
    });
}

/// As [`tiles_of_transposed`], of W as it is.
pub fn tiles_of(w: &[f32], width: usize, part: Range<usize>, write: impl FnMut(&Tile)) {
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
