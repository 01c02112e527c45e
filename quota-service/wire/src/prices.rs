//! The file of prices.

use crate::FieldFault;
use accounts::{GpuPrices, Micros, Prices};
use serde::Deserialize;
use std::collections::BTreeMap;
use vocab::GpuModel;

/// Prices of a GPU-hour, by GPU model and use. An absent one is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GpuPricesBody {
    /// Of HP tasks.
    pub hp: f64,
    /// Of spot tasks inside their guarantee.
    pub guaranteed: f64,
    /// Of spot tasks at will.
    pub at_will: f64,
    /// Credit for each GPU-hour that a broken promise still owed.
    pub broken_credit: f64,
    /// Of owning a GPU, used or not: what idle GPUs and lost work cost.
    pub owned: f64,
}

/// A file of prices (TOML): a currency, `[default]`, and `[gpu_models."A100-SXM4-80GB"]` for those with prices of their own.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricesBody {
    /// ISO 4217, such as `EUR`.
    pub currency: String,
    /// Of GPU models without prices of their own.
    #[serde(default)]
    pub default: Option<GpuPricesBody>,
    /// By GPU model.
    #[serde(default)]
    pub gpu_models: BTreeMap<String, GpuPricesBody>,
}

impl GpuPricesBody {
    fn parse(&self, place: &str) -> Result<GpuPrices, FieldFault> {
        let price = |key: &str, price: f64| {
            Micros::price(price).map_err(|fault| FieldFault::new(format!("{place}.{key}"), fault))
        };
        Ok(GpuPrices {
            hp: price("hp", self.hp)?,
            guaranteed: price("guaranteed", self.guaranteed)?,
            at_will: price("at_will", self.at_will)?,
            broken_credit: price("broken_credit", self.broken_credit)?,
            owned: price("owned", self.owned)?,
        })
    }
}

impl PricesBody {
    /// The prices; a fault names the key.
    ///
    /// # Errors
    /// A number is no price, or a name no currency or GPU model.
    pub fn parse(&self) -> Result<Prices, FieldFault> {
        let is_currency = self.currency.len() == 3 && self.currency.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_currency {
            let detail = format!("invalid currency {:?}: expected three capital letters, such as EUR", self.currency);
            return Err(FieldFault::new("currency", detail));
        }
        let model = |(name, prices): (&String, &GpuPricesBody)| {
            let place = format!("gpu_models.{name:?}");
            let model = GpuModel::parse(name).map_err(|fault| FieldFault::new(place.as_str(), fault))?;
            Ok((model, prices.parse(&place)?))
        };
        Ok(Prices {
            currency: self.currency.clone(),
            default: self.default.as_ref().map(|prices| prices.parse("default")).transpose()?,
            models: self.gpu_models.iter().map(model).collect::<Result<_, FieldFault>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_price_is_refused_with_its_key() {
        let prices = GpuPricesBody { hp: 2.5, ..GpuPricesBody::default() };
        let wrong = GpuPricesBody { owned: -1.0, ..prices };
        let of = |currency: &str, prices| {
            let gpu_models = [("A100".to_owned(), prices)].into();
            PricesBody { currency: currency.to_owned(), default: None, gpu_models }.parse()
        };
        let parsed = of("EUR", prices).unwrap();
        let (known, unknown) = (GpuModel::parse("A100").unwrap(), GpuModel::parse("H800").unwrap());
        assert_eq!(parsed.of(&known).map(|prices| prices.hp.units()), Some(2.5));
        assert_eq!(parsed.of(&unknown), None);
        let fault = of("EUR", wrong).unwrap_err().to_string();
        assert_eq!(fault, "gpu_models.\"A100\".owned: invalid price -1: expected 0 to 1000000 for a GPU-hour");
        assert!(of("euro", prices).unwrap_err().to_string().starts_with("currency: invalid currency \"euro\""));
    }
}
