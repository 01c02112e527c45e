#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::slurm(data));
libfuzzer::with_our_mutations!();
