//! The migrations are embedded when the crate is compiled: without this line a new file would not be noticed.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
