//! Names of hashed keys: one text for all of them, and 16 bytes for each, so that tens of millions fit in memory.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Size of the names that a task, and that a model, has at most: see [`name_bytes`].
pub const NAMES_LIMIT_BYTES: usize = 1 << 30;
/// Bytes of a name besides its text: its entry, the key in the set of those that a parser has seen, and what the
/// vectors of both have in reserve.
const NAME_OVERHEAD_BYTES: usize = 40;
/// New names are sorted in at this size, or at the size of those that are sorted, if that is more.
const UNSORTED_BYTES: usize = 16 << 20;
/// Limits of [`KeyNames::pieces`].
const PIECE_NAMES: usize = 1 << 16;
const PIECE_TEXT_BYTES: usize = 4 << 20;

/// Returns what a name of this length takes of [`NAMES_LIMIT_BYTES`].
pub fn name_bytes(text_bytes: usize) -> usize {
    text_bytes + NAME_OVERHEAD_BYTES
}

/// The place of a name in the text.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    start: u32,
    len: u32,
}

impl Entry {
    fn text(self, text: &str) -> &str {
        let start = self.start as usize;
        &text[start..start + self.len as usize]
    }
}

/// Names by key; keys ascend, and each has one name.
#[derive(Clone, Debug, Default)]
pub struct KeyNames {
    entries: Vec<Entry>,
    text: String,
}

impl KeyNames {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the name of a key.
    pub fn get(&self, key: u64) -> Option<&str> {
        let position = self.entries.binary_search_by_key(&key, |entry| entry.key).ok()?;
        Some(self.entries[position].text(&self.text))
    }

    /// Returns the position of the first key that is not below `key`.
    pub fn position(&self, key: u64) -> usize {
        self.entries.partition_point(|entry| entry.key < key)
    }

    /// Returns keys and names from a position on.
    pub fn iter_from(&self, position: usize) -> impl Iterator<Item = (u64, &str)> {
        self.entries[position..].iter().map(|entry| (entry.key, entry.text(&self.text)))
    }

    /// Returns keys and names.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        self.iter_from(0)
    }

    /// Returns the same names in pieces, each of which fits in a message.
    pub fn pieces(&self) -> impl Iterator<Item = Self> {
        let mut position = 0;
        std::iter::from_fn(move || {
            let mut part = Self::default();
            for (key, name) in self.iter_from(position) {
                let is_full = part.text.len() + name.len() > PIECE_TEXT_BYTES;
                if part.len() == PIECE_NAMES || (is_full && !part.is_empty()) {
                    break;
                }
                part.push(key, name);
            }
            position += part.len();
            (!part.is_empty()).then_some(part)
        })
    }

    fn push(&mut self, key: u64, name: &str) {
        let place = |bytes: usize| u32::try_from(bytes).expect("collectors limit the text");
        self.entries.push(Entry { key, start: place(self.text.len()), len: place(name.len()) });
        self.text.push_str(name);
    }
}

impl PartialEq for KeyNames {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: AsRef<str>> FromIterator<(u64, T)> for KeyNames {
    fn from_iter<I: IntoIterator<Item = (u64, T)>>(names: I) -> Self {
        let mut collector = NameCollector::default();
        names.into_iter().for_each(|(key, name)| collector.add(key, name.as_ref()));
        collector.finish().0
    }
}

impl Serialize for KeyNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for KeyNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<(u64, String)>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Collects names in any order, also repeatedly. If they exceed the limit, those with the smallest keys stay: so the
/// result does not depend on the order.
#[derive(Debug)]
pub struct NameCollector {
    names: KeyNames,
    /// The entries before this position ascend, and their names take this size.
    sorted_count: usize,
    sorted_bytes: usize,
    /// Size of all names.
    size_bytes: usize,
    limit_bytes: usize,
    is_over_limit: bool,
}

impl Default for NameCollector {
    fn default() -> Self {
        Self::with_limit(NAMES_LIMIT_BYTES)
    }
}

impl NameCollector {
    /// Creates a collector of names whose sizes ([`name_bytes`]) add up to at most `limit_bytes`.
    ///
    /// # Panics
    /// If the limit exceeds [`NAMES_LIMIT_BYTES`].
    pub fn with_limit(limit_bytes: usize) -> Self {
        assert!(limit_bytes <= NAMES_LIMIT_BYTES, "places in the text have 32 bits");
        let names = KeyNames::default();
        Self { names, sorted_count: 0, sorted_bytes: 0, size_bytes: 0, limit_bytes, is_over_limit: false }
    }

    /// Adds a name.
    pub fn add(&mut self, key: u64, name: &str) {
        let bytes = name_bytes(name.len());
        if bytes > self.limit_bytes {
            self.is_over_limit = true;
            return;
        }
        if self.size_bytes + bytes > self.sorted_bytes + self.sorted_bytes.max(UNSORTED_BYTES) {
            self.sort();
        }
        self.size_bytes += bytes;
        self.names.push(key, name);
    }

    /// Adds names.
    pub fn add_all(&mut self, names: &KeyNames) {
        names.iter().for_each(|(key, name)| self.add(key, name));
    }

    /// Returns the names, and whether some were left out.
    pub fn finish(mut self) -> (KeyNames, bool) {
        self.sort();
        (self.names, self.is_over_limit)
    }

    /// Sorts the entries, and removes those that occur again or exceed the limit.
    fn sort(&mut self) {
        let KeyNames { mut entries, text } = std::mem::take(&mut self.names);
        let is_sorted = entries[self.sorted_count.saturating_sub(1)..].is_sorted_by(|a, b| a.key < b.key);
        if !is_sorted {
            entries.sort_by(|a, b| a.key.cmp(&b.key).then_with(|| a.text(&text).cmp(b.text(&text))));
            entries.dedup_by_key(|entry| entry.key);
        }
        let (mut bytes, mut text_bytes) = (0, 0);
        let mut within_limit = |entry: &Entry| {
            let len = entry.len as usize;
            bytes += name_bytes(len);
            text_bytes += if bytes <= self.limit_bytes { len } else { 0 };
            bytes <= self.limit_bytes
        };
        let count = entries.iter().take_while(|entry| within_limit(entry)).count();
        self.is_over_limit |= count < entries.len();
        entries.truncate(count);
        self.names = KeyNames { entries, text };
        if text_bytes < self.names.text.len() {
            self.names = self.names.without_gaps(text_bytes);
        }
        self.sorted_count = count;
        self.sorted_bytes = text_bytes + count * NAME_OVERHEAD_BYTES;
        self.size_bytes = self.sorted_bytes;
    }
}

impl KeyNames {
    /// Returns the same names without the text between them that belongs to no name.
    fn without_gaps(&self, text_bytes: usize) -> Self {
        let mut names =
            Self { entries: Vec::with_capacity(self.len()), text: String::with_capacity(text_bytes) };
        self.iter().for_each(|(key, name)| names.push(key, name));
        names
    }
}

/// Returns the notice that names were left out; `whose` are the names of features of one task, or of the job.
pub fn notice_of_limit(whose: &str, limit_bytes: usize) -> String {
    let mib = limit_bytes as f64 / f64::from(1 << 20);
    format!("{whose} take more than {mib} MiB: the model works, but the other names are not saved")
}

#[cfg(test)]
mod tests;
