//! Bytes of a file on a storage, as the Parquet reader asks for them.

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Runtime;

/// Bytes that are fetched at once: pages are smaller, and a request takes as long as some megabytes.
const BLOCK_BYTES: u64 = 4 << 20;
/// Blocks that are kept: two of each column.
const BLOCKS_MOST: usize = 10;

/// A file.
#[derive(Clone)]
pub struct Chunks(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    path: Path,
    size: u64,
    blocks: Mutex<Blocks>,
}

/// Blocks by number, with the time of their last use.
#[derive(Default)]
struct Blocks {
    known: BTreeMap<u64, (u64, Bytes)>,
    uses: u64,
}

impl Chunks {
    pub fn new(store: Arc<dyn ObjectStore>, runtime: Arc<Runtime>, path: Path, size: u64) -> Self {
        Self(Arc::new(Inner { store, runtime, path, size, blocks: Mutex::default() }))
    }

    fn block(&self, number: u64) -> Result<Bytes> {
        let inner = &self.0;
        let mut blocks = inner.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.uses += 1;
        let uses = blocks.uses;
        if let Some((used, bytes)) = blocks.known.get_mut(&number) {
            *used = uses;
            return Ok(bytes.clone());
        }
        let range = number * BLOCK_BYTES..((number + 1) * BLOCK_BYTES).min(inner.size);
        let fetched = inner.runtime.block_on(inner.store.get_range(&inner.path, range));
        let bytes = fetched.map_err(|fault| ParquetError::External(Box::new(fault)))?;
        if blocks.known.len() == BLOCKS_MOST {
            let oldest = blocks.known.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number);
            oldest.and_then(|number| blocks.known.remove(&number));
        }
        blocks.known.insert(number, (uses, bytes.clone()));
        Ok(bytes)
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.size
    }
}

impl ChunkReader for Chunks {
    type T = From;

    fn get_read(&self, start: u64) -> Result<From> {
        Ok(From { chunks: self.clone(), at: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.0.size);
        let end =
            end.ok_or_else(|| ParquetError::EOF(format!("{length} bytes from {start} on lie beyond the file")))?;
        let of_block = |number: u64| {
            let (block, first) = (self.block(number)?, number * BLOCK_BYTES);
            let from = start.saturating_sub(first) as usize;
            let to = (end - first).min(BLOCK_BYTES) as usize;
            // The storage may give fewer bytes than the file has now.
            let is_there = to <= block.len();
            if is_there {
                Ok(block.slice(from..to))
            } else {
                Err(ParquetError::EOF("the file has become shorter".to_owned()))
            }
        };
        let (first, last) = (start / BLOCK_BYTES, end.saturating_sub(1).max(start) / BLOCK_BYTES);
        if first == last {
            return if length == 0 { Ok(Bytes::new()) } else { of_block(first) };
        }
        let mut all = BytesMut::with_capacity(length);
        for number in first..=last {
            all.extend_from_slice(&of_block(number)?);
        }
        Ok(all.freeze())
    }
}

/// Reads a file from a place on.
pub struct From {
    chunks: Chunks,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.chunks.0.size.saturating_sub(self.at).min(BLOCK_BYTES - self.at % BLOCK_BYTES);
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = self.chunks.get_bytes(self.at, count).map_err(std::io::Error::other)?;
        buffer[..count].copy_from_slice(&bytes);
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn any_range_of_a_file_comes_out_of_blocks_and_one_beyond_its_end_is_refused() {
        let store = Arc::new(InMemory::new());
        let runtime = Arc::new(tokio::runtime::Builder::new_current_thread().build().unwrap());
        let all: Vec<u8> = (0..BLOCK_BYTES as u32 * 2 + 1_000).map(|number| (number % 251) as u8).collect();
        let path = Path::from("a.parquet");
        runtime.block_on(store.put(&path, all.clone().into())).unwrap();
        let chunks = Chunks::new(store, runtime, path, all.len() as u64);
        let block = BLOCK_BYTES as usize;
        for (start, length) in [(0, 10), (block - 5, 10), (block - 5, block + 10), (2 * block, 1_000), (3, 0)] {
            assert_eq!(chunks.get_bytes(start as u64, length).unwrap(), all[start..start + length], "{start} {length}");
        }
        let mut rest = Vec::new();
        chunks.get_read(block as u64 - 1).unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, all[block - 1..]);
        assert!(chunks.get_bytes(all.len() as u64 - 1, 2).unwrap_err().to_string().contains("beyond the file"));
    }
}
