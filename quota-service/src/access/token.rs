//! The text of a token.

use sha2::{Digest, Sha256};

const PREFIX: &str = "hr_";
/// Enough that ids do not collide.
pub const ID_BYTES: usize = 6;
pub const SECRET_BYTES: usize = 32;

/// A new token: its text is shown once, and not stored.
pub struct NewToken {
    pub id: String,
    pub secret: String,
}

impl NewToken {
    /// Of random bytes.
    #[must_use]
    pub fn of(random: &[u8; ID_BYTES + SECRET_BYTES]) -> Self {
        let (id, secret) = random.split_at(ID_BYTES);
        Self { id: hex::encode(id), secret: hex::encode(secret) }
    }

    /// The text that its user sends after `Authorization: Bearer`.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }
}

/// The id and the secret of a token; `None` for any other text.
#[must_use]
pub fn split(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    (id.len() == 2 * ID_BYTES && secret.len() == 2 * SECRET_BYTES).then_some((id, secret))
}

/// The stored digest of a secret.
#[must_use]
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_an_id_and_a_secret_and_nothing_else_is() {
        let token = NewToken::of(&std::array::from_fn(|index| index as u8));
        let text = token.text();
        assert_eq!(split(&text), Some((token.id.as_str(), token.secret.as_str())));
        assert_eq!((text.len(), &text[..16]), (3 + 12 + 1 + 64, "hr_000102030405_"));
        for wrong in ["", "hr_", "hr_000102030405_", &text[1..], &text[..70], &format!("{text}0")] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }
}
