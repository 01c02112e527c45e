//! The mutations of `fuzz_targets` beside those of libFuzzer.

pub use libfuzzer_sys;

/// Bytes that libFuzzer has changed, or that we have: half of the time each.
pub fn mutated(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    if seed.is_multiple_of(2) {
        return libfuzzer_sys::fuzzer_mutate(data, size, most);
    }
    let changed = fuzz_targets::mutate(&data[..size], u64::from(seed));
    let size = changed.len().min(most).min(data.len());
    data[..size].copy_from_slice(&changed[..size]);
    size
}

/// Lets the target of this file use them.
#[macro_export]
macro_rules! with_our_mutations {
    () => {
        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
            $crate::mutated(data, size, most, seed)
        });
    };
}
