//! The file of prices.

use accounts::Prices;
use command_line::read_toml;
use std::path::Path;
use wire::PricesBody;

/// Reads a file of prices.
///
/// # Errors
/// It cannot be read, or a value of it is refused; the text names the file and the key.
pub fn read(file: &Path) -> Result<Prices, String> {
    let body: PricesBody = read_toml(file).map_err(|fault| fault.to_string())?;
    body.parse().map_err(|fault| format!("{}, key {}: {}", file.display(), fault.pointer, fault.detail))
}
