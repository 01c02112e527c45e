//! Numbers and names as bytes, little-endian: how learned state is kept.

use vocab::{GuaranteeRate, HorizonHours, HourStart, MilliGpus, UnixSeconds};

/// A time that is none.
const NEVER: i64 = i64::MIN;

/// Bytes that are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DamagedBytes(pub(crate) String);

impl DamagedBytes {
    /// They end before they should.
    #[must_use]
    pub fn cut_off() -> Self {
        Self("they are cut off".to_owned())
    }

    /// With what is wrong with them.
    pub fn of(fault: impl std::fmt::Display) -> Self {
        Self(fault.to_string())
    }
}

fn too_large() -> DamagedBytes {
    DamagedBytes("a number has more than 64 bits".to_owned())
}

/// Bytes while they are written.
#[derive(Debug)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Four letters and the number of the format.
    #[must_use]
    pub fn new(kind: [u8; 4], format: u8) -> Self {
        let mut bytes = kind.to_vec();
        bytes.push(format);
        Self(bytes)
    }

    /// Writes a byte.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Writes a number of 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    /// Writes a number of 64 bits.
    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Writes a number in as many bytes as it has groups of seven bits, the lowest first.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// Writes a signed number of 64 bits.
    pub fn i64(&mut self, value: i64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Writes a float, rounded to 32 bits.
    pub fn f32(&mut self, value: f64) {
        self.0.extend((value as f32).to_le_bytes());
    }

    /// Writes a float.
    pub fn f64(&mut self, value: f64) {
        self.0.extend(value.to_le_bytes());
    }

    /// A time, or none.
    pub fn time(&mut self, time: Option<UnixSeconds>) {
        self.i64(time.map_or(NEVER, UnixSeconds::get));
    }

    /// Writes an hour.
    pub fn hour(&mut self, hour: HourStart) {
        self.u64(hour.unix_s().unsigned_abs());
    }

    /// Writes a number of items.
    ///
    /// # Panics
    /// There are 2³² of them.
    pub fn count(&mut self, items: usize) {
        self.u32(u32::try_from(items).expect("a panel has fewer than 2³² series"));
    }

    /// Writes bytes, with their length before them.
    ///
    /// # Panics
    /// They are 4 GiB.
    pub fn part(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    /// Writes a name, with its length before it.
    ///
    /// # Panics
    /// It has more than 255 bytes.
    pub fn name(&mut self, name: &str) {
        self.u8(u8::try_from(name.len()).expect("a name has at most 200 bytes"));
        self.0.extend(name.as_bytes());
    }
}

/// Bytes that are left to be read.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads bytes of a kind and format.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn new(bytes: &'a [u8], kind: [u8; 4], format: u8) -> Result<Self, DamagedBytes> {
        let mut reader = Self(bytes);
        if reader.take(kind.len())? != kind {
            return Err(DamagedBytes(format!("they do not begin with {}", String::from_utf8_lossy(&kind))));
        }
        match reader.u8()? {
            found if found == format => Ok(reader),
            found => Err(DamagedBytes(format!("they have format {found}, and this program reads format {format}"))),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DamagedBytes> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(DamagedBytes::cut_off)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DamagedBytes> {
        Ok(self.take(N)?.try_into().expect("as many as were taken"))
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn u8(&mut self) -> Result<u8, DamagedBytes> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads a number of [`Writer::varint`].
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn varint(&mut self) -> Result<u64, DamagedBytes> {
        let mut value = 0_u64;
        for group in 0..10 {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            value |=
                bits.checked_shl(7 * group).filter(|shifted| shifted >> (7 * group) == bits).ok_or_else(too_large)?;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(too_large())
    }

    /// Reads a number of 32 bits.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn u32(&mut self) -> Result<u32, DamagedBytes> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of 64 bits.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn u64(&mut self) -> Result<u64, DamagedBytes> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a signed number of 64 bits.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn i64(&mut self) -> Result<i64, DamagedBytes> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a finite float of 32 bits.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn f32(&mut self) -> Result<f64, DamagedBytes> {
        self.array().map(f32::from_le_bytes).map(f64::from)
    }

    /// A number that is finite.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn f64(&mut self) -> Result<f64, DamagedBytes> {
        let number = f64::from_le_bytes(self.array()?);
        if number.is_finite() { Ok(number) } else { Err(DamagedBytes("a number is not finite".to_owned())) }
    }

    /// Reads an instant, or that there is none.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn time(&mut self) -> Result<Option<UnixSeconds>, DamagedBytes> {
        self.i64().map(|unix_s| (unix_s != NEVER).then_some(UnixSeconds::new(unix_s)))
    }

    /// A time that has to be there.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn moment(&mut self) -> Result<UnixSeconds, DamagedBytes> {
        self.time()?.ok_or_else(|| DamagedBytes("a time is missing".to_owned()))
    }

    /// Reads hours of a horizon.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn hours(&mut self) -> Result<HorizonHours, DamagedBytes> {
        HorizonHours::new(u64::from(self.u8()?)).map_err(DamagedBytes::of)
    }

    /// Reads a guarantee rate.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn rate(&mut self) -> Result<GuaranteeRate, DamagedBytes> {
        let rate = f64::from(self.u32()?) / f64::from(GuaranteeRate::MILLION);
        GuaranteeRate::new(rate).map_err(DamagedBytes::of)
    }

    /// Reads an hour.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn hour(&mut self) -> Result<HourStart, DamagedBytes> {
        let unix_s = i64::try_from(self.u64()?).map_err(DamagedBytes::of)?;
        HourStart::from_unix_s(unix_s).map_err(DamagedBytes::of)
    }

    /// Reads an amount of GPUs.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn amount(&mut self) -> Result<MilliGpus, DamagedBytes> {
        MilliGpus::from_milli(self.u64()?).map_err(DamagedBytes::of)
    }

    /// How many items follow; each has at least `least_bytes`, so that damage cannot ask for more memory than there is.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn count(&mut self, least_bytes: usize) -> Result<usize, DamagedBytes> {
        let count = self.u32()? as usize;
        if count * least_bytes > self.0.len() {
            return Err(DamagedBytes::cut_off());
        }
        Ok(count)
    }

    /// Reads bytes with their length before them.
    ///
    /// # Errors
    /// They are cut off.
    pub fn part(&mut self) -> Result<&'a [u8], DamagedBytes> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn name(&mut self) -> Result<&'a str, DamagedBytes> {
        let length = usize::from(self.u8()?);
        std::str::from_utf8(self.take(length)?).map_err(DamagedBytes::of)
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// Other bytes follow.
    pub fn end(self) -> Result<(), DamagedBytes> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(DamagedBytes(format!("{} bytes follow that belong to nothing", self.0.len())))
    }
}
