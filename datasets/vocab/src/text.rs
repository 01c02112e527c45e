//! Texts that people write for others: reasons, and the names of tokens and replicas.

use crate::ids::invisible;

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A new line, a tabulator and the like.
    #[error("the text contains the control character U+{code_point:04X}: write it on one line")]
    Control {
        /// The first one.
        code_point: u32,
    },
    /// A character that cannot be seen, or turns the direction in which the text beside it is read.
    #[error("the text contains the invisible character U+{code_point:04X}: remove it")]
    Invisible {
        /// The first one.
        code_point: u32,
    },
}

/// Refuses a new text with characters that a name may not have either: on a page they would mirror or hide what stands beside them.
/// Texts that are stored already stay readable.
///
/// # Errors
/// [`TextError`] with the first of the characters.
pub fn new_text(text: &str) -> Result<(), TextError> {
    if let Some(control) = text.chars().find(|one| one.is_control()) {
        return Err(TextError::Control { code_point: control.into() });
    }
    invisible(text).map_or(Ok(()), |code_point| Err(TextError::Invisible { code_point }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_would_mirror_or_hide_what_stands_beside_it_is_refused_with_the_character() {
        for code_point in [0x200B, 0x202E, 0x2028, 0x2066, 0xFEFF] {
            let text = format!("a{}b", char::from_u32(code_point).unwrap());
            let fault = new_text(&text).unwrap_err();
            assert_eq!(fault, TextError::Invisible { code_point });
            assert!(fault.to_string().contains(&format!("U+{code_point:04X}: remove it")), "{fault}");
        }
        assert_eq!(new_text("a\nb"), Err(TextError::Control { code_point: 0x0A }));
        for text in ["a launch: 8 GPUs (for \"vision\")", "新模型发布", "запуск", "השקה"] {
            assert_eq!(new_text(text), Ok(()));
        }
    }
}
