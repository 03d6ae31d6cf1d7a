//! The records of a task as bins of their features, record by record. What is computed from them does not depend on how
//! they are stored.

use data::{Batch, BatchStream};

use super::bins::{Feature, Features, KeyMeaning};
use super::histogram::{Histogram, packed_chunks};
use algo::error::Error;

/// Bins of a byte.
const BYTE_BINS: usize = 256;
/// Share of the cells with an entry from which on all cells are stored.
const DENSE_SHARE: f64 = 0.3;

/// The bins of all records.
enum Cells {
    /// All features of a record, each with at most 256 bins.
    Bytes(Vec<u8>),
    /// All features of a record.
    Words(Vec<u16>),
    /// Of each record the bins that are not those of absent entries, numbered over all features, ascending.
    Sparse { offsets: Vec<usize>, bins: Vec<u32> },
}

/// The records of a task.
pub(super) struct Records {
    features: Features,
    /// The first bin of each feature, and the end.
    starts: Vec<u32>,
    cells: Cells,
    /// Labels, weights and groups of all records, without entries.
    pub(super) columns: Batch,
}

impl Records {
    /// Reads all records of epoch 0. `visit` sees each batch.
    pub(super) fn read(
        data: &mut dyn BatchStream,
        features: Features,
        mut visit: impl FnMut(&Batch) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let starts = features.bin_starts();
        let absent: Vec<u32> = features
            .list
            .iter()
            .zip(&starts)
            .map(|(feature, start)| start + feature.absent_bin() as u32)
            .collect();
        let (mut offsets, mut bins, mut columns) = (vec![0], Vec::new(), Batch::default());
        data.start_epoch(0)?;
        while let Some(batch) = data.next()? {
            visit(batch)?;
            if !batch.weights.is_empty() {
                columns.weights.resize(columns.labels.len(), 1.0);
                columns.weights.extend_from_slice(&batch.weights);
            }
            columns.groups.extend_from_slice(&batch.groups);
            columns.labels.extend_from_slice(&batch.labels);
            if !columns.weights.is_empty() {
                columns.weights.resize(columns.labels.len(), 1.0);
            }
            let meanings: Vec<Option<KeyMeaning>> =
                batch.columns.iter().map(|key| features.by_key.get(key).copied()).collect();
            for r in 0..batch.record_count() {
                let first = bins.len();
                for i in batch.entries(r) {
                    let Some(meaning) = meanings[batch.indices[i] as usize] else { continue };
                    let feature = meaning.feature as usize;
                    let value = batch.values.get(i).copied().unwrap_or(1.0);
                    let bin = meaning.category.unwrap_or_else(|| features.list[feature].bin_of(value) as u32);
                    bins.push(starts[feature] + bin);
                }
                bins[first..].sort_unstable();
                offsets.push(bins.len());
            }
        }
        data.release_cache();
        let mut records = Self { features, starts, cells: Cells::Sparse { offsets, bins }, columns };
        records.choose_cells(&absent);
        Ok(records)
    }

    /// Stores all cells, if most have an entry, or else drops those that are as if they were absent.
    fn choose_cells(&mut self, absent: &[u32]) {
        let Cells::Sparse { offsets, bins } = &mut self.cells else { return };
        let (width, count) = (absent.len(), offsets.len() - 1);
        let feature_of = |bin: u32| self.starts.partition_point(|start| *start <= bin) - 1;
        if (bins.len() as f64) < DENSE_SHARE * (count * width) as f64 {
            let (mut present_bins, mut before) = (Vec::with_capacity(bins.len()), 0);
            for end in offsets.iter_mut().skip(1) {
                let own = bins[before..*end].iter().filter(|bin| absent[feature_of(**bin)] != **bin);
                present_bins.extend(own);
                before = std::mem::replace(end, present_bins.len());
            }
            *bins = present_bins;
            return;
        }
        let mut cells: Vec<u16> = Vec::with_capacity(count * width);
        for range in offsets.array_windows::<2>() {
            let row = cells.len();
            cells.extend(absent.iter().zip(&self.starts).map(|(bin, start)| (bin - start) as u16));
            for &bin in &bins[range[0]..range[1]] {
                let feature = feature_of(bin);
                cells[row + feature] = (bin - self.starts[feature]) as u16;
            }
        }
        let fits = self.features.list.iter().all(|feature| feature.bin_count() <= BYTE_BINS);
        self.cells = if fits {
            Cells::Bytes(cells.iter().map(|&bin| bin as u8).collect())
        } else {
            Cells::Words(cells)
        };
    }

    pub(super) fn count(&self) -> usize {
        self.columns.labels.len()
    }

    pub(super) fn features(&self) -> &[Feature] {
        &self.features.list
    }

    /// The first bin of each feature in a histogram, and the end.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Visits the position of each of these records with its bin in a feature. The visitor may change the positions up to
    /// its own.
    #[inline]
    pub(super) fn for_each_bin(
        &self,
        leaf: &mut [u32],
        feature: usize,
        mut visit: impl FnMut(&mut [u32], usize, usize),
    ) {
        let width = self.features.list.len();
        match &self.cells {
            Cells::Bytes(bins) => {
                for i in 0..leaf.len() {
                    let bin = bins[leaf[i] as usize * width + feature].into();
                    visit(leaf, i, bin);
                }
            }
            Cells::Words(bins) => {
                for i in 0..leaf.len() {
                    let bin = bins[leaf[i] as usize * width + feature].into();
                    visit(leaf, i, bin);
                }
            }
            Cells::Sparse { offsets, bins } => {
                let (start, end) = (self.starts[feature], self.starts[feature + 1]);
                let absent = self.features.list[feature].absent_bin();
                for i in 0..leaf.len() {
                    let record = leaf[i] as usize;
                    let own = &bins[offsets[record]..offsets[record + 1]];
                    let first = own.iter().find(|bin| **bin >= start).filter(|bin| **bin < end);
                    visit(leaf, i, first.map_or(absent, |bin| (bin - start) as usize));
                }
            }
        }
    }

    /// Sets `out` to the sums of these records by their bins; `packed` has a word for each record of the task.
    pub(super) fn histogram(&self, leaf: &[u32], packed: &[u64], words: &mut Vec<u64>, out: &mut Histogram) {
        let (width, bin_count) = (self.features.list.len(), self.starts[self.features.list.len()] as usize);
        out.clear(bin_count);
        match &self.cells {
            Cells::Bytes(bins) => {
                words.resize(width * BYTE_BINS, 0);
                for chunk in packed_chunks(leaf) {
                    words.fill(0);
                    let tables = words.as_chunks_mut::<BYTE_BINS>().0;
                    for &record in chunk {
                        let word = packed[record as usize];
                        let row = &bins[record as usize * width..][..width];
                        for (table, &bin) in tables.iter_mut().zip(row) {
                            let sum = &mut table[usize::from(bin)];
                            *sum = sum.wrapping_add(word);
                        }
                    }
                    for (range, table) in self.starts.array_windows::<2>().zip(tables) {
                        out.add_words(&table[..(range[1] - range[0]) as usize], range[0] as usize);
                    }
                }
            }
            Cells::Words(bins) => {
                words.resize(bin_count, 0);
                for chunk in packed_chunks(leaf) {
                    words.fill(0);
                    for &record in chunk {
                        let row = &bins[record as usize * width..][..width];
                        for (&bin, &start) in row.iter().zip(&self.starts) {
                            let sum = &mut words[start as usize + usize::from(bin)];
                            *sum = sum.wrapping_add(packed[record as usize]);
                        }
                    }
                    out.add_words(words, 0);
                }
            }
            Cells::Sparse { offsets, bins } => {
                words.resize(bin_count, 0);
                for chunk in packed_chunks(leaf) {
                    words.fill(0);
                    let mut total = 0u64;
                    for &record in chunk {
                        let word = packed[record as usize];
                        for &bin in &bins[offsets[record as usize]..offsets[record as usize + 1]] {
                            words[bin as usize] = words[bin as usize].wrapping_add(word);
                        }
                        total = total.wrapping_add(word);
                    }
                    self.add_absent(words, total);
                    out.add_words(words, 0);
                }
            }
        }
    }

    /// Adds to the bin of absent entries of each feature what its bins have not of the total.
    fn add_absent(&self, words: &mut [u64], total: u64) {
        for (feature, range) in self.features.list.iter().zip(self.starts.array_windows::<2>()) {
            let own = &mut words[range[0] as usize..range[1] as usize];
            let stored = own.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
            let absent = &mut own[feature.absent_bin()];
            *absent = absent.wrapping_add(total.wrapping_sub(stored));
        }
    }
}
