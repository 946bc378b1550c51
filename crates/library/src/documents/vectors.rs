//! What passages mean, as vectors of an embedding model. They are compared one by one: a scan of a
//! hundred thousand takes less time than a person notices, and finds the nearest for certain.

use std::collections::BinaryHeap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Documents;
use super::passages::{self, PassageId};
use crate::Error;

/// Bits of a vector's id that are the passage's; those above are the index's.
const PASSAGE_BITS: u32 = 40;
/// Vectors that are deleted in one transaction: others can use the file between two.
const DELETED_AT_ONCE: u32 = 2000;
/// Transcripts that are cut in one transaction.
const CUT_AT_ONCE: usize = 4;
/// What the question is multiplied with to be compared in whole numbers: sums of 4096 products stay
/// below 2^31.
const QUESTION_SCALE: f32 = 2047.0;
/// A passage means what was asked for where its similarity is so many standard deviations above the
/// mean of all passages. Models differ in how similar unrelated texts are, so that no fixed similarity serves.
const OUTSTANDING: f64 = 1.5;
/// Fewer passages have no deviation to speak of.
const LEAST_FOR_DEVIATION: u64 = 20;

/// The model that an index was made with. Vectors of two models can't be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexModel {
    /// Its name.
    pub name: String,
    /// Tells two versions of that name apart.
    pub version: String,
    /// Components of a vector.
    pub dimensions: usize,
}

/// Identifies an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexId(
    /// The row in the table of indexes.
    pub i64,
);

/// An index, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The index.
    pub id: IndexId,
    /// What its vectors were computed with.
    pub model: IndexModel,
    /// Passages without a vector in it.
    pub missing: u64,
    /// All passages.
    pub passages: u64,
}

/// A question's meaning, to be compared with those of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    /// The index, whose model computed the vector.
    pub index: IndexId,
    /// Of unit length.
    pub vector: Vec<f32>,
}

impl Documents {
    /// The index that answers questions: the latest complete one, or the first while it is made. `None`:
    /// there is none.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn index(&self) -> Result<Option<Index>, Error> {
        self.read_only(|connection| {
            let query = "SELECT id FROM indexes ORDER BY complete DESC, id LIMIT 1";
            let id = connection.query_row(query, [], |row| row.get(0)).optional()?;
            id.map(|id| read_index(connection, IndexId(id))).transpose()
        })
    }

    /// The index of a model, which is begun if there is none.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn index_of(&self, model: &IndexModel) -> Result<Index, Error> {
        self.change(|transaction| {
            let values = params![model.name, model.version, model.dimensions as i64];
            transaction.execute(
                "INSERT OR IGNORE INTO indexes (model, version, dimensions) VALUES (?1, ?2, ?3)",
                values,
            )?;
            let query = "SELECT id FROM indexes WHERE model = ?1 AND version = ?2 AND dimensions = ?3";
            let id = transaction.query_row(query, values, |row| row.get(0))?;
            read_index(transaction, IndexId(id))
        })
    }

    /// Cuts transcripts whose text has changed into passages, a few at a time. Returns whether there may be
    /// more.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn cut_passages(&self) -> Result<bool, Error> {
        if !self.read_only(|transaction| passages::are_outdated(transaction))? {
            return Ok(false);
        }
        self.change(|transaction| passages::cut(transaction, CUT_AT_ONCE))
    }

    /// The texts of up to `most` passages behind `after` that have no vector in an index, in order of ids.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn passages_without_vector(
        &self,
        index: IndexId,
        after: PassageId,
        most: usize,
    ) -> Result<Vec<(PassageId, String)>, Error> {
        self.read_only(|connection| {
            let mut select = connection.prepare(
                "SELECT passages.id, passages.text FROM passages
                 WHERE passages.id > ?2
                 AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.id = (?1 << 40) | passages.id)
                 AND (SELECT deleted FROM documents WHERE documents.id = document) IS NULL
                 ORDER BY passages.id LIMIT ?3",
            )?;
            let rows = select.query_map(params![index.0, after.0, most as i64], |row| {
                Ok((PassageId(row.get(0)?), row.get(1)?))
            })?;
            rows.collect()
        })
    }

    /// Stores vectors of unit length in one transaction. Those of passages that are gone by now, and of other
    /// lengths than the index has, are left out.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn put_vectors(&self, index: IndexId, vectors: &[(PassageId, Vec<f32>)]) -> Result<(), Error> {
        self.change(|transaction| {
            let mut insert = transaction.prepare(
                "INSERT OR REPLACE INTO vectors (id, vector)
                 SELECT (indexes.id << 40) | passages.id, ?3 FROM indexes, passages
                 WHERE indexes.id = ?1 AND passages.id = ?2 AND indexes.dimensions = ?4",
            )?;
            for (passage, vector) in vectors {
                insert.execute(params![index.0, passage.0, quantized(vector), vector.len() as i64])?;
            }
            Ok(())
        })
    }

    /// Declares an index complete if no passage is without a vector: from then on it answers questions.
    /// Indexes of other models are deleted then. Returns whether it is complete.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn finish_index(&self, index: IndexId) -> Result<bool, Error> {
        let is_complete = self.change(|transaction| {
            if passages::are_outdated(transaction)? || read_index(transaction, index)?.missing > 0 {
                return Ok(false);
            }
            transaction.execute("UPDATE indexes SET complete = 1 WHERE id = ?1", [index.0])?;
            Ok(true)
        })?;
        while is_complete && self.change(|transaction| delete_others(transaction, index))? {}
        Ok(is_complete)
    }
}

/// Deletes some vectors of other indexes, then these. Returns whether there is more to delete.
fn delete_others(transaction: &Transaction, index: IndexId) -> rusqlite::Result<bool> {
    let range = (index.0 << PASSAGE_BITS, (index.0 + 1) << PASSAGE_BITS);
    let deleted = transaction.execute(
        "DELETE FROM vectors WHERE id IN
         (SELECT id FROM vectors WHERE id < ?1 OR id >= ?2 LIMIT ?3)",
        params![range.0, range.1, DELETED_AT_ONCE],
    )?;
    if deleted < DELETED_AT_ONCE as usize {
        transaction.execute("DELETE FROM indexes WHERE id <> ?1", [index.0])?;
    }
    Ok(deleted == DELETED_AT_ONCE as usize)
}

fn read_index(connection: &Connection, id: IndexId) -> rusqlite::Result<Index> {
    let (missing, passages) = connection.query_row(
        "SELECT total(NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.id = (?1 << 40) | passages.id)), count(*)
         FROM documents JOIN passages ON passages.document = documents.id WHERE deleted IS NULL",
        [id.0],
        |row| Ok((row.get::<_, f64>(0)? as u64, row.get::<_, i64>(1)? as u64)),
    )?;
    let query = "SELECT model, version, dimensions FROM indexes WHERE id = ?1";
    let model = connection.query_row(query, [id.0], |row| {
        let dimensions: i64 = row.get(2)?;
        Ok(IndexModel { name: row.get(0)?, version: row.get(1)?, dimensions: dimensions as usize })
    })?;
    Ok(Index { id, model, missing, passages })
}

/// Scale and signed bytes; the largest component is 127 of them.
fn quantized(vector: &[f32]) -> Vec<u8> {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    let bytes = vector.iter().map(|x| (x / scale).round() as i8 as u8);
    scale.to_le_bytes().into_iter().chain(bytes).collect()
}

/// The vector of a stored one; `None` if it is damaged.
fn restored(stored: &[u8]) -> Option<Vec<f32>> {
    let (scale, bytes) = stored.split_first_chunk::<4>()?;
    let scale = f32::from_le_bytes(*scale);
    Some(bytes.iter().map(|byte| f32::from(*byte as i8) * scale).collect())
}

/// The meaning of a passage; `None` if it has no vector in that index.
pub fn meaning(
    connection: &Connection,
    index: IndexId,
    passage: PassageId,
) -> rusqlite::Result<Option<Meaning>> {
    let query = "SELECT vector FROM vectors WHERE id = (?1 << 40) | ?2";
    let stored: Option<Vec<u8>> =
        connection.query_row(query, [index.0, passage.0], |row| row.get(0)).optional()?;
    Ok(stored.and_then(|stored| restored(&stored)).map(|vector| Meaning { index, vector }))
}

/// The passages that are nearest to a question, at most `most`, the nearest first, with their cosine
/// similarity. `is_wanted` says which passages count.
pub fn nearest(
    connection: &Connection,
    Meaning { index, vector }: &Meaning,
    is_wanted: impl Fn(PassageId) -> bool,
    most: usize,
) -> rusqlite::Result<Vec<(PassageId, f32)>> {
    let question: Vec<i16> = vector.iter().map(|x| (x * QUESTION_SCALE).round() as i16).collect();
    let mut select = connection.prepare("SELECT id, vector FROM vectors WHERE id >= ?1 AND id < ?2")?;
    let mut rows = select.query([index.0 << PASSAGE_BITS, (index.0 + 1) << PASSAGE_BITS])?;
    let mut best = BinaryHeap::with_capacity(most + 1);
    let (mut count, mut sum, mut squares) = (0_u64, 0.0, 0.0);
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let Some((scale, bytes)) = row.get_ref(1)?.as_blob()?.split_first_chunk::<4>() else { continue };
        if bytes.len() != question.len() {
            continue;
        }
        let similarity = product(&question, bytes) as f32 * f32::from_le_bytes(*scale) / QUESTION_SCALE;
        (count, sum, squares) =
            (count + 1, sum + f64::from(similarity), squares + f64::from(similarity) * f64::from(similarity));
        let passage = PassageId(id & ((1 << PASSAGE_BITS) - 1));
        let is_better =
            best.len() < most || best.peek().is_some_and(|Farthest(worst, _)| similarity > *worst);
        if is_better && is_wanted(passage) {
            best.push(Farthest(similarity, passage));
            if best.len() > most {
                best.pop();
            }
        }
    }
    let mean = sum / count.max(1) as f64;
    let deviation = (squares / count.max(1) as f64 - mean * mean).max(0.0).sqrt();
    let least = if count < LEAST_FOR_DEVIATION { f64::MIN } else { mean + OUTSTANDING * deviation };
    let sorted = best.into_sorted_vec().into_iter();
    let found = sorted.map(|Farthest(similarity, passage)| (passage, similarity));
    Ok(found.filter(|(_, similarity)| f64::from(*similarity) >= least).collect())
}

/// In whole numbers, which compilers turn into vector instructions.
fn product(question: &[i16], bytes: &[u8]) -> i32 {
    question.iter().zip(bytes).map(|(a, b)| i32::from(*a) * i32::from(*b as i8)).sum()
}

/// A passage with its similarity; the greatest is the least similar one, the one with the larger id of two.
#[derive(PartialEq)]
struct Farthest(f32, PassageId);

impl Eq for Farthest {}

impl PartialOrd for Farthest {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Farthest {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0).then(self.1.cmp(&other.1))
    }
}
